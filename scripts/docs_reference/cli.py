"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

from typing import Any

import click

from .pages import table


def commands() -> str:
    """One section a command, in the order of the help."""
    from dpone.adapters.cli.entry import dpone

    context = click.Context(dpone, info_name="dpone")
    sections = [_usage(dpone, context, level=2)]
    sections += [
        section for name, command in _children(dpone, context) for section in _sections(command, name, context)
    ]
    return "\n\n".join(sections)


def _sections(command: click.Command, name: str, parent: click.Context) -> list[str]:
    context = click.Context(command, info_name=name, parent=parent)
    if not isinstance(command, click.Group):
        return [_usage(command, context, level=2)]
    inner = [section for child, each in _children(command, context) for section in _sections(each, child, context)]
    return inner


def _children(group: click.Group, context: click.Context) -> list[tuple[str, click.Command]]:
    found = [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    return [(name, command) for name, command in found if command is not None]


def _usage(command: click.Command, context: click.Context, level: int) -> str:
    pieces = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    help_text = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    body = [f"{'#' * level} {context.command_path}", f"```text\n{pieces}\n```", help_text]
    rows = [_row(parameter, context) for parameter in command.get_params(context)]
    return "\n\n".join([*body, table(("parameter", "meaning"), rows)])


def _row(parameter: click.Parameter, context: click.Context) -> tuple[str, str]:
    if isinstance(parameter, click.Argument):
        return f"`{parameter.make_metavar(context)}`", _meaning(parameter.name or "")
    record: Any = parameter.get_help_record(context)
    option = record[0].replace("|", ", ")  # a bar would end the table's cell
    return f"`{option}`", record[1]


def _meaning(name: str) -> str:
    if name not in _ARGUMENTS:
        raise KeyError(f"say in {__name__}._ARGUMENTS what the argument {name} means")
    return _ARGUMENTS[name]


_ARGUMENTS = {
    "manifest": "The manifest's file.",
    "operation": "The operation's id, or at least 8 characters of it that no other operation begins with.",
    "replica": "A replica's name: its `{replica}` macro.",
    "table": "The target, with its database.",
    "source": "The ledger's URL.",
    "target": "The URL of the ledger that it becomes; nothing may stand there.",
    "kind": "A kind of manifest: `batch`, `flow` or `flow-fragment`.",
}
