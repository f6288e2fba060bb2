"""``DponeRunOperator``: one process of a manifest as one task. Importing this module imports Airflow's SDK only."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator

from .links import DponeAuditLink

if TYPE_CHECKING:
    from airflow.sdk import Context

    from ..program.outcome import Outcome
    from ..program.running import Request
    from .attempt import Try


class DponeRunOperator(BaseOperator):  # type: ignore[misc]
    """Loads one process durably; the same DAG run's task is the same operation, however often it is tried or cleared.

    :param manifest: path of the manifest; a relative one starts at the DAG file's folder.
    :param selector: which process, when the manifest holds several.
    :param ledger: the ledger's URL; default: ``DPONE_LEDGER`` of the worker. Airflow shows and stores rendered fields:
        leave a password out, and let PGPASSFILE or DPONE_KEEPER_AUTH_FILE hold it.
    :param audit_url: where ``dpone audit serve`` can be reached, for the link; default: ``DPONE_AUDIT_URL``.
    """

    template_fields: Sequence[str] = ("manifest", "selector", "ledger", "audit_url")
    operator_extra_links = (DponeAuditLink(),)
    ui_color = "#dce9f5"
    load_command: ClassVar[Sequence[str] | None] = None
    """What follows the interpreter to start the load's process, for tests; None: the installed program."""

    def __init__(
        self,
        *,
        manifest: str | Path,
        selector: str | None = None,
        ledger: str | None = None,
        audit_url: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.manifest = str(manifest)
        self.selector = selector
        self.ledger = ledger
        self.audit_url = audit_url

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the load in a process of its own. Returns the bounded summary.

        Raises AirflowFailException for an ending that no retry changes, AirflowException for every other failure.
        """
        from .attempt import Try
        from .process import COMMAND
        from .results import summary

        ti = context["ti"]
        self.log.info("Try %s of %s %s, task instance %s", ti.try_number, ti.dag_id, ti.run_id, ti.id)
        self._try = Try(self._request(context), os.environ, self._say, self.load_command or COMMAND)
        outcome = self._try.run()
        self.audit_link = self._audit_link(outcome)
        if not outcome.passed:
            raise _exception(outcome)
        for warning in outcome.warnings:
            self.log.warning("%s", warning)
        self._tell_assets(context, outcome)
        return summary(outcome) | {"try_number": ti.try_number, "ti_id": str(ti.id)}

    def on_kill(self) -> None:
        """End the load and its reader, within five seconds, also when they ignore it. Idempotent."""
        running: Try | None = getattr(self, "_try", None)
        if running is not None:
            running.end()

    def _request(self, context: Context) -> Request:
        from ...domain.identity import Task
        from ..program.running import Request

        ti = context["ti"]
        return Request(
            manifest=self._manifest_path(),
            selector=self.selector or None,
            dag_id=ti.dag_id,
            run_id=ti.run_id,
            ledger=self.ledger or None,
            task=Task(ti.task_id, ti.map_index if ti.map_index >= 0 else None, ti.try_number, str(ti.id)),
        )

    def _manifest_path(self) -> Path:
        path = Path(self.manifest)
        if path.is_absolute() or self.dag is None or not self.dag.fileloc:
            return path
        return Path(self.dag.fileloc).parent / path

    def _say(self, line: str) -> None:
        self.log.info("%s", line)

    def _audit_link(self, outcome: Outcome) -> str:
        base = self.audit_url or os.environ.get("DPONE_AUDIT_URL") or ""
        if not base or outcome.operation_id is None:
            return ""
        return f"{base.rstrip('/')}/operations/{outcome.operation_id}"

    def _tell_assets(self, context: Context, outcome: Outcome) -> None:
        """Airflow emits one event an outlet, on success only; here it gets what a consumer can check."""
        from airflow.sdk import Asset

        from .results import asset_extra

        for outlet in self.outlets:
            if isinstance(outlet, Asset):
                context["outlet_events"][outlet].extra = asset_extra(outcome)


def _exception(outcome: Outcome) -> Exception:
    from airflow.sdk.exceptions import AirflowException, AirflowFailException

    from .failures import is_worth_a_retry, told

    failure = outcome.failure
    if failure is None:
        raise AssertionError("only failures are raised")
    kind: type[Exception] = AirflowException if is_worth_a_retry(failure.code) else AirflowFailException
    return kind(told(failure))
