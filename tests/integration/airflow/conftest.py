"""Airflow is an extra of its own: without it these tests are skipped, and where it is required that is a failure."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from .deployment import Deployment, deployed


@pytest.fixture(scope="session")
def installed() -> None:
    if find_spec("airflow") is None:
        pytest.skip("apache-airflow is not installed: scripts/setup airflow")


@pytest.fixture(scope="session")
def deployment(installed: None, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    return deployed(tmp_path_factory.mktemp("airflow"))
