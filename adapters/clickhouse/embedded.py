"""The embedded engine as a target: real ClickHouse in this process, an inventory of one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ...domain.errors import DponeError, EngineBusy, EngineFailed, ErrorCode
from ...domain.limits import DISTINCT_VALUES_MAX, ENGINE_WAIT_SECONDS
from ...domain.ports import RecordBatch, Swap, SwapForm
from ...domain.tables import (
    Column,
    Metrics,
    Observation,
    ReplicaLook,
    TableDefinition,
    TableIdentity,
    TargetRef,
)
from .. import arrow_first
from . import definitions, engine_errors, engine_session, filling, folder, identity, inspection, observation_sql
from .engine_thread import EngineThread
from .quoting import literal, table_name

REPLICA = "embedded"
_POLL_SECONDS = 0.05
_OPENINGS_MAX = 5
_HAS_ANOTHER = "already initialized with path"  # its code 36 stands for damaged files as well
_CONNECTION_SETTINGS = "SET max_query_size = 16777216, max_ast_elements = 1000000, max_expanded_ast_elements = 1000000"

T = TypeVar("T")

_open_folder: Path | None = None  # the engine itself is one per process


class EmbeddedPlatform:
    """Real ClickHouse on ``directory``, held by one process at a time.

    Every call into the engine runs in a thread of its own: a signal handler that raises ends the caller's wait at once
    while the statement goes on, and later calls fail fast until it has ended. An unacquired platform acquires itself.
    """

    def __init__(self, directory: Path, wait_seconds: float = ENGINE_WAIT_SECONDS) -> None:
        self._folder = directory.absolute()
        self._wait_seconds = wait_seconds
        self._thread = EngineThread()
        self._session: Any = None
        self._refused = 0

    @property
    def replicas(self) -> tuple[str, ...]:
        """Always one."""
        return (REPLICA,)

    def prepare(self, database: str) -> None:
        """Begin importing the engine in its thread. Call once no relative path is going to be used any more.

        It imports Arrow too; so that is imported here first.
        """
        arrow_first.load()
        self._thread.ahead(engine_session.load)

    def acquire(self) -> None:
        """Take the folder's lock, waiting for its holder within the bound. Raises EngineBusy, EngineFailed."""
        if self._session is not None:
            return
        folder.prepare(self._folder)
        if not (self._folder / "metadata").exists() and folder.is_full(self._folder):
            raise folder.storage_full()
        if _open_folder is not None:
            raise _busy(folder.Holder(), "this process itself, through another platform object")
        deadline = time.monotonic() + self._wait_seconds
        while (holder := self._open()) is not None:
            if time.monotonic() >= deadline:
                raise _busy(holder, str(holder))
            time.sleep(_POLL_SECONDS)

    def release(self) -> None:
        """Close the engine, so that another process may use the folder. Leaves an interrupted statement alone."""
        if self._session is None or self._thread.busy:
            return
        self._thread.call(self._close)

    def refusals(self, target: TargetRef, definition: TableDefinition) -> tuple[str, ...]:
        """Reads system tables only; changes nothing."""
        refused = definitions.definition_refusals(definition, target.table)
        if refused:
            return refused  # what is no type has no time zone to ask the engine about
        refused = self._asking(
            "inspecting the target",
            lambda query: (
                inspection.zone_refusals(query, definition.columns) + inspection.target_refusals(query, target)
            ),
        )
        if refused:
            return refused
        exchange = self._exchange_refusal(target.database)
        return (exchange,) if exchange else ()

    def look(self, target: TargetRef) -> tuple[ReplicaLook, ...]:
        """The target's and this product's tables for it, by identity."""
        found = self._asking(
            "looking at the target",
            lambda query: identity.read_identities(query, target.database, identity.named_like(target.table)),
        )
        return (ReplicaLook(REPLICA, tables=identity.matching(target.table, found.items())),)

    def create(self, database: str, name: str, definition: TableDefinition) -> None:
        """Create the (Atomic) database if it is missing and the table, which must not exist. Raises EngineFailed."""
        if refused := definitions.definition_refusals(definition, name):
            raise EngineFailed(
                ErrorCode.EVIDENCE_UNSUPPORTED,
                " ".join(refused),
                errors=refused,
                safe="Nothing was created.",
                next="Correct the manifest's sink, then repeat the same command.",
            )
        self.acquire()
        if folder.is_full(self._folder):
            raise folder.storage_full()
        self._run("creating the database", definitions.create_database(database))
        self._run("creating a table", definitions.create_table(database, name, definition))
        self._check_written(database, name)

    def fill(self, database: str, name: str, columns: Sequence[Column], batches: Iterable[RecordBatch]) -> None:
        """Insert while the caller's iterator produces. All parts are synced when this returns. Raises EngineFailed."""
        self.acquire()
        filling.fill(self._thread, self._session, database, name, columns, batches)

    def observe(self, database: str, name: str, columns: Sequence[Column], metrics: Metrics) -> Observation:
        """Count in this process. Raises EngineFailed (EVIDENCE_UNSUPPORTED: too many distinct values)."""
        return self._asking(
            "counting rows", lambda query: observation_sql.observe(query, database, name, columns, metrics)
        )

    def row_count(self, database: str, name: str) -> Mapping[str, int]:
        """Rows by replica."""
        return {REPLICA: self.observe(database, name, (), Metrics()).row_count}

    def exchanges(self, database: str) -> bool:
        """Always: its databases are Atomic, and :meth:`refusals` has probed the file system."""
        return True

    def synchronise(self, database: str, name: str) -> None:
        """Nothing to wait for: there is one replica."""

    def swap(self, swap: Swap) -> None:
        """Send the statement once. Raises EngineFailed; whether it took effect is then for ``look`` to say.

        A first publication is one plain rename: no queue can run it late, so it needs no arm.
        """
        candidate, table = table_name(swap.database, swap.candidate), table_name(swap.database, swap.table)
        if swap.form is SwapForm.EXCHANGE:
            self._run("publishing", f"EXCHANGE TABLES {candidate} AND {table}")
        elif swap.form is SwapForm.FIRST:
            self._run("publishing", f"RENAME TABLE {candidate} TO {table}")
        else:
            raise ValueError("the embedded engine exchanges tables")

    def reported(self, candidate: str) -> Mapping[str, str]:
        """Nothing: there is no queue of statements."""
        return {}

    def rebuild(
        self, replica: str, database: str, name: str, definition: TableDefinition, identity: TableIdentity
    ) -> None:
        """Never asked for: there is no other replica to rebuild from."""
        raise ValueError("the embedded engine has one replica")

    def rename(self, replica: str, database: str, old: str, new: str) -> None:
        """Rename one table. Fails when ``new`` exists."""
        _check_replica(replica)
        self._run("renaming a table", f"RENAME TABLE {table_name(database, old)} TO {table_name(database, new)}")

    def drop(self, replica: str, database: str, name: str, identity_: TableIdentity) -> bool:
        """Drop the table at once if it bears that id. Raises EngineFailed, for example above a size limit."""
        _check_replica(replica)
        rows = self._asking("looking for a table to drop", lambda query: query(_id_statement(database, name)))
        if [row["id"] for row in rows] != [identity_.id]:
            return False
        self._run("dropping a table", f"DROP TABLE {table_name(database, name)} SYNC")
        return True

    def export(self, database: str, name: str, selected: str, file: Path) -> None:
        """Write these select expressions over a table's rows to an Arrow IPC file, which must not exist.

        Memory stays flat. Raises EngineFailed.
        """
        self._run(
            "reading a table",
            f"SELECT {selected} FROM {table_name(database, name)} INTO OUTFILE {literal(str(file))} FORMAT Arrow "
            "SETTINGS output_format_arrow_string_as_string = 0",
        )

    # ------------------------------------------------------------------------------------------------ inside

    def _open(self) -> folder.Holder | None:
        """Open the engine, or say who holds its folder."""
        if holder := folder.seen_holder(self._folder):
            return holder
        try:
            self._thread.call(self._open_here)
        except DponeError:
            raise
        except ImportError:
            raise _engine_missing() from None
        except engine_errors.RAISED as error:
            if holder := folder.locked_by(self._folder):
                return holder
            if folder.is_full(self._folder):
                raise folder.storage_full() from None
            if _HAS_ANOTHER in str(error):
                raise _another_engine() from None
            self._refused += 1
            if self._refused < _OPENINGS_MAX:  # a holder may have been gone again before it could be seen
                return folder.Holder()
            failed = engine_errors.engine_failed(error, "opening the engine's folder")
            raise (_damaged(failed.engine_code) if failed.code is ErrorCode.INTERNAL else failed) from None
        return None

    def _open_here(self) -> None:
        global _open_folder
        session = engine_session.open_session(self._folder)
        self._session, _open_folder, self._refused = session, self._folder, 0
        session.query(_CONNECTION_SETTINGS)

    def _close(self) -> None:
        global _open_folder
        session, self._session = self._session, None
        try:
            session.close()
        finally:
            _open_folder = None

    def _check_written(self, database: str, name: str) -> None:
        """A disk that filled up at this very moment: take the table back while the engine can still be asked to."""
        rows = self._asking("checking a new table", lambda query: query(_metadata_statement(database, name)))
        if len(rows) == 1 and folder.is_written(self._folder, rows[0]["path"]):
            return
        self._run("taking back a table", f"DROP TABLE IF EXISTS {table_name(database, name)} SYNC")
        raise folder.storage_full()

    def _asking(self, doing: str, work: Callable[[observation_sql.Query], T]) -> T:
        self.acquire()
        session = self._session
        try:
            return self._thread.call(lambda: work(lambda statement: engine_session.ask(session, statement)))
        except DponeError:
            raise
        except observation_sql.ReplyMalformed as error:
            raise EngineFailed(ErrorCode.EVIDENCE_INCOMPLETE, str(error), next="Repeat the same command.") from None
        except engine_errors.RAISED as error:
            if engine_errors.engine_code(error) == observation_sql.SET_SIZE_LIMIT_EXCEEDED:
                raise _too_many_values() from None
            raise engine_errors.engine_failed(error, doing) from None

    def _run(self, doing: str, statement: str) -> None:
        self._asking(doing, lambda query: query(statement))

    def _exchange_refusal(self, database: str) -> str | None:
        """Told apart: the engine or the file system cannot exchange; or whether it can could not be found out."""
        try:
            if not folder.can_exchange(self._folder):
                return "Tables cannot be exchanged here: the file system of the engine's folder does not support it."
            first, second = (table_name(database, f"__dpone_no_such_table_{side}") for side in "ab")
            self._run("probing EXCHANGE", f"EXCHANGE TABLES {first} AND {second}")
        except OSError:
            return "Whether tables can be exchanged here could not be found out: the trial on the file system failed."
        except EngineFailed as error:
            return _exchange_answer(error)
        return None


def _exchange_answer(error: EngineFailed) -> str | None:
    """What the engine says to an exchange of tables that do not exist: only an engine that can exchange misses them."""
    match error.engine_code:
        case engine_errors.UNKNOWN_TABLE | engine_errors.UNKNOWN_DATABASE:
            return None
        case engine_errors.NOT_IMPLEMENTED | engine_errors.UNSUPPORTED_METHOD | engine_errors.SYNTAX_ERROR:
            return "Tables cannot be exchanged here: the engine does not support it."
        case _:
            return f"Whether tables can be exchanged here could not be found out: {error.what}"


def _id_statement(database: str, name: str) -> str:
    return (
        "SELECT toString(uuid) AS id FROM system.tables "
        f"WHERE database = {literal(database)} AND name = {literal(name)}"
    )


def _metadata_statement(database: str, name: str) -> str:
    return (
        "SELECT metadata_path AS path FROM system.tables "
        f"WHERE database = {literal(database)} AND name = {literal(name)}"
    )


def _check_replica(replica: str) -> None:
    if replica != REPLICA:
        raise ValueError(f"the embedded engine has no replica {replica!r}")


def _busy(holder: folder.Holder, who: str) -> EngineBusy:
    known = {"holder_pid": holder.pid} if holder.pid else {}
    return EngineBusy(
        ErrorCode.ENGINE_BUSY,
        f"The embedded engine's folder is in use by {who}.",
        next="Wait for it, or end it if it hangs; then repeat the same command.",
        known=known,
    )


def _damaged(code: int | None) -> EngineFailed:
    return EngineFailed(
        ErrorCode.EVIDENCE_INVALID,
        f"The embedded engine's folder cannot be opened: its files are damaged or incomplete (engine code {code}).",
        engine_code=code,
        safe="Nothing was read or changed, and the ledger is as it was.",
        next="Put a copy of embedded/ under DPONE_HOME back that was made with its links kept (cp -a).",
    )


def _another_engine() -> EngineBusy:
    return EngineBusy(
        ErrorCode.ENGINE_BUSY,
        "This process has opened the embedded engine on another folder for something else, and has only one engine.",
        safe="Nothing was read or changed.",
        next="Close the program's own chdb session first, or call dpone in a process of its own.",
    )


def _engine_missing() -> EngineFailed:
    return EngineFailed(
        ErrorCode.EVIDENCE_UNSUPPORTED,
        "The embedded engine is not installed.",
        next="pip install 'dpone-replay[embedded]'",
    )


def _too_many_values() -> EngineFailed:
    return EngineFailed(
        ErrorCode.EVIDENCE_UNSUPPORTED,
        f"A column has more than {DISTINCT_VALUES_MAX:,} distinct values, more than an exact count may hold in memory.",
        engine_code=observation_sql.SET_SIZE_LIMIT_EXCEEDED,
        safe="Counting changes nothing.",
        next="Take the column out of distinct_counts, then repeat the same command.",
    )
