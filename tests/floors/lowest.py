"""Does tablestore work on the oldest dependencies that it allows?

    python -m tests.floors.lowest constraints    every floor of pyproject.toml as a version, for `pip install --constraint`
    python -m tests.floors.lowest run            the smoke suite, where exactly those versions are installed

The versions come from ``[project] dependencies`` and the extra ``cli`` alone, so they are the floors. ``make test-lowest`` does
both in an environment of its own.
"""

import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]

# What each dependency is used for, once: no test of these needs an extra but `cli`.
SMOKE = (
    "tests/floors/test_floors.py",  # the first example of the README
    "tests/types/filter/test_predicate.py",
    "tests/types/filter/test_predicatetext.py",
    "tests/lsm/merge",
    "tests/format/manifest",
    "tests/format/index/test_deletionvector.py",
    "tests/table/read/test_limit.py",
    "tests/table/write/test_deletemarks.py",
    "tests/table/upkeep/test_compact.py",
    "tests/store/commit/test_metadata.py",
    "tests/io/test_retry.py",
    "tests/io/test_fsspec.py",
    "tests/sql/parse",
    "tests/telemetry/test_columnlineage.py",
    "tests/cli/test_help.py",
)


def constraints() -> list[str]:
    """The floors as versions. A marker of the environment stays."""
    with (PROJECT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    return [need.replace(">=", "==", 1) for need in (*project["dependencies"], *project["optional-dependencies"]["cli"])]


def not_lowest() -> list[str]:
    """What is installed here, where it is not the floor."""
    wanted = [re.fullmatch(r"([\w.-]+)==([\d.]+)(?:; *python_version *(<|>=) *'([\d.]+)')?", line) for line in constraints()]
    found = []
    for match in wanted:
        assert match, "a dependency is not a name, one lower bound and perhaps a bound of Python"
        name, floor, order, python = match.groups()
        if order and (sys.version_info[:2] < _numbers(python)) != (order == "<"):
            continue
        if _numbers(version(name)) != _numbers(floor):
            found.append(f"{name} {version(name)} instead of {floor}")
    return found


def _numbers(text: str) -> tuple[int, ...]:
    """Equal for versions that are: 2.0 and 2.0.0."""
    numbers = [int(part) for part in text.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def main(arguments: list[str]) -> int | str:
    if arguments == ["constraints"]:
        sys.stdout.write("\n".join([*constraints(), ""]))
        return 0
    if arguments[:1] == ["run"]:
        if wrong := not_lowest():
            return f"these are not the lowest versions: {', '.join(wrong)}; make test-lowest installs them"
        import pytest

        return pytest.main(["--quiet", *SMOKE, *arguments[1:]])
    return __doc__ or ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
