"""dpone as an Airflow provider: the same DAG run and task is the same operation.

``operator`` holds :class:`DponeRunOperator`, ``sensor`` the guards that ask the ledger and not Airflow, ``pack`` builds
a DAG from a flow manifest, ``links`` the link to the audit page, ``provider`` what Airflow's entry point returns. None
of them does any work while a DAG is parsed.

The work happens in a process of its own: ``process`` starts and ends it, ``child`` is its program, ``frames`` the
private channel between the two, ``scrubbing`` what keeps secrets out of the log. ``failures`` says which endings are
worth another try, ``results`` what goes into XCom and asset events, ``siblings`` refuses mapped tasks that share a
target, ``evidence`` looks up what a consumer may rely on, ``pod`` what a container must allow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .operator import DponeRunOperator
    from .pack import dpone_dag
    from .provider import get_provider_info
    from .sensor import DponeEvidenceSensor, require_evidence

__all__ = ["DponeEvidenceSensor", "DponeRunOperator", "dpone_dag", "get_provider_info", "require_evidence"]
_HOMES = {
    "DponeEvidenceSensor": ".sensor",
    "DponeRunOperator": ".operator",
    "dpone_dag": ".pack",
    "get_provider_info": ".provider",
    "require_evidence": ".sensor",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
