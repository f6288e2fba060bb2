"""The program ``dpone``: dispatch, and one document on stdout in every case, also for a usage error.

Nothing heavy is imported here: the help comes from a static table, a command's module when it is typed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from ... import __version__
from ...domain.errors import DponeError, ErrorCode
from . import early

if TYPE_CHECKING:
    from ..runtime.compose import Composer

_COMMANDS = {
    "run": ("run", "Load a table durably; the same command again is the whole recovery."),
    "validate": ("validate", "Check a manifest without touching anything."),
    "plan": ("plan", "Show what a run would read, create, swap and observe."),
    "schema": ("schema", "Print the JSON Schema of a manifest kind."),
    "doctor": ("doctor", "Check this installation: versions, home, ledger, engine, reader process."),
    "platform": ("platform", "Let a cluster hold targets: provision, attest, admit, exclude, revoke, adopt, status."),
    "ops": ("ops", "Look at operations and decide: list, explain, resume, reopen, retire, hold, rollback, …"),
    "audit": ("audit", "Verify the ledger; replay an operation to any moment."),
    "ledger": ("ledger", "Keep the ledger's store: status, project, rebuild, migrate, restore."),
}


class LazyGroup(click.Group):
    """A group whose commands live in modules of this package and are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f".{_COMMANDS[name][0]}", __package__), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (_, short) in _COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="dpone")
def dpone() -> None:
    """Durable full refreshes of ClickHouse tables.

    Every operation is a history of events in an append-only ledger. A run that died is continued by the same command:
    once its swap is proven, nothing is read, inserted or published again.
    """


def main(arguments: Sequence[str] | None = None, composer: Composer | None = None) -> None:
    """Run the command line and leave the process with its exit code. ``composer`` replaces the wiring, for tests."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115 - a closed descriptor is no error of ours
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115
    if early.pending:
        code = _stopped(words, early.pending[0])
    else:
        if _command_of(words) != "run":
            early.stop_noting()
        code = run_command(words, composer)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)  # everything is closed; the engine's own way out only takes longer


def run_command(words: list[str], composer: Composer | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        result: Any = dpone.main(args=words, prog_name="dpone", standalone_mode=False, obj=composer)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.Abort:
        return _stopped(words, signal.SIGINT)
    except OSError as problem:
        return _unwritable(problem)
    except click.ClickException as problem:
        return _usage_error(words, problem)
    except Exception as problem:
        return _defect(words, problem)
    return result if isinstance(result, int) else 0


def _stopped(words: list[str], number: int) -> int:
    from .output import format_of, print_failure

    error = DponeError(
        ErrorCode.EVIDENCE_INCOMPLETE,
        f"Stopped by {signal.Signals(number).name}.",
        next="Repeat the same command.",
        exit_code=128 + number,
    )
    print_failure(_command_of(words), error, format_of(words))
    return error.exit_code


def _unwritable(problem: OSError) -> int:
    """Nobody can be told on stdout; whatever was recorded stays recorded."""
    reason = os.strerror(problem.errno).lower() if problem.errno else "unknown reason"
    with suppress(OSError):
        sys.stderr.write(f"{ErrorCode.STORAGE_FULL.value}: The output could not be written: {reason}.\n")
    return 1


def _defect(words: list[str], problem: Exception) -> int:
    """What no command expected: the exception's class and place, never its own words."""
    from ..runtime.defects import internal
    from .output import format_of, print_failure

    error = internal(problem)
    error.safe = "What was recorded stays."
    print_failure(_command_of(words), error, format_of(words))
    return error.exit_code


def _usage_error(words: list[str], problem: click.ClickException) -> int:
    from .output import format_of, print_failure

    if isinstance(problem, click.exceptions.NoArgsIsHelpError):  # its message is the whole help
        click.echo(problem.format_message(), err=True)
        return 2
    help_words = "dpone --help"
    if isinstance(problem, click.UsageError) and problem.ctx is not None:
        help_words = f"{problem.ctx.command_path} --help"
    error = DponeError(ErrorCode.REQUEST_INVALID, _sentence(problem), next=help_words)
    print_failure(_command_of(words), error, format_of(words))
    return error.exit_code


def _sentence(problem: click.ClickException) -> str:
    text = " ".join(problem.format_message().split())
    return text if text.endswith(".") else f"{text}."


def _command_of(words: list[str]) -> str:
    plain = [word for word in words if not word.startswith("-")]
    if not plain or plain[0] not in _COMMANDS:
        return "dpone"
    group = plain[0] in ("ops", "audit", "platform", "ledger")
    return " ".join(plain[: 2 if group else 1])
