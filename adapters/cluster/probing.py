"""Whether a swap can be sent at all: the very statement, for tables that do not exist, once through the whole cluster.

Only a cluster that can run it misses the tables (60). That it cannot, and that this could not be found out, are two
answers: after the first one another platform is needed, after the second the same command.
"""

from __future__ import annotations

from typing import Final

from ...domain.errors import EngineFailed, ErrorCode
from ...domain.ports import SwapForm

MISSED: Final = 60
"""UNKNOWN_TABLE."""
_CANNOT: Final = (1, 48, 62)
"""UNSUPPORTED_METHOD, NOT_IMPLEMENTED, SYNTAX_ERROR."""
_NO_QUEUE: Final = (49, 139)
"""LOGICAL_ERROR in old servers, NO_ELEMENTS_IN_CONFIG: nothing else on this way gives them."""
_DENIED: Final = (164, 291, 392, 497)


def answer(form: SwapForm, cluster: str, error: EngineFailed | None) -> str | None:
    """The refusal that the probe's outcome amounts to, or None. Raises EngineFailed when it could not be found out."""
    if error is None:
        return "The servers carried out a rename of tables that do not exist; they cannot be relied on."
    code = error.engine_code
    if code == MISSED:
        return None
    if code in _CANNOT:
        return f"Tables cannot be swapped here: the servers do not support {form} ({code})."
    if code in _NO_QUEUE:
        return (
            f"Statements cannot be sent to the cluster {cluster}: a server has no distributed_ddl configured ({code})."
        )
    if code in _DENIED:
        return f"Tables cannot be swapped here: the user may not rename tables on the cluster {cluster} ({code})."
    raise EngineFailed(
        ErrorCode.REPLICA_UNREACHABLE,
        f"Whether tables can be swapped here could not be found out. {error.what}",
        engine_code=code,
        next="Repeat the same command.",
    )
