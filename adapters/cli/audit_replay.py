"""``dpone audit replay``: the state at any moment, rebuilt from events alone, and why each of them followed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from ...domain.errors import DponeError, ErrorCode
from .output import format_option, ledger_option, print_failure, print_result, write

if TYPE_CHECKING:
    from uuid import UUID

    from ...domain.retracing import Followed, Moment


@click.command("replay", short_help="The state at any moment, and why each step followed.")
@click.argument("operation")
@click.option(
    "--at",
    "at",
    metavar="EVENT|TIME",
    help="Its event by number or name (the last of that name), or a time, RFC 3339; default: its last event. What was "
    "stored together happened together.",
)
@ledger_option
@format_option
def replay(operation: str, at: str | None, ledger: str | None, output: str) -> int:
    """Rebuild OPERATION as it stood at a moment, from its events alone, and tell why each step followed.

    Nothing outside of the ledger is asked. The decisions are made again by the function that made them, at the state
    that each of them found.
    """
    try:
        shown = _replayed(operation, at, ledger)
    except DponeError as error:
        print_failure("audit replay", error, output)
        return error.exit_code
    if output == "json":
        print_result("audit replay", shown)
    else:
        _print(shown)
    return 0


def _replayed(text: str, at: str | None, ledger: str | None) -> dict[str, Any]:
    from ...domain.explain import holds_now, sentence
    from ...domain.identity import slot_id
    from ...domain.retracing import retrace
    from ..runtime.lookup import one_operation
    from ..runtime.retraced import moments_of
    from .opening import opened_ledger

    with opened_ledger(os.environ, ledger) as store:
        found = one_operation(store, text)
        target = found.slot.target
        if target is None:
            raise _refused("This operation never claimed its target.")
        moments = moments_of(store, found.stream, target)
    until = _until(moments, found.stream, slot_id(target), at)
    history, standing = retrace(until, found.stream, slot_id(target))
    last = next(moment for moment in reversed(until) if moment.recorded.stream == found.stream)
    then = history[-1].then
    return {
        "operation_id": str(found.stream),
        "at": _place(last),
        "events": sum(moment.recorded.stream == found.stream for moment in moments),
        **_rows(until, found.stream, slot_id(target)),
        "history": [_told(one, found.stream) for one in history],
        "follows": all(one.follows for one in history),
        "holds_now": holds_now(standing.operation),
        "next_step": type(then).__name__,
        "next_sentence": sentence(then),
    }


def _rows(moments: Sequence[Moment], operation: UUID, slot: UUID) -> dict[str, Any]:
    """The operation's and the slot's rows, as a projection would have shown them then."""
    from ...ledger.projections.folding import Fold

    fold, rows = Fold(lambda stream: ()), dict[str, Any]()
    for moment in moments:
        for change in fold.changes(moment.position, moment.recorded):
            row = dict(zip(change.table.names, change.row, strict=True))
            if change.row[0] == str(operation):
                rows["operation"] = row
            elif change.row[0] == str(slot):
                rows["slot"] = row
    return {"operation": rows["operation"], "slot": rows.get("slot")}


# ------------------------------------------------------------------------------------------------------- the moment


def _until(moments: Sequence[Moment], operation: UUID, slot: UUID, at: str | None) -> Sequence[Moment]:
    """The events up to the moment. An append is one moment: all that it stored is there at once."""
    if at is None:
        return moments
    number = _number(moments, operation, at)
    if number is None:
        last = _last_before(moments, operation, slot, _time(at))
    else:
        own = (moment for moment in moments if moment.recorded.stream == operation)
        last = next(moment for moment in own if moment.recorded.version == number)
    return [moment for moment in moments if moment.position <= last.position or moment.append == last.append]


def _number(moments: Sequence[Moment], operation: UUID, at: str) -> int | None:
    """The version that ``at`` names by its number or by its event's name; None for a time."""
    own = [moment.recorded for moment in moments if moment.recorded.stream == operation]
    if at.isdecimal():
        if not at.isascii() or len(at) > 9 or not 1 <= int(at) <= len(own):
            raise _refused(f"This operation has {len(own)} events; --at counts them from 1.")
        return int(at)
    if not at.isascii() or not at.isalpha():
        return None
    named = [recorded.version for recorded in own if type(recorded.event).__name__ == at]
    if not named:
        raise _refused(f"This operation has no event {at[:60]}.")
    return named[-1]


def _time(at: str) -> datetime:
    try:
        found = datetime.fromisoformat(at)
    except ValueError:
        raise _refused("--at is neither an event's number or name nor a time like 2026-12-02T04:00:00Z.") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _last_before(moments: Sequence[Moment], operation: UUID, slot: UUID, time: datetime) -> Moment:
    """The last event before the first one of the operation or its slot that is stamped later."""
    kept: list[Moment] = []
    for moment in moments:
        recorded = moment.recorded
        if recorded.stream in (operation, slot) and datetime.fromisoformat(recorded.event.at) > time:
            break
        kept.append(moment)
    if not any(moment.recorded.stream == operation for moment in kept):
        raise _refused("This operation was not admitted yet at that time.")
    return kept[-1]


def _refused(what: str) -> DponeError:
    return DponeError(ErrorCode.REQUEST_INVALID, what, next="dpone audit replay OPERATION, without --at, lists them.")


# ---------------------------------------------------------------------------------------------------------- telling


def _place(moment: Moment) -> dict[str, Any]:
    recorded = moment.recorded
    return {
        "version": recorded.version,
        "event": type(recorded.event).__name__,
        "time": recorded.event.at,
        "position": moment.position,
    }


def _told(one: Followed, operation: UUID) -> dict[str, Any]:
    return {
        "events": [
            {"stream": "operation" if moment.recorded.stream == operation else "slot", **_place(moment)}
            for moment in one.moments
        ],
        "attempt": one.attempt,
        "state": one.state.value,
        "step": one.step,
        "because": one.because,
        "follows": one.follows,
        "next_step": type(one.then).__name__,
    }


def _print(shown: dict[str, Any]) -> None:
    row, at = shown["operation"], shown["at"]
    write(f"{row['process']} → {row['target']}      dag {row['dag_id']} · run {row['run_id']}")
    write(f"as of event {at['version']} of {shown['events']}: {at['event']}, {at['time']}")
    for one in shown["history"]:
        own = [event for event in one["events"] if event["stream"] == "operation"]
        number = str(own[-1]["version"]) if own else ""
        names = ", ".join(_name(event) for event in one["events"])
        mark = " " if one["follows"] else "✖"
        when = one["events"][0]["time"][11:23]
        write(f"{mark} {number:>4}  {when}  attempt {one['attempt']}  {one['state']:<14} {names}")
        write(f"        {one['step'] or 'no step'}: {one['because']}")
    for name in ("generation", "target_commit", "governance", "capsule_state", "guard", "receipt"):
        if row[name] is not None:
            write(f"  {name:<14} {row[name]}")
    slot = shown["slot"]
    if slot is not None:
        write(f"  {'held by':<14} {slot['holder'] or 'nobody'}")
        write(f"  {'live':<14} {slot['live_generation'] or 'nothing'}")
    write(shown["holds_now"])
    write(shown["next_sentence"])


def _name(event: dict[str, Any]) -> str:
    name: str = event["event"]
    return name if event["stream"] == "operation" else f"{name} (slot)"
