"""Made-up records of ten columns, in any amount, always the same: written by the engine itself in its own formats."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Final

from .row import BENCH

COLUMNS: Final = {
    "record_id": "UInt32",
    "customer": "UInt32",
    "kind": "String",
    "note": "Nullable(String)",
    "amount": "Decimal(18, 2)",
    "rate": "Float64",
    "flag": "UInt8",
    "day": "Date",
    "at": "DateTime('UTC')",
    "quantity": "Nullable(Int32)",
}
STRUCTURE: Final = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
POSTGRES: Final = (
    "record_id bigint NOT NULL, customer bigint NOT NULL, kind text NOT NULL, note text, "
    "amount numeric(18, 2) NOT NULL, rate double precision NOT NULL, flag smallint NOT NULL, "
    "day date NOT NULL, at timestamp NOT NULL, quantity integer"
)
SQLITE: Final = (
    "record_id INTEGER, customer INTEGER, kind TEXT, note TEXT, amount TEXT, rate REAL, flag INTEGER, day TEXT, "
    "at TEXT, quantity INTEGER"
)
SELECT: Final = """
SELECT toUInt32(number + 1) AS record_id, toUInt32(cityHash64(number) % 50000) AS customer,
  ['order', 'refund', 'transfer', 'fee'][number % 4 + 1] AS kind,
  if(number % 10 = 0, NULL, concat('note ', lower(hex(cityHash64(number, 1))))) AS note,
  toDecimal64(number % 1000003, 2) / 4 AS amount, (number % 65536) / 1024 AS rate, toUInt8(number % 3 = 0) AS flag,
  toDate('2015-01-01') + intDiv(number, 20000) AS day, toDateTime('2015-01-01 00:00:00', 'UTC') + number AS at,
  if(number % 7 = 0, NULL, toInt32(number % 1000) - 500) AS quantity
FROM numbers({rows})
"""
_FORMATS: Final = {"csv": "CSVWithNames", "parquet": "Parquet", "tsv": "TSV"}


def records(kind: str, rows: int) -> Path:
    """A file of ``csv``, ``parquet``, ``arrow``, ``tsv`` or ``sqlite``, made once and kept under .demo/bench."""
    path = BENCH / f"records-{rows}.{kind}"
    if path.exists():
        return path
    BENCH.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"draft-{path.name}")
    draft.unlink(missing_ok=True)
    if kind == "sqlite":
        _into_sqlite(draft, records("tsv", rows))
    elif kind == "arrow":
        _into_arrow(draft, records("parquet", rows))
    else:
        subprocess.run([sys.executable, "-m", __name__, str(draft), _FORMATS[kind], str(rows)], check=True)
    draft.rename(path)
    return path


def _into_sqlite(path: Path, lines: Path) -> None:
    with sqlite3.connect(path) as connection, lines.open(encoding="utf-8") as file:
        connection.execute(f"CREATE TABLE records ({SQLITE})")
        rows = ([None if field == "\\N" else field for field in line.rstrip("\n").split("\t")] for line in file)
        connection.executemany(f"INSERT INTO records VALUES ({', '.join('?' * len(COLUMNS))})", rows)


def _into_arrow(path: Path, columnar: Path) -> None:
    """Compressed, as Feather files are; the engine itself would write its times as numbers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(columnar) as file:
        kinds = {"string": pa.string(), "date": pa.date32(), "at": pa.timestamp("s", "UTC")}
        schema = pa.schema([field.with_type(kinds.get(field.name, field.type)) for field in file.schema_arrow])
        with pa.ipc.new_file(path, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as out:
            for batch in file.iter_batches(65_536):
                out.write(pa.Table.from_batches([batch]).cast(schema).to_batches()[0])


def _write(path: str, name: str, rows: str) -> None:
    """In a process of its own: the engine is one per process."""
    from chdb.session import Session

    folder = BENCH / "records-engine"
    session = Session(str(folder))
    session.query(f"INSERT INTO FUNCTION file('{path}', '{name}', $${STRUCTURE}$$) " + SELECT.format(rows=int(rows)))
    session.close()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _write(*sys.argv[1:])
