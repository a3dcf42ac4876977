"""One warehouse for all tests of pages: it is only read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("jinja2", reason="pages need Jinja: pip install 'managed-tablestore[server]'")

import tablestore as ts
from tablestore.server.access.roles import Grant, Principal, Role
from tablestore.server.page.pagecontext import AccessLine, JobLine
from tablestore.server.page.pageroutes import PageService
from tablestore.server.page.queryrunner import DuckdbRunner
from tests.server.page.oddwarehouse import MARKUP, fill

ADMIN = Principal(name=f"ann {MARKUP}", grants=(Grant(Role.ADMIN),))


@pytest.fixture(scope="package")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages") / "warehouse"
    fill(folder).close()
    return folder


@pytest.fixture(scope="package")
def catalog(warehouse: Path) -> Iterator[ts.Catalog]:
    catalog = ts.open_catalog(warehouse)
    yield catalog
    catalog.close()


@pytest.fixture(scope="package")
def service(catalog: ts.Catalog) -> PageService:
    jobs = (
        JobLine(id="1", what="compaction", database="Shop", table="orders", status="RUNNING", began_ms=1_700_000_000_000),
        JobLine(id="2", what=MARKUP, status="FAILED", began_ms=1_700_000_000_000, detail=MARKUP),
    )
    return PageService(
        catalog=catalog,
        jobs=lambda: jobs,
        grants=lambda resource: (AccessLine(name=MARKUP, role="reader", scope=str(resource)),),
        runner=DuckdbRunner(catalog=catalog),
    )
