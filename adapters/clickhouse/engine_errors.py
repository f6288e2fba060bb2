"""The engine's exceptions as this product's errors.

The engine's own words may quote values and paths. Only its numeric code and the code's symbolic name are passed on.
"""

from __future__ import annotations

import re

from ...domain.errors import EngineFailed, ErrorCode

_CODE = re.compile(r"Code: (\d{1,5})\b")
_NAME = re.compile(r"\(([A-Z][A-Z0-9_]{2,60})\)[.\s]*(?:\(version [^)]*\))?\s*\Z")
_NO_SPACE = re.compile(r"errno: 28\b|No space left on device")
_READ_ONLY = re.compile(r"errno: 30\b|Read-only file system")
_DENIED = re.compile(r"errno: 13\b|Permission denied")

RAISED = (RuntimeError, ValueError)
"""What the engine's Python layer raises; its ChdbError is a RuntimeError."""

UNSUPPORTED_METHOD = 1
NOT_IMPLEMENTED = 48
UNKNOWN_TABLE = 60
SYNTAX_ERROR = 62
UNKNOWN_DATABASE = 81
NOT_ENOUGH_SPACE = 243
TOO_LARGE_TO_DROP = 359
TIMEOUT_EXCEEDED = 159
MEMORY_LIMIT_EXCEEDED = 241
_ABOUT_VALUES = frozenset({6, 26, 27, 38, 41, 53, 69, 70, 72, 117, 131, 321, 349})  # messages that quote rows


def engine_code(error: BaseException) -> int | None:
    """ClickHouse's numeric code, when the exception carries one."""
    match = _CODE.search(str(error))
    return int(match[1]) if match else None


def engine_failed(error: BaseException, doing: str) -> EngineFailed:
    """``doing`` says what was tried, for example ``creating the table``."""
    text = str(error)
    code = engine_code(error)
    about_values = code in _ABOUT_VALUES
    if code == NOT_ENOUGH_SPACE or (_NO_SPACE.search(text) and not about_values):
        return _storage_full(doing, code)
    if _READ_ONLY.search(text) and not about_values:
        return _failed(doing, "the engine's folder is on a read-only file system", code, "Make DPONE_HOME writable.")
    if _DENIED.search(text) and not about_values:
        return _failed(doing, "the engine may not write to its folder", code, "Give this user access to DPONE_HOME.")
    if code == TOO_LARGE_TO_DROP:
        reason = "the table is larger than the engine's limit for dropping (max_table_size_to_drop)"
        return _failed(doing, reason, code, "Drop the table by hand, or raise the limit, then repeat the same command.")
    if code == MEMORY_LIMIT_EXCEEDED:
        return _failed(doing, "the engine reached its memory limit", code, "Free memory, then repeat the same command.")
    name = _NAME.search(text)
    said = f"the engine answered with code {code}" if code is not None else "the engine gave no reason"
    return _failed(doing, f"{said} ({name[1]})" if name and code is not None else said, code)


def _storage_full(doing: str, code: int | None) -> EngineFailed:
    return EngineFailed(
        ErrorCode.STORAGE_FULL,
        f"The disk that holds the engine's folder is full ({doing}).",
        engine_code=code,
        safe="The live table was not touched.",
        next="Free some space, then repeat the same command.",
    )


def _failed(doing: str, reason: str, code: int | None, next: str = "Repeat the same command.") -> EngineFailed:
    return EngineFailed(
        ErrorCode.INTERNAL,
        f"A statement failed ({doing}): {reason}.",
        engine_code=code,
        safe="Nothing is published without evidence; what exists was left in place.",
        next=next,
    )
