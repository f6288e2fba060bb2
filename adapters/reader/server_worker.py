"""The reader's worker for servers: observes one table of a cluster, answers with one frame, and ends.

Started as ``python -m dpone.adapters.reader.server_worker PLAN_FD READY_FD REPLY_FD PARENT_PID``. It imports the
driver, says so, and waits for its plan holding no connection and no credential. It dies with its parent; a statement
that it leaves behind is read-only and ends by the server's own limit.
"""

from __future__ import annotations

import os
import resource
import sys
import time

from ...domain.reply import encode_reply
from ..connections.clickhouse import driver
from .child import die_with, read, say_ready, write
from .server_request import decode_server_request
from .server_scan import observe

_ANSWER_SECONDS = 0.25  # kept back from the budget for the answer's own way


def main(arguments: list[str]) -> None:
    """Never returns: ends with 0 after one complete frame, with something else otherwise."""
    plan, ready, reply, parent = (int(argument) for argument in arguments)
    die_with(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # its memory will hold a password
    driver()  # the slow part of starting, while nothing is held yet
    say_ready(ready)
    request = decode_server_request(read(plan))
    deadline = time.monotonic() + request.budget_milliseconds / 1000 - _ANSWER_SECONDS
    write(reply, encode_reply(observe(request, deadline)))
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
