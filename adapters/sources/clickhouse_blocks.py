"""Blocks of a server's answer as Arrow batches, column by column, without an object for any value.

The driver's own way to Arrow imports pandas, 0.3 s of every process, and makes an object of every decimal; its reading
of bytes, packets and compression is used as it is. How a block looks: :mod:`..cluster.native`. The revision that is
agreed upon (:mod:`..connections.clickhouse`) knows no sparse columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from ...domain.types import ColumnType, parse_type
from .shapes import arrow_type


@contextmanager
def arrow_blocks(connection: Any) -> Iterator[None]:
    """Inside, what the driver's ``connection`` receives has one "row" a block: a RecordBatch. Strings are bytes."""
    theirs, receive = connection.block_in, connection.receive_packet
    connection.block_in = _Blocks(theirs.fin, connection.context)
    connection.receive_packet = lambda: _without_extras(receive())
    try:
        yield
    finally:
        del connection.receive_packet
        if isinstance(connection.block_in, _Blocks):  # not when it was closed meanwhile
            connection.block_in = theirs


def _without_extras(packet: Any) -> Any:
    """Totals and extremes, which a query may have asked for, are no rows of its result."""
    from clickhouse_driver.protocol import ServerPacketTypes

    if packet.type in (ServerPacketTypes.TOTALS, ServerPacketTypes.EXTREMES):
        packet.block = None
    return packet


class _Blocks:
    """Stands in for the driver's ``BlockInputStream``."""

    def __init__(self, bytes_in: Any, context: Any) -> None:
        self.fin = bytes_in
        self._context = context

    def read(self, use_numpy: bool | None = None) -> _Block:
        """The next block. Raises EOFError; ValueError, LookupError or UnsupportedType where it is none."""
        from clickhouse_driver import defines
        from clickhouse_driver.block import BlockInfo
        from clickhouse_driver.reader import read_binary_str
        from clickhouse_driver.varint import read_varint

        if self._context.server_info.used_revision >= defines.DBMS_MIN_REVISION_WITH_BLOCK_INFO:
            BlockInfo().read(self.fin)
        count, rows = read_varint(self.fin), read_varint(self.fin)
        names, arrays = [], []
        for _ in range(count):
            names.append(read_binary_str(self.fin))
            kind = read_binary_str(self.fin)
            if rows:
                arrays.append(column(self.fin, parse_type(kind), rows))
        return _Block(pa.RecordBatch.from_arrays(arrays, names) if rows else None)


class _Block:
    """What the driver asks of a block."""

    def __init__(self, batch: Any | None) -> None:
        self._batch = batch
        self.num_rows = 0 if batch is None else batch.num_rows

    def get_rows(self) -> tuple[Any, ...]:
        return () if self._batch is None else (self._batch,)


def arrival_type(kind: ColumnType) -> Any:
    """The Arrow type of a column that travels as ``kind``. Raises LookupError for one that none travels as."""
    if kind.kind == "String":
        return pa.binary()
    if kind.is_integer or kind.kind in ("Float32", "Float64", "Decimal"):
        return arrow_type(kind)
    raise LookupError(kind.kind)


def column(bytes_in: Any, kind: ColumnType, rows: int) -> Any:
    """One column of a block, from the driver's reader of bytes. Raises EOFError, ValueError, LookupError."""
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
        raise ValueError
    return pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(characters)


def _decimal_bytes(precision: int) -> int:
    return 4 if precision <= 9 else 8 if precision <= 18 else 16


def _widened(short: Any) -> Any:
    """Arrow keeps 16 bytes in two's complement, low half first."""
    wide = np.empty((len(short), 2), "<i8")
    wide[:, 0] = short
    wide[:, 1] = wide[:, 0] >> 63
    return wide
