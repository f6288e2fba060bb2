"""The servers that the canaries are read from."""

from __future__ import annotations

from tests.servers.sessions import clickhouse, postgres, zookeeper

__all__ = ["clickhouse", "postgres", "zookeeper"]
