"""What is recorded when a person ends an operation: the events, and what is said of what stays behind."""

from __future__ import annotations

from dataclasses import dataclass

from ....domain import events as e
from ....domain.retiring import left_behind
from ....domain.tables import ReplicaLook
from ..attempt import Running
from .case import Case


@dataclass(frozen=True, slots=True)
class Ended:
    """What the replicas hold at the end: which generation is live, whether that is the ledger's first word of it."""

    live: str | None
    published: bool
    looks: tuple[ReplicaLook, ...]


def published(view: Running, ended: Ended) -> list[e.Event]:
    """The new generation is live and no proof said so yet; its predecessor is kept under the name that it bears."""
    if not ended.published:
        return []
    generation, predecessor = view.generation, view.publication.predecessor
    kept = left_behind(ended.looks, view.expectation(), predecessor)
    return [
        e.GenerationPublished(
            at=view.now(),
            generation=generation.id,
            operation=view.request.operation,
            run_id=view.request.key.run_id,
            rows=max((generation.rows or {}).values(), default=0),
            definition=generation.definition,
            identities=view.identities(),
            sealed={replica: name for name, held in kept.items() for replica in held},
        )
    ]


def left(view: Running, ended: Ended) -> list[e.Event]:
    """What is left of the new generation beside the target is listed for dropping."""
    found = left_behind(ended.looks, view.expectation(), view.identities())
    return [
        e.RetirementOpened(
            at=view.now(), name=name, role=e.Role.LEFTOVER, generation=view.generation.id, identities=identities
        )
        for name, identities in found.items()
        if name not in view.slot.retirements
    ]


def retired(case: Case, view: Running, live: str | None) -> e.OperationRetired:
    """The end, with the name and the reason. ``live`` is the generation that the target holds, None for a stranger."""
    decision = case.decision
    reason = f"{decision.name} ended it: {decision.words}"
    return e.OperationRetired(at=view.now(), reason=reason, displaced_by=None, live=live, review=decision.review)


def vacated(view: Running, live: str | None) -> e.SlotVacated:
    """The target is free."""
    return e.SlotVacated(at=view.now(), operation=view.request.operation, live=live)


def listed(view: Running) -> str:
    """What stays beside the target, as a sentence."""
    names = sorted({*view.slot.retirements, *(name for kept in view.slot.kept for name in kept.names.values())})
    return f"Left beside it: {', '.join(names)}." if names else "Nothing is left beside it."


def result(case: Case, view: Running) -> dict[str, object]:
    """The document's result."""
    slot, ending = view.slot, view.operation.retired
    database = view.request.key.database
    return {
        "operation_id": str(case.found.stream),
        "state": view.operation.state.value,
        "live_generation": ending.live if ending is not None else None,
        "slot_free": slot.holder is None,
        "waiting_to_be_dropped": [f"{database}.{name}" for name in sorted(slot.retirements)],
        "kept": sorted({f"{database}.{name}" for kept in slot.kept for name in kept.names.values()}),
        "next": case.typed("explain"),
    }
