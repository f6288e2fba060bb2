"""A process that appends, for the store contract: ``race URL STREAM NAME COUNT`` or ``flood URL COUNT``.

It says ``ready`` once its ledger is open and begins when a line arrives on its standard input.
"""

from __future__ import annotations

import sys
from uuid import UUID, uuid4

from dpone.domain.errors import AppendConflict
from dpone.domain.ports import StreamAppend

from .events import Noted
from .opening import opened


def race(url: str, stream: UUID, name: str, count: int) -> None:
    """Try for every version of one stream, printing those won; each win also goes to a stream of this process's own."""
    own, wins, losses = uuid4(), 0, 0
    with opened(url) as ledger:
        wait_for_start()
        version = 0
        while version < count:
            try:
                ledger.append([StreamAppend(own, wins, (Noted(name),)), StreamAppend(stream, version, (Noted(name),))])
            except AppendConflict:
                losses += 1
                version = len(ledger.read(stream))
                continue
            version, wins = version + 1, wins + 1
            print(version, name, flush=True)
    print("lost", losses, flush=True)


def flood(url: str, count: int) -> None:
    """Append pairs to a stream of its own, printing the version after each acknowledged one."""
    stream = uuid4()
    with opened(url) as ledger:
        wait_for_start()
        for done in range(0, 2 * count, 2):
            ledger.append([StreamAppend(stream, done, (Noted("x", done), Noted("y", done)))])
            print(stream, done + 2, flush=True)


def wait_for_start() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["race", url, stream, name, count]:
            race(url, UUID(stream), name, int(count))
        case ["flood", url, count]:
            flood(url, int(count))
        case _:
            sys.exit(2)
