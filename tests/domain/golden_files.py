"""Writes the golden files that do not exist yet: ``python -m tests.domain.golden_files``, from the repository's root.

A golden file is never written again. When an event class changes it gets a successor with a topic of its own, an
upcaster and a new file; the old file stays and must still load.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import rfc8785

from dpone.domain import capsule
from dpone.domain.event_table import TOPICS, event_to_data

from . import examples as x
from .every_event import one_of_every_event

FOLDER = Path(__file__).parent / "golden"


def contents() -> Mapping[str, bytes]:
    """Every golden file's name and the bytes that today's code writes."""
    events = {TOPICS[type(event)]: event for event in one_of_every_event()}
    files = {f"{topic}.json": rfc8785.dumps(event_to_data(event)) for topic, event in events.items()}
    for version, observes in ((1, False), (2, True)):
        core = x.core(observes=observes)
        receipt = capsule.Receipt(
            id=x.RECEIPT,
            operation=x.OPERATION,
            generation=x.GENERATION,
            core_digest=capsule.digest(core),
            accepted_by_attempt=2,
        )
        whole = capsule.Capsule(
            core=core,
            core_digest=capsule.digest(core),
            state="COMPLETE",
            target=x.OBSERVATION if observes else None,
            receipt=receipt,
            warnings=("the target was observed late",),
        )
        files[f"capsule.v{version}.json"] = capsule.dump(whole)
    return files


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, data in contents().items():
        path = FOLDER / name
        if not path.exists():
            path.write_bytes(data)
            print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
