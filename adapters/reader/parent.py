"""The parent's side of the reader: one attempt, one worker, one budget; no byte of the worker is trusted.

The budget covers the worker's start (from spawning until it says that it is ready), handing over the plan, waiting for
a lock or a connection, metadata and the scan. A worker that was started early idles between ready and plan holding no
folder, no connection, no plan and no credential; that time is not counted.

When the budget ends, or a signal handler raises, the reply channel is closed first: from then on nobody reads what the
worker may still say. Then its process group is ended, then it is reaped, within a budget of its own.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...domain.errors import ReaderFailed
from ...domain.limits import READER_BUDGET_SECONDS, READER_FRAME_BYTES_MAX, READER_REAP_SECONDS
from ...domain.ports import Clock, ReadPlan, ReadResult
from ...domain.reply import NONCE_CHARACTERS, Outcome, Reply, ReplyInvalid, decode_reply
from .channel import Expired
from .spawned import SpawnedWorker

_SAID = {
    Outcome.BUSY: "another process kept the engine's folder locked",
    Outcome.OTHER_TABLE: "the table is not, or not any more, the one that was to be read",
    Outcome.TOO_SLOW: "the scan did not end within the budget",
    Outcome.TOO_MANY_VALUES: "a column has more distinct values than an exact count may hold",
    Outcome.UNREACHABLE: "the server does not answer in time",
    Outcome.REFUSED: "the server refuses this user, or what a reader must run",
    Outcome.READ_ONLY: "the table is read-only: it has stopped replicating",
    Outcome.NO_KEEPER: "the server has no living session with its Keeper",
    Outcome.BEHIND: "rows are still missing, or a part is suspected to be",
    Outcome.ENGINE_ERROR: "the engine failed",
}


class Place(Protocol):
    """Where the tables are: which program observes them there, and what it must be told."""

    @property
    def command(self) -> Sequence[str]:
        """The worker's program; four numbers are appended to it."""
        ...

    def request(self, nonce: str, budget_milliseconds: int, plan: ReadPlan) -> bytes:
        """The frame for its pipe. Raises NoObservation when this plan cannot be asked here."""
        ...


@dataclass(frozen=True, slots=True)
class Budgets:
    """Seconds: ``budget`` for one observation, ``reap`` for ending and reaping its worker afterwards."""

    budget: float = READER_BUDGET_SECONDS
    reap: float = READER_REAP_SECONDS
    clock: Clock | None = None


class WorkerReader:
    """Observes tables from worker processes, one after another; what a worker does is its place's business.

    Call everything from one thread that outlives the worker, the main thread: a worker dies with the thread that
    spawned it.
    """

    def __init__(self, place: Place, budgets: Budgets) -> None:
        self._place = place
        self._budget = budgets.budget
        self._reap = budgets.reap
        self._monotonic: Callable[[], float] = budgets.clock.monotonic if budgets.clock else time.monotonic
        self._waiting: list[SpawnedWorker] = []
        self._asked: SpawnedWorker | None = None

    def warm(self, workers: int = 1) -> None:
        """Start workers until so many wait."""
        while len(self._waiting) < workers:
            worker = SpawnedWorker(self._monotonic)
            self._waiting.append(worker)
            try:
                worker.spawn(self._place.command)
            except OSError as error:
                self.close()
                raise ReaderFailed(
                    f"The reader's process could not be started: {os.strerror(error.errno or 0)}.", reaped=True
                ) from None

    def observe(self, plan: ReadPlan) -> ReadResult:
        """One attempt with one worker, which is gone afterwards; others go on waiting. Raises ReaderFailed."""
        self._drop_ended()
        self.warm()
        self._asked = self._waiting.pop(0)
        try:
            return self._ask(self._asked, plan)
        except NoObservation as error:
            raise ReaderFailed(
                f"The reader gave no observation: {error}.", reaped=self._end_asked(), fits=error.fits
            ) from None
        finally:
            self._end_asked()

    def try_out(self) -> bool:
        """Start a worker, wait until it is ready, end it: was it reaped? Raises ReaderFailed if it cannot start."""
        self.warm()
        self._asked = self._waiting.pop(0)
        try:
            self._started(self._asked)
        except NoObservation as error:
            raise ReaderFailed(f"The reader cannot start: {error}.", reaped=self._end_asked()) from None
        return self._end_asked()

    def close(self) -> None:
        """End and reap every worker, used or not. Idempotent."""
        self._end_asked()
        while self._waiting:
            self._waiting[-1].end(self._reap)
            self._waiting.pop()

    def _drop_ended(self) -> None:
        """A worker that ended while it held nothing is replaced: a fresh one gets the whole budget."""
        for worker in [worker for worker in self._waiting if worker.has_ended()]:
            worker.end(self._reap)
            self._waiting.remove(worker)

    def _end_asked(self) -> bool:
        """Whether it is certain that the worker is gone."""
        worker, self._asked = self._asked, None
        return True if worker is None else worker.end(self._reap)

    def _ask(self, worker: SpawnedWorker, plan: ReadPlan) -> ReadResult:
        spent = self._started(worker)
        handed_over = self._monotonic()
        deadline = handed_over + self._budget - spent

        def remaining() -> float:
            return deadline - self._monotonic()

        nonce = secrets.token_hex(NONCE_CHARACTERS // 2)
        request = self._place.request(nonce, max(0, int(remaining() * 1000)), plan)
        reply = _reply(worker, request, nonce, plan, remaining)
        if reply.observation is None:
            raise NoObservation(_said(reply), fits=reply.outcome.fits)
        used = spent + self._monotonic() - handed_over
        return ReadResult(reply.observation, scanned(plan), int(used * 1000))

    def _started(self, worker: SpawnedWorker) -> float:
        """Wait until the worker is ready; how long it took to start. An early one has been ready for a while."""
        try:
            said_at = worker.wait_ready(lambda: max(worker.spawned_at + self._budget - self._monotonic(), 0.001))
        except Expired:
            raise NoObservation("its process did not start within the budget") from None
        except OSError:
            raise NoObservation("its process ended before it was ready") from None
        return max(0.0, min(said_at, self._monotonic()) - worker.spawned_at)


class NoObservation(Exception):
    """Why there is none. ``fits`` false: another attempt could do no better."""

    def __init__(self, what: str, *, fits: bool = True) -> None:
        super().__init__(what)
        self.fits = fits


def scanned(plan: ReadPlan) -> str:
    """The one replica that is scanned, whoever asks: the first by name."""
    return min(plan.identities)


def _said(reply: Reply) -> str:
    """Nothing of it is the worker's own wording; the replica is one that the plan names."""
    where = f"on replica {reply.replica} " if reply.replica is not None else ""
    code = f" (engine code {reply.engine_code})" if reply.engine_code is not None else ""
    return where + _SAID[reply.outcome] + code


def _reply(worker: SpawnedWorker, request: bytes, nonce: str, plan: ReadPlan, remaining: Callable[[], float]) -> Reply:
    """The worker's one valid reply, in time and followed by a clean end."""
    try:
        worker.hand_over(request, remaining)
        frame = worker.read_reply(READER_FRAME_BYTES_MAX, remaining)
        reply = decode_reply(frame, nonce, plan.metrics, plan.identities)
        if not worker.ends_cleanly(remaining):
            raise NoObservation("its process did not end cleanly")
        return reply
    except Expired:
        raise NoObservation("it did not finish within the budget", fits=False) from None
    except ReplyInvalid as error:
        raise NoObservation(str(error)) from None
    except OSError:
        raise NoObservation("its process ended without taking the plan") from None
