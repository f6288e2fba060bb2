"""One read of the source into one candidate, its rehearsal, its gates, and the sealed evidence."""

from __future__ import annotations

from collections.abc import Iterator

from ...domain import events as e
from ...domain import quality
from ...domain.capsule import (
    FORMAT_V1,
    FORMAT_V2,
    CapsuleCore,
    Policy,
    Producer,
    SchemaDigests,
    TargetPlan,
    digest,
    envelope_bytes_max,
    metrics_problem,
    schema_digest,
)
from ...domain.errors import DponeError, EngineFailed, ErrorCode, ReaderFailed, SourceFailed
from ...domain.limits import CAPSULE_BYTES_MAX, READER_FRAME_BYTES_MAX
from ...domain.names import candidate_name
from ...domain.ports import ReadPlan, RecordBatch, SourceReading
from ...domain.process import GateType, Process
from ...domain.reply import reply_bytes_max
from ...domain.steps import Rehearse
from ...domain.tables import Metrics, Observation, TableIdentity
from .attempt import Running
from .claiming import abandon_lost, preflight
from .failing import fail, gate_failure

_TRUE_FAILURES = (
    ErrorCode.EVIDENCE_FAILED,
    ErrorCode.EVIDENCE_UNSUPPORTED,
    ErrorCode.EVIDENCE_INVALID,
    ErrorCode.SCHEMA_CHANGED,
)


def stage(running: Running) -> None:
    """Read the source once into a new candidate table and record what was read and what the server holds."""
    if running.definition is None:
        _check_again(running)
    process = running.operation.process
    _open_generation(running)
    try:
        observation, fingerprint = _load(running, process)
    except DponeError as error:
        if _is_true_failure(error):
            raise fail(running, error, role=e.Role.LEFTOVER) from error
        raise
    generation = running.generation
    rows, identities = _everywhere(running)
    running.counters.inserted_rows = max(rows.values(), default=0)
    running.append(
        [
            e.SourceObserved(
                at=running.now(), generation=generation.id, observation=observation, fingerprint=fingerprint
            ),
            e.CandidateStaged(
                at=running.now(),
                generation=generation.id,
                candidate=generation.candidate,
                rows=rows,
                identities=identities,
            ),
        ]
    )


def _everywhere(running: Running) -> tuple[dict[str, int], dict[str, TableIdentity]]:
    """Rows and identity of the filled candidate, by replica, once every one of them holds the same."""
    platform, key, candidate = running.ports.platform, running.request.key, running.generation.candidate
    platform.synchronise(key.database, candidate)
    rows = dict(platform.row_count(key.database, candidate))
    looks = platform.look(key.target)
    identities = {look.replica: look.tables[candidate] for look in looks if candidate in look.tables}
    if not set(running.replicas) <= identities.keys() & rows.keys():
        raise EngineFailed(ErrorCode.PUBLICATION_UNKNOWN, "The candidate table was filled and is not everywhere now.")
    if len(set(rows.values())) != 1:
        raise EngineFailed(ErrorCode.PUBLICATION_UNKNOWN, "The replicas hold different numbers of rows.")
    return rows, identities


def _check_again(running: Running) -> None:
    """The checks before a claim were another process's: what fails now ends the operation like any true failure."""
    try:
        preflight(running)
    except DponeError as error:
        if _is_true_failure(error):
            raise fail(running, error) from error
        raise


def _is_true_failure(error: DponeError) -> bool:
    return isinstance(error, SourceFailed) or error.code in _TRUE_FAILURES


def rehearse(running: Running, step: Rehearse) -> None:
    """Observe the candidate; with the reader process and its budget when the target will be observed the same way.

    A candidate that is gone is abandoned: it can never be observed, and nothing was published yet.
    """
    try:
        observation, replica, milliseconds = _observed(running, by_reader=step.by_reader)
    except (EngineFailed, ReaderFailed) as error:
        unreaped = isinstance(error, ReaderFailed) and not error.reaped
        if unreaped or not _candidate_is_gone(running):
            raise
        abandon_lost(running)
        return
    running.append(
        [
            e.StagedObserved(
                at=running.now(),
                generation=running.generation.id,
                observation=observation,
                replica=replica,
                milliseconds=milliseconds,
                rehearsed=step.by_reader,
            )
        ]
    )


def _observed(running: Running, *, by_reader: bool) -> tuple[Observation, str, int]:
    """What was counted, on which replica, in how many milliseconds of the reader's budget."""
    generation, database = running.generation, running.request.key.database
    metrics = staged_metrics(running.operation.process)
    columns = generation.definition.columns
    if not by_reader:
        observation = running.ports.platform.observe(database, generation.candidate, columns, metrics)
        return observation, running.replicas[0], 0
    plan = ReadPlan(database, generation.candidate, running.identities(), columns, metrics)
    running.ports.platform.release()
    try:
        result = running.ports.reader.observe(plan)
    except ReaderFailed as error:
        if error.fits:
            raise
        raise fail(running, _cannot_be_observed(error)) from error
    return result.observation, result.replica, result.milliseconds


def _candidate_is_gone(running: Running) -> bool:
    """Every replica answers, and one of them does not hold the candidate that was filled."""
    candidate, filled = running.generation.candidate, running.identities()
    looks = [look for look in running.ports.platform.look(running.request.key.target) if look.replica in filled]
    answered = all(look.reachable for look in looks)
    return answered and any(look.tables.get(candidate) != filled[look.replica] for look in looks)


def evaluate_gates(running: Running) -> None:
    """Hold the observations against the gates; a failure is recorded together with the end of the operation."""
    generation = running.generation
    source, staged = generation.source, generation.staged
    if source is None or staged is None:
        raise DponeError(ErrorCode.EVIDENCE_REQUIRED, "The gates need both observations and one is absent.")
    results = tuple(
        quality.evaluate(gate.id, gate.type.value, gate.severity.value, gate.parameters, source, staged)
        for gate in running.operation.process.quality.gates
    )
    passed = quality.all_passed(results)
    event = e.GatesEvaluated(at=running.now(), generation=generation.id, gates=results, passed=passed)
    if passed:
        running.append([event])
        return
    sentences = tuple(result.sentence() for result in results if not result.passed and result.severity == "error")
    raise fail(running, gate_failure(running, sentences), before=[event])


def write_capsule(running: Running) -> None:
    """Seal the core, after proving that the largest envelope and reader's reply it can lead to will fit."""
    core = _core(running)
    envelope = envelope_bytes_max(core)
    plan = core.target_plan
    reply = reply_bytes_max(plan.columns, plan.metrics) if plan is not None else 0
    if envelope > CAPSULE_BYTES_MAX or reply > READER_FRAME_BYTES_MAX:
        error = DponeError(
            ErrorCode.EVIDENCE_INVALID,
            f"The finished evidence could take {envelope:,} bytes and the reader's reply {reply:,}; "
            f"{CAPSULE_BYTES_MAX:,} and {READER_FRAME_BYTES_MAX:,} are the limits.",
            safe="Nothing was published; the live table is untouched.",
            next="Observe fewer columns in quality.acceptance.checks.",
        )
        raise fail(running, error)
    running.append(
        [
            e.CapsuleWritten(
                at=running.now(),
                generation=core.generation,
                core=core,
                core_digest=digest(core),
                envelope_bytes_max=envelope,
                reply_bytes_max=reply,
            )
        ]
    )


def _open_generation(running: Running) -> None:
    definition = running.definition
    if definition is None:
        raise DponeError(ErrorCode.INTERNAL, "Staging began without a table definition.")
    problem = metrics_problem(staged_metrics(running.operation.process))
    if problem is not None:
        error = DponeError(ErrorCode.EVIDENCE_UNSUPPORTED, f"The evidence cannot be carried: {problem}.")
        raise fail(running, error)
    generation = running.ports.ids.new()
    candidate = candidate_name(running.request.key.table, generation, 1, running.fence)
    opened = e.StagingOpened(
        at=running.now(),
        generation=generation,
        attempt=running.fence,
        candidate=candidate,
        definition=definition,
        source_schema=running.source_schema,
    )
    running.append([opened])
    running.ports.platform.create(running.request.key.database, candidate, definition)


def _load(running: Running, process: Process) -> tuple[Observation, dict[str, str | int]]:
    generation, platform = running.generation, running.ports.platform
    columns = generation.definition.columns
    with running.ports.source.read(columns, source_metrics(process), running.report.rows) as reading:
        platform.fill(running.request.key.database, generation.candidate, columns, _counted(running, reading, process))
        return reading.observation, dict(reading.fingerprint)


def _counted(running: Running, reading: SourceReading, process: Process) -> Iterator[RecordBatch]:
    for batch in reading:
        running.counters.extracted_rows += batch.num_rows
        yield batch
    if process.owes_target:
        running.warm_reader(2)  # the target's reader starts while the last rows are written, not beside a scan


def _wants_hash(process: Process) -> bool:
    return any(gate.type is GateType.TYPED_HASH_RECONCILIATION for gate in process.quality.gates)


def source_metrics(process: Process) -> Metrics:
    """What is counted while the source streams."""
    acceptance = process.quality.acceptance
    if acceptance.enabled and acceptance.capture_source:
        return Metrics(acceptance.null_counts, acceptance.distinct_counts, _wants_hash(process))
    return Metrics(typed_hash=_wants_hash(process))


def staged_metrics(process: Process) -> Metrics:
    """What is counted on the candidate: at least what the target will be asked, so the rehearsal proves it fits."""
    acceptance = process.quality.acceptance
    if acceptance.enabled and (acceptance.capture_staged or acceptance.capture_target):
        return Metrics(acceptance.null_counts, acceptance.distinct_counts, _wants_hash(process))
    return Metrics(typed_hash=_wants_hash(process))


def target_metrics(process: Process) -> Metrics:
    """What the target is asked."""
    acceptance = process.quality.acceptance
    return Metrics(acceptance.null_counts, acceptance.distinct_counts)


def _core(running: Running) -> CapsuleCore:
    operation, generation = running.operation, running.generation
    process, key = operation.process, running.request.key
    acceptance = process.quality.acceptance
    columns = generation.definition.columns
    plan = None
    if process.owes_target:
        plan = TargetPlan(
            columns=columns,
            metrics=target_metrics(process),
            acceptance_mode=acceptance.mode.value,
            replicas=operation.inventory,
        )
    policy = _policy(process)
    return CapsuleCore(
        format=FORMAT_V1 if plan is None else FORMAT_V2,
        producer=Producer(name="dpone-replay", version=running.invocation.by.version, format_version=1),
        operation=running.request.operation,
        key=key,
        run_id=key.run_id,
        load_id=generation.id,
        generation=generation.id,
        fence=running.fence,
        inventory=operation.inventory,
        policy=policy,
        policy_digest=digest(policy),
        admission_digest=operation.configuration_digest,
        plan_digest=digest(generation.definition),
        schemas=SchemaDigests(
            source=generation.source_schema,
            payload=schema_digest(columns),
            target=running.identities()[running.replicas[0]].digest,
        ),
        gates=generation.gates or (),
        gates_passed=True,
        source=generation.source if acceptance.enabled and acceptance.capture_source else None,
        staged=generation.staged if acceptance.enabled and acceptance.capture_staged else None,
        target_plan=plan,
    )


def _policy(process: Process) -> Policy:
    acceptance = process.quality.acceptance
    return Policy(
        durable=process.sink.durable,
        acceptance_enabled=acceptance.enabled,
        acceptance_mode=acceptance.mode.value,
        capture_source=acceptance.capture_source,
        capture_staged=acceptance.capture_staged,
        capture_target=acceptance.capture_target,
        gates=tuple(f"{gate.id}:{gate.type}:{gate.severity}" for gate in process.quality.gates),
    )


def _cannot_be_observed(error: ReaderFailed) -> DponeError:
    return DponeError(
        ErrorCode.EVIDENCE_UNSUPPORTED,
        f"The candidate cannot be observed within the reader's budget: {error.what}",
        safe="Nothing was published; the live table is untouched.",
        next="Observe fewer columns in quality.acceptance.checks, then repeat the same command.",
    )
