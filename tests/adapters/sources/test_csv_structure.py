"""The vectorised structure scan against an obvious one that walks byte by byte."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpone.adapters.sources.csv_fields import FieldReader
from dpone.adapters.sources.csv_options import CsvOptions
from dpone.adapters.sources.structure import Block, Dialect, blocks_of_rows, layout, row_line, settle
from dpone.domain.errors import SourceFailed

DIALECT = Dialect("x.csv", b",", b'"')
TEXTS = st.lists(
    st.sampled_from([b"a", b",", b'"', b'""', b"\n", b"\r\n", b"\r", b"\0", b'"q"', b'"a\nb"', b"1"]), max_size=24
).map(b"".join)
READER = FieldReader(DIALECT, CsvOptions(null_values=()), 2, (0, 1))


class Bad(Exception):
    """The walk met a fault."""


def walk(data: bytes) -> list[tuple[int, int]]:
    """(start, fields) of each row, by a state machine over single bytes. Raises Bad at the first fault."""
    rows: list[tuple[int, int]] = []
    state, start, fields, at = "start", 0, 1, 0
    while at < len(data):
        octet = data[at : at + 1]
        crlf = data[at : at + 2] == b"\r\n"
        if octet == b"\0":
            raise Bad
        if state == "quoted":
            if octet == b'"' and data[at + 1 : at + 2] == b'"':
                at += 1
            elif octet == b'"':
                state = "closed"
        elif octet == b",":
            state, fields = "start", fields + 1
        elif octet == b"\n" or crlf:
            rows.append((start, fields))
            at += 1 if crlf else 0
            state, start, fields = "start", at + 1, 1
        elif octet == b"\r" or state == "closed" or (octet == b'"' and state != "start"):
            raise Bad
        else:
            state = "quoted" if octet == b'"' else "plain"
        at += 1
    if state == "quoted":
        raise Bad
    if start < len(data):
        rows.append((start, fields))
    return rows


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_the_scan_finds_what_a_walk_finds(data: bytes) -> None:
    try:
        expected = walk(data)
    except Bad:
        assert layout(data, DIALECT).fault is not None
        return
    found = layout(data, DIALECT)
    assert found.fault is None
    assert list(zip(found.starts.tolist(), found.fields.tolist(), strict=True)) == expected


ROWS = st.lists(
    st.sampled_from(
        [b"1,2\n", b'"a\nb",c\n', b'"x""y",\r\n', b'"",""\n', b",\n", b'"p",q\r\n', b'"\n\n",r\n', b"\n", b"3\n"]
    ),
    max_size=6,
).map(b"".join)


@settings(max_examples=600, deadline=None)
@given(st.one_of(TEXTS, ROWS))
def test_fields_are_those_of_the_walk_or_all_is_refused(data: bytes) -> None:
    if not data:
        return
    try:
        right = all(fields == 2 for _, fields in walk(data))
    except Bad:
        right = False
    if not right:
        with pytest.raises(SourceFailed, match="line "):
            READER.texts(Block(data, 1))
        return
    read = [column.to_pylist() for column in READER.texts(Block(data, 1))]
    rows = csv.reader(io.StringIO(data.decode(), newline=""), strict=True)
    assert list(zip(*read, strict=True)) == [tuple(row) for row in rows]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([b"1,2\n", b'"a\nb",c\n', b'"x""y",\r\n', b'"",""\n', b",\n"]), max_size=12), st.data())
def test_cutting_into_blocks_loses_nothing_and_keeps_lines(rows: list[bytes], data: st.DataObject) -> None:
    text = b"".join(rows)
    size = data.draw(st.integers(1, 9))

    def pieces() -> Iterator[bytes]:
        for at in range(0, len(text), size):
            yield text[at : at + size]

    blocks = list(blocks_of_rows(pieces(), DIALECT, 1))
    assert b"".join(block.data for block in blocks) == text
    line, expected = 1, []
    for row in rows:
        expected.append(line)
        line += row.count(b"\n")
    found = []
    for block in blocks:
        settle(block, 2, DIALECT)
        count = len(layout(block.data, DIALECT).starts)
        found += [row_line(block, row, DIALECT) for row in range(count)]
    assert found == expected


@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (b'1,2\n"x"y,3\n', 2, "text after a closing quote"),
        (b'1,2\n3,4\nx"y,3\n', 3, "a quote in the middle"),
        (b'1,2\n"a\nb",2\n3,"open\n\n', 4, "never closed"),
        (b'"1",2\r3,4\n', 1, "a carriage return"),
        (b'1,"2"\n3\n', 2, "1 field where the header has 2"),
        (b'1,"2"\n\n3,4\n', 2, "a blank line"),
        (b"1,2\n3,\xff\n", 2, "not UTF-8"),
        (b"1,2\n3,\0\n", 2, "NUL"),
        (b"1,2\n3," + b"x" * (1024 * 1024 + 3) + b"\n", 2, "a field of more than"),
    ],
)
def test_the_line_of_the_first_fault(data: bytes, line: int, words: str) -> None:
    with pytest.raises(SourceFailed) as failed:
        READER.texts(Block(data, 1))
    assert f"line {line}: " in failed.value.what
    assert words in failed.value.what


def test_a_quote_that_never_closes_is_refused_before_the_memory_is_full() -> None:
    def endless() -> Iterator[bytes]:
        yield b'a,b\n1,"'
        for _ in range(100):
            yield b"x" * 300_000 + b"\n"
        raise AssertionError("read on")

    with pytest.raises(SourceFailed, match="line 2: "):
        list(blocks_of_rows(endless(), DIALECT, 1))
