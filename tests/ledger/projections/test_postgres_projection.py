"""Projections in schemas of a real PostgreSQL server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import psycopg
import pytest

from dpone.ledger.projections.checking import check_projection
from dpone.ledger.projections.faults import ProjectionFailed
from dpone.ledger.projections.following import Follower
from dpone.ledger.projections.tables import TIMELINE
from dpone.ledger.projections.target import ProjectionTarget, open_target
from dpone.ledger.store import EventLedger
from tests.ledger.test_postgres_store import fresh_url
from tests.servers.postgres import PASSWORD, PostgresServer

from .contract import TargetContract, projected
from .histories import append_lives


def projection_url(server: PostgresServer) -> str:
    """The URL of a schema that is not there yet."""
    return f"postgresql://reader:{PASSWORD}@127.0.0.1:{server.port}/postgres?schema=proj_{uuid4().hex[:12]}"


class TestPostgresProjection(TargetContract):
    @pytest.fixture
    def url(self, postgres: PostgresServer) -> str:
        self.server = postgres
        return projection_url(postgres)

    def execute(self, url: str, statement: str) -> None:
        self.server.execute(statement.format(p=url.partition("schema=")[2] + "."))

    def test_who_reads_the_whole_sees_one_moment(self, url: str, target: ProjectionTarget, ledger: EventLedger) -> None:
        append_lives(ledger, "orders", 1)
        end = projected(ledger, target)
        other = open_target(url)
        with other.snapshot() as before:
            append_lives(ledger, "items", 1)
            assert projected(ledger, target) > end
            assert before.mark is not None
            assert (before.mark.position, len(list(before.rows(TIMELINE)))) == (end, end)
        other.close()
        assert check_projection(ledger, target).passed

    def test_who_reads_the_whole_waits_for_a_rebuild_under_way(
        self, url: str, target: ProjectionTarget, ledger: EventLedger
    ) -> None:
        projected(ledger, target)
        place, _, schema = url.partition("?schema=")
        lock = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
        with ThreadPoolExecutor(1) as pool, psycopg.connect(place) as rebuilding:
            rebuilding.execute(lock, (f"dpone projection {schema}",))
            checked = pool.submit(check_projection, ledger, target)
            with pytest.raises(TimeoutError):
                checked.result(0.7)
            rebuilding.rollback()
            assert checked.result(20).passed

    def test_the_schema_of_a_ledger_is_never_taken(self, postgres: PostgresServer, ledger: EventLedger) -> None:
        target = open_target(fresh_url(postgres))
        with pytest.raises(ProjectionFailed, match="other tables"):
            Follower(ledger, target).rebuild()
        target.close()

    def test_a_connection_that_was_ended_is_made_anew(
        self, url: str, target: ProjectionTarget, ledger: EventLedger
    ) -> None:
        append_lives(ledger, "orders", 1)
        follower = Follower(ledger, target)
        mark = follower.catch_up(follower.begin(), 5)
        self.server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dpone projection'"
        )
        with pytest.raises(ProjectionFailed) as failed:
            follower.advance(mark)
        assert failed.value.passing
        assert follower.catch_up(follower.begin()).position == ledger.position()
        assert check_projection(ledger, target).passed

    @pytest.mark.parametrize("wrong", ["user", "password", "database", "port"])
    def test_what_cannot_be_reached_is_told_without_host_user_or_password(
        self, postgres: PostgresServer, ledger: EventLedger, wrong: str
    ) -> None:
        url = projection_url(postgres)
        changed = {
            "user": url.replace("reader:", "nobody-c4n4ry:"),
            "password": url.replace(PASSWORD, "wrong-c4n4ry"),
            "database": url.replace("/postgres?", "/absent?"),
            "port": url.replace(f":{postgres.port}/", ":1/"),
        }[wrong]
        with pytest.raises(ProjectionFailed) as failed:
            projected(ledger, open_target(changed))
        said = f"{failed.value.what} {failed.value.safe} {failed.value.next}"
        assert "c4n4ry" not in said
        assert "127.0.0.1" not in said
        assert failed.value.passing == (wrong == "port")
