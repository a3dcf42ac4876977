"""A service over each kind of catalog."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import tablestore as ts
from tests.support.served import Served, serving


@pytest.fixture(params=["files", "sql"])
def any_catalog(request: pytest.FixtureRequest, tmp_path: Path) -> ts.Catalog:
    """A catalog of each kind."""
    if request.param == "files":
        return ts.open_catalog(str(tmp_path / "wh"))
    return ts.open_catalog(str(tmp_path / "wh"), metastore="jdbc", uri=f"sqlite:///{tmp_path}/names.db")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A service over the directories of a warehouse."""
    yield from serving(ts.open_catalog(str(tmp_path / "wh")))


@pytest.fixture
def served_any(any_catalog: ts.Catalog) -> Iterator[Served]:
    """A service over a catalog of each kind."""
    yield from serving(any_catalog)
