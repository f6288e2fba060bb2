"""What is wrong outside: each gives a clear error, nothing is lost, and what was live stays live."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpone.adapters.cli.entry import run_command
from tests.cli.sandbox import CANARY, ROWS_GATE, Ended, Sandbox, ended, engine_rows, rows_of
from tests.cli.waiting import await_line


def _refused(done: Ended, code: int, error: str) -> None:
    assert (done.code, done.result["error_code"]) == (code, error), done
    assert done.document["passed"] is False
    assert done.details["safe"]
    assert done.details["next"]


def _remove(sandbox: Sandbox) -> None:
    sandbox.source.unlink()


def _make_folder(sandbox: Sandbox) -> None:
    sandbox.source.unlink()
    sandbox.source.mkdir()


def _empty(sandbox: Sandbox) -> None:
    sandbox.source.write_text("")


def _ragged(sandbox: Sandbox) -> None:
    with sandbox.source.open("a") as file:
        file.write(f"7,{CANARY}\n")


def _too_large_a_number(sandbox: Sandbox) -> None:
    with sandbox.source.open("a") as file:
        file.write(f"99999999999,{CANARY}-value,1.00,2026-01-01 00:00:00\n")


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (_remove, "DPONE_SOURCE_UNREADABLE"),
        (_make_folder, "DPONE_SOURCE_UNREADABLE"),
        (_empty, "DPONE_SOURCE_UNREADABLE"),
        (_ragged, "DPONE_SOURCE_UNREADABLE"),
        (_too_large_a_number, "DPONE_SOURCE_VALUE_REFUSED"),
    ],
)
def test_a_source_that_cannot_be_read(sandbox: Sandbox, spoil: Callable[[Sandbox], None], error: str) -> None:
    assert sandbox.run("r1").code == 0
    spoil(sandbox)
    _refused(sandbox.run("r2"), 1, error)
    assert engine_rows(sandbox.engine) == rows_of(1), "the live table is untouched"
    if sandbox.source.is_dir():
        sandbox.source.rmdir()
    sandbox.write_rows(rows_of(2))
    assert sandbox.run("r2").code == 0, "the same command, once the source is mended"
    assert engine_rows(sandbox.engine) == rows_of(2)


def test_zero_rows_are_a_result(sandbox: Sandbox) -> None:
    sandbox.write_rows([])
    done = sandbox.run()
    assert (done.code, done.result["final_rows"]) == (0, 0)
    assert engine_rows(sandbox.engine) == []


def test_a_file_that_changes_while_it_is_read(sandbox: Sandbox) -> None:
    record = sandbox.folder / "record"
    process = sandbox.composed(record, "freeze@fill#1:middle", sandbox.words())
    await_line(record, "point fill#1:middle")
    with sandbox.source.open("a") as file:
        file.write("9999,late,1.00,2026-01-01 00:00:00\n")
    process.send_signal(18)
    _refused(ended(process), 1, "DPONE_SOURCE_CHANGED")
    sandbox.write_rows(rows_of(1))
    assert sandbox.run().code == 0


def test_a_csv_without_types_is_refused_with_a_block_that_works(sandbox: Sandbox) -> None:
    manifest = json.loads(sandbox.manifest.read_text())
    del manifest["defaults"]["sink"]["columns"]
    sandbox.manifest.write_text(json.dumps(manifest))
    refused = sandbox.run()
    _refused(refused, 2, "DPONE_MANIFEST_INVALID")
    from ruamel.yaml import YAML

    block = YAML(typ="safe").load(refused.result["errors"][-1])
    manifest["defaults"]["sink"] |= block
    sandbox.manifest.write_text(json.dumps(manifest))
    assert sandbox.run().code == 0


def test_a_ledger_that_vanished_is_not_started_afresh(sandbox: Sandbox) -> None:
    assert sandbox.run("r1").code == 0
    sandbox.ledger.rename(sandbox.folder / "kept.sqlite")
    _refused(sandbox.run("r1"), 1, "DPONE_LEDGER_CORRUPT")
    assert not sandbox.ledger.exists()
    (sandbox.folder / "kept.sqlite").rename(sandbox.ledger)
    assert sandbox.run("r1").code == 0


def test_another_ledger_in_its_place_is_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    other = Sandbox(tmp_path / "other")
    other.folder.mkdir()
    other.write_rows(rows_of(1))
    other.write_manifest()
    for one in (sandbox, other):
        assert one.run("r1").code == 0
    shutil.copy(other.ledger, sandbox.ledger)
    _refused(sandbox.run("r1"), 1, "DPONE_LEDGER_CORRUPT")


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to be taken for one" * 100])
def test_a_ledger_that_cannot_be_read(sandbox: Sandbox, content: bytes) -> None:
    assert sandbox.run("r1").code == 0
    for companion in sandbox.home.glob("ledger.sqlite-*"):
        companion.unlink()
    sandbox.ledger.write_bytes(content)
    _refused(sandbox.run("r1"), 1, "DPONE_LEDGER_CORRUPT")
    assert sandbox.dpone("audit", "verify").code == 1


def test_an_engine_folder_that_is_damaged(sandbox: Sandbox) -> None:
    assert sandbox.run("r1").code == 0
    for definition in (sandbox.engine / "store").glob("*/*/rows.sql"):
        definition.write_text(f"{CANARY} is no table definition")
    failed = sandbox.run("r2")
    _refused(failed, 1, "DPONE_REPLAY_QUALITY_EVIDENCE_INVALID")
    assert "damaged" in failed.result["errors"][0]
    assert failed.err.count("\n") == 3, "the engine's own words are not passed on"


@pytest.mark.parametrize(
    "words",
    [["ops", "list"], ["ops", "explain", "12345678"], ["audit", "verify"]],
)
def test_commands_that_look_create_nothing(sandbox: Sandbox, words: list[str]) -> None:
    done = sandbox.dpone(*words, "--format", "json")
    assert (done.code, done.document["passed"]) == (1, False)
    assert not sandbox.home.exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MB, mounted for one test."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0 or not _runs("mount", "-t", "tmpfs", "-o", "size=24m", "none", str(place)):
        pytest.skip("mounting a small file system needs root")
    yield place
    _runs("umount", "-l", str(place))


def test_a_disk_that_fills_up_during_the_load(sandbox: Sandbox, small_disk: Path) -> None:
    sandbox.environment["DPONE_HOME"] = str(small_disk / "home")
    sandbox.write_manifest(gates=[ROWS_GATE])
    assert sandbox.run("r1").code == 0
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * _leaving(small_disk, 6_000_000))
    lines = (f"{n},{os.urandom(120).hex()},1.00,2026-01-01 00:00:00" for n in range(60_000))
    sandbox.source.write_text("id,name,amount,at\n" + "\n".join(lines) + "\n")
    failed = sandbox.run("r2")
    assert failed.code == 1
    assert "DPONE_STORAGE_FULL" in (failed.result["error_code"], failed.details.get("cause")), failed
    ballast.unlink()
    sandbox.write_rows(rows_of(2))
    assert sandbox.run("r2").code == 0, "the same command, once there is room"
    assert engine_rows(small_disk / "home" / "embedded" / "data") == rows_of(2)


def test_a_home_that_cannot_be_written(sandbox: Sandbox, small_disk: Path) -> None:
    sandbox.environment["DPONE_HOME"] = str(small_disk / "home")
    if not _runs("mount", "-o", "remount,ro", str(small_disk)):
        pytest.skip("remounting a file system needs root")
    done = sandbox.run()
    _refused(done, 2, "DPONE_REQUEST_INVALID")
    assert "read-only" in done.result["errors"][0]


def _leaving(place: Path, bytes_: int) -> int:
    free = os.statvfs(place)
    return max(0, free.f_bavail * free.f_frsize - bytes_)


def _runs(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("by", ["option", "environment"])
def test_a_password_in_the_ledgers_url_is_in_no_command_to_type_next(sandbox: Sandbox, by: str) -> None:
    url = "postgresql://u:s3cret@127.0.0.1:1/db"
    if by == "environment":
        sandbox.environment["DPONE_LEDGER"] = url
    failed = sandbox.run("r1") if by == "environment" else sandbox.dpone(*sandbox.words("r1"), "--ledger", url)
    _refused(failed, 1, "DPONE_LEDGER_UNREACHABLE")
    assert "dpone run " in failed.details["next"]
    assert "s3cret" not in failed.out + failed.err


def test_a_defect_is_one_document_and_no_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError(f"{CANARY} in an exception's own words")

    monkeypatch.setattr("dpone.adapters.runtime.settings.settings_from", broken)
    assert run_command(["ledger", "status", "--format", "json"]) == 1
    out, err = capsys.readouterr()
    failed = json.loads(out)
    assert (failed["command"], failed["passed"]) == ("ledger status", False)
    assert failed["result"]["error_code"] == "DPONE_INTERNAL"
    assert "RuntimeError" in failed["result"]["errors"][0]
    assert "Traceback" not in err
    assert CANARY not in out + err


@pytest.mark.parametrize("words", [[], ["ops"], ["ledger"]])
def test_a_command_without_words_prints_its_help_as_it_is(sandbox: Sandbox, words: list[str]) -> None:
    done = sandbox.dpone(*words)
    assert done.code == 2
    assert "\nCommands:\n" in done.err
    assert "DPONE_" not in done.err.partition("\n")[0]
