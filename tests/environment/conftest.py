"""The environment of these tests: fresh, over a warehouse of its own, with the entry points of this checkout."""

import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts


@pytest.fixture(scope="session", autouse=True)
def _entry_points(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What pyproject.toml says, also where the checkout was installed before it said so."""
    groups = tomllib.loads((project / "pyproject.toml").read_text())["project"]["entry-points"]
    missing = {
        group: points for group, points in groups.items() if set(points) - {point.name for point in entry_points(group=group)}
    }
    folder = tmp_path_factory.mktemp("installed")
    if missing:
        info = folder / "checkout-0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: checkout\nVersion: 0\n")
        lines = [line for group, points in missing.items() for line in (f"[{group}]", *(f"{k} = {v}" for k, v in points.items()))]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield


@pytest.fixture
def env(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    """An environment without an engine."""
    with ts.TableEnvironment.create(tmp_path / "wh") as made:
        yield made


@pytest.fixture
def rows_of() -> Callable[[Any], list[tuple[Any, ...]]]:
    """The rows of a result as tuples."""
    return lambda result: [tuple(row.values()) for row in result.to_arrow().to_pylist()]


@pytest.fixture
def duck(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    """An environment whose queries DuckDB runs."""
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as made:
        yield made
