"""The DAGs of the tests: as a user writes them, on the engine in process."""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Asset, task

from dpone.adapters.airflow import DponeEvidenceSensor, DponeRunOperator, dpone_dag, require_evidence

AGAIN: dict[str, Any] = {"retries": 3, "retry_delay": timedelta(seconds=1)}
GOOD, POOR = Asset("good_table"), Asset("poor_table")

with DAG("good", schedule=None):
    load = DponeRunOperator(
        task_id="load",
        manifest="manifests/good.batch.yaml",
        outlets=[GOOD],
        audit_url="http://127.0.0.1:1/audit/",
        **AGAIN,
    )
    guard = DponeEvidenceSensor(task_id="guard", manifest="manifests/good.batch.yaml", poke_interval=1, timeout=30)

    @task
    def consume() -> str:
        return "consumed"

    load >> guard >> consume()

with DAG("good_consumer", schedule=[GOOD]):

    @task
    def checked() -> list[dict[str, str]]:
        return require_evidence()

    checked()

with DAG("poor", schedule=None):
    poor = DponeRunOperator(task_id="load", manifest="manifests/poor.batch.yaml", outlets=[POOR], **AGAIN)

    @task
    def after_poor() -> None:
        raise AssertionError("nothing may start without evidence")

    poor_guard = DponeEvidenceSensor(task_id="guard", manifest="manifests/poor.batch.yaml", poke_interval=1, timeout=30)

    @task
    def guarded() -> None:
        raise AssertionError("nothing may start without evidence")

    poor >> after_poor()
    poor >> poor_guard >> guarded()

with DAG("poor_consumer", schedule=[POOR]):

    @task
    def never() -> None:
        raise AssertionError("nothing may start without evidence")

    never()

with DAG("unloaded", schedule=None):
    waiting = DponeEvidenceSensor(
        task_id="guard", manifest="manifests/unloaded.batch.yaml", poke_interval=0.5, timeout=1
    )

    @task
    def after_nothing() -> None:
        raise AssertionError("nothing may start without evidence")

    waiting >> after_nothing()

with DAG("mapped", schedule=None):
    DponeRunOperator.partial(task_id="load", **AGAIN).expand(
        manifest=["manifests/one.batch.yaml", "manifests/two.batch.yaml"]
    )

with DAG("siblings", schedule=None):
    DponeRunOperator.partial(task_id="load", retries=0).expand(
        manifest=["manifests/shared.batch.yaml", "manifests/shared.batch.yaml"]
    )

shop = dpone_dag("manifests/shop.flow.yaml", task_args=AGAIN)


class Paused(DponeRunOperator):
    load_command = ("-m", "tests.integration.airflow.paused_child")


class Leaking(DponeRunOperator):
    load_command = ("-m", "tests.load_child", "leak")


for name in ("killed", "marked"):
    with DAG(name, schedule=None) as paused:
        Paused(task_id="load", manifest=f"manifests/{name}.batch.yaml", retries=1, retry_delay=timedelta(seconds=1))
    globals()[name] = paused

with DAG("leaking", schedule=None):
    Leaking(task_id="load", manifest="manifests/servers.batch.yaml")
