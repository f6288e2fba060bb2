"""The ClickHouse column types that this product carries exactly, and their canonical names."""

from __future__ import annotations

import re
from dataclasses import dataclass

INTEGER_BITS = {f"{sign}Int{bits}": bits for sign in ("", "U") for bits in (8, 16, 32, 64)}
_SIMPLE = {*INTEGER_BITS, "Float32", "Float64", "Bool", "String", "Date", "Date32", "UUID"}
_ZONE = r"'([A-Za-z0-9_+\-/]{1,64})'"
_DATETIME = re.compile(rf"DateTime(?:\(\s*{_ZONE}\s*\))?")
_DATETIME64 = re.compile(rf"DateTime64\(\s*([0-9])\s*(?:,\s*{_ZONE}\s*)?\)")
_DECIMAL = re.compile(r"Decimal\(\s*([0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\)")
_NULLABLE = re.compile(r"Nullable\((.*)\)", re.DOTALL)

SUPPORTED = (
    "Int8…Int64, UInt8…UInt64, Float32, Float64, Bool, String, Date, Date32, DateTime[('zone')], "
    "DateTime64(0…9[, 'zone']), Decimal(1…38, s), UUID, and Nullable(…) of each"
)


class UnsupportedType(ValueError):
    """The text is not one of the supported type names."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A parsed type. ``kind`` is the bare name (``DateTime64``); the other fields apply where the kind has them.

    ``precision`` is a DateTime64's digits or a Decimal's total digits; ``scale`` a Decimal's; ``zone`` a time zone's
    name, which changes how an instant is shown and never the instant.
    """

    kind: str
    nullable: bool = False
    precision: int = 0
    scale: int = 0
    zone: str | None = None

    @property
    def is_integer(self) -> bool:
        return self.kind in INTEGER_BITS

    @property
    def integer_range(self) -> tuple[int, int]:
        """Smallest and largest value of an integer kind."""
        bits = INTEGER_BITS[self.kind]
        return (0, 2**bits - 1) if self.kind.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    @property
    def bare(self) -> str:
        """Canonical name without Nullable."""
        match self.kind:
            case "DateTime":
                return f"DateTime('{self.zone}')" if self.zone else "DateTime"
            case "DateTime64":
                return f"DateTime64({self.precision}, '{self.zone}')" if self.zone else f"DateTime64({self.precision})"
            case "Decimal":
                return f"Decimal({self.precision}, {self.scale})"
            case kind:
                return kind

    def __str__(self) -> str:
        return f"Nullable({self.bare})" if self.nullable else self.bare


def parse_type(text: str) -> ColumnType:
    """Parse a type name. ``str()`` of the result is canonical. Raises UnsupportedType."""
    text = text.strip()
    if inner := _NULLABLE.fullmatch(text):
        parsed = parse_type(inner[1])
        if parsed.nullable:
            raise UnsupportedType("Nullable inside Nullable")
        return ColumnType(parsed.kind, True, parsed.precision, parsed.scale, parsed.zone)
    if text in _SIMPLE:
        return ColumnType(text)
    if match := _DATETIME.fullmatch(text):
        return ColumnType("DateTime", zone=match[1])
    if match := _DATETIME64.fullmatch(text):
        return ColumnType("DateTime64", precision=int(match[1]), zone=match[2])
    if match := _DECIMAL.fullmatch(text):
        precision, scale = int(match[1]), int(match[2])
        if 1 <= precision <= 38 and scale <= precision:
            return ColumnType("Decimal", precision=precision, scale=scale)
    raise UnsupportedType(f"{text[:60]!r} is not one of: {SUPPORTED}")
