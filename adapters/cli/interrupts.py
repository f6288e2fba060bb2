"""SIGTERM and Ctrl-C: the work stops at once, the reader is reaped, the document printed, within five seconds."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ...domain.limits import STOP_SECONDS
from ..runtime.execution import Interrupted

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn the first SIGTERM or SIGINT into Interrupted and ignore later ones; a stop that hangs is cut short."""

    def stop(number: int, frame: FrameType | None) -> None:
        for one in _SIGNALS:
            signal.signal(one, _ignore)  # not SIG_IGN: a second signal that has arrived already would become an OSError
        _cut_short(128 + number)
        raise Interrupted(signal.Signals(number).name, number)

    earlier = {one: signal.signal(one, stop) for one in _SIGNALS}
    try:
        yield
    finally:
        for one, handler in earlier.items():
            if signal.getsignal(one) is stop:
                signal.signal(one, handler)


def _ignore(number: int, frame: FrameType | None) -> None:
    return None


def _cut_short(exit_code: int) -> None:
    timer = threading.Timer(STOP_SECONDS - 0.3, os._exit, args=(exit_code,))
    timer.daemon = True
    timer.start()
