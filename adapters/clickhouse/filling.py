"""Streaming Arrow batches into one table: the caller produces, the engine's thread serialises and inserts.

Memory stays flat whatever the number of rows: one parsing thread, at most two that write parts, a few batches in
flight, and parts cut by bytes before the engine would gather a million rows for each.
"""

from __future__ import annotations

import io
import queue
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...domain.errors import EngineFailed, ErrorCode
from ...domain.tables import Column
from .arrow_types import another_schema, check_nulls, check_schema
from .engine_errors import RAISED, engine_failed
from .engine_session import ask
from .engine_thread import EngineThread, Job
from .quoting import identifier, literal, settings_clause, table_name

_IN_FLIGHT_BATCHES = 2
_CANCEL_SECONDS = 2.0
_APPENDED_BYTES = 4 * 1024 * 1024  # a batch or so, for each append waits for the engine; a larger buffer goes as it is
_DOING = "inserting rows into the candidate"
_SETTINGS: dict[str, int | str] = {
    "async_insert": 0,
    "insert_deduplicate": 0,
    "optimize_on_insert": 0,
    "input_format_parallel_parsing": 0,
    "min_insert_block_size_rows": 1_048_576,
    "min_insert_block_size_bytes": 64 * 1024 * 1024,
    "input_format_null_as_default": 0,
    "input_format_defaults_for_omitted_fields": 0,
    "input_format_skip_unknown_fields": 0,
    "input_format_arrow_allow_missing_columns": 0,
    "input_format_arrow_case_insensitive_column_matching": 0,
    "date_time_overflow_behavior": "throw",
    "parts_to_delay_insert": 1_000_000,  # there is nothing to wait for: merges are stopped
}
_WRITERS = 2
_REGARDLESS_OF_ORDER = "MergeTree"  # of others, which row outlives its key can depend on the order of parts


def fill(
    thread: EngineThread,
    session: Any,
    database: str,
    name: str,
    columns: Sequence[Column],
    batches: Iterable[Any],
) -> int:
    """Insert all batches and return how many rows they were.

    An error of the producer, or a signal, cancels the insert and goes on as it is. Raises EngineFailed, also when the
    engine reports success and the rows are not there: it loses errors of a streamed insert's own thread (full disk).
    """
    names = ", ".join(identifier(column.name) for column in columns)
    feed = _Feed()
    before = thread.call(lambda: _state(session, database, name))
    writers = thread.call(lambda: _writers(session, database, name))
    thread.call(lambda: _stop_merges(session, database, name))
    settings = settings_clause({**_SETTINGS, "max_threads": writers, "max_insert_threads": writers})
    statement = f"INSERT INTO {table_name(database, name)} ({names}){settings}"
    job: Job[int] | None = None
    rows = 0
    try:
        for batch in batches:
            check_nulls(batch, columns)
            if job is None:
                check_schema(batch.schema, columns)
                schema = batch.schema
                job = thread.start(partial(feed.insert, session, statement, schema))
            elif not batch.schema.equals(schema):
                raise another_schema()
            rows += batch.num_rows
            feed.put(batch, job)
        if job is None:
            return 0
        feed.put(None, job)
        job.done.wait()
    except BaseException:
        if job is not None:
            feed.cancel(job)
        raise
    written = _written(job)
    after = thread.call(lambda: _state(session, database, name))
    if after.rows == before.rows + rows:
        return rows
    if failed := after.errors_since(before):
        raise engine_failed(RuntimeError(failed), _DOING)
    if written != rows:
        raise _lost(written, rows)
    return rows  # an engine that collapses equal keys has begun to


@dataclass(frozen=True, slots=True)
class _State:
    """What the engine says of itself: the table's rows, and every kind of error it has counted so far."""

    rows: int
    errors: dict[int, tuple[int, str]]

    def errors_since(self, before: _State) -> str:
        """The errors that were counted meanwhile, in the form of the engine's messages. Empty: none."""
        return "; ".join(
            message for code, (count, message) in self.errors.items() if count > before.errors.get(code, (0, ""))[0]
        )


def _state(session: Any, database: str, name: str) -> _State:
    try:
        (counted,) = ask(session, f"SELECT count() AS rows FROM {table_name(database, name)}")
        kinds = ask(session, "SELECT code, value, name, last_error_message AS said FROM system.errors WHERE NOT remote")
    except RAISED as error:
        raise engine_failed(error, _DOING) from None
    errors = {kind["code"]: (kind["value"], f"Code: {kind['code']}. {kind['said']} ({kind['name']})") for kind in kinds}
    return _State(counted["rows"], errors)


def _writers(session: Any, database: str, name: str) -> int:
    """How many threads may write parts."""
    named = f"database = {literal(database)} AND name = {literal(name)}"
    try:
        tables = ask(session, f"SELECT engine FROM system.tables WHERE {named}")
    except RAISED as error:
        raise engine_failed(error, _DOING) from None
    return _WRITERS if [table["engine"] for table in tables] == [_REGARDLESS_OF_ORDER] else 1


def _stop_merges(session: Any, database: str, name: str) -> None:
    """Until the folder is opened the next time: merging what a load has just written would take its processors."""
    try:
        session.query(f"SYSTEM STOP MERGES {table_name(database, name)}")
    except RAISED as error:
        raise engine_failed(error, _DOING) from None


class _Feed:
    """The bounded way from the producer to the engine's thread."""

    def __init__(self) -> None:
        self._batches: queue.Queue[Any] = queue.Queue(_IN_FLIGHT_BATCHES)
        self._cancelled = threading.Event()

    def put(self, batch: Any, job: Job[int]) -> None:
        """Wait for room. Raises EngineFailed when the insert has ended meanwhile."""
        while True:
            if job.done.is_set():
                _written(job)
                raise EngineFailed(ErrorCode.INTERNAL, "The insert ended early.", next="Repeat the same command.")
            try:
                self._batches.put(batch, timeout=0.1)
                return
            except queue.Full:
                continue

    def cancel(self, job: Job[int]) -> None:
        """Let the engine's thread end the insert; wait for it only so long as a signal's bound allows."""
        self._cancelled.set()
        deadline = time.monotonic() + _CANCEL_SECONDS
        while not job.done.is_set() and time.monotonic() < deadline:
            try:
                self._batches.put_nowait(None)
            except queue.Full:
                self._discard()
            job.done.wait(0.01)

    def insert(self, session: Any, statement: str, schema: Any) -> int:
        """Runs in the engine's thread until None comes."""
        import pyarrow as pa

        with session.send_insert(statement, "ArrowStream") as stream:
            appending = _Appending(stream)
            try:
                sink = io.BufferedWriter(appending, _APPENDED_BYTES)
                writer = pa.ipc.new_stream(pa.PythonFile(sink, "w"), schema, options=pa.ipc.IpcWriteOptions())
                while (batch := self._batches.get()) is not None and not self._cancelled.is_set():
                    writer.write_batch(batch)
                if self._cancelled.is_set():
                    return 0
                writer.close()
                sink.flush()
                return int(stream.finish().rows_written)
            finally:
                appending.ended = True

    def _discard(self) -> None:
        try:
            self._batches.get_nowait()
        except queue.Empty:
            return


class _Appending(io.RawIOBase):
    """A file whose every write goes into the engine's insert; an error of the engine comes out of it unchanged.

    Once ``ended`` it drops what comes: a cancelled insert's buffer writes what it still holds when it is finalised.
    """

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream
        self.ended = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if not self.ended:
            self._stream.append(bytes(data))
        return len(data)


def _written(job: Job[int]) -> int:
    try:
        return job.result()
    except RAISED as error:
        raise engine_failed(error, _DOING) from None


def _lost(written: int, rows: int) -> EngineFailed:
    return EngineFailed(
        ErrorCode.INTERNAL,
        f"The engine wrote {written} rows where {rows} were handed over.",
        safe="The live table was not touched; the candidate will not be published.",
        next="Repeat the same command.",
    )
