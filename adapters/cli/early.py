"""Signals that come before anything can be said: noted, and answered once the program is loaded.

Imports nothing but the standard library: it is there before the command line is.
"""

from __future__ import annotations

import signal
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
pending: list[int] = []
"""The numbers of the signals that came, oldest first."""


def note_signals() -> None:
    """From here on SIGTERM and SIGINT are noted in ``pending`` and end nothing."""
    for one in _SIGNALS:
        signal.signal(one, _note)


def stop_noting() -> None:
    """Give both signals their usual meaning back."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _note(number: int, frame: FrameType | None) -> None:
    pending.append(number)
