"""The URL of a ledger in PostgreSQL: libpq's own form, and the schema that holds the ledger.

``postgresql://[user[:password]@][host][:port]/database[?schema=dpone&sslmode=verify-full…]``. What is left out comes
from libpq's own variables and files (``PGPASSWORD``, ``PGPASSFILE``, ``PGSSLMODE``, …), so a password need not stand in
the URL. No message quotes any part of a URL but the names of the database and the schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode

from ..domain.errors import ErrorCode, LedgerFailed

DEFAULT_SCHEMA: Final = "dpone"
_SCHEMA = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_FORM: Final = "Use --ledger 'postgresql://user@host:5432/database?schema=dpone', with the password in PGPASSFILE."
_ALLOWED: Final = frozenset(
    {
        "schema",
        "host",
        "hostaddr",
        "port",
        "dbname",
        "user",
        "password",
        "passfile",
        "sslmode",
        "sslrootcert",
        "sslcert",
        "sslkey",
        "sslcrl",
        "sslnegotiation",
        "channel_binding",
        "require_auth",
        "gssencmode",
        "krbsrvname",
        "target_session_attrs",
    }
)
"""What may stand in the URL's query. ``options`` may not: it could weaken what an append relies on."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a ledger lies. ``parameters`` are libpq's and may hold a password: they are never shown."""

    parameters: Mapping[str, Any] = field(repr=False)
    schema: str

    @property
    def name(self) -> str:
        """How sentences call this ledger: the database and the schema."""
        database = self.parameters.get("dbname")
        return f"{database}/{self.schema}" if database else f"in schema {self.schema}"


def parse(rest: str, default_schema: str = DEFAULT_SCHEMA) -> Place:
    """What follows ``postgresql://``. Raises LedgerFailed (REQUEST_INVALID), quoting nothing."""
    from psycopg import Error
    from psycopg.conninfo import conninfo_to_dict

    path, _, query = rest.partition("?")
    try:
        given = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), errors="strict")
    except ValueError as error:
        raise refused("what follows the question mark is not a list of name=value") from error
    schema = _checked(given, default_schema)
    ours = urlencode([pair for pair in given if pair[0] != "schema"], quote_via=quote)
    try:
        parameters = conninfo_to_dict(f"postgresql://{path}?{ours}" if ours else f"postgresql://{path}")
    except (Error, ValueError):
        raise refused("PostgreSQL's library does not understand it") from None  # its message quotes the URL
    if not parameters.get("dbname"):
        raise refused("it names no database")
    return Place(parameters, schema)


def _checked(given: list[tuple[str, str]], default_schema: str) -> str:
    names = [name for name, _ in given]
    if len(set(names)) != len(names):
        raise refused("a parameter stands twice in it")
    if not set(names) <= _ALLOWED:
        raise refused("it has a parameter that is not allowed")
    schema = dict(given).get("schema", default_schema)
    if not _SCHEMA.fullmatch(schema) or schema == "information_schema":
        raise refused("its schema is not lower-case letters, digits and _, at most 63 of them")
    return schema


def refused(problem: str) -> LedgerFailed:
    """The URL cannot be meant."""
    return LedgerFailed(ErrorCode.REQUEST_INVALID, f"The ledger's URL is wrong: {problem}.", next=_FORM)
