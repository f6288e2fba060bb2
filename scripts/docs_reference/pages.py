"""A page's generated parts, found and made anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from .quotations import quotation

_PART = re.compile(r"<!-- generated: ([^>\n]+) -->\n(.*?)<!-- end of generated -->", re.DOTALL)


def renewed(
    text: str, parts: Mapping[str, Callable[[], str]], keep: frozenset[str], failed: list[str]
) -> tuple[str, set[str]]:
    """The page with its parts made anew, except those to ``keep``; and the names that it holds.

    A name ``code PATH: NAME`` quotes the repository's own code. A part that cannot be made stays as it is and is told
    in ``failed``, so that one fault does not hide the others.
    """
    names: set[str] = set()

    def make(found: re.Match[str]) -> str:
        name = found[1]
        names.add(name)
        if name in keep:
            return found[0]
        try:
            made = quotation(name.removeprefix("code ")) if name.startswith("code ") else parts[name]()
        except Exception as error:
            failed.append(f"cannot be made: {name}: {type(error).__name__}: {error}")
            return found[0]
        return f"<!-- generated: {name} -->\n\n{made.strip()}\n\n<!-- end of generated -->"

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
