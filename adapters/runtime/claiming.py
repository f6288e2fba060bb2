"""Taking an operation on: the checks that refuse, the claim, later attempts, and what earlier ones left behind."""

from __future__ import annotations

from uuid import UUID

from ...domain import events as e
from ...domain.configuration import from_semantic
from ...domain.errors import AppendConflict, DponeError, EngineFailed, ErrorCode
from ...domain.names import is_predecessor_name
from ...domain.operation import State
from ...domain.ports import StreamAppend
from ...domain.process import Process
from ...domain.slot import Live, TargetSlot
from ...domain.steps import Claim, WorkOff
from ...domain.tables import ReplicaLook, TableIdentity
from .attempt import Running
from .definition import resolve_definition


def claim(running: Running, step: Claim) -> None:
    """Check everything that can refuse, then admit or reopen the operation and take the slot, in one append."""
    if from_semantic(running.request.configuration).owes_target:
        running.warm_reader()
    preflight(running)
    events = [_reopened(running, step) if step.reopen else _admitted(running), attempt_started(running)]
    slot_events: list[e.Event] = []
    if running.slot.target is None:
        slot_events.append(e.SlotOpened(at=running.now(), target=running.request.key.target))
    key = running.request.key
    slot_events.append(
        e.SlotClaimed(
            at=running.now(),
            operation=running.request.operation,
            dag_id=key.dag_id,
            run_id=key.run_id,
            process=key.process,
            displaced=step.displaces,
        )
    )
    running.append(events, [*slot_events, *_displaced_candidate(running, step)], _displacement(running, step))
    running.started()


def start_attempt(running: Running) -> None:
    """Take the operation on where it stands."""
    check_inventory(running)
    if running.operation.process.owes_target:
        running.warm_reader()
    running.ports.platform.acquire()
    running.append([attempt_started(running)])
    running.started()


def abandon_staging(running: Running) -> None:
    """Void the unfinished generation; what it left is listed for dropping, by identity."""
    _abandon(running, "the attempt that filled its candidate did not finish")


def abandon_lost(running: Running) -> None:
    """Void a generation whose filled candidate is gone from a replica: the source is read anew."""
    _abandon(running, "its candidate table is gone")


def _abandon(running: Running, reason: str) -> None:
    generation = running.generation
    event = e.StagingAbandoned(at=running.now(), generation=generation.id, reason=reason)
    running.append([event], leftover(running, generation.candidate, generation.id, e.Role.LEFTOVER))


def leftover(running: Running, name: str, generation: str, role: e.Role) -> list[e.Event]:
    """The intent to drop this table, if any replica holds it and it is not listed yet."""
    looks = running.ports.platform.look(running.request.key.target)
    admitted = running.admitted
    identities = {look.replica: look.tables[name] for look in looks if look.replica in admitted and name in look.tables}
    if not identities or name in running.slot.retirements:
        return []
    return [e.RetirementOpened(at=running.now(), name=name, role=role, generation=generation, identities=identities)]


def work_off(running: Running, step: WorkOff) -> None:
    """Drop one table by identity. A refusal is recorded and blocks nothing; a lost race leaves it to the winner."""
    retirement = running.slot.retirements[step.name]
    platform, database = running.ports.platform, running.request.key.database
    _defer(running, step.name)
    try:
        dropped = tuple(
            replica
            for replica, identity in sorted(retirement.identities.items())
            if replica in running.admitted and platform.drop(replica, database, step.name, identity)
        )
    except EngineFailed as error:
        reason = f"the server refused it ({error.engine_code})"
        event: e.Event = e.RetirementDeferred(at=running.now(), name=step.name, reason=reason)
    else:
        event = e.TableRetired(at=running.now(), name=step.name, dropped=dropped)
    try:
        running.append([], [event])
    except AppendConflict:
        if running.operation.state is State.COMPLETE:
            _defer(running, *running.slot.retirements)  # clean-up is never part of the result: leave it to the winner
        else:
            running.rebuild()


def preflight(running: Running) -> None:
    """Everything that must hold before a row is read: names, columns, the route, and who made the live table."""
    try:
        _preflight(running)
    except DponeError:
        running.check_view_is_current()
        raise


def check_inventory(running: Running) -> None:
    """Refuse to publish past a replica that was admitted after this process was wired to the others."""
    missing = sorted(set(running.slot.inventory or ()) - set(running.ports.platform.replicas))
    if missing:
        raise DponeError(
            ErrorCode.EVIDENCE_INCOMPLETE,
            f"Replica {missing[0]} was admitted after this process started.",
            safe="Nothing was read or changed.",
            next="Repeat the same command.",
            cause=ErrorCode.NOT_ADMITTED,
        )


def _preflight(running: Running) -> None:
    check_inventory(running)
    key = running.request.key
    running.ports.platform.prepare(key.database)
    process = from_semantic(running.request.configuration)
    running.definition, running.source_schema = resolve_definition(
        process, key, running.ports.source, running.slot.live
    )
    running.ports.platform.acquire()
    refusals = running.ports.platform.refusals(key.target, running.definition)
    if refusals:
        raise DponeError(
            ErrorCode.EVIDENCE_UNSUPPORTED,
            f"The target {key.target} cannot be published to: {refusals[0]}",
            errors=tuple(refusals),
            safe="Nothing was read or changed.",
            next="Change what this names, or name another target; then repeat the same command.",
            exit_code=2,
        )
    admitted = running.admitted
    looks = tuple(look for look in running.ports.platform.look(key.target) if look.replica in admitted)
    check_live(looks, str(key.target), key.table, running.slot.live, adopting(process), _known(running.slot))


def adopting(process: Process) -> str | None:
    """The command that lets a target be what all replicas show; None on the embedded engine, which has none."""
    sink = process.sink
    if sink.cluster is None:
        return None
    which = f"--connection {sink.connection_ref} --cluster {sink.cluster.name}"
    return f"dpone platform adopt {sink.database}.{sink.table} {which} --reviewed-by NAME --reason TEXT"


def _known(slot: TargetSlot) -> frozenset[str]:
    """Every name beside the target that the ledger can tell of, and every identity that is kept there."""
    names = (name for one in slot.kept for name in one.names.values())
    identities = (identity.id for one in slot.kept for identity in one.identities.values())
    return frozenset((*names, *identities, *slot.retirements))


def check_live(
    looks: tuple[ReplicaLook, ...],
    target: str,
    table: str,
    live: Live | None,
    adopt: str | None = None,
    known: frozenset[str] | None = None,
) -> None:
    """Refuse a target that holds anything but what this ledger proved. ``adopt`` is the command that would allow it.

    ``known``: names and identities beside the target that the ledger can tell of; None when that is not to be asked.
    """
    for look in looks:
        if not look.reachable:
            raise EngineFailed(
                ErrorCode.REPLICA_UNREACHABLE,
                f"Replica {look.replica} does not answer.",
                safe="Nothing was read or changed.",
                next="Repeat the same command once it does.",
            )
        expected = live.identities.get(look.replica) if live is not None else None
        found = look.tables.get(table)
        if found is not None and expected is not None and known is not None and _is_later(found, expected, look, known):
            raise _older_ledger(target, adopt)
        if found is None and live is not None and adopt is not None and _stands_elsewhere(looks, table, live):
            raise _lost(target, look.replica, adopt)
        problem = _live_problem(found, expected, target, adopt)
        if problem is not None:
            raise problem


def _is_later(found: TableIdentity, expected: TableIdentity, look: ReplicaLook, known: frozenset[str]) -> bool:
    """Whether another live table is one that dpone published, and the ledger has never heard of it.

    Its Keeper path is in this platform's own folder, or a predecessor stands beside it that the ledger did not make.
    """
    if found.id == expected.id or found.id in known:
        return False
    folder = expected.id.rpartition("/")[0]
    if folder and found.id.startswith(f"{folder}/"):
        return True
    return any(is_predecessor_name(name) and name not in known for name in look.tables)


def _older_ledger(target: str, adopt: str | None) -> DponeError:
    newest = "If the ledger was restored from a copy, put its newest one in its place and repeat the same command"
    return DponeError(
        ErrorCode.FOREIGN_TARGET,
        f"The table {target} was replaced by a generation of dpone's making that the target's history in this ledger "
        "does not show: the ledger is an older copy of itself, another ledger publishes here, or an operation was "
        "retired after its swap.",
        safe="Nothing was read or changed; every table is as it was found.",
        next=f"{newest}." if adopt is None else f"{newest}; if it was not: {adopt}",
    )


def _live_problem(
    found: TableIdentity | None, expected: TableIdentity | None, target: str, adopt: str | None
) -> DponeError | None:
    if found == expected:
        return None
    if expected is None:
        return DponeError(
            ErrorCode.NOT_ADMITTED,
            f"The table {target} exists, but this ledger did not publish it.",
            safe="Nothing was read or changed; the table is untouched.",
            next=adopt or "Choose another table name, or move that table away yourself.",
        )
    if found is None:
        return _foreign(f"The table {target} is gone, though this ledger published it.", adopt)
    if found.id == expected.id:
        what = f"The table {target} was altered since it was published (columns, sorting key or engine)."
        return _foreign(what, adopt)
    return _foreign(f"The table {target} was replaced by one that this ledger does not know.", adopt)


def _stands_elsewhere(looks: tuple[ReplicaLook, ...], table: str, live: Live) -> bool:
    found = [(look.replica, look.tables[table]) for look in looks if look.reachable and table in look.tables]
    return bool(found) and all(live.identities.get(replica) == table_there for replica, table_there in found)


def _lost(target: str, replica: str, adopt: str) -> DponeError:
    """Other replicas still hold the table: adopting would be refused, and the admission of a replica puts it back."""
    return _foreign(
        f"The table {target} is gone on {replica}, though this ledger published it there. A replica that is excluded, "
        "then attested and admitted again gets its live tables back.",
        adopt.replace(f"adopt {target}", f"exclude {replica}", 1),
    )


def _foreign(what: str, adopt: str | None) -> DponeError:
    return DponeError(
        ErrorCode.FOREIGN_TARGET,
        what,
        safe="Nothing was read or changed; every table is as it was found.",
        next=adopt or "Put the published table back under its name, then repeat the same command.",
    )


def _admitted(running: Running) -> e.OperationAdmitted:
    request = running.request
    return e.OperationAdmitted(
        at=running.now(),
        key=request.key,
        configuration=request.configuration,
        configuration_digest=request.configuration_digest,
        inventory=running.admitted,
    )


def _reopened(running: Running, step: Claim) -> e.OperationReopened:
    request = running.request
    return e.OperationReopened(
        at=running.now(),
        reason="the same command was repeated",
        configuration=request.configuration,
        configuration_digest=request.configuration_digest,
        changed=step.changed,
        inventory=running.admitted,
        review=None,
    )


def attempt_started(running: Running) -> e.AttemptStarted:
    """The event that makes this process the operation's current attempt."""
    invocation = running.invocation
    return e.AttemptStarted(
        at=running.now(),
        attempt=running.operation.attempt + 1,
        by=invocation.by,
        manifest_sha256=invocation.manifest_sha256,
        revision=invocation.revision,
        task_id=invocation.task.task_id,
        map_index=invocation.task.map_index,
        try_number=invocation.task.try_number,
        task_instance=invocation.task.task_instance,
    )


def _displaced_candidate(running: Running, step: Claim) -> list[e.Event]:
    generation = running.holder.generation if running.holder is not None else None
    if step.displaces is None or generation is None:
        return []
    return leftover(running, generation.candidate, generation.id, e.Role.LEFTOVER)


def _displacement(running: Running, step: Claim) -> list[StreamAppend]:
    if step.displaces is None or running.holder is None:
        return []
    key = running.request.key
    retired = e.OperationRetired(
        at=running.now(),
        reason=f"run {key.run_id} of the same dag and process displaced it before it was dispatched",
        displaced_by=running.request.operation,
        live=running.slot.live.generation if running.slot.live is not None else None,
        review=None,
    )
    return [StreamAppend(UUID(step.displaces), running.holder.version, (retired,))]


def _defer(running: Running, *names: str) -> None:
    attempt = running.attempt
    running.attempt = type(attempt)(attempt.fence, attempt.deferred.union(names))
