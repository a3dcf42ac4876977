"""What forks Spark's workers for ``ctas``: at a step of a task they fail, or die, or their executor does, as a file says.

Nothing that begins threads is imported before a worker is forked.
"""

import json
import os
import signal
from pathlib import Path
from typing import Any

from pyspark import daemon

CASE = "TABLESTORE_TEST_CASE"
HOWS = ("task", "worker", "executor")
work = daemon.worker


def failing_worker(*given: Any) -> Any:
    from tablestore.io.local import LocalFileStore
    from tablestore.io.s3 import S3FileStore
    from tests.table.creation.creationsteps import watch

    for store in (LocalFileStore, S3FileStore):
        watch(store, come)
    return work(*given)


def come(step: Any) -> None:
    case = json.loads(Path(os.environ[CASE]).read_text())
    marks = Path(case["marks"])
    if step.name != case["step"] or len(list(marks.iterdir())) >= case["times"]:
        return
    (marks / f"{os.getpid()}-{len(list(marks.iterdir()))}").touch()
    if case["how"] == "task":
        raise RuntimeError(f"the task fails at {step.name}")
    # Worker, daemon, executor. The workers live on for a while beside the attempt that follows.
    daemon_id = os.getppid()
    executor = int(Path(f"/proc/{daemon_id}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(executor if case["how"] == "executor" else os.getpid(), signal.SIGKILL)
    if case["how"] == "executor":
        signal.pause()


if __name__ == "__main__":
    daemon.worker = failing_worker
    daemon.manager()
