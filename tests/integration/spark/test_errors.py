"""What a user of Spark gets to read when something is wrong: our message, with what was expected and what to do."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark_tablestore.change import change_messages

import tablestore as ts
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def table(catalog: Catalog) -> Table:
    schema = pa.schema([pa.field("id", pa.int64()), ("name", pa.string())])
    table = catalog.create_table("shop.things", schema=schema, primary_key=["id"])
    table.upsert(pa.table({"id": [1], "name": ["one"]}))
    return table


@pytest.mark.deep
def test_reading_says_what_is_wrong(spark: "SparkSession", table: Table) -> None:
    for options, said in (({}, "no options at all.*CREATE TEMPORARY VIEW"), ({"path": f"{table.location}-not"}, "no table at")):
        with pytest.raises(Exception, match=f"(?s)tablestore.errors.*{said}") as raised:
            spark.read.format("tablestore").options(**options).load()
        assert "During handling" not in str(raised.value)


@pytest.mark.deep
def test_catalog_table_is_refused_where_spark_asks_the_source(spark: "SparkSession", table: Table) -> None:
    place = table.location
    for how in (f"OPTIONS (path '{place}')", f"LOCATION '{place}'", "AS SELECT 1L AS id"):
        with pytest.raises(Exception, match=r"(?s)table of Spark's own catalog.*CREATE TEMPORARY VIEW"):
            spark.sql(f"CREATE TABLE kept USING tablestore {how}")
    with pytest.raises(Exception, match=r"(?s)table of Spark's own catalog.*CREATE TEMPORARY VIEW"):
        spark.range(1).write.format("tablestore").saveAsTable("kept")
    assert not spark.catalog.tableExists("kept")


@pytest.mark.slow
def test_catalog_table_with_columns_says_in_each_use_what_works_and_its_drop_leaves_nothing(
    spark: "SparkSession", table: Table, tmp_path: Path
) -> None:
    """Spark asks no data source when it makes it."""
    made = "CREATE TABLE phantom (id BIGINT, name STRING) USING tablestore"
    works = r"(?s)table of Spark's own catalog.*DROP TABLE.*CREATE TEMPORARY VIEW"
    rows = spark.sql("SELECT 2L AS id, 'two' AS name")
    sink = spark.readStream.format("rate").load().selectExpr("value AS id", "'x' AS name").writeStream
    uses: list[Callable[[], object]] = [
        lambda: spark.sql("SELECT count(*) FROM phantom").collect(),
        lambda: spark.sql("INSERT OVERWRITE phantom VALUES (2, 'two')"),
        lambda: rows.writeTo("phantom").append(),
        lambda: rows.write.format("tablestore").mode("append").saveAsTable("phantom"),
        lambda: sink.option("checkpointLocation", str(tmp_path / "in")).toTable("phantom").processAllAvailable(),
    ]
    for place in ("", f"OPTIONS (path '{table.location}')", f"LOCATION '{table.location}'"):
        spark.sql(f"{made} {place}")
        try:
            for use in uses if not place else uses[:2]:
                with pytest.raises(Exception, match=works):
                    use()
        finally:
            spark.sql("DROP TABLE phantom")
        assert not spark.catalog.tableExists("phantom")
    assert table.refresh().scan().to_arrow().to_pylist() == [{"id": 1, "name": "one"}]


@pytest.mark.slow_after(3)
@pytest.mark.deep
@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT 'x' AS id", "'id'.*takes BIGINT NOT NULL, found string"),
        ("SELECT 2 AS id, 3 AS nam", "'nam'.*did you mean 'name'"),
        ("SELECT 'x' AS name", "lack the NOT NULL columns id"),
        ("SELECT 2L AS id, INTERVAL '1' MONTH AS name", "'name'.*interval month"),
        ("SELECT 2L AS id, 'x' AS _row_kind", r"expected a row kind.*found 'x'"),
        ("SELECT 2L AS id, 7 AS _row_kind", "expected text in the column _row_kind"),
        ("SELECT CAST(NULL AS BIGINT) AS id, 'x' AS name", "'id'.*NOT NULL, found nulls in 1 of 1"),
        ("SELECT CAST(1e30 AS DECIMAL(38)) AS id, 'x' AS name", "'id'.*does not fit"),
    ],
)
def test_rows_that_do_not_fit_change_nothing(spark: "SparkSession", table: Table, query: str, said: str) -> None:
    with pytest.raises(Exception, match=f"(?s)tablestore.errors.*{said}"):
        spark.sql(query).write.format("tablestore").mode("append").save(table.location)
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "name": "one"}]
    assert len(table.snapshots()) == 1


@pytest.mark.deep
def test_write_to_a_table_that_does_not_exist(spark: "SparkSession", table: Table, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"no table at .*/nowhere.*create_table"):
        spark.range(1).write.format("tablestore").mode("append").save(str(tmp_path / "nowhere"))
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.deep
def test_view_of_a_part_is_not_written_through(spark: "SparkSession", table: Table) -> None:
    with pytest.raises(Exception, match="a write takes no filter"):
        spark.range(1).write.format("tablestore").mode("append").option("filter", "id > 1").save(table.location)


@pytest.mark.deep
def test_asked_schema_has_to_be_the_table_s(spark: "SparkSession", table: Table) -> None:
    for asked, said in (("id string", "'id' is bigint NOT NULL, asked for as string"), ("nope int", "no column 'nope'")):
        with pytest.raises(Exception, match=said):
            spark.read.format("tablestore").schema(asked).load(table.location).collect()


@pytest.mark.deep
def test_damaged_file_is_named(spark: "SparkSession", table: Table) -> None:
    (file,) = Path(table.location).glob("bucket-0/*.parquet")
    chunk = pq.ParquetFile(file).metadata.row_group(0).column(2)
    data = bytearray(file.read_bytes())
    # The end of a page, not its header: checksums leave headers out.
    data[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 0xFF
    file.write_bytes(data)
    with pytest.raises(Exception, match=f"(?s)tablestore.errors.FormatError.*{file.name}"):
        spark.read.format("tablestore").load(table.location).collect()


@pytest.fixture
def merged(catalog: Catalog) -> Table:
    """A table whose one file Spark reads itself."""
    table = catalog.create_table("shop.merged", schema="id BIGINT, v INT", primary_key="id", options={"bucket": "1"})
    table.upsert([{"id": number, "v": 0} for number in range(100)])
    table.compact(full=True)
    return table


def expire(table: Table) -> None:
    table.overwrite([{"id": 1, "v": 10}])
    table.expire_snapshots(retain_max=1, retain_min=1)


def test_rows_whose_files_have_expired_are_named_as_a_scan_names_them(spark: "SparkSession", merged: Table, warehouse: str) -> None:
    environment = ts.TableEnvironment.create(warehouse, spark=spark)
    found = environment.execute_sql("SELECT * FROM shop.merged")
    expire(merged)
    with pytest.raises(ts.NotFoundError, match="is gone: its snapshot expired while it was being read") as raised:
        found.to_arrow()
    assert raised.value.kind == "data-file-gone"


@pytest.mark.slow_after(1)
@pytest.mark.deep
@pytest.mark.parametrize(
    "statement",
    [
        # What an engine alone computes: it is the engine's plan that goes stale.
        "UPDATE shop.merged SET v = v + length(upper('a'))",
        "MERGE INTO shop.merged AS t USING (SELECT 1L AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v + 1",
    ],
)
def test_a_change_whose_files_expire_is_planned_again(
    spark: "SparkSession", merged: Table, warehouse: str, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    run, todo = change_messages, [expire]

    def expired_first(*args: Any, **named: Any) -> list[bytes]:
        if todo:
            todo.pop()(merged)
        return run(*args, **named)

    monkeypatch.setattr("pyspark_tablestore.engine.change_messages", expired_first)
    ts.TableEnvironment.create(warehouse, spark=spark).execute_sql(statement)
    assert merged.scan().to_arrow().to_pylist() == [{"id": 1, "v": 11}]


def test_columns_that_a_statement_does_not_have_are_not_suggested() -> None:
    from pyspark_tablestore.query.queryerrors import ours

    class AnalysisException(Exception):
        pass

    said = "A column with name `s`.`idd` cannot be resolved. Did you mean one of the following? "
    for names, left in (
        ("[`s`.`id`, `t`.`_data_file`, `t`.`_row_position`]", "[`s`.`id`]"),
        ("[`t`.`_row_position`, `s`.`id`]", "[`s`.`id`]"),
    ):
        error = ours(AnalysisException(f"[UNRESOLVED_COLUMN.WITH_SUGGESTION] {said}{names}. SQLSTATE: 42703"), "the query")
        assert f"{said}{left}." in str(error)
    error = ours(AnalysisException("\n[PARSE_SYNTAX_ERROR] Syntax error at or near end of input. SQLSTATE: 42601"), "the query")
    assert "the query: Syntax error" in str(error)
