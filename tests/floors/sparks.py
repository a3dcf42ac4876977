"""Does the Spark connector work on the older versions of Spark that it allows?

    python -m tests.floors.sparks versions       the versions that are tried, oldest first
    python -m tests.floors.sparks run 4.0.5      the smoke suite, where exactly this version is installed

``make test-spark SPARK=4.0.5`` does it in an environment of its own. The newest version is what all other tests run on.
"""

import sys
from importlib.metadata import version

VERSIONS = ("4.0.5", "4.1.4", "4.2.1")
"""The newest release of each older line that is tried; the first line is the floor of pyproject.toml."""

SMOKE = (
    "tests/integration/spark/test_versions.py",  # read, write, upsert, stream, MERGE, CTAS, materialized table
    "tests/integration/spark/test_engine.py",  # what every engine of queries promises
    "tests/integration/spark/test_read.py",
    "tests/integration/spark/test_types.py",
    "tests/integration/spark/test_sail.py",
)

# Of Python's own clean-up in older versions: sockets to the JVM, and servers of accumulators.
_IGNORED = ("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


def main(arguments: list[str]) -> int | str:
    if arguments == ["versions"]:
        sys.stdout.write("\n".join([*VERSIONS, ""]))
        return 0
    if arguments[:1] == ["run"] and len(arguments) > 1:
        wanted, *rest = arguments[1:]
        if version("pyspark") != wanted:
            return f"this is pyspark {version('pyspark')} and not {wanted}; make test-spark SPARK={wanted} installs it"
        import pytest

        return pytest.main(
            ["--quiet", "-m", "not slow", *(part for warning in _IGNORED for part in ("-W", warning)), *SMOKE, *rest]
        )
    return __doc__ or ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
