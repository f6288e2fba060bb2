"""What Airflow reads about this package at its start: names only, nothing is imported for it."""

from __future__ import annotations

from typing import Any, Final

PACKAGE: Final = "dpone-replay"


def get_provider_info() -> dict[str, Any]:
    """The provider's description, in the form of Airflow's ``provider_info.schema.json``."""
    return {
        "package-name": PACKAGE,
        "name": "dpone-replay",
        "description": "Durable, bounded full refreshes of ClickHouse tables: proof before success.",
        "extra-links": ["dpone.adapters.airflow.links.DponeAuditLink"],
    }
