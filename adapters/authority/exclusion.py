"""``platform exclude`` and ``platform revoke``: a person takes replicas out of the inventory. No server is asked, for
the one that matters is usually gone.

Every slot's stream takes part in the append, held or not: whoever holds it goes on with the replicas that are left.
"""

from __future__ import annotations

from ...domain import platform_events as p
from ...domain.identity import platform_stream
from ...domain.ports import StreamAppend
from .asked import Answer, Asked, OpenLedger
from .belonging import remembered
from .memory import all_slots, inventory_changes, only_platform, require_free
from .refusals import not_admitted, together


def exclude(asked: Asked, open_ledger: OpenLedger, replica: str, reviewed_by: str, reason: str) -> Answer:
    """Exclude one replica. Excluding it again changes nothing; the last one stays. Raises DponeError (NOT_ADMITTED)."""
    with remembered(open_ledger, asked) as ledger:
        platform = only_platform(ledger, asked.cluster, asked.connection.reference)
        if replica in platform.excluded:
            return Answer((), {"inventory": list(platform.inventory)})
        if replica not in platform.admitted:
            raise not_admitted(
                f"The replica {replica!r} is not admitted; admitted: {together(platform.inventory)}.",
                "Name one of these.",
            )
        left = tuple(name for name in platform.inventory if name != replica)
        if not left:
            raise not_admitted(
                f"Replica {replica} is the last one that is admitted.",
                f"To stop everything: dpone platform revoke --connection {asked.connection.reference} "
                f"--cluster {asked.cluster} --reviewed-by NAME --reason TEXT",
            )
        event = p.ReplicaExcluded(at=asked.now(), replica=replica, reviewed_by=reviewed_by, reason=reason, by=asked.by)
        slots = all_slots(ledger, platform.platform_id)
        appends = [StreamAppend(platform_stream(platform.platform_id), platform.version, (event,))]
        ledger.append([*appends, *inventory_changes(slots, left, (), asked.now())])
    return Answer((f"Replica {replica} is excluded until it is admitted again.",), {"inventory": list(left)})


def revoke(asked: Asked, open_ledger: OpenLedger, reviewed_by: str, reason: str) -> Answer:
    """Take every replica out, while no target is in work. Raises DponeError: NOT_ADMITTED; TARGET_BLOCKED."""
    with remembered(open_ledger, asked) as ledger:
        platform = only_platform(ledger, asked.cluster, asked.connection.reference)
        if platform.revoked:
            return Answer((), {"inventory": []})
        for known in all_slots(ledger, platform.platform_id):
            require_free(ledger, known.slot)
        event = p.InventoryRevoked(at=asked.now(), reviewed_by=reviewed_by, reason=reason, by=asked.by)
        ledger.append([StreamAppend(platform_stream(platform.platform_id), platform.version, (event,))])
    return Answer(
        ("Every replica is revoked; nothing is published until replicas are admitted again.",), {"inventory": []}
    )
