"""The bytes inside a file: as they are, out of gzip (RFC 1952, several members allowed), or out of a zip of one member.

Every reader yields blocks and never more than ``max_bytes`` in all, so that a small file cannot fill the memory.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final, Literal

from .files import OpenedFile
from .refusals import shown, too_large, unreadable

Compression = Literal["auto", "none", "gzip", "zip"]

BLOCK_BYTES = 4 * 1024 * 1024
_PACKED_BYTES = 256 * 1024
_GZIP_MAGIC = b"\x1f\x8b"
_ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
_DAMAGED = "Get a complete copy of the file, then repeat the command."


def unpacked(file: OpenedFile, compression: Compression, max_bytes: int) -> Iterator[bytes]:
    """The content in blocks. ``auto`` decides by the first bytes, never by the name.

    Raises SourceFailed: DPONE_SOURCE_TOO_LARGE beyond ``max_bytes``, DPONE_SOURCE_UNREADABLE for damaged files.
    """
    total = 0
    for block in _blocks(file, compression):
        total += len(block)
        if total > max_bytes:
            raise too_large(file.path.name, max_bytes, unpacked=True)
        yield block


def _blocks(file: OpenedFile, compression: Compression) -> Iterator[bytes]:
    head = file.read_at(0, 4)
    if compression == "zip" or (compression == "auto" and head in _ZIP_MAGICS):
        return _zip(file)
    if compression == "gzip" or (compression == "auto" and head.startswith(_GZIP_MAGIC)):
        return _gzip(file)
    return _raw(file, BLOCK_BYTES)


def _raw(file: OpenedFile, count: int) -> Iterator[bytes]:
    offset = 0
    while block := file.read_at(offset, count):
        offset += len(block)
        yield block


def _gzip(file: OpenedFile) -> Iterator[bytes]:
    try:
        yield from _members(_raw(file, _PACKED_BYTES))
    except (zlib.error, EOFError):
        raise unreadable(f"{shown(file.path.name)} is not a complete, sound gzip file.", _DAMAGED) from None


def _members(packed: Iterator[bytes]) -> Iterator[bytes]:
    pending, started = b"", False
    decoder = zlib.decompressobj(wbits=31)
    for block in packed:
        pending += block
        while pending:
            if not started and not pending.strip(b"\0"):
                pending = b""  # zero padding after the last member is legal
                continue
            started = True
            content = decoder.decompress(pending, BLOCK_BYTES)
            pending = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
            if content:
                yield content
            if decoder.eof:
                decoder, started = zlib.decompressobj(wbits=31), False
    if started:
        while content := decoder.decompress(decoder.unconsumed_tail, BLOCK_BYTES):
            yield content
        if not decoder.eof:
            raise EOFError


_ZIP_ERRORS: Final = (
    zipfile.BadZipFile, zlib.error, struct.error,
    EOFError, LookupError, NotImplementedError, ValueError, OverflowError, OSError, RuntimeError,
)  # fmt: skip
"""What the zip reader runs into where a directory does not say what is there."""


def _zip(file: OpenedFile) -> Iterator[bytes]:
    name = shown(file.path.name)
    try:
        with zipfile.ZipFile(Positioned(file)) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            if len(members) != 1:
                raise unreadable(f"{name} holds {len(members)} files; exactly one is read.", "Pack the one file alone.")
            if members[0].flag_bits & 1:
                raise unreadable(f"{name} is encrypted.", "Unpack it first and name the unpacked file.")
            with archive.open(members[0]) as member:
                while block := member.read(BLOCK_BYTES):
                    yield block
    except _ZIP_ERRORS:
        raise unreadable(f"{name} is not a complete, sound zip file.", _DAMAGED) from None


class Positioned(io.RawIOBase):
    """The opened descriptor as a seekable file, so that the zip reader reads the very file that was fingerprinted."""

    def __init__(self, file: OpenedFile) -> None:
        super().__init__()
        self._file = file
        self._offset = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._offset

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._file.size}[whence]
        if start + offset < 0:
            raise OSError("negative seek")
        self._offset = start + offset
        return self._offset

    def read(self, count: int | None = -1) -> bytes:
        left = max(self._file.size - self._offset, 0)
        wanted = left if count is None or count < 0 else min(count, left)  # a directory may announce any size
        block = self._file.read_at(self._offset, wanted)
        self._offset += len(block)
        return block
