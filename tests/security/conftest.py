"""The servers that the canaries are read from."""

from __future__ import annotations

from tests.servers.sessions import clickhouse, postgres, replicated_cluster, zookeeper

__all__ = ["clickhouse", "postgres", "replicated_cluster", "zookeeper"]
