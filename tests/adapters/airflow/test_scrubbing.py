"""Nothing that was handed to a load comes back out, in any spelling."""

from __future__ import annotations

import json
from urllib.parse import quote, quote_plus

import pytest

from dpone import Connection
from dpone.adapters.airflow.scrubbing import Scrubber

PASSWORD = "gé heim/w:rt@7\t"


@pytest.fixture
def scrubber() -> Scrubber:
    scrubber = Scrubber()
    scrubber.learn(Connection("shop", "db.example", password=PASSWORD, params={"token": "tok3n-value", "timeout": 30}))
    return scrubber


@pytest.mark.parametrize(
    "spelled",
    [PASSWORD, quote(PASSWORD, safe=""), quote_plus(PASSWORD), json.dumps(PASSWORD), repr(PASSWORD), "tok3n-value"],
)
def test_a_secret_is_hidden_in_every_spelling(spelled: str, scrubber: Scrubber) -> None:
    inner = spelled.strip("'\"")
    shown = scrubber.data({"line": f"failed with {spelled} at db.example", "list": [spelled]})
    assert inner not in shown["line"]
    assert inner not in shown["list"][0]
    assert "db.example" in shown["line"]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("--ledger postgresql://me:pass@host/db --x", "--ledger postgresql://me:***@host/db --x"),
        ("postgresql://host/db?password=pass&schema=s", "postgresql://host/db?password=***&schema=s"),
        ("https://host/path:8@9", "https://host/path:8@9"),
        ("at 12:30 me@host", "at 12:30 me@host"),
    ],
)
def test_a_password_in_a_url_is_hidden_though_nobody_knows_it(said: str, shown: str) -> None:
    assert Scrubber().text(said) == shown


def test_a_word_that_everybody_guesses_does_not_blank_the_log() -> None:
    scrubber = Scrubber()
    scrubber.learn(Connection("shop", "db.example", password="a"))
    assert scrubber.text("a line") == "a line"
