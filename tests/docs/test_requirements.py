"""Each requirement of the design names tests that are there, or says why it has none."""

import ast
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.support.syntax import parsed

REQUIREMENTS = tomllib.loads((Path(__file__).parents[2] / "docs" / "requirements.toml").read_text())["requirement"]


@cache
def names_in(file: Path) -> frozenset[str]:
    """The names of the tests of a module."""
    nodes = ast.walk(parsed(file))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))


@pytest.mark.deep_after(42)
@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda one: one["id"])
def test_a_requirement_has_tests_that_are_there(project: Path, requirement: dict[str, object]) -> None:
    names = requirement["tests"]
    assert isinstance(names, list)
    assert names or requirement["open"]
    assert set(requirement) <= {"id", "says", "tests", "open", "instead"}
    for name in names:
        file, _, test = str(name).partition("::")
        assert test in names_in(project / file), name


def test_each_requirement_is_there_once() -> None:
    ids = [one["id"] for one in REQUIREMENTS]
    assert sorted(set(ids)) == sorted(ids)
    assert len(ids) > 30
