"""The plain way, as its own program: import the engine, INSERT … SELECT FROM file(), exchange the tables.

    python -m scripts.bench_rows.plain FOLDER FILE [load|open]

``load`` prints the seconds that the bare insert took; ``open`` only imports the engine and opens the folder.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

COLUMNS = (
    "year UInt16, month UInt8, day UInt8, dep_time Nullable(UInt16), sched_dep_time UInt16, dep_delay Nullable(Int16), "
    "arr_time Nullable(UInt16), sched_arr_time UInt16, arr_delay Nullable(Int16), carrier String, flight UInt16, "
    "tailnum Nullable(String), origin String, dest String, air_time Nullable(UInt16), distance UInt16, hour UInt8, "
    "minute UInt8, time_hour DateTime('UTC')"
)
_INSERT = (
    "INSERT INTO analytics.candidate SELECT * FROM file('{file}', 'CSVWithNames') "
    "SETTINGS format_csv_null_representation = 'NA', date_time_input_format = 'best_effort'"
)


def main(folder: str, file: str, what: str = "load") -> None:
    """Do it once."""
    from chdb.session import Session

    session = Session(folder)
    if what == "load":
        session.query("CREATE DATABASE IF NOT EXISTS analytics ENGINE = Atomic")
        for name in ("flights", "candidate"):
            table = f"analytics.{name} ({COLUMNS}) ENGINE = MergeTree ORDER BY (year, month, day)"
            session.query(f"CREATE TABLE IF NOT EXISTS {table}")
        session.query("TRUNCATE TABLE analytics.candidate")
        began = time.perf_counter()
        session.query(_INSERT.format(file=file))
        print(time.perf_counter() - began)
        session.query("EXCHANGE TABLES analytics.flights AND analytics.candidate")
    session.close()


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    main(*sys.argv[1:])
