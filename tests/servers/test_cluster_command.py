"""``scripts/cluster``: up, status, down; what it refuses; and that nothing is left of it."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scripts.cluster_servers.clickhouse import execute
from scripts.cluster_servers.clickhouse import is_installed as clickhouse_is_installed
from scripts.cluster_servers.process import start_time
from scripts.cluster_servers.server import free_ports
from scripts.cluster_servers.zookeeper import is_installed as zookeeper_is_installed

from .required import require

CHECKOUT = Path(__file__).resolve().parents[2]
SERVERS = ("zookeeper", "replica_1", "replica_2")
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "cluster"


@pytest.fixture
def command(home: Path) -> Iterator[Command]:
    """Types ``scripts/cluster …`` (without its environment's set-up) for the folder ``home``."""
    require(clickhouse_is_installed(), "clickhouse-server")
    require(zookeeper_is_installed(), "ZooKeeper")

    def typed(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "scripts.cluster_servers", *words],
            cwd=CHECKOUT,
            env={**os.environ, "DPONE_CLUSTER_HOME": str(home)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    yield typed
    typed("down")


def free_port() -> int:
    """The first of thirteen ports that nobody listens on."""
    return next(port for port in free_ports(100) if not any(map(listens, range(port, port + 13))))


def processes(home: Path) -> list[tuple[int, int]]:
    """Id and start time of every server."""
    pairs = [(home / server / "process").read_text().split() for server in SERVERS]
    return [(int(pid), int(began)) for pid, began in pairs]


def running() -> list[str]:
    """The command line of every process of this machine."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(file.read_text(errors="replace").replace("\0", " "))
    return found


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_up_status_down_and_nothing_is_left(command: Command, home: Path) -> None:
    port = free_port()
    up = command("up", "--port", str(port))
    assert (up.returncode, up.stderr) == (0, "")
    assert f"source {shlex.quote(str(home / 'env'))}" in up.stdout
    found = processes(home)
    assert [start_time(pid) for pid, _ in found] == [began for _, began in found]
    assert execute(port + 1, "SELECT count(), uniqExact(record_id) FROM source.records") == [(240, 240)]
    assert execute(port + 2, "SELECT count() FROM system.databases WHERE name = 'analytics'") == [(1,)]

    assert command("up").returncode == 0
    assert processes(home) == found
    assert execute(port + 1, "SELECT count() FROM source.records") == [(240,)]

    status = command("status")
    assert status.returncode == 0
    assert [line.split()[:3] for line in status.stdout.splitlines()[1:]] == [
        [server, "ready", str(number)] for server, number in zip(SERVERS, range(port, port + 3), strict=True)
    ]

    assert command("down").returncode == 0
    assert not home.exists()
    assert [start_time(pid) for pid, _ in found] == [None] * 3
    assert not any(map(listens, range(port, port + 13)))
    assert command("status").returncode == 1
    assert command("down").returncode == 0


def test_what_a_shell_sources_reaches_the_cluster_and_stays_private(command: Command, home: Path) -> None:
    port = free_port()
    up = command("up", "--port", str(port))
    env = home / "env"
    assert [stat.S_IMODE((home / name).stat().st_mode) for name in ("env", "cluster.json", "replica_1/users.xml")] == [
        0o600
    ] * 3
    shown = subprocess.run(["bash", "-c", f". {env}; env"], capture_output=True, text=True, check=True, timeout=10)
    variables = dict(line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line)
    password = variables["DPONE_CONN_REPLAY_TARGET_PASSWORD"]
    assert variables["DPONE_LEDGER"] == f"keeper://127.0.0.1:{port}/dpone"
    for reference in ("SOURCE", "TARGET"):
        prefix = f"DPONE_CONN_REPLAY_{reference}_"
        rows = execute(
            int(variables[prefix + "PORT"]),
            "SELECT currentDatabase()",
            user=variables[prefix + "USERNAME"],
            password=variables[prefix + "PASSWORD"],
        )
        assert rows == [("default",)]
    assert password not in up.stdout + up.stderr + (home / "replica_1" / "users.xml").read_text()


def test_kept_data_is_there_again(command: Command, home: Path) -> None:
    port = free_port()
    command("up", "--port", str(port))
    execute(port + 1, "CREATE TABLE analytics.kept ENGINE = Log AS SELECT 1 AS n")
    env = (home / "env").read_text()
    assert command("down", "--keep").returncode == 0
    assert command("status").returncode == 1
    assert command("up").returncode == 0
    assert execute(port + 1, "SELECT n FROM analytics.kept") == [(1,)]
    assert (home / "env").read_text() == env


def test_up_repairs_what_is_missing(command: Command, home: Path) -> None:
    port = free_port()
    command("up", "--port", str(port))
    keeper, first, second = processes(home)
    os.kill(second[0], signal.SIGKILL)
    os.kill(first[0], signal.SIGSTOP)
    broken = command("status")
    assert broken.returncode == 1
    assert [line.split()[1] for line in broken.stdout.splitlines()[1:]] == ["ready", "frozen", "not"]
    assert command("up").returncode == 0
    assert processes(home)[:2] == [keeper, first]
    assert processes(home)[2] != second


def test_a_port_that_is_taken_is_named_and_nothing_is_started(command: Command, home: Path) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port + 2)):
        refused = command("up", "--port", str(port))
    assert refused.returncode == 1
    assert f"Port {port + 2}, for replica_2, is taken" in refused.stderr
    assert f"up --port {port + 100}" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert not home.exists()


def test_a_folder_with_other_things_is_left_alone(command: Command, home: Path) -> None:
    home.mkdir()
    (home / "letters").write_text("mine")
    assert command("up").returncode == 1
    assert command("down").returncode == 0
    assert [file.name for file in home.iterdir()] == ["letters"]


def test_a_process_that_took_over_the_number_is_not_touched(command: Command, home: Path) -> None:
    command("up", "--port", str(free_port()))
    pid = processes(home)[2][0]
    with subprocess.Popen(["sleep", "60"]) as stranger:
        (home / "replica_2" / "process").write_text(f"{stranger.pid} 1\n")
        try:
            assert command("down").returncode == 0
            assert stranger.poll() is None
        finally:
            os.kill(pid, signal.SIGKILL)
            stranger.kill()


@pytest.mark.parametrize("server", SERVERS)
def test_an_interrupted_up_leaves_no_server(command: Command, home: Path, server: str) -> None:
    up = subprocess.Popen(
        [sys.executable, "-m", "scripts.cluster_servers", "up", "--port", str(free_port())],
        cwd=CHECKOUT,
        env={**os.environ, "DPONE_CLUSTER_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 20
    while not (home / server / "server.log").exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    up.send_signal(signal.SIGINT)
    _, said = up.communicate(timeout=20)
    assert (up.returncode, said) == (130, "")
    assert [command for command in running() if str(home) in command] == []


@pytest.mark.parametrize("port", ["5", "70000", "many"])
def test_a_port_that_is_none_is_refused_in_a_few_words(command: Command, home: Path, port: str) -> None:
    refused = command("up", "--port", port)
    assert (refused.returncode, home.exists()) == (2, False)
    assert "from 1024 to 65000" in refused.stderr
    assert len(refused.stderr) < 400
