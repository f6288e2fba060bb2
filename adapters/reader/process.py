"""Observing tables of the embedded engine: the coordinator lets go of the folder, a worker opens it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...domain.limits import READER_BUDGET_SECONDS, READER_REAP_SECONDS
from ...domain.ports import Clock, ReadPlan
from .parent import Budgets, WorkerReader
from .request import ReadRequest, encode_request

_WORKER = ("-P", "-m", "dpone.adapters.reader.worker")


class ProcessReader(WorkerReader):
    """Observes tables of the embedded engine's ``directory``. ``command`` replaces the worker's program."""

    def __init__(
        self,
        directory: Path,
        python: str = sys.executable,
        budget: float = READER_BUDGET_SECONDS,
        reap: float = READER_REAP_SECONDS,
        clock: Clock | None = None,
        command: Sequence[str] | None = None,
    ) -> None:
        place = _Folder(directory.absolute(), tuple(command or (python, *_WORKER)))
        super().__init__(place, Budgets(budget, reap, clock))


@dataclass(frozen=True, slots=True)
class _Folder:
    path: Path
    command: Sequence[str]

    def request(self, nonce: str, budget_milliseconds: int, plan: ReadPlan) -> bytes:
        return encode_request(ReadRequest(nonce, str(self.path), budget_milliseconds, plan))
