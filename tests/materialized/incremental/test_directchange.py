"""A refresh that asks no engine gives the rows that the engine gives: random queries of one table. Seeds are in the names."""

import math
import random
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.materialized.incremental.directchange import DirectPlan
from tests.support.sql.simplechanges import COLUMNS, Texts, edge_rows

KINDS = "int double decimal text bool date".split()  # noqa: SIM905
SEEDS = [pytest.param(1, 6, id="1")] + [pytest.param(seed, 40, id=str(seed), marks=pytest.mark.slow) for seed in range(2, 6)]
KEYS = ["(PRIMARY KEY (id) NOT ENFORCED) ", ""]


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each plan without an engine has given the rows."""
    asked: list[bool] = []
    change = DirectPlan.change

    def noted(self: DirectPlan, *arguments: Any) -> pa.Table | None:
        rows = change(self, *arguments)
        asked.append(rows is not None)
        return rows

    monkeypatch.setattr(DirectPlan, "change", noted)
    return asked


def rows(table: pa.Table) -> list[str]:
    # SQL groups -0.0 with 0.0.
    return sorted(repr(tuple(row.values())).replace("-0.0,", "0.0,").replace("-0.0)", "0.0)") for row in table.to_pylist())


def refreshed(env: ts.TableEnvironment, name: str = "m") -> Any:
    return env.execute_sql(f"ALTER MATERIALIZED TABLE {name} REFRESH").to_arrow().to_pylist()[0]


@pytest.mark.deep
@pytest.mark.parametrize("key", KEYS, ids=["keyed", "without a key"])
@pytest.mark.parametrize(("seed", "count"), SEEDS)
def test_a_refresh_without_an_engine_has_the_rows_of_the_query(
    duck: ts.TableEnvironment, seed: int, count: int, key: str, direct: list[bool]
) -> None:
    rng = random.Random(f"{seed} {key}")
    texts = Texts(rng)
    duck.execute_sql(f"CREATE TABLE a ({COLUMNS}, PRIMARY KEY (id) NOT ENFORCED)")
    table = duck.catalog().table("default.a")
    table.upsert(edge_rows(rng, 30))
    for number in range(count):
        columns = ", ".join(f"{texts.expression(rng.choice(KINDS))} AS c{place}" for place in range(2))
        query = f"SELECT id, s, x, {columns} FROM a WHERE {texts.expression('bool')}"
        try:
            duck.execute_sql(f"CREATE MATERIALIZED TABLE m{number} {key}REFRESH_MODE = FULL AS {query}")
            refreshed(duck, f"m{number}")
        except ts.TablestoreError:
            continue  # Some overflow, and some have columns of no type.
        for changed in (5, 3):
            table.upsert(edge_rows(rng, 30).slice(rng.randrange(25), changed))
            table.delete(f"id = {rng.randrange(30)}")
            try:
                expected = rows(duck.execute_sql(query).to_arrow())
            except ts.TablestoreError:
                break
            refreshed(duck, f"m{number}")
            assert rows(duck.catalog().table(f"default.m{number}").scan().to_arrow()) == expected, query
    assert any(direct)


@pytest.mark.deep_after(2)
@pytest.mark.parametrize(
    ("query", "is_direct"),
    [
        ("SELECT id, x * 2 AS y FROM a WHERE x > 0", True),
        ("SELECT id, s FROM a AS q WHERE q.x > 0 AND s LIKE 'a%'", True),
        ("SELECT id, s FROM a WHERE x > 0 UNION ALL SELECT id, s FROM a WHERE x <= 0", True),
        ("SELECT id, upper(s) AS s FROM a", False),
        ("SELECT id, x * 2 AS y FROM a WHERE id + 1 > 0", False),
        ("SELECT id, vc FROM a", False),
        ("SELECT id, s FROM a WHERE vc = 'a'", False),
        ("SELECT id, ts FROM a", False),
        ("SELECT id, 'a\\\\b' AS s FROM a", False),
        ("SELECT id, count(*) AS n FROM a GROUP BY id", False),
        ("SELECT DISTINCT id FROM a", False),
        ("SELECT a.id, b.s FROM a JOIN a AS b ON a.id = b.id", False),
    ],
)
def test_what_an_engine_may_see_in_another_way_is_the_engines(
    duck: ts.TableEnvironment, query: str, is_direct: bool, direct: list[bool]
) -> None:
    duck.execute_sql(f"CREATE TABLE a ({COLUMNS}, PRIMARY KEY (id) NOT ENFORCED)")
    table = duck.catalog().table("default.a")
    table.upsert(edge_rows(random.Random(1), 20))
    duck.execute_sql(f"CREATE MATERIALIZED TABLE m REFRESH_MODE = FULL AS {query}")
    refreshed(duck)
    table.upsert(edge_rows(random.Random(2), 4))
    report = refreshed(duck)
    assert report["mode"] == "incremental" and any(direct) is is_direct
    assert rows(duck.catalog().table("default.m").scan().to_arrow()) == rows(duck.execute_sql(query).to_arrow())


def test_what_fails_without_an_engine_is_run_by_the_engine(duck: ts.TableEnvironment, direct: list[bool]) -> None:
    duck.execute_sql("CREATE TABLE a (id INT PRIMARY KEY NOT ENFORCED, x BIGINT)")
    duck.execute_sql("INSERT INTO a VALUES (1, 2)")
    duck.execute_sql("CREATE MATERIALIZED TABLE m REFRESH_MODE = FULL AS SELECT id, x + 1 AS y FROM a")
    refreshed(duck)
    duck.execute_sql("INSERT INTO a VALUES (1, 9223372036854775807)")
    with pytest.raises(ts.InvalidInputError):
        refreshed(duck)
    assert direct == [False]
    duck.execute_sql("INSERT INTO a VALUES (1, 7)")
    assert refreshed(duck)["mode"] == "incremental" and direct == [False, True]
    assert duck.execute_sql("SELECT y FROM m").to_arrow()["y"].to_pylist() == [8]


def test_what_sql_calls_equal_is_no_change(duck: ts.TableEnvironment, direct: list[bool]) -> None:
    duck.execute_sql("CREATE TABLE a (id INT PRIMARY KEY NOT ENFORCED, x DOUBLE, y INT)")
    table = duck.catalog().table("default.a")
    table.upsert(pa.table({"id": [1, 2, 3], "x": [-0.0, 1.0, float("nan")], "y": [1, 1, 1]}))
    duck.execute_sql("CREATE MATERIALIZED TABLE m REFRESH_MODE = FULL AS SELECT id, x FROM a")
    refreshed(duck)
    table.upsert(pa.table({"id": [1, 2, 3], "x": [0.0, 1.0, float("nan")], "y": [2, 2, 2]}))
    report = refreshed(duck)
    assert (report["mode"], report["rows_out"], direct) == ("incremental", 0, [True])
    values = duck.execute_sql("SELECT x FROM m ORDER BY id").to_arrow()["x"].to_pylist()
    assert math.copysign(1, values[0]) == -1


def test_many_rows_are_the_engines(duck: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch, direct: list[bool]) -> None:
    monkeypatch.setattr("tablestore.materialized.incremental.directchange.MOST_ROWS", 3)
    duck.execute_sql("CREATE TABLE a (id INT, x BIGINT)")
    duck.execute_sql("INSERT INTO a VALUES (1, 2)")
    duck.execute_sql("CREATE MATERIALIZED TABLE m REFRESH_MODE = FULL AS SELECT x FROM a")
    refreshed(duck)
    for count in (3, 4):
        duck.execute_sql("INSERT INTO a VALUES " + ", ".join(f"({n}, 5)" for n in range(count)))
        assert refreshed(duck)["rows_out"] == count
    assert direct == [True, False]
    assert sorted(duck.execute_sql("SELECT x FROM m").to_arrow()["x"].to_pylist()) == [2] + [5] * 7
