"""Temporary functions: which one a name means, and calling them in DuckDB; as FLIP-64 has them."""

from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablestore as ts

Rows = Callable[[Any], list[tuple[Any, ...]]]


class Add:
    """A function with a setting of its own."""

    def __init__(self, what: int = 10) -> None:
        self._what = what

    def eval(self, x: int | None) -> int | None:
        return None if x is None else x + self._what


def double(x: int) -> int:
    return 2 * x


def shout(text: pa.Array) -> pa.Array:
    return pc.utf8_upper(text)


def the_day_after(day: date, shown: bool) -> str:
    return f"{day.toordinal() + 1}" if shown else ""


def one(env: ts.TableEnvironment, text: str) -> Any:
    return env.execute_sql(text).to_arrow().column(0)[0].as_py()


def test_functions_classes_and_instances_are_called(duck: ts.TableEnvironment) -> None:
    duck.create_temporary_function("twice", double)
    duck.create_temporary_function("add", Add)
    duck.create_temporary_function("add5", Add(5))
    duck.create_temporary_function("half", lambda x: x / 2, arguments=["DOUBLE"], returns=pa.float64())
    duck.create_temporary_function("next_day", the_day_after)
    assert one(duck, "SELECT twice(add(1)) + add5(1)") == 28
    assert one(duck, "SELECT add(CAST(NULL AS BIGINT)) IS NULL")
    assert one(duck, "SELECT half(5)") == 2.5
    assert one(duck, "SELECT next_day(DATE '0001-01-01', true)") == "2"


def test_a_function_of_arrow_arrays_gets_columns(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.create_temporary_function("shout", shout, arguments=["STRING"], returns="STRING")
    duck.create_temporary_view("v", pa.table({"s": ["a", None, "ß"] * 3000}))
    shouted = "SELECT DISTINCT shout(s) AS s FROM v WHERE s = 'a' OR s IS NULL ORDER BY s NULLS LAST"
    assert rows_of(duck.execute_sql(shouted)) == [("A",), (None,)]
    assert one(duck, "SELECT count(shout(s)) FROM v") == 6000


def test_functions_are_called_by_names_of_one_to_three_parts_inside_of_any_statement(
    duck: ts.TableEnvironment, rows_of: Rows
) -> None:
    duck.create_temporary_function("nowhere.`my.db`.net", double)
    duck.create_temporary_function("default.here", double)
    duck.execute_script(
        """
        CREATE TABLE t (id BIGINT, v BIGINT);
        INSERT INTO t SELECT nowhere.`my.db`.net(id), id FROM (VALUES (1), (2)) AS here (id);
        UPDATE t SET v = here(v) WHERE nowhere . `my.db` . net (id) = 4;
        DELETE FROM t WHERE `default`.HERE(id) = 4;
        CREATE TEMPORARY VIEW w AS SELECT here(v) AS h FROM t
        """
    )
    assert rows_of(duck.execute_sql("SELECT id, v FROM t")) == [(4, 2)]
    text = "WITH here (a) AS (SELECT h FROM w) SELECT tablestore.`default`.here(a), 'here(1)' FROM here"
    assert rows_of(duck.execute_sql(text)) == [(8, "here(1)")]
    duck.execute_sql("CREATE DATABASE other")
    duck.use_database("other")
    assert rows_of(duck.execute_sql("SELECT h FROM `default`.w")) == [(4,)], "a view keeps the place of its names"
    with pytest.raises(ts.TablestoreError, match="here"):
        duck.execute_sql("SELECT here(1)")


def test_system_functions_come_before_those_of_the_engine_and_catalog_functions_after(duck: ts.TableEnvironment) -> None:
    duck.create_temporary_function("default.abs", double)
    assert one(duck, "SELECT abs(-3)") == 3
    assert one(duck, "SELECT `default`.abs(-3)") == -6
    duck.create_temporary_system_function("abs", Add(100))
    assert one(duck, "SELECT ABS(-3)") == 97
    assert duck.drop_temporary_system_function("Abs")
    assert one(duck, "SELECT abs(-3)") == 3


def test_sql_creates_shows_and_drops_functions(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.execute_sql(f"CREATE TEMPORARY FUNCTION default.f AS '{__name__}.double' LANGUAGE PYTHON")
    duck.execute_sql(f"CREATE TEMPORARY SYSTEM FUNCTION g AS '{__name__}.Add'")
    duck.execute_sql(f"CREATE TEMPORARY FUNCTION IF NOT EXISTS g AS '{__name__}.double'")
    assert one(duck, "SELECT f(g(1))") == 22
    duck.execute_sql(f"CREATE OR REPLACE TEMPORARY FUNCTION g AS '{__name__}.double'")
    assert one(duck, "SELECT f(g(1))") == 4
    assert rows_of(duck.execute_sql("SHOW TEMPORARY FUNCTIONS")) == [("f",), ("g",)]
    assert rows_of(duck.execute_sql("SHOW USER FUNCTIONS LIKE 'g'")) == [("g",)]
    assert {("f",), ("g",), ("upper",)} < set(rows_of(duck.execute_sql("SHOW FUNCTIONS")))
    assert rows_of(duck.execute_sql("SHOW ALL FUNCTIONS LIKE 'g|upp*'")) == [("g",), ("upper",)]
    assert rows_of(duck.execute_sql("SHOW SYSTEM FUNCTIONS LIKE 'g|upp*'")) == [("upper",)]
    for text in ("SHOW SYSTEM FUNCTIONS upper", "DESCRIBE FUNCTION upper"):
        with pytest.raises(ts.UnsupportedError, match="SHOW USER FUNCTIONS"):
            duck.execute_sql(text)
    assert duck.list_temporary_functions() == ("f", "g")
    duck.execute_script("DROP TEMPORARY FUNCTION default.f; DROP TEMPORARY SYSTEM FUNCTION g; DROP TEMPORARY FUNCTION IF EXISTS f")
    assert duck.list_temporary_functions() == ()
    for text, message in [
        ("DROP TEMPORARY FUNCTION default.f", "Function with identifier '`tablestore`.`default`.`f`' does not exist."),
        ("CREATE TEMPORARY FUNCTION f AS 'no_such_module.f'", "No module named"),
        ("CREATE TEMPORARY FUNCTION f AS 'f'", "expected 'module.name'"),
        (f"CREATE TEMPORARY FUNCTION f AS '{__name__}.nothing'", "nothing"),
        (f"CREATE TEMPORARY FUNCTION f AS '{__name__}.double' LANGUAGE JAVA", "expected LANGUAGE PYTHON"),
        (f"CREATE FUNCTION f AS '{__name__}.double'", "CREATE TEMPORARY FUNCTION"),
        (f"CREATE TEMPORARY SYSTEM FUNCTION a.f AS '{__name__}.double'", "a name of one part"),
    ]:
        with pytest.raises(ts.TablestoreError) as error:
            duck.execute_sql(text)
        assert message in str(error.value)


def test_a_regular_drop_fails_while_a_temporary_function_has_the_name(env: ts.TableEnvironment) -> None:
    env.create_temporary_function("f", double)
    env.create_temporary_function("default.g", double)
    message = "Could not drop catalog function. A temporary function '{}' does already exist. Please drop the temporary function "
    message += "first."
    for text, name in [
        ("DROP FUNCTION f", "f"),
        ("DROP FUNCTION IF EXISTS F", "F"),
        ("DROP FUNCTION g", "`tablestore`.`default`.`g`"),
        ("DROP FUNCTION tablestore.default.g", "`tablestore`.`default`.`g`"),
    ]:
        with pytest.raises(ts.InvalidInputError) as error:
            env.execute_sql(text)
        assert message.format(name) in str(error.value)
    assert env.drop_temporary_function("f") and not env.drop_temporary_function("g")
    env.execute_sql("DROP FUNCTION IF EXISTS f")
    with pytest.raises(ts.NotFoundError):
        env.execute_sql("DROP FUNCTION f")


def test_a_second_function_of_a_name_is_refused(env: ts.TableEnvironment) -> None:
    env.create_temporary_function("f", double)
    env.create_temporary_function("a.b.f", double)
    for path, message in [
        ("F", "Could not register temporary system function. A function named 'F' does already exist."),
        ("a.b.F", "Could not register temporary catalog function. A function '`a`.`b`.`F`' does already exist."),
    ]:
        with pytest.raises(ts.AlreadyExistsError) as error:
            env.create_temporary_function(path, double)
        assert str(error.value) == message
        env.create_temporary_function(path, double, replace=True)


def test_what_cannot_be_a_function_is_refused(duck: ts.TableEnvironment) -> None:
    class Wants:
        def __init__(self, what: int) -> None: ...

    for given, message in [
        (7, "expected a function"),
        (Wants, "give an instance"),
        (lambda x: x, "DuckDB needs the types"),
    ]:
        with pytest.raises(ts.InvalidInputError, match=message):
            duck.create_temporary_function("f", given)
    for path in ("", "a..f", "a.b.c.f", "`f"):
        with pytest.raises(ts.InvalidInputError):
            duck.create_temporary_function(path, double)
    with pytest.raises(ts.InvalidInputError):
        duck.create_temporary_function("f", double, returns="NO TYPE")
    assert duck.list_temporary_functions() == ()


def test_an_error_of_a_function_says_what_it_was(duck: ts.TableEnvironment) -> None:
    def broken(x: int) -> int:
        raise ValueError("there is no such thing")

    duck.create_temporary_function("broken", broken)
    with pytest.raises(ts.TablestoreError, match="there is no such thing"):
        duck.execute_sql("SELECT broken(1)").to_arrow()


def test_a_permanent_definition_cannot_use_a_temporary_function(duck: ts.TableEnvironment) -> None:
    duck.create_temporary_function("f", double)
    with pytest.raises(ts.TablestoreError, match="f"):
        duck.execute_sql("CREATE TABLE t (a BIGINT, b AS f(a))")


def test_register_function_works_and_warns(duck: ts.TableEnvironment) -> None:
    with pytest.warns(DeprecationWarning, match="register_function is deprecated: use create_temporary_function"):
        duck.register_function("f", double)
    assert one(duck, "SELECT f(2)") == 4


class Mean:
    """An aggregate function of values; ``merge`` shows that the parts of a group are put together."""

    def create(self) -> list[float]:
        return [0.0, 0]

    def accumulate(self, state: list[float], value: float | None, weight: int) -> None:
        if value is not None:
            state[0] += value * weight
            state[1] += weight

    def merge(self, state: list[float], other: list[float]) -> list[float]:
        return [state[0] + other[0], state[1] + other[1]]

    def value(self, state: list[float]) -> float | None:
        return state[0] / state[1] if state[1] else None


class Longest:
    """An aggregate function of the columns of parts of a group."""

    def create(self) -> int:
        return 0

    def accumulate(self, state: int, texts: pa.Array) -> int:
        assert len(texts) <= 65_536
        return max(state, pc.max(pc.utf8_length(texts)).as_py() or 0)

    def value(self, state: int) -> int:
        return state


def spread(values: pa.Array) -> float | None:
    return None if values.null_count == len(values) else pc.max(values).as_py() - pc.min(values).as_py()


class Split:
    def eval(self, text: str | None, times: int) -> Iterator[tuple[str, int]]:
        for number in range(times):
            for piece in [] if text is None else text.split(","):
                yield piece, number


def test_aggregate_functions_fold_groups(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.create_temporary_function("mean", Mean)
    duck.create_temporary_function("default.longest", Longest, arguments=["STRING"])
    duck.create_temporary_function("spread", spread, arguments=["DOUBLE"])
    rows = pa.table({"k": ["a", "a", "b"], "v": [1.0, 4.0, None], "w": [1, 2, 3], "s": ["x", "yyy", None]})
    duck.create_temporary_view("t", rows)
    query = "SELECT k, mean(v, w) AS m, longest(s) AS l, spread(v) AS s FROM t GROUP BY k HAVING longest(s) >= 0 ORDER BY m DESC"
    assert rows_of(duck.execute_sql(query)) == [("a", 3.0, 3, 3.0), ("b", None, 0, None)]
    assert rows_of(duck.execute_sql("SELECT mean(v, w) AS m, longest(s) AS l, spread(v) AS s FROM t WHERE k = 'c'")) == [
        (None, 0, None)
    ]
    assert rows_of(duck.execute_sql("SELECT spread(v) FILTER (WHERE v > 1) AS s, longest(DISTINCT s) AS l FROM t")) == [(0.0, 3)]
    windowed = "SELECT 1 + spread(v) OVER (PARTITION BY k) AS s FROM t WHERE v IS NOT NULL"
    assert rows_of(duck.execute_sql(windowed)) == [(4.0,), (4.0,)]
    duck.create_temporary_view("many", pa.table({"v": pa.array([1.0, 3.0] * 100_000), "s": ["ab"] * 200_000}))
    assert rows_of(duck.execute_sql("SELECT mean(v, 1) AS m, longest(s) AS l FROM many")) == [(2.0, 2)], "in parts"


def test_table_functions_give_rows(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.create_temporary_function("split", Split, returns="ROW<piece STRING, number INT>")
    query = "SELECT piece, number FROM split('a,b', 2) ORDER BY number, piece"
    assert rows_of(duck.execute_sql(query)) == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    duck.create_temporary_view("t", pa.table({"id": [1, 2, 3], "s": ["a,b", None, "c"]}))
    joined = "SELECT id, p.piece FROM t, LATERAL split(t.s, 1) AS p ORDER BY id, p.piece"
    assert rows_of(duck.execute_sql(joined)) == [(1, "a"), (1, "b"), (3, "c")]
    named = "SELECT count(x) AS n FROM split('a,b', 3) AS p (x, y) WHERE y > 0"
    assert rows_of(duck.execute_sql(named)) == [(4,)]
    with pytest.raises(ts.InvalidInputError, match="gives rows: expected it in FROM"):
        duck.execute_sql("SELECT split('a', 1) AS x")


def test_functions_of_groups_and_rows_say_what_is_wrong_with_them(duck: ts.TableEnvironment) -> None:
    class Halfway:
        def accumulate(self, state: int, value: int) -> int:
            return state

    class Breaks(Mean):
        def value(self, state: list[float]) -> float:
            raise ValueError("no mean today")

    def short(text: str) -> Iterator[tuple[str, ...]]:
        yield (text,)

    for function, more, message in [
        (Halfway, {}, r"function f: the aggregate function Halfway has no create\(\)"),
        (Split, {}, "function f gives rows: say their columns"),
        (lambda x: x, {}, "DuckDB needs the types"),
    ]:
        with pytest.raises(ts.InvalidInputError, match=message):
            duck.create_temporary_function("f", function, **more)
    duck.create_temporary_function("breaks", Breaks)
    with pytest.raises(ts.TablestoreError, match=r"function breaks raised ValueError: no mean today"):
        duck.execute_sql("SELECT breaks(1.0, 1)").to_arrow()
    duck.create_temporary_function("short", short, returns="ROW<a STRING, b STRING>")
    with pytest.raises(ts.TablestoreError, match=r"function short raised TypeError: expected a tuple of 2 values"):
        duck.execute_sql("SELECT * FROM short('a')").to_arrow()
    for query in ("SELECT breaks(1.0, 1)", "FROM short('a')"):
        with pytest.raises(ts.UnsupportedError, match="called in Spark's words alone"):
            duck.execute_sql(query, sql_dialect="duckdb")
    assert duck.list_temporary_functions() == ("breaks", "short")
