"""What only a whole manifest can show: names, targets and dependencies of its processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from .fields import suggestion
from .yaml import Place, Problem

if TYPE_CHECKING:
    from .reading import Found


def duplicate_problems(found: Sequence[Found]) -> Iterator[Problem]:
    """A selector, or a target, that stands in the manifest twice."""
    selectors: dict[str, Place] = {}
    targets: dict[tuple[str, str, str], Place] = {}
    for item in found:
        place = item.located.place(() if item.label else ("name",))
        if item.selector in selectors:
            yield Problem(place, f"{item.selector} stands here a second time; first at {selectors[item.selector]}")
        selectors.setdefault(item.selector, place)
        sink = item.fields["sink"]
        target = (sink["connection_ref"], sink["table"]["schema"], sink["table"]["name"])
        if target in targets:
            where = item.located.place(("sink", "table", "name"))
            what = f"sink.table: {target[1]}.{target[2]} is also the target of the process at {targets[target]}"
            yield Problem(where, what)
        targets.setdefault(target, place)


def dependency_problems(found: Sequence[Found]) -> Iterator[Problem]:
    """A dependency on nothing, or around a circle."""
    known = {item.selector: item for item in found}
    whole = True
    for item in found:
        for index, name in enumerate(item.fields.get("depends_on", ())):
            if name not in known:
                whole = False
                what = f"depends_on[{index}]: no process of this manifest has this selector{suggestion(name, known)}"
                yield Problem(item.located.place(("depends_on", index)), what)
    circle = _circle((item.selector, item.fields.get("depends_on", ())) for item in found) if whole else ()
    if circle:
        where = known[circle[0]].located.place(("depends_on",))
        yield Problem(where, f"depends_on: these processes wait for each other: {' → '.join(circle)}")


def _circle(edges: Iterable[tuple[str, Sequence[str]]]) -> Sequence[str]:
    from graphlib import CycleError, TopologicalSorter

    try:
        TopologicalSorter(dict(edges)).prepare()
    except CycleError as error:
        return [str(name) for name in reversed(error.args[1])]
    return ()
