"""Makes each materialized table of a warehouse a task of Airflow: put this file where Airflow finds DAGs, and set WAREHOUSE.

A task waits for those of the tables that its query reads, refreshes its table, and updates an asset of Airflow's, so that other
DAGs may be scheduled by it. To refresh what is due is tablestore's own business (``refresh_due``): the DAG is for those who want to
see each table, its retries and its time.
"""

import os
from typing import Any

from airflow.sdk import DAG, Asset, task

from examples.orchestration.warehouse import RefreshedTable, refresh, tables


def refresh_dag(warehouse: str) -> DAG:
    """A DAG that refreshes the materialized tables of a warehouse every ten minutes, sources before what is made from them."""
    with DAG("tablestore_refresh", schedule="*/10 * * * *", catchup=False, max_active_runs=1, tags=["tablestore"]) as dag:
        known = tables(warehouse)
        tasks = {table.name: _task_of(warehouse, table) for table in known}
        for table in known:
            for source in table.sources:
                if source in tasks:
                    tasks[source] >> tasks[table.name]
    return dag


def _task_of(warehouse: str, table: RefreshedTable) -> Any:
    @task(task_id=table.name, outlets=[Asset(f"tablestore://{'/'.join(table.parts)}")])
    def refreshed() -> dict[str, str | int]:
        return refresh(warehouse, table)

    return refreshed()


if "WAREHOUSE" in os.environ:
    dag = refresh_dag(os.environ["WAREHOUSE"])
