"""``dpone audit verify`` finds what was changed behind its back."""

from __future__ import annotations

import sqlite3
from uuid import UUID

import pytest

from tests.cli.sandbox import Sandbox


def test_an_untouched_ledger_holds(sandbox: Sandbox) -> None:
    assert sandbox.run().code == 0
    report = sandbox.dpone("audit", "verify", "--format", "json")
    assert (report.code, report.result["findings"]) == (0, [])
    assert report.result["events"] > 20


@pytest.mark.parametrize(("position", "share"), [(1, 0.5), (7, 0.9), (19, 0.1)])
def test_one_flipped_bit_is_found_and_named(sandbox: Sandbox, position: int, share: float) -> None:
    assert sandbox.run().code == 0
    stream, version = _flip(sandbox, position, share)
    report = sandbox.dpone("audit", "verify", "--format", "json")
    assert report.code == 1
    assert report.document["passed"] is False
    assert f"event {version} of stream {stream} (position {position})" in report.result["findings"][0]
    again = sandbox.run()
    if position > 2:  # not the platform's own stream
        assert again.code == 1
        assert again.result["error_code"] in ("DPONE_REPLAY_QUALITY_EVIDENCE_INVALID", "DPONE_LEDGER_CORRUPT")


def _flip(sandbox: Sandbox, position: int, share: float) -> tuple[str, int]:
    connection = sqlite3.connect(sandbox.ledger, isolation_level=None)
    try:
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        statements = [
            connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", name).fetchone()[0] for name in triggers
        ]
        for (name,) in triggers:
            connection.execute(f'DROP TRIGGER "{name}"')
        stream, version, state = connection.execute(
            "SELECT originator_id, originator_version, state FROM stored_events WHERE rowid = ?", (position,)
        ).fetchone()
        flipped = bytearray(state)
        flipped[int(len(flipped) * share)] ^= 1
        connection.execute("UPDATE stored_events SET state = ? WHERE rowid = ?", (bytes(flipped), position))
        for statement in statements:
            connection.execute(statement)
    finally:
        connection.close()
    return str(UUID(stream)), version
