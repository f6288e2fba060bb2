"""Which tables a projection has, with every column's type and meaning. The reference page is made from this module."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

PROJECTION_FORMAT: Final = 1
"""The format of the tables that this version writes. Another one is rebuilt, never converted."""

Value = str | int | bool | None
Row = tuple[Value, ...]
"""One row, its values in the order of the table's columns."""


class Kind(StrEnum):
    """A column's type, where a store has no better one: text, 64-bit whole numbers, yes or no."""

    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column and what it says. ``required`` columns are never NULL."""

    name: str
    kind: Kind
    meaning: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class ProjectedTable:
    """A table. Its first column is the key."""

    name: str
    meaning: str
    columns: tuple[TableColumn, ...]

    @property
    def key(self) -> TableColumn:
        return self.columns[0]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def _text(name: str, meaning: str) -> TableColumn:
    return TableColumn(name, Kind.TEXT, meaning)


def _number(name: str, meaning: str) -> TableColumn:
    return TableColumn(name, Kind.INTEGER, meaning)


def _flag(name: str, meaning: str) -> TableColumn:
    return TableColumn(name, Kind.BOOLEAN, meaning)


def _always(column: TableColumn) -> TableColumn:
    return TableColumn(column.name, column.kind, column.meaning, required=True)


OPERATIONS: Final = ProjectedTable(
    "operations",
    "One row an operation: where it stands.",
    (
        _always(_text("operation_id", "The operation's id.")),
        _always(_text("dag_id", "The dag of its key.")),
        _always(_text("run_id", "The run of its key.")),
        _always(_text("process", "The process of its key.")),
        _always(_text("platform_id", "The platform that holds its target.")),
        _always(_text("target", "Its target, `database.table`.")),
        _always(_text("state", "Its state, as the protocol names them.")),
        _always(_text("target_commit", "`not_started`, `unknown` or `proven`.")),
        _always(_text("governance", "`complete` or `blocked`.")),
        _text("capsule_state", "The capsule's state; NULL while there is none."),
        _always(_number("incarnation", "How often it was begun anew, counted from 1.")),
        _always(_number("attempt", "The last attempt's number; 0 before the first.")),
        _always(_number("completed_attempt", "The attempt that completed it; 0 while none did.")),
        _always(_number("validated_attempt", "The last attempt that validated a replay; 0 while none did.")),
        _text("generation", "The generation that it stages or published, the load's id as well."),
        _text("core_digest", "The digest of the capsule's core."),
        _number("epoch", "The last dispatch's epoch; NULL before the first."),
        _text("guard", "The reader guard that it holds."),
        _number("source_rows", "Rows that the one read of the source yielded."),
        _number("staged_rows", "Rows counted in the candidate."),
        _number("target_rows", "Rows counted in the target."),
        _flag("gates_passed", "Whether every gate of severity error passed; NULL before they were evaluated."),
        _text("waived", "Why the target observation was waived."),
        _text("failure_code", "The error code, while it is FAILED."),
        _text("failure", "The failure's sentences, one a line."),
        _text("retired_reason", "Why it was ended, while it is RETIRED."),
        _text("displaced_by", "The operation that displaced it."),
        _text("receipt", "The last accepted receipt."),
        _always(_text("configuration_digest", "The digest of its semantic configuration.")),
        _text("task_id", "The last attempt's task."),
        _number("map_index", "The last attempt's map index."),
        _text("os_user", "Who started the last attempt."),
        _text("host", "Where the last attempt runs or ran."),
        _always(_text("admitted_at", "When it was admitted. All times: RFC 3339 in UTC, shown and never compared.")),
        _always(_text("updated_at", "When its last event happened.")),
        _always(_number("events", "How many events it has.")),
        _always(_number("position", "Where its last event stands in the ledger.")),
    ),
)

SLOTS: Final = ProjectedTable(
    "slots",
    "One row a target: who owns it, which generation it holds.",
    (
        _always(_text("slot_id", "The slot's id.")),
        _always(_text("platform_id", "The platform that holds the target.")),
        _always(_text("target", "The target, `database.table`.")),
        _text("holder", "The operation that owns it; NULL while it is free."),
        _text("holder_dag_id", "That operation's dag."),
        _text("holder_run_id", "That operation's run."),
        _text("holder_process", "That operation's process."),
        _text("guard", "The reader guard that is held."),
        _text("guard_operation", "The operation whose reader may be running."),
        _number("guard_attempt", "That reader's attempt."),
        _text("live_generation", "The generation that was last proven live, or adopted."),
        _text("live_operation", "The operation that published it; NULL for an adopted table."),
        _text("live_run_id", "That operation's run."),
        _number("live_rows", "Its rows when it was published."),
        _flag("live_adopted", "Whether it was adopted instead of published."),
        _always(_number("kept_generations", "How many predecessors are kept.")),
        _always(_number("open_retirements", "How many tables wait to be dropped.")),
        _always(_number("deferred_retirements", "How many of them a server refused to drop.")),
        _text("held_by", "Who stopped new loads of it; NULL while they are allowed."),
        _text("held_reason", "Why."),
        _text("replicas", "The replicas as the last change of the inventory said, comma-separated; NULL before any."),
        _always(_text("updated_at", "When its last event happened.")),
        _always(_number("events", "How many events it has.")),
        _always(_number("position", "Where its last event stands in the ledger.")),
    ),
)

TIMELINE: Final = ProjectedTable(
    "timeline",
    "One row an event, in ledger order.",
    (
        _always(_number("position", "Where it stands in the ledger, counted from 1.")),
        _always(_text("stream", "Whose event: an operation's, a slot's or a platform's id.")),
        _always(_number("version", "Which event of that stream, counted from 1.")),
        _always(_text("kind", "`operation`, `slot` or `platform`.")),
        _always(_text("event", "What happened: the event's name.")),
        _always(_text("at", "When.")),
        _text("target", "The target, `database.table`; NULL for a platform's."),
        _text("operation_id", "The operation that it is about: the stream's own, or one that a slot's event names."),
        _number("attempt", "That operation's attempt, where it is known."),
        _text("state", "The operation's state afterwards; NULL for other streams."),
        _text("mark", "`done`, `broken` or `end`, as `ops explain` marks it; NULL where that shows nothing."),
        _text("title", "Its line's title there."),
        _text("text", "Its line's text there."),
    ),
)

TABLES: Final = (OPERATIONS, SLOTS, TIMELINE)

POSITION: Final = ProjectedTable(
    "projection_position",
    "One row: which ledger the tables follow, and how far. Written in the transaction of the rows.",
    (
        _always(_number("format", "The format of these tables.")),
        _always(_text("ledger_id", "The ledger's id.")),
        _always(_number("epoch", "The ledger's epoch.")),
        _always(_number("position", "The last event that the tables hold; 0 before the first.")),
        _always(_text("last_event", "SHA-256 of that event's stored bytes, so that another history is recognised.")),
    ),
)
