"""The same search where the target is a cluster: its connection, the Keeper's login, a ledger's URL with a password."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from tests.cli.sandbox import Ended, Sandbox, ended
from tests.integration.clickhouse_cluster.route import Route, admitted_route
from tests.servers.cluster import PASSWORDS, Cluster
from tests.servers.postgres import PASSWORD as POSTGRES_PASSWORD
from tests.servers.postgres import PostgresServer

from .searching import files_with, watched

KEEPER_PASSWORD = "c4n4ry-of-the-keeper"
SECRETS = (PASSWORDS.dpone, KEEPER_PASSWORD)


def silent_on(said: Ended, *canaries: str) -> None:
    assert [word for word in canaries if word in said.out + said.err] == []


@pytest.fixture
def route(replicated_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Route]:
    """Admitted, with a ledger that only its own Keeper user may touch."""
    (tmp_path / "box").mkdir()
    secret = tmp_path / "keeper"
    secret.write_text(f"dpone:{KEEPER_PASSWORD}\n")
    secret.chmod(0o600)
    environ = replicated_cluster.environ

    def with_keeper(reference: str) -> dict[str, str]:
        return {**environ(reference), "DPONE_KEEPER_AUTH_FILE": str(secret)}

    monkeypatch.setattr(Cluster, "environ", lambda self, reference: with_keeper(reference))
    with admitted_route(replicated_cluster, tmp_path / "box") as made:
        yield made


def test_no_secret_of_a_cluster_is_anywhere(route: Route) -> None:
    box = route.sandbox
    process = box.start(box.words())
    with watched(process) as seen:
        done = ended(process, 120)
    assert done.code == 0, done.out + done.err
    operation = done.details["operation_id"]
    which = ["--connection", "replay_target", "--cluster", route.cluster.name]
    table = f"{route.database}.records"
    told = [
        done,
        box.dpone(*box.words()[:-2]),  # a replay, as text
        box.dpone("plan", str(box.manifest), "--connect"),
        box.dpone("doctor", str(box.manifest)),
        box.dpone("platform", "status", *which),
        box.dpone("platform", "admit", *which, "--yes"),
        box.dpone("platform", "attest", *which),
        box.dpone("ops", "list"),
        box.dpone("ops", "explain", operation),
        box.dpone("ops", "sweep", table),
        box.dpone("ops", "hold", table, "--reviewed-by", "Ada", "--reason", "a look"),
        box.dpone(*box.words("r2")),
        box.dpone("ops", "unhold", table, "--reviewed-by", "Ada", "--reason", "done"),
        box.dpone("audit", "verify"),
        box.dpone("audit", "replay", operation),
        box.dpone("ledger", "status"),
    ]
    for said in told:
        silent_on(said, *SECRETS)
    assert seen.workers > 0
    for secret in SECRETS:
        assert not [line for line in seen.arguments if secret.encode() in line]
        assert not [text for text in seen.environments if secret.encode() in text]
        assert files_with(box.folder, secret) == []
        assert not [path for path, data in _nodes(route) if secret.encode() in data or secret in path]


def test_refusals_of_a_cluster_tell_no_secret_and_no_place(route: Route) -> None:
    box, which = route.sandbox, ["--connection", "replay_target", "--cluster", route.cluster.name]
    kept = dict(box.environment)
    places = ["127.0.0.1", *(f":{replica.port}" for replica in route.cluster.replicas)]
    for change in (
        {name: "wr0ng-c4n4ry" for name in kept if name.endswith("REPLAY_TARGET_PASSWORD")},
        {"DPONE_KEEPER_AUTH_FILE": "", "DPONE_KEEPER_AUTH": "dpone:wr0ng-c4n4ry"},
    ):
        assert change
        box.environment = {**kept, **change}
        for words in (["platform", "status", *which], ["platform", "admit", *which, "--yes"], box.words("r3")):
            refused = box.dpone(*words)
            assert refused.code in ((0, 1, 2) if words[1] == "status" else (1, 2)), refused  # status shows who refuses
            silent_on(refused, "wr0ng-c4n4ry", *SECRETS)
            assert not [place for place in places if place in refused.err.replace(route.ledger_url, "")]
    box.environment = kept


def test_a_password_in_a_ledgers_url_is_never_shown(sandbox: Sandbox, postgres: PostgresServer) -> None:
    """By option it stands in the command's own arguments, which is why PGPASSFILE is recommended; nowhere else."""
    url = f"postgresql://reader:{POSTGRES_PASSWORD}@127.0.0.1:{postgres.port}/postgres?schema=canary_ledger"
    sandbox.write_rows([(1, "n", "1.00", "2026-01-01 00:00:00")])
    sandbox.write_manifest()
    for given in ("variable", "option"):
        option = ["--ledger", url] if given == "option" else []
        sandbox.environment = {"DPONE_LEDGER": url} if given == "variable" else {}
        run_id = f"r-{given}"
        done = sandbox.dpone(*sandbox.words(run_id), *option)
        assert done.code == 0, done.out + done.err
        operation = done.details["operation_id"]
        sandbox.write_manifest(gates=[{"id": "many", "type": "min_rows", "rows": 100}])
        failed = sandbox.dpone(*sandbox.words(f"{run_id}-2"), *option)
        sandbox.write_manifest()
        assert failed.code == 1
        for said in (
            done,
            failed,
            sandbox.dpone("run", str(sandbox.manifest), *option),
            sandbox.dpone("plan", str(sandbox.manifest), *option),
            sandbox.dpone("doctor", *option),
            sandbox.dpone("ops", "list", *option),
            sandbox.dpone("ops", "list", "--format", "json", *option),
            sandbox.dpone("ops", "show", operation, *option),
            sandbox.dpone("ops", "explain", operation, *option),
            sandbox.dpone("ops", "retire", operation, "--reviewed-by", "A", "--reason", "b", "--yes", "x", *option),
            sandbox.dpone("ops", "hold", "db.nothing", "--reviewed-by", "A", "--reason", "b", *option),
            sandbox.dpone("ledger", "status", "--format", "json", *option),
            sandbox.dpone("audit", "verify", *option),
            sandbox.dpone("audit", "replay", operation[:8], "--at", "999", *option),
        ):
            silent_on(said, POSTGRES_PASSWORD)
    stored = postgres.execute("SELECT topic, encode(state, 'escape') FROM canary_ledger.stored_events")
    assert stored
    assert POSTGRES_PASSWORD not in json.dumps(stored)
    assert files_with(sandbox.folder, POSTGRES_PASSWORD) == []
    wrong = sandbox.dpone("ops", "list", "--ledger", url.replace(POSTGRES_PASSWORD, "wr0ng-c4n4ry") + "&x=y")
    silent_on(wrong, "wr0ng-c4n4ry", POSTGRES_PASSWORD)


def _nodes(route: Route) -> list[tuple[str, bytes]]:
    client = KazooClient(route.cluster.keeper.hosts, auth_data=[("digest", f"dpone:{KEEPER_PASSWORD}")])
    client.start()
    try:
        root = "/" + route.ledger_url.rpartition("/")[2]
        found, waiting = [], [root]
        while waiting:
            path = waiting.pop()
            found.append((path, client.get(path)[0]))
            waiting += [f"{path}/{child}" for child in client.get_children(path)]
        assert len(found) > 10
        return found
    finally:
        client.stop()
        client.close()
