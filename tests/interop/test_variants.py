"""VARIANT columns: what Java writes, shredded too, is read as Java reads it, and the other way round."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from canonical import comparable
from oracles import JavaOracle, OracleError
from ours import Ours

import tablestore as ts
from tablestore.sql.duckdb.functions import variantformat

pytestmark = [pytest.mark.interop, pytest.mark.deep]

COLUMNS = [{"name": "id", "type": "INT NOT NULL"}, {"name": "v", "type": "VARIANT"}]
DOCUMENTS: list[Any] = [
    {"a": 1, "b": "x", "c": {"d": [1, "2"], "e": [{"x": 1, "y": "p"}, {"z": None}]}, "n": [1, 2, "3"], "dd": 12.25},
    {"a": 2**40, "b": "r" * 70, "é": {"a": "s"}, "c": 5, "n": [], "dd": "12.25"},
    {"a": None, "zz": {"é": True}, "c": {"d": None, "e": "no list"}, "n": list(range(300))},
    *(None, True, -1, 127, -129, 2**31, -(2**62), 1.5e300, 0.25, "", "é" * 40, [], {}, [[], {"a": 5}], [1, 2]),
    {f"k{place}": place for place in range(300)},
]
ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation"},
    "first-row": {"merge-engine": "first-row", "changelog-producer": "lookup"},
    "deletion-vectors": {"deletion-vectors.enabled": "true"},
    "append": {},
}


def rows_of(documents: list[Any], start: int = 0) -> list[dict[str, Any]]:
    """Rows whose texts Java parses, and one of NULL."""
    texts = [json.dumps(document) for document in documents]
    return [{"id": start + place, "v": text} for place, text in enumerate([*texts, None])]


def row(**fields: Any) -> dict[str, Any]:
    return {
        "type": "ROW",
        "fields": [{"id": place, "name": name, "type": kind} for place, (name, kind) in enumerate(fields.items())],
    }


def array(element: Any) -> dict[str, Any]:
    return {"type": "ARRAY", "element": element}


def values(rows: list[dict[str, Any]]) -> dict[int, Any]:
    """The values by their keys, with their types: 1 is not 1.0, nor true."""
    return {
        one["id"]: one["v"]
        and _typed(variantformat.decode((bytes.fromhex(one["v"]["value"]), bytes.fromhex(one["v"]["metadata"]))))
        for one in rows
    }


def _typed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _typed(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return list(map(_typed, value))
    return type(value).__name__, str(value.normalize()) if isinstance(value, Decimal) else value


SHREDDED = {
    "objects": row(
        a="INT", b="STRING", c=row(d="VARIANT", e=array(row(x="BIGINT", y="STRING"))), n=array("INT"), dd="DECIMAL(9, 2)"
    ),
    "other types": row(a="BIGINT", b="DOUBLE", dd="DOUBLE", zz=row(é="BOOLEAN"), k7="SMALLINT"),
    "arrays": array("TINYINT"),
    "texts": "STRING",
    "decimals": "DECIMAL(38, 2)",
    "floats": "FLOAT",
    "none": None,
}


@pytest.mark.parametrize("shape", SHREDDED)
def test_shredded_values_are_read_as_java_reads_them(java: JavaOracle, warehouse: Path, shape: str) -> None:
    path, schema = warehouse / "db.db" / "shredded", SHREDDED[shape]
    options = {} if schema is None else {"parquet.variant.shreddingSchema": json.dumps(row(v=schema))}
    java.create(path, COLUMNS, options={"bucket": "-1", **options})
    java.write(path, rows_of(DOCUMENTS))
    stored = pq.read_schema(next(path.rglob("*.parquet"))).field("v").type
    assert ("typed_value" in str(stored)) == (schema is not None)
    assert values(Ours().read(path)) == values(java.read(path))
    # And compacted by us, which leaves no parts behind.
    ts.open_table(str(path)).compact(full=True)
    assert values(java.read(path)) == values(Ours().read(path))


@pytest.mark.parametrize("engine", ENGINES)
def test_both_write_and_compact_one_table(java: JavaOracle, warehouse: Path, engine: str) -> None:
    path, us = warehouse / "db.db" / "both", Ours()
    key = () if engine == "append" else ("id",)
    us.create(path, COLUMNS, primary_key=key, options={"bucket": "-1" if engine == "append" else "1", **ENGINES[engine]})
    made = warehouse / "db.db" / "made"
    java.create(made, COLUMNS, options={"bucket": "-1"})
    java.write(made, rows_of(DOCUMENTS))
    documents = java.read(made)
    us.write(path, documents)
    java.write(path, rows_of(DOCUMENTS[:3], start=1))
    us.write(path, [{"id": 2, "v": documents[0]["v"]}, {"id": 4, "v": None}])
    if engine == "deduplicate":
        us.write(path, [{"id": 5, "v": None}], kinds=["-D"])
    for compact in (us.compact, java.compact, lambda path: None):
        assert comparable(us.read(path)) == comparable(java.read(path)), engine
        compact(path)
    assert comparable(us.read(path)) == comparable(java.read(path))
    assert ts.open_table(str(path)).schema.field("v").metadata == {b"tablestore.type": b"VARIANT"}


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_formats_that_java_has_no_variant_in_are_refused_by_both(java: JavaOracle, warehouse: Path, file_format: str) -> None:
    options = {"file.format": file_format}
    with pytest.raises(OracleError, match="VARIANT"):
        java.create(warehouse / "db.db" / "theirs", COLUMNS, options=options)
    with pytest.raises(ts.UnsupportedError, match=f"'v'.*VARIANT.*{file_format}"):
        Ours().create(warehouse / "db.db" / "ours", COLUMNS, options=options)


def test_not_null_and_nested_variants_go_both_ways(java: JavaOracle, warehouse: Path) -> None:
    columns = [
        {"name": "id", "type": "INT NOT NULL"},
        {"name": "v", "type": "VARIANT NOT NULL"},
        {"name": "a", "type": {"type": "ARRAY", "element": "VARIANT"}},
    ]
    path, us = warehouse / "db.db" / "nested", Ours()
    java.create(path, columns, primary_key=["id"], options={"bucket": "1"})
    java.write(path, [{"id": 1, "v": "1", "a": ['{"x":1}', None]}, {"id": 2, "v": "[]", "a": None}])
    assert comparable(us.read(path)) == comparable(java.read(path))
    rows = us.read(path)
    us.write(path, [{**rows[0], "id": 3}])
    # A retraction has no value of its own, and Java reads it too.
    ts.open_table(str(path)).delete([{"id": 2}])
    assert comparable(us.read(path)) == comparable(java.read(path))
    assert len(us.read(path)) == 2
