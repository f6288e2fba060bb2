"""Whether a test may be skipped because a server is not installed: decided here and nowhere else."""

from __future__ import annotations

import os

import pytest


def require(installed: bool, what: str) -> None:
    """Skip the test, loudly, where ``what`` is missing; in CI, or with DPONE_REQUIRE_SERVERS=1, fail it."""
    if installed:
        return
    reason = f"{what} is not installed; scripts/servers installs it"
    if _is_set("CI") or _is_set("DPONE_REQUIRE_SERVERS"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "").lower() not in ("", "0", "false")
