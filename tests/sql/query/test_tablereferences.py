"""Which names in a text are tables, and what the text becomes."""

from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from uuid import UUID

import numpy as np
import pytest

from tablestore.errors import InvalidInputError
from tablestore.sql.parse.tokens import tokenize
from tablestore.sql.query.parameters import checked_parameters, literal_value
from tablestore.sql.query.plan import Replacement, plan_query
from tablestore.sql.query.tablereferences import find_references
from tablestore.sql.source import Edit, apply_edits
from tests.support.sql.corpus import statements


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("SELECT * FROM a {} WHERE x", "SELECT * FROM <0> AS `a` WHERE x"),
        ("SELECT * FROM a {} AS b JOIN c {} d", "SELECT * FROM <0> AS b JOIN <1> d"),
        ("SELECT a.x, s.a.y FROM s.a{}", "SELECT a.x, a.y FROM <0> AS `a`"),
        ("SELECT * FROM a {} TABLESAMPLE (10 ROWS)", "SELECT * FROM <0> TABLESAMPLE (10 ROWS) AS `a`"),
        ("SELECT /*+ BROADCAST(a) */ * FROM a {}", "SELECT /*+ BROADCAST(a) */ * FROM <0> AS `a`"),
        ("SELECT * FROM a /*+ X(a) */, b {}", "SELECT * FROM <0> AS `a` /*+ X(a) */, <1> AS `b`"),
    ],
)
def test_options_of_a_reference_are_cut_and_other_hints_stay(text: str, edited: str) -> None:
    given = text.format(*["/*+ OPTIONS('k' = 'v', \"l\" = 'w') */ /*+ options('m' = 'it''s') */"] * 2)
    references = find_references(given)
    assert [(one.key, one.value) for one in references[-1].options] == [("k", "v"), ("l", "w"), ("m", "it's")]
    plan = plan_query(given, references, [Replacement(path=one.path.parts) for one in references])
    assert apply_edits(given, plan.edits, lambda place: f"<{place}>") == edited


@pytest.mark.deep
def test_options_anywhere_in_a_query_are_of_one_reference_or_refused() -> None:
    """Wherever the hint stands: it is never left in the text, and never dropped."""
    hint, tried, taken, refused = " /*+ OPTIONS('k' = 'v') */ ", 0, 0, 0
    for statement in statements():
        for place in sorted({token.end for token in tokenize(statement.text)} | {0}):
            text = statement.text[:place] + hint + statement.text[place:]
            tried += 1
            try:
                references = find_references(text)
            except InvalidInputError as error:
                refused += "OPTIONS" in error.message and "^^^" in error.message
                continue
            cuts = [reference.cut for reference in references if reference.options]
            taken += [cut is not None and hint.strip() in text[cut.start : cut.end] for cut in cuts] == [True]
    assert taken + refused == tried and taken >= len(statements()) / 2


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("SELECT * FROM a, b.c x JOIN `d e` ON a.x = b.y", ["a", "b.c", "d e"]),
        ("SELECT * FROM (SELECT 1 FROM a) z, LATERAL (SELECT * FROM b) WHERE x IN (SELECT y FROM c)", ["a", "b", "c"]),
        ("SELECT (SELECT max(x) FROM a), EXISTS (SELECT 1 FROM b) FROM c", ["a", "b", "c"]),
        ("TABLE a UNION SELECT * FROM (b JOIN c) FULL JOIN ((SELECT * FROM d) UNION (SELECT * FROM e)) f", list("abcde")),
        ("SELECT * FROM ((a CROSS JOIN b) JOIN (c)), d", list("abcd")),
        ("FROM a |> WHERE x > 1 |> JOIN b ON a.i = b.i |> UNION ALL TABLE c |> AS w |> SELECT x, y", list("abc")),
        ("FROM a SELECT x, y WHERE z", ["a"]),
        ("SELECT * FROM f(TABLE a), g(TABLE(SELECT * FROM b)), h(t => TABLE(c)), range(10), VALUES (1), (2) AS v(x)", list("abc")),
        ("SELECT * FROM IDENTIFIER('x.`y z`')", ["x.y z"]),
        ("SELECT * FROM values, date JOIN order USING (k)", ["values", "date", "order"]),
        ("SELECT * FROM parquet.`/data/x`", ["parquet./data/x"]),
        ("SELECT * FROM a LATERAL VIEW explode(m) v AS b, c WHERE d", ["a"]),
        ("SELECT * FROM a LEFT JOIN LATERAL explode(a.x) AS t(y), b ORDER BY c, d", ["a", "b"]),
        ("SELECT from.x, extract(YEAR FROM d), trim(BOTH 'x' FROM e) FROM a WHERE f IS NOT DISTINCT FROM g", ["a"]),
        ("SELECT 'FROM x', \"FROM y\", r'FROM z', `FROM w` /* FROM v /* FROM u */ */ FROM a -- FROM s", ["a"]),
        ("SELECT /*+ BROADCAST(b) */ * EXCEPT (c) FROM a PIVOT (sum(x) FOR y IN (1, 2)), b", ["a", "b"]),
        ("SELECT * FROM a TABLESAMPLE (10 PERCENT) REPEATABLE (3) s, b NATURAL JOIN c ANTI JOIN d USING (k)", list("abcd")),
        ("SELECT table, t.table, count(*) FILTER (WHERE join > 1) FROM a", ["a"]),
        ("VALUES (1, 2)", []),
        ("SELECT * FROM VALUES (1, 'a'), (NULL, 'b') AS v(x, y), a", ["a"]),
        ("SELECT * FROM VALUES (true), (false), ((SELECT max(x) FROM a)) JOIN b", ["a", "b"]),
        ("SELECT * FROM VALUES 1, NULL, -x, (SELECT 1 FROM a) v, b", ["a", "b"]),
        ("SELECT 1 FROM t$files", ["t$files"]),
    ],
)
def test_tables_are_what_the_words_around_say(text: str, tables: list[str]) -> None:
    assert [str(found.path) for found in find_references(text)] == tables


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("WITH a AS (SELECT * FROM a) SELECT * FROM a", ["a"]),
        ("WITH a AS (SELECT 1), b (x, y) AS (SELECT * FROM A, c) SELECT * FROM b, db.a", ["c", "db.a"]),
        ("SELECT * FROM (WITH a AS (SELECT * FROM b) SELECT * FROM a) z JOIN a", ["b", "a"]),
        ("WITH x AS (WITH y AS (SELECT * FROM t) SELECT * FROM y) SELECT * FROM x, y", ["t", "y"]),
        ("WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n FROM r JOIN s) SELECT * FROM r", ["s"]),
        ("WITH RECURSIVE r MAX RECURSION LEVEL 9 AS (SELECT 1 UNION ALL SELECT * FROM r) TABLE r", []),
        ("WITH r AS (SELECT * FROM r) (SELECT * FROM r) UNION (SELECT * FROM r)", ["r"]),
        ("WITH recursive AS (SELECT * FROM a) SELECT * FROM recursive", ["a"]),
        ("SELECT (WITH a AS (SELECT 1) SELECT max(x) FROM a) FROM a", ["a"]),
    ],
)
def test_names_that_a_with_binds_are_no_tables(text: str, tables: list[str]) -> None:
    assert [str(found.path) for found in find_references(text)] == tables


def edited(text: str, parameters: object = (), paths: dict[str, str] | None = None) -> str:
    """The text with each reference replaced by ``{m0}``, ``{m1}`` …"""
    references = find_references(text)
    made = [Replacement(path=tuple((paths or {}).get(str(found.path), str(found.path)).split("."))) for found in references]
    plan = plan_query(text, references, made, parameters)  # type: ignore[arg-type]
    return apply(text, plan.edits)


def apply(text: str, edits: tuple[Edit, ...]) -> str:
    assert all(left.span.end <= right.span.start for left, right in pairwise(edits)), "edits do not overlap and are in order"
    return apply_edits(text, edits, lambda relation: f"{{m{relation}}}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM db.t WHERE x", "SELECT * FROM {m0} AS `t` WHERE x"),
        ("SELECT * FROM db.t AS u, t v", "SELECT * FROM {m0} AS u, {m1} v"),
        ("SELECT * FROM t VERSION AS OF 3", "SELECT * FROM {m0} AS `t`"),
        ("SELECT * FROM t FOR SYSTEM_TIME AS OF date '2024-01-01' - INTERVAL 1 DAY u", "SELECT * FROM {m0} u"),
        (
            "SELECT * FROM t FOR VERSION AS OF 'tag' TABLESAMPLE (1 ROWS) WHERE x",
            "SELECT * FROM {m0} TABLESAMPLE (1 ROWS) AS `t` WHERE x",
        ),
        ("FROM t TIMESTAMP AS OF current_timestamp() JOIN u", "FROM {m0} AS `t` JOIN {m1} AS `u`"),
        ("SELECT * FROM t timestamp", "SELECT * FROM {m0} timestamp"),
        ("TABLE db.t UNION TABLE (u)", "TABLE {m0} UNION TABLE ({m1})"),
        ("SELECT * FROM `a``b`", "SELECT * FROM {m0} AS `a``b`"),
        ("SELECT * FROM table_changes('db.t', 1, f(2, 3)) c", "SELECT * FROM {m0} c"),
        ("SELECT shop.t.a, shop.t.* FROM shop.t WHERE shop.T.b.c > 1", "SELECT t.a, t.* FROM {m0} AS `t` WHERE T.b.c > 1"),
        ("SELECT * FROM shop.t WHERE EXISTS (SELECT shop.t.a)", "SELECT * FROM {m0} AS `t` WHERE EXISTS (SELECT t.a)"),
        ("SELECT (SELECT 1 FROM shop.t), shop.t.a", "SELECT (SELECT 1 FROM {m0} AS `t`), shop.t.a"),
        ("SELECT c.d.t.a, shop.f(1) FROM c.d.t, shop.f(1)", "SELECT t.a, shop.f(1) FROM {m0} AS `t`, shop.f(1)"),
        ("SELECT shop.t.a FROM shop.t u", "SELECT shop.t.a FROM {m0} u"),
    ],
)
def test_only_names_and_time_travel_are_edited(text: str, expected: str) -> None:
    assert edited(text) == expected


def test_a_column_may_name_the_whole_path_of_a_table_in_the_current_database() -> None:
    assert edited("SELECT shop.t.a, c.shop.t.b, x.t.c FROM t", paths={"t": "c.shop.t"}) == "SELECT t.a, t.b, x.t.c FROM {m0} AS `t`"


def test_what_the_engine_knows_itself_is_left_as_it_is() -> None:
    text = "SELECT x.a FROM x VERSION AS OF 1, shop.t"
    plan = plan_query(text, find_references(text), [None, Replacement(path=("shop", "t"))])
    assert apply(text, plan.edits) == "SELECT x.a FROM x VERSION AS OF 1, {m0} AS `t`"


def test_time_travel_says_what_it_goes_to() -> None:
    text = """SELECT * FROM a VERSION AS OF 3, b TIMESTAMP AS OF ?, c FOR SYSTEM_VERSION AS OF 'x''y',
        d TIMESTAMP AS OF now() - INTERVAL 2 HOURS, e"""
    travels = [reference.time_travel for reference in find_references(text)]
    assert [travel and (travel.kind, travel.expression.text) for travel in travels] == [
        ("version", "3"),
        ("timestamp", "?"),
        ("version", "'x''y'"),
        ("timestamp", "now() - INTERVAL 2 HOURS"),
        None,
    ]
    assert [travel and literal_value(text, travel.expression, ["2024-01-01"]) for travel in travels] == [
        3,
        "2024-01-01",
        "x'y",
        None,
        None,
    ]


@pytest.mark.parametrize("moment", ["'2024-01-01'||' 00:00:00'", "'2024-01-01' ||\"x\"", "a||1", "'2024-01-01'::`date`"])
def test_time_travel_ends_behind_what_stands_close_to_a_sign(moment: str) -> None:
    (found,) = find_references(f"SELECT * FROM t TIMESTAMP AS OF {moment} WHERE x = 1")
    assert found.time_travel is not None
    assert (found.time_travel.expression.text, found.alias) == (moment, None)


def test_a_call_of_ours_names_its_table_and_its_arguments() -> None:
    (found,) = find_references("SELECT * FROM table_changes('shop.`a b`', 1, f(2, 3))")
    assert found.path.parts == ("shop", "a b")
    assert [argument.text for argument in found.call or ()] == ["'shop.`a b`'", "1", "f(2, 3)"]


def test_parameters_by_place_get_names_and_keep_their_values_when_a_clause_is_cut() -> None:
    text = "SELECT ? FROM t VERSION AS OF ? WHERE x = ? AND y = '?' -- ?"
    assert edited(text, [1, 2, 3]) == "SELECT :_1 FROM {m0} AS `t` WHERE x = :_3 AND y = '?' -- ?"


def test_parameters_of_a_call_are_gone_with_it() -> None:
    assert edited("SELECT ? FROM table_changes('t', ?, ?) WHERE x = ?", [1, 2, 3, 4]) == "SELECT :_1 FROM {m0} AS `t` WHERE x = :_4"


def test_parameters_by_name_are_found() -> None:
    text = "SELECT CAST(a AS STRUCT<b:INT>), ':c' FROM t WHERE x = :d LIMIT :e"
    references = find_references(text)
    assert plan_query(text, references, [None], {"d": 1, "e": 2}).edits == ()
    with pytest.raises(InvalidInputError, match=r"(?s)parameter :e has no value: none is given.*did you mean 'ee'.*\^\^"):
        plan_query(text, references, [None], {"d": 1, "ee": 2})


ENDLESS: list[object] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    "value",
    [object(), {1}, 1j, float, print, np.add, np.void(b"x"), np.array([object()]), "\ud800", [1, {2}], {"a": object()}, ENDLESS],
    ids=lambda value: type(value).__name__,
)
def test_values_that_no_column_has_are_refused_with_the_place_used_or_not(value: object) -> None:
    for text, given in (("SELECT :p", {"unused": 1, "p": value}), ("SELECT ?", [value])):
        with pytest.raises(InvalidInputError, match="line 1, column 8") as caught:
            checked_parameters(text, given)
        assert "lists and dicts of them" in str(caught.value)
    with pytest.raises(InvalidInputError, match=r"the parameter :unused has .*; the statement does not name it, so leave it out$"):
        checked_parameters("SELECT :p", {"p": 1, "unused": value})


def test_values_are_given_as_both_engines_take_them() -> None:
    plain = (None, True, 1.5, Decimal(1), "x", b"x", date(2024, 1, 1), [1, None], {"a": [1, 2]})
    assert checked_parameters("", plain) == list(plain)
    for given, taken in [
        (np.int64(3), 3),
        (np.float32(1.5), 1.5),
        (np.bool_(True), True),
        (np.array([1, 2]), [1, 2]),
        (np.datetime64("2024-01-01"), date(2024, 1, 1)),
        (np.datetime64("2024-01-01T00:00:00.5", "ns"), datetime(2024, 1, 1, 0, 0, 0, 500_000)),
        (memoryview(b"x"), b"x"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({"a": (np.int8(1), None)}, {"a": [1, None]}),
    ]:
        assert checked_parameters("SELECT :p", {"p": given}) == {"p": taken}
        assert type(checked_parameters("SELECT ?", [given])[0]) is type(taken)  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "parameters", "message"),
    [
        ("SELECT ?", [1, 2], "has 1 parameters"),
        ("SELECT ?, ?", [1], "has 2 parameters"),
        ("SELECT ?", {"a": 1}, "marked by its place"),
        ("SELECT ?", [], "none is given"),
        ("SELECT :a", [1], "marked by its name"),
    ],
)
def test_parameters_that_do_not_match_are_refused(text: str, parameters: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        plan_query(text, (), (), parameters)  # type: ignore[arg-type]


def test_a_text_that_does_not_end_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidInputError, match="line 1, column 8"):
        find_references("SELECT 'abc FROM t")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT on, in, using FROM t WHERE on ORDER BY on",
        "SELECT * EXCEPT (a) FROM t EXCEPT SELECT 1",
        "SELECT t.by FROM t GROUP BY t.by HAVING t.in",
        "SELECT * FROM t JOIN u USING (a) JOIN v ON t.a = v.a WHERE t.a NOT IN (1) AND (t.b) IN (SELECT 2)",
        "SELECT sum(a) OVER (PARTITION BY order ORDER BY where) FROM t",
    ],
)
def test_words_that_lead_to_something_may_be_names(text: str) -> None:
    assert find_references(text)
