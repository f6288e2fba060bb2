"""An owner whose user sees the targets' database and the authority schema, and nothing else, can do everything."""

from __future__ import annotations

from scripts.cluster_servers.seed import ALLOWED_DATABASES

from dpone.adapters.authority.marker import DATABASE
from tests.servers.cluster import cluster

from .conftest import Owner


def test_the_rights_that_the_reference_lists_are_enough() -> None:
    assert set(ALLOWED_DATABASES) == {DATABASE, "analytics"}
    with cluster(ALLOWED_DATABASES) as restricted:
        for replica in restricted.replicas:
            replica.execute("CREATE DATABASE IF NOT EXISTS analytics")
        owner = Owner(restricted, f"keeper://{restricted.keeper.hosts}/rights", "analytics")
        owner.ready().publish()
        owner.exclude("replica_2")
        restricted.replicas[1].execute("DROP TABLE analytics.t")
        restricted.replicas[1].execute(f"DROP DATABASE {DATABASE}")
        owner.admit()
        owner.opened().ledger.close()
        assert owner.status()["agrees"] is True
        assert owner.adopt().changes == ()
        owner.revoke()
