"""Whole loads, and the phase from the source to staged evidence, beside the engine's own bare insert."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from scripts.flights import ARCHIVE, CHECKOUT, MANIFEST, provide_flights

from .row import BENCH, DPONE, Row, Timed, timed

_PLAIN = (sys.executable, "-m", "scripts.bench_rows.plain")


def whole_run(rounds: int) -> Iterator[Row]:
    """``dpone run`` of the flights with all evidence ÷ one process: a bare insert of the same rows, and the swap.

    The engine in process cannot read a zip archive, so the bare insert always reads the unpacked file; the example's
    own row pays for unpacking as well.
    """
    provide_flights()
    unpacked, home = flights_times(1), fresh("whole")
    manifests = {"zip": CHECKOUT / MANIFEST, "unpacked": manifest_for(unpacked)}
    ratios: dict[str, list[float]] = {name: [] for name in manifests}
    for number in range(rounds + 1):
        for name, manifest in manifests.items():
            mine = timed(run_words(manifest, f"{name}{number}"), {"DPONE_HOME": str(home)})
            plain = timed([*_PLAIN, str(BENCH / "whole-plain"), str(unpacked)])
            if number:  # the first pairs warm the caches
                ratios[name].append(mine.wall / plain.wall)
    for name, values in ratios.items():
        yield Row(f"whole run ÷ bare insert and swap, {name}", "× wall", tuple(values), 2.5)


def staging(rounds: int) -> Iterator[Row]:
    """Rows/s from the source to staged evidence at ten times the flights ÷ the bare insert's, without and with hash."""
    data = flights_times(10)
    for hashed, target in ((False, 0.4), (True, 0.0)):
        manifest = manifest_for(data, hashed=hashed)
        ratios = []
        for number in range(max(2, rounds // 2) + 1):
            home = fresh("stage")
            timed(run_words(manifest, f"r{number}"), {"DPONE_HOME": str(home)})
            plain = timed([*_PLAIN, str(fresh("stage-plain")), str(data)])
            if number:
                ratios.append(float(plain.out) / staged_seconds(home))
        name = "10× source to staged evidence ÷ bare insert" + (", hash gate" if hashed else "")
        yield Row(name, "× rows/s", tuple(ratios), target, at_most=False)


def run_words(manifest: Path, run_id: str) -> list[str]:
    """The command that loads a manifest."""
    return [DPONE, "run", str(manifest), "--dag-id", "bench", "--run-id", run_id, "--format", "json"]


def load(manifest: Path, home: Path, run_id: str = "r") -> Timed:
    """One load in a home of its own."""
    return timed(run_words(manifest, run_id), {"DPONE_HOME": str(home)})


def fresh(name: str) -> Path:
    """An empty folder for one measurement."""
    folder = BENCH / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def flights_times(times: int) -> Path:
    """The flights, unpacked and repeated so many times, under .demo/bench."""
    provide_flights()
    path = BENCH / f"flights-{times}.csv"
    if path.exists():
        return path
    BENCH.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(ARCHIVE) as archive:
        header, _, rows = archive.read("flights.csv").partition(b"\n")
    draft = path.with_suffix(".draft")
    with draft.open("wb") as file:
        file.write(header + b"\n")
        for _ in range(times):
            file.write(rows)
    draft.rename(path)
    return path


def manifest_for(data: Path, *, hashed: bool = False) -> Path:
    """The example's manifest over other data, with or without the typed hash gate."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe")
    example: dict[str, Any] = yaml.load(CHECKOUT / MANIFEST)
    text = json.dumps(example).replace("../../.demo/flights.csv.zip", str(data))
    changed: dict[str, Any] = json.loads(text)
    if hashed:
        changed["quality"]["gates"].append({"id": "hash", "type": "typed_hash_reconciliation"})
    path = BENCH / f"{data.stem}{'-hashed' if hashed else ''}.batch.yaml"
    path.write_text(json.dumps(changed))
    return path


def staged_seconds(home: Path) -> float:
    """From StagingOpened to GatesEvaluated, by the ledger's own times."""
    from dpone.domain.events import GatesEvaluated, StagingOpened
    from dpone.ledger.sqlite import sqlite_url
    from dpone.ledger.store import open_ledger

    with open_ledger(sqlite_url(home / "ledger.sqlite"), create=False) as store:
        events = [item.recorded.event for item in store.notifications(1, 1000)]
    moments = [
        datetime.fromisoformat(event.at) for event in events if isinstance(event, StagingOpened | GatesEvaluated)
    ]
    return (moments[-1] - moments[0]).total_seconds()
