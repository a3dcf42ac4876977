"""Does the adapter for dbt pass the suites that dbt has for adapters?

    python -m tests.floors.dbt requirements      what they need beside tablestore, for pip
    python -m tests.floors.dbt run               all suites on DuckDB, and the basic ones on Spark where that is installed

``make test-dbt`` does it in an environment of its own: dbt holds packages at other versions than tablestore's tests.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

REQUIREMENTS = (
    # 1.12 brings a parser that is fetched from outside of the package index when it is installed.
    "dbt-core>=1.11,<1.12",
    "dbt-adapters>=1.24,<2",
    "dbt-common>=1.39,<2",
    "dbt-tests-adapter>=1.20,<2",
    "pytest",
    "pytest-xdist",
)

TESTS = "tests/integration/dbt"
LOGS = "build/dbt"
BASIC = "basic or shop or tablestore"
"""The tests that run on Spark too, as pytest's -k."""

# The connectors are folders of the checkout; dbt extends its packages by what is on the path.
PATHS = ("connectors/dbt", "connectors/duckdb", "connectors/spark")

ENGINE = "DBT_TEST_ENGINE"


def main(arguments: list[str]) -> int | str:
    if arguments == ["requirements"]:
        sys.stdout.write("\n".join([*REQUIREMENTS, ""]))
        return 0
    if arguments[:1] == ["run"]:
        on_duckdb = run("duckdb", arguments[1:])
        return on_duckdb or (run("spark", ["-k", BASIC, *arguments[1:]]) if find_spec("pyspark") else 0)
    return __doc__ or ""


def run(engine: str, rest: list[str]) -> int:
    """Runs the tests in processes of their own: one JVM, and what dbt keeps in a process, are of one engine."""
    # Tests of a class go on from each other, and so stay with one worker. Spark has one.
    workers = ["-n", os.environ.get("WORKERS", "2"), "--dist", "loadscope"] if engine == "duckdb" else []
    command = [
        *(sys.executable, "-m", "pytest", "--quiet", "-p", "dbt.tests.fixtures.project", f"--confcutdir={TESTS}"),
        # dbt writes its logs below it.
        f"--rootdir={LOGS}",
        # dbt and its packages warn of themselves.
        *("-o", "filterwarnings=ignore", *workers, TESTS, *rest),
    ]
    Path(LOGS).mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([*PATHS, os.environ.get("PYTHONPATH", "")])
    settings = {"PYTHONPATH": path, ENGINE: engine, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    return subprocess.run(command, env={**os.environ, **settings}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
