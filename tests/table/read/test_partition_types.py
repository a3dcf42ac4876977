"""A table may be partitioned by a column of every type and precision: all readers find its rows, and a value its partition."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts

MOMENT = dt.datetime(2024, 1, 31, 1, 2, 3)
# Types with a value of each and how SQL writes it.
TYPES: dict[str, tuple[Any, str]] = {
    "BOOLEAN": (True, "true"),
    "TINYINT": (-5, "-5"),
    "BIGINT": (5, "5"),
    "FLOAT": (1.5, "1.5"),
    "DOUBLE": (1.5, "1.5D"),
    "DATE": (MOMENT.date(), "DATE '2024-01-31'"),
    "STRING": ("a=b/ä", "'a=b/ä'"),
    "CHAR(3)": ("abc", "'abc'"),
    "BYTES": (b"ab", "'ab'"),
    "DECIMAL(5, 2)": (Decimal("1.50"), "1.50"),
    "DECIMAL(38, 5)": (Decimal("1.50000"), "1.50000"),
    **{f"TIME({p})": (dt.time(1, 2, 3), "TIME '01:02:03'") for p in (0, 3, 6, 9)},
    **{f"TIMESTAMP({p})": (MOMENT, "TIMESTAMP_NTZ '2024-01-31 01:02:03'") for p in range(10)},
    **{f"TIMESTAMP_LTZ({p})": (MOMENT.replace(tzinfo=dt.UTC), "TIMESTAMP '2024-01-31 01:02:03Z'") for p in range(10)},
}
# Other engines store a null of these differently.
NEVER_NULL = ("DECIMAL(38, 5)", *(f"TIMESTAMP{zone}({p})" for zone in ("", "_LTZ") for p in range(4, 10)))


@pytest.fixture(scope="module")
def env() -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create("memory://partition-types", engine="duckdb") as made:
        yield made


@pytest.mark.deep_after(5)
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
@pytest.mark.parametrize("kind", TYPES)
def test_every_reader_finds_the_rows_of_a_partition(env: ts.TableEnvironment, kind: str, keyed: bool) -> None:
    value, literal = TYPES[kind]
    env.execute_sql("DROP TABLE IF EXISTS t")
    key = ", PRIMARY KEY (id, p) NOT ENFORCED" if keyed else ""
    nullable = not keyed and kind not in NEVER_NULL
    env.execute_sql(
        f"CREATE TABLE t (id INT, p {kind}{'' if nullable else ' NOT NULL'}, v INT{key}) PARTITIONED BY (p) "
        "WITH ('partition.legacy-name' = 'false')"
    )
    table = env.catalog().table("default.t")
    assert isinstance(table, ts.Table)
    field = table.schema.field("p")
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.int32()),
            "p": pa.array([value, None if nullable else value], field.type),
            "v": pa.array([1, 1], pa.int32()),
        }
    )
    (table.upsert if keyed else table.append)(rows)
    (table.upsert if keyed else table.append)(rows.slice(0, 1))
    expected = sorted((rows if keyed else pa.concat_tables([rows, rows.slice(0, 1)])).to_pylist(), key=str)

    def same(found: pa.Table) -> None:
        assert sorted(found.select(["id", "p", "v"]).to_pylist(), key=str) == expected

    same(table.to_arrow())
    same(table.scan().to_reader().read_all())
    same(table.to_dataset().to_table())
    same(table.changes(0).to_arrow() if not keyed else table.to_arrow())
    same(pa.Table.from_batches([batch.rows for batch in table.consume("full", follow=False)]))
    same(env.execute_sql("SELECT id, p, v FROM t").to_arrow())
    assert table.scan(columns=["p"]).to_arrow()["p"].to_pylist().count(rows["p"][0].as_py()) == len(expected) - nullable
    assert table.scan().count() == len(expected) == len(table.to_polars())
    assert env.execute_sql("SELECT count(*) AS n FROM t WHERE p IS NULL").to_arrow()["n"].to_pylist() == [int(nullable)]
    table.compact(full=True, partitions=[{"p": value}])
    same(table.refresh().to_arrow())
    table.overwrite(rows.slice(0, 1).drop_columns(["p"]), partition={"p": value})
    env.execute_sql(f"INSERT OVERWRITE t PARTITION (p = {literal}) SELECT 7 AS id, 7 AS v")
    env.execute_sql(f"ALTER TABLE t PARTITION (p = {literal}) COMPACT")
    assert sorted(table.refresh().to_arrow()["id"].to_pylist()) == ([2, 7] if nullable else [7])
    env.execute_sql(f"ALTER TABLE t DROP PARTITION (p = {literal})")
    assert table.refresh().to_arrow()["id"].to_pylist() == ([2] if nullable else [])


def test_a_partition_column_that_names_no_directory_is_refused_before_a_row_is_written(env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.UnsupportedError, match=r"'p' of type BYTES .* set 'partition\.legacy-name' to 'false'"):
        env.execute_sql("CREATE TABLE u (id INT, p BYTES) PARTITIONED BY (p)")
    assert not env.catalog().table_exists("default.u")
