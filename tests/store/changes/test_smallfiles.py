"""Changes that are found in small files, each read at once and kept, are those that a lookup and a merge find."""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablestore as ts
from tablestore.store.scan.lookup import SmallFiles

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.float64()), ("s", pa.string())])


@pytest.mark.deep_after(1)
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


def test_branches_whose_schemas_have_one_id_do_not_share_what_was_read(tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path, engine="duckdb") as env:
        for text in (
            "CREATE TABLE t (id INT, a INT, PRIMARY KEY (id) NOT ENFORCED)",
            "INSERT INTO t VALUES (1, 10), (2, 20)",
            "CALL sys.create_tag('t', 'v', 1)",
            "CALL sys.create_branch('t', 'br', 'v')",
            "ALTER TABLE t DROP COLUMN a",
            "ALTER TABLE t ADD COLUMN a INT",
            "ALTER TABLE `t$branch_br` RENAME COLUMN a TO c",
            "ALTER TABLE `t$branch_br` RENAME COLUMN c TO a",
            "INSERT INTO t VALUES (2, 5)",
            "INSERT INTO `t$branch_br` VALUES (2, 5)",
        ):
            env.execute_sql(text)
        for name, before in (("t", None), ("t$branch_br", 20)):
            changes = env.catalog().table(f"default.{name}").changes(1, pairs=True).to_arrow()
            assert changes.filter(pc.equal(changes["_row_kind"], "-U"))["a"].to_pylist() == [before]
