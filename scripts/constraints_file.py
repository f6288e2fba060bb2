"""Writes and checks ``constraints.txt``: every package that .venv holds, its version, and the hash of its wheel.

The hashes are those that pip finds for this interpreter and machine, so that the file says for which it holds. It
names no index: whichever one a machine uses, other bytes under the same version are refused by
``pip install --require-hashes --no-deps -r constraints.txt``.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "constraints.txt"
PROJECT = "dpone-replay"
_NOT_PINNED = ("pip", "setuptools", "wheel", PROJECT)  # the first three come with the interpreter
_LINE = re.compile(r"([a-z0-9]+(?:-[a-z0-9]+)*)==([A-Za-z0-9.+!]+)((?: --hash=sha256:[0-9a-f]{64})+)")
_HEADER = """\
# Every dependency with the hash of its wheel; written by scripts/constraints, checked by its --check and by a test.
# For {machine}
"""


@dataclass(frozen=True, slots=True)
class Pinned:
    """One package: its normalised name, its version, and the SHA-256 of each file that may be installed."""

    name: str
    version: str
    hashes: tuple[str, ...]


def machine() -> str:
    """The interpreter and the machine that hashes hold for."""
    version = ".".join(map(str, sys.version_info[:2]))
    return f"{platform.python_implementation()} {version} on {sys.platform} {platform.machine()}"


def installed() -> dict[str, str]:
    """Version by normalised name of everything in this environment but the project itself."""
    found = {normalised(one.metadata["Name"]): one.version for one in metadata.distributions()}
    return {name: version for name, version in sorted(found.items()) if name not in _NOT_PINNED}


def normalised(name: str) -> str:
    """As package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse(text: str) -> Iterator[Pinned]:
    """The file's lines. Raises ValueError for one that pins no hash, and so for any address or option."""
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"not a package with version and hash: {line[:80]!r}")
        yield Pinned(match[1], match[2], tuple(re.findall(r"[0-9a-f]{64}", match[3])))


def holds_here(text: str) -> bool:
    """Whether the file was made for this interpreter and machine."""
    return f"# For {machine()}" in text.splitlines()


def differences(text: str) -> list[str]:
    """What is installed otherwise than the file says, as sentences."""
    pinned = {one.name: one.version for one in parse(text)}
    found = [
        f"{name} {version} is installed, pinned is {pinned.get(name, 'none')}"
        for name, version in installed().items()
        if pinned.get(name) != version
    ]
    return found if holds_here(text) else []


def render(pins: list[Pinned]) -> str:
    """The file's text."""
    lines = [
        f"{one.name}=={one.version} " + " ".join(f"--hash=sha256:{digest}" for digest in one.hashes) for one in pins
    ]
    return _HEADER.format(machine=machine()) + "\n".join(lines) + "\n"


def _asked(versions: dict[str, str]) -> list[Pinned]:
    """What pip would install for these versions: it downloads, and installs nothing."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, report = Path(folder, "wanted"), Path(folder, "report")
        wanted.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()))
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet"]
        subprocess.run([*command, "--report", str(report), "-r", str(wanted)], check=True)
        items = json.loads(report.read_text())["install"]
    return sorted((_pinned(item) for item in items), key=lambda one: one.name)


def _pinned(item: dict[str, dict[str, dict[str, dict[str, str]]]]) -> Pinned:
    about: dict[str, str] = item["metadata"]  # type: ignore[assignment]
    return Pinned(
        normalised(about["name"]), about["version"], (item["download_info"]["archive_info"]["hashes"]["sha256"],)
    )


def main(arguments: list[str]) -> int:
    """Write the file, compare it (``--check``), or print the versions that hold on this machine (``--versions``)."""
    if arguments == ["--versions"]:
        text = FILE.read_text()
        print("\n".join(f"{one.name}=={one.version}" for one in parse(text) if holds_here(text)))
        return 0
    if arguments != ["--check"]:
        FILE.write_text(render(_asked(installed())))
        return 0
    found = differences(FILE.read_text())
    for sentence in found:
        print(sentence)
    if found:
        print("scripts/constraints writes constraints.txt anew.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
