"""The button on a task's page that leads to the audit page of its operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey


class DponeAuditLink(BaseOperatorLink):  # type: ignore[misc]
    """Where ``dpone audit serve`` shows the operation; no link where nobody said where that is."""

    name = "Audit page"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:
        """Called in the task, after it ended, also when it failed: the operator knows its operation."""
        found = getattr(operator, "audit_link", None)
        return found if isinstance(found, str) else ""
