"""Records whose row violates a constraint of the table are dead letters; the others are ingested."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.cdc.ingest.ingesting import run_ingest
from tablestore.cdc.ingest.ingestrequest import IngestRequest
from tests.support.changelogs.memorytopic import MemoryTopic, Record

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("price", pa.float64())])


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    opened = ts.open_catalog(tmp_path / "wh")
    opened.create_database("d")
    return opened


def plain(identifier: int, price: float | None) -> Record:
    return None, json.dumps({"id": identifier, "price": price}).encode()


def change(before: Any, after: Any) -> Record:
    return None, json.dumps({"op": "u" if before else "c", "before": before, "after": after}).encode()


def run(
    catalog: ts.Catalog, form: str, *records: Record, on_error: Any = "dead-letter", keyed: bool = True, default: str | None = None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of the table and the dead letters behind an ingest."""
    table = catalog.create_table(
        "d.t", SCHEMA, ["id"] if keyed else None, checks={"positive": "price > 0", "seldom": "10 % id < 5"}
    )
    if default is not None:
        table.alter(ts.ChangeDefault("price", default))
    letters = ts.dead_letter_table(catalog, "d.letters")
    topic = MemoryTopic()
    topic.partitions[0] += records
    run_ingest(table, topic, IngestRequest(name="job", format=form, on_error=on_error), letters)
    rows = sorted(table.refresh().scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    return rows, sorted(letters.refresh().scan().to_arrow().to_pylist(), key=lambda row: row["offset"])


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_a_record_that_violates_a_constraint_is_a_dead_letter_with_the_reason(keyed: bool, catalog: ts.Catalog) -> None:
    good = [plain(1, 1.0), plain(2, None), plain(3, 3.0)]
    rows, letters = run(catalog, "json", good[0], plain(4, -1.0), good[1], plain(0, 5.0), plain(9, 0.0), good[2], keyed=keyed)
    assert rows == [{"id": 1, "price": 1.0}, {"id": 2, "price": None}, {"id": 3, "price": 3.0}]
    assert [letter["offset"] for letter in letters] == [1, 3, 4]
    assert letters[0]["reason"] == "constraint 'positive', CHECK (price > 0), is violated: price = -1.0"
    assert letters[0]["value"] == plain(4, -1.0)[1]
    assert "cannot be computed: id = 0" in letters[1]["reason"]


def test_a_change_that_violates_a_constraint_changes_nothing_of_its_row(catalog: ts.Catalog) -> None:
    one, two = {"id": 1, "price": 1.0}, {"id": 3, "price": 2.0}
    rows, letters = run(
        catalog,
        "debezium-json",
        change(None, one),
        change(one, {"id": 2, "price": -1.0}),
        change(None, two),
        change(two, {**two, "price": 7.0}),
    )
    assert rows == [one, {"id": 3, "price": 7.0}]
    assert [letter["offset"] for letter in letters] == [1]


def test_a_default_counts_as_the_value_that_is_written(catalog: ts.Catalog) -> None:
    rows, letters = run(catalog, "json", plain(1, None), plain(2, 2.0), default="-1.0")
    assert rows == [{"id": 2, "price": 2.0}]
    assert "price = -1.0" in letters[0]["reason"]


def test_an_ingest_that_stops_at_errors_names_the_constraint(catalog: ts.Catalog) -> None:
    with pytest.raises(ts.FormatError, match=r"offset 1 of partition 0.*constraint 'positive', CHECK \(price > 0\)"):
        run(catalog, "json", plain(1, 1.0), plain(2, -1.0), on_error="stop")
