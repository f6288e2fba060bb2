"""One operation's life as example events, for one replica or several: what histories in these tests are built from.

``UNTIL[state]`` is the shortest legal history that ends in ``state``. Every factory takes the fields that a test cares
about and fills in the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpone.domain import events as e
from dpone.domain.capsule import (
    FORMAT_V1,
    FORMAT_V2,
    CapsuleCore,
    Policy,
    Producer,
    SchemaDigests,
    TargetPlan,
    digest,
)
from dpone.domain.configuration import (
    AcceptanceMode,
    AcceptanceSpec,
    GateSpec,
    GateType,
    Process,
    QualitySpec,
    SinkSpec,
    SourceSpec,
    SourceType,
    default_options,
    semantic,
    semantic_digest,
)
from dpone.domain.identity import OperationKey, operation_id
from dpone.domain.names import candidate_name, predecessor_name
from dpone.domain.operation import State
from dpone.domain.quality import GateResult
from dpone.domain.steps import Request
from dpone.domain.tables import Column, Metrics, Observation, TableDefinition, TableIdentity

AT = "2026-01-02T03:04:05.678901Z"
GENERATION = "11111111-1111-4111-8111-111111111111"
OTHER_GENERATION = "22222222-2222-4222-8222-222222222222"
GUARD = "33333333-3333-4333-8333-333333333333"
RECEIPT = "44444444-4444-4444-8444-444444444444"
REPLICAS = ("embedded",)
COLUMNS = (Column("id", "UInt64"), Column("name", "Nullable(String)"))
DEFINITION = TableDefinition(COLUMNS, order_by=("id",))
KEY = OperationKey("night", "monday", "load", "platform-1", "sales", "orders")
NEXT_RUN = OperationKey("night", "tuesday", "load", "platform-1", "sales", "orders")
OTHER_DAG = OperationKey("day", "monday", "load", "platform-1", "sales", "orders")
OPERATION = str(operation_id(KEY))
OBSERVATION = Observation(3, {"name": 1}, {"id": 3})
BY = e.By(os_user="ada", host="worker-1", version="1.0.0")


def process(
    *,
    durable: bool = True,
    observes: bool = True,
    warn_only: bool = False,
    path: str = "orders.csv",
    gates: tuple[GateSpec, ...] = (GateSpec("rows", GateType.MIN_ROWS, parameters={"rows": 1}),),
) -> Process:
    """A configuration; ``observes`` decides between a version 2 and a version 1 capsule."""
    mode = AcceptanceMode.WARN_ONLY if warn_only else AcceptanceMode.REQUIRED
    acceptance = AcceptanceSpec(enabled=observes, mode=mode, null_counts=("name",), distinct_counts=("id",))
    return Process(
        name="load",
        source=SourceSpec(SourceType.CSV, path=path, options=default_options(SourceType.CSV)),
        sink=SinkSpec("embedded", "sales", "orders", columns=COLUMNS, durable=durable, order_by=("id",)),
        quality=QualitySpec(gates, acceptance if observes else AcceptanceSpec()),
    )


PROCESS = process()


def request(key: OperationKey = KEY, configured: Process = PROCESS) -> Request:
    """What a command asks for."""
    form = semantic(configured)
    return Request(key, form, semantic_digest(form))


def identities(label: str = "new", replicas: tuple[str, ...] = REPLICAS) -> dict[str, TableIdentity]:
    """A table's identity on every replica."""
    return {replica: TableIdentity(f"{label}@{replica}", "sha256:" + "ab" * 32) for replica in replicas}


def admitted(
    key: OperationKey = KEY, configured: Process = PROCESS, replicas: tuple[str, ...] = REPLICAS
) -> e.OperationAdmitted:
    asked = request(key, configured)
    return e.OperationAdmitted(
        at=AT,
        key=key,
        configuration=asked.configuration,
        configuration_digest=asked.configuration_digest,
        inventory=replicas,
    )


def started(attempt: int = 1) -> e.AttemptStarted:
    return e.AttemptStarted(
        at=AT,
        attempt=attempt,
        by=BY,
        manifest_sha256="ab" * 32,
        revision="r1",
        task_id="t",
        map_index=2,
        try_number=3,
        task_instance="019d-a-task-instance",
    )


def opened(attempt: int = 1, generation: str = GENERATION) -> e.StagingOpened:
    return e.StagingOpened(
        at=AT,
        generation=generation,
        attempt=attempt,
        candidate=candidate_name("orders", generation, 1, attempt),
        definition=DEFINITION,
        source_schema="sha256:" + "cd" * 32,
    )


def source_observed(generation: str = GENERATION, rows: int = 3) -> e.SourceObserved:
    seen = Observation(rows, {"name": 1}, {"id": rows})
    return e.SourceObserved(at=AT, generation=generation, observation=seen, fingerprint={"name": "x.csv", "bytes": 9})


def candidate_staged(
    generation: str = GENERATION, attempt: int = 1, replicas: tuple[str, ...] = REPLICAS
) -> e.CandidateStaged:
    return e.CandidateStaged(
        at=AT,
        generation=generation,
        candidate=candidate_name("orders", generation, 1, attempt),
        rows=dict.fromkeys(replicas, 3),
        identities=identities(replicas=replicas),
    )


def staging_abandoned(generation: str = GENERATION) -> e.StagingAbandoned:
    return e.StagingAbandoned(at=AT, generation=generation, reason="its attempt did not finish")


def staged_observed(generation: str = GENERATION) -> e.StagedObserved:
    return e.StagedObserved(
        at=AT, generation=generation, observation=OBSERVATION, replica="embedded", milliseconds=5, rehearsed=True
    )


GATE = GateResult("rows", "min_rows", 1, "error", {"rows": 1}, {"staged": 3}, True)


def gates_evaluated(generation: str = GENERATION, passed: bool = True) -> e.GatesEvaluated:
    result = GateResult("rows", "min_rows", 1, "error", {"rows": 1}, {"staged": 3}, passed)
    return e.GatesEvaluated(at=AT, generation=generation, gates=(result,), passed=passed)


def core(
    *, observes: bool = True, generation: str = GENERATION, replicas: tuple[str, ...] = REPLICAS, **changed: Any
) -> CapsuleCore:
    """A capsule's core, version 2 when a target observation is owed."""
    metrics = Metrics(("name",), ("id",))
    plan = TargetPlan(columns=COLUMNS, metrics=metrics, acceptance_mode="required", replicas=replicas)
    policy = Policy(
        durable=True,
        acceptance_enabled=observes,
        acceptance_mode="required",
        capture_source=True,
        capture_staged=True,
        capture_target=True,
        gates=("rows:min_rows:error",),
    )
    fields: dict[str, Any] = {
        "format": FORMAT_V2 if observes else FORMAT_V1,
        "producer": Producer(name="dpone-replay", version="1.0.0", format_version=1),
        "operation": OPERATION,
        "key": KEY,
        "run_id": KEY.run_id,
        "load_id": generation,
        "generation": generation,
        "fence": 1,
        "inventory": replicas,
        "policy": policy,
        "policy_digest": digest(policy),
        "admission_digest": "sha256:" + "01" * 32,
        "plan_digest": "sha256:" + "02" * 32,
        "schemas": SchemaDigests(source="sha256:" + "03" * 32, payload="sha256:" + "04" * 32, target="sha256:05"),
        "gates": (GATE,),
        "gates_passed": True,
        "source": OBSERVATION if observes else None,
        "staged": OBSERVATION if observes else None,
        "target_plan": plan if observes else None,
    }
    return CapsuleCore(**{**fields, **changed})


def capsule_written(
    *, observes: bool = True, generation: str = GENERATION, replicas: tuple[str, ...] = REPLICAS
) -> e.CapsuleWritten:
    sealed = core(observes=observes, generation=generation, replicas=replicas)
    return e.CapsuleWritten(
        at=AT,
        generation=generation,
        core=sealed,
        core_digest=digest(sealed),
        envelope_bytes_max=9000,
        reply_bytes_max=400,
    )


def dispatched(
    attempt: int = 1,
    epoch: int = 1,
    replicas: tuple[str, ...] = REPLICAS,
    predecessor: Mapping[str, TableIdentity] | None = None,
    generation: str = GENERATION,
) -> e.PublicationDispatched:
    return e.PublicationDispatched(
        at=AT,
        generation=generation,
        epoch=epoch,
        attempt=attempt,
        candidate=candidate_name("orders", generation, epoch, attempt),
        replicas=replicas,
        exchange=True,
        predecessor=identities("old", replicas) if predecessor is None else predecessor,
    )


def fenced(attempt: int = 1, epoch: int = 2, replicas: tuple[str, ...] = REPLICAS) -> e.PublicationFenced:
    return e.PublicationFenced(
        at=AT,
        generation=GENERATION,
        epoch=epoch,
        attempt=attempt,
        candidate=candidate_name("orders", GENERATION, epoch, attempt),
        replicas=replicas,
    )


def proven(attempt: int = 1, replicas: tuple[str, ...] = REPLICAS, generation: str = GENERATION) -> e.CommitProven:
    return e.CommitProven(
        at=AT,
        generation=generation,
        attempt=attempt,
        identities=identities(replicas=replicas),
        sealed=dict.fromkeys(replicas, predecessor_name("orders", generation)),
    )


def reduced(*excluded: str, attempt: int = 1) -> e.InventoryReduced:
    return e.InventoryReduced(at=AT, attempt=attempt, excluded=excluded)


def pending(attempt: int = 1, guard: str = GUARD) -> e.TargetPending:
    return e.TargetPending(at=AT, generation=GENERATION, attempt=attempt, guard=guard)


def target_observed() -> e.TargetObserved:
    return e.TargetObserved(
        at=AT, generation=GENERATION, observation=OBSERVATION, replica="embedded", milliseconds=5, differences=()
    )


def waived() -> e.TargetObservationWaived:
    return e.TargetObservationWaived(at=AT, generation=GENERATION, reason="it took too long")


def observation_abandoned(guard: str = GUARD) -> e.ObservationAbandoned:
    return e.ObservationAbandoned(at=AT, generation=GENERATION, guard=guard, reason="it took too long", review=None)


def receipt(attempt: int = 1, *, observes: bool = True) -> e.ReceiptAccepted:
    return e.ReceiptAccepted(
        at=AT,
        receipt=RECEIPT,
        attempt=attempt,
        generation=GENERATION,
        core_digest=digest(core(observes=observes)),
        identities=identities(),
    )


def released(attempt: int = 1, guard: str = GUARD, operation: str = OPERATION) -> e.ReaderGuardReleased:
    return e.ReaderGuardReleased(at=AT, guard=guard, operation=operation, attempt=attempt)


def completed(attempt: int = 1, receipt: str | None = RECEIPT) -> e.OperationCompleted:
    return e.OperationCompleted(at=AT, attempt=attempt, generation=GENERATION, receipt=receipt)


def failed(attempt: int = 1) -> e.OperationFailed:
    return e.OperationFailed(
        at=AT, attempt=attempt, code="DPONE_REPLAY_QUALITY_EVIDENCE_FAILED", errors=("rows: 0",), candidate=None
    )


REVIEW = e.Review(name="Ada", reason="the server is gone", by=e.By(os_user="ada", host="desk", version="0.1"))


def retired(by: str | None = None, review: e.Review | None = None) -> e.OperationRetired:
    reason = "a later run displaced it" if review is None else review.reason
    return e.OperationRetired(at=AT, reason=reason, displaced_by=by, live=None, review=review)


def reopened(
    configured: Process = PROCESS, changed: tuple[str, ...] = (), review: e.Review | None = None
) -> e.OperationReopened:
    asked = request(configured=configured)
    return e.OperationReopened(
        at=AT,
        reason="the same command was repeated",
        configuration=asked.configuration,
        configuration_digest=asked.configuration_digest,
        changed=changed,
        inventory=REPLICAS,
        review=review,
    )


def slot_held() -> e.SlotHeld:
    return e.SlotHeld(at=AT, review=REVIEW)


def slot_unheld() -> e.SlotUnheld:
    return e.SlotUnheld(at=AT, review=REVIEW)


def validated(attempt: int = 2, generation: str = GENERATION) -> e.ReplayValidated:
    return e.ReplayValidated(
        at=AT,
        operation=OPERATION,
        attempt=attempt,
        generation=generation,
        receipt=RECEIPT,
        core_digest=digest(core()),
        identities=identities(),
    )


# --------------------------------------------------------------------------------------------------------- the slot


def slot_opened() -> e.SlotOpened:
    return e.SlotOpened(at=AT, target=KEY.target)


def claimed(key: OperationKey = KEY, displaced: str | None = None) -> e.SlotClaimed:
    return e.SlotClaimed(
        at=AT,
        operation=str(operation_id(key)),
        dag_id=key.dag_id,
        run_id=key.run_id,
        process=key.process,
        displaced=displaced,
    )


def acquired(guard: str = GUARD, operation: str = OPERATION, attempt: int = 1) -> e.ReaderGuardAcquired:
    return e.ReaderGuardAcquired(at=AT, guard=guard, operation=operation, attempt=attempt)


def taken_over(guard: str = RECEIPT, previous: str = GUARD, operation: str = OPERATION) -> e.ReaderGuardTakenOver:
    return e.ReaderGuardTakenOver(at=AT, guard=guard, operation=operation, attempt=2, previous=previous)


def published(
    generation: str = GENERATION, key: OperationKey = KEY, sealed: Mapping[str, str] | None = None, label: str = "new"
) -> e.GenerationPublished:
    return e.GenerationPublished(
        at=AT,
        generation=generation,
        operation=str(operation_id(key)),
        run_id=key.run_id,
        rows=3,
        definition=DEFINITION,
        identities=identities(label),
        sealed={} if sealed is None else sealed,
    )


def retirement(name: str = "__dpone_orders_x_pred", role: e.Role = e.Role.PREDECESSOR) -> e.RetirementOpened:
    return e.RetirementOpened(at=AT, name=name, role=role, generation=OTHER_GENERATION, identities=identities("old"))


def table_retired(name: str = "__dpone_orders_x_pred") -> e.TableRetired:
    return e.TableRetired(at=AT, name=name, dropped=REPLICAS)


def deferred(name: str = "__dpone_orders_x_pred") -> e.RetirementDeferred:
    return e.RetirementDeferred(at=AT, name=name, reason="the server refused it (359)")


def vacated(key: OperationKey = KEY, live: str | None = GENERATION) -> e.SlotVacated:
    return e.SlotVacated(at=AT, operation=str(operation_id(key)), live=live)


# ---------------------------------------------------------------------------------------------------- whole histories


def _lives() -> dict[State, tuple[e.Event, ...]]:
    lives: dict[State, tuple[e.Event, ...]] = {State.NEW: ()}
    history: tuple[e.Event, ...] = ()
    for state, more in (
        (State.ADMITTED, (admitted(), started())),
        (State.STAGED, (opened(), source_observed(), candidate_staged(), staged_observed(), gates_evaluated())),
        (State.PREPARED, (capsule_written(),)),
        (State.DISPATCHED, (dispatched(),)),
        (State.COMMITTED, (proven(),)),
        (State.TARGET_PENDING, (pending(),)),
        (State.OBSERVED, (target_observed(),)),
        (State.GUARD_RELEASED, (receipt(), released())),
        (State.COMPLETE, (completed(),)),
    ):
        history = (*history, *more)
        lives[state] = history
    lives[State.FAILED] = (*lives[State.ADMITTED], failed())
    lives[State.RETIRED] = (*lives[State.ADMITTED], retired())
    return lives


UNTIL: Mapping[State, tuple[e.Event, ...]] = _lives()
STAGED_CANDIDATE = (*UNTIL[State.ADMITTED], opened(), source_observed(), candidate_staged())
FAILED_FOR_GOOD = (*UNTIL[State.COMMITTED], failed())
HELD = (slot_opened(), claimed())
LIVE = (*HELD, published())
GUARDED = (*LIVE, acquired())
DONE = (*LIVE, vacated())
