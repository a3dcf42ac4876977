"""What forks Spark's workers for ``stopping``: they stop at the step as well. Nothing that begins threads is imported before."""

from typing import Any

from pyspark import daemon

work = daemon.worker


def stopping_worker(*given: Any) -> Any:
    from tests.environment.programs.stopping import arm

    arm()
    return work(*given)


if __name__ == "__main__":
    daemon.worker = stopping_worker
    daemon.manager()
