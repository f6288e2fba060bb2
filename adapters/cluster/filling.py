"""Streaming Arrow batches into one table through one replica, as native blocks over the driver's connection.

Nothing is ever sent twice: whatever fails ends the fill, and a candidate that was not filled to its end is abandoned.
"""

from __future__ import annotations

import select
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from typing import Any

from ...domain.tables import Column
from ...domain.types import parse_type
from ..clickhouse.arrow_types import check_nulls, check_schema
from ..clickhouse.quoting import identifier, table_name
from . import native
from .dialect import ROWS_PER_BLOCK, one_insert_takes_all_blocks, settings_of_an_insert
from .session import ReplicaSession


def fill(session: ReplicaSession, database: str, name: str, columns: Sequence[Column], batches: Iterable[Any]) -> int:
    """Insert all batches and return how many rows they were.

    An error of the producer, or a signal, ends the insert and goes on as it is. Raises EngineFailed.
    """
    named = [replace(column, type=str(parse_type(column.type))) for column in columns]
    checked = _checked(batches, named)
    if one_insert_takes_all_blocks(session.dialect):
        return _insert(session, database, name, named, checked, token="")
    rows = 0
    for number, block in enumerate(_gathered(checked)):
        rows += _insert(session, database, name, named, [block], token=f"{name}:{number}")
    return rows


def _insert(
    session: ReplicaSession, database: str, name: str, columns: Sequence[Column], batches: Iterable[Any], token: str
) -> int:
    """One INSERT. Its statement goes out with the first block: an empty load sends nothing."""
    coming = iter(batches)
    first = next(coming, None)
    if first is None:
        return 0
    listed = ", ".join(identifier(column.name) for column in columns)
    rows = 0
    client = session.client
    with session.failing():
        client.establish_connection(settings_of_an_insert(session.dialect, token))
        client.connection.send_query(f"INSERT INTO {table_name(database, name)} ({listed}) VALUES")
        client.connection.send_external_tables(None)
        client.receive_sample_block()
    for batch in chain([first], coming):
        with session.failing():
            with _last_word(client):
                _send(client.connection, batch, columns)
            _raise_early(client)
        rows += batch.num_rows
    with session.failing():
        with _last_word(client):
            client.connection.send_data(_no_more())
        client.receive_end_of_query()
        client.connection.is_query_executing = False
    return rows


def _send(connection: Any, batch: Any, columns: Sequence[Column]) -> None:
    """One data packet: its number, an empty table name, then the block, which a compressing stream packs."""
    from clickhouse_driver.block import BlockInfo
    from clickhouse_driver.protocol import ClientPacketTypes

    connection.fout.write(native.varint(ClientPacketTypes.DATA) + native.text(""))
    body = b"".join(native.block(batch, columns))
    BlockInfo().write(connection.block_out.fout)
    if connection.block_out.fout is connection.fout:
        connection.fout.flush()
        connection.socket.sendall(body)
        return
    connection.block_out.fout.write(body)
    connection.block_out.finalize()


def _raise_early(client: Any) -> None:
    """A server that gives up in the middle says so at once: the rest of a long load need not be sent to learn it."""
    answers = select.poll()
    answers.register(client.connection.socket, select.POLLIN)
    while answers.poll(0):
        packet = client.connection.receive_packet()
        if packet.exception is not None:
            raise packet.exception


@contextmanager
def _last_word(client: Any) -> Iterator[None]:
    """A server that gives up closes right after its answer, so a send can fail while the reason lies unread here.

    A closed connection still gives what came before its end, so this reads on until the reason or that end. A send
    that took too long is of a connection that is open: there is nothing to read.
    """
    try:
        yield
    except TimeoutError:
        raise
    except OSError:
        with suppress(OSError, EOFError):
            while client.receive_packet() is not False:
                pass
        raise


def _no_more() -> Any:
    from clickhouse_driver.block import ColumnOrientedBlock

    return ColumnOrientedBlock()


def _checked(batches: Iterable[Any], columns: Sequence[Column]) -> Iterator[Any]:
    schema = None
    for batch in batches:
        if schema is None or not batch.schema.equals(schema):
            check_schema(batch.schema, columns)
            schema = batch.schema
        check_nulls(batch, columns)
        if batch.num_rows:
            yield batch


def _gathered(batches: Iterable[Any]) -> Iterator[Any]:
    """Batches put together to as many rows as a part may have."""
    import pyarrow as pa

    held: list[Any] = []
    rows = 0
    for batch in batches:
        if held and rows + batch.num_rows > ROWS_PER_BLOCK:
            yield pa.concat_batches(held)
            held, rows = [], 0
        held.append(batch)
        rows += batch.num_rows
    if held:
        yield pa.concat_batches(held)
