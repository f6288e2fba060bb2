"""Guards in front of a consumer: they ask the ledger, not Airflow, whether a load is complete.

Airflow starts what is downstream of a task that a person marked as success, and lets anybody create an asset event by
hand. Neither makes evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from airflow.sdk import Context

    from ...domain.errors import DponeError
    from .evidence import Verdict, Wanted

_NEXT = "Next: dpone ops explain {}, and run the load's task again; marking it as success makes no evidence."


class DponeEvidenceSensor(BaseSensorOperator):  # type: ignore[misc]
    """Waits until the ledger says that a load is complete, and fails at once when it never will be.

    :param manifest: with ``selector``, the process that must have been loaded; relative to the DAG file's folder.
    :param operation: instead, the operation's id or 8 characters of it, for example from an asset event's extra.
    :param of_dag_id: of_run_id: whose load it is; default: this DAG run's.
    :param require_live: whether a table that a later run replaced is refused (default) or accepted.
    """

    template_fields: Sequence[str] = ("manifest", "selector", "operation", "ledger", "of_dag_id", "of_run_id")
    ui_color = "#e6f1e0"

    def __init__(
        self,
        *,
        manifest: str | Path | None = None,
        selector: str | None = None,
        operation: str | None = None,
        ledger: str | None = None,
        of_dag_id: str | None = None,
        of_run_id: str | None = None,
        require_live: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if (manifest is None) == (operation is None):
            raise ValueError("Give either manifest or operation.")
        self.manifest = None if manifest is None else str(manifest)
        self.selector = selector
        self.operation = operation
        self.ledger = ledger
        self.of_dag_id = of_dag_id
        self.of_run_id = of_run_id
        self.require_live = require_live

    def poke(self, context: Context) -> PokeReturnValue:
        """One question. Raises AirflowFailException when waiting makes no sense."""
        from .evidence import ask_here

        try:
            verdict = ask_here(self._wanted(context), self.ledger or None, context["ti"].dag_id, self.require_live)
        except Exception as error:
            return self._unanswered(error)
        if verdict.evidence is not None:
            return PokeReturnValue(is_done=True, xcom_value=verdict.evidence.data())
        if not verdict.can_still_come:
            raise _absent(verdict)
        self.log.info("%s", verdict.why_not)
        return PokeReturnValue(is_done=False)

    def _unanswered(self, error: Exception) -> PokeReturnValue:
        from ...domain.errors import DponeError, LedgerMissing
        from .failures import is_worth_a_retry

        if not isinstance(error, DponeError):
            raise error
        if not is_worth_a_retry(error.code) and not isinstance(error, LedgerMissing):
            raise _refused(error)
        self.log.info("%s", error.what)
        return PokeReturnValue(is_done=False)

    def _wanted(self, context: Context) -> Wanted:
        from .evidence import Wanted

        path = None if self.manifest is None else Path(self.manifest)
        if path is not None and not path.is_absolute() and self.dag is not None:
            path = Path(self.dag.fileloc).parent / path
        ti = context["ti"]
        return Wanted(
            operation=self.operation or None,
            manifest=path,
            selector=self.selector or None,
            dag_id=self.of_dag_id or ti.dag_id,
            run_id=self.of_run_id or ti.run_id,
        )


def require_evidence(
    *,
    manifest: str | Path | None = None,
    selector: str | None = None,
    operation: str | None = None,
    ledger: str | None = None,
    of_dag_id: str | None = None,
    of_run_id: str | None = None,
    require_live: bool = True,
) -> list[dict[str, Any]]:
    """The first line of a task that consumes: its evidence, or AirflowFailException. It does not wait.

    With ``manifest`` (an absolute path, or one relative to the current folder) or ``operation``: of that load. With
    neither: of every load whose asset event triggered this run; an event without an operation's id, made by hand for
    example, is refused.
    """
    from airflow.sdk import get_current_context

    from ...domain.errors import DponeError
    from .evidence import Wanted, ask_here

    context = get_current_context()
    ti = context["ti"]
    path = None if manifest is None else Path(manifest)
    asked = [Wanted(operation, path, selector, of_dag_id or ti.dag_id, of_run_id or ti.run_id)]
    if manifest is None and operation is None:
        asked = [Wanted(operation=_operation_of(event)) for event in _triggering(context)]
    found = []
    for wanted in asked:
        try:
            verdict = ask_here(wanted, ledger, ti.dag_id, require_live)
        except DponeError as error:
            raise _refused(error) from None
        if verdict.evidence is None:
            raise _absent(verdict)
        found.append(verdict.evidence.data())
    return found


def _triggering(context: Context) -> list[Any]:
    events = [event for several in context["triggering_asset_events"].values() for event in several]
    if not events:
        raise AirflowFailException("No asset event triggered this run: name the manifest or the operation.")
    return events


def _operation_of(event: Any) -> str:
    operation = (event.extra or {}).get("operation_id")
    if not isinstance(operation, str):
        raise AirflowFailException(
            "An asset event that triggered this run names no operation: dpone did not emit it. There is no evidence."
        )
    return operation


def _absent(verdict: Verdict) -> AirflowFailException:
    return AirflowFailException(f"{verdict.why_not}\n{_NEXT.format(verdict.operation or 'OPERATION')}")


def _refused(error: DponeError) -> AirflowFailException:
    tail = f"\nNext: {error.next}" if error.next else ""
    return AirflowFailException(f"{error.code.value}: {error.what}{tail}")
