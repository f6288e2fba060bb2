"""The old server."""

from __future__ import annotations

from tests.servers.sessions import clickhouse

__all__ = ["clickhouse"]
