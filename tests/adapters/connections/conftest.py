"""The servers without TLS, for what such a server must be refused for."""

from __future__ import annotations

from tests.servers.sessions import postgres

__all__ = ["postgres"]
