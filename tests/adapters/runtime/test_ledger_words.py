"""A command to type next names the ledger, and never its password."""

from __future__ import annotations

import pytest

from dpone.adapters.runtime.ledger_words import ledger_words

SECRET = "s3cret"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:////home/a:b@c/ledger.sqlite", "sqlite:////home/a:b@c/ledger.sqlite"),
        ("keeper://one:2181,two:2181/dpone", "keeper://one:2181,two:2181/dpone"),
        ("keepermap://target/db", "keepermap://target/db"),
        ("postgresql://u@host:5432/db?schema=x", "postgresql://u@host:5432/db?schema=x"),
        ("postgresql://u:s3cret@host:5432/db?schema=x", "postgresql://u@host:5432/db?schema=x"),
        ("postgresql://:s3cret@host/db", "postgresql://@host/db"),
        ("postgresql://u:s3cret%40x@one:1,two:2/db", "postgresql://u@one:1,two:2/db"),
        ("postgresql://u@host/db?password=s3cret", "postgresql://u@host/db"),
        ("postgresql://u@host/db?PASSWORD=s3cret&schema=x", "postgresql://u@host/db?schema=x"),
        ("keeper://u:s3cret@host:2181/dpone", "keeper://u@host:2181/dpone"),
    ],
)
def test_a_typed_url_is_named_without_its_password(url: str, shown: str) -> None:
    assert ledger_words(url, {}) == ["--ledger", shown]
    assert ledger_words(url, {"DPONE_LEDGER": "sqlite:///other"}) == ["--ledger", shown]


@pytest.mark.parametrize("password", ["s3cret/x", "s3cret?x", "s3cret@x", "s3cret#x"])
def test_a_password_whose_end_cannot_be_told_hides_the_url(password: str) -> None:
    assert ledger_words(f"postgresql://u:{password}@host/db", {}) == []


def test_what_the_environment_says_with_a_password_need_not_be_said_again() -> None:
    url = f"postgresql://u:{SECRET}@host/db"
    assert ledger_words(url, {"DPONE_LEDGER": url}) == []
    assert ledger_words(None, {"DPONE_LEDGER": url}) == []
