"""The tables of projections, from the module that defines them."""

from __future__ import annotations

from dpone.ledger.projections.tables import POSITION, TABLES, TableColumn

from .pages import table


def tables() -> str:
    """A heading and a table of columns for each of them."""
    return "\n\n".join(
        f"## {one.name}\n\n{one.meaning} Key: `{one.key.name}`.\n\n"
        + table(("column", "type", "meaning"), [_row(column) for column in one.columns])
        for one in (*TABLES, POSITION)
    )


def _row(column: TableColumn) -> tuple[str, str, str]:
    return f"`{column.name}`", f"{column.kind}, never NULL" if column.required else f"{column.kind}", column.meaning
