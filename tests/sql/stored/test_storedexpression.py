"""What a stored expression may say: one scalar value of one row."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp, parse_one

import tablestore as ts
from tablestore.sql.query.dialect import Spark4
from tablestore.sql.query.functions import SPARK_FUNCTIONS, is_spark_function
from tablestore.sql.stored.sparkreach import REACHING_FUNCTIONS
from tablestore.sql.stored.storedexpression import FUNCTIONS, check_expression, check_expressions
from tests.support.sql.hostile import NO_EXPRESSIONS

COLUMNS = ("id", "v", "xs", "row", "ts", "d")
EXPRESSIONS = [
    *("id + 1", "-id", "~id & 3", "(id)", "id DIV 2 % 3", "id::STRING", "id <=> v", "id IS DISTINCT FROM v", "NOT id > 1"),
    *(
        "upper(v)",
        "v || 'a''b' || \"c\"",
        "`v`",
        "row.a.b",
        "xs[0]",
        "xs[id].a",
        "r'a\\d'",
        "X'FF'",
        "1L",
        "NULL",
        "DATE '2020-01-01'",
    ),
    *("CAST(id AS DECIMAL(10, 2))", "TRY_CAST(v AS INT)", "CASE WHEN id > 1 THEN 'a' ELSE v END", "CASE id WHEN 1 THEN 2 END"),
    *(
        "id BETWEEN 1 AND 2",
        "v IN ('a', 'b')",
        "v NOT LIKE 'a!%' ESCAPE '!'",
        "v RLIKE 'a+'",
        "coalesce(v, 'x')",
        "if(id > 1, 1, 2)",
    ),
    *("ts - INTERVAL '5' SECOND", "ts + INTERVAL 2 HOURS", "extract(YEAR FROM d)", "date_trunc('DAY', ts)", "current_timestamp()"),
    *("trim(BOTH 'x' FROM v)", "substring(v FROM 1 FOR 2)", "position('a' IN v)", "replace(v, 'a', '')", "repeat('-', 20)"),
    *(
        "transform(xs, x -> x + id)",
        "filter(xs, (x, i) -> i > 0)",
        "exists(xs, x -> x = id)",
        "named_struct('a', id).a",
        "struct(id AS a)",
    ),
    *(
        "lpad(v, 10, '0')",
        "split(v, ',')[0]",
        "map('a', 1)['a']",
        "id -- and so on",
        "/* of the key */ id",
        "id\n+\n1",
        "array(1, 2)[0]",
        "v LIKE ANY ('a%', 'b%')",
        "v NOT LIKE ALL ('a%', 'b%')",
        "v ILIKE SOME ('a%', 'b%')",
        "levenshtein(v, 'abc')",
        "levenshtein(left(v, 100), left(d, 100))",
        "replace(v, 'a', left(d, 10))",
        "replace(replace(replace(replace(replace(v, '&', '&amp;'), '<', '&lt;'), '>', '&gt;'), '\"', '&quot;'), '\\'', '&#39;')",
        "regexp_replace(v, '(a)(b)', '$2$1')",
        "array_join(transform(xs, x -> upper(x)), ', ')",
        "round(id / 3, -2)",
        "format_number(id, 2)",
    ),
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_over_columns_is_let_through_on_one_line(text: str) -> None:
    line = check_expression(text, COLUMNS)
    (wanted,) = parse_one(f"SELECT {text}\n", read=Spark4).expressions
    (kept,) = parse_one(f"SELECT {line} AS x, 1", read=Spark4).expressions[:1]
    assert "\n" not in line.replace("'", "") and kept.unalias().sql(Spark4, comments=False) == wanted.sql(Spark4, comments=False)


@pytest.mark.parametrize("text", NO_EXPRESSIONS)
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ts.InvalidInputError) as error:
        check_expression(text, COLUMNS)
    assert error.value.kind == "stored-expression"


def test_functions_are_those_of_spark_that_do_not_act() -> None:
    assert all(map(is_spark_function, FUNCTIONS)) and not FUNCTIONS & REACHING_FUNCTIONS and REACHING_FUNCTIONS <= SPARK_FUNCTIONS


def test_expressions_that_multiply_each_other_are_refused() -> None:
    texts = [("c0", "v"), *((f"c{i}", f"c{i - 1} || c{i - 1}") for i in range(1, 40))]
    found = check_expressions(("v",), tuple(texts))
    assert found["c9"].refusal is None and "multiplies" in (found["c39"].refusal or "")


def test_a_text_put_between_all_characters_multiplies() -> None:
    text = "v"
    for _ in range(30):
        text = f"regexp_replace({text}, '', 'x')"
    with pytest.raises(ts.InvalidInputError, match="multiplies"):
        check_expression(text, COLUMNS)
    shorter = "v"
    for column in (*COLUMNS, *COLUMNS):
        shorter = f"regexp_replace(replace({shorter}, {column}, ''), 'a+', '')"
    assert check_expression(shorter, COLUMNS) == shorter


def test_any_is_no_function_but_behind_like() -> None:
    for text in ("any(v)", "id = any(xs)", "all(v)"):
        with pytest.raises(ts.InvalidInputError):
            check_expression(text, COLUMNS)


def test_a_circle_of_expressions_is_refused() -> None:
    found = check_expressions(("v",), (("a", "b + 1"), ("b", "a + 1"), ("c", "c"), ("d", "v")))
    assert [one.refusal is None for one in found.values()] == [False, False, False, True]


FRAGMENTS = st.sampled_from(
    [*NO_EXPRESSIONS, *EXPRESSIONS, "(", ")", ",", ";", "'", "--", "/*", "*/", "AS x", "SELECT", "FROM s", "`", "->"]
)


@settings(max_examples=300)
@given(st.lists(FRAGMENTS, min_size=1, max_size=4).map(" ".join))
def test_what_is_let_through_is_one_item_whatever_is_put_together(text: str) -> None:
    checked = check_expressions(COLUMNS, (("x", text),))["x"]
    if checked.refusal is None:
        tree = parse_one(f"SELECT {checked.text} AS x, 1 AS y FROM t", read=Spark4)
        assert isinstance(tree, exp.Select) and [one.alias for one in tree.expressions] == ["x", "y"]
        assert len(list(tree.find_all(exp.Table, exp.Select))) == 2, checked.text
