"""The modern engine in this process as an SQL session over a real Keeper: one engine a process, a folder of its own."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from dpone.ledger import keepermap_layout as layout
from dpone.ledger.sql import SqlFailed

PORT_VARIABLE = "DPONE_TEST_KEEPER_PORT"
_CONFIG = """<clickhouse>
  <zookeeper><node><host>127.0.0.1</host><port>{port}</port></node>
    <session_timeout_ms>4000</session_timeout_ms><operation_timeout_ms>2000</operation_timeout_ms></zookeeper>
  <keeper_map_path_prefix>/keeper_map</keeper_map_path_prefix>
</clickhouse>"""


_ends: list[Callable[[], None]] = []


class EmbeddedSql:
    """Implements :class:`dpone.ledger.sql.SqlSession`. Closing it leaves the engine to the next one."""

    def __init__(self, engine: Any, lock: Lock) -> None:
        self.engine = engine
        self.lock = lock
        self.statements: list[str] = []

    def run(self, statement: str) -> Sequence[Sequence[str]]:
        self.statements.append(statement)
        with self.lock:
            try:
                answer = self.engine.query(statement, "JSONCompactStringsEachRow")
            except RuntimeError as error:
                raise failure(str(error)) from None
        return [json.loads(line) for line in answer.bytes().splitlines()]

    def close(self) -> None:
        """Nothing: a process has one engine, and other ledgers of this test may use it."""


def failure(text: str) -> SqlFailed:
    """What the engine says, as the protocol wants it."""
    code = text.partition("Code: ")[2].partition(".")[0]
    return SqlFailed(int(code) if code.isdecimal() else None, exists="Node exists" in text)


def connect(reference: str) -> EmbeddedSql:
    """A session, whatever the reference."""
    del reference
    engine, lock = _engine(int(os.environ[PORT_VARIABLE]))
    return EmbeddedSql(engine, lock)


def attach(database: str) -> None:
    """What a replica has after provisioning: the tables."""
    session = connect("")
    for statement in layout.creating(database):
        session.run(statement)


@cache
def _engine(port: int) -> tuple[Any, Lock]:
    from chdb.session import Session

    folder = Path(tempfile.mkdtemp(prefix="dpone-test-keepermap-"))
    config = folder / "config.xml"
    config.write_text(_CONFIG.format(port=port))
    engine = Session(f"{folder / 'data'}?config-file={config}")
    engine.query("SET max_query_size = 4194304")

    def end() -> None:
        engine.close()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    _ends.append(end)
    return engine, Lock()


def end_engine() -> None:
    """A process has one engine: leave the place to the tests of the embedded target."""
    while _ends:
        end = _ends.pop()
        atexit.unregister(end)
        end()
    _engine.cache_clear()
