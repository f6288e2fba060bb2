"""``python -m tests.faults``: a random campaign on a real cluster of its own (see scripts/faults and scripts/soak)."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from .campaign import Campaign
from .evidence import Leaks, written
from .fleet import admitted_fleet
from .logged import logged_cluster

HOURS = 10 * 3600.0


def main(words: list[str]) -> int:
    """0 when every promise held."""
    asked = _asked(words)
    folder = Path(tempfile.mkdtemp(prefix="dpone-faults-"))
    print(f"seed {asked.seed}, records in {folder}", flush=True)
    began = time.monotonic()
    with logged_cluster() as made, admitted_fleet(made, folder, asked.targets, asked.seed) as fleet:
        campaign = Campaign(fleet, folder / "records", random.Random(asked.seed), _say)
        leaks = Leaks(fleet, folder)
        seconds = asked.minutes * 60 if asked.minutes else HOURS
        for network in campaign.rounds(seconds, asked.rounds):
            leaks.after_a_round(network)
        said = leaks.at_the_end(campaign.figures, asked.seed, time.monotonic() - began)
    print(said)
    if asked.evidence:
        written(Path(asked.evidence), said)
    return 0


def _asked(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=0.0, help="stop after the round in which they are over")
    parser.add_argument("--rounds", type=int, default=1_000_000, help="stop after so many")
    parser.add_argument("--targets", type=int, default=3, help="how many, in turn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--evidence", default="", metavar="FILE", help="write the figures into this page")
    return parser.parse_args(words)


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
