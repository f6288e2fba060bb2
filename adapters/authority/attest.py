"""``platform attest``: do all replicas share one Keeper? A node is written through a Keeper client of our own, and each
replica must show it, with the same value and the same transaction id.

What a server says of its own session is not trusted: after a freeze it may say that all is well. The node is removed
again; the folder ``/clickhouse/dpone/attest`` stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import uuid4

from ...domain import platform_events as p
from ...domain.identity import platform_stream
from ...domain.ports import StreamAppend
from ..clickhouse.quoting import literal
from .asked import Answer, Asked, OpenLedger
from .belonging import first_markers, opened, platform_of
from .keeper import keeper_hosts, node_in_keeper
from .refusals import not_admitted
from .topology import Topology, discover, endpoint_of, session_on

FOLDER: Final = "/clickhouse/dpone/attest"
_ABOVE: Final = (("/", "clickhouse"), ("/clickhouse", "dpone"), ("/clickhouse/dpone", "attest"))


def attest(asked: Asked, open_ledger: OpenLedger, keeper: str, environ: Mapping[str, str]) -> Answer:
    """Attest that the replicas share the Keeper at ``keeper`` (``host:port,…``, with an optional ``/chroot``).

    Raises DponeError: REQUEST_INVALID; NOT_ADMITTED for a replica that shows another node or none; REPLICA_UNREACHABLE.
    """
    hosts = keeper_hosts(keeper)
    markers = first_markers(asked)
    topology = discover(asked.connection, asked.cluster)
    with opened(open_ledger) as ledger:
        platform, _ = platform_of(ledger, markers)
        path, czxid, seen = _seen(asked, topology, keeper, environ)
        event = p.KeeperAttested(at=asked.now(), path=path, czxid=czxid, seen=seen, keeper=hosts, by=asked.by)
        ledger.append([StreamAppend(platform_stream(platform.platform_id), platform.version, (event,))])
    change = f"All {len(seen)} replicas showed the same node under the same transaction id; recorded in the ledger."
    return Answer((change,), {"path": path, "czxid": czxid, "seen": seen})


def _seen(asked: Asked, topology: Topology, keeper: str, environ: Mapping[str, str]) -> tuple[str, str, dict[str, str]]:
    nonce, value = str(uuid4()), str(uuid4())
    with node_in_keeper(keeper, FOLDER, nonce, value, environ) as czxid:
        shown = {replica.name: _shown(asked, replica, nonce) for replica in topology.replicas}
    blind = [name for name, found in shown.items() if found != (value, czxid)]
    if blind:
        raise not_admitted(
            f"{len(blind)} of {len(shown)} replicas do not share this Keeper.",
            "Check --keeper and the <zookeeper> section of these servers, then repeat the same command.",
            [f"Replica {name} does not show the node that was written through this Keeper." for name in blind],
        )
    return f"{FOLDER}/{nonce}", str(czxid), dict.fromkeys(shown, str(czxid))


def _shown(asked: Asked, replica: p.AdmittedReplica, nonce: str) -> tuple[str, int] | None:
    """Value and transaction id as this replica's own Keeper session shows them."""
    with session_on(asked.connection, endpoint_of(replica)) as session:
        for folder, name in _ABOVE:  # to list a folder that is not there is an error of the server
            if not session.query(f"SELECT name FROM system.zookeeper WHERE path = '{folder}' AND name = '{name}'"):
                return None
        rows = session.query(
            f"SELECT value, toInt64(czxid) AS czxid FROM system.zookeeper WHERE path = '{FOLDER}' "
            f"AND name = {literal(nonce)}"
        )
    return (str(rows[0]["value"]), int(rows[0]["czxid"])) if rows else None
