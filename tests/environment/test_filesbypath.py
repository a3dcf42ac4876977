"""Queries of a session read files by their path, as Spark's do: ``SELECT * FROM csv.`/data/x.csv```."""

from collections.abc import Iterator
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

import tablestore as ts

ROWS = pa.table({"a": [1, 2, None], "v": ["x", None, "ä"]})


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.deep])])
def env(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(str(tmp_path / "wh"), engine=request.param) as environment:
        yield environment


def rows_of(env: ts.TableEnvironment, query: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = env.execute_sql(query).to_arrow().to_pylist()
    return rows


def test_files_with_a_schema_have_its_columns(env: ts.TableEnvironment, tmp_path: Path) -> None:
    pa.parquet.write_table(ROWS, tmp_path / "x.parquet")
    pa.orc.write_table(ROWS, tmp_path / "x.orc")
    for name in ("parquet", "PARQUET", "orc"):
        place = tmp_path / f"x.{name.lower()}"
        assert rows_of(env, f"SELECT a, v FROM {name}.`{place}` AS f ORDER BY a NULLS LAST") == ROWS.to_pylist()
    joined = f"SELECT p.a FROM parquet.`{tmp_path}/x.parquet` p JOIN orc.`{tmp_path}/x.orc` o ON p.a = o.a ORDER BY p.a"
    assert rows_of(env, joined) == [{"a": 1}, {"a": 2}]


def test_lines_of_json_have_their_fields(env: ts.TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": 1, "b": "x"}\n{"a": 2}\n')
    assert rows_of(env, f"SELECT a, b FROM json.`{tmp_path}/x.json` ORDER BY a") == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]


@pytest.mark.parametrize("columns", [1, 2, 11, 120])
def test_a_csv_file_has_texts_in_columns_called_as_sparks(env: ts.TableEnvironment, tmp_path: Path, columns: int) -> None:
    lines = [[str(line * columns + place) for place in range(columns)] for line in range(3)]
    (tmp_path / "x.csv").write_text("".join(",".join(line) + "\n" for line in lines))
    table = env.execute_sql(f"SELECT * FROM csv.`{tmp_path}/*.csv`").to_arrow()
    assert table.schema.names == [f"_c{place}" for place in range(columns)]
    assert sorted(list(row.values()) for row in table.to_pylist()) == sorted(lines)


def test_files_by_path_are_read_in_tables_and_temporary_views_that_are_made(env: ts.TableEnvironment, tmp_path: Path) -> None:
    pa.parquet.write_table(ROWS, tmp_path / "x.parquet")
    env.execute_sql(f"CREATE TABLE made AS SELECT a FROM parquet.`{tmp_path}/x.parquet` WHERE a > 1")
    env.execute_sql(f"INSERT INTO made SELECT a + 10 FROM parquet.`{tmp_path}/x.parquet` WHERE a = 1")
    env.execute_sql(f"CREATE TEMPORARY VIEW seen AS SELECT v FROM parquet.`{tmp_path}/x.parquet`")
    assert rows_of(env, "SELECT a FROM made ORDER BY a") == [{"a": 2}, {"a": 11}]
    assert len(rows_of(env, "SELECT v FROM seen")) == 3


def test_avro_is_read_on_duckdb(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}
    with (tmp_path / "x.avro").open("wb") as file:
        fastavro.writer(file, schema, [{"a": 1}, {"a": 2}])
    with ts.TableEnvironment.create(str(tmp_path / "wh"), engine="duckdb") as env:
        assert rows_of(env, f"SELECT sum(a) AS s FROM avro.`{tmp_path}/x.avro`") == [{"s": 3}]


def test_a_restricted_environment_opens_no_file(tmp_path: Path) -> None:
    pa.parquet.write_table(ROWS, tmp_path / "x.parquet")
    with (
        ts.TableEnvironment.create(str(tmp_path / "wh"), engine="duckdb", restricted=True) as env,
        pytest.raises(ts.TablestoreError),
    ):
        env.execute_sql(f"SELECT * FROM parquet.`{tmp_path}/x.parquet`").to_arrow()


@pytest.mark.parametrize("place", ["none.parquet", "empty.parquet"])
def test_files_that_are_not_there_or_broken_are_an_error_of_ours(env: ts.TableEnvironment, tmp_path: Path, place: str) -> None:
    (tmp_path / "empty.parquet").write_bytes(b"")
    with pytest.raises(ts.TablestoreError):
        env.execute_sql(f"SELECT * FROM parquet.`{tmp_path}/{place}`").to_arrow()
