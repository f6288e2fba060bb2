"""What two generations of ClickHouse do differently where a table is counted and hashed.

Server 18.16 has no Bool, Date32 and DateTime64, reads the bits of a float or decimal through its bytes only, knows no
``trim`` of characters, never finds one NaN equal to another inside ``uniqExact``, prints day 0 as ``0000-00-00`` and
days after 2106-02-07 as day 0. It prints a whole part of more than 20 digits into memory that it did not reserve, so
such digits are moved behind the point first: a product of decimals only adds up their scales.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

from ...domain.errors import DponeError, ErrorCode
from ...domain.tables import Column
from ...domain.types import ColumnType, parse_type

_ABSENT_IN_18: Final = frozenset({"Bool", "Date32", "DateTime64"})
_SAFE_SCALE: Final = 19
_DAYS_OF_56_YEARS: Final = 20_453  # the same calendar; one leap year fewer than usual, as 2100 lies between
_LAST_PRINTED_DAY: Final = 49_672  # 2105-12-31


class Dialect(Enum):
    """Which expressions and settings a server understands."""

    PRESENT = "present"
    V18 = "18.16"

    @property
    def pinned(self) -> Mapping[str, int | str]:
        """The settings that count must not depend on, as far as the server has them."""
        pinned = {"compile_expressions": 0, "output_format_json_quote_64bit_integers": 0}
        if self is Dialect.V18:
            return pinned
        # Compiling costs more than one scan gains.
        return {"aggregate_functions_null_for_empty": 0, **pinned, "compile_aggregate_expressions": 0}

    def require(self, columns: Sequence[Column]) -> None:
        """Raise DponeError (EVIDENCE_UNSUPPORTED) for the first column whose type the server does not have."""
        if self is not Dialect.V18:
            return
        for column in columns:
            if parse_type(column.type).kind in _ABSENT_IN_18:
                raise DponeError(
                    ErrorCode.EVIDENCE_UNSUPPORTED,
                    f"Column {column.name[:60]!r} is {column.type}, a type that ClickHouse {self.value} does not have.",
                    safe="Nothing was changed.",
                    next="Declare another type in sink.columns, or use a newer server.",
                )

    def bits(self, value: str, width: int) -> str:
        """A float's bits as an unsigned integer."""
        read = value if self is Dialect.PRESENT else f"reinterpretAsString({value})"
        return f"reinterpretAsUInt{width}({read})"

    def day(self, value: str) -> str:
        """A Date as ``YYYY-MM-DD``."""
        if self is Dialect.PRESENT:
            return f"toString({value})"
        number = f"toUInt16({value})"
        early = f"toDate(toUInt16({number} - {_DAYS_OF_56_YEARS}))"
        later = f"concat(toString(toYear({early}) + 56), substring(toString({early}), 5))"
        return f"multiIf({number} = 0, '1970-01-01', {number} > {_LAST_PRINTED_DAY}, {later}, toString({value}))"

    def unscaled(self, value: str, kind: ColumnType) -> str:
        """A Decimal's unscaled integer as text, not for zero."""
        if self is Dialect.PRESENT:  # its storage is that integer
            width = 32 if kind.precision <= 9 else 64 if kind.precision <= 18 else 128
            return f"toString(reinterpretAsInt{width}({value}))"
        if kind.precision > 18 and kind.scale < _SAFE_SCALE:
            places = _SAFE_SCALE - kind.scale
            value = f"{value} * toDecimal128('0.{'0' * (places - 1)}1', {places})"
        return f"replaceRegexpOne(replaceOne(toString({value}), '.', ''), '^(-?)0+', '\\\\1')"

    def without_trailing_zeros(self, digits: str) -> str:
        """Digits without the zeros at their end."""
        if self is Dialect.PRESENT:
            return f"trim(TRAILING '0' FROM {digits})"
        return f"replaceRegexpOne({digits}, '0+$', '')"
