"""``ops rollback``: a kept generation is copied into a new one, by an ordinary operation with an identity of its own.

Renaming the old table back could collide with names that late statements know; a copy through the loop cannot. The
same command is the same operation: its run id says which generation is copied, and over which one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....domain.configuration import (
    AcceptanceSpec,
    GateSpec,
    GateType,
    Process,
    QualitySpec,
    SinkSpec,
    SourceSpec,
    SourceTable,
    SourceType,
)
from ....domain.events import GenerationPublished
from ....domain.identity import OperationKey, Task
from ....domain.limits import KEEP_GENERATIONS_MAX
from ....domain.slot import Kept, Live, TargetSlot
from ....domain.tables import TargetRef
from ...authority.memory import Remembered
from ..attempt import Reporter
from ..compose import Composer
from ..lookup import one_operation
from ..recorded import Resumption, checked, resumption
from ..settings import Identity, Settings
from .review import Decision, invalid
from .targets import one_target

if TYPE_CHECKING:
    from ....ledger.store import EventLedger

DAG = "manual"
PROCESS = "rollback"
_HEX = frozenset("0123456789abcdef")
_PREFIX_MIN = 8


def kept_generations(ledger: EventLedger, name: str, platform: str | None) -> list[dict[str, object]]:
    """What the target keeps, newest first. Raises DponeError for a target that is not known."""
    slot = one_target(ledger, name, platform).slot
    live = [] if slot.live is None else [_shown(slot, slot.live, True)]
    return [*live, *(_shown(slot, kept, False) for kept in slot.kept)]


def rollback(
    ledger: EventLedger,
    name: str,
    generation: str,
    platform: str | None,
    decided: Decision | None,
    settings: Settings,
    composer: Composer,
    reporter: Reporter,
) -> Resumption:
    """The operation that publishes the kept generation anew: begun, or continued. Raises DponeError."""
    known = one_target(ledger, name, platform)
    wanted = _digits(generation)
    words = ("ops", "rollback", name, "--to", generation, *(("--platform", platform) if platform else ()))
    begun = _begun(known.slot, wanted)
    if begun is not None:
        return resumption(one_operation(ledger, begun), settings, composer, reporter, words)
    kept = _kept(known.slot, wanted, name)
    live = known.slot.live
    run_id = f"rollback-{_hex(kept.generation)}-over-{_hex(live.generation)[:12] if live is not None else 'nothing'}"
    process = _process(_last_sink(ledger, known), kept)
    target = _target(known.slot)
    key = OperationKey(DAG, run_id, PROCESS, target.platform_id, target.database, target.table)
    return Resumption(
        manifest="",
        manifest_sha256=None,
        process=process,
        identity=Identity(DAG, run_id, task=Task(_task(decided))),
        settings=settings,
        composer=checked(composer, key),
        reporter=reporter,
        words=words,
    )


def _begun(slot: TargetSlot, wanted: str) -> str | None:
    """The rollback to this generation that holds the target, or that published what is live now."""
    start = f"rollback-{wanted}"
    if slot.holder is not None and slot.holder.process == PROCESS and slot.holder.run_id.startswith(start):
        return slot.holder.operation
    if slot.holder is None and slot.live is not None and slot.live.run_id.startswith(start):
        return slot.live.operation
    return None


def _kept(slot: TargetSlot, wanted: str, name: str) -> Kept:
    found = [kept for kept in slot.kept if _hex(kept.generation).startswith(wanted)]
    if len(found) == 1:
        return found[0]
    kept_now = ", ".join(f"{_hex(kept.generation)[:12]} ({kept.rows:,} rows)" for kept in slot.kept) or "none"
    if slot.live is not None and _hex(slot.live.generation).startswith(wanted):
        raise invalid(f"This generation of {name} is live now; kept are: {kept_now}.", f"dpone ops rollback {name}")
    what = "begin" if found else "is kept that begins"
    raise invalid(
        f"{len(found) or 'No'} generation{'s' if found else ''} of {name} {what} like this; kept are: {kept_now}.",
        f"dpone ops rollback {name}",
    )


def _process(sink: SinkSpec, kept: Kept) -> Process:
    definition = kept.definition
    table = sorted(kept.names.items())[0][1]
    return Process(
        name=PROCESS,
        selector=PROCESS,
        source=SourceSpec(
            type=SourceType.CLICKHOUSE,
            connection_ref=sink.connection_ref,
            table=SourceTable(table, sink.database),
            options={"extra_columns": "refuse"},
        ),
        sink=SinkSpec(
            connection_ref=sink.connection_ref,
            database=sink.database,
            table=sink.table,
            columns=definition.columns,
            durable=True,
            keep_generations=KEEP_GENERATIONS_MAX,
            engine=definition.engine,
            order_by=definition.order_by,
            partition_by=definition.partition_by,
            cluster=sink.cluster,
        ),
        quality=QualitySpec(
            gates=(
                GateSpec(
                    "rows",
                    GateType.ROW_COUNT_RECONCILIATION,
                    parameters={"tolerance": {"mode": "absolute", "value": "0"}},
                ),
                GateSpec("recorded", GateType.MIN_ROWS, parameters={"rows": kept.rows}),
                GateSpec("hash", GateType.TYPED_HASH_RECONCILIATION),
            ),
            acceptance=AcceptanceSpec(enabled=True),
        ),
    )


def _last_sink(ledger: EventLedger, known: Remembered) -> SinkSpec:
    """Connection and cluster as the last operation that published to the target had them."""
    published = [item.event for item in ledger.read(known.stream) if isinstance(item.event, GenerationPublished)]
    if not published:
        raise invalid("Nothing was published to this target by this ledger.", "dpone ops list")
    return one_operation(ledger, published[-1].operation).operation.process.sink


def _target(slot: TargetSlot) -> TargetRef:
    if slot.target is None:
        raise ValueError("the slot was never opened")
    return slot.target


def _task(decided: Decision | None) -> str:
    if decided is None:
        return "ops rollback"
    return f"ops rollback, reviewed by {decided.name}: {decided.words}"[:200]


def _digits(text: str) -> str:
    plain = text.lower().replace("-", "")
    if len(plain) < _PREFIX_MIN or not set(plain) <= _HEX:
        raise invalid("A generation is named by its id or by at least 8 characters of it.", "dpone ops rollback TABLE")
    return plain


def _hex(generation: str) -> str:
    return generation.replace("-", "")


def _shown(slot: TargetSlot, one: Kept | Live, live: bool) -> dict[str, object]:
    database = _target(slot).database
    names = [] if isinstance(one, Live) else sorted(set(one.names.values()))
    return {
        "generation": one.generation,
        "rows": one.rows,
        "live": live,
        "adopted": one.adopted,
        "tables": [f"{database}.{name}" for name in names],
    }
