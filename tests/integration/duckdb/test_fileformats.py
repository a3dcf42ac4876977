"""Tables whose data files are ORC or Avro, through SQL on DuckDB."""

from pathlib import Path

import pytest

import tablestore as ts


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_statements_write_the_format_of_the_table(tmp_path: Path, file_format: str) -> None:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as env:
        options = f"WITH ('file.format' = '{file_format}')"
        env.execute_sql(f"CREATE TABLE t (id INT, v STRING, n DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED) {options}")
        env.execute_sql("INSERT INTO t VALUES (1, 'a', 1.5), (2, NULL, 2), (3, 'c', NULL)")
        env.execute_sql("UPDATE t SET v = 'b' WHERE id = 2")
        env.execute_sql("DELETE FROM t WHERE id = 3")
        env.execute_sql(f"CREATE TABLE c {options} AS SELECT id, v FROM t")
        env.execute_sql("ALTER TABLE t SET ('file.format' = 'parquet')")
        env.execute_sql("INSERT INTO t VALUES (4, 'd', 4)")
        read = env.execute_sql("SELECT t.id, t.v, c.v AS copied FROM t LEFT JOIN c ON t.id = c.id ORDER BY t.id").to_arrow()
        assert read.to_pylist() == [
            {"id": 1, "v": "a", "copied": "a"},
            {"id": 2, "v": "b", "copied": "b"},
            {"id": 4, "v": "d", "copied": None},
        ]
        formats = {
            name: set(env.execute_sql(f"SELECT file_format FROM `{name}$files`").to_arrow()["file_format"].to_pylist())
            for name in ("t", "c")
        }
        assert formats == {"t": {file_format, "parquet"}, "c": {file_format}}
        env.execute_sql("ALTER TABLE t COMPACT")
        assert env.execute_sql("SELECT count(*) AS n, sum(n) AS s FROM t").to_arrow().to_pylist()[0]["n"] == 3
