"""The engine's words are not passed on: they may quote values, paths and names."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpone.adapters.clickhouse import EmbeddedPlatform, folder
from dpone.adapters.clickhouse.engine_errors import engine_failed
from dpone.domain.errors import EngineFailed, ErrorCode
from dpone.domain.tables import Column, TableDefinition, TargetRef

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize(
    ("said", "code", "engine_code"),
    [
        ("Code: 6. DB::Exception: Cannot parse 'secret' as UInt8. (CANNOT_PARSE_TEXT)", ErrorCode.INTERNAL, 6),
        ("Code: 6. DB::Exception: 'No space left on device secret'. (CANNOT_PARSE_TEXT)", ErrorCode.INTERNAL, 6),
        ("Code: 243. DB::Exception: secret. (NOT_ENOUGH_SPACE)", ErrorCode.STORAGE_FULL, 243),
        ("Code: 75. DB::Exception: /secret, errno: 28, strerror: No space. (X)", ErrorCode.STORAGE_FULL, 75),
        ("Streaming insert append failed: filesystem error: No space left on device", ErrorCode.STORAGE_FULL, None),
        ("Code: 359. DB::Exception: secret is too big. (TABLE_SIZE_EXCEEDS_MAX_DROP)", ErrorCode.INTERNAL, 359),
        ("Code: 76. DB::Exception: /secret, errno: 30, strerror: Read-only file system", ErrorCode.INTERNAL, 76),
        ("secret (SECRET_NAME)", ErrorCode.INTERNAL, None),
    ],
)
def test_a_sentence_of_ours_with_the_engines_code(said: str, code: ErrorCode, engine_code: int | None) -> None:
    error = engine_failed(RuntimeError(said), "trying")
    assert (error.code, error.engine_code) == (code, engine_code)
    assert "secret" not in f"{error.what} {error.safe} {error.next}".lower()


def test_the_codes_name_is_told() -> None:
    error = engine_failed(RuntimeError("Code: 57. DB::Exception: x. (TABLE_ALREADY_EXISTS)"), "creating a table")
    assert (
        error.what == "A statement failed (creating a table): the engine answered with code 57 (TABLE_ALREADY_EXISTS)."
    )


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = os.geteuid() == 0 and _run("mount", "-t", "tmpfs", "-o", "size=12m", "none", str(place))
    if not mounted:
        pytest.skip("mounting a small file system needs root")
    yield place
    _run("umount", "-l", str(place))


@pytest.mark.parametrize("batches", [8, 20])  # one part that fails at the very end; several, of which one fails early
def test_a_full_disk_is_said_and_what_was_there_stays(small_disk: Path, batches: int) -> None:
    platform = EmbeddedPlatform(small_disk / "engine")
    columns = (Column("b", "String"),)
    platform.create("db", "kept", TableDefinition(columns))
    platform.create("db", "t", TableDefinition(columns))
    platform.fill("db", "kept", columns, [pa.record_batch([pa.array(["a"])], ["b"])])
    noise = pa.record_batch([pa.array([os.urandom(1000) for _ in range(2000)])], ["b"])
    try:
        with pytest.raises(EngineFailed) as caught:
            platform.fill("db", "t", columns, [noise] * batches)
        assert caught.value.code is ErrorCode.STORAGE_FULL
        assert platform.row_count("db", "kept") == {"embedded": 1}
    finally:
        platform.release()


def _filled_up(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(b"x" * 4096)


def test_nothing_is_created_on_a_disk_that_is_full_from_the_start(small_disk: Path) -> None:
    _filled_up(small_disk)
    assert _errors(small_disk / "engine").code is ErrorCode.STORAGE_FULL


@pytest.mark.parametrize("noticed", ["before", "after"])
def test_a_full_disk_does_not_cost_the_folder(small_disk: Path, noticed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine would write an empty metadata file, report success, and never open again."""
    platform = EmbeddedPlatform(small_disk / "engine")
    definition = TableDefinition((Column("a", "Int8"),))
    platform.create("db", "kept", definition)
    _filled_up(small_disk)
    if noticed == "after":  # the disk filled up between looking and creating
        monkeypatch.setattr(folder, "is_full", lambda _: False)
    try:
        with pytest.raises(EngineFailed) as caught:
            platform.create("db", "t", definition)
        platform.release()
        (small_disk / "filler").unlink()
        assert set(platform.look(TargetRef("", "db", "kept"))[0].tables) == {"kept"}
        assert platform.look(TargetRef("", "db", "t"))[0].tables == {}
    finally:
        platform.release()
    assert caught.value.code is ErrorCode.STORAGE_FULL


def test_a_read_only_folder_is_said(small_disk: Path) -> None:
    if not _run("mount", "-o", "remount,ro", str(small_disk)):
        pytest.skip("remounting is not allowed here")
    error = _errors(small_disk / "engine")
    assert "cannot be created" in error.what
    assert str(small_disk) not in error.what
    assert "read-only" in _errors(small_disk).what


def test_a_file_in_place_of_the_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "engine").touch()
    assert "is not a folder" in _errors(tmp_path / "engine").what
    assert "cannot be created" in _errors(tmp_path / "engine" / "deeper").what
    assert "question mark" in _errors(tmp_path / "what?mode=ro").what


def test_a_configuration_in_the_current_folder_is_not_the_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.xml").write_text("<clickhouse><broken")
    platform = EmbeddedPlatform(Path("engine"))
    platform.create("db", "t", TableDefinition((Column("a", "Int8"),)))
    platform.release()
    assert Path.cwd() == tmp_path


def _errors(place: Path) -> EngineFailed:
    with pytest.raises(EngineFailed) as caught:
        EmbeddedPlatform(place).acquire()
    return caught.value


def _run(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, timeout=10, check=False).returncode == 0


def test_a_program_that_has_opened_the_engine_for_itself_is_told_so(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from chdb.session import Session\n"
        "from dpone.adapters.clickhouse.embedded import EmbeddedPlatform; from dpone.domain.errors import EngineBusy\n"
        "theirs = Session(sys.argv[1]); theirs.query('SELECT 1'); ours = EmbeddedPlatform(Path(sys.argv[2]))\n"
        "try: ours.acquire()\n"
        "except EngineBusy as error: print(error.what)\n"
        "theirs.close(); ours.acquire(); ours.release()\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "theirs"), str(tmp_path / "ours")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "for something else" in done.stdout
