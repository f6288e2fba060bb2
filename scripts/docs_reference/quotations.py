"""Code quoted on a page, always as it is now."""

from __future__ import annotations

import ast
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def quotation(where: str) -> str:
    """``PATH: NAME`` quotes a class or function, ``PATH: Class.method`` a method, ``PATH: case NAME`` a match's case,
    ``PATH: NAME =`` an assignment. Raises KeyError when it is not there any more.
    """
    path, _, name = where.partition(": ")
    text = (_ROOT / path).read_text(encoding="utf-8")
    first, last = _lines(ast.parse(text), name, where)
    lines = text.splitlines()[first - 1 : last]
    margin = len(lines[0]) - len(lines[0].lstrip())
    quoted = "\n".join(line[margin:] for line in lines)
    return f"`{path}`\n\n```python\n{quoted}\n```"


def _lines(tree: ast.Module, name: str, where: str) -> tuple[int, int]:
    if name.startswith("case "):
        return _case(tree, name.removeprefix("case "), where)
    body: list[ast.stmt] = tree.body
    found: ast.stmt = tree.body[0]
    for part in name.removesuffix(" =").split("."):
        named = next((item for item in body if part in _names(item)), None)
        if named is None:
            raise KeyError(f"{where} is not there any more")
        found = named
        body = getattr(found, "body", [])
    decorators = getattr(found, "decorator_list", [])
    return min([found.lineno, *(item.lineno for item in decorators)]), found.end_lineno or found.lineno


def _names(item: ast.stmt) -> set[str]:
    if isinstance(item, ast.ClassDef | ast.FunctionDef):
        return {item.name}
    targets = item.targets if isinstance(item, ast.Assign) else [item.target] if isinstance(item, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _case(tree: ast.Module, name: str, where: str) -> tuple[int, int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.match_case) and name in ast.unparse(node.pattern):
            return node.pattern.lineno, node.body[-1].end_lineno or node.body[-1].lineno
    raise KeyError(f"{where} is not there any more")
