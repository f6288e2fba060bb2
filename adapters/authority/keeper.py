"""A Keeper client for one node: made, looked at, removed. Every wait is bounded; kazoo is known here alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, Final

from ...domain.errors import DponeError, ErrorCode
from ...domain.limits import LEDGER_WAIT_SECONDS
from .refusals import UNTOUCHED, invalid

_HOSTS_MAX: Final = 20
_END_SECONDS: Final = 2.0
_SILENT = logging.getLogger("dpone.authority.keeper")  # kazoo logs hosts, and at debug level credentials
_SILENT.disabled = True


def keeper_hosts(text: str) -> tuple[str, ...]:
    """``host:port`` of each Keeper server. Raises DponeError (REQUEST_INVALID), which quotes nothing."""
    hosts = tuple(text.partition("/")[0].split(","))
    if len(hosts) > _HOSTS_MAX or "@" in text or not all(_is_place(host) for host in hosts):
        raise invalid(
            "The Keeper's servers are not given as HOST:PORT, separated by commas.",
            "Use --keeper HOST:PORT,… (credentials belong into DPONE_KEEPER_AUTH).",
        )
    return hosts


def _is_place(text: str) -> bool:
    host, colon, port = text.rpartition(":")
    return bool(colon and host) and port.isdecimal() and 0 < int(port) < 65_536 and text.isprintable()


@contextmanager
def node_in_keeper(keeper: str, folder: str, name: str, value: str, environ: Mapping[str, str]) -> Iterator[int]:
    """A node ``folder/name`` that everybody may read, for as long as it is looked at; yields its transaction's id.

    ``keeper`` is ``host:port,…`` with an optional ``/chroot``. The node also goes with its session. Raises DponeError:
    REQUEST_INVALID; LEDGER_UNREACHABLE when the Keeper does not answer within the bound or refuses.
    """
    client = _connected(keeper, environ)
    try:
        try:
            czxid = _created(client, folder, name, value)
        except Exception:  # whatever kazoo raised, its words may hold a host
            raise _unreachable() from None
        yield czxid
        with suppress(Exception):  # the session's end removes it just as well
            client.delete_async(f"{folder}/{name}").get(timeout=LEDGER_WAIT_SECONDS)
    finally:
        _end(client)


def _connected(keeper: str, environ: Mapping[str, str]) -> Any:
    from ...ledger.keeper_url import user_of

    try:
        from kazoo.client import KazooClient
    except ImportError:
        raise invalid("A Keeper needs the client library kazoo.", "pip install 'dpone-replay[keeper]'") from None
    user = user_of(environ)
    auth = [("digest", f"{user.name}:{user.password}")] if user is not None else []
    try:
        client = KazooClient(hosts=keeper, timeout=LEDGER_WAIT_SECONDS, auth_data=auth, logger=_SILENT)
        started = client.start_async().wait(LEDGER_WAIT_SECONDS)
    except Exception:
        raise _unreachable() from None
    if not started or not client.connected:
        _end(client)
        raise _unreachable()
    return client


def _created(client: Any, folder: str, name: str, value: str) -> int:
    client.ensure_path_async(folder).get(timeout=LEDGER_WAIT_SECONDS)
    path = f"{folder}/{name}"
    client.create_async(path, value.encode(), ephemeral=True).get(timeout=LEDGER_WAIT_SECONDS)
    return int(client.get_async(path).get(timeout=LEDGER_WAIT_SECONDS)[1].czxid)


def _end(client: Any) -> None:
    """Leave politely, but not for long: a frozen server does not answer a goodbye."""

    def leave() -> None:
        with suppress(Exception):
            client.stop()
            client.close()

    thread = Thread(target=leave, name="dpone-keeper-end", daemon=True)
    thread.start()
    thread.join(_END_SECONDS)


def _unreachable() -> DponeError:
    return DponeError(
        ErrorCode.LEDGER_UNREACHABLE,
        "The Keeper cannot be reached, or did not let a node be written.",
        safe=UNTOUCHED,
        next="Check --keeper, and DPONE_KEEPER_AUTH where it asks for a login, then repeat the same command.",
    )
