"""The text of a CSV file: unpacked, in UTF-8, without byte order mark, skipped lines and header."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

from ...domain.limits import COLUMNS_MAX
from .csv_options import CsvOptions
from .files import OpenedFile
from .refusals import shown, unreadable
from .structure import FIELD_BYTES_MAX, Block, Dialect, blocks_of_rows, check_utf8, layout, refuse
from .unpacking import unpacked

_MARK = codecs.BOM_UTF8


@dataclass(frozen=True, slots=True)
class CsvText:
    """``header`` holds the first row's fields, ``names`` them as column names (None without a header row).

    ``blocks`` yields the data rows and is used once.
    """

    dialect: Dialect
    header: tuple[str, ...]
    names: tuple[str, ...] | None
    blocks: Iterator[Block]


def open_text(file: OpenedFile, options: CsvOptions, max_bytes: int) -> CsvText:
    """Read up to the header. Raises SourceFailed: no header, or one that cannot be right."""
    dialect = Dialect(file.path.name, options.delimiter.encode(), options.quote.encode())
    content = unpacked(file, options.compression, max_bytes)
    if not options.is_utf8:
        content = _transcoded(content, options.encoding, dialect.file)
    content = _without_mark(content)
    if options.skip_rows:
        content = _skipped(content, options.skip_rows)
    blocks = blocks_of_rows(content, dialect, options.skip_rows + 1)
    if options.trim:
        blocks = map(partial(_trimmed, dialect=dialect), blocks)
    first = next(blocks, None)
    if first is None:
        raise unreadable(f"{shown(dialect.file)} has no header.", "Check what should have written it.")
    header, rest = _split(first, dialect)
    following = chain((rest,) if rest.data else (), blocks)
    if options.header:
        _check_names(header, first, dialect)
        return CsvText(dialect, header, header, following)
    return CsvText(dialect, header, None, chain((first,), blocks))


def _split(first: Block, dialect: Dialect) -> tuple[tuple[str, ...], Block]:
    """The first row's fields, and the rows after it."""
    end = _first_row_end(first, dialect)
    row = Block(first.data[:end], first.first_line)
    check_utf8(row, dialect.file, "UTF-8")
    fault = layout(row.data, dialect).fault
    if fault is not None:
        refuse(row, fault[0], fault[1], dialect.file)
    line = row.data.decode().removesuffix("\n").removesuffix("\r")
    if not line:
        refuse(row, 0, "a blank line where the header should be", dialect.file)
    fields = tuple(_fields(line, dialect))
    rest = Block(first.data[end:], first.first_line + row.data.count(b"\n"), first.read)
    return fields, rest


def _check_names(header: tuple[str, ...], first: Block, dialect: Dialect) -> None:
    for name in header:
        if header.count(name) > 1:
            refuse(first, 0, f"the header names column {shown(name)} twice", dialect.file)
        if len(header) > COLUMNS_MAX:
            refuse(first, 0, f"{len(header)} columns; at most {COLUMNS_MAX:,} are carried", dialect.file)


def _first_row_end(first: Block, dialect: Dialect) -> int:
    """The offset after the first row's line end."""
    end = first.data.find(b"\n") + 1 or len(first.data)
    if not dialect.quoted(first.data[:end]):
        return end
    starts = layout(first.data, dialect).starts
    return int(starts[1]) if len(starts) > 1 else len(first.data)


def _fields(line: str, dialect: Dialect) -> list[str]:
    if not dialect.quote:
        return line.split(dialect.delimiter.decode())
    csv.field_size_limit(max(csv.field_size_limit(), 2 * FIELD_BYTES_MAX))
    return next(csv.reader([line], delimiter=dialect.delimiter.decode(), quotechar=dialect.quote.decode(), strict=True))


def _without_mark(content: Iterator[bytes]) -> Iterator[bytes]:
    head = b""
    for piece in content:
        head += piece
        if len(head) >= len(_MARK):
            break
    head = head.removeprefix(_MARK)
    if head:
        yield head
    yield from content


def _skipped(content: Iterator[bytes], lines: int) -> Iterator[bytes]:
    for piece in content:
        offset = 0
        while lines and (end := piece.find(b"\n", offset)) >= 0:
            offset, lines = end + 1, lines - 1
        if lines == 0:
            if piece[offset:]:
                yield piece[offset:]
            break
    yield from content


def _transcoded(content: Iterator[bytes], encoding: str, file: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    line = 1
    try:
        for piece in chain(content, (None,)):
            text = decoder.decode(piece or b"", final=piece is None)
            line += text.count("\n")
            if text:
                yield text.encode()
    except UnicodeDecodeError as error:
        before = bytes(error.object[: error.start]).decode(error.encoding, "replace").count("\n")
        raise unreadable(
            f"{shown(file)}, line {line + before}: bytes that are not {encoding}.",
            "Set source.options.encoding to the file's encoding, then repeat the command.",
        ) from None
    except UnicodeEncodeError:
        raise unreadable(f"{shown(file)}, line {line}: characters that are not text.", "Check the encoding.") from None


def _trimmed(block: Block, dialect: Dialect) -> Block:
    """Blanks and tabs off both ends of unquoted fields and off both sides of a quoted one."""
    delimiter, quote = re.escape(dialect.delimiter), re.escape(dialect.quote)
    blanks = b" \t".replace(dialect.delimiter, b"")
    enclosed = b"(%s[^%s]*+%s)|" % (quote, quote, quote) if quote else b"(?!)()|"
    # Two passes, each of which looks at a run of blanks once: the time stays linear in the length of the run.
    after = enclosed + b"(%s|\n)[%s]++" % (delimiter, blanks)
    before = enclosed + b"(?<![%s])[%s]++(?=%s|\\r?\\n|\\Z)()" % (blanks, blanks, delimiter)
    data = re.sub(after, rb"\1\2", block.data.lstrip(blanks))
    return Block(re.sub(before, rb"\1\2", data), block.first_line, block.read)
