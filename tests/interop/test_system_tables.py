"""System tables have the columns, types and values that the Java core gives them, on its tables and on ours."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import canonical
import pytest
from canonical import comparable
from oracles import JavaOracle
from ours import Ours
from random_tables import number_fields

import tablestore as ts
from tablestore.table.system.systemkinds import SYSTEM_TABLES
from tablestore.types.typestring import type_to_sql

pytestmark = pytest.mark.interop

COLUMNS = number_fields(
    [
        {"name": "day", "type": "DATE NOT NULL"},
        {"name": "k", "type": "BIGINT NOT NULL"},
        {"name": "s", "type": "STRING"},
        {"name": "d", "type": "DECIMAL(10, 2)"},
        {"name": "t", "type": "TIMESTAMP(6)"},
        {"name": "f", "type": "DOUBLE"},
        {"name": "b", "type": "BOOLEAN"},
    ]
)
GOLDEN = ("jv_pk_compact", "jv_pk_lookup", "py_pk_evolved", "py_append_part_bucketed", "rs_pk_part")


def row(day: str, k: int, **values: Any) -> dict[str, Any]:
    plain = {"s": f"s{k}", "d": "1.50", "t": "2024-01-31T12:00:00.000001", "f": 1.0, "b": True}
    return {"day": day, "k": k, **plain, **values}


def ours(path: Path, name: str) -> list[dict[str, Any]]:
    return canonical.encode_rows(ts.open_table(f"{path}${name}").scan().to_arrow())


def settled(name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what may differ: where the warehouse lies, the order of JSON keys, and numbers of no meaning."""
    settled = []
    for each in rows:
        each = dict(each)
        if "file_path" in each:
            each["file_path"] = each["file_path"].rpartition("/")[2]
        if name == "schemas":
            # Java shows a JSON null, as pypaimon writes it, as a text.
            each["comment"] = None if each["comment"] == "null" else each["comment"]
            each |= {key: json.dumps(json.loads(each[key]), sort_keys=True) for key in ("fields", "options")}
        settled.append(each)
    return comparable(settled)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both sides show local times; the Java process runs in UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def make(warehouse: Path) -> Any:
    def make(engine: Any, name: str, *, keyed: bool) -> Path:
        path = warehouse / "db.db" / name
        options = {"bucket": "2"} if keyed else {"bucket": "2", "bucket-key": "k"}
        engine.create(path, COLUMNS, primary_key=["day", "k"] if keyed else [], partition_by=["day"], options=options)
        engine.write(path, [row("2024-01-31", k) for k in range(4)])
        engine.write(path, [row("2024-02-01", 7, s=None, d=None, t=None, f=None, b=None), row("2024-01-31", 2, s="new")])
        return path

    return make


@pytest.mark.deep_after(24)
@pytest.mark.parametrize("name", [name for name in SYSTEM_TABLES if name != "audit_log"])
@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("engine", ["java", "us"])
def test_rows_are_those_of_the_java_core(java: JavaOracle, make: Any, engine: str, keyed: bool, name: str) -> None:
    path = make(java if engine == "java" else Ours(), "t", keyed=keyed)
    theirs = java.system(path, name)
    assert settled(name, ours(path, name)) == settled(name, theirs["rows"])
    fields = ts.open_table(str(path)).system(name).fields
    assert [(field.name, type_to_sql(field.type)) for field in fields] == [(c["name"], c["type"]) for c in theirs["columns"]]


@pytest.mark.slow
@pytest.mark.parametrize("table", GOLDEN)
@pytest.mark.parametrize("name", [name for name in SYSTEM_TABLES if name not in ("audit_log", "branches")])
def test_golden_tables_look_alike(java: JavaOracle, warehouse: Path, golden_tables: Path, table: str, name: str) -> None:
    path = warehouse / "db.db" / table
    shutil.copytree(golden_tables / table, path)
    assert settled(name, ours(path, name)) == settled(name, java.system(path, name)["rows"])


def test_the_compacted_part_is_the_same(java: JavaOracle, make: Any) -> None:
    path = make(java, "c", keyed=True)
    java.compact(path)
    java.write(path, [row("2024-01-31", 99)])
    theirs = comparable(java.system(path, "ro")["rows"])
    assert len(theirs) == 5
    assert comparable(ours(path, "ro")) == theirs


def test_a_table_of_evolved_columns_has_statistics_of_the_new_ones(java: JavaOracle, make: Any) -> None:
    path = make(Ours(), "e", keyed=True)
    ts.open_table(str(path)).alter(
        [ts.RenameColumn("s", to="text"), ts.DropColumn("b"), ts.ChangeType("d", "DECIMAL(12, 3)"), ts.AddColumn("n", "INT")]
    )
    assert settled("files", ours(path, "files")) == settled("files", java.system(path, "files")["rows"])


def test_files_are_listed_after_a_change_of_type_that_we_do_not_follow(java: JavaOracle, make: Any) -> None:
    path = make(java, "u", keyed=False)
    java.alter(path, {"action": "widen", "column": "f", "type": "STRING"})
    with pytest.raises(ts.UnsupportedError, match="engines disagree"):
        Ours().read(path)
    assert {row["max_value_stats"].partition("f=")[2].partition(",")[0] for row in ours(path, "files")} == {"null"}
