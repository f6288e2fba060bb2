"""A failure that nobody expected, as an ending that can be shown."""

from __future__ import annotations

from ...domain.errors import DponeError, ErrorCode


def internal(error: Exception) -> DponeError:
    """An exception that nobody expected, told by its class and place and never by its own words."""
    starved = _starved(error)
    if starved is not None:
        return DponeError(
            ErrorCode.EVIDENCE_INCOMPLETE,
            f"This process {starved}.",
            safe="What was appended stays; nothing half-done is ever published.",
            next="Repeat the same command.",
            cause=ErrorCode.INTERNAL,
        )
    return DponeError(
        ErrorCode.INTERNAL,
        f"A defect in this program: {type(error).__name__}{_where(error)}.",
        safe="What was appended stays; nothing half-done is ever published.",
        next="Repeat the same command; if it ends like this again, report it.",
    )


def _starved(error: Exception) -> str | None:
    """What the system refused to give; None when that is not what happened."""
    if isinstance(error, MemoryError):
        return "ran out of memory"
    if isinstance(error, RuntimeError) and "start new thread" in str(error):  # Python has no class of its own for it
        return "may not start another thread: a limit on processes is reached"
    return None


def _where(error: Exception) -> str:
    """Module and line of the innermost frame: enough to report a defect, without any value."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    module = trace.tb_frame.f_globals.get("__name__", "?")
    return f" in {module} line {trace.tb_lineno}"
