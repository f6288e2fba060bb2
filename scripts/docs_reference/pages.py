"""A page's generated parts, found and made anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

_PART = re.compile(r"<!-- generated: ([a-z-]+) -->\n(.*?)<!-- end of generated -->", re.DOTALL)


def renewed(
    text: str, parts: Mapping[str, Callable[[], str]], keep: frozenset[str] = frozenset()
) -> tuple[str, set[str]]:
    """The page with its parts made anew, except those to ``keep``; and the names that it holds.

    Raises KeyError for a part that nobody makes.
    """
    names: set[str] = set()

    def make(found: re.Match[str]) -> str:
        name = found[1]
        names.add(name)
        body = found[2] if name in keep else f"\n{parts[name]().strip()}\n\n"
        return f"<!-- generated: {name} -->\n{body}<!-- end of generated -->"

    return _PART.sub(make, text), names


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table. Bars and line ends in cells are escaped."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def plain(docstring: str | None) -> str:
    """A docstring as Markdown: one paragraph a paragraph, double backticks as single ones."""
    paragraphs = (docstring or "").strip().split("\n\n")
    text = "\n\n".join(" ".join(part.split()) for part in paragraphs).replace("``", "`")
    return re.sub(r":(?:mod|class|func|data):`~?([^`]+)`", r"`\1`", text)
