"""Postponed buckets in turn with others: whoever writes waiting rows and whoever compacts them, all read the same rows.

Java compacts as its engines do (``PaimonOracle.java``): the files of the folder one after the other, by their creation.
"""

import random
from pathlib import Path
from typing import Any

import ours
import pytest
from canonical import comparable
from limits import has_nanoseconds, seen_by
from oracles import JavaOracle, PypaimonOracle
from ours import Ours
from random_tables import History, Model, TableSpec, all_type_columns, number_fields, random_spec

pytestmark = [pytest.mark.interop, pytest.mark.deep]

POSTPONED = {"bucket": "-2", "postpone.default-bucket-num": "3"}


@pytest.fixture
def readers(java: JavaOracle, pypaimon_pure: PypaimonOracle, pypaimon_native: PypaimonOracle) -> list[Any]:
    """Everyone who must agree, us included."""
    return [Ours(), java, pypaimon_pure, pypaimon_native]


@pytest.mark.parametrize(("shape", "file_format"), [("keyed", "parquet"), ("keyed-partitioned", "avro"), ("keyed", "orc")])
def test_three_writers_and_two_compactors_in_turn(readers: list[Any], warehouse: Path, shape: str, file_format: str) -> None:
    rng = random.Random(f"postponed {shape} {file_format}")
    us, java, pure = readers[:3]
    types = [
        column["type"] for column in all_type_columns() if not has_nanoseconds(column["type"]) and isinstance(column["type"], str)
    ]
    spec = random_spec(rng, shape, types=types, options={**POSTPONED, "file.format": file_format})
    path = warehouse / "db.db" / "postponed"
    ours.create(us, path, spec)
    model, history = Model(spec), History(rng, spec, keys=40)
    for turn in range(3):
        for writer in rng.sample([us, us, java, pure], k=4):
            batch = history.batch(12, delete_rate=0 if writer is pure else 0.25)
            before = comparable(us.read(path))
            model.apply(batch.rows, batch.kinds)
            writer.write(path, batch.rows, kinds=batch.kinds)
            assert comparable(us.read(path)) == before, "rows wait for a compaction"
        (java if turn % 2 else us).compact(path, full=turn == 2)
        for reader in readers:
            assert seen_by(reader.name, reader.read(path)) == seen_by(reader.name, model.contents()), (reader.name, turn)
    buckets = {file["bucket"] for file in java.files(path)}
    assert len(buckets) > 1 and buckets <= {0, 1, 2}


ENGINES: dict[str, dict[str, str]] = {
    "partial-update": {},
    "aggregation": {"fields.n.aggregate-function": "sum", "fields.s.aggregate-function": "last_value"},
    "first-row": {"ignore-delete": "true"},
    "deduplicate by n": {"merge-engine": "deduplicate", "sequence.field": "n"},
    "lookup": {"merge-engine": "deduplicate", "changelog-producer": "lookup"},
    "vectors": {"merge-engine": "deduplicate", "deletion-vectors.enabled": "true"},
}


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_of_one_key_combine_as_those_of_javas_writer(java: JavaOracle, warehouse: Path, engine: str) -> None:
    rng = random.Random(f"postponed {engine}")
    us = Ours()
    columns = number_fields([{"name": "k", "type": "INT NOT NULL"}, {"name": "n", "type": "INT"}, {"name": "s", "type": "STRING"}])
    spec = TableSpec(columns, ("k",), (), {"merge-engine": engine, **ENGINES[engine], **POSTPONED})
    places = [(us, us), (us, java), (java, us), (java, java)]
    paths = [warehouse / "db.db" / f"t{number}" for number in range(len(places))]
    for path in paths:
        ours.create(java, path, spec)
    takes_removals = engine not in ("partial-update", "first-row")
    for _ in range(2):
        for _ in range(2):
            rows = [{"k": rng.randrange(8), "n": rng.randrange(9), "s": rng.choice([None, "a", "b"])} for _ in range(14)]
            kinds = [rng.choice(["+I", "+I", "-D"]) if takes_removals else "+I" for _ in rows]
            for path, (writer, _) in zip(paths, places, strict=True):
                writer.write(path, rows, kinds=kinds)
        results = []
        for path, (_, compactor) in zip(paths, places, strict=True):
            compactor.compact(path, full=True)
            results += [comparable(us.read(path)), comparable(java.read(path))]
        assert results == results[:1] * len(results), engine
