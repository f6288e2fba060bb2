"""What the tutorial starts from: a table of 240 records to read, and an empty database to load into."""

from __future__ import annotations

import csv
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from scripts.flights import CHECKOUT

from .cluster import Cluster

TARGET_DATABASE: Final = "analytics"
ALLOWED_DATABASES: Final = (TARGET_DATABASE, "dpone_authority")
_RECORDS: Final = CHECKOUT / "examples" / "data" / "records.csv"
_TABLE: Final = """CREATE TABLE IF NOT EXISTS source.records (
    record_id UInt64, customer Nullable(String), amount Decimal(10, 2), paid_at Nullable(DateTime('UTC'))
) ENGINE = MergeTree ORDER BY record_id"""


def provide_tables(cluster: Cluster) -> None:
    """Make them where they are missing; what is there is left alone. The source is on the first replica only."""
    for replica in cluster.replicas:
        replica.execute(f"CREATE DATABASE IF NOT EXISTS {TARGET_DATABASE}")
    cluster.execute("CREATE DATABASE IF NOT EXISTS source")
    cluster.execute(_TABLE)
    if cluster.execute("SELECT count() FROM source.records") == [(0,)]:
        cluster.execute("INSERT INTO source.records VALUES", _records())


def _records() -> list[tuple[Any, ...]]:
    with _RECORDS.open(newline="") as file:
        return [
            (
                int(row["record_id"]),
                row["customer"] or None,
                Decimal(row["amount"]),
                datetime.fromisoformat(row["paid_at"]) if row["paid_at"] else None,
            )
            for row in csv.DictReader(file)
        ]
