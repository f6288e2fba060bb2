"""The shapes of one process: source, sink, and the rules that need several of their fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from marshmallow import ValidationError, validates_schema

from ...domain.configuration import SchemaChange, SourceType
from ...domain.limits import COLUMNS_MAX, COUNT_MAX, KEEP_GENERATIONS_MAX, SKIP_ROWS_MAX
from . import fields as f
from .fields import Shape, part
from .quality_shapes import QualityShape

PROCESSES_MAX: Final = 5_000  # in one file
OWN_PREFIX: Final = "__dpone_"

_LOCAL: Final = re.compile(r"(?![A-Za-z][A-Za-z0-9+.\-]*://).*", re.DOTALL)
_PARTITION: Final = re.compile(
    r"[A-Za-z_][A-Za-z0-9_]*|"
    r"(?:toYear|toYYYYMM|toYYYYMMDD|toMonday|toDate|toStartOf(?:Hour|Day|Week|Month|Quarter|Year))"
    r"\([A-Za-z_][A-Za-z0-9_]*\)"
)


class LocalPath(f.Text):
    """A file's path; a relative one starts at the manifest's folder."""

    form = "the path of a local file (no URL)"
    pattern = _LOCAL

    def __init__(self, **rest: Any) -> None:
        super().__init__(f.PATH_CHARACTERS_MAX, **rest)


class Partition(f.Text):
    """A partition key."""

    form = "a column or a date function of one, for example toYYYYMM(day),"
    pattern = _PARTITION

    def __init__(self, **rest: Any) -> None:
        super().__init__(200, **rest)


class SourceTableShape(Shape):
    """A table to read."""

    schema = f.Identifier()
    name = f.Text(f.NAME_CHARACTERS_MAX, required=True)


class SourceOptionsShape(Shape):
    """Options that every source has."""

    extra_columns = f.Choice(("refuse", "ignore"))


class CsvOptionsShape(SourceOptionsShape):
    """How a CSV file is written."""

    delimiter = f.Text(1, multiline=True)  # a tab is not printable
    quote = f.Text(1)
    header = f.Flag()
    encoding = f.Choice(("utf-8", "utf-16", "latin-1", "windows-1252"))
    null_values = f.Several(f.Text(100, shortest=0), 64)
    quoted_null = f.Flag()
    decimal_point = f.Choice((".", ","))
    skip_rows = f.Whole(0, SKIP_ROWS_MAX)
    trim = f.Flag()
    compression = f.Choice(("auto", "none", "gzip", "zip"))

    @validates_schema(skip_on_field_errors=True)
    def _distinct(self, data: Mapping[str, Any], **_: Any) -> None:
        delimiter, quote = data.get("delimiter", ","), data.get("quote", '"')
        if delimiter in "\r\n":
            raise ValidationError({"delimiter": ["must not be a line end"]})
        if delimiter == quote:
            raise ValidationError({"delimiter": ["must differ from quote"]})


class AnyOptions(f.Strict):
    """Options, whose shape depends on the source's type; SourceShape checks them."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        return value

    def json(self) -> dict[str, Any]:
        from .json_schemas import of_shape

        return of_shape(CsvOptionsShape())


class SourceShape(Shape):
    """What is read."""

    type = f.Choice(SourceType, required=True)
    connection_ref = f.Reference()
    table = part(SourceTableShape)
    path = LocalPath()
    query = f.Text(f.QUERY_CHARACTERS_MAX, multiline=True)
    options = AnyOptions()

    @validates_schema(pass_original=True, skip_on_field_errors=False)
    def _fits_type(self, data: Mapping[str, Any], original: Any, **_: Any) -> None:
        if not isinstance(original, Mapping) or "type" not in data:
            return
        kind = SourceType(data["type"])
        problems: dict[str, Any] = {}
        needed = "connection_ref" if kind.is_connected else "path"
        foreign = "path" if kind.is_connected else "connection_ref"
        if needed not in original:
            problems[needed] = [f"required for a {kind.value} source"]
        unfit = [foreign] if kind.has_tables else [foreign, "table", "query"]
        problems.update({key: [f"a {kind.value} source has no {key}"] for key in unfit if key in original})
        if kind.has_tables:
            problems.update(_one_of_table_and_query(original))
        if "options" in original:
            shape = CsvOptionsShape() if kind is SourceType.CSV else SourceOptionsShape()
            if found := shape.validate(original["options"]):
                problems["options"] = found
        if problems:
            raise ValidationError(problems)


def _one_of_table_and_query(original: Mapping[str, Any]) -> dict[str, Any]:
    if "table" in original and "query" in original:
        return {"query": ["table and query exclude each other; keep one"]}
    if "table" not in original and "query" not in original:
        return {"table": ["required: table or query"]}
    return {}


class SinkTableShape(Shape):
    """The target. Without a name it is called like the source's table."""

    schema = f.Identifier(required=True)
    name = f.Identifier()

    @validates_schema
    def _not_ours(self, data: Mapping[str, Any], **_: Any) -> None:
        if str(data.get("name", "")).startswith(OWN_PREFIX):
            raise ValidationError({"name": [f"names that begin with {OWN_PREFIX} belong to this tool's own tables"]})


class StagingShape(Shape):
    """Where candidates are filled."""

    schema = f.Identifier(required=True)


class StrategyShape(Shape):
    """How a load is done."""

    mode = f.Mode(("full_refresh",))
    max_source_bytes = f.Whole(1, COUNT_MAX)
    keep_generations = f.Whole(0, KEEP_GENERATIONS_MAX)


class ClusterShape(Shape):
    """The cluster that statements go to."""

    name = f.Identifier(required=True)
    ddl_scope = f.Choice(("cluster",))
    replication_mode = f.Choice(("internal",))


class ClickHouseStorageShape(Shape):
    """The target's table engine and keys."""

    engine = f.Choice(("MergeTree", "ReplicatedMergeTree"))
    order_by = f.Several(f.Column_(), COLUMNS_MAX)
    partition_by = Partition()
    cluster = part(ClusterShape)


class StorageShape(Shape):
    """Storage, by product."""

    clickhouse = part(ClickHouseStorageShape)


class PhysicalDesignShape(Shape):
    """How the target is stored."""

    storage = part(StorageShape)


class SinkOptionsShape(Shape):
    """What is kept and how."""

    durable_quality_replay = f.Flag()
    lineage = f.Flag()
    physical_design = part(PhysicalDesignShape)


class SinkShape(Shape):
    """What is written, and where to."""

    type = f.Choice(("clickhouse",))
    connection_ref = f.Reference(required=True)
    table = part(SinkTableShape, required=True)
    staging = part(StagingShape)
    columns = f.Columns()
    strategy = part(StrategyShape)
    schema_change = f.Choice(SchemaChange)
    options = part(SinkOptionsShape)


class ProcessShape(Shape):
    """One load."""

    name = f.Name(required=True)
    source = part(SourceShape, required=True)
    sink = part(SinkShape, required=True)
    quality = part(QualityShape)
    depends_on = f.Several(f.Text(f.NAME_CHARACTERS_MAX * 2), PROCESSES_MAX)

    @validates_schema
    def _named_columns(self, data: Mapping[str, Any], **_: Any) -> None:
        columns = data["sink"].get("columns")
        if columns is None:
            return
        declared = {column.name: column.type for column in columns}
        storage = data["sink"].get("options", {}).get("physical_design", {}).get("storage", {}).get("clickhouse", {})
        checks = data.get("quality", {}).get("acceptance", {}).get("checks", {})
        keys = {
            index: message
            for index, name in enumerate(storage.get("order_by", ()))
            if (message := _key_problem(name, declared))
        }
        counted = {
            name: found
            for name in ("null_counts", "distinct_counts")
            if (found := _undeclared(checks.get(name, ()), declared))
        }
        problems: dict[str, Any] = {}
        if keys:
            problems["sink"] = {"options": {"physical_design": {"storage": {"clickhouse": {"order_by": keys}}}}}
        if counted:
            problems["quality"] = {"acceptance": {"checks": counted}}
        if problems:
            raise ValidationError(problems)


def _key_problem(name: str, declared: Mapping[str, str]) -> list[str]:
    if name not in declared:
        return [f"is not one of sink.columns{f.suggestion(name, declared)}"]
    if declared[name].startswith("Nullable"):
        return ["a sorting key cannot be Nullable"]
    return []


def _undeclared(names: tuple[str, ...], declared: Mapping[str, str]) -> dict[int, list[str]]:
    return {
        index: [f"is not one of sink.columns{f.suggestion(name, declared)}"]
        for index, name in enumerate(names)
        if name not in declared
    }
