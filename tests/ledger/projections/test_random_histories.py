"""Whatever the real loop appends, in whatever batches it is projected: the rows are those of a rebuild."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from dpone.domain.history import illegality
from dpone.ledger.projections.checking import check_projection
from dpone.ledger.projections.following import Follower
from dpone.ledger.projections.target import open_target
from dpone.ledger.sqlite import sqlite_url
from dpone.ledger.store import open_ledger
from dpone.ledger.verify import verify_ledger
from tests.model.commands import FLAVOURS, KEYS

from .contract import kept
from .histories import Move, model_history

MOVES = st.lists(
    st.builds(Move, st.sampled_from(sorted(KEYS)), st.sampled_from(FLAVOURS), st.integers(0, 25), st.booleans()),
    min_size=1,
    max_size=4,
)


@given(moves=MOVES, cuts=st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=6))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_incremental_rows_are_those_of_a_rebuild(moves: list[Move], cuts: list[tuple[int, bool]]) -> None:
    """``cuts``: after how many appends it is projected again, and whether the follower has forgotten everything."""
    appended = model_history(moves)
    with TemporaryDirectory() as folder:
        target = open_target(sqlite_url(Path(folder) / "p.sqlite"))
        with open_ledger(sqlite_url(Path(folder) / "l.sqlite"), create=True) as ledger:
            follower = Follower(ledger, target)
            mark, done = follower.begin(), 0
            for count, forgets in [*cuts, (len(appended), True)]:
                for appends in appended[done : done + count]:
                    ledger.append(appends)
                done += count
                follower = Follower(ledger, target) if forgets else follower
                mark = follower.catch_up(mark)
            assert verify_ledger(ledger, illegality).passed
            assert mark.position == ledger.position()
            assert check_projection(ledger, target).findings == ()
            rows = kept(target)
            assert len(rows["timeline"]) == ledger.position()
            again = Follower(ledger, target)
            again.catch_up(again.rebuild())
            assert kept(target) == rows
