"""``scripts/docs-reference``: check or write the generated parts of the pages."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .pages import renewed
from .parts import LOOSE, PARTS

_DOCS = Path(__file__).parents[2] / "docs"


def main() -> int:
    """Exit code 1 when ``--check`` finds a page that is out of date, or a part that stands on no page."""
    parser = argparse.ArgumentParser(prog="scripts/docs-reference", description=__doc__)
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--check", action="store_true", help="say which pages are out of date")
    way.add_argument("--write", action="store_true", help="write them")
    asked = parser.parse_args()
    used: set[str] = set()
    failed: list[str] = []
    stale = []
    for page in sorted(_DOCS.rglob("*.md")):
        old = page.read_text(encoding="utf-8")
        new, names = renewed(old, PARTS, LOOSE if asked.check else frozenset(), failed)
        used |= names
        if new != old:
            stale.append(page)
            if asked.write:
                page.write_text(new, encoding="utf-8")
    for page in stale:
        print(f"{'written' if asked.write else 'out of date'}: docs/{page.relative_to(_DOCS)}")
    failed += [f"stands on no page: {name}" for name in sorted(PARTS.keys() - used)]
    print("\n".join(failed), end="\n" if failed else "")
    return 1 if failed or (asked.check and stale) else 0


if __name__ == "__main__":
    sys.exit(main())
