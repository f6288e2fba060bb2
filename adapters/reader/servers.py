"""Observing tables of a cluster: one replica is scanned, all of them are looked at before and after."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ...domain.limits import READER_BUDGET_SECONDS, READER_REAP_SECONDS
from ...domain.ports import Clock, ReadPlan
from ..cluster.session import Endpoint
from ..connections.connection import Connection
from .parent import Budgets, NoObservation, WorkerReader
from .server_request import Access, ServerRequest, encode_server_request

_WORKER = ("-P", "-m", "dpone.adapters.reader.server_worker")


class ServerReader(WorkerReader):
    """Observes tables on the admitted replicas at ``endpoints``, as the user of ``connection``.

    A plan may ask about fewer replicas than there are endpoints (some were admitted later), never about others.
    ``command`` replaces the worker's program.
    """

    def __init__(
        self,
        connection: Connection,
        endpoints: Sequence[Endpoint],
        python: str = sys.executable,
        budget: float = READER_BUDGET_SECONDS,
        reap: float = READER_REAP_SECONDS,
        clock: Clock | None = None,
        command: Sequence[str] | None = None,
    ) -> None:
        at = {endpoint.replica: endpoint for endpoint in endpoints}
        place = _Servers(Access.of(connection), at, tuple(command or (python, *_WORKER)))
        super().__init__(place, Budgets(budget, reap, clock))


@dataclass(frozen=True, slots=True)
class _Servers:
    access: Access
    at: dict[str, Endpoint]
    command: Sequence[str]

    def request(self, nonce: str, budget_milliseconds: int, plan: ReadPlan) -> bytes:
        if not plan.identities:
            raise NoObservation("the plan names no replica")
        if unknown := sorted(plan.identities.keys() - self.at.keys()):
            raise NoObservation(f"replica {unknown[0]} is not among the admitted ones")
        endpoints = tuple(self.at[replica] for replica in sorted(plan.identities))
        return encode_server_request(ServerRequest(nonce, budget_milliseconds, plan, endpoints, self.access))
