"""Changes that are found in small files, each read at once and kept, are those that a lookup and a merge find."""

import random

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.store.scan.lookup import SmallFiles

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.float64()), ("s", pa.string())])


@pytest.mark.parametrize(
    "options",
    [{}, {"sequence.field": "v"}, {"merge-engine": "first-row"}, {"ignore-delete": "true"}],
    ids=["plain", "v", "first", "kept"],
)
def test_changes_of_small_files_are_those_of_a_merge(options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    catalog = ts.open_catalog("memory://changes-of-small-files-" + "-".join(options))
    catalog.create_database("shop", ignore_if_exists=True)
    table = catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options={"bucket": "2", **options})
    for _ in range(25):
        ids = sorted(rng.sample(range(12), rng.randrange(1, 5)))
        kinds = [rng.choice(["+I", "+U", "-D"]) if "first-row" not in options.values() else "+I" for _ in ids]
        values = [rng.choice([0.0, -0.0, 1.0, 2.0]) for _ in ids]
        rows = {"id": ids, "v": values, "s": [rng.choice(["a", "b", None]) for _ in ids]}
        table.write_changes(pa.table(rows, schema=SCHEMA).append_column("_row_kind", pa.array(kinds)))
    last = table.snapshots()[-1].id
    start = table.snapshots()[0].id
    at_once = table.changes(start, last).to_arrow()
    monkeypatch.setattr(SmallFiles, "read", lambda *arguments: None)
    monkeypatch.setattr("tablestore.store.changes.statediff._FEW_ROWS", -1)
    assert repr(at_once.to_pylist()) == repr(table.changes(start, last).to_arrow().to_pylist())
    assert at_once.num_rows > 30 or options
