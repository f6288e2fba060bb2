"""Blocks of a server's answer as Arrow batches, column by column, without an object for any value.

The driver's own way to Arrow imports pandas, 0.3 s of every process, and makes an object of every decimal; its reading
of bytes, packets and compression is used as it is. How a block looks: :mod:`..cluster.native`. The revision that is
agreed upon (:mod:`..connections.clickhouse`) knows no sparse columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ...domain.types import ColumnType, parse_type
from .shapes import arrow_type

_ROWS_MAX: Final = 2**24
"""Of one block: memory for them is taken before the first has come. A server sends 2**16, unless a join multiplies."""


class BlockTooLarge(Exception):
    """More rows, or more bytes of text, than one block is taken with."""


def read_blocks(client: Any, statement: str, settings: Mapping[str, Any], columns: int) -> Iterator[Any]:
    """A batch for each block of rows that the statement yields. Text is bytes. Totals and extremes are no rows.

    Raises BlockTooLarge; the driver's errors; ValueError, LookupError or UnsupportedType for what is no such block.
    """
    from clickhouse_driver.protocol import ServerPacketTypes

    client.establish_connection(settings)
    connection = client.connection
    theirs = connection.block_in
    connection.block_in = _Blocks(theirs.fin, connection.context, columns)
    try:
        connection.send_query(statement)
        connection.send_external_tables(None)
        for packet in client.packet_generator():
            if packet.type == ServerPacketTypes.DATA and packet.block is not None:
                yield packet.block
    finally:
        if isinstance(connection.block_in, _Blocks):  # not when it was closed meanwhile
            connection.block_in = theirs


class _Blocks:
    """Stands in for the driver's ``BlockInputStream``: what it reads are batches."""

    def __init__(self, bytes_in: Any, context: Any, columns: int) -> None:
        self._bytes_in = bytes_in
        self._context = context
        self._columns = columns

    def read(self, use_numpy: bool | None = None) -> Any | None:
        """The next block; None for one without rows. Raises EOFError and as :func:`read_blocks`."""
        from clickhouse_driver import defines
        from clickhouse_driver.block import BlockInfo
        from clickhouse_driver.reader import read_binary_str
        from clickhouse_driver.varint import read_varint

        if self._context.server_info.used_revision >= defines.DBMS_MIN_REVISION_WITH_BLOCK_INFO:
            BlockInfo().read(self._bytes_in)
        count, rows = read_varint(self._bytes_in), read_varint(self._bytes_in)
        if count != self._columns and (count or rows):  # the last block of all has neither
            raise ValueError
        if rows > _ROWS_MAX:
            raise BlockTooLarge
        names, arrays = [], []
        for _ in range(count):
            names.append(read_binary_str(self._bytes_in))
            kind = read_binary_str(self._bytes_in)
            if rows:
                arrays.append(column(self._bytes_in, parse_type(kind), rows))
        return pa.RecordBatch.from_arrays(arrays, names) if rows else None


def arrival_type(kind: ColumnType) -> Any:
    """The Arrow type of a column that travels as ``kind``. Raises LookupError for one that none travels as."""
    if kind.kind == "String":
        return pa.binary()
    if kind.is_integer or kind.kind in ("Float32", "Float64", "Decimal"):
        return arrow_type(kind)
    raise LookupError(kind.kind)


def column(bytes_in: Any, kind: ColumnType, rows: int) -> Any:
    """One column of a block, from the driver's reader of bytes. Raises EOFError, BlockTooLarge, LookupError."""
    validity = None
    if kind.nullable:
        is_null = np.frombuffer(bytes_in.read(rows), np.uint8)
        validity = pa.py_buffer(np.packbits(is_null == 0, bitorder="little"))
    exact = arrival_type(kind)
    if kind.kind == "String":
        return pa.Array.from_buffers(exact, rows, [validity, *_strings(bytes_in, rows)])
    width = _decimal_bytes(kind.precision) if kind.kind == "Decimal" else exact.bit_width // 8
    values = bytes_in.read(rows * width)
    if width < exact.bit_width // 8:
        values = _widened(np.frombuffer(values, f"<i{width}"))
    return pa.Array.from_buffers(exact, rows, [validity, pa.py_buffer(values)])


def _strings(bytes_in: Any, rows: int) -> tuple[Any, Any]:
    wide, characters = bytes_in.read_strings_arrow(rows)
    offsets = np.frombuffer(wide, np.int64)
    if offsets[-1] > np.iinfo(np.int32).max:
        raise BlockTooLarge
    return pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(characters)


def _decimal_bytes(precision: int) -> int:
    return 4 if precision <= 9 else 8 if precision <= 18 else 16


def _widened(short: Any) -> Any:
    """Arrow keeps 16 bytes in two's complement, low half first."""
    wide = np.empty((len(short), 2), "<i8")
    wide[:, 0] = short
    wide[:, 1] = wide[:, 0] >> 63
    return wide
