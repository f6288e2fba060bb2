"""The configuration of one replica: who its neighbours are, who may log in, what it keeps where.

Rights live in ``users.xml``: 18.16 has no GRANT. What it can restrict, and what only looks as if (what the users
below rely on is held by ``tests/servers/test_rights.py``):

* ``allow_databases`` holds for every statement, ON CLUSTER and ``remote()`` included, and for CREATE DATABASE by name;
  ``system`` is always allowed, and shows tables of allowed databases only. In an allowed one a user may do anything.
* ``readonly`` 1 and 2 refuse INSERT, DDL and SYSTEM, and cannot be raised. With 1 the settings that a client sends are
  *silently ignored*, also its limits: whoever must set limits needs 2. Under 2 a temporary table and KILL QUERY of
  the user's own queries remain possible.
* ``allow_ddl`` 0 is no protection: SET may not raise it, a setting sent beside the statement may.
* Constraints on single settings, rights on single tables or columns: not in this version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

CLUSTER: Final = "replay_cluster"


@dataclass(frozen=True, slots=True)
class Passwords:
    """Of the users that are not ``default``; servers are only told their SHA-256."""

    dpone: str = field(repr=False)
    dpone_reader: str = field(repr=False)
    source_reader: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Topology:
    """Loopback ports of all servers; a replica's place in ``native`` and ``interserver`` is its number minus one."""

    keeper: int
    native: tuple[int, ...]
    interserver: tuple[int, ...]
    passwords: Passwords
    databases: tuple[str, ...] = ()
    """The only ones for ``dpone`` and ``dpone_reader``, as ``source`` for ``source_reader``; none named: all."""


_CONFIG: Final = """<yandex>
  <logger><level>information</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog>
    <size>50M</size><count>2</count></logger>
  <listen_host>127.0.0.1</listen_host>
  <tcp_port>{port}</tcp_port>
  <interserver_http_host>127.0.0.1</interserver_http_host>
  <interserver_http_port>{interserver}</interserver_http_port>
  <path>{folder}/data/</path>
  <tmp_path>{folder}/tmp/</tmp_path>
  <user_files_path>{folder}/files/</user_files_path>
  <format_schema_path>{folder}/format_schemas/</format_schema_path>
  <users_config>{folder}/users.xml</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
  <mark_cache_size>67108864</mark_cache_size>
  <timezone>UTC</timezone>
  <mlock_executable>false</mlock_executable>
  <zookeeper>
    <node><host>127.0.0.1</host><port>{keeper}</port></node>
    <session_timeout_ms>10000</session_timeout_ms>
  </zookeeper>
  <macros><cluster>{cluster}</cluster><shard>01</shard><replica>replica_{number}</replica></macros>
  <distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>
  <remote_servers>
{clusters}
  </remote_servers>
  <query_log><database>system</database><table>query_log</table>
    <flush_interval_milliseconds>1000</flush_interval_milliseconds></query_log>
</yandex>
"""


def config_xml(topology: Topology, number: int, folder: Path) -> str:
    """``config.xml`` of the replica with this number, which keeps everything in ``folder`` (absolute).

    Besides the cluster itself it knows two that a careful program refuses: ``two_shards`` and
    ``external_replication``, made of the same servers.
    """
    clusters = (
        _cluster(CLUSTER, [topology.native], internal=True),
        _cluster("two_shards", [(port,) for port in topology.native], internal=True),
        _cluster("external_replication", [topology.native], internal=False),
    )
    return _CONFIG.format(
        folder=folder,
        number=number,
        cluster=CLUSTER,
        port=topology.native[number - 1],
        interserver=topology.interserver[number - 1],
        keeper=topology.keeper,
        clusters="\n".join(clusters),
    )


def _cluster(name: str, shards: Sequence[Sequence[int]], *, internal: bool) -> str:
    flag = f"<internal_replication>{str(internal).lower()}</internal_replication>"
    members = [
        "".join(f"<replica><host>127.0.0.1</host><port>{port}</port></replica>" for port in ports) for ports in shards
    ]
    return f"    <{name}>" + "".join(f"<shard>{flag}{member}</shard>" for member in members) + f"</{name}>"


_USERS: Final = """<yandex>
  <profiles>
    <default><max_threads>2</max_threads><background_pool_size>4</background_pool_size>
      <allow_experimental_low_cardinality_type>1</allow_experimental_low_cardinality_type></default>
    <reading><readonly>2</readonly><max_threads>2</max_threads></reading>
  </profiles>
  <quotas><default></default></quotas>
  <users>
    <default><password></password>{common}<profile>default</profile></default>
    <dpone><password_sha256_hex>{dpone}</password_sha256_hex>{common}
      <profile>default</profile>{target}</dpone>
    <dpone_reader><password_sha256_hex>{dpone_reader}</password_sha256_hex>{common}
      <profile>reading</profile>{target}</dpone_reader>
    <source_reader><password_sha256_hex>{source_reader}</password_sha256_hex>{common}
      <profile>reading</profile>{source}</source_reader>
  </users>
</yandex>
"""
_COMMON: Final = "<networks><ip>127.0.0.1</ip></networks><quota>default</quota>"


def users_xml(topology: Topology) -> str:
    """``users.xml``: ``default`` without a password from loopback only, the product's user, and two that only read."""
    passwords, restricted = topology.passwords, bool(topology.databases)
    return _USERS.format(
        common=_COMMON,
        dpone=_sha256(passwords.dpone),
        dpone_reader=_sha256(passwords.dpone_reader),
        source_reader=_sha256(passwords.source_reader),
        target=_allowed(topology.databases),
        source=_allowed(("source",) if restricted else ()),
    )


def _allowed(databases: Sequence[str]) -> str:
    names = "".join(f"<database>{name}</database>" for name in databases)
    return f"<allow_databases>{names}</allow_databases>" if names else ""


def _sha256(password: str) -> str:
    return hashlib.sha256(password.encode()).hexdigest()
