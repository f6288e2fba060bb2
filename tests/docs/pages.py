"""A page as something to run: files to write and commands to type, with the output that it promises.

In a page's fenced blocks, ``title="NAME"`` means a file to save, and ``console`` a session: a line that begins with
``$`` is typed, the lines after it must come out in this order (others may stand between them, and ``…`` stands for
anything). A command must end with 0, unless the page goes on with ``echo $?``. The comment ``uses the files of: PAGE``
saves another page's files first, as that page leaves them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 100

_FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r'title="([^"]+)"')
_USES = re.compile(r"<!-- uses the files of: (\S+) -->")
_MARK = "@@@"
_NOT_RUN = ("git clone ", "cd dpone-replay", "scripts/", "pip install ", ". .venv/")
"""Beginnings of commands that set up a checkout or an environment: other tests run those scripts themselves."""


@dataclass(frozen=True, slots=True)
class Save:
    """A file that the page tells to save."""

    name: str
    content: str


@dataclass(frozen=True, slots=True)
class Type:
    """A command, and the lines that its output must have."""

    command: str
    promised: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command did."""

    exit_code: int
    output: str


def actions(page: Path) -> list[Save | Type]:
    """What a reader of the page does, in order."""
    text = page.read_text(encoding="utf-8")
    found: list[Save | Type] = []
    for other in _USES.findall(text):
        found += [action for action in actions(page.parent / other) if isinstance(action, Save)]
    for language, rest, body in _FENCE.findall(text):
        title = _TITLE.search(rest)
        if title:
            found.append(Save(title[1], body))
        elif language == "console":
            found += _session(body)
    return found


def _session(body: str) -> list[Save | Type]:
    typed: list[Save | Type] = []
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, *promised = part.splitlines()
        while command.endswith("\\") and promised:
            command = command[:-1] + promised.pop(0).strip()
        if not command.startswith(_NOT_RUN):
            typed.append(Type(command, tuple(line for line in promised if line.strip() not in ("", "…"))))
    return typed


def run(page: Path, folder: Path) -> list[tuple[Type, Outcome]]:
    """Do what the page says, in one shell, in ``folder``. Whole output, in the order of the commands."""
    doing = actions(page)
    if page.parent == ROOT:
        _lay_out_checkout(folder)
    script = ["exec 2>&1"]
    for action in doing:
        match action:
            case Save(name, content):
                script.append(f"cat > {name} <<'END_OF_FILE'\n{content}END_OF_FILE")
            case Type(command, _):
                script.append(f"{command}\n__code=$?; printf '\\n{_MARK}%s\\n' \"$__code\"; (exit $__code)")
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env=_environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    pieces = re.split(rf"\n{_MARK}(\d+)\n", done.stdout)
    outcomes = [Outcome(int(code), output) for output, code in zip(pieces[::2], pieces[1::2], strict=False)]
    return list(zip([action for action in doing if isinstance(action, Type)], outcomes, strict=True))


def _lay_out_checkout(folder: Path) -> None:
    """What a page of the checkout itself takes for granted: examples, the demo's data, the environment."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    for name, target in ((".demo", ROOT / ".demo"), (".venv", Path(sys.prefix))):
        (folder / name).symlink_to(target)


def _environment(folder: Path) -> dict[str, str]:
    """No run id, ledger or home of the caller; the commands of this environment first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DPONE_", "AIRFLOW_"))}
    commands = str(Path(sys.executable).parent)
    return {**kept, "PATH": os.pathsep.join((commands, kept["PATH"])), "DPONE_HOME": str(folder / "home")}


def missing(promised: tuple[str, ...], output: str) -> str | None:
    """The first promised line that does not follow the ones before it, or None."""
    lines = iter([_squeezed(line) for line in output.splitlines()])
    for promise in promised:
        pattern = re.compile(".*".join(re.escape(_squeezed(part)) for part in promise.split("…")))
        if not any(pattern.search(line) for line in lines):
            return promise
    return None


def _squeezed(line: str) -> str:
    return " ".join(line.split())


def check_session(session: Sequence[tuple[Type, Outcome]]) -> None:
    """Every command ended as the page says, and every promised line was there."""
    for (typed, outcome), following in zip(session, [*[one for one, _ in session[1:]], None], strict=True):
        told = following is not None and following.command == "echo $?"
        assert outcome.exit_code == 0 or told, f"$ {typed.command}\n{outcome.output}"
        absent = missing(typed.promised, outcome.output)
        assert absent is None, f"$ {typed.command}\npromised and not seen: {absent}\n{outcome.output}"
