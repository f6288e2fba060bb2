"""SIGTERM and Ctrl-C: the work stops at once, the reader is reaped, the document printed, within five seconds.

The kernel may hand a signal to any thread of the process, and the engine has many. Python then notes it, but a main
thread that waits in a system call sleeps on. So a watcher reads what Python notes and wakes the main thread itself.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ...domain.limits import STOP_SECONDS
from ..runtime.execution import Interrupted
from . import early

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn the first SIGTERM or SIGINT into Interrupted and ignore later ones; a stop that hangs is cut short.

    Use in the main thread.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        for one in _SIGNALS:
            signal.signal(one, _ignore)  # not SIG_IGN: a second signal that has arrived already would become an OSError
        _cut_short(128 + number)
        raise Interrupted(signal.Signals(number).name, number)

    with _main_thread_woken():
        earlier = {one: signal.signal(one, stop) for one in _SIGNALS}
        try:
            if early.pending:
                stop(early.pending[0], None)
            yield
        finally:
            for one, handler in earlier.items():
                if signal.getsignal(one) is stop:
                    signal.signal(one, handler)


@contextmanager
def _main_thread_woken() -> Iterator[None]:
    """The first signal, whichever thread took it, ends the main thread's system call."""
    noted, note = os.pipe()
    os.set_blocking(note, False)
    earlier = signal.set_wakeup_fd(note, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_wake, args=(noted, threading.get_ident()), name="dpone-signals", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(earlier)
        os.close(note)  # the watcher reads the end, if nothing else
        watcher.join()
        os.close(noted)


def _wake(noted: int, main_thread: int) -> None:
    number = os.read(noted, 1)
    if number:  # once: the signal sent here is noted again
        signal.pthread_kill(main_thread, number[0])


def _ignore(number: int, frame: FrameType | None) -> None:
    return None


def _cut_short(exit_code: int) -> None:
    timer = threading.Timer(STOP_SECONDS - 0.3, os._exit, args=(exit_code,))
    timer.daemon = True
    timer.start()
