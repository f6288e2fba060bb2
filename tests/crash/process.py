"""``python -m tests.crash.process RECORD ACTION WORD…``: the command line with the recording composition.

ACTION is ``none``, or ``kill@POINT``, ``freeze@POINT``, ``sleep@POINT``; before it may stand ``deaf,``, ``slow,`` or
``hasty,``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dpone.adapters.cli.entry import main
from dpone.adapters.cli.program import begin
from tests.crash.composition import Points, composer


def _main(record: str, action: str, words: list[str]) -> None:
    *options, acting = action.split(",")
    verb, _, point = acting.partition("@")
    points = Points(Path(record), verb, point)
    begin()
    main(words, composer(points, deaf="deaf" in options, slow_query="slow" in options, hasty="hasty" in options))


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], sys.argv[3:])
