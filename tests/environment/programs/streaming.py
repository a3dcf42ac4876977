"""Runs a streaming INSERT until it is killed, and says ``begun`` when it runs: ``streaming.py WAREHOUSE ENGINE STATEMENT``."""

import sys
from pathlib import Path

import tablestore as ts

if __name__ == "__main__":
    warehouse, engine, statement = sys.argv[1:]
    with ts.TableEnvironment.create(warehouse, engine=engine) as env:  # type: ignore[arg-type]
        env.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
        if engine == "spark":
            env.execute_sql(f"SET 'execution.checkpointing.dir' = '{Path(warehouse).parent / 'checkpoints'}'")
        job = env.execute_sql(statement).job
        assert job is not None
        sys.stdout.write("begun\n")
        sys.stdout.flush()
        job.result()
