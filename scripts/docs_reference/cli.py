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
    return "\n\n".join([*body, table(("parameter", "meaning"), [row for row in rows if row is not None])])


def _row(parameter: click.Parameter, context: click.Context) -> tuple[str, str] | None:
    record: Any = parameter.get_help_record(context)
    if record is not None:
        return f"`{record[0]}`", record[1]
    if isinstance(parameter, click.Argument):
        return f"`{parameter.make_metavar(context)}`", _ARGUMENTS[parameter.name or ""]
    return None


_ARGUMENTS = {
    "manifest": "The manifest's file.",
    "operation": "The operation's id, or at least 8 characters of it that no other operation begins with.",
}
