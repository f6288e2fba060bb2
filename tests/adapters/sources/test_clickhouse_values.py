"""Values as they arrive from a ClickHouse server, without a server."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest

from dpone.adapters.sources.clickhouse_types import travelling
from dpone.adapters.sources.clickhouse_values import decoded
from dpone.adapters.sources.refusals import RowRefused


def test_days_and_ticks_of_newer_servers() -> None:
    """Date32 and DateTime64 do not exist on the old server: their way from the wire is tried by itself."""
    day = travelling("Nullable(Date32)")
    assert day is not None
    assert decoded(pa.array([-7305, None], pa.int32()), day).to_pylist() == [date(1950, 1, 1), None]
    moment = travelling("DateTime64(4, 'UTC')")
    assert moment is not None
    start = datetime(1970, 1, 1, tzinfo=UTC)
    assert decoded(pa.array([-5], pa.int64()), moment).to_pylist() == [start - timedelta(microseconds=500)]
    eight = travelling("DateTime64(8)")
    assert eight is not None
    with pytest.raises(RowRefused) as refused:
        decoded(pa.array([1, 2**62], pa.int64()), eight)
    assert refused.value.index == 1
    text = travelling("UUID")
    assert text is not None
    with pytest.raises(RowRefused, match="UTF-8") as refused:
        decoded(pa.array([b"1", b"\xff"]), text)
    assert refused.value.index == 1
    assert travelling("Int128") is None
    assert travelling("Decimal(76, 5)") is None
    bool_ = travelling("Bool")
    assert bool_ is not None
    assert decoded(pa.array([0, 1, None], pa.uint8()), bool_).to_pylist() == [False, True, None]
