"""What no file of the project may say: it stands alone, on any machine, and holds no secret.

The words are put together here, so that this file does not say them itself.
"""

from __future__ import annotations

import re

import pytest

from .checkout import texts

FORBIDDEN = {
    "a machine's own folder": [
        "/" + "work/", "/" + "tmp/" + "w/", "/" + "root/", "/" + "home/" + r"[a-z]+/", "/" + "Users/" + r"[A-Za-z]+/",
        r"\.\./" + "shared",
    ],
    "the host of a package index": ["pypi" + r"\.org", "python" + "hosted", "index" + "-url", "proxy" + r"\.golang"],
    "a private key": ["BEGIN " + r"[A-Z ]*PRIVATE" + r" KEY-----\s+[A-Za-z0-9+/=\s]{100}"],
    "unfinished work": [f"(#|//|<!--) ?({'TO' + 'DO'}|{'FIX' + 'ME'}|{'X' * 3})"],
    "a conflict left by a merge": ["^<" + "<<<<<<", "^>" + ">>>>>>"],
}  # fmt: skip
TEXTS = list(texts())


def test_there_is_something_to_look_at() -> None:
    assert {"README.md", "pyproject.toml", "domain/steps.py"} <= {str(path) for path, _ in TEXTS}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_says(what: str) -> None:
    pattern = re.compile("|".join(FORBIDDEN[what]), re.MULTILINE)
    found = [
        f"{path}:{text[: hit.start()].count(chr(10)) + 1}" for path, text in TEXTS for hit in pattern.finditer(text)
    ]
    assert found == []


def test_lines_end_like_lines() -> None:
    """Except golden files and data, which are bytes on purpose."""
    source = [(path, text) for path, text in TEXTS if path.suffix in {".py", ".md", ".toml", ".yaml", ".yml", ""}]
    assert [str(path) for path, text in source if text and (not text.endswith("\n") or "\r" in text)] == []
