"""Two or more replicas of one shard as a target. Every method says what it sends and to whom.

A connection is opened for each of them and used by nobody else: none ever idles, none is used again after an error,
and a statement that may be sent only once goes out on one that has just been greeted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

from ...domain.errors import EngineFailed, ErrorCode
from ...domain.names import generation_of
from ...domain.ports import RecordBatch, Swap, SwapForm
from ...domain.tables import Column, Metrics, Observation, ReplicaLook, TableDefinition, TableIdentity, TargetRef
from .. import arrow_first
from ..ahead import Ahead
from ..clickhouse import observation_sql
from ..clickhouse.definitions import definition_refusals
from ..clickhouse.quoting import literal, table_name
from ..connections.connection import Connection
from . import agreement, dialect, inspection, looking, probing, rebuilding, reports, statements
from .abreast import Answers, abreast
from .bounds import Bounds
from .failures import observation_failed, of_the_cluster
from .session import Endpoint, ReplicaSession

_GLANCES_APART = 0.02

T = TypeVar("T")
Work = Callable[[ReplicaSession], T]


class ReplicatedPlatform:
    """The admitted replicas of one cluster, reached with one connection's credentials.

    ``queue_path`` is where the servers keep their queue of distributed statements (``distributed_ddl.path``).
    """

    def __init__(
        self,
        connection: Connection,
        endpoints: Sequence[Endpoint],
        cluster: str,
        platform_id: str,
        bounds: Bounds | None = None,
        queue_path: str = reports.QUEUE_PATH,
    ) -> None:
        if not endpoints:
            raise ValueError("a replicated platform has at least one replica")
        self._connection = connection
        self._endpoints = {endpoint.replica: endpoint for endpoint in sorted(endpoints, key=lambda e: e.replica)}
        self._cluster = cluster
        self._platform_id = platform_id
        self._bounds = bounds or Bounds()
        self._queue_path = queue_path
        self._ahead: tuple[str, Ahead[str | None]] | None = None

    @property
    def replicas(self) -> tuple[str, ...]:
        """Sorted by name."""
        return tuple(self._endpoints)

    def prepare(self, database: str) -> None:
        """Begin to probe the swap there, which the servers' queue takes a tenth of a second for.

        Where nobody asks for the answer, the probe still ends within the bound of a statement of the cluster.
        """
        arrow_first.load()  # the source and filling import it, and would do so beside the probe
        with suppress(RuntimeError):  # no thread is to be had: it is probed when the answer is asked for
            self._ahead = (database, Ahead(partial(self._swap_refusal, database)))

    def acquire(self) -> None:
        """Nothing is held: the ledger's slot keeps others out."""

    def release(self) -> None:
        """Nothing is held."""

    def refusals(self, target: TargetRef, definition: TableDefinition) -> tuple[str, ...]:
        """Inspects every replica, and probes the swap once, unless :meth:`prepare` has begun to.

        Raises EngineFailed for what may pass by itself.
        """
        refused = list(definition_refusals(definition, target.table, statements.ENGINES))
        if not definition.order_by:
            refused.append("The table has no sorting key (order_by); replicas cannot be told to hold the same order.")
        seen = self._on_all(lambda session: inspection.inspect(session, target, self._cluster), self._bounds.look)
        refused += inspection.sentences(target, self._cluster, tuple(self._endpoints.values()), seen.given)
        refused = refused or inspection.absent_types(definition.columns, {one.dialect for one in seen.given.values()})
        if refused:
            return tuple(refused)
        away = inspection.not_ready(seen.all())
        if away is not None:
            raise away
        answer = self._swap_refusal_of(target.database)
        return (answer,) if answer is not None else ()

    def look(self, target: TargetRef) -> tuple[ReplicaLook, ...]:
        """All replicas at once. One that does not answer within the bound is not reachable."""
        seen = self._on_all(
            lambda session: looking.read_tables(session, target.database, target.table), self._bounds.look
        )
        return tuple(
            ReplicaLook(replica, tables=seen.given[replica])
            if replica in seen.given
            else ReplicaLook(replica, reachable=False)
            for replica in self._endpoints
        )

    def exchanges(self, database: str) -> bool:
        """Where every replica has the database as an Atomic one, on a server that can. Raises EngineFailed."""

        def can(session: ReplicaSession) -> bool:
            return dialect.can_exchange(session.dialect, _database_engine(session, database))

        return all(self._on_all(can, self._bounds.look).all().values())

    def create(self, database: str, name: str, definition: TableDefinition) -> None:
        """One statement of the cluster; then every replica is asked whether it has the table at its own Keeper path.

        Raises EngineFailed.
        """
        generation = generation_of(name)
        if generation is None:
            raise ValueError("a table of a cluster is created under a name that carries its generation")
        path = statements.path_of(self._platform_id, generation)
        macro = statements.REPLICA_MACRO
        self._everywhere(partial(statements.create_table, database, name, definition, path, macro))
        seen = self._on_all(lambda session: looking.keeper_path(session, database, name), self._bounds.look).all()
        for replica, found in seen.items():
            if found != (path, replica):
                raise _not_as_created(replica)

    def fill(self, database: str, name: str, columns: Sequence[Column], batches: Iterable[RecordBatch]) -> None:
        """Through the first replica. No block is sent twice; what fails leaves a candidate that is given up."""
        from . import filling

        with self._session(self.replicas[0], self._bounds.insert) as session:
            filling.fill(session, database, name, columns, batches)

    def synchronise(self, database: str, name: str) -> None:
        """Until every replica counts and hashes the same rows. Raises EngineFailed."""
        self._agree(database, dict.fromkeys(self._endpoints, name))

    def row_count(self, database: str, name: str) -> Mapping[str, int]:
        """Each replica's own count. Raises EngineFailed."""

        def count(session: ReplicaSession) -> int:
            statement = f"SELECT count() AS counted FROM {table_name(database, name)}"
            return int(session.query(statement, dialect.settings_of_a_scan(session.dialect))[0]["counted"])

        return self._on_all(count, self._bounds.scan).all()

    def observe(self, database: str, name: str, columns: Sequence[Column], metrics: Metrics) -> Observation:
        """On the first replica. Raises EngineFailed."""
        with self._session(self.replicas[0], self._bounds.scan) as session:
            pinned = dialect.settings_of_a_scan(session.dialect)

            def query(statement: str) -> observation_sql.Rows:
                return session.query(statement, pinned)

            with observation_failed(session.endpoint.replica):
                return observation_sql.observe(query, database, name, columns, metrics, session.dialect)

    def swap(self, swap: Swap) -> None:
        """Sent once: through the first replica for all, or to each that is named. Raises EngineFailed.

        When several are named, all of them are sent to; the first failure is raised afterwards.
        """
        names = (swap.candidate, swap.arm, swap.table, swap.predecessor)
        if not swap.replicas:
            path = statements.path_of(self._platform_id, generation_of(swap.candidate) or "")
            self._until_seen(
                partial(dialect.swap_statement, swap.form, swap.database, names),
                lambda on: looking.has_swapped(on, swap.database, swap.table, path, (swap.candidate, swap.arm)),
            )
            return
        statement = dialect.swap_statement(swap.form, swap.database, names, None)

        def send(session: ReplicaSession) -> None:
            looking.check_replicates(session, swap.database, swap.candidate)
            session.execute(statement)

        self._on_all(send, self._bounds.statement, swap.replicas).all()

    def reported(self, candidate: str) -> Mapping[str, str]:
        """From the first replica that answers. Nothing when none does."""
        endpoints = tuple(self._endpoints.values())
        for replica in self._endpoints:
            try:
                with self._session(replica, self._bounds.look) as session:
                    return reports.reported(session, endpoints, candidate, self._queue_path)
            except Exception:  # noqa: S112 - a report is a courtesy: what breaks it must not replace what it is about
                continue
        return {}

    def rebuild(
        self, replica: str, database: str, name: str, definition: TableDefinition, identity: TableIdentity
    ) -> None:
        """From another replica that holds the identity. Raises EngineFailed."""
        others = tuple(other for other in self._endpoints if other != replica)

        def holds(session: ReplicaSession) -> tuple[str | None, str]:
            return _name_of(session, database, identity), _database_engine(session, database)

        seen = self._on_all(holds, self._bounds.look, others)
        source = next(((other, held, engine) for other, (held, engine) in sorted(seen.given.items()) if held), None)
        if source is None:
            seen.all()  # one that does not answer may have it
            raise rebuilding.nobody_has_it(database)
        other, held, engine = source
        with self._session(replica, self._bounds.statement) as session:
            rebuilding.recreate(session, database, engine, name, definition, identity)
        self._agree(database, {replica: name, other: held})

    def rename(self, replica: str, database: str, old: str, new: str) -> None:
        """On one replica, directly. Raises EngineFailed, also when ``new`` exists, or while it has no Keeper."""
        with self._session(replica, self._bounds.statement) as session:
            looking.check_replicates(session, database, old)
            session.execute(statements.rename_table(database, old, new))

    def drop(self, replica: str, database: str, name: str, identity: TableIdentity) -> bool:
        """On one replica, directly, and only if the name bears that Keeper path. Raises EngineFailed."""
        if not looking.has_keeper_path(identity):
            return False
        with self._session(replica, self._bounds.statement) as session:
            found = looking.keeper_path(session, database, name)
            if found is None or found[0] != identity.id:
                return False
            session.execute(dialect.drop_table(session.dialect, database, name))
            return True

    # ------------------------------------------------------------------------------------------------ inside

    @contextmanager
    def _session(self, replica: str, seconds: float) -> Iterator[ReplicaSession]:
        endpoint, connect = self._endpoints[replica], min(self._bounds.connect, seconds)
        with ReplicaSession.open(self._connection, endpoint, connect_seconds=connect, reply_seconds=seconds) as session:
            yield session

    def _on_all(self, work: Work[T], seconds: float, replicas: Iterable[str] | None = None) -> Answers[T]:
        def on(replica: str) -> T:
            with self._session(replica, seconds) as session:
                return work(session)

        asked = self._endpoints if replicas is None else replicas
        return abreast({replica: partial(on, replica) for replica in asked})

    def _until_seen(self, statement: Callable[[str | None], str], seen: Work[bool]) -> None:
        """Sent once, as by :meth:`_everywhere`; returns as soon as its work is seen on every replica.

        An old server looks at the queue ten times a second: its reply comes that much later than what it is about. A
        replica that does not answer at once is not asked again; then the reply is waited for.
        """
        try:
            sent = Ahead(partial(self._everywhere, statement))
        except RuntimeError:  # no thread is to be had
            self._everywhere(statement)
            return
        while not sent.ended(_GLANCES_APART):
            answers = self._on_all(seen, self._bounds.glance)
            if answers.failed:
                break
            if all(answers.given.values()):
                return
        sent.result()

    def _everywhere(self, statement: Callable[[str | None], str]) -> None:
        """Sent once: by one statement of the cluster (``statement`` takes its name) through the first replica.

        Where the servers' definition of the cluster is not the admitted replicas, as after one was excluded, the queue
        would wait for others or forget some: there each admitted replica is sent the statement directly.
        """
        with self._session(self.replicas[0], self._bounds.everywhere + self._bounds.connect) as session:
            if self._is_the_cluster(session):
                as_text = session.settings_travel_as_text
                settings = dialect.settings_of_a_cluster_statement(self._bounds.everywhere, as_text=as_text)
                with of_the_cluster():
                    session.execute(statement(self._cluster), settings)
                return
        failed = self._directly(statement(None)).failed.values()
        for error in sorted(failed, key=lambda one: one.engine_code == probing.MISSED):
            raise error  # that a table is missing says less than anything else

    def _is_the_cluster(self, session: ReplicaSession) -> bool:
        members = inspection.read_members(session, self._cluster)
        return list(members.values()) == [{(one.host, one.port) for one in self._endpoints.values()}]

    def _directly(self, statement: str, replicas: Iterable[str] | None = None) -> Answers[None]:
        return self._on_all(lambda session: session.execute(statement), self._bounds.statement, replicas)

    def _swap_refusal_of(self, database: str) -> str | None:
        """Probed once, also where :meth:`prepare` has begun it."""
        ahead, self._ahead = self._ahead, None
        return ahead[1].result() if ahead is not None and ahead[0] == database else self._swap_refusal(database)

    def _swap_refusal(self, database: str) -> str | None:
        form = SwapForm.EXCHANGE if self.exchanges(database) else SwapForm.RENAME
        return probing.answer(form, self._cluster, self._probed(form, database))

    def _probed(self, form: SwapForm, database: str) -> EngineFailed | None:
        try:
            self._everywhere(partial(dialect.swap_statement, form, database, statements.NO_SUCH_TABLES))
        except EngineFailed as error:
            return error
        return None

    def _agree(self, database: str, names: Mapping[str, str]) -> None:
        def sync(replica: str, left: int) -> None:
            with self._session(replica, left + self._bounds.connect) as session:
                session.execute(
                    f"SYSTEM SYNC REPLICA {table_name(database, names[replica])}", {"receive_timeout": left}
                )

        def count(replica: str) -> agreement.Held:
            with self._session(replica, self._bounds.scan) as session:
                return agreement.held(session, database, names[replica])

        agreement.wait_for_agreement(
            {replica: partial(sync, replica) for replica in names},
            {replica: partial(count, replica) for replica in names},
            self._bounds.synchronise,
        )


def _database_engine(session: ReplicaSession, database: str) -> str:
    rows = session.query(f"SELECT engine FROM system.databases WHERE name = {literal(database)}")
    return str(rows[0]["engine"]) if rows else ""


def _name_of(session: ReplicaSession, database: str, identity: TableIdentity) -> str | None:
    rows = session.query(
        "SELECT table FROM system.replicas "
        f"WHERE database = {literal(database)} AND zookeeper_path = {literal(identity.id)}"
    )
    return str(rows[0]["table"]) if rows else None


def _not_as_created(replica: str) -> EngineFailed:
    return EngineFailed(
        ErrorCode.PUBLICATION_UNKNOWN,
        f"The candidate was created and replica {replica} does not have it at the generation's Keeper path.",
        safe="The live table was not touched.",
        next="dpone platform status",
    )
