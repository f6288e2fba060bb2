"""What a task hands to its load's process, and how connections and refusals cross the channel.

The environment goes through the channel as well: what stands in a process's own is for everybody of its user to see.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ...domain.errors import DponeError, ErrorCode
from ...domain.identity import Task
from ..connections.connection import Connection
from ..connections.refusals import Unanswered
from ..program.running import Request
from .frames import Frame, FrameInvalid

_OURS: Final = "DPONE_"
_BOUND_BY_THE_TASK: Final = ("DPONE_CONN_", "DPONE_CONNECTIONS")
_IDENTITY: Final = ("DPONE_DAG_ID", "DPONE_RUN_ID", "DPONE_MAP_INDEX")
_OF_LIBRARIES: Final = ("PG", "SSL_CERT_")


@dataclass(frozen=True, slots=True)
class Handed:
    """A request with the settings that the process runs under."""

    request: Request
    environ: Mapping[str, str]

    def frame(self) -> Frame:
        """The first frame."""
        return {
            "request": {**asdict(self.request), "manifest": str(self.request.manifest)},
            "environ": dict(self.environ),
        }

    @classmethod
    def of(cls, frame: Frame) -> Handed:
        """Raises FrameInvalid."""
        try:
            parts = dict(frame["request"])
            task = None if parts["task"] is None else Task(**parts["task"])
            request = Request(**{**parts, "manifest": Path(parts["manifest"]), "task": task})
            return cls(request, dict(frame["environ"]))
        except (KeyError, TypeError, ValueError):
            raise FrameInvalid from None


def settings_of(environ: Mapping[str, str]) -> dict[str, str]:
    """What of the worker's environment the load needs: our own settings and those of libraries.

    No connection, for each is asked for by name when it is needed; no identity, for the task says it; nothing of
    Airflow's.
    """
    ours = {name: value for name, value in environ.items() if name.startswith(_OURS)}
    kept = {n: v for n, v in ours.items() if not n.startswith(_BOUND_BY_THE_TASK) and n not in _IDENTITY}
    return kept | {name: value for name, value in environ.items() if name.startswith(_OF_LIBRARIES)}


def connection_frame(connection: Connection) -> Frame:
    """An answer that binds a reference."""
    parts = {field.name: getattr(connection, field.name) for field in fields(connection)}
    return {"connection": {**parts, "params": dict(connection.params)}}


def refusal_frame(error: DponeError) -> Frame:
    """An answer that refuses one."""
    parts = {"code": error.code.value, "what": error.what, "safe": error.safe, "next": error.next}
    return {"refused": parts, "exit_code": error.exit_code, "unanswered": isinstance(error, Unanswered)}


def bound(frame: Frame) -> Connection:
    """The connection that an answer holds. Raises the DponeError that it holds instead; FrameInvalid."""
    try:
        if "refused" in frame:
            raise _refused(frame["refused"], frame["exit_code"], frame["unanswered"])
        parts = frame["connection"]
        return Connection(**{**parts, "params": MappingProxyType(parts["params"])})
    except (KeyError, TypeError, ValueError):
        raise FrameInvalid from None


def _refused(parts: Mapping[str, Any], exit_code: int, unanswered: bool) -> DponeError:
    kind = Unanswered if unanswered else DponeError
    what, code = parts["what"], ErrorCode(parts["code"])
    return kind(code, what, safe=parts["safe"], next=parts["next"], exit_code=exit_code)
