"""What people of deltalake, pyiceberg, pypaimon, DuckDB, Spark and dbt write does what they mean, or is told how it is called here.

The cases are a table (habits.toml), which is also a page of the documents. Each runs in a warehouse of its own.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts
from tablestore.sql.parse.otherwords import _SPARK_FUNCTIONS

CASES = tomllib.loads(Path(__file__).with_name("habits.toml").read_text())


@pytest.fixture
def scene(request: pytest.FixtureRequest) -> dict[str, Any]:
    names: dict[str, Any] = {"WAREHOUSE": f"memory://habits-{abs(hash(request.node.name))}"}
    exec(CASES["scene"], names)
    return names


@pytest.fixture
def env(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(str(tmp_path / "wh"), engine="duckdb") as environment:
        environment.execute_sql("CREATE TABLE p (id BIGINT, note STRING, PRIMARY KEY (id) NOT ENFORCED)")
        environment.execute_sql("INSERT INTO p VALUES (1, 'a'), (2, 'b')")
        yield environment


def says(error: ts.TablestoreError, shown: str) -> bool:
    """Whether a message is what is ``shown`` in the table, in which … stands for more text."""
    pattern = ".*".join(re.escape(part) for part in shown.split("…"))
    return re.fullmatch(pattern, str(error), re.DOTALL) is not None


@pytest.mark.deep_after(12)
@pytest.mark.parametrize("case", CASES["python_use"], ids=lambda case: case["code"])
def test_a_call_does_what_is_meant(case: dict[str, str], scene: dict[str, Any]) -> None:
    exec(case["code"], scene)
    assert eval(case["then"], scene)


@pytest.mark.deep_after(20)
@pytest.mark.parametrize("case", CASES["python_mistake"], ids=lambda case: case["code"])
def test_a_call_that_is_not_ours_is_told_our_way(case: dict[str, str], scene: dict[str, Any]) -> None:
    with pytest.raises(getattr(ts, case["error"])) as caught:
        exec(case["code"], scene)
    assert says(caught.value, case["says"]), f"it says: {caught.value}"


@pytest.mark.deep_after(8)
@pytest.mark.parametrize("case", CASES["sql_use"], ids=lambda case: case["text"])
def test_a_statement_does_what_is_meant(case: dict[str, Any], env: ts.TableEnvironment) -> None:
    rows = env.execute_sql(case["text"]).to_arrow()
    if "column" in case:
        assert case["column"] in rows.column_names and rows.num_rows
    else:
        shown = rows if "then" not in case else env.execute_sql(case["then"]).to_arrow()
        assert sorted(map(str, shown.to_pylist())) == sorted(map(str, eval(case["rows"])))


@pytest.mark.deep_after(12)
@pytest.mark.parametrize("case", CASES["sql_mistake"], ids=lambda case: case["text"])
def test_a_statement_that_is_not_ours_is_told_our_way(case: dict[str, str], env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.TablestoreError) as caught:
        env.execute_sql(case["text"]).to_arrow()
    assert says(caught.value, case["says"]), f"it says: {caught.value}"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT nope FROM p WHERE note = 'mail@v1'",
        "SELECT nope FROM p WHERE note LIKE 'on conflict do nothing'",
        "SELECT nope FROM p -- delta.`x` AT (VERSION => 1)",
        "SELECT nope /* read_csv('x') */ FROM p WHERE note = 'read_csv(x)'",
        "SELECT nope('count()') FROM p",
        "SELECT nope, `count()` FROM p",
        "SELECT nope, len(note) FROM p",
        "SELECT before(1)",
    ],
)
def test_texts_comments_and_names_are_no_words_of_others(env: ts.TableEnvironment, text: str) -> None:
    with pytest.raises(ts.TablestoreError) as caught:
        env.execute_sql(text).to_arrow()
    assert "here it is" not in str(caught.value)


ARRAY, TIME = "array(2, 1)", "TIMESTAMP '2020-01-31 00:00:00'"


FUNCTIONS = (
    (f"list_contains({ARRAY}, 1)", f"array_contains({ARRAY}, 1)", True),
    ("list_value(1, 2)", "array(1, 2)", [1, 2]),
    (f"list_aggregate({ARRAY}, 'sum')", f"aggregate({ARRAY}, 0, (sum, x) -> sum + x)", 3),
    (f"list_transform({ARRAY}, x -> x + 1)", f"transform({ARRAY}, x -> x + 1)", [3, 2]),
    (f"list_filter({ARRAY}, x -> x > 1)", f"filter({ARRAY}, x -> x > 1)", [2]),
    (f"list_sort({ARRAY})", f"array_sort({ARRAY})", [1, 2]),
    ("list_distinct(array(1, 1))", "array_distinct(array(1, 1))", [1]),
    ("list(1)", "collect_list(1)", [1]),
    ("struct_pack(a := 1)", "named_struct('a', 1)", {"a": 1}),
    (f"strftime({TIME}, '%Y-%m-%d')", f"date_format({TIME}, 'yyyy-MM-dd')", "2020-01-31"),
    ("strptime('2020-01-31', '%Y-%m-%d')", "CAST(to_timestamp('2020-01-31', 'yyyy-MM-dd') AS STRING)", "2020-01-31 00:00:00"),
    (f"epoch({TIME})", f"unix_timestamp({TIME})", 1580428800),
    (f"epoch_ms({TIME})", f"unix_millis({TIME})", 1580428800000),
    ("epoch_ms(5000)", "CAST(timestamp_millis(5000) AS STRING)", "1970-01-01 00:00:05"),
    ("regexp_matches('ab', 'a')", "regexp_like('ab', 'a')", True),
    ("string_split('a,b', ',')", "split('a,b', ',')", ["a", "b"]),
    ("iif(1 = 1, 1, 2)", "if(1 = 1, 1, 2)", 1),
    (f"to_json_string({ARRAY})", f"to_json({ARRAY})", "[2,1]"),
    ("generate_series(1, 3)", "sequence(1, 3)", [1, 2, 3]),
    ("safe_cast('1' AS INT)", "try_cast('1' AS INT)", 1),
    (f"len({ARRAY})", f"size({ARRAY})", 2),
)


def test_each_function_that_is_told_has_a_case() -> None:
    assert {call.partition("(")[0] for call, *_ in FUNCTIONS} == set(_SPARK_FUNCTIONS)


@pytest.mark.parametrize(("call", "ours", "value"), FUNCTIONS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_function_of_others_is_told_one_that_takes_its_arguments(
    env: ts.TableEnvironment, call: str, ours: str, value: object
) -> None:
    with pytest.raises(ts.TablestoreError) as caught:
        env.execute_sql(f"SELECT {call} AS x").to_arrow()
    named = ours.removeprefix("CAST(").partition("(")[0]
    assert re.search(rf"here it is .*\b{named}\b", str(caught.value))
    assert env.execute_sql(f"SELECT {ours} AS x").to_arrow().column(0).to_pylist() == [value]


def test_an_attribute_that_nobody_has_is_pythons_own_error(scene: dict[str, Any]) -> None:
    for name in ("t", "cat"):
        with pytest.raises(AttributeError) as caught:
            _ = scene[name].nobody_has_this
        assert not isinstance(caught.value, ts.TablestoreError)
        assert not hasattr(scene[name], "__nobody__")
    assert not hasattr(scene["t"], "count_rows")


def test_a_table_without_rows_is_a_table(scene: dict[str, Any]) -> None:
    scene["t"].delete("true")
    assert len(scene["t"]) == 0
    assert scene["t"]


def test_the_table_has_as_many_cases_as_it_is_to_have() -> None:
    assert len(CASES["python_use"]) + len(CASES["sql_use"]) + len(_typed("use")) >= 100
    assert len(CASES["python_mistake"]) + len(CASES["sql_mistake"]) + len(_typed("mistake")) >= 60


def _typed(kind: str) -> list[dict[str, str]]:
    table = tomllib.loads(Path(__file__).with_name("commandline.toml").read_text())
    return [case for case in table[kind] if "of" in case]
