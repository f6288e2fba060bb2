"""One instance of every class that the ledger may store."""

from __future__ import annotations

from dpone.domain import events as e
from dpone.domain.names import predecessor_name
from dpone.domain.operation import State

from . import examples as x
from . import platform_examples as y


def one_of_every_event() -> tuple[e.Event, ...]:
    """One instance of every class in the closed table."""
    return (
        *x.UNTIL[State.COMPLETE],
        x.staging_abandoned(),
        x.fenced(),
        x.reduced("replica_2"),
        x.waived(),
        x.observation_abandoned(),
        x.failed(),
        x.retired(x.OPERATION),
        x.reopened(changed=("source.path",)),
        x.validated(),
        *x.HELD,
        x.acquired(),
        x.taken_over(),
        x.published(sealed={"embedded": predecessor_name("orders", x.GENERATION)}),
        x.retirement(),
        x.table_retired(),
        x.slot_held(),
        x.slot_unheld(),
        x.deferred(),
        x.vacated(),
        *y.ADMITTED,
        y.databases_added("marts", "sales"),
        y.excluded("replica_2"),
        y.revoked(),
        y.epoch_raised(),
        y.inventory_changed("embedded", "replica_2", admitted=("replica_2",)),
        y.adopted("embedded"),
    )
