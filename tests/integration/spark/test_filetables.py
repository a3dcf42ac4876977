"""Tables of files that one engine writes and the other reads."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import tablestore as ts
from tests.support.sql.filevalues import columns_of, differences, values_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.deep]

ZONE = "America/New_York"


@pytest.fixture
def envs(spark: "SparkSession", tmp_path: Path) -> Iterator[dict[str, ts.TableEnvironment]]:
    from pyspark_tablestore.engine import SparkEngine

    with (
        ts.TableEnvironment.create(tmp_path / "spark", engine=SparkEngine(spark)) as of_spark,
        ts.TableEnvironment.create(tmp_path / "duckdb", engine="duckdb") as of_duckdb,
    ):
        of_duckdb.execute_sql(f"SET 'timezone' = '{ZONE}'")
        yield {"spark": of_spark, "duckdb": of_duckdb}


def rows_of(env: ts.TableEnvironment, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in env.execute_sql(text).to_arrow().to_pylist()]


def declared(
    envs: dict[str, ts.TableEnvironment], columns: str, path: Path, file_format: str, *, by: str = "", **options: str
) -> None:
    given = {"connector": "filesystem", "path": str(path), "format": file_format, **options}
    where = f"{by and f'PARTITIONED BY ({by})'} WITH ({', '.join(f'{key!r} = {value!r}' for key, value in given.items())})"
    for env in envs.values():
        env.execute_sql(f"CREATE TABLE f ({columns}) {where}")


@pytest.mark.parametrize("file_format", ["parquet", "csv", "json", "orc"])
def test_what_one_engine_writes_the_other_reads(envs: dict[str, ts.TableEnvironment], tmp_path: Path, file_format: str) -> None:
    rows, options = values_for(file_format)
    declared(envs, columns_of(rows), tmp_path / "f", file_format, **options)
    for writer in envs.values():
        writer.create_temporary_view("v", rows)
        writer.execute_sql("INSERT OVERWRITE f SELECT * FROM v")
        for name, reader in envs.items():
            assert differences(rows, reader.execute_sql("SELECT * FROM f").to_arrow()) == [], (writer, name)
    for writer in envs.values():
        writer.execute_sql("INSERT INTO f SELECT * FROM v")
    for reader in envs.values():
        assert rows_of(reader, "SELECT count(*), count(DISTINCT id) FROM f") == [(12, 4)]
    for writer in envs.values():
        writer.execute_sql("INSERT OVERWRITE f SELECT * FROM v WHERE false")
        assert [rows_of(env, "SELECT id FROM f") for env in envs.values()] == [[], []]


@pytest.mark.parametrize("file_format", ["parquet", "csv", "orc"])
def test_engines_fill_and_replace_the_same_partitions(
    envs: dict[str, ts.TableEnvironment], tmp_path: Path, file_format: str
) -> None:
    columns = "id BIGINT, at TIMESTAMP_LTZ(6), part DOUBLE, `a:b` STRING"
    declared(envs, columns, tmp_path / "f", file_format, by="part, at, `a:b`")
    texts = ["x/=%}{", "é #*?[]^'", "", None, " ", "01"]
    rows = pa.table({
        "id": pa.array(range(6)),
        "at": pa.array([1_720_000_000_100_000, None, 0, 86_400_000_000, 1, 1_000_000], pa.timestamp("us", "UTC")),
        "part": pa.array([float("nan"), None, -0.0, 1e10, 1e-5, 0.1]),
        "a:b": pa.array(texts),
    })  # fmt: skip
    folders = []
    for env in envs.values():
        env.create_temporary_view("v", rows)
        env.execute_sql("INSERT INTO f SELECT * FROM v")
        folders.append(sorted({os.path.relpath(file.parent, tmp_path / "f") for file in (tmp_path / "f").rglob("part-*")}))
    assert folders[0] == folders[1] and len(folders[0]) == 6
    expected = rows.set_column(3, "a:b", pa.array([text or None for text in texts]))
    for env in envs.values():
        env.execute_sql("INSERT OVERWRITE f SELECT * FROM v")
        assert [differences(expected, other.execute_sql("SELECT * FROM f").to_arrow()) for other in envs.values()] == [[], []]
    partition = "part = '1e10', at = TIMESTAMP '1970-01-02 00:00:00Z', `a:b` = NULL"
    for number, env in enumerate(envs.values()):
        env.execute_sql(f"INSERT OVERWRITE f PARTITION ({partition}) SELECT {100 + number}L")
        assert [rows_of(other, "SELECT id FROM f WHERE id > 5") for other in envs.values()] == [[(100 + number,)]] * 2
        env.execute_sql(f"INSERT OVERWRITE f PARTITION ({partition}) SELECT 1L WHERE false")
        assert [rows_of(other, "SELECT count(*) FROM f") for other in envs.values()] == [[(5,)]] * 2


def test_both_engines_refuse_the_same_columns(envs: dict[str, ts.TableEnvironment], tmp_path: Path) -> None:
    for file_format, kind, message in (
        ("csv", "BYTES", "csv hold no binary values"), ("csv", "ARRAY<INT>", "csv hold no arrays"),
        ("json", "MAP<INT, INT>", "keys that are texts"),
    ):  # fmt: skip
        for env in envs.values():
            path = tmp_path / "x"
            env.execute_sql(
                f"CREATE TEMPORARY TABLE x (a {kind}) "
                f"WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = '{file_format}')"
            )
            with pytest.raises(ts.UnsupportedError, match=message) as refused:
                env.execute_sql("INSERT INTO x SELECT NULL")
            assert refused.value.kind == "file-format" and not path.exists()
            env.execute_sql("DROP TEMPORARY TABLE x")


def test_spark_without_its_package_for_avro_says_what_to_do(envs: dict[str, ts.TableEnvironment], tmp_path: Path) -> None:
    declared(envs, "id INT", tmp_path / "f", "avro")
    envs["duckdb"].execute_sql("INSERT INTO f VALUES (1)")
    for statement in ("SELECT * FROM f", "INSERT INTO f VALUES (2)"):
        with pytest.raises(ts.UnsupportedError, match=r"spark-avro.*engine duckdb") as refused:
            envs["spark"].execute_sql(statement)
        assert refused.value.kind == "no-connector"


def test_moments_of_orc_files_are_those_of_the_writers_clock(envs: dict[str, ts.TableEnvironment], tmp_path: Path) -> None:
    spark_jvm = envs["spark"]
    declared(
        envs,
        "id INT, at TIMESTAMP_LTZ(6), clock TIMESTAMP(6), pair ROW<at TIMESTAMP_LTZ(6), clock TIMESTAMP(6)>",
        tmp_path / "f",
        "orc",
    )
    spark_jvm.execute_sql(
        "INSERT INTO f SELECT 1, TIMESTAMP '2024-07-01 12:00:00.123456Z', TIMESTAMP_NTZ '0001-01-01 00:00:00.000001', "
        "named_struct('at', TIMESTAMP '2024-07-01 12:00:00Z', 'clock', TIMESTAMP_NTZ '2024-07-01 12:00:00')"
    )
    assert rows_of(envs["duckdb"], "SELECT * FROM f") == rows_of(spark_jvm, "SELECT * FROM f")
