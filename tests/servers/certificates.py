"""An authority and a server's certificate made on the spot by the ``openssl`` program, for the tests of TLS."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NAME: Final = "localhost"
"""The one host name in the certificate; 127.0.0.1 leads to the same server and is not in it."""

_KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True, slots=True)
class Certificates:
    """``authority`` signed ``certificate``, whose key is ``key``; ``stranger`` is an authority that signed nothing."""

    authority: Path
    stranger: Path
    certificate: Path
    key: Path


def made(folder: Path) -> Certificates:
    """Make them in ``folder``, valid for a day."""
    for who in ("authority", "stranger"):
        _openssl(folder, "req", "-x509", *_KEY, "-days", "1", "-subj", f"/CN=test {who}", *_out(who))
    extensions = folder / "extensions"
    extensions.write_text(f"subjectAltName=DNS:{NAME}\nbasicConstraints=CA:FALSE\n")
    _openssl(folder, "req", *_KEY, "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr")
    signing = ("-CA", "authority.crt", "-CAkey", "authority.key", "-CAcreateserial", "-extfile", str(extensions))
    _openssl(folder, "x509", "-req", "-in", "server.csr", *signing, "-days", "1", "-out", "server.crt")
    names = ("authority.crt", "stranger.crt", "server.crt", "server.key")
    return Certificates(*(folder / name for name in names))


def _out(who: str) -> tuple[str, ...]:
    return "-keyout", f"{who}.key", "-out", f"{who}.crt"


def _openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True, timeout=30)
