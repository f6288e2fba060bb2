"""What all events have in common, and who acted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What all events share: the moment, RFC 3339 in UTC."""

    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class By:
    """Who acted: operating-system user, host name, product version."""

    os_user: str
    host: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A person decided: the name and the reason that they gave, and the process that they typed it in."""

    name: str
    reason: str
    by: By
