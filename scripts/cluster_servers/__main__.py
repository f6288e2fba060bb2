"""The command line of ``scripts/cluster``."""

from __future__ import annotations

import argparse
import sys

from . import commands
from .home import PORT, Refused


def _port(word: str) -> int:
    if not word.isdecimal() or not 1024 <= int(word) <= 65_000:
        raise argparse.ArgumentTypeError("give a number from 1024 to 65000")
    return int(word)


def main(words: list[str]) -> int:
    """Do what is asked. Returns 0; 1 when it was not possible, or when ``status`` found something not working."""
    parser = argparse.ArgumentParser(prog="scripts/cluster", description="A replicated cluster on this machine.")
    parts = parser.add_subparsers(dest="command", required=True)
    up = parts.add_parser("up", help="start it, or what is missing of it")
    up.add_argument("--port", type=_port, metavar="PORT", help=f"the first of its ports, default {PORT}")
    parts.add_parser("status", help="what runs")
    down = parts.add_parser("down", help="end it and remove what it kept")
    down.add_argument("--keep", action="store_true", help="leave the data for the next up")
    chosen = parser.parse_args(words)
    try:
        if chosen.command == "up":
            return commands.up(chosen.port)
        if chosen.command == "status":
            return commands.status()
        return commands.down(keep=chosen.keep)
    except Refused as refusal:
        print(f"scripts/cluster: {refusal}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
