"""Full, failing and read-only disks: real file systems that only the test's own processes see."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_PRELUDE = """
import sys
from pathlib import Path
from dpone.domain.errors import LedgerFailed
from dpone.ledger.sqlite import sqlite_url
from dpone.ledger.store import open_ledger
from dpone.ledger.verify import verify_ledger
from tests.ledger.events import CODEC
from tests.ledger.events import some
disk = Path(sys.argv[1])
url = sqlite_url(disk / "ledger.sqlite")
"""


def on_a_disk_of_its_own(tmp_path: Path, options: str, script: str, then: str = "true", last: str = "") -> list[str]:
    """Run ``script``, then a shell command, then ``last``, with a file system that only these processes see."""
    disk = tmp_path / "disk"
    disk.mkdir()
    parts = [_PRELUDE + textwrap.dedent(text) for text in (script, last)]
    shell = f'mount -t tmpfs -o {options} tmpfs "$1" && "$2" -c "$3" "$1" && {then} && exec "$2" -c "$4" "$1"'
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", shell, "sh", str(disk), sys.executable, *parts],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def _can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    probe = ["unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(probe, capture_output=True, timeout=30, check=False).returncode == 0


needs_mount = pytest.mark.skipif(not _can_mount(), reason="this user may not mount a file system of its own")


@needs_mount
def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    got = on_a_disk_of_its_own(
        tmp_path,
        "size=512k",
        """
        with open_ledger(url, create=True, codec=CODEC) as ledger:
            stored = 0
            try:
                while stored < 10_000:
                    ledger.append([some()])
                    stored += 1
            except LedgerFailed as error:
                print(error.code, error.what)
            print(stored, ledger.position(), verify_ledger(ledger).passed)
        """,
        last="""
        with open_ledger(url, create=False, codec=CODEC) as ledger:
            print(ledger.position(), verify_ledger(ledger).passed)
        """,
    )
    assert got[0] == "DPONE_STORAGE_FULL The disk of the ledger ledger.sqlite is full or fails to write."
    stored, position, held = got[1].split()
    assert (stored, held) == (position, "True")
    assert got[2] == f"{stored} True"


@needs_mount
def test_no_room_for_a_new_ledger(tmp_path: Path) -> None:
    got = on_a_disk_of_its_own(
        tmp_path,
        "size=16k",
        """
        try:
            open_ledger(url, create=True, codec=CODEC)
        except LedgerFailed as error:
            print(error.code, [item.name for item in disk.iterdir()])
        """,
    )
    assert got == ["DPONE_STORAGE_FULL []"]


@needs_mount
def test_a_read_only_disk(tmp_path: Path) -> None:
    got = on_a_disk_of_its_own(
        tmp_path,
        "size=1m",
        "open_ledger(url, create=True, codec=CODEC).close()",
        'mount -o remount,ro "$1"',
        """
        for name in (url, sqlite_url(disk / "new" / "ledger.sqlite")):
            try:
                open_ledger(name, create=True, codec=CODEC).append([some()])
            except LedgerFailed as error:
                print(error.code, error.what)
        """,
    )
    assert [line.split()[0] for line in got] == ["DPONE_LEDGER_UNREACHABLE"] * 2
    assert all("read-only" in line or "cannot be opened" in line for line in got)


def test_a_failing_disk_leaves_the_outcome_unknown_and_nothing_half_done(tmp_path: Path) -> None:
    """The file may not grow (EFBIG): to SQLite an input/output error at commit, whose outcome nobody promises."""
    script = _PRELUDE + textwrap.dedent("""
        import resource
        with open_ledger(url, create=True, codec=CODEC) as ledger:
            ledger.append([some()])
            resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, resource.RLIM_INFINITY))
            stored = 1
            try:
                while stored < 10_000:
                    ledger.append([some()])
                    stored += 1
            except LedgerFailed as error:
                print(type(error).__name__, error.code)
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            print(stored == ledger.position(), verify_ledger(ledger).passed)
            ledger.append([some()])
        with open_ledger(url, create=False, codec=CODEC) as ledger:
            print(stored + 1 == ledger.position(), verify_ledger(ledger).passed)
        """)
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["AppendUnknown DPONE_STORAGE_FULL", "True True", "True True"]
