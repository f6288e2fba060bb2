"""A target that is gone on some replicas is put back by their admission; one that is gone everywhere is adopted."""

from __future__ import annotations

import pytest

from dpone.adapters.runtime.claiming import check_live
from dpone.domain.errors import DponeError, ErrorCode
from dpone.domain.slot import Live
from dpone.domain.tables import ReplicaLook, TableDefinition, TableIdentity

OURS = TableIdentity("/clickhouse/dpone/p/g", "sha256:a")
THEIRS = TableIdentity("/clickhouse/tables/t", "sha256:b")
LIVE = Live("g", "o", "r", 1, TableDefinition((), "ReplicatedMergeTree", ("id",)), {"r1": OURS, "r2": OURS})
ADOPT = "dpone platform adopt db.t --connection c --cluster k --reviewed-by NAME --reason TEXT"


def _refused(*tables: TableIdentity | None) -> DponeError:
    looks = tuple(
        ReplicaLook(f"r{number}", True, {"t": table} if table is not None else {})
        for number, table in enumerate(tables, 1)
    )
    with pytest.raises(DponeError) as caught:
        check_live(looks, "db.t", "t", LIVE, ADOPT)
    assert caught.value.code is ErrorCode.FOREIGN_TARGET
    return caught.value


def test_a_table_that_one_replica_lost_is_put_back_by_admission() -> None:
    refused = _refused(OURS, None)
    assert "is gone on r2" in refused.what
    assert refused.next == "dpone platform exclude r2 --connection c --cluster k --reviewed-by NAME --reason TEXT"


def test_a_table_that_is_gone_everywhere_is_adopted_as_absent() -> None:
    assert _refused(None, None).next == ADOPT


def test_a_stranger_on_the_other_replica_is_not_made_the_only_one() -> None:
    assert _refused(None, THEIRS).next == ADOPT
