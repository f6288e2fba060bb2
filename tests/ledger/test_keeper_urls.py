"""Addresses and credentials of ledgers in Keeper: what is taken, and what is refused without being quoted."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from dpone.domain.errors import ErrorCode, LedgerFailed
from dpone.ledger.keeper import open_url
from dpone.ledger.keeper_url import KeeperUser, parse_address, user_of

SECRET = "s3cr3t-c4n4ry-zk"


@pytest.mark.parametrize(
    ("rest", "hosts", "root"),
    [
        ("host:2181/root", "host:2181", "/root"),
        ("a.example:2181,b-1.example:9181,[::1]:2181/dpone/ledger_1.v2", None, "/dpone/ledger_1.v2"),
        ("127.0.0.1:65535/a/zookeeper", "127.0.0.1:65535", "/a/zookeeper"),
    ],
)
def test_addresses(rest: str, hosts: str | None, root: str) -> None:
    address = parse_address(rest)
    assert address.hosts == (hosts or rest.partition("/")[0])
    assert address.root == root
    assert address.name == root.rpartition("/")[2]
    assert "2181" not in repr(address)


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("", "servers"),
        ("host:2181", "root must follow"),
        ("host:2181/", "root must follow"),
        ("/root", "servers"),
        ("host/root", "servers"),
        ("host:0/root", "servers"),
        ("host:65536/root", "servers"),
        ("host:2181,/root", "servers"),
        ("ho st:2181/root", "servers"),
        ("hoſt:2181/root", "servers"),
        (f"user:{SECRET}@host:2181/root", "credentials"),
        (f"host:2181/root?auth={SECRET}", "query"),
        ("host:2181/root#x", "query or a fragment"),
        ("host:2181//root", "root"),
        ("host:2181/ledger/", "root"),
        ("host:2181/a//b", "root"),
        ("host:2181/a/../zookeeper", "dot name"),
        ("host:2181/./a", "dot name"),
        ("host:2181/%2e%2e/zookeeper", "root"),
        ("host:2181/a%2fb", "root"),
        ("host:2181/wurzel-ü", "root"),
        ("host:2181/a\x00b", "root"),
        ("host:2181/a b", "root"),
        ("host:2181/zookeeper", "belongs to Keeper"),
        ("host:2181/zookeeper/config", "belongs to Keeper"),
        (f"host:2181/{'x' * 201}", "longer than 200"),
    ],
)
def test_a_wrong_address_is_refused(rest: str, why: str) -> None:
    with pytest.raises(LedgerFailed, match=why) as caught:
        parse_address(rest)
    assert caught.value.code is ErrorCode.REQUEST_INVALID
    said = f"{caught.value.what} {caught.value.safe} {caught.value.next}"
    assert SECRET not in said
    assert "2181/" not in said


def test_credentials_come_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "auth"
    file.write_text(f"dpone:{SECRET}:with:colons\n")
    file.chmod(0o600)
    assert user_of({}) is None
    assert user_of({"DPONE_KEEPER_AUTH": "", "DPONE_KEEPER_AUTH_FILE": ""}) is None
    assert user_of({"DPONE_KEEPER_AUTH": f"dpone:{SECRET}"}) == KeeperUser("dpone", SECRET)
    found = user_of({"DPONE_KEEPER_AUTH_FILE": str(file)})
    assert found == KeeperUser("dpone", f"{SECRET}:with:colons")
    assert SECRET not in repr(found)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (SECRET, "not user:password"),
        (f":{SECRET}", "not user:password"),
        (f"{SECRET}:", "not user:password"),
        (f"dpone:{SECRET}\nmore", "not user:password"),
        (" \n", "empty"),
        (f"dpone:{SECRET * 1000}", "too long"),
        ("\udcff:x", "cannot be read"),
    ],
)
def test_wrong_credentials_are_refused_without_being_quoted(tmp_path: Path, content: str, why: str) -> None:
    file = tmp_path / "auth"
    file.write_bytes(os.fsencode(content))
    file.chmod(0o600)
    with pytest.raises(LedgerFailed, match=why) as caught:
        user_of({"DPONE_KEEPER_AUTH_FILE": str(file)})
    assert caught.value.code is ErrorCode.REQUEST_INVALID
    said = f"{caught.value.what} {caught.value.safe} {caught.value.next}"
    assert SECRET not in said
    assert str(tmp_path) not in said


def test_two_sources_of_credentials_and_none_that_is_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerFailed, match="both set"):
        user_of({"DPONE_KEEPER_AUTH": f"dpone:{SECRET}", "DPONE_KEEPER_AUTH_FILE": "x"})
    with pytest.raises(LedgerFailed, match="cannot be read"):
        user_of({"DPONE_KEEPER_AUTH_FILE": str(tmp_path / "absent")})


def test_without_kazoo_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "dpone.ledger.keeper_session", raising=False)
    monkeypatch.setitem(sys.modules, "kazoo.client", None)
    with pytest.raises(LedgerFailed, match="needs kazoo") as caught:
        open_url("host:2181/root", False)
    assert caught.value.next == "pip install 'dpone-replay[keeper]'"
