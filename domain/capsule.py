"""The capsule: the evidence of one generation, sealed before it is published.

The **core** never changes after :class:`~dpone.domain.events.CapsuleWritten`. The **envelope** is the core with what
came after: capsule state, target observation, receipt, warnings. ``dpone.quality.replay.v1`` is the format when no
target observation is owed, ``.v2`` when one is. Both are RFC 8785 canonical JSON of at most 256 KiB, and the largest
envelope that a core can grow into is computed before anything is dispatched.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import rfc8785

from .codec import DecodeError, decode, encode, parse_strict
from .identity import OperationKey
from .limits import CAPSULE_BYTES_MAX, COUNT_MAX, METRIC_COLUMNS_MAX, WARNING_CHARACTERS_MAX, WARNINGS_MAX
from .quality import GateResult
from .tables import Column, Metrics, Observation

FORMAT_V1 = "dpone.quality.replay.v1"
FORMAT_V2 = "dpone.quality.replay.v2"
_STATES = ("PREPARED", "TARGET_PENDING", "COMPLETE", "FAILED")


class CapsuleInvalid(ValueError):
    """The bytes are not a capsule of a known format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """What made the capsule."""

    name: str
    version: str
    format_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What was asked of the evidence."""

    durable: bool
    acceptance_enabled: bool
    acceptance_mode: str
    capture_source: bool
    capture_staged: bool
    capture_target: bool
    gates: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDigests:
    """Digests of the ordered columns: as the source has them, as they travelled, as the target has them."""

    source: str
    payload: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPlan:
    """What the target observation will be asked, fixed before publication."""

    columns: tuple[Column, ...]
    metrics: Metrics
    acceptance_mode: str
    replicas: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CapsuleCore:
    """The sealed part. Fields are explained in the reference, section "capsule"."""

    format: str
    producer: Producer
    operation: str
    key: OperationKey
    run_id: str
    load_id: str
    generation: str
    fence: int
    inventory: tuple[str, ...]
    policy: Policy
    policy_digest: str
    admission_digest: str
    plan_digest: str
    schemas: SchemaDigests
    gates: tuple[GateResult, ...]
    gates_passed: bool
    source: Observation | None
    staged: Observation | None
    target_plan: TargetPlan | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof that one attempt saw the generation live."""

    id: str
    operation: str
    generation: str
    core_digest: str
    accepted_by_attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Capsule:
    """The envelope."""

    core: CapsuleCore
    core_digest: str
    state: str
    target: Observation | None
    receipt: Receipt | None
    warnings: tuple[str, ...]


def digest(value: Any) -> str:
    """``sha256:`` over the canonical JSON of dataclasses and plain values."""
    return "sha256:" + hashlib.sha256(rfc8785.dumps(encode(value))).hexdigest()


def dump(capsule: Capsule) -> bytes:
    """Canonical bytes. Raises CapsuleInvalid over the size limit."""
    data = rfc8785.dumps(encode(capsule))
    if len(data) > CAPSULE_BYTES_MAX:
        raise CapsuleInvalid(f"the capsule has {len(data)} bytes; at most {CAPSULE_BYTES_MAX} are allowed")
    return data


def load(data: bytes) -> Capsule:
    """Parse and check a capsule. Raises CapsuleInvalid."""
    if len(data) > CAPSULE_BYTES_MAX:
        raise CapsuleInvalid(f"more than {CAPSULE_BYTES_MAX} bytes")
    try:
        capsule = decode(Capsule, parse_strict(data))
    except DecodeError as error:
        raise CapsuleInvalid(str(error)) from error
    problem = _problem(capsule)
    if problem:
        raise CapsuleInvalid(problem)
    return capsule


def _problem(capsule: Capsule) -> str | None:
    core = capsule.core
    if core.format not in (FORMAT_V1, FORMAT_V2):
        return "unknown format"
    if (core.format == FORMAT_V2) != (core.target_plan is not None):
        return "a target plan belongs to version 2 and to it alone"
    if capsule.state not in _STATES:
        return "unknown state"
    if core.format == FORMAT_V1 and capsule.target is not None:
        return "a version 1 capsule holds no target observation"
    try:
        same = digest(core) == capsule.core_digest
    except (TypeError, ValueError, RecursionError):
        return "a value has no canonical form"
    if not same:
        return "the core's digest does not match"
    if any(not 0 <= count <= COUNT_MAX for count in _counts(capsule)):
        return "a count is out of range"
    return None


def _counts(capsule: Capsule) -> list[int]:
    observations = [capsule.core.source, capsule.core.staged, capsule.target]
    counts: list[int] = []
    for observation in observations:
        if observation is not None:
            counts += [
                observation.row_count,
                *observation.null_counts.values(),
                *observation.distinct_counts.values(),
            ]
    return counts


def envelope_bytes_max(core: CapsuleCore) -> int:
    """Size of the largest envelope this core can become: every counter with all its digits, every warning used."""
    plan = core.target_plan
    observation = None if plan is None else largest_observation(plan.metrics)
    longest = "f" * 36
    receipt = Receipt(
        id=longest,
        operation=longest,
        generation=longest,
        core_digest="sha256:" + "f" * 64,
        accepted_by_attempt=COUNT_MAX,
    )
    widest = "\x01" * WARNING_CHARACTERS_MAX  # a control character takes six bytes, the most that JSON can need
    envelope = Capsule(
        core=core,
        core_digest="sha256:" + "f" * 64,
        state="TARGET_PENDING",
        target=observation,
        receipt=receipt,
        warnings=(widest,) * WARNINGS_MAX,
    )
    return len(rfc8785.dumps(encode(envelope)))


def largest_observation(metrics: Metrics) -> Observation:
    """The observation of these metrics that takes the most bytes."""
    return Observation(
        row_count=COUNT_MAX,
        null_counts=dict.fromkeys(metrics.null_counts, COUNT_MAX),
        distinct_counts=dict.fromkeys(metrics.distinct_counts, COUNT_MAX),
        typed_hash=f"v1:{COUNT_MAX}:{2**64 - 1}" if metrics.typed_hash else None,
    )


def metrics_problem(metrics: Metrics) -> str | None:
    """Why these metrics cannot be carried, or None."""
    columns = len(set(metrics.null_counts) | set(metrics.distinct_counts))
    if columns > METRIC_COLUMNS_MAX:
        return f"{columns} metric columns are asked for; at most {METRIC_COLUMNS_MAX} are carried"
    return None


def schema_digest(columns: tuple[Column, ...]) -> str:
    """Digest of ordered column names and types."""
    return digest(columns)


def observation_data(observation: Observation | None) -> Mapping[str, Any] | None:
    """The observation as the document shows it: what was not asked for is left out."""
    if observation is None:
        return None
    shown: dict[str, Any] = {"row_count": observation.row_count}
    if observation.null_counts:
        shown["null_counts"] = dict(observation.null_counts)
    if observation.distinct_counts:
        shown["distinct_counts"] = dict(observation.distinct_counts)
    if observation.typed_hash is not None:
        shown["typed_hash"] = observation.typed_hash
    return shown
