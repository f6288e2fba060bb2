"""What a refusal must look like, whatever is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dpone.domain.errors import DponeError, ErrorCode
from tests.servers.cluster import PASSWORDS

from .conftest import Owner


@contextmanager
def refused(owner: Owner, code: ErrorCode, *naming: str) -> Iterator[None]:
    """The code, these words, what to type next, and no place and no password in any of it."""
    with pytest.raises(DponeError) as raised:
        yield
    error = raised.value
    said = " ".join((error.what, error.safe, error.next or "", *error.errors))
    assert error.code is code, said
    for word in naming:
        assert word in said
    assert error.next
    places = [str(server.port) for server in owner.cluster.replicas] + [owner.keeper, "127.0.0.1", PASSWORDS.dpone]
    assert not [place for place in places if place in said]
