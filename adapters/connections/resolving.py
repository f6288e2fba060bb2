"""From a reference to a connection: the first provider that knows it wins."""

from __future__ import annotations

from collections.abc import Mapping

from .airflow import AirflowProvider
from .connection import Connection, Provider
from .environment import EnvironmentProvider, variable_stem
from .refusals import not_found
from .toml_file import VARIABLE, TomlProvider


def resolve(reference: str, environ: Mapping[str, str], provider: Provider | None = None) -> Connection:
    """The connection that ``reference`` names. ``provider`` is a program's own and is asked last.

    Raises DponeError: DPONE_CONNECTION_NOT_FOUND when no provider knows it, DPONE_REQUEST_INVALID when one does and
    says something that cannot be meant. No message holds a value of a connection.
    """
    providers: list[Provider] = [EnvironmentProvider(environ), AirflowProvider(environ), TomlProvider(environ)]
    if provider is not None:
        providers.append(provider)
    for known in providers:
        found = known.connection(reference)
        if found is not None:
            return found
    stem = variable_stem(reference)
    names = [f"DPONE_CONN_{stem}_HOST", f"DPONE_CONN_{stem}_URL", f"AIRFLOW_CONN_{stem}"]
    table = f"[{reference}] in the file of {VARIABLE}" if environ.get(VARIABLE) else VARIABLE
    raise not_found(reference, (*names, table))
