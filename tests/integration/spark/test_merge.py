"""A MERGE that looks the rows of its keys up changes the table as one that joins it with its source."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts

pytestmark = pytest.mark.spark

TYPES = {
    "id": "BIGINT",
    "day": "DATE",
    "name": "STRING",
    "n": "INT",
    "v": "DOUBLE",
    "at": "TIMESTAMP",
    "s": "STRUCT<a: INT, b: ARRAY<STRING>>",
}
COLUMNS = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
VALUES = [
    ("NULL", "NULL", "NULL", "NULL"),
    ("1", "double('NaN')", "TIMESTAMP'2024-03-10 02:30:00'", "named_struct('a', 1, 'b', array('x', NULL))"),
    ("-7", "-0.0D", "TIMESTAMP'0001-01-01 00:00:00'", "named_struct('a', NULL, 'b', NULL)"),
    ("2147483647", "0.0D", "TIMESTAMP'9999-12-31 23:59:59.999999'", "NULL"),
    ("3", "double('-Infinity')", "TIMESTAMP'1969-12-31 23:59:59.999999'", "named_struct('a', 2, 'b', array())"),
]
DAYS = ["DATE'2024-02-29'", "DATE'0001-01-01'"]
NAMES = ["''", "'ä'", "'it''s'"]
TABLES = {
    "plain": ("PRIMARY KEY (id) NOT ENFORCED)", {"bucket": "2", "write-only": "true"}),
    "composite": ("PRIMARY KEY (name, day, id) NOT ENFORCED) PARTITIONED BY (day)", {"bucket": "2", "changelog-producer": "input"}),
    "vectors": ("PRIMARY KEY (id) NOT ENFORCED)", {"bucket": "1", "deletion-vectors.enabled": "true"}),
    "dynamic": ("PRIMARY KEY (id, name) NOT ENFORCED)", {"bucket": "-1"}),
}
KEYS = {"plain": ["id"], "composite": ["id", "day", "name"], "vectors": ["id"], "dynamic": ["name", "id"]}
MATCHED = [
    "WHEN MATCHED AND t.v <> s.v THEN UPDATE SET v = t.v + s.v, n = coalesce(t.n, 0) - 1",
    "WHEN MATCHED AND s.n IS NULL AND t.n > 1 THEN DELETE",
    "WHEN MATCHED AND t.v = s.v THEN UPDATE SET at = greatest(t.at, s.at), s.a = t.n",
    "WHEN MATCHED AND t.name >= s.name THEN UPDATE SET n = s.n, v = s.v, at = s.at, s = s.s",
]
NOT_MATCHED = [
    "WHEN NOT MATCHED AND n > 0 THEN INSERT *",
    "WHEN NOT MATCHED THEN INSERT (id, day, name, v) VALUES (id, day, name, v)",
]
REST = ["", " AND (t.n IS NULL OR t.n < 3)", " AND CAST(concat('1', t.id) AS INT) > 13 AND (s.v IS NOT NULL)"]


@pytest.fixture
def env(spark: Any, tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path / "wh", spark=spark) as made:
        yield made


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], list[bool]]:
    """Lets merges look up, by several tasks, or not; gives whether each one did."""
    from pyspark_tablestore.query.keypairs import key_pairs as look_up

    monkeypatch.setattr("tablestore.distributed.keymatch._ROWS_OF_A_TASK", 2)

    def switch(on: bool) -> list[bool]:
        done: list[bool] = []

        def key_pairs(*given: Any) -> Any:
            found = look_up(*given)
            done.append(found is not None and on)
            return found if on else None

        monkeypatch.setattr("pyspark_tablestore.engine.key_pairs", key_pairs)
        return done

    return switch


def content(env: ts.TableEnvironment, text: str) -> list[str]:
    return sorted(map(repr, env.execute_sql(text).to_arrow().to_pylist()))


def outcome(env: ts.TableEnvironment, text: str, table: str) -> list[str]:
    """The kind of the error, and what the table holds and has changed."""
    kind = None
    try:
        env.execute_sql(text)
    except ts.TablestoreError as error:
        kind = error.kind
    (last,) = env.execute_sql(f"SELECT max(snapshot_id) AS id FROM {table}$snapshots").to_arrow().column(0).to_pylist()
    return [
        str(kind),
        *content(env, f"SELECT * FROM {table}"),
        *content(env, f"SELECT * FROM table_changes('{table}', {last - 1})"),
    ]


def row(draw: random.Random, number: str) -> str:
    n, v, at, s = (draw.choice(column) for column in zip(*VALUES, strict=True))
    other = draw.randrange(8) == 0 or not number.isdigit()
    turn = draw.randrange(6) if other else int(number)
    return f"({number}, {DAYS[turn % 2]}, {NAMES[turn % 3]}, {n}, {v}, {at}, {s})"


def rows(draw: random.Random, numbers: list[str]) -> str:
    columns = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in TYPES.items())
    given = ", ".join(row(draw, number) for number in numbers)
    return f"(SELECT {columns} FROM VALUES {given} AS s ({', '.join(TYPES)}))"


@pytest.mark.slow_after(1)
@pytest.mark.deep
@pytest.mark.parametrize(
    "kind", ["composite", "vectors", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("plain", "dynamic"))]
)
def test_a_merge_that_looks_up_is_one_that_joins(env: ts.TableEnvironment, looked_up: Any, kind: str) -> None:
    draw = random.Random(kind)
    key, options = TABLES[kind]
    given = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    for table in ("a", "b"):
        env.execute_sql(f"CREATE TABLE {table} ({COLUMNS}, {key} WITH ({given})")
    for stored in (range(14), range(6, 20, 3)):
        text = rows(draw, list(map(str, stored)))
        for table in ("a", "b"):
            env.execute_sql(f"INSERT INTO {table} {text}")
    for turn in range(3):
        numbers = list(map(str, draw.sample(range(26), 12)))
        # The last time with keys that are NULL, and with two rows for one row.
        numbers += ["NULL", numbers[0]] if turn == 2 else []
        sides = [f"s.{name} = t.{name}" for name in KEYS[kind]]
        on = " AND ".join(draw.sample(sides, len(sides))) + REST[turn]
        clauses = draw.sample(MATCHED, draw.randint(1, 3)) + (NOT_MATCHED[turn - 1 :] if turn else [])
        merge = f"USING {rows(draw, numbers)} AS s ON {on} {' '.join(clauses)}"
        done = looked_up(True)
        first = outcome(env, f"MERGE INTO a AS t {merge}", "a")
        assert (done, first[0] == "None") == ([True], turn < 2), (merge, first[0])
        done = looked_up(False)
        assert outcome(env, f"MERGE INTO b AS t {merge}", "b") == first, merge
        assert done == [False]


@pytest.mark.deep
def test_a_second_match_is_refused_and_the_source_is_read_once(env: ts.TableEnvironment, looked_up: Any) -> None:
    env.execute_sql("CREATE TABLE t (id INT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2')")
    env.execute_sql("INSERT INTO t SELECT CAST(id AS INT), 0 FROM range(50)")
    done = looked_up(True)
    before = content(env, "SELECT * FROM t")
    with pytest.raises(ts.InvalidInputError, match="second one") as caught:
        env.execute_sql(
            "MERGE INTO t USING (SELECT id % 40 AS id FROM range(41)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v + 1"
        )
    assert (caught.value.kind, content(env, "SELECT * FROM t")) == ("second-match", before)
    # Numbers that the column cannot hold are no keys; another time the source would have other rows.
    some = "(SELECT id + if(id % 2 = 0, 0, 4294967296L) AS id FROM range(50) ORDER BY rand() LIMIT 9)"
    env.execute_sql(
        f"MERGE INTO t USING {some} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v + t.id + 1 "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (CAST(s.id - 4294967296L + 100 AS INT), -1)"
    )
    (changed,) = env.execute_sql("SELECT count(*) AS c FROM t WHERE v = id + 1 AND id % 2 = 0 OR v = -1 AND id > 100").to_arrow()[0]
    assert changed.as_py() == 9
    assert done == [True, True]
    env.execute_sql("MERGE INTO t USING (SELECT 1D AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v - 1000")
    assert done == [True, True, False]


@pytest.mark.deep
def test_what_spark_holds_of_a_source_it_holds_afterwards_and_no_view_is_left(env: ts.TableEnvironment, spark: Any) -> None:
    env.execute_sql("CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    source = spark.range(10).selectExpr("id", "id * 2 AS v").cache()
    source.createOrReplaceTempView("held")
    before = spark.catalog.listTables()
    try:
        env.execute_sql("MERGE INTO t USING held s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *")
        env.create_temporary_view("s", source)
        assert env.execute_sql("SELECT '{' AS b, sum(v) AS v FROM s").to_arrow().to_pylist() == [{"b": "{", "v": 90}]
        assert source.storageLevel.useMemory
        assert spark.catalog.listTables() == before
    finally:
        spark.catalog.dropTempView("held")
