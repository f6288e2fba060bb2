"""Manifests: YAML files in, normalised processes out, every mistake with its file, line and column.

``yaml`` reads strict YAML 1.2 and remembers where everything stood; ``inherit`` merges a batch's defaults; ``grammar``
holds the shapes (marshmallow), built from the strict ``fields``; ``load`` puts them together and is the door:
:func:`~dpone.adapters.manifest.load.load_manifest`. ``json_schemas`` derives the editors' schemas from the same shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .json_schemas import json_schema
    from .load import Manifest, load_manifest

__all__ = ["Manifest", "json_schema", "load_manifest"]


def __getattr__(name: str) -> Any:
    if name == "json_schema":
        from .json_schemas import json_schema

        return json_schema
    if name in __all__:
        from . import load

        return getattr(load, name)
    raise AttributeError(name)
