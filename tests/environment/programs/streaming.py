"""Runs a streaming INSERT until it is killed: ``python streaming.py WAREHOUSE STATEMENT``. It says ``begun`` when it runs."""

import sys

import tablestore as ts

if __name__ == "__main__":
    with ts.TableEnvironment.create(sys.argv[1], engine="duckdb") as env:
        env.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
        job = env.execute_sql(sys.argv[2]).job
        assert job is not None
        sys.stdout.write("begun\n")
        sys.stdout.flush()
        job.result()
