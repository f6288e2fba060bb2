"""What each field of a manifest means, for a person. A field without a line here fails the generator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_STORAGE: Final = "sink.options.physical_design.storage.clickhouse"
_NOT_YET: Final = "Not available on the embedded engine: refused before anything is opened."

MEANINGS: Final[Mapping[str, str]] = {
    "dpone.batch.v1: kind": "`dpone.batch.v1`",
    "dpone.batch.v1: defaults": "One process without its table. Inherited field by field; lists are replaced whole.",
    "dpone.batch.v1: quality": "Quality for every table, inherited like `defaults`.",
    "dpone.batch.v1: schemas": (
        "`<schema>: {tables: [name, {name: other, sink: …, quality: …}]}`. A process's selector is `<schema>.<table>`."
    ),
    "dpone.flow.v1: kind": "`dpone.flow.v1`",
    "dpone.flow.v1: metadata": "`id`, and a `description` if you like.",
    "dpone.flow.v1: processes": "The processes, written out. A process's selector is its name.",
    "dpone.flow.v1: authoring": "`{mode: folder}`: the processes are in fragments instead.",
    "dpone.flow.v1: fragments": "Paths of fragments inside the flow's folder: at most 64 files and 1 MiB together.",
    "dpone.flow-fragment.v1: kind": "`dpone.flow-fragment.v1`",
    "dpone.flow-fragment.v1: processes": "Some processes of a flow. Read only when a flow lists the fragment.",
    "name": "The process. It is part of an operation's identity.",
    "source.type": "Where rows come from.",
    "source.connection_ref": (
        "For `clickhouse` and `postgres`: the name of a connection, which is looked up when the process runs."
    ),
    "source.table.schema": "The table's schema, or ClickHouse's database; SQLite tables have none.",
    "source.table.name": "The table to read, of a server or of an SQLite file.",
    "source.path": "The file. A relative path starts at the manifest's folder.",
    "source.query": "One SELECT in place of a table, of a server or of an SQLite file.",
    "source.options.extra_columns": "What to do with columns of the source that are not declared.",
    "source.options.delimiter": "CSV: one ASCII character between fields.",
    "source.options.quote": "CSV: one ASCII character around a field that holds delimiters or line ends.",
    "source.options.header": "CSV: whether the first row names the columns. Without it, columns go by position.",
    "source.options.encoding": "CSV: how the bytes become text.",
    "source.options.null_values": "CSV: a whole unquoted field that equals one of these is NULL.",
    "source.options.quoted_null": "CSV: whether a quoted field can be NULL as well.",
    "source.options.decimal_point": "CSV: the sign before the fraction of a number.",
    "source.options.skip_rows": "CSV: physical lines before the header that are not read.",
    "source.options.trim": "CSV: take blanks and tabs off both ends of unquoted fields.",
    "source.options.compression": "CSV: `auto` decides by the file's first bytes, never by its name.",
    "sink.type": "The target is ClickHouse.",
    "sink.connection_ref": "`embedded` is the engine in this process. Other targets are not available.",
    "sink.table.schema": "The target's database.",
    "sink.table.name": "The target's table; like the source's table when it is left out.",
    "sink.staging.schema": "Where candidates stand. Here that is the target's database: leave it out.",
    "sink.columns": "The table's columns and types. May be left out where the source is typed; a CSV is not.",
    "sink.strategy.mode": "The whole table is loaded anew each time.",
    "sink.strategy.max_source_bytes": "Refuse a source that holds or unpacks to more bytes.",
    "sink.strategy.keep_generations": "How many earlier tables stay after a publication.",
    "sink.schema_change": (
        "With undeclared columns: refuse a source whose columns changed, `add` new ones, or `follow` the source."
    ),
    "sink.options.durable_quality_replay": (
        "Seal evidence before publication and validate it on every repeat. Disables no gate, changes no threshold."
    ),
    "sink.options.lineage": "Lineage columns. Not available: leave it false.",
    f"{_STORAGE}.engine": "The table engine. On the embedded engine: `MergeTree`.",
    f"{_STORAGE}.order_by": "The sorting key's columns; none of them may be Nullable.",
    f"{_STORAGE}.partition_by": "A column, or a date function of one such as `toYYYYMM(day)`.",
    f"{_STORAGE}.cluster.name": _NOT_YET,
    f"{_STORAGE}.cluster.ddl_scope": _NOT_YET,
    f"{_STORAGE}.cluster.replication_mode": _NOT_YET,
    "depends_on": "Selectors of this manifest that should be loaded first. Circles are refused.",
    "quality.gates[].id": "The gate's name in the document; its type when it is left out. Unique in a process.",
    "quality.gates[].type": "What is checked; see the table below.",
    "quality.gates[].severity": "`error` fails the operation; `warning` is recorded and shown.",
    "quality.gates[].tolerance.mode": "`row_count_reconciliation`: the difference in rows, or in percent of them.",
    "quality.gates[].tolerance.value": "`row_count_reconciliation`: the largest difference that passes; 0 if left out.",
    "quality.gates[].rows": "`min_rows`: the smallest number of rows that passes. Required there.",
    "quality.acceptance.enabled": "Whether observations are taken; true when `acceptance` is written at all.",
    "quality.acceptance.mode": (
        "`required`: without the target's observation the run does not complete. "
        "`warn_only`: an observation that cannot be taken is waived and shown as a warning."
    ),
    "quality.acceptance.capture.source": "Keep what was counted while the source was read.",
    "quality.acceptance.capture.staged": "Keep what was counted in the candidate, before publication.",
    "quality.acceptance.capture.target": "Count the live table after publication, in a process of its own.",
    "quality.acceptance.checks.row_count": "Rows are always counted.",
    "quality.acceptance.checks.null_counts": "Columns whose NULLs are counted.",
    "quality.acceptance.checks.distinct_counts": "Columns whose distinct values are counted, NULL left out.",
}
