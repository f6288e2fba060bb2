"""A real cluster for these tests alone, emptied of markers before each; its owner, with a ledger in its Keeper."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from uuid import uuid4

import pytest
from scripts.cluster_servers.cluster import Cluster

from dpone.adapters.authority import admit, adopt, attest, exclusion, opening, provision, status
from dpone.adapters.authority.admit import Plan
from dpone.adapters.authority.asked import Answer, Asked
from dpone.adapters.authority.marker import DATABASE, Marker, read_markers
from dpone.adapters.authority.memory import read_platform, read_slot
from dpone.adapters.cluster.platform import ReplicatedPlatform
from dpone.adapters.cluster.session import Endpoint, ReplicaSession
from dpone.adapters.connections import Connection
from dpone.adapters.runtime.settings import Settings
from dpone.domain import events as e
from dpone.domain import slot as slots
from dpone.domain.events import By
from dpone.domain.identity import OperationKey, operation_id
from dpone.domain.names import candidate_name
from dpone.domain.platform import Platform
from dpone.domain.ports import StreamAppend
from dpone.domain.slot import TargetSlot
from dpone.domain.tables import Column, TableDefinition, TableIdentity, TargetRef
from dpone.ledger.store import EventLedger, open_ledger
from tests.servers.cluster import PASSWORDS, cluster

AT = "2026-01-02T03:04:05.678901Z"
BY = By(os_user="ada", host="desk", version="1.0.0")
DEFINITION = TableDefinition((Column("a", "Int64"), Column("b", "Nullable(String)")), "ReplicatedMergeTree", ("a",))


@dataclass(slots=True)
class Owner:
    """Who types the commands: against one cluster, with one ledger, for one database."""

    cluster: Cluster
    ledger_url: str
    database: str
    name: str = "replay_cluster"
    plans: list[Plan] = field(default_factory=list)
    answer: bool = True

    @property
    def connection(self) -> Connection:
        return Connection(
            "replay_target", "127.0.0.1", self.cluster.replicas[0].port, username="dpone", password=PASSWORDS.dpone
        )

    @property
    def asked(self) -> Asked:
        return Asked(self.connection, self.name, BY, lambda: AT)

    @property
    def settings(self) -> Settings:
        return Settings(Path("/nowhere"), self.ledger_url, self.ledger_url, BY, None, {})

    @property
    def keeper(self) -> str:
        return self.cluster.keeper.hosts

    def open(self, create: bool = False) -> EventLedger:
        return open_ledger(self.ledger_url, create=create)

    def provision(self, *databases: str) -> Answer:
        return provision.provision(self.asked, self.open, databases or (self.database,))

    def attest(self, keeper: str | None = None) -> Answer:
        return attest.attest(self.asked, self.open, keeper or self.keeper, {})

    def admit(self) -> Answer:
        return admit.admit(self.asked, self.open, self._confirm)

    def exclude(self, replica: str) -> Answer:
        return exclusion.exclude(self.asked, self.open, replica, "Ada", "its disk is gone")

    def revoke(self) -> Answer:
        return exclusion.revoke(self.asked, self.open, "Ada", "it is rebuilt")

    def adopt(self, table: str = "t") -> Answer:
        return adopt.adopt(self.asked, self.open, f"{self.database}.{table}", adopt.Review("Ada", "made by hand"))

    def status(self) -> dict[str, object]:
        return status.status(self.asked, self.open)

    def ready(self) -> Owner:
        """Everything up to an admitted inventory."""
        self.provision()
        self.attest()
        self.admit()
        return self

    def opened(self) -> opening.OpenedCluster:
        return opening.open_cluster(self.settings, self.connection, self.name, self.database)

    # ------------------------------------------------------------------------------------------- what is there now

    def markers(self) -> dict[str, tuple[Marker, ...]]:
        """What each replica says of this test's databases."""
        found = {}
        for replica in self.cluster.replicas:
            endpoint = Endpoint(replica.name, "127.0.0.1", replica.port)
            with ReplicaSession.open(self.connection, endpoint) as session:
                found[replica.name] = read_markers(session)
        return found

    def position(self) -> int:
        with self.open() as ledger:
            return ledger.position()

    @property
    def platform_id(self) -> str:
        return next(iter(self.markers().values()))[0].platform_id

    def platform(self) -> Platform:
        with self.open() as ledger:
            return read_platform(ledger, self.platform_id)

    def slot(self, table: str = "t") -> TargetSlot:
        with self.open() as ledger:
            return read_slot(ledger, self.ref(table)).slot

    def ref(self, table: str = "t") -> TargetRef:
        return TargetRef(self.platform_id, self.database, table)

    # ---------------------------------------------------------------------------------------------- what runs would do

    @property
    def target(self) -> ReplicatedPlatform:
        endpoints = [Endpoint(replica.name, "127.0.0.1", replica.port) for replica in self.cluster.replicas]
        return ReplicatedPlatform(self.connection, endpoints, self.name, self.platform_id)

    def tables(self, table: str = "t") -> dict[str, dict[str, TableIdentity]]:
        return {look.replica: dict(look.tables) for look in self.target.look(self.ref(table))}

    def candidate(self, rows: int, table: str = "t") -> tuple[str, str]:
        """A filled candidate on every replica: generation and name."""
        generation = str(uuid4())
        name = candidate_name(table, generation, 1, 1)
        self.target.create(self.database, name, DEFINITION)
        values = [(number, f"row {number}") for number in range(rows)]
        self.cluster.replicas[0].execute(f"INSERT INTO {self.database}.{name} VALUES", values)
        self.target.synchronise(self.database, name)
        return generation, name

    def publish(self, rows: int = 3, *, hold: bool = False, run: str = "monday") -> str:
        """A live generation, as an operation leaves it; with ``hold`` the slot stays claimed. Returns its id."""
        generation, name = self.candidate(rows)
        for replica in self.cluster.replicas:
            if "t" in self.tables()[replica.name]:
                replica.execute(f"RENAME TABLE {self.database}.t TO {self.database}.{name.rpartition('_c')[0]}_pred")
            replica.execute(f"RENAME TABLE {self.database}.{name} TO {self.database}.t")
        self.claim(run)
        identities = {replica: tables["t"] for replica, tables in self.tables().items()}
        published = e.GenerationPublished(
            at=AT,
            generation=generation,
            operation=self.operation(run),
            run_id=run,
            rows=rows,
            definition=DEFINITION,
            identities=identities,
            sealed={},
        )
        self.append(published, *([] if hold else [self.vacated(run, generation)]))
        return generation

    def operation(self, run: str = "monday") -> str:
        return str(operation_id(self.key(run)))

    def key(self, run: str = "monday") -> OperationKey:
        return OperationKey("night", run, "load", self.platform_id, self.database, "t")

    def claim(self, run: str = "monday") -> None:
        """An operation takes the slot."""
        claimed = e.SlotClaimed(
            at=AT, operation=self.operation(run), dag_id="night", run_id=run, process="load", displaced=None
        )
        known = self.slot().target is not None
        self.append(*([] if known else [e.SlotOpened(at=AT, target=self.ref())]), claimed)

    def vacated(self, run: str, generation: str) -> e.SlotVacated:
        return e.SlotVacated(at=AT, operation=self.operation(run), live=generation)

    def append(self, *events: e.Event) -> None:
        with self.open() as ledger:
            known = read_slot(ledger, self.ref())
            reduce(slots.evolve, events, known.slot)
            ledger.append([StreamAppend(known.stream, known.slot.version, events)])

    def _confirm(self, plan: Plan) -> bool:
        self.plans.append(plan)
        return self.answer


@pytest.fixture(scope="package")
def own_cluster() -> Iterator[Cluster]:
    with cluster() as made:
        yield made


@pytest.fixture
def owner(own_cluster: Cluster) -> Iterator[Owner]:
    """An owner with a new ledger's address and a database of its own; nothing is provisioned yet."""
    own_cluster.start()
    name = f"t_{uuid4().hex[:12]}"
    for replica in own_cluster.replicas:
        replica.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        replica.execute(f"CREATE DATABASE {name}")
    yield Owner(own_cluster, f"keeper://{own_cluster.keeper.hosts}/ledger_{name}", name)
    own_cluster.start()


@pytest.fixture
def other(owner: Owner) -> Owner:
    """Somebody else with another ledger, who wants the same database of the same cluster."""
    return Owner(owner.cluster, f"{owner.ledger_url}_other", owner.database)
