"""DuckDB reads files in the folders of the tables alone that it was handed, whatever text it gets."""

import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from tablestore_duckdb import open_engine
from tablestore_duckdb.engine import DuckDBEngine

import tablestore as ts
from tablestore.sql.duckdb import transpile
from tablestore.testing.contracts.queryengine import bound, managed
from tests.support.sql.filetexts import file_texts
from tests.support.sql.received import Received

SECRET = "4711"


@pytest.fixture
def env(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as env:
        for name in ("a", "b"):
            env.execute_sql(f"CREATE TABLE {name} (id BIGINT, v STRING)")
            env.execute_sql(f"INSERT INTO {name} VALUES (1, '{name}')")
        yield env


@pytest.fixture
def secret(tmp_path: Path) -> str:
    (tmp_path / "secret.csv").write_text(f"a,b\n1,{SECRET}\n")
    return str(tmp_path / "secret.csv")


def engine_of(env: ts.TableEnvironment) -> DuckDBEngine:
    engine = env._session.engine_for("SELECT")
    assert isinstance(engine, DuckDBEngine)
    return engine


def rows(env: ts.TableEnvironment, text: str) -> list[dict[str, object]]:
    return env.execute_sql(text).to_arrow().to_pylist()


def native_file(env: ts.TableEnvironment, name: str) -> str:
    (file,) = Path(env.catalog().table(f"default.{name}").location).rglob("bucket-*/*.parquet")
    return str(file)


def refuses(env: ts.TableEnvironment, text: str, received: Received) -> None:
    """A text of DuckDB's own that gets to it opens no file."""
    with pytest.raises(ts.UnsupportedError, match="folders of tables alone"):
        engine_of(env).execute(text)
    with pytest.raises(AssertionError, match="DuckDB received"):
        received.check()


@pytest.mark.deep
def test_a_text_that_no_check_refuses_opens_no_file_all_the_same(
    tmp_path: Path, env: ts.TableEnvironment, secret: str, monkeypatch: pytest.MonkeyPatch, received: Received
) -> None:
    monkeypatch.setattr(transpile, "_refuse_unplanned", lambda *_: None)
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as reader:
        assert rows(reader, "SELECT v FROM a") == [{"v": "a"}]
        texts = [*file_texts(secret), f"SELECT * FROM '{secret}'", f"SELECT * FROM '{native_file(env, 'b')}'"]
        for text in texts:
            with pytest.raises(ts.TablestoreError) as raised:
                reader.execute_sql(text).to_arrow()
            assert SECRET not in str(raised.value)
        assert "folders of tables alone" in str(raised.value)
        # That a file of a table passes shows that the folders refused the others, and not the translation.
        assert rows(reader, f"SELECT count(*) AS n FROM '{native_file(env, 'a')}'") == [{"n": 1}]
    with pytest.raises(AssertionError, match="DuckDB received"):
        received.check()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('{}')",
        "SELECT * FROM read_text('{}')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM read_csv('{folder}/wh/default.db/a/../../../secret.csv')",
        "SELECT * FROM sniff_csv('{}')",
    ],
)
def test_no_reader_of_duckdbs_own_leaves_the_folders(env: ts.TableEnvironment, secret: str, text: str, received: Received) -> None:
    assert rows(env, "SELECT v FROM a") == [{"v": "a"}]
    refuses(env, text.format(secret, folder=os.path.dirname(secret)), received)


@pytest.mark.parametrize("setting", ["enable_external_access", "allowed_directories", "allowed_paths"])
def test_no_setting_opens_them_again(env: ts.TableEnvironment, secret: str, setting: str, received: Received) -> None:
    assert rows(env, "SELECT v FROM a") == [{"v": "a"}]
    with pytest.raises(ts.TablestoreError):
        env.execute_sql(f"SET '{setting}' = 'true'")
    refuses(env, f"SELECT * FROM read_csv('{secret}')", received)


def test_tables_of_other_warehouses_are_read_when_they_come(tmp_path: Path, env: ts.TableEnvironment) -> None:
    os.symlink(tmp_path / "wh", tmp_path / "link")
    assert rows(env, "SELECT v FROM a") == [{"v": "a"}]
    env.create_temporary_function("plus", lambda value: value + 1, arguments=["BIGINT"], returns="BIGINT")
    env.execute_sql("SET TIME ZONE 'Europe/Berlin'")
    for number, place in enumerate(("far", "o'd d; [x]", "link")):
        env.execute_sql(f"CREATE CATALOG c{number} WITH ('warehouse' = '{(tmp_path / place).as_posix()}')".replace("o'd", "o''d"))
        env.execute_sql(f"CREATE TABLE c{number}.default.x (id BIGINT, w STRING)")
        env.execute_sql(f"INSERT INTO c{number}.default.x VALUES (1, 'far')")
        text = f"SELECT v, w, plus(id) AS n FROM a JOIN c{number}.default.x AS x USING (id)"
        assert rows(env, text) == [{"v": "a", "w": "far", "n": 2}]
        moment = "SELECT CAST(TIMESTAMP '2024-01-01 12:00:00 UTC' AS STRING) AS t"
        assert rows(env, moment) == [{"t": "2024-01-01 13:00:00"}]


def test_what_is_being_read_goes_on_and_its_database_is_closed_behind_it(env: ts.TableEnvironment) -> None:
    env.execute_sql("INSERT INTO a SELECT id, 'more' FROM range(2, 200000) AS r (id)")
    sessions = engine_of(env)._sessions
    with env.execute_sql("SELECT id FROM a").to_reader() as reader:
        first = reader.read_next_batch().num_rows
        assert rows(env, "SELECT v FROM b") == [{"v": "b"}]
        assert len(sessions._left) == 1
        assert first + sum(batch.num_rows for batch in reader) == 199_999
    assert rows(env, "SELECT v FROM b") == [{"v": "b"}]
    assert sessions._left == []


def test_a_database_is_closed_although_something_always_runs(env: ts.TableEnvironment) -> None:
    env.execute_sql("INSERT INTO a SELECT id, 'more' FROM range(2, 200000) AS r (id)")
    sessions = engine_of(env)._sessions
    before = env.execute_sql("SELECT id FROM a").to_reader()
    before.read_next_batch()
    for number in range(6):
        env.execute_sql(f"CREATE TABLE more{number} AS SELECT id FROM range(200000) AS r (id)")
        following = env.execute_sql(f"SELECT id FROM more{number}").to_reader()
        following.read_next_batch()
        before.close()
        before = following
        assert len(sessions._left) <= 1
    before.close()


def test_relations_that_were_handed_out_are_read_together_with_tables_that_come_later(env: ts.TableEnvironment) -> None:
    kept = engine_of(env).query(bound("SELECT id, v FROM {0}", managed(env.catalog().table("default.a")))).native
    env.create_temporary_view("kept", kept)
    assert rows(env, "SELECT kept.v AS one, b.v AS other FROM kept JOIN b USING (id)") == [{"one": "a", "other": "b"}]
    assert kept.fetchall() == [(1, "a")]


def test_a_merge_reads_its_target_where_its_source_is_kept(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE k (id BIGINT PRIMARY KEY NOT ENFORCED, v STRING)")
    env.execute_sql("INSERT INTO k SELECT id, 'old' FROM range(1000) AS r (id)")
    env.execute_sql("ALTER TABLE k COMPACT")
    with ts.TableEnvironment.create(env.catalog(), engine="duckdb") as fresh:
        fresh.execute_sql("MERGE INTO k USING a AS s ON k.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v")
        assert rows(fresh, "SELECT v, count(*) AS n FROM k GROUP BY v ORDER BY v") == [{"v": "a", "n": 1}, {"v": "old", "n": 999}]


def test_files_of_connector_tables_are_read_by_file_folder_and_pattern(
    tmp_path: Path, env: ts.TableEnvironment, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep" / "x=1").mkdir(parents=True)
    (tmp_path / "deep" / "x=1" / "f.csv").write_text("1,4711\n")
    monkeypatch.chdir(tmp_path)
    places = (secret, f"file://{secret}", "secret.csv", "deep", "deep/*/f.csv", f"{tmp_path}/de[e]p/*/*.csv", f"{tmp_path}/*.csv")
    for number, place in enumerate(places):
        options = f"'connector' = 'filesystem', 'path' = '{place}', 'format' = 'csv'"
        if "secret" in place or (place.endswith("/*.csv") and "[" not in place):
            options += ", 'header' = 'true'"
        env.execute_sql(f"CREATE TEMPORARY TABLE f{number} (a INT, b INT) WITH ({options})")
        assert rows(env, f"SELECT b FROM f{number}") == [{"b": int(SECRET)}], place


def test_a_restricted_text_names_no_folder(env: ts.TableEnvironment, tmp_path: Path) -> None:
    reader = ts.TableEnvironment.create(env.catalog(), engine="duckdb", restricted=True)
    with reader, pytest.raises(ts.UnsupportedError):
        reader.execute_sql(f"SET 'temp_directory' = '{tmp_path}'")


@pytest.mark.deep
def test_data_beyond_the_memory_go_to_a_folder_inside_of_the_one_that_is_named(tmp_path: Path, env: ts.TableEnvironment) -> None:
    env.execute_sql(f"SET 'temp_directory' = '{tmp_path / 'spill'}'")
    env.execute_sql("SET 'memory_limit' = '60MB'")
    env.execute_sql("SET 'threads' = '1'")
    (place,) = (tmp_path / "spill").iterdir()
    wide = "SELECT DISTINCT id, id * 3 AS a, repeat(CAST(id AS STRING), 3) AS u FROM range(2000000) AS r (id)"
    assert rows(env, f"SELECT count(*) AS n FROM ({wide})") == [{"n": 2_000_000}]
    shown = engine_of(env).execute("SELECT current_setting('temp_directory') AS place")
    assert shown is not None
    assert shown.to_reader().read_all()["place"][0].as_py().startswith(str(place))
    with pytest.raises(ts.InvalidInputError, match="temp_directory: cannot make a folder"):
        env.execute_sql("SET 'temp_directory' = '/proc/nowhere'")
    env.execute_sql("RESET 'temp_directory'")
    assert rows(env, "SELECT v FROM a") == [{"v": "a"}]
    env.close()
    assert not place.exists()


def test_a_connection_of_ones_own_stays_as_it_is(tmp_path: Path, secret: str) -> None:
    with duckdb.connect() as connection:
        with ts.TableEnvironment.create(tmp_path / "wh", engine=open_engine(connection)) as env:
            env.execute_sql("CREATE TABLE a (id BIGINT)")
            env.catalog().table("default.a").append(pa.table({"id": [1]}))
            assert rows(env, "SELECT id FROM a") == [{"id": 1}]
        assert connection.sql(f"SELECT b FROM '{secret}'").fetchall() == [(int(SECRET),)]
