"""Servers for the stores that need one."""

from tests.servers.sessions import postgres, zookeeper

__all__ = ["postgres", "zookeeper"]
