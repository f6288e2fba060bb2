"""How a run ended, as an object: typed, frozen, stable. It is read from the document, so that the two cannot differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...domain.errors import DponeError, ErrorCode


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run did not pass: what happened, what is safe now, what to type next. No part holds a secret or a value."""

    code: ErrorCode
    errors: tuple[str, ...]
    safe: str | None
    next: str | None
    cause: ErrorCode | None
    exit_code: int

    @property
    def what(self) -> str:
        """The first sentence."""
        return self.errors[0] if self.errors else "The run did not pass."

    def __str__(self) -> str:
        """Code, sentence, safety and next command, in one line each."""
        cause = f" (cause: {self.cause.value})" if self.cause is not None else ""
        lines = [f"{self.code.value}{cause}: {self.what}"]
        lines += [f"Safe: {self.safe}"] if self.safe else []
        lines += [f"Next: {self.next}"] if self.next else []
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call did and what is known of its operation; None where nothing is.

    Row counts are what this call did: a replay's are zero. ``document`` is the same as ``dpone run --format json``
    prints.
    """

    passed: bool
    exit_code: int
    failure: Failure | None
    process: str | None
    dag_id: str | None
    run_id: str | None
    operation_id: str | None
    attempt: int | None
    replayed: bool
    target_commit: str | None
    governance: str | None
    core_digest: str | None
    generation: str | None
    extracted_rows: int
    inserted_rows: int
    final_rows: int
    duration_seconds: float
    warnings: tuple[str, ...]
    document: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, document: Mapping[str, Any], exit_code: int) -> Outcome:
        """The outcome that a document of ``dpone run`` describes. Raises KeyError, TypeError, ValueError for others."""
        result = document["result"]
        details = result["replay_details"]
        evidence = result["details"]["reconciliation_metrics"].get("quality_replay", {})
        return cls(
            passed=document["passed"] is True,
            exit_code=exit_code,
            failure=None if document["passed"] is True else _failure(result, details, exit_code),
            process=document.get("process"),
            dag_id=document.get("dag_id"),
            run_id=document.get("run_id"),
            operation_id=details.get("operation_id"),
            attempt=details.get("current", {}).get("attempt"),
            replayed=evidence.get("replayed") is True,
            target_commit=details.get("target_commit"),
            governance=details.get("governance"),
            core_digest=evidence.get("core_digest"),
            generation=details.get("original", {}).get("load_id"),
            extracted_rows=result["extracted_rows"],
            inserted_rows=result["inserted_rows"],
            final_rows=result["final_rows"],
            duration_seconds=result["duration_seconds"],
            warnings=tuple(evidence.get("warnings", ())),
            document=document,
        )

    def require_passed(self) -> Outcome:
        """This outcome, when it passed. Raises DponeError with everything that the failure says."""
        failure = self.failure
        if failure is None:
            return self
        raise DponeError(
            failure.code,
            failure.what,
            safe=failure.safe or "What was recorded stays.",
            next=failure.next,
            cause=failure.cause,
            errors=failure.errors,
            exit_code=failure.exit_code,
        )


def _failure(result: Mapping[str, Any], details: Mapping[str, Any], exit_code: int) -> Failure:
    cause = details.get("cause")
    return Failure(
        code=ErrorCode(result["error_code"]),
        errors=tuple(result["errors"]),
        safe=details.get("safe"),
        next=details.get("next"),
        cause=None if cause is None else ErrorCode(cause),
        exit_code=exit_code,
    )
