"""A short random campaign with a fixed seed; scripts/faults and scripts/soak run the same at length."""

from __future__ import annotations

import pytest
from scripts.cluster_servers.clickhouse import is_installed as clickhouse_is_installed
from scripts.cluster_servers.zookeeper import is_installed as zookeeper_is_installed

from tests.servers.required import require

from .__main__ import main


@pytest.mark.parametrize("seed", [7, 8])
def test_half_a_minute_of_faults(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    require(clickhouse_is_installed(), "clickhouse-server")
    require(zookeeper_is_installed(), "ZooKeeper")
    assert main(["--minutes", "0.5", "--rounds", "6", "--targets", "2", "--seed", str(seed)]) == 0
    assert "all COMPLETE" in capsys.readouterr().out
