"""What a long text costs: as much more as it is longer, or a refusal that names the limit. Calls are counted, not seconds."""

import sys
from collections.abc import Callable

import pytest

import tablestore as ts
from tablestore.errors import InvalidInputError
from tablestore.sql.query.tokenstream import Tokens


def listed(item: str, separator: str = ", ") -> Callable[[int], str]:
    """``item`` for each number, which it names ``{n}``."""
    return lambda count: separator.join(item.replace("{n}", str(number)) for number in range(count))


def statement(head: str, items: Callable[[int], str], tail: str = "") -> Callable[[int], str]:
    return lambda count: head + items(count) + tail


# The number of items of each, and the text of so many.
SHAPES: dict[str, Callable[[int], str]] = {
    "IN of numbers": statement("SELECT * FROM t WHERE id IN (", listed("{n}"), ")"),
    "IN of texts": statement("SELECT * FROM t WHERE v IN (", listed("'x{n}'"), ")"),
    "IN of texts for a number": statement("SELECT * FROM t WHERE id IN (", listed("'{n}'"), ")"),
    "IN of numbers for a text": statement("SELECT * FROM t WHERE v IN (", listed("{n}"), ")"),
    "NOT IN of negative numbers": statement("SELECT * FROM t WHERE id NOT IN (", listed("-{n}"), ")"),
    "IN of dates": statement("SELECT * FROM t WHERE DATE '2024-01-01' IN (", listed("DATE '2024-01-02'"), ")"),
    "IN of DELETE": statement("DELETE FROM t WHERE id IN (", listed("{n}"), ")"),
    "IN of UPDATE": statement("UPDATE t SET v = 'y' WHERE id IN (", listed("{n}"), ")"),
    "IN of MERGE": statement(
        "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id AND s.id IN (", listed("{n}"), ") WHEN MATCHED THEN DELETE"
    ),
    "OR": statement("SELECT * FROM t WHERE ", listed("id = {n}", " OR ")),
    "AND": statement("SELECT * FROM t WHERE ", listed("id <> {n}", " AND ")),
    "sums": statement("SELECT ", listed("id", " + "), " AS x FROM t"),
    "texts put together": statement("SELECT ", listed("v", " || "), " AS x FROM t"),
    "CASE": statement("SELECT CASE ", listed("WHEN id = {n} THEN {n}", " "), " END AS x FROM t"),
    "columns": statement("SELECT ", listed("id AS c{n}"), " FROM t"),
    "arguments": statement("SELECT coalesce(", listed("id"), ") AS x FROM t"),
    "queries of WITH": statement("WITH ", listed("c{n} AS (SELECT id FROM t)"), " SELECT * FROM c0"),
    "UNION ALL": listed("SELECT id FROM t", " UNION ALL "),
    "rows of VALUES": statement("SELECT * FROM (VALUES ", listed("({n}, 'x{n}')"), ") AS q (a, b)"),
    "rows of INSERT": statement("INSERT INTO t VALUES ", listed("({n}, 'x{n}')")),
    "comments": statement("SELECT id ", listed("/* c */ -- c\n", " "), " FROM t"),
    "hints": statement("SELECT /*+ ", listed("BROADCAST(t)"), " */ id FROM t"),
    "parts of a name": statement("SELECT ", listed("a", "."), " FROM t"),
    "options": statement("SELECT id FROM t /*+ OPTIONS(", listed("'o{n}' = 'v'"), ") */"),
    "options of a table": statement("CREATE TABLE o (id INT) WITH (", listed("'x.o{n}' = 'v'"), ")"),
    "signs": statement("SELECT ", listed("- ", ""), "id AS x FROM t"),
    "negations": statement("SELECT id FROM t WHERE ", listed("NOT ", ""), "id = 1"),
    "calls inside of calls": lambda count: f"SELECT {'abs(' * count}id{')' * count} AS x FROM t",
}


@pytest.fixture
def env(duck: ts.TableEnvironment) -> ts.TableEnvironment:
    # A compaction would count for one statement of several.
    duck.execute_sql("CREATE TABLE t (id BIGINT PRIMARY KEY NOT ENFORCED, v STRING) WITH ('write-only' = 'true')")
    duck.execute_sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    return duck


def calls(run: Callable[[], object]) -> int:
    """How many functions a call calls, those of C too. Refusals of the text are its result."""
    counted = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run()
    except ts.TablestoreError:
        pass
    finally:
        sys.setprofile(before)
    return counted


def is_linear(run: Callable[[int], object], size: int) -> bool:
    """Whether twice as many items more take twice as many calls more."""
    run_it = lambda count: calls(lambda: run(count))  # noqa: E731
    run_it(3)
    one, two, four = (run_it(size * factor) for factor in (1, 2, 4))
    return four - two < 2.4 * max(two - one, size)


@pytest.mark.deep
@pytest.mark.parametrize("shape", SHAPES)
def test_a_statement_takes_calls_in_proportion_to_its_length(env: ts.TableEnvironment, shape: str) -> None:
    # Of lists, which are long, what counts for little in short ones counts too.
    assert is_linear(lambda count: env.execute_sql(SHAPES[shape](count)), 150 if shape.startswith("IN") else 20)


@pytest.mark.parametrize("text", [listed("id = {n}", " OR "), statement("id IN (", listed("{n}"), ")")], ids=["OR", "IN"])
def test_a_filter_of_python_takes_calls_in_proportion_to_its_length(env: ts.TableEnvironment, text: Callable[[int], str]) -> None:
    table = env.catalog().table("default.t")
    assert is_linear(lambda count: table.scan(filter=text(count)).to_arrow(), 50)


@pytest.mark.deep
def test_a_long_list_of_values_is_no_limit(env: ts.TableEnvironment) -> None:
    """A filter of tables has room for a megabyte: behind that the engine alone asks the condition."""
    values = ", ".join(f"'{'x' * 1_000}{number}'" for number in range(1_100))
    found = env.execute_sql(f"SELECT id FROM t WHERE v IN ({values}, 'a') AND id < 2").to_arrow()
    assert found.to_pylist() == [{"id": 1}]
    assert env.execute_sql(f"SELECT id FROM t WHERE v <> '{'x' * 2_000_000}'").to_arrow().num_rows == 2


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (f"SELECT id FROM t WHERE {'(' * 100_000}id = 1{')' * 100_000}", "at most 300 levels"),
        (f"SELECT {'abs(' * 5_000}id{')' * 5_000} FROM t", "at most 300 levels"),
        (f"SELECT CAST(NULL AS {'ARRAY<' * 5_000}INT{'>' * 5_000}) FROM t", "more than 64 levels"),
        (f"SELECT CAST(NULL AS {'STRUCT<a: INT, b: ' * 5_000}INT{'>' * 5_000}) FROM t", "more than 64 levels"),
        (f"CREATE TABLE n (a {'ARRAY<' * 5_000}INT{'>' * 5_000})", "more than 64 levels"),
    ],
    ids=["parentheses", "calls", "types of a cast", "types of fields", "types of columns"],
)
def test_what_is_nested_too_deep_is_refused_before_it_is_parsed(env: ts.TableEnvironment, text: str, limit: str) -> None:
    with pytest.raises(InvalidInputError, match=limit):
        env.execute_sql(text)


def test_comparisons_of_a_column_called_like_a_type_are_no_types() -> None:
    assert len(Tokens(" AND ".join("array < 1" for _ in range(200)))) == 4 * 200 - 1


def test_a_filter_that_is_too_long_names_the_limit(env: ts.TableEnvironment) -> None:
    table = env.catalog().table("default.t")
    with pytest.raises(InvalidInputError, match="more than the limit of 1048576") as refused:
        table.scan(filter=f"v = '{'x' * (1 << 20)}'")
    assert refused.value.kind == "limit"
