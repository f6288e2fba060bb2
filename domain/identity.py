"""Who is who: the operation's key and the ids that are computed from it, so that the same command finds its history."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from uuid import NAMESPACE_URL, UUID, uuid5

import rfc8785

from .limits import IDENTITY_CHARACTERS_MAX
from .tables import TargetRef

_NAMESPACE = uuid5(NAMESPACE_URL, "urn:dpone-replay")


@dataclass(frozen=True, slots=True)
class Task:
    """Whose work this process does in a scheduler: recorded, and never part of what a run is.

    ``map_index`` tells mapped siblings apart, ``try_number`` a task's tries; ``task_instance`` is Airflow's own id.
    """

    task_id: str | None = None
    map_index: int | None = None
    try_number: int | None = None
    task_instance: str | None = None


NO_TASK = Task()
"""Nobody's but a person's."""


@dataclass(frozen=True, slots=True)
class OperationKey:
    """The whole identity of an operation. Task, map index, attempt and host are recorded, never part of it."""

    dag_id: str
    run_id: str
    process: str
    platform_id: str
    database: str
    table: str

    @property
    def target(self) -> TargetRef:
        return TargetRef(self.platform_id, self.database, self.table)


def operation_id(key: OperationKey) -> UUID:
    """UUIDv5 over the RFC 8785 canonical JSON of the key."""
    return _derived("operation", asdict(key))


def slot_id(target: TargetRef) -> UUID:
    """UUIDv5 of the physical target, whatever a connection to it is called."""
    return _derived("slot", asdict(target))


def platform_stream(platform_id: str) -> UUID:
    """The stream of a platform's own events."""
    return _derived("platform", {"platform_id": platform_id})


def _derived(kind: str, parts: dict[str, str]) -> UUID:
    return uuid5(_NAMESPACE, rfc8785.dumps({"kind": kind, **parts}).decode())


def identity_problem(name: str, value: str) -> str | None:
    """Why a part of an identity is refused, as a sentence, or None. Nothing is ever trimmed."""
    if not value:
        return f"The {name} is empty."
    if len(value) > IDENTITY_CHARACTERS_MAX:
        return f"The {name} has {len(value)} characters; at most {IDENTITY_CHARACTERS_MAX} are allowed."
    if not value.isprintable():
        return f"The {name} holds characters that cannot be printed."
    if value != value.strip():
        return f"The {name} begins or ends with a space."
    return None
