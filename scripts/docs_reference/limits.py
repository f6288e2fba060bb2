"""The page of limits, from the module that holds them all."""

from __future__ import annotations

from dpone.domain import limits as bounds

from .pages import table

_UNITS = {
    "CHARACTERS": "characters",
    "BYTES": "bytes",
    "SECONDS": "s",
    "COLUMNS": "columns",
    "ROWS": "rows",
    "GATES": "gates",
    "WARNINGS": "warnings",
    "GENERATIONS": "tables",
    "VALUES": "values",
}
_MEANINGS = {
    "IDENTITY_CHARACTERS_MAX": "a dag id, a run id, a process name",
    "CONFIGURATION_BYTES_MAX": "the semantic configuration stored with an operation, as canonical JSON",
    "CAPSULE_BYTES_MAX": "the finished capsule, as canonical JSON; its worst case is computed before publication",
    "READER_FRAME_BYTES_MAX": "the reader's one reply; its worst case is computed before publication as well",
    "METRIC_COLUMNS_MAX": "columns with a NULL count or a distinct count",
    "SKIP_ROWS_MAX": "lines before the header of a CSV file",
    "GATES_MAX": "gates of one process",
    "WARNINGS_MAX": "warnings in one capsule",
    "WARNING_CHARACTERS_MAX": "one warning",
    "COUNT_MAX": "any count; larger whole numbers do not survive JSON",
    "DISTINCT_VALUES_MAX": "distinct values of one column that is counted exactly",
    "KEEP_GENERATIONS_DEFAULT": "predecessor tables that are kept when the manifest does not say",
    "KEEP_GENERATIONS_MAX": "predecessor tables that can be kept",
    "MAX_SOURCE_BYTES_DEFAULT": "unpacked bytes of a source when the manifest does not say (`max_source_bytes`)",
    "READER_BUDGET_SECONDS": "one observation by the reader process: start, plan, metadata and scan",
    "READER_REAP_SECONDS": "ending and reaping the reader process, on top of its budget",
    "ENGINE_WAIT_SECONDS": "waiting for another process that holds the embedded engine's folder",
    "LEDGER_WAIT_SECONDS": "waiting for another process that writes the ledger",
    "SETTLE_SECONDS": "looking at a publication that makes no step, before the run ends as incomplete",
    "STOP_SECONDS": "from SIGTERM or Ctrl-C to the end of the process",
    "BATCH_ROWS": "one batch of rows on its way from source to table",
    "TABLE_NAME_BYTES_MAX": "the longest table name that any later step needs, candidates included",
    "DIAGNOSTIC_BYTES_MAX": "what a command says on stderr about an error",
    "COLUMNS_MAX": "columns of one table",
    "CONFLICTS_MAX": "lost append races after which an attempt gives up",
    "EPOCHS_MAX": "dispatches of one publication",
}


def limits() -> str:
    """Name, value with its unit, and what it bounds. Raises KeyError for a limit that nobody explained."""
    names = [name for name in vars(bounds) if name.isupper()]
    rows = [(f"`{name}`", _value(name, getattr(bounds, name)), _MEANINGS[name]) for name in names]
    if unknown := _MEANINGS.keys() - set(names):
        raise KeyError(f"no such limit any more: {sorted(unknown)}")
    return table(("limit", "value", "what it bounds"), rows)


def _value(name: str, value: float) -> str:
    unit = next((unit for word, unit in _UNITS.items() if word in name.split("_")), "")
    exact = f"{value:,}" if isinstance(value, int) else f"{value:g}"
    return f"{exact} {unit}{_binary(value) if unit == 'bytes' else ''}".strip()


def _binary(value: float) -> str:
    for size, name in ((2**30, "GiB"), (2**10, "KiB")):
        if value >= size and value % size == 0:
            return f" ({value / size:g} {name})"
    return ""
