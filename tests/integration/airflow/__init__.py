"""Real Airflow: its metadata database, ``dag.test()``, and an api-server with a scheduler that runs tasks."""
