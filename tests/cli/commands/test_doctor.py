"""``doctor``: what it looks at, what it returns, and that every problem comes with a way out."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.cli import doctorchecks
from tablestore.cli.doctorchecks import check_machine, check_warehouse
from tablestore.io.fsspec_store import FsspecFileStore
from tablestore.io.lock.filelock import FileCatalogLock
from tablestore.io.lock.lockedstore import LockedFileStore
from tablestore.io.memory import MemoryFileStore
from tests.support.commandline import Ran

Run = Callable[..., Ran]


def test_the_machine_and_the_warehouse_are_looked_at(run: Run, orders: ts.Table) -> None:
    found = json.loads(run("doctor", "--json").out)
    assert found["healthy"] is True
    status = {check["name"]: check["status"] for check in found["checks"]}
    assert {"python", "pyarrow", "pyspark", "java", "confluent-kafka", "warehouse", "conditional publish"} <= set(status)
    assert status["conditional publish"] == "ok"
    assert sorted(path.name for path in Path(orders.location).parent.parent.iterdir()) == ["shop.db"]


def test_nothing_is_made_where_there_is_no_warehouse_yet(run: Run, warehouse: str) -> None:
    found = {check["name"]: check for check in run("doctor", "--json").json["checks"]}
    assert found["warehouse"]["status"] == "warning"
    assert "db create" in found["warehouse"]["fix"]
    assert not Path(warehouse).exists()


def test_without_a_warehouse_the_machine_is_checked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TABLESTORE_WAREHOUSE")
    assert "--warehouse" in run("doctor").out


def test_everything_that_is_not_in_order_names_its_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctorchecks, "installed", lambda name: None)
    monkeypatch.setattr(doctorchecks, "java_version", lambda: None)
    looks = list(check_machine())
    status = {look.name: look.status for look in looks}
    assert (status["pyarrow"], status["pyspark"], status["java"]) == ("problem", "absent", "absent")
    assert all(look.fix for look in looks if look.status != "ok")


@pytest.mark.parametrize(
    ("spark", "java", "broken"), [("4.3.0", None, "java"), ("4.3.0", "11.0.2", "java"), ("3.5.1", "17", "pyspark")]
)
def test_spark_needs_its_java(monkeypatch: pytest.MonkeyPatch, spark: str, java: str | None, broken: str) -> None:
    versions = {"pyspark": spark, "tablestore": None}
    monkeypatch.setattr(doctorchecks, "installed", lambda name: versions.get(name, "1.0"))
    monkeypatch.setattr(doctorchecks, "java_version", lambda: java)
    assert [look.name for look in check_machine() if look.status == "problem"] == [broken]


def test_another_product_of_the_same_name_is_a_problem_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctorchecks, "installed", lambda name: "6.4.8" if name == "tablestore" else "1.0")
    (look,) = (look for look in check_machine() if look.name == "tablestore")
    assert look.status == "problem" and "6.4.8 of the distribution `tablestore`, another product" in look.detail
    assert look.fix is not None and look.fix.startswith("pip uninstall --yes tablestore managed-tablestore")


def test_a_problem_returns_3(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctorchecks, "installed", lambda name: None)
    assert run("doctor", "--json", code=3).json["healthy"] is False


def test_a_store_that_cannot_publish_needs_the_lock_that_is_named(tmp_path: Path) -> None:
    bare = FsspecFileStore(f"file://{tmp_path}")
    stores = (bare, LockedFileStore(bare, FileCatalogLock(directory=f"{tmp_path}/locks")))
    without, under = ({look.name: look for look in check_warehouse(store)}["conditional publish"] for store in stores)
    assert (without.status, under.status) == ("problem", "ok")
    assert "catalog.lock.type" in str(without.fix)


class Replacing(MemoryFileStore):
    """A store that says it can publish, and replaces what is there."""

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        self.overwrite(path, data)
        return True


def test_a_store_that_breaks_its_promise_is_found() -> None:
    looks = {look.name: look for look in check_warehouse(Replacing("doctor-replacing"))}
    assert looks["conditional publish"].status == "problem"


def test_the_database_of_the_names_is_looked_at(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    there = ("--storage", "metastore=jdbc", "--storage", f"uri=sqlite:///{tmp_path}/names.db")
    run("db", "create", "sales", *there)
    looks = {check["name"]: check for check in run("doctor", "--json", *there).json["checks"]}
    assert (looks["names"]["status"], looks["names"]["detail"]) == ("ok", f"1 database(s) in sqlite:///{tmp_path}/names.db")
    assert "database(s)" not in looks["warehouse"]["detail"]  # its directories are not what counts
    assert looks["conditional publish"]["status"] == "ok"
    gone = ("--storage", "metastore=jdbc", "--storage", f"uri=sqlite:///{tmp_path}/nowhere/names.db")
    looks = {check["name"]: check for check in run("doctor", "--json", *gone, code=3).json["checks"]}
    assert looks["names"]["status"] == "problem"
    assert "nowhere" in looks["names"]["detail"]
    assert "uri" in looks["names"]["fix"]


def test_an_option_that_the_catalog_does_not_have_is_refused(run: Run, orders: ts.Table) -> None:
    assert "did you mean 'metastore'" in run("doctor", "--storage", "metastor=jdbc", code=1).err


def test_workers_without_the_data_source_are_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (found,) = [look for look in check_machine() if look.name == "PYSPARK_PYTHON"]
    assert (found.status, found.detail) == ("warning", "not set, and python3 has no pyspark_tablestore")
    assert found.fix is not None
    assert "register(spark)" in found.fix
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert not [look for look in check_machine() if look.name == "PYSPARK_PYTHON"]
