"""How to reach a server: a manifest names a connection, and the first provider that knows the name says what it is.

:func:`resolve` asks the providers in order: the environment (``environment``), Airflow (``airflow``), a
``connections.toml`` (``toml_file``), and a provider that a program passed in. ``fields`` and ``urls`` turn what they
say into one :class:`Connection`, strictly. ``clickhouse`` and ``postgres`` turn a connection into what each driver
takes, and the driver's failures into errors without a host, a port or a password.

Adding a provider is one file and one line in ``resolving``; adding a kind of server one file.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .connection import Connection, Provider
    from .resolving import resolve

__all__ = ["Connection", "Provider", "resolve"]
_HOMES = {"Connection": ".connection", "Provider": ".connection", "resolve": ".resolving"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
