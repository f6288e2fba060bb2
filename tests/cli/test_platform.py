"""``dpone platform`` as it is typed: from an empty cluster to an admitted one, in documents and in text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from scripts.cluster_servers.cluster import Cluster

from tests.servers.cluster import PASSWORDS
from tests.servers.sessions import cluster_database, replicated_cluster

__all__ = ["cluster_database", "replicated_cluster"]

_SECONDS = 60
_WHICH = ("--connection", "replay_target", "--cluster", "replay_cluster")
_WHO = ("--reviewed-by", "Ada", "--reason", "its disk is gone")


@dataclass(frozen=True, slots=True)
class Shell:
    """Types ``dpone platform …`` with the cluster's connection and a ledger of its own in its Keeper."""

    cluster: Cluster
    ledger: str
    home: Path

    def type(self, *words: str, answer: str = "", ledger: str | None = None) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("DPONE_", "AIRFLOW_"))}
        environ = {
            **kept,
            **self.cluster.environ("replay_target"),
            "DPONE_LEDGER": ledger or self.ledger,
            "DPONE_HOME": str(self.home),
        }
        command = [str(Path(sys.executable).with_name("dpone")), "platform", *words, *_WHICH]
        done = subprocess.run(
            command, env=environ, input=answer, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        said = done.stdout + done.stderr
        places = [str(server.port) for server in self.cluster.replicas] + [PASSWORDS.dpone, "127.0.0.1", "Traceback"]
        assert not [place for place in places if place in said], said
        return done

    def document(self, *words: str, code: int = 0, **how: Any) -> dict[str, Any]:
        """The one document of a command."""
        done = self.type(*words, "--format", "json", **how)
        assert done.returncode == code, done.stdout + done.stderr
        shown: dict[str, Any] = json.loads(done.stdout)
        assert shown["command"] == f"platform {words[0]}"
        assert shown["passed"] is (code == 0)
        return shown


@pytest.fixture
def shell(replicated_cluster: Cluster, tmp_path: Path) -> Shell:
    return Shell(replicated_cluster, f"keeper://{replicated_cluster.keeper.hosts}/cli_{uuid4().hex[:12]}", tmp_path)


def test_from_an_empty_cluster_to_an_admitted_one(shell: Shell, cluster_database: str) -> None:
    provisioned = shell.document("provision", "--database", cluster_database)["result"]
    assert provisioned["replicas"] == ["replica_1", "replica_2"]
    assert provisioned["databases"] == [cluster_database]
    assert shell.document("provision", "--database", cluster_database)["result"]["changes"] == []
    assert shell.document("attest")["result"]["seen"].keys() == {"replica_1", "replica_2"}
    assert shell.document("admit", code=2)["result"]["errors"] == [
        "Nobody can be asked while one JSON document is printed."
    ]
    assert shell.document("admit", "--yes")["result"]["new"] == ["replica_1", "replica_2"]
    shown = shell.document("status")["result"]
    assert (shown["agrees"], [item["state"] for item in shown["items"]]) == (True, ["admitted", "admitted"])
    assert shell.document("exclude", "replica_2", *_WHO)["result"]["inventory"] == ["replica_1"]
    assert shell.document("admit", "--yes")["result"]["new"] == ["replica_2"]
    assert shell.document("adopt", f"{cluster_database}.t", *_WHO)["result"]["changes"] == []
    assert shell.document("revoke", *_WHO)["result"]["inventory"] == []


def test_a_person_is_shown_what_is_admitted_and_asked(shell: Shell, cluster_database: str) -> None:
    shell.type("provision", "--database", cluster_database)
    shell.type("attest")
    for answer in ("n\n", ""):
        declined = shell.type("admit", answer=answer)
        assert declined.returncode == 2
        assert "Nobody said yes" in declined.stderr
    accepted = shell.type("admit", answer="y\n")
    assert accepted.returncode == 0
    for word in ("replica_1", "replica_2", "18.16.1", "shard=01", "internal replication proven", "✔ Replica replica_2"):
        assert word in accepted.stdout
    status = shell.type("status").stdout
    assert "Everything is as it was admitted" in status
    shell.type("revoke", "--reviewed-by", "an owner", "--reason", "a pause")
    assert "Next: dpone platform attest --connection" in shell.type("status").stdout
    shell.type("attest")
    shell.type("admit", answer="y\n")
    assert "Nothing changed" in shell.type("admit").stdout


@pytest.mark.parametrize(
    ("words", "ledger", "code"),
    [
        (("provision",), "sqlite:////tmp/none.sqlite", "DPONE_LEDGER_NOT_SHARED"),
        (("status",), "sqlite:////tmp/none.sqlite", "DPONE_LEDGER_NOT_SHARED"),
        (("exclude", "r"), None, "DPONE_REQUEST_INVALID"),
        (("exclude", "r", "--reviewed-by", " ", "--reason", "x"), None, "DPONE_REQUEST_INVALID"),
        (("revoke", "--reviewed-by", "A", "--reason", ""), None, "DPONE_REQUEST_INVALID"),
        (("attest", "--keeper", "user:secret@host:1"), None, "DPONE_REQUEST_INVALID"),
    ],
)
def test_what_is_wrong_with_a_request_is_said_in_one_document(
    shell: Shell, words: tuple[str, ...], ledger: str | None, code: str
) -> None:
    document = shell.document(*words, code=2, ledger=ledger)
    assert document["result"]["error_code"] == code
    assert "secret" not in json.dumps(document)
