"""A resolved connection, and the protocol of a provider that a program may pass in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

ParamValue = str | int | float | bool


@dataclass(frozen=True, slots=True, repr=False)
class Connection:
    """Where a server is and who asks. Its ``repr`` names the reference only, so that no log can hold the rest.

    ``kind`` is ``clickhouse`` or ``postgres`` when the provider said so, None when anything may use it. ``params``
    are further settings of the driver; the driver's module knows which, and refuses others. ``secure`` None means
    that nobody said: the driver's module decides.
    """

    reference: str
    host: str
    port: int | None = None
    database: str | None = None
    username: str | None = None
    password: str | None = None
    secure: bool | None = None
    ca_file: str | None = None
    params: Mapping[str, ParamValue] = field(default_factory=lambda: MappingProxyType({}))
    kind: str | None = None

    def __repr__(self) -> str:
        return f"Connection({self.reference!r})"


class Provider(Protocol):
    """Knows connections by their reference: what a program passes to :func:`~dpone.adapters.connections.resolve`."""

    def connection(self, reference: str) -> Connection | None:
        """The connection, or None when this provider does not know it."""
        ...
