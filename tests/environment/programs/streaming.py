"""Runs streaming INSERTs until it is killed, and says ``begun`` when all run: ``streaming.py WAREHOUSE ENGINE STATEMENT…``."""

import sys
from pathlib import Path

import tablestore as ts

if __name__ == "__main__":
    warehouse, engine, *statements = sys.argv[1:]
    with ts.TableEnvironment.create(warehouse, engine=engine) as env:  # type: ignore[arg-type]
        env.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
        if engine == "spark":
            env.execute_sql(f"SET 'execution.checkpointing.dir' = '{Path(warehouse).parent / 'checkpoints'}'")
        jobs = [env.execute_sql(statement).job for statement in statements]
        sys.stdout.write("begun\n")
        sys.stdout.flush()
        while True:
            for job in jobs:
                assert job is not None
                if job.wait(0.5):
                    job.result()
