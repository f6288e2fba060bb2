"""The reader's worker: observes one table of the embedded engine's folder, answers with one frame, and ends.

Started as ``python -m dpone.adapters.reader.worker PLAN_FD READY_FD REPLY_FD PARENT_PID``. It imports the engine, says
so with the time (so that its parent need not watch), and waits for its plan holding nothing. It dies with its parent.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from ...domain.reply import Outcome, Reply, encode_reply
from ..clickhouse import engine_errors, engine_session, folder, identity, observation_sql
from ..clickhouse.quoting import literal
from .child import die_with, read, say_ready, write
from .request import ReadRequest, decode_request

_POLL_SECONDS = 0.02
_OPENINGS_MAX = 5
_ANSWER_SECONDS = 0.25  # kept back from the budget for the answer's own way


def main(arguments: list[str]) -> None:
    """Never returns: ends with 0 after one complete frame, with something else otherwise."""
    plan, ready, reply, parent = (int(argument) for argument in arguments)
    die_with(parent)
    sys.modules["pyarrow"] = None  # type: ignore[assignment] # the engine's optional import, 0.15 s that nothing here needs
    engine_session.load()
    say_ready(ready)
    request = decode_request(read(plan))
    write(reply, encode_reply(_observe(request)))
    os._exit(0)  # the engine's own way out takes longer, and the folder's lock ends with the process


def _observe(request: ReadRequest) -> Reply:
    deadline = time.monotonic() + request.budget_milliseconds / 1000 - _ANSWER_SECONDS
    try:
        session = _open(Path(request.folder), deadline)
        if session is None:
            return Reply(request.nonce, Outcome.BUSY)
        left = deadline - time.monotonic()
        if left <= 0:
            return Reply(request.nonce, Outcome.TOO_SLOW)
        session.query("SYSTEM STOP MERGES")  # an opened folder begins to merge: not this process's to do
        session.query(_limits(left))
        return _scan(session, request)
    except observation_sql.ReplyMalformed:
        return Reply(request.nonce, Outcome.ENGINE_ERROR)
    except engine_errors.RAISED as error:
        return _failure(request, engine_errors.engine_code(error))


def _open(path: Path, deadline: float) -> Any:
    """A session, or None when the folder stayed locked until the deadline."""
    refused = 0
    while True:
        if folder.seen_holder(path) is None:
            try:
                return engine_session.open_session(path)
            except engine_errors.RAISED:
                refused = refused + 1 if folder.locked_by(path) is None else 0
                if refused >= _OPENINGS_MAX:  # before that, a holder may have been gone again before it could be seen
                    raise
        if time.monotonic() >= deadline:
            return None
        time.sleep(_POLL_SECONDS)


def _limits(seconds: float) -> str:
    """Limits that throw; a time of 0 would be none.

    readonly comes last: 2 forbids every write and still takes the statements' own settings.
    """
    return (
        "SET max_query_size = 16777216, max_ast_elements = 1000000, max_expanded_ast_elements = 1000000, "
        f"max_execution_time = {max(seconds, 0.001):.3f}, timeout_overflow_mode = 'throw', "
        "max_result_rows = 10000, result_overflow_mode = 'throw', readonly = 2"
    )


def _scan(session: Any, request: ReadRequest) -> Reply:
    plan = request.plan
    (expected,) = plan.identities.values()  # the engine in process is one replica
    wanted = f"name = {literal(plan.table)}"

    def query(statement: str) -> observation_sql.Rows:
        return engine_session.ask(session, statement)

    def is_expected() -> bool:
        return identity.read_identities(query, plan.database, wanted).get(plan.table) == expected

    if not is_expected():
        return Reply(request.nonce, Outcome.OTHER_TABLE)
    observation = observation_sql.observe(query, plan.database, plan.table, plan.columns, plan.metrics)
    if not is_expected():
        return Reply(request.nonce, Outcome.OTHER_TABLE)
    return Reply(request.nonce, Outcome.OBSERVED, observation)


def _failure(request: ReadRequest, code: int | None) -> Reply:
    match code:
        case engine_errors.TIMEOUT_EXCEEDED:
            outcome = Outcome.TOO_SLOW
        case observation_sql.SET_SIZE_LIMIT_EXCEEDED:
            outcome = Outcome.TOO_MANY_VALUES
        case engine_errors.UNKNOWN_TABLE | engine_errors.UNKNOWN_DATABASE:
            outcome = Outcome.OTHER_TABLE
        case _:
            outcome = Outcome.ENGINE_ERROR
    return Reply(request.nonce, outcome, engine_code=code)


if __name__ == "__main__":
    main(sys.argv[1:])
