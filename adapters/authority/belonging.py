"""Whose cluster is it: from the markers on its servers to this ledger's platform, and whether the two agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ...domain.errors import LedgerMissing
from ...domain.platform import Platform
from .asked import Asked, OpenLedger
from .marker import Marker, read_markers
from .memory import read_platform
from .refusals import not_admitted, not_provisioned, other_ledger
from .topology import first_server, session_on

if TYPE_CHECKING:
    from ...ledger.store import EventLedger


def first_markers(asked: Asked, wanted: Callable[[Marker], bool] = lambda _: True) -> tuple[Marker, ...]:
    """The markers that the connection's own server bears for this cluster. Raises DponeError (NOT_ADMITTED): none."""
    with session_on(asked.connection, first_server(asked.connection)) as session:
        found = tuple(marker for marker in read_markers(session) if marker.cluster == asked.cluster and wanted(marker))
    if not found:
        raise not_provisioned(asked.cluster, asked.connection.reference)
    return found


def remembered(open_ledger: OpenLedger, asked: Asked) -> EventLedger:
    """The ledger alone, for what asks no server whether it bears a marker. Raises DponeError."""
    try:
        return open_ledger(False)
    except LedgerMissing as error:
        raise not_admitted(
            "There is no ledger at the place that was named, so it knows no platform.",
            f"Name another one with --ledger, or begin: dpone platform provision --connection "
            f"{asked.connection.reference} --cluster {asked.cluster}",
        ) from error


def opened(open_ledger: OpenLedger) -> EventLedger:
    """The ledger of a cluster that bears a marker: a missing one is not just a wrong name. Raises LedgerFailed."""
    try:
        return open_ledger(False)
    except LedgerMissing as error:
        raise other_ledger(
            "The cluster's servers answer to a ledger, and the one that was named does not exist."
        ) from error


def platform_of(ledger: EventLedger, markers: Iterable[Marker]) -> tuple[Platform, Marker]:
    """This ledger's platform among the markers. Raises LedgerFailed (LEDGER_CORRUPT) when they do not agree."""
    mine = [marker for marker in markers if marker.ledger_id == ledger.ledger_id]
    if not mine:
        raise other_ledger("The cluster's servers answer to another ledger than the one that was opened.")
    marker = mine[0]
    if marker.epoch != ledger.epoch:
        raise other_ledger("The cluster belongs to another epoch of this ledger than the one that was opened.")
    platform = read_platform(ledger, marker.platform_id)
    if platform.version == 0:
        raise other_ledger("The ledger does not know the platform whose marker the cluster's servers bear.")
    return platform, marker


def disagreements(platform: Platform, marker: Marker, found: Mapping[str, tuple[Marker, ...]]) -> tuple[str, ...]:
    """One sentence for each replica whose marker is not the platform's."""
    said = []
    for name, markers in sorted(found.items()):
        held = next((one for one in markers if one.platform_id == platform.platform_id), None)
        if held is None:
            said.append(f"Replica {name} bears no marker of this platform.")
        elif (held.ledger_id, held.epoch) != (marker.ledger_id, marker.epoch):
            said.append(f"Replica {name} answers to another ledger or another epoch of it.")
    return tuple(said)
