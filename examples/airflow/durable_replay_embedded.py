"""The flow examples/flow/durable-replay-embedded.flow.yaml as a DAG: put examples/ into Airflow's DAGs folder.

The DAG's id is the flow's; trigger it, clear its task, trigger it again: see docs/how-to/airflow.md.
"""

from dpone.adapters.airflow import dpone_dag

dag = dpone_dag("../flow/durable-replay-embedded.flow.yaml", task_args={"retries": 3})
