"""The parts of the Airflow provider that need no Airflow."""
