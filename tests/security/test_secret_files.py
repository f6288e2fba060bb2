"""A secret that everybody on the machine can read or replace is refused, and never used in silence."""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpone.adapters.connections.resolving import resolve
from dpone.domain.errors import DponeError, ErrorCode
from dpone.ledger.keeper_url import user_of

SECRET = "c4n4ry-of-a-file"
_MS_RDONLY, _MS_REMOUNT, _MS_BIND = 1, 32, 4096


def _password(file: Path) -> object:
    return resolve("x", {"DPONE_CONN_X_HOST": "h", "DPONE_CONN_X_PASSWORD_FILE": str(file)}).password


def _url(file: Path) -> object:
    return resolve("x", {"DPONE_CONN_X_URL_FILE": str(file)}).password


def _toml(file: Path) -> object:
    return resolve("x", {"DPONE_CONNECTIONS": str(file)}).password


def _named_in_toml(file: Path) -> object:
    toml = file.with_suffix(".toml")
    toml.write_text(f'[x]\nhost = "h"\npassword_file = "{file}"\n')
    toml.chmod(0o600)
    return resolve("x", {"DPONE_CONNECTIONS": str(toml)}).password


def _keeper(file: Path) -> object:
    found = user_of({"DPONE_KEEPER_AUTH_FILE": str(file)})
    return found.password if found else None


READERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "password": (_password, SECRET),
    "url": (_url, f"postgresql://u:{SECRET}@h/d"),
    "connections.toml": (_toml, f'[x]\nhost = "h"\npassword = "{SECRET}"\n'),
    "password of connections.toml": (_named_in_toml, SECRET),
    "keeper": (_keeper, f"u:{SECRET}"),
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("mode", [0o604, 0o602, 0o644, 0o666, 0o777])
def test_a_file_that_others_can_read_or_write_is_refused_and_not_quoted(kind: str, mode: int, tmp_path: Path) -> None:
    read, content = READERS[kind]
    file = tmp_path / "secret"
    file.write_text(content)
    file.chmod(mode)
    with pytest.raises(DponeError) as caught:
        read(file)
    assert caught.value.code is ErrorCode.REQUEST_INVALID
    assert "chmod 600" in str(caught.value.next)
    assert SECRET not in f"{caught.value.what} {caught.value.next}"
    assert str(tmp_path) not in f"{caught.value.what} {caught.value.next}"

    file.chmod(0o600)
    assert read(file) == SECRET


@pytest.mark.parametrize("kind", ["password", "url", "keeper"])
def test_the_owners_group_may_share_it(kind: str, tmp_path: Path) -> None:
    read, content = READERS[kind]
    file = tmp_path / "secret"
    file.write_text(content)
    file.chmod(0o640)
    assert read(file) == SECRET


@pytest.mark.parametrize("kind", ["password", "url", "keeper"])
def test_a_pipe_is_nobodys_file(kind: str) -> None:
    """``…_PASSWORD_FILE=<(pass show db)``"""
    read, content = READERS[kind]
    there, here = os.pipe()
    os.write(here, content.encode())
    os.close(here)
    try:
        assert read(Path(f"/dev/fd/{there}")) == SECRET
    finally:
        os.close(there)


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder as a container platform mounts secrets: read-only, readable by all of the container."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    for kind, (_, content) in READERS.items():
        (folder / kind).write_text(content)
        (folder / kind).chmod(0o444)
    libc, place = ctypes.CDLL(None, use_errno=True), str(folder).encode()
    if libc.mount(place, place, None, _MS_BIND, None) or libc.mount(
        None, place, None, _MS_BIND | _MS_REMOUNT | _MS_RDONLY, None
    ):
        pytest.skip("a read-only mount needs the right to mount")
    yield folder
    assert libc.umount2(place, 0) == 0


@pytest.mark.parametrize("kind", ["password", "url", "keeper"])
def test_a_read_only_mount_decides_by_itself_who_sees_it(kind: str, read_only: Path) -> None:
    read, _ = READERS[kind]
    assert stat.S_IMODE((read_only / kind).stat().st_mode) == 0o444
    assert read(read_only / kind) == SECRET
