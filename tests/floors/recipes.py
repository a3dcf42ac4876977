"""Do the recipes for orchestrators run on the orchestrators themselves?

    python -m tests.floors.recipes requirements dagster      what the tests of one need beside tablestore, for pip
    python -m tests.floors.recipes run dagster               its tests

``make test-recipes`` does it for each, in an environment of its own: they hold packages at other versions than tablestore's tests.
"""

import os
import subprocess
import sys

# Older ones are not tried.
REQUIREMENTS = {"dagster": ("dagster>=1.13", "pytest"), "airflow": ("apache-airflow>=3.3", "pytest")}
TESTS = "tests/integration/recipes"


def main(arguments: list[str]) -> int | str:
    match arguments:
        case ["requirements", name]:
            sys.stdout.write("\n".join([*REQUIREMENTS[name], ""]))
            return 0
        case ["run", name, *rest]:
            return run(name, rest)
    return __doc__ or ""


def run(name: str, rest: list[str]) -> int:
    """Runs the tests of one orchestrator."""
    command = [
        *(sys.executable, "-m", "pytest", "--quiet", f"--confcutdir={TESTS}"),
        # The orchestrators and their packages warn of themselves.
        *("-o", "filterwarnings=ignore", f"{TESTS}/test_{name}.py", *rest),
    ]
    settings = {"DAGSTER_DISABLE_TELEMETRY": "yes", "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False"}
    return subprocess.run(command, env={**os.environ, **settings}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
