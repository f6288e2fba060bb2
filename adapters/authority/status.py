"""``platform status``: what was admitted beside what the servers say now, one row a replica. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...domain.errors import EngineFailed
from ...domain.platform import Platform
from ...domain.platform_events import AdmittedReplica
from ..connections.connection import Connection
from .asked import Asked, OpenLedger
from .belonging import remembered
from .marker import Marker, read_markers
from .memory import only_platform
from .topology import Member, endpoint_of, members, read_macros, session_on

if TYPE_CHECKING:
    from ...ledger.store import EventLedger

UNKNOWN = "—"


def status(asked: Asked, open_ledger: OpenLedger) -> dict[str, Any]:
    """The platform and its replicas: ``items`` has one row each, ``differences`` one sentence for what does not agree.

    A replica that does not answer is a row like any other. Raises DponeError only where nothing can be told.
    """
    with remembered(open_ledger, asked) as ledger:
        platform = only_platform(ledger, asked.cluster, asked.connection.reference)
        items = [_row(asked.connection, ledger, platform, replica, state) for replica, state in _known(platform)]
        differences = [f"Replica {item['replica']}: {text}" for item in items for text in item["differences"]]
        try:
            found, _ = members(asked.connection, asked.cluster)
        except EngineFailed as error:
            differences.append(error.what)
        else:
            new = _new(asked.connection, platform, found)
            items += new
            differences += [f"Replica {item['replica']} of the cluster is not admitted." for item in new]
    if not platform.admitted:
        differences.insert(0, "No replica is admitted.")
    return {
        "platform_id": platform.platform_id,
        "cluster": platform.cluster,
        "databases": list(platform.databases) or "all",
        "ledger_id": platform.ledger_id,
        "epoch": platform.epoch,
        "attested": sorted(platform.attested),
        "agrees": not differences,
        "differences": differences,
        "items": items,
        "next": _next(asked, platform, items) if differences else None,
    }


def _next(asked: Asked, platform: Platform, items: list[dict[str, Any]]) -> str:
    """What lets the two agree again: admitting what is new, or bringing back, or leaving out, what is not as it was."""
    which = f"--connection {asked.connection.reference} --cluster {asked.cluster}"
    if not platform.admitted or any(item["state"] == "not admitted" for item in items):
        return f"dpone platform attest {which}, then dpone platform admit {which}"
    again = f"then repeat: dpone platform status {which}"
    wrong = [item for item in items if item["differences"]]
    if not wrong:
        return f"Look at the server that the connection names, {again}"
    if any(item["marker"].startswith("names another") for item in wrong):
        return f"Check that --ledger names this cluster's own ledger, and the one in use if it was moved, {again}"
    if len(wrong) == len(platform.admitted):
        return f"Bring a server back as it was, {again}"
    return (
        f"Bring the server back as it was, {again}; or go on without it: "
        f"dpone platform exclude {wrong[0]['replica']} {which} --reviewed-by NAME --reason TEXT"
    )


def _known(platform: Platform) -> list[tuple[AdmittedReplica, str]]:
    admitted = [(replica, "admitted") for replica in platform.replicas]
    return admitted + [(platform.excluded[name], "excluded") for name in sorted(platform.excluded)]


def _row(
    connection: Connection, ledger: EventLedger, platform: Platform, replica: AdmittedReplica, state: str
) -> dict[str, Any]:
    row = {
        "replica": replica.name,
        "state": state,
        "reachable": False,
        "version": replica.version,
        "version_now": UNKNOWN,
        "marker": UNKNOWN,
        "keeper": UNKNOWN,
        "differences": [],
    }
    wrong: list[str] = []
    try:
        with session_on(connection, endpoint_of(replica)) as session:
            row["version_now"] = session.query("SELECT version() AS version")[0]["version"]
            name = read_macros(session).get("replica", "")
            row["marker"] = _marker(ledger, platform, read_markers(session))
            row["reachable"] = True
            if name != replica.name:
                wrong.append("it calls itself something else now.")
            if row["marker"] != "agrees":
                wrong.append(f"its marker {row['marker']}.")
            row["keeper"] = "does not answer"
            session.query("SELECT name FROM system.zookeeper WHERE path = '/'")
            row["keeper"] = "answers"
    except EngineFailed as error:
        wrong.append("its Keeper does not answer." if row["reachable"] else f"it does not answer ({error.code.value}).")
    row["differences"] = wrong if state == "admitted" else []
    return row


def _marker(ledger: EventLedger, platform: Platform, found: tuple[Marker, ...]) -> str:
    held = next((marker for marker in found if marker.platform_id == platform.platform_id), None)
    if held is None:
        return "is missing"
    if held.ledger_id != ledger.ledger_id:
        return "names another ledger"
    return "agrees" if held.epoch == ledger.epoch else "names another epoch"


def _new(connection: Connection, platform: Platform, found: tuple[Member, ...]) -> list[dict[str, Any]]:
    known = {(one.host, one.port) for one in (*platform.admitted.values(), *platform.excluded.values())}
    return [
        {
            "replica": f"number {member.replica_number}",
            "state": "not admitted",
            "reachable": None,
            "version": UNKNOWN,
            "version_now": UNKNOWN,
            "marker": UNKNOWN,
            "keeper": UNKNOWN,
            "differences": [],
        }
        for member in found
        if (member.host, member.port) not in known
    ]
