"""The cluster's tutorial, typed from its first line to its last on a cluster that its own script starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.cluster_servers.clickhouse import is_installed as clickhouse_is_installed
from scripts.cluster_servers.server import free_ports
from scripts.cluster_servers.zookeeper import is_installed as zookeeper_is_installed

from tests.servers.required import require

from .pages import ROOT, check_session, run

PAGE = ROOT / "docs" / "tutorial" / "cluster.md"


def _cluster(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.cluster_servers", *words],
        cwd=ROOT,
        env={**os.environ, "DPONE_CLUSTER_HOME": str(folder / ".cluster")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A checkout's folder with the cluster that the page's first command starts."""
    require(clickhouse_is_installed(), "clickhouse-server")
    require(zookeeper_is_installed(), "ZooKeeper")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    try:
        _cluster(tmp_path, "up", "--port", str(_port()))
        yield tmp_path
    finally:
        assert "nothing is left" in _cluster(tmp_path, "down")
    assert not (tmp_path / ".cluster").exists()


def _port() -> int:
    """The first of the few ports in a row that a cluster takes."""
    return free_ports(1)[0]


def test_the_tutorial_does_what_it_says(folder: Path) -> None:
    session = run(PAGE, folder)
    assert len(session) > 10
    check_session(session)
