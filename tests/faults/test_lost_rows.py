"""A server that lost a generation's rows and still shows its table: never published, never called proven."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.cli.sandbox import Sandbox, ended, engine_rows, engine_tables, opened_engine, rows_of
from tests.crash.evidence import ledger_findings, operation_of, record_of


@pytest.fixture
def second(sandbox: Sandbox) -> Sandbox:
    """One generation is live, the rows of the next one are ready."""
    assert sandbox.run("r1").code == 0
    sandbox.write_rows(rows_of(2))
    return sandbox


def killed_and_robbed(sandbox: Sandbox, record: Path, point: str) -> None:
    """The run dies at the point; then the new generation's table loses its rows."""
    killed = ended(sandbox.composed(record, f"kill@{point}", sandbox.words("r2")))
    assert killed.code == -signal.SIGKILL
    found = operation_of(sandbox, "r2")
    assert found is not None
    assert found.operation.generation is not None
    mine = (found.operation.generation.identities or {})["embedded"].id
    name = next(name for name, identity in engine_tables(sandbox.engine).items() if identity == mine)
    with opened_engine(sandbox.engine) as ask:
        ask(f"TRUNCATE TABLE db.`{name}`")


def test_before_dispatch_the_source_is_read_anew(second: Sandbox, tmp_path: Path) -> None:
    killed_and_robbed(second, tmp_path / "killed", "append CapsuleWritten#1:after")
    done = ended(second.composed(tmp_path / "finished", "none", second.words("r2")))
    assert done.code == 0, done
    assert record_of(tmp_path / "finished").source_opens == 1
    assert engine_rows(second.engine) == rows_of(2)
    assert ledger_findings(second) == []


@pytest.mark.parametrize(
    ("point", "live"),
    [("append PublicationDispatched#1:after", rows_of(1)), ("swap#1:after", [])],
    ids=["not sent", "sent"],
)
def test_after_dispatch_nothing_is_claimed(second: Sandbox, tmp_path: Path, point: str, live: list[object]) -> None:
    killed_and_robbed(second, tmp_path / "killed", point)
    for _ in range(2):
        stopped = second.run("r2")
        assert (stopped.code, stopped.result["error_code"]) == (1, "DPONE_REPLAY_QUALITY_EVIDENCE_INCOMPLETE")
        assert stopped.details["cause"] == "DPONE_PUBLICATION_UNKNOWN"
        assert "fewer rows" in stopped.result["errors"][0]
        assert "ops explain" in stopped.details["next"]
    assert engine_rows(second.engine) == live
    found = operation_of(second, "r2")
    assert found is not None
    assert found.operation.target_commit == "unknown"
    assert found.slot.holder is not None
    assert found.slot.holder.operation == str(found.stream)
    assert ledger_findings(second) == []
