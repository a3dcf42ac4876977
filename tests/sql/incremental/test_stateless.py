"""A query over a stream carries a column of it through, or says why its rows need more than one row of the stream."""

import pytest

from tablestore.sql.incremental.shapes import NoRuleError
from tablestore.sql.incremental.stateless import CarryingQuery, StreamShape, carry
from tablestore.sql.query.parsedquery import ParsedQuery

STREAM, TABLE = "__relation_0", "__relation_1"


def carried(text: str) -> CarryingQuery:
    return carry(ParsedQuery(text.format(s=STREAM, t=TABLE)), {0: StreamShape.of("db.s", ["id", "v"])}, "n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT id FROM {s}", "SELECT `n`, id FROM {s}"),
        ("SELECT ALL *, v AS w FROM {s} AS x WHERE v > 1", "SELECT ALL `n`, * EXCEPT (`n`), v AS w FROM {s} AS x WHERE v > 1"),
        ("SELECT x.* EXCEPT (v) FROM {s} AS x", "SELECT `n`, x.* EXCEPT (`n`, v) FROM {s} AS x"),
        ("SELECT a FROM (SELECT id FROM {s}) AS q (a)", "SELECT `n`, a FROM (SELECT `n`, id FROM {s}) AS q (`n`, a)"),
        (
            "WITH q (a) AS (SELECT id FROM {s}) SELECT a FROM q UNION ALL SELECT id FROM {s}",
            "WITH q (`n`, a) AS (SELECT `n`, id FROM {s}) SELECT `n`, a FROM q UNION ALL SELECT `n`, id FROM {s}",
        ),
        (
            "SELECT s.*, t.* FROM {t} AS t CROSS JOIN {s} AS s LEFT JOIN {t} AS u ON s.id = u.id",
            "SELECT `n`, s.* EXCEPT (`n`), t.* FROM {t} AS t CROSS JOIN {s} AS s LEFT JOIN {t} AS u ON s.id = u.id",
        ),
        ("SELECT id, (SELECT max(a) FROM {t}) AS m FROM {s}", "SELECT `n`, id, (SELECT max(a) FROM {t}) AS m FROM {s}"),
    ],
)
def test_the_column_is_the_first_one_and_in_no_star(text: str, expected: str) -> None:
    query = carried(text)
    assert query.text == expected.format(s=STREAM, t=TABLE)
    assert [query.text[edit.span.start : edit.span.end] for edit in query.edits] == [
        f"__relation_{edit.relation}" for edit in query.edits
    ]


@pytest.mark.parametrize(
    ("text", "columns", "filters"),
    [
        ("SELECT v AS id, id AS key, v || 'x' AS w FROM {s}", {"id": "v", "key": "id", "w": None}, False),
        ("SELECT * FROM (SELECT *, 1 AS one FROM {s}) AS q (a, b, c) WHERE a > 1", {"a": "id", "b": "v", "c": None}, True),
        ("SELECT s.id, v FROM {s} AS s JOIN {t} AS t ON s.id = t.id", {"id": "id", "v": None}, True),
        ("SELECT id, v FROM {s} UNION ALL SELECT id, id FROM {s}", {"id": "id", "v": None}, False),
    ],
)
def test_columns_that_are_those_of_the_stream_are_known(text: str, columns: dict[str, str | None], filters: bool) -> None:
    shape = carried(text).shape
    assert shape.columns is not None
    assert {name: None if origin is None else origin[1] for name, origin in shape.columns} == columns
    assert shape.filters is filters


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT id FROM {s} LEFT ANTI JOIN (SELECT id FROM {s}) AS x ON true", "two streams"),
        ("SELECT id FROM {t} WHERE EXISTS (SELECT 1 FROM {s})", "a subquery of it"),
        ("SELECT q.id FROM ({s} AS q JOIN {t} AS t ON q.id = t.id)", "in parentheses"),
        ("SELECT id FROM {s} EXCEPT SELECT id FROM {s}", "EXCEPT that compares"),
        ("(SELECT id FROM {s}) LIMIT 3", "LIMIT"),
        ("SELECT id FROM {t} RIGHT JOIN {s} ON true", "RIGHT JOIN"),
        ("SELECT id FROM {s} TABLESAMPLE (3 ROWS)", "TABLESAMPLE"),
        ("SELECT id FROM {s} QUALIFY row_number() OVER (ORDER BY id) = 1", "QUALIFY"),
        ("FROM {s} |> WHERE id > 1", "pipes"),
        ("SELECT 1 AS a", "reads no stream"),
    ],
)
def test_what_has_state_is_refused(text: str, reason: str) -> None:
    with pytest.raises(NoRuleError) as refused:
        carried(text)
    assert reason in refused.value.reason
