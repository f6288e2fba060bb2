"""A DAG file that knows nothing of dpone but the operator."""

from airflow.sdk import DAG

from dpone.adapters.airflow import DponeRunOperator

with DAG("only_the_operator", schedule=None):
    DponeRunOperator(task_id="load", manifest="manifests/good.batch.yaml", ledger="{{ var.value.ledger }}")
