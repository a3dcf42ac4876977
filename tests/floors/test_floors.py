"""Floors of dependencies: each has its reason, the lowest set follows from them, and the newest of others fit beside them."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.floors import dbt, recipes, sparks
from tests.floors.lowest import SMOKE, constraints

NEIGHBOURS = ("pandas", "polars", "duckdb", "mlflow>=3", "apache-airflow")


def test_every_floor_has_its_reason_beside_it(project: Path) -> None:
    lines = (project / "pyproject.toml").read_text().splitlines()
    start = lines.index("dependencies = [")
    block = lines[start + 1 : lines.index("]", start)]
    silent = [
        line for before, line in zip(["", *block], block, strict=False) if '"' in line and "#" not in before and "#" not in line
    ]
    assert silent == []


def test_the_lowest_set_is_one_version_of_each_dependency() -> None:
    assert all(re.fullmatch(r"[\w.-]+==[\d.]+(; python_version (<|>=) '[\d.]+')?", line) for line in constraints())


def test_ci_runs_the_lowest_set_and_the_smoke_suite_is_there(project: Path) -> None:
    assert "make --no-print-directory lint test test-lowest" in (project / ".ci" / "run").read_text()
    assert [name for name in SMOKE if not (project / name).exists()] == []


def test_ci_tries_every_older_line_of_spark_from_the_floor_on(project: Path) -> None:
    workflow = (project / ".github" / "workflows" / "ci.yml").read_text()
    (matrix,) = re.findall(r"spark: \[(.*)\]", workflow)
    assert re.findall(r'"([\d.]+)"', matrix) == list(sparks.VERSIONS)
    assert "make test-spark SPARK=${{ matrix.spark }}" in workflow
    extras = tomllib.loads((project / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (floor,) = (match[1] for need in extras["spark"] if (match := re.match(r"pyspark>=([\d.]+),", need)))
    assert sparks.VERSIONS[0].startswith(f"{floor}.")
    assert [name for name in sparks.SMOKE if not (project / name).exists()] == []


def test_ci_runs_the_suites_of_dbt_on_the_floors_of_the_adapter(project: Path) -> None:
    # Not on the lowest set.
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((project / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    assert "make test-dbt" in [step.get("run") for step in jobs["dbt"]["steps"]]
    floors = tomllib.loads((project / "connectors" / "dbt" / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {one for one in floors if one.startswith("dbt-")} <= set(dbt.REQUIREMENTS)
    assert (project / dbt.TESTS / "conftest.py").is_file()


def test_ci_runs_the_recipes_of_all_orchestrators(project: Path) -> None:
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((project / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    assert "make test-recipes" in [step.get("run") for step in jobs["recipes"]["steps"]]
    assert f"RECIPES ?= {' '.join(recipes.REQUIREMENTS)}\n" in (project / "Makefile").read_text()
    assert all((project / recipes.TESTS / f"test_{name}.py").is_file() for name in recipes.REQUIREMENTS)


@pytest.mark.deep
def test_the_first_example_of_the_readme_runs_on_a_base_install(project: Path, tmp_path: Path) -> None:
    first = re.search(r"```python\n(.*?)```", (project / "README.md").read_text(), re.DOTALL)
    assert first
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", first[1]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[{'item': 'ink', 'price': 9.0}, {'item': 'pad', 'price': 4.0}]",
        "[{'item': 'ink', 'price': 8.0}, {'item': 'pen', 'price': 1.5}]",
    ]


@pytest.mark.slow
def test_the_newest_of_what_people_install_beside_it_resolves(project: Path, tmp_path: Path) -> None:
    clean = tmp_path / "clean"
    subprocess.run([sys.executable, "-m", "venv", clean], check=True)
    command = [clean / "bin" / "python", "-m", "pip", "install", "--quiet", "--dry-run", project, *NEIGHBOURS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
