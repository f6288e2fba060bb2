"""Inheritance: a lower mapping's fields under an upper one's, each remembering where it was written.

Mappings merge field by field, the upper value wins, lists are replaced. ``sink.columns`` is replaced as well: it is
the ordered list of a table's columns in the form of a mapping.
"""

from __future__ import annotations

from typing import Any, Final

from .yaml import Located, Path, Place

WHOLE: Final = frozenset({("sink", "columns")})


def inherit(lower: Located, upper: Located) -> Located:
    """``upper`` over ``lower``; both hold mappings. Places of the result are those of the winning values."""
    places: dict[Path, Place] = {}
    value = _merge(lower, upper, (), places)
    return Located(value, places)


def _merge(lower: Located, upper: Located, path: Path, places: dict[Path, Place]) -> Any:
    if path in WHOLE or not (isinstance(lower.value, dict) and isinstance(upper.value, dict)):
        return _take(upper, path, places)
    places[path] = upper.place(())
    merged: dict[str, Any] = {}
    for key in lower.value | upper.value:
        here = (*path, key)
        if key not in upper.value:
            merged[key] = _take(lower.at(key), here, places)
        elif key not in lower.value:
            merged[key] = _take(upper.at(key), here, places)
        else:
            merged[key] = _merge(lower.at(key), upper.at(key), here, places)
    return merged


def _take(taken: Located, path: Path, places: dict[Path, Place]) -> Any:
    places[path] = taken.place(())
    match taken.value:
        case dict():
            keys: list[str | int] = list(taken.value)
        case list():
            keys = list(range(len(taken.value)))
        case _:
            keys = []
    for key in keys:
        _take(taken.at(key), (*path, key), places)
    return taken.value
