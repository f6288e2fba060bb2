"""``dpone ops``: what operations exist, what happened, what the same command would do next; and what may be decided.

The commands that only look are here. Each of the others is in a module of its own, imported when it is used.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from ...domain.errors import DponeError
from .output import format_option, ledger_option, print_failure, print_result, printable, write

if TYPE_CHECKING:
    from ..runtime.lookup import Found


_LATER = {
    "resume": ("ops_resume", "Continue an operation from the ledger alone."),
    "reopen": ("ops_reopen", "Let a finished operation load anew."),
    "hold": ("ops_hold", "Stop new loads of a target."),
    "unhold": ("ops_hold", "Allow loads of a target again."),
    "release-guard": ("ops_decide", "Give up a reader's guard."),
    "retire": ("ops_decide", "End an operation that cannot go on."),
    "rollback": ("ops_rollback", "Publish a kept generation again, as a new one."),
    "sweep": ("ops_sweep", "Drop what the ledger proves to be unused."),
}


class OperationsGroup(click.Group):
    """Commands of this module, and those that are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.commands, *_LATER]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _LATER:
            return super().get_command(ctx, name)
        module = import_module(f".{_LATER[name][0]}", __package__)
        command: click.Command = getattr(module, name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        here = [(name, command.get_short_help_str()) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl([*here, *((name, short) for name, (_, short) in _LATER.items())])


@click.group(cls=OperationsGroup, short_help="Look at operations, and decide about them.")
def ops() -> None:
    """Look at operations, from the ledger alone, changing nothing; and decide what becomes of one or of a target.

    Every decision is an event with a name and a reason.
    """


@ops.command("list", short_help="Every operation, its state, and the tables it left.")
@ledger_option
@format_option
def list_(ledger: str | None, output: str) -> int:
    """List every operation of the ledger, and the tables that wait to be dropped."""
    from ..runtime.lookup import all_operations
    from .opening import opened_ledger

    try:
        with opened_ledger(os.environ, ledger) as store:
            found = list(all_operations(store))
    except DponeError as error:
        print_failure("ops list", error, output)
        return error.exit_code
    items = [_item(one, ledger) for one in found]
    leftovers, holds = _leftovers(found), _holds(found)
    if output == "json":
        print_result("ops list", {"items": items, "leftovers": leftovers, "held_targets": holds})
    else:
        _print_list(items, leftovers, holds)
    return 0


@ops.command("show", short_help="One operation's state and evidence.")
@click.argument("operation")
@ledger_option
@format_option
def show(operation: str, ledger: str | None, output: str) -> int:
    """Show the state and the evidence of OPERATION (its id, or 8 or more characters of it)."""
    found = _one("ops show", operation, ledger, output)
    if isinstance(found, int):
        return found
    from ...domain.outcome import quality_replay

    item = _item(found, ledger)
    evidence = quality_replay(found.operation, None)
    if evidence is not None:
        evidence.pop("replayed")
        item["quality_replay"] = evidence
    if output == "json":
        print_result("ops show", item)
        return 0
    for name, value in _flat(item):
        write(f"{name:<44} {value}")
    return 0


@ops.command("explain", short_help="What happened, what holds now, what comes next.")
@click.argument("operation")
@ledger_option
@format_option
def explain(operation: str, ledger: str | None, output: str) -> int:
    """Tell OPERATION's history, what holds now, and what the same command would do next."""
    found = _one("ops explain", operation, ledger, output)
    if isinstance(found, int):
        return found
    from ...domain.explain import holds_now, sentence, timeline

    now, coming = holds_now(found.operation), sentence(found.next)
    if output == "json":
        lines = [
            {"mark": line.mark, "title": line.title, "text": line.text, "at": line.at or None, "attempt": line.attempt}
            for line in timeline(found.events)
        ]
        step = type(found.next).__name__
        print_result(
            "ops explain",
            {
                **_item(found, ledger),
                "held_targets": _holds([found]),
                "timeline": lines,
                "holds_now": now,
                "next_step": step,
                "next_sentence": coming,
            },
        )
        return 0
    from .story import print_story

    held = [_held(hold) for hold in _holds([found])]
    print_story(found.operation, found.events, [now, coming, *held])
    return 0


def _one(command: str, operation: str, ledger: str | None, output: str) -> Found | int:
    from ..runtime.lookup import one_operation
    from .opening import opened_ledger

    try:
        with opened_ledger(os.environ, ledger) as store:
            return one_operation(store, operation)
    except DponeError as error:
        print_failure(command, error, output)
        return error.exit_code


def _item(found: Found, ledger: str | None) -> dict[str, Any]:
    operation, key, last = found.operation, found.operation.key, found.task
    if key is None or last is None:
        return {"operation_id": str(found.stream)}
    failure = operation.failure
    return {
        "operation_id": str(found.stream),
        "process": key.process,
        "target": str(key.target),
        "dag_id": key.dag_id,
        "run_id": key.run_id,
        "task_id": last.task_id,
        "map_index": last.map_index,
        "state": operation.state.value,
        "target_commit": operation.target_commit,
        "governance": operation.governance,
        "attempt": operation.attempt,
        "updated_at": found.events[-1].at,
        "candidate": f"{key.database}.{failure.candidate}" if failure is not None and failure.candidate else None,
        "errors": list(failure.errors) if failure is not None else [],
        "next": " ".join(["dpone ops explain", str(found.stream), *_ledger_words(ledger)]),
    }


def _ledger_words(ledger: str | None) -> list[str]:
    from ..runtime.ledger_words import ledger_words

    named = ledger or os.environ.get("DPONE_LEDGER") or None
    return [shlex.quote(word) for word in ledger_words(named, os.environ)]


def _leftovers(found: Sequence[Found]) -> list[dict[str, Any]]:
    """The tables whose dropping is open, once a target."""
    slots = {str(one.slot.target): one.slot for one in found if one.slot.target is not None}
    return [
        {
            "table": f"{slot.target.database}.{name}" if slot.target is not None else name,
            "role": retirement.role.value,
            "since": retirement.at,
            "deferred": slot.deferred.get(name),
        }
        for slot in slots.values()
        for name, retirement in slot.retirements.items()
    ]


def _holds(found: Sequence[Found]) -> list[dict[str, str]]:
    """The targets whose new loads a person stopped, once each."""
    slots = {str(one.slot.target): one.slot for one in found}
    return [
        {"target": target, "held_by": slot.held.name, "reason": slot.held.reason}
        for target, slot in slots.items()
        if slot.held is not None
    ]


def _held(hold: dict[str, str]) -> str:
    return f"New loads of {hold['target']} are stopped by {printable(hold['held_by'])}: {printable(hold['reason'])}"


def _print_list(
    items: Sequence[dict[str, Any]], leftovers: Sequence[dict[str, Any]], holds: Sequence[dict[str, str]]
) -> None:
    if not items:
        write("No operation yet.")
        return
    columns = ("operation", "state", "target", "dag", "run", "attempt", "updated")
    rows = [
        (
            item["operation_id"][:8],
            item["state"],
            item["target"],
            item["dag_id"],
            item["run_id"],
            str(item["attempt"]),
            item["updated_at"][:19].replace("T", " "),
        )
        for item in items
    ]
    _print_table(columns, rows)
    for left in leftovers:
        reason = f"; deferred: {left['deferred']}" if left["deferred"] else ""
        write(f"  kept: {left['table']} ({left['role']}), dropped by the next attempt on its target{reason}")
    for hold in holds:
        write(f"  {_held(hold)}")


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=True)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    wide = None if sys.stdout.isatty() else 1000
    Console(width=wide).print(table)


def _flat(data: Any, name: str = "") -> list[tuple[str, str]]:
    if isinstance(data, dict):
        return [pair for key, value in data.items() for pair in _flat(value, f"{name}.{key}" if name else key)]
    if isinstance(data, list):
        return [pair for index, value in enumerate(data) for pair in _flat(value, f"{name}[{index}]")]
    return [] if data is None else [(name, str(data))]
