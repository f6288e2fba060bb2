"""Where the rows and fields of CSV text are, and the line of the first place that cannot be right (RFC 4180, strictly).

A quote encloses a whole field or stands doubled inside one; a line ends with LF or CRLF; every row has as many fields
as the header. Lines are physical: a quoted line end counts. Most blocks are settled by a few searches and a look at
their quotes; those with something suspicious are analysed whole, vectorised: a byte is outside quotes when an even
number of quotes precede it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from .refusals import shown, unreadable

FIELD_BYTES_MAX = 1024 * 1024
RECORD_BYTES_MAX = 64 * 1024 * 1024
_WINDOW = FIELD_BYTES_MAX // 2


@dataclass(frozen=True, slots=True)
class Dialect:
    """What separates and what encloses. ``quote`` is empty when nothing encloses. Single bytes."""

    file: str
    delimiter: bytes
    quote: bytes

    def quoted(self, data: bytes) -> bool:
        """Whether a quote occurs anywhere."""
        return bool(self.quote) and self.quote in data


@dataclass(frozen=True, slots=True)
class Block:
    """Whole rows. ``first_line`` is the physical line of the first byte; ``read`` the bytes of text up to the end."""

    data: bytes
    first_line: int
    read: int = 0


@dataclass(frozen=True, slots=True)
class Layout:
    """Byte offsets of one block: ``starts`` and ``ends`` of its rows (without line ends), and fields per row.

    ``fault`` is the offset and description of the first syntax error, None when there is none.
    """

    starts: Any
    ends: Any
    fields: Any
    fault: tuple[int, str] | None


def blocks_of_rows(content: Iterator[bytes], dialect: Dialect, first_line: int) -> Iterator[Block]:
    """Cut text at row ends. The last block may lack its line end."""
    line, read, carry = first_line, 0, b""
    for piece in content:
        data = carry + piece if carry else piece
        read += len(piece)
        cut = _last_row_end(data, dialect)
        if cut == 0:
            _check_unfinished(data, line, dialect)
        else:
            block = data if cut == len(data) else data[:cut]
            yield Block(block, line, read)
            line += _count(block, 0x0A)
        carry = data[cut:]
    if carry:
        yield Block(carry, line, read)


def settle(block: Block, columns: int, dialect: Dialect) -> int:
    """Refuse what cannot be right, and say how many rows there are if none of them spans lines.

    Whether each row has its fields is the parser's to find. Raises SourceFailed with the line.
    """
    data = block.data
    if not data.isascii():
        check_utf8(block, dialect.file, "UTF-8")
    line_ends = _where(data, 0x0A)
    plain = _plain(data, line_ends) and (columns == 1 or not _has_blank_line(data, line_ends))
    if plain and (not dialect.quoted(data) or _quotes_are_right(data, dialect)):
        return len(line_ends) + (not data.endswith(b"\n"))
    return check_layout(block, columns, dialect)


def check_layout(block: Block, columns: int, dialect: Dialect) -> int:
    """The exact analysis: how many rows there are. Raises SourceFailed for the first fault or ragged row."""
    import numpy as np

    found = layout(block.data, dialect)
    wrong = np.flatnonzero(found.fields != columns)
    ragged = int(found.starts[wrong[0]]) if len(wrong) else None
    # Within one row the syntax error explains the wrong number of fields, not the other way round.
    if found.fault is not None and (ragged is None or found.fault[0] <= int(found.ends[wrong[0]])):
        refuse(block, found.fault[0], found.fault[1], dialect.file)
    if columns > 1:
        blank = np.flatnonzero(found.starts == found.ends)
        if len(blank) and int(found.starts[blank[0]]) == ragged:
            refuse(block, int(found.starts[blank[0]]), "a blank line", dialect.file)
    if ragged is not None:
        count = int(found.fields[wrong[0]])
        refuse(block, ragged, f"{count} field{'s' * (count != 1)} where the header has {columns}", dialect.file)
    return len(found.starts)


def layout(data: bytes, dialect: Dialect) -> Layout:
    """Where rows and fields are, and the first syntax fault."""
    import numpy as np

    octets = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(octets == dialect.quote[0]) if dialect.quote else np.empty(0, np.int64)
    newlines, delimiters, returns = (
        _outside(np.flatnonzero(octets == octet), quotes) for octet in (0x0A, dialect.delimiter[0], 0x0D)
    )
    line_ends = newlines
    if len(data) and (len(newlines) == 0 or newlines[-1] != len(data) - 1):
        line_ends = np.append(newlines, len(data))
    starts = np.concatenate(([0], line_ends[:-1] + 1))[: len(line_ends)]
    before = np.maximum(line_ends - 1, 0)
    ends = line_ends - ((line_ends > starts) & (octets[before] == 0x0D)) if len(data) else line_ends
    counts = np.searchsorted(delimiters, line_ends) - np.searchsorted(delimiters, starts) + 1
    faults = [
        *_quote_faults(octets, quotes, dialect.delimiter[0]),
        *_first(np.flatnonzero(octets == 0), "a NUL byte"),
        *_first(returns[~_followed_by_newline(octets, returns)], "a carriage return that does not end a line"),
        *_long_field(np.sort(np.concatenate((delimiters, line_ends)))),
    ]
    return Layout(starts, ends, counts, min(faults, default=None))


def row_line(block: Block, row: int, dialect: Dialect) -> int:
    """The physical line on which a row begins."""
    if not dialect.quoted(block.data):
        return block.first_line + row
    start = int(layout(block.data, dialect).starts[row])
    return block.first_line + block.data.count(b"\n", 0, start)


def refuse(block: Block, offset: int, what: str, file: str) -> NoReturn:
    """Raise DPONE_SOURCE_UNREADABLE with the line of an offset."""
    line = block.first_line + block.data.count(b"\n", 0, offset)
    raise unreadable(
        f"{shown(file)}, line {line}: {what}.",
        f"Correct line {line} (or source.options, if the file is right), then repeat the command.",
    )


def check_utf8(block: Block, file: str, encoding: str) -> None:
    """Raise SourceFailed with the line of the first byte that is not valid UTF-8."""
    try:
        block.data.decode("utf-8")
    except UnicodeDecodeError as error:
        refuse(block, error.start, f"bytes that are not {encoding}", file)


def _where(data: bytes, octet: int) -> Any:
    """Offsets of a byte; several times as fast as bytes.find and bytes.count where it is frequent."""
    import numpy as np

    return np.flatnonzero(np.frombuffer(data, np.uint8) == octet)


def _count(data: bytes, octet: int) -> int:
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == octet))


def _plain(data: bytes, line_ends: Any) -> bool:
    """Nothing suspicious outside of quotes: no NUL, every CR ends a line, no line near a field's limit."""
    import numpy as np

    if b"\0" in data:
        return False
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return False
    return bool(np.diff(line_ends, prepend=-1, append=len(data)).max() < _WINDOW)


def _has_blank_line(data: bytes, line_ends: Any) -> bool:
    """Whether a line is empty; the parser would make a row of empty fields of it."""
    import numpy as np

    gaps = np.diff(line_ends, prepend=-1)
    return bool((gaps == 1).any()) or (b"\r" in data and (data.startswith(b"\r\n") or b"\n\r\n" in data))


def _quotes_are_right(data: bytes, dialect: Dialect) -> bool:
    """Whether every quote opens, closes or is doubled, and no quoted field is near the limit."""
    import numpy as np

    quotes = _where(data, dialect.quote[0])
    if _quote_faults(np.frombuffer(data, np.uint8), quotes, dialect.delimiter[0]):
        return False
    opening, closing = quotes[0::2], quotes[1::2]
    single = closing[:-1] + 1 != opening[1:]
    starts, ends = opening[np.append(True, single)], closing[np.append(single, True)]
    return bool((ends - starts).max() < _WINDOW)


def _last_row_end(data: bytes, dialect: Dialect) -> int:
    """The offset after the last line end outside quotes; 0 when there is none."""
    end = data.rfind(b"\n") + 1
    before = _count(data[:end], dialect.quote[0]) if dialect.quoted(data) else 0
    while before % 2:  # inside quotes: the line end before it
        earlier = data.rfind(b"\n", 0, end - 1) + 1
        before -= data.count(dialect.quote, earlier, end)
        end = earlier
    return end


def _check_unfinished(data: bytes, line: int, dialect: Dialect) -> None:
    if len(data) <= FIELD_BYTES_MAX:
        return
    fault = layout(data, dialect).fault
    if fault is not None:
        refuse(Block(data, line), fault[0], fault[1], dialect.file)
    if len(data) > RECORD_BYTES_MAX:
        refuse(Block(data, line), 0, f"a row of more than {RECORD_BYTES_MAX:,} bytes", dialect.file)


def _outside(positions: Any, quotes: Any) -> Any:
    import numpy as np

    return positions[np.searchsorted(quotes, positions) % 2 == 0] if len(quotes) else positions


def _followed_by_newline(octets: Any, positions: Any) -> Any:
    import numpy as np

    following = np.minimum(positions + 1, max(len(octets) - 1, 0))
    return (octets[following] == 0x0A) & (positions + 1 < len(octets))


def _quote_faults(octets: Any, quotes: Any, delimiter: int) -> list[tuple[int, str]]:
    import numpy as np

    opening, closing = quotes[0::2], quotes[1::2]
    before = octets[np.maximum(opening - 1, 0)]
    doubled = np.zeros(len(opening), bool)
    doubled[1:] = closing[: len(opening) - 1] + 1 == opening[1:]
    opens = (opening == 0) | (before == delimiter) | (before == 0x0A) | doubled
    last = len(octets) - 1
    after = octets[np.minimum(closing + 1, last)] if len(octets) else octets
    redoubled = np.zeros(len(closing), bool)
    redoubled[: len(opening) - 1] = doubled[1:]
    crlf = (after == 0x0D) & _followed_by_newline(octets, closing + 1)
    closes = (closing == last) | (after == delimiter) | (after == 0x0A) | crlf | redoubled
    faults = [
        *_first(opening[~opens], "a quote in the middle of a field that is not quoted"),
        *_first(closing[~closes], "text after a closing quote"),
    ]
    if len(quotes) % 2:
        faults.append((int(_last_real_opening(opening, doubled)), "a quote that is never closed"))
    return faults


def _last_real_opening(opening: Any, doubled: Any) -> Any:
    """The quote that opened the last field, not the second half of a doubled one inside it."""
    return opening[~doubled][-1]


def _first(positions: Any, what: str) -> list[tuple[int, str]]:
    return [(int(positions[0]), what)] if len(positions) else []


def _long_field(separators: Any) -> list[tuple[int, str]]:
    import numpy as np

    if len(separators) == 0:
        return []
    starts = np.concatenate(([0], separators[:-1] + 1))
    return _first(starts[separators - starts > FIELD_BYTES_MAX + 2], f"a field of more than {FIELD_BYTES_MAX:,} bytes")
