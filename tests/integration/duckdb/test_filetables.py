"""Tables of files that DuckDB reads and writes: what is in them, where it lies, and what is left of what fails."""

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tablestore as ts
from tests.support.sql.filevalues import FORMATS, columns_of, differences, values_for


@pytest.fixture
def env(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as made:
        made.execute_sql("SET 'timezone' = 'America/New_York'")
        yield made


def clause(path: Path, file_format: str, *, by: str = "", **options: str) -> str:
    given = {"connector": "filesystem", "path": str(path), "format": file_format, **options}
    partitioned = f"PARTITIONED BY ({by}) " if by else ""
    return f"{partitioned}WITH ({', '.join(f'{key!r} = {value!r}' for key, value in given.items())})"


def rows_of(env: ts.TableEnvironment, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in env.execute_sql(text).to_arrow().to_pylist()]


def visible(path: Path) -> list[str]:
    """The files of a table; a folder of a statement that is at its end is an error."""
    names = [str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()]
    assert not [name for name in os.listdir(path) if name.startswith("_tablestore-")]
    return sorted(names)


@pytest.mark.parametrize("file_format", FORMATS)
def test_what_is_written_is_read(env: ts.TableEnvironment, tmp_path: Path, file_format: str) -> None:
    rows, options = values_for(file_format)
    env.execute_sql(f"CREATE TABLE f ({columns_of(rows)}) {clause(tmp_path / 'f', file_format, **options)}")
    env.create_temporary_view("v", rows)
    for times in (1, 2):
        env.execute_sql("INSERT INTO f SELECT * FROM v")
        assert len(visible(tmp_path / "f")) == times
    assert rows_of(env, "SELECT count(*) FROM f") == [(2 * rows.num_rows,)]
    env.execute_sql("INSERT OVERWRITE f SELECT * FROM v")
    assert differences(rows, env.execute_sql("SELECT * FROM f").to_arrow()) == []
    env.execute_sql("INSERT OVERWRITE f SELECT * FROM f WHERE false")
    assert rows_of(env, "SELECT count(*) FROM f") == [(0,)]


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("file_format", FORMATS)
def test_partitions_are_folders_that_are_filled_and_replaced(env: ts.TableEnvironment, tmp_path: Path, file_format: str) -> None:
    where = clause(tmp_path / "f", file_format, by="day, `a b`")
    values = "(1L, DATE '2024-01-01', 1, '01'), (2L, DATE '2024-01-02', 2, 'x/=%}{'), (3L, NULL, 3, NULL), (4L, NULL, 4, '')"
    env.execute_sql(f"CREATE TABLE f {where} AS SELECT * FROM (VALUES {values}) AS r (id, day, v, `a b`)")
    assert sorted({os.path.dirname(name) for name in visible(tmp_path / "f")}) == [
        "day=2024-01-01/a b=01",
        "day=2024-01-02/a b=x%2F%3D%25}%7B",
        "day=__HIVE_DEFAULT_PARTITION__/a b=__HIVE_DEFAULT_PARTITION__",
    ]

    def found() -> list[tuple[Any, ...]]:
        return rows_of(env, "SELECT id, CAST(day AS STRING), v, `a b` FROM f ORDER BY id")

    second, third = (2, "2024-01-02", 2, "x/=%}{"), (3, None, 3, None)
    assert found() == [(1, "2024-01-01", 1, "01"), second, third, (4, None, 4, None)]
    env.execute_sql("INSERT INTO f PARTITION (day = DATE '2024-01-01', `a b` = '01') SELECT 5L, 5")
    env.execute_sql("INSERT OVERWRITE f PARTITION (day = DATE '2024-01-01', `a b` = '01') (v, id) SELECT v, id FROM f WHERE id = 5")
    assert found() == [second, third, (4, None, 4, None), (5, "2024-01-01", 5, "01")], "it reads what it replaces"
    env.execute_sql("INSERT OVERWRITE f PARTITION (day = '2024-01-02', `a b`) SELECT 6L, 6, 'new'")
    env.execute_sql("INSERT OVERWRITE f SELECT 7L, NULL, 7, NULL")
    assert found() == [second, (5, "2024-01-01", 5, "01"), (6, "2024-01-02", 6, "new"), (7, None, 7, None)]
    env.execute_sql("INSERT OVERWRITE f PARTITION (day = DATE '2024-01-02', `a b` = 'x/=%}{') SELECT 8L, 8 WHERE false")
    env.execute_sql("INSERT OVERWRITE f PARTITION (day = NULL, `a b` = NULL) SELECT 8L, 8 WHERE false")
    assert found() == [(5, "2024-01-01", 5, "01"), (6, "2024-01-02", 6, "new")]
    for folder in ("day=2024-01-01/a b=01", "day=2024-01-02/a b=new"):
        day, text = (part.partition("=")[2] for part in folder.split("/"))
        env.execute_sql(f"INSERT OVERWRITE f PARTITION (day = '{day}', `a b` = '{text}') SELECT 8L, 8 WHERE false")
    assert visible(tmp_path / "f") == [] and rows_of(env, "SELECT id FROM f") == []


@pytest.mark.deep
def test_values_of_every_type_name_folders(env: ts.TableEnvironment, tmp_path: Path) -> None:
    cases = (
        ("DOUBLE", "CAST('NaN' AS DOUBLE)", "NaN"), ("DOUBLE", "1e10D", "1.0E10"), ("DOUBLE", "-0.0D", "-0.0"),
        ("FLOAT", "0.001F", "0.001"),
        ("BOOLEAN", "true", "true"), ("DECIMAL(38, 18)", "CAST('1E-18' AS DECIMAL(38, 18))", "0.000000000000000001"),
        ("DATE", "DATE '0001-01-01'", "0001-01-01"),
        ("TIMESTAMP(6)", "TIMESTAMP_NTZ '2024-07-01 12:00:00.5'", "2024-07-01 12%3A00%3A00.5"),
        ("TIMESTAMP_LTZ(6)", "TIMESTAMP '2024-07-01 12:00:00Z'", "2024-07-01 08%3A00%3A00"), ("STRING", "'é #*'", "é %23%2A"),
    )  # fmt: skip
    for number, (kind, value, text) in enumerate(cases):
        where = clause(tmp_path / f"f{number}", "parquet", by="`p:q`")
        env.execute_sql(f"CREATE TABLE f{number} (id INT, `p:q` {kind}) {where}")
        env.execute_sql(f"INSERT INTO f{number} SELECT 1, {value}")
        assert os.listdir(tmp_path / f"f{number}") == [f"p%3Aq={text}"]
        assert rows_of(env, f"SELECT count(*) FROM f{number} WHERE `p:q` IS NOT DISTINCT FROM {value}") == [(1,)], kind
    env.execute_sql("INSERT OVERWRITE f1 PARTITION (`p:q` = '1e10') SELECT 1 WHERE false")
    env.execute_sql("INSERT OVERWRITE f8 PARTITION (`p:q` = TIMESTAMP '2024-07-01 12:00:00Z') SELECT 1 WHERE false")
    assert os.listdir(tmp_path / "f8") == os.listdir(tmp_path / "f1") == []


@pytest.mark.parametrize("atomic", ["true", "false"])
def test_what_fails_leaves_nothing_of_its_own(env: ts.TableEnvironment, tmp_path: Path, atomic: str) -> None:
    env.get_config().set("table.ctas.atomicity-enabled", atomic)
    bad = "SELECT id, CAST(if(id > 150000, 'x', '1') AS INT) AS n FROM range(200000)"
    for number, by in enumerate(("", "n")):
        with pytest.raises(ts.InvalidInputError):
            env.execute_sql(f"CREATE TABLE x{number} {clause(tmp_path / 'a' / 'b', 'csv', by=by)} AS {bad}")
        assert not (tmp_path / "a").exists()
        assert (f"x{number}" in env.list_tables()) == (atomic == "false")
    env.execute_sql(f"CREATE TABLE y {clause(tmp_path / 'y', 'json', by='n')} AS SELECT 1L AS id, 1 AS n")
    before = visible(tmp_path / "y")
    for statement in ("INSERT INTO y", "INSERT OVERWRITE y"):
        with pytest.raises(ts.InvalidInputError):
            env.execute_sql(f"{statement} {bad}")
        assert visible(tmp_path / "y") == before and os.listdir(tmp_path / "y") == ["n=1"]
    # A folder that others have keeps what is theirs.
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "part-0.csv").write_text("7,7\n")
    with pytest.raises(ts.InvalidInputError):
        env.execute_sql(f"CREATE TABLE z {clause(tmp_path / 'z', 'csv')} AS {bad}")
    assert os.listdir(tmp_path / "z") == ["part-0.csv"]


def test_a_disk_that_fails_while_files_are_put_in_place_leaves_the_old_ones(
    env: ts.TableEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env.execute_sql(f"CREATE TABLE f {clause(tmp_path / 'f', 'parquet', by='n')} AS SELECT id, id % 3 AS n FROM range(6)")
    before, rename, renamed = visible(tmp_path / "f"), os.rename, list[str]()

    def failing(source: Any, target: Any) -> None:
        if len(renamed) == 2:
            raise OSError(28, "No space left on device")
        renamed.append(str(target))
        rename(source, target)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(ts.StorageError, match="free some space"):
        env.execute_sql("INSERT OVERWRITE f SELECT id, id % 4 AS n FROM range(6)")
    assert len(renamed) == 2 and visible(tmp_path / "f") == before and len(os.listdir(tmp_path / "f")) == 3


def test_save_as_and_pipelines_write_files(env: ts.TableEnvironment, tmp_path: Path) -> None:
    env.get_config().set("table.ctas.atomicity-enabled", "true")
    query = env.sql_query("SELECT id, id % 2 AS odd FROM range(5)")
    pipeline = (
        query.save_as("f").option("connector", "filesystem").option("path", str(tmp_path / "f")).partitioned_by("odd").create()
    )
    assert env.list_tables() == () and not (tmp_path / "f").exists(), "nothing is made before it runs"
    pipeline.execute()
    query.insert_into("f").execute()
    query.insert_into("f", overwrite=True).execute()
    assert rows_of(env, "SELECT odd, sum(id) FROM f GROUP BY odd ORDER BY odd") == [(0, 6), (1, 4)]
    failing = env.sql_query("SELECT id, CAST('x' AS INT) AS n FROM range(5)").save_as("g").option("connector", "filesystem")
    with pytest.raises(ts.InvalidInputError):
        failing.option("path", str(tmp_path / "g")).create().execute()
    assert env.list_tables() == ("f",) and not (tmp_path / "g").exists()


def test_hidden_files_are_none_of_the_table(env: ts.TableEnvironment, tmp_path: Path) -> None:
    place = tmp_path / "f"
    for name in ("a.csv", "b", "_SUCCESS", ".a.csv.crc", "_temporary/0/part.csv", "_tablestore-1/part.csv", "_x=1/c.csv", "d.txt"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("1\n")
    env.execute_sql(f"CREATE TABLE f (id INT) {clause(place, 'csv')}")
    assert rows_of(env, "SELECT count(*) FROM f") == [(4,)], "a name says nothing about what is in a file"
    (place / "e.csv.bz2").write_text("1\n")
    with pytest.raises(ts.UnsupportedError, match=r"gzip or zstd, found .*e\.csv\.bz2"):
        env.execute_sql("SELECT count(*) FROM f")


def test_times_of_sparks_parquet_files_are_moments(env: ts.TableEnvironment, tmp_path: Path) -> None:
    moments = pa.array([1_720_000_000_123_456, None], pa.timestamp("us", "UTC"))
    inside = pa.array([[1_720_000_000_123_456], None], pa.list_(pa.timestamp("us", "UTC")))
    pair = pa.StructArray.from_arrays([moments, inside], ["At", "all"])
    entries = pa.array([[("k", 1_720_000_000_123_456)], None], pa.map_(pa.string(), pa.timestamp("us", "UTC")))
    rows = pa.table({"at": moments, "all": inside, "pair": pair, "by": entries, "id": [1, 2]})
    (tmp_path / "f").mkdir()
    pq.write_table(rows, tmp_path / "f" / "a.parquet", use_deprecated_int96_timestamps=True)
    pq.write_table(rows, tmp_path / "f" / "b.parquet")
    inner = "ARRAY<TIMESTAMP_LTZ(6)>"
    pair = f"ROW<`At` TIMESTAMP_LTZ(6), `all` {inner}>"
    columns = f"at TIMESTAMP_LTZ(6), `all` {inner}, pair {pair}, `by` MAP<STRING, TIMESTAMP_LTZ(6)>, id BIGINT"
    env.execute_sql(f"CREATE TABLE f ({columns}) {clause(tmp_path / 'f', 'parquet')}")
    read = env.execute_sql("SELECT * FROM f ORDER BY id").to_arrow()
    assert read.to_pylist() == [row for row in rows.to_pylist() for _ in range(2)]
    env.execute_sql(f"CREATE TABLE g {clause(tmp_path / 'f', 'parquet')}")
    assert env.execute_sql("SELECT at FROM g WHERE id = 1").to_arrow()["at"].to_pylist() == rows["at"].to_pylist()[:1] * 2


def test_texts_are_written_by_the_options_of_readers(env: ts.TableEnvironment, tmp_path: Path) -> None:
    texts = pa.table({"a,b": ["x;'y", None, "", "\\", "N"], "n": [-1.5, None, 2.0, 1e300, -0.0]})
    env.create_temporary_view("v", texts)
    for number, options in enumerate((
        {"header": "true", "sep": ";", "quote": "'", "escape": "'", "nullValue": "-"},
        {"sep": "-", "nullValue": "N;", "compression": "gzip"},
        {"delimiter": "\t", "escape": "\"", "nullValue": "NULL"},
    )):  # fmt: skip
        where = clause(tmp_path / f"f{number}", "csv", **options)
        env.execute_sql(f"CREATE TABLE f{number} (`a,b` STRING, n DOUBLE) {where}")
        env.execute_sql(f"INSERT INTO f{number} SELECT * FROM v")
        assert str(env.execute_sql(f"SELECT * FROM f{number}").to_arrow().to_pylist()) == str(texts.to_pylist()), options
    assert (tmp_path / "f0" / visible(tmp_path / "f0")[0]).read_text().splitlines()[:3] == ["'a,b';'n'", "'x;''y';-1.5", "-;-"]
    assert visible(tmp_path / "f1")[0].endswith(".csv.gz")
    for file_format, name in (("csv", "g"), ("json", "h")):
        env.execute_sql(f"CREATE TABLE {name} (n INT) {clause(tmp_path / name, file_format, compression='gzip')}")
        env.execute_sql(f"INSERT INTO {name} VALUES (1), (NULL), (NULL)")
        assert rows_of(env, f"SELECT * FROM {name}") == [(1,), (None,), (None,)], "a line of its own"


def test_moments_of_orc_files_are_those_of_the_writers_clock(env: ts.TableEnvironment) -> None:
    path = Path(__file__).parents[2] / "golden" / "spark" / "new-york.orc"
    columns = (
        "id INT, at TIMESTAMP_LTZ(6), clock TIMESTAMP(6), day DATE, time TIME(3), pair ROW<at TIMESTAMP_LTZ(6), clock TIMESTAMP(6)>"
    )
    first = {
        "id": 1,
        "at": datetime(2024, 7, 1, 12, 0, 0, 123456, tzinfo=UTC),
        "clock": datetime(1, 1, 1, 0, 0, 0, 1),
        "day": date(1, 1, 1),
        "time": time(12, 0, 0, 123000),
        "pair": {"at": datetime(2024, 1, 1, 12, tzinfo=UTC), "clock": datetime(2024, 7, 1, 12)},
    }
    second = {"id": 2, "at": datetime(1950, 1, 1, 0, 0, 0, 500000, tzinfo=UTC), "clock": None, "day": date(9999, 12, 31)}
    for number, declared in enumerate((f"({columns})", "")):
        env.execute_sql(f"CREATE TABLE f{number} {declared} {clause(path, 'orc')}")
        rows = env.execute_sql(f"SELECT * FROM f{number} ORDER BY id").to_arrow().to_pylist()
        assert rows == [first, {**second, "time": None, "pair": None}]


def test_avro_is_that_of_its_specification(env: ts.TableEnvironment, tmp_path: Path) -> None:
    columns = "at TIMESTAMP_LTZ(6), clock TIMESTAMP(3), price DECIMAL(20, 2), small TINYINT"
    env.execute_sql(f"CREATE TABLE f ({columns}) {clause(tmp_path / 'f', 'avro', compression='deflate')}")
    env.execute_sql("INSERT INTO f SELECT TIMESTAMP '2024-07-01 12:00:00Z', TIMESTAMP_NTZ '2024-07-01 12:00:00', 1.5, 7")
    (name,) = visible(tmp_path / "f")
    with open(tmp_path / "f" / name, "rb") as file:
        (row,) = fastavro.reader(file)
    assert (str(row["at"]), str(row["clock"]), str(row["price"])) == ("2024-07-01 12:00:00+00:00", "2024-07-01 12:00:00", "1.50")
    # As Spark spells them.
    price = {"type": "fixed", "name": "price", "size": 9, "logicalType": "decimal", "precision": 20, "scale": 2}
    spelled = {
        "type": "record", "name": "topLevelRecord", "fields": [
            {"name": "price", "type": [price, "null"]}, {"name": "small", "type": ["int", "null"]},
            {"name": "clock", "type": [{"type": "long", "logicalType": "local-timestamp-micros"}, "null"]},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }  # fmt: skip
    with open(tmp_path / "f" / "b.avro", "wb") as file:
        fastavro.writer(file, fastavro.parse_schema(spelled), [row])
    assert len(set(rows_of(env, "SELECT * FROM f"))) == 1 and rows_of(env, "SELECT count(*) FROM f") == [(2,)]
    env.execute_sql(f"CREATE TABLE g {clause(tmp_path / 'f' / 'b.avro', 'avro')}")
    assert rows_of(env, "SELECT small, price, at FROM g") == rows_of(env, "SELECT small, price, at FROM f LIMIT 1")


REFUSED = (
    ("s3://b/x", "parquet", "id INT", {}, "folders of this machine.*engine spark"),
    ("{}/*.csv", "csv", "id INT", {}, "expected a folder"),
    ("{}/x", "xml", "id INT", {}, "formats parquet, csv, json, orc, avro.*engine spark"),
    ("{}/x", "csv", "id INT", {"compression": "bzip2"}, "compression = none, uncompressed, gzip"),
    ("{}/x", "csv", "id INT", {"dateFormat": "yy"}, "option 'dateformat'.*engine spark"),
    ("{}/x", "csv", "id INT", {"sep": "||"}, "sep: expected one character"),
    ("{}/x", "csv", "id INT", {"sep": '"'}, "another character for sep"),
    ("{}/x", "csv", "id INT", {"nullValue": "a,b"}, "nullValue: expected a text without sep"),
    ("{}/x", "csv", "b BYTES", {}, r"csv hold no binary values.*base64\(x\)"),
    ("{}/x", "csv", "a ARRAY<INT>", {}, "csv hold no arrays"),
    ("{}/x", "json", "a ARRAY<MAP<INT, INT>>", {}, "json hold maps with keys that are texts"),
    ("{}/x", "avro", "a ROW<`b c` INT>", {}, "expected names of letters, digits and _"),
    ("{}/x", "orc", "`a``b` INT", {}, "expected names of other characters than `"),
    ("{}/x", "parquet", "at TIMESTAMP(9)", {}, "at most 6 digits of seconds"),
)


def test_what_files_do_not_hold_is_refused_before_anything_is_made(env: ts.TableEnvironment, tmp_path: Path) -> None:
    for number, (path, file_format, columns, options, message) in enumerate(REFUSED):
        where = clause(Path("X"), file_format, **options).replace("'X'", f"'{path.format(tmp_path)}'")
        env.execute_sql(f"CREATE TABLE f{number} ({columns}) {where}")
        with pytest.raises((ts.UnsupportedError, ts.InvalidInputError), match=message) as refused:
            env.execute_sql(f"INSERT INTO f{number} SELECT NULL")
        assert "line 1, column 13" in str(refused.value)
    with pytest.raises(ts.UnsupportedError, match="partition columns whose values name folders"):
        env.execute_sql(f"CREATE TABLE t {clause(tmp_path / 't', 'parquet', by='b')} AS SELECT 1 AS id, X'00' AS b")
    assert "t" not in env.list_tables() and os.listdir(tmp_path) == ["wh"]


@pytest.mark.deep
def test_many_rows_in_many_partitions_take_little_memory(env: ts.TableEnvironment, tmp_path: Path) -> None:
    query = "SELECT id, repeat('x', 200) AS text, pmod(hash(id), 40) AS part FROM range(1000000)"
    before = pa.total_allocated_bytes()
    env.execute_sql(f"CREATE TABLE f {clause(tmp_path / 'f', 'parquet', by='part')} AS {query}")
    assert pa.default_memory_pool().max_memory() - before < 400 << 20
    assert rows_of(env, "SELECT count(*), count(DISTINCT part), sum(id) FROM f") == [(1_000_000, 40, 499_999_500_000)]


def test_folders_that_nobody_reads_are_not_written(env: ts.TableEnvironment, tmp_path: Path) -> None:
    env.execute_sql(f"CREATE TABLE m {clause(tmp_path / 'm', 'parquet', by='_metadata')} AS SELECT 1 AS id, 'a' AS _metadata")
    assert rows_of(env, "SELECT * FROM m") == [(1, "a")]
    with pytest.raises(ts.InvalidInputError, match="begin with a point"):
        env.execute_sql(f"CREATE TABLE d {clause(tmp_path / 'd', 'csv', by='`.x`')} AS SELECT 1 AS id, 'a' AS `.x`")
    with pytest.raises(ts.InvalidInputError, match="hidden from every reader"):
        env.execute_sql("INSERT INTO m VALUES (2, 'b._COPYING_')")
    assert rows_of(env, "SELECT * FROM m") == [(1, "a")] and not (tmp_path / "d").exists()
    assert visible(tmp_path / "m") and len(os.listdir(tmp_path / "m")) == 1


@pytest.mark.parametrize("file_format", FORMATS)
def test_folders_above_a_table_are_no_partitions_of_it(env: ts.TableEnvironment, tmp_path: Path, file_format: str) -> None:
    above = tmp_path / "id=5" / "p=zz" / "day=1"
    for number, by in enumerate(("", "p")):
        env.execute_sql(f"CREATE TABLE f{number} (id INT, p STRING) {clause(above / str(number), file_format, by=by)}")
        env.execute_sql(f"INSERT INTO f{number} VALUES (1, 'a'), (2, '%/='), (3, NULL)")
        assert rows_of(env, f"SELECT * FROM f{number} ORDER BY id") == [(1, "a"), (2, "%/="), (3, None)]
        assert rows_of(env, f"SELECT id FROM f{number} WHERE p = '%/='") == [(2,)]
    if file_format != "csv":
        env.execute_sql(f"CREATE TABLE g {clause(above / '0', file_format)}")
        assert rows_of(env, "SELECT * FROM g WHERE id = 1") == [(1, "a")]
    env.execute_sql(f"CREATE TABLE h (id INT, p STRING) {clause(above / '1', file_format)}")
    if file_format in ("parquet", "csv", "json"):
        assert rows_of(env, "SELECT p FROM h WHERE id = 2") == [("%/=",)]


def test_a_line_break_in_a_text_is_no_end_of_lines(env: ts.TableEnvironment, tmp_path: Path) -> None:
    texts = ["\r", "a\r\nb", "\\\r", '"\r"', "'\r'", "x"]
    for number, options in enumerate(({}, {"quote": "'"}, {"escape": '"', "sep": ";", "compression": "gzip"})):
        env.execute_sql(f"CREATE TABLE f{number} (t STRING, n INT) {clause(tmp_path / str(number), 'csv', **options)}")
        for text in texts:
            env.create_temporary_view("v", pa.table({"t": [text, "y\n"], "n": [1, 2]}))
            env.execute_sql(f"INSERT INTO f{number} SELECT * FROM v")
            env.drop_temporary_view("v")
        assert sorted(rows_of(env, f"SELECT * FROM f{number}")) == sorted([*((text, 1) for text in texts), *([("y\n", 2)] * 6)])
    (tmp_path / "w").mkdir()
    for name, line_end in (("unix", "\n"), ("windows", "\r\n"), ("old", "\r")):
        (tmp_path / "w" / name).write_bytes(f'"a\r\n,b\n",1{line_end}c,2{line_end}'.encode())
    env.execute_sql(f"CREATE TABLE w (t STRING, n INT) {clause(tmp_path / 'w', 'csv')}")
    assert sorted(rows_of(env, "SELECT * FROM w")) == [*([("a\r\n,b\n", 1)] * 3), *([("c", 2)] * 3)]


def test_a_text_of_null_with_the_escape_is_refused(env: ts.TableEnvironment, tmp_path: Path) -> None:
    where = clause(tmp_path / "f", "csv").replace(")", r", 'nullValue' = '\\N')")
    env.execute_sql(f"CREATE TABLE f (t STRING) {where}")
    with pytest.raises(ts.InvalidInputError, match="nullValue: expected a text without sep, quote, escape"):
        env.execute_sql("INSERT INTO f VALUES (NULL)")


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_folder_that_is_not_there_yet_is_named(env: ts.TableEnvironment, tmp_path: Path, file_format: str) -> None:
    env.execute_sql(f"CREATE TABLE f (id INT, p STRING) {clause(tmp_path / 'f', file_format, by='p')}")
    for statement in ("SELECT * FROM f", "INSERT OVERWRITE f SELECT * FROM f"):
        with pytest.raises(ts.StorageError, match="found nothing there"):
            rows_of(env, statement)
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize("file_format", ["parquet", "json", "orc", "avro"])
def test_null_rows_with_not_null_fields(env: ts.TableEnvironment, tmp_path: Path, file_format: str) -> None:
    columns = "id INT, r ROW<b INT NOT NULL, c STRING>, l ARRAY<ROW<b INT NOT NULL>>"
    env.execute_sql(f"CREATE TABLE f ({columns}) {clause(tmp_path / 'f', file_format)}")
    env.execute_sql("INSERT INTO f SELECT 1, NULL, array(named_struct('b', 1), NULL)")
    env.execute_sql("INSERT INTO f SELECT 2, named_struct('b', 1, 'c', 'x'), NULL")
    assert rows_of(env, "SELECT * FROM f ORDER BY id") == [(1, None, [{"b": 1}, None]), (2, {"b": 1, "c": "x"}, None)]


@pytest.mark.parametrize(("file_format", "most"), [("csv", 2_000_000), ("json", 1 << 24)])
def test_a_row_whose_text_is_longer_than_is_read_is_refused(
    env: ts.TableEnvironment, tmp_path: Path, file_format: str, most: int
) -> None:
    around = len('""\n') if file_format == "csv" else len('{"a":""}\n')
    env.execute_sql(f"CREATE TABLE f (a STRING) {clause(tmp_path / 'f', file_format)}")
    env.create_temporary_view("v", pa.table({"a": ["x" * (most - around)]}))
    env.execute_sql("INSERT INTO f SELECT a || 'y' AS a FROM v WHERE false")
    env.execute_sql("INSERT INTO f SELECT a FROM v")
    assert rows_of(env, "SELECT max(length(a)) AS n FROM f") == [(most - around,)]
    with pytest.raises(ts.InvalidInputError, match="Parquet files") as caught:
        env.execute_sql("INSERT INTO f SELECT concat(a, 'y') AS a FROM v")
    assert caught.value.kind == "limit"
    assert rows_of(env, "SELECT count(*) AS n FROM f") == [(1,)]


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_years_with_a_sign_are_written_and_read_as_folders(env: ts.TableEnvironment, tmp_path: Path, file_format: str) -> None:
    env.execute_sql("SET TIME ZONE 'Asia/Tokyo'")
    env.execute_sql(f"CREATE TABLE f (id INT, z TIMESTAMP_LTZ(6), d DATE) {clause(tmp_path / 'f', file_format, by='z, d')}")
    # 9999-12-31 20:00 in UTC is the next year in Tokyo.
    micros, days = (253402286400000000, 1704067200000000), (2932896 + 400, -719162 - 400)
    for place in range(2):
        env.execute_sql(f"INSERT INTO f SELECT {place}, timestamp_micros({micros[place]}), date_from_unix_date({days[place]})")
    folders = {"z=+10000-01-01 05%3A00%3A00/d=+10001-02-03", "z=2024-01-01 09%3A00%3A00/d=-0001-11-28"}
    assert {os.path.dirname(name) for name in visible(tmp_path / "f")} == folders
    rows = rows_of(env, "SELECT id, unix_micros(z), unix_date(d), CAST(z AS STRING), CAST(d AS STRING) FROM f ORDER BY id")
    texts = [("+10000-01-01 05:00:00", "+10001-02-03"), ("2024-01-01 09:00:00", "-0001-11-28")]
    assert rows == [(place, micros[place], days[place], *texts[place]) for place in range(2)]
    assert rows_of(env, "SELECT id FROM f WHERE year(d) > 9999") == [(0,)]
