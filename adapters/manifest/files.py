"""Reading a manifest's bytes: a plain file of bounded size and valid UTF-8, or a clear refusal."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Final

from ...domain.errors import DponeError, ErrorCode
from .yaml import FILE_BYTES_MAX

if TYPE_CHECKING:
    from pathlib import Path

# With O_NONBLOCK, opening a named pipe returns at once instead of waiting for a writer that may never come.
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK

_UNQUOTABLE: Final = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]")


def shown(path: Path | str) -> str:
    """A file's name as messages show it: on one line, always printable."""
    return _UNQUOTABLE.sub("?", str(path))


def read_bytes(path: Path, name: str) -> bytes:
    """The file's content. ``name`` is how a message calls it. Raises DponeError (MANIFEST_INVALID)."""
    try:
        descriptor = os.open(path, _FLAGS)
    except FileNotFoundError:
        raise refused(f"{name}: there is no such file.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "the name is not a file name"
        raise refused(f"{name}: the file cannot be opened ({reason}).") from None
    try:
        _refuse_unless_plain(os.fstat(descriptor).st_mode, name)
        content = _read(descriptor)
    except OSError as error:
        raise refused(f"{name}: the file cannot be read ({error.strerror}).") from None
    finally:
        os.close(descriptor)
    if len(content) > FILE_BYTES_MAX:
        raise refused(f"{name}: the file is longer than {FILE_BYTES_MAX} bytes.")
    return content


def _refuse_unless_plain(mode: int, name: str) -> None:
    if stat.S_ISDIR(mode):
        raise refused(f"{name}: this is a folder; name the manifest's file in it.")
    if not stat.S_ISREG(mode):
        raise refused(f"{name}: this is not a plain file.")


def _read(descriptor: int) -> bytes:
    """At most one byte more than is allowed, however long the file is."""
    content = b""
    while len(content) <= FILE_BYTES_MAX and (block := os.read(descriptor, FILE_BYTES_MAX + 1 - len(content))):
        content += block
    return content


def decode(content: bytes, name: str) -> str:
    """The content as text; a byte order mark is left out. Raises DponeError (MANIFEST_INVALID)."""
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise refused(f"{name}:{line}: the file is not UTF-8 from byte {error.start + 1} on.") from None


def refused(what: str, errors: tuple[str, ...] = ()) -> DponeError:
    """The refusal of a manifest, with every problem found."""
    return DponeError(
        ErrorCode.MANIFEST_INVALID,
        what,
        errors=errors,
        safe="Nothing was read, created or changed.",
        next="Correct the manifest and repeat the command.",
    )
