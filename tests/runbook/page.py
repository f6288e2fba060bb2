"""The rows of ``docs/how-to/recover.md``: an id in a comment, and the commands of the block that follows it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "recover.md"
_ROW = re.compile(
    r'^### ([^\n]+)\n\n(?:<a id="([a-z-]+)"></a>)?<!-- row: ([a-z-]+) -->(.*?)(?=^##|\Z)', re.DOTALL | re.MULTILINE
)
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def rows() -> dict[str, list[str]]:
    """By the row's id: its commands, in order."""
    found = {}
    for title, anchor, row, body in _ROW.findall(PAGE.read_text(encoding="utf-8")):
        slug = re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
        assert row == (anchor or slug), "the link and the row have two names"
        blocks = _BLOCK.findall(body)
        assert len(blocks) == 1, f"row {row} has {len(blocks)} blocks of commands"
        found[row] = blocks[0].splitlines()
    return found


def linked() -> list[str]:
    """The rows that the decision table leads to."""
    table = PAGE.read_text(encoding="utf-8").partition("## The process")[0]
    return re.findall(r"\(#([a-z-]+)\)", table)


def words(line: str, meant: Mapping[str, str]) -> list[str]:
    """The command's words, with every word in capitals replaced by what is meant; a file's ending may follow it."""
    found = []
    for word in shlex.split(line):
        if named := re.fullmatch(r"([A-Z]+(?:\.[A-Z]+)?)(-[a-z]+)?", word):
            assert named[1] in meant, f"what {word} means is not said"
            found.append(meant[named[1]] + (named[2] or ""))
        else:
            found.append(word)
    return found
