"""Which queries have rules, and why the others have none."""

import pyarrow as pa
import pytest

from tablestore.sql.incremental.planner import plan_incremental
from tablestore.sql.incremental.shapes import FullRefresh, SourceShape, TargetShape
from tablestore.sql.query.tablereferences import find_references
from tablestore.types.datatypes import AtomicType, Field, MapType, TypeRoot, with_nullable

BIGINT = AtomicType(root=TypeRoot.BIGINT)


def columns(*names: str) -> tuple[Field, ...]:
    return tuple(Field(id=place, name=name, type=BIGINT) for place, name in enumerate(names))


SOURCES = [
    SourceShape(
        name="lake.shop.orders",
        fields=(Field(id=9, name="id", type=with_nullable(BIGINT, False)), *columns("customer", "Price")),
        primary_key=("id",),
    ),
    SourceShape(name="lake.shop.people", fields=columns("id", "age")),
]


def steps_of(query: str, target: tuple[str, ...] = ("id",), changed: frozenset[int] = frozenset({0, 1})) -> list[str] | str:
    """The queries of a plan, or why there is none."""
    numbers = [1 if "people" in reference.path.parts else 0 for reference in find_references(query)]
    plan = plan_incremental(query, source_of=numbers, sources=SOURCES, target=TargetShape(fields=columns(*target)))
    if isinstance(plan, FullRefresh):
        return plan.reason
    made: list[str] = []

    def run(name: str, sql: str) -> pa.Table:
        made.append(sql)
        return pa.table({"id": [1]})

    plan.change(changed, run)
    return made


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT now() AS id FROM orders", "it calls now()"),
        ("SELECT id FROM orders WHERE rand() < 0.5", "it calls rand()"),
        ("SELECT uuid() AS id FROM orders", "it calls uuid()"),
        ("SELECT id FROM orders WHERE current_date > DATE '2026-01-01'", "it calls current_date()"),
        ("SELECT shop.net(id) AS id FROM orders", "it calls net()"),
        ("SELECT first(id) AS id FROM orders GROUP BY customer", "it calls first()"),
        ("SELECT id FROM orders ORDER BY id LIMIT 3", "it has a LIMIT"),
        ("SELECT avg(id) AS id FROM orders", "it aggregates all rows in one group, and not all of its columns follow"),
        ("SELECT count(*) AS id FROM orders HAVING count(*) > 1", "it aggregates all rows in one group, and not all"),
        ("SELECT id FROM orders JOIN (SELECT max(age) AS age FROM people) p ON id = age", "a part of it aggregates all rows"),
        ("SELECT DISTINCT count(*) AS id FROM orders", "a part of it aggregates all rows in one group"),
        ("SELECT count(*) AS id FROM orders UNION ALL SELECT id FROM people", "a part of it aggregates all rows in one group"),
        ("SELECT row_number() OVER (ORDER BY id) AS id FROM orders", "it has a window over all rows"),
        ("SELECT orders.id FROM orders LEFT JOIN people ON orders.id < people.id", "it has an outer JOIN without an equality"),
        ("SELECT orders.id FROM orders FULL JOIN people ON orders.id < people.id", "it has an outer JOIN without an equality"),
        (
            "SELECT o.id FROM orders o JOIN people p ON o.id = p.id RIGHT JOIN people q ON o.id < q.id",
            "it has an outer JOIN without an equality",
        ),
        ("SELECT id FROM orders o FULL JOIN people p USING (id) JOIN people q USING (id)", "it has a JOIN with USING"),
        ("SELECT age FROM orders o RIGHT JOIN people p USING (id) NATURAL JOIN people q", "it has a JOIN with USING, or a NATURAL"),
        ("SELECT o.id FROM orders o FULL JOIN (people p JOIN people q ON p.id = q.id) ON o.id = p.id", "it has joins in parenth"),
        ("SELECT id FROM orders WHERE id NOT IN (SELECT id FROM people)", "it has a subquery in an expression"),
        ("SELECT id FROM orders WHERE price = (SELECT max(age) FROM people)", "it has a subquery in an expression"),
        ("SELECT count(*) AS id FROM orders GROUP BY ROLLUP (customer)", "it has GROUP BY ALL, ROLLUP"),
        ("SELECT id FROM orders INTERSECT SELECT id FROM people", "it has INTERSECT"),
        ("SELECT id FROM orders VERSION AS OF 3", "it reads lake.shop.orders as of a snapshot"),
        ("SELECT id FROM orders TABLESAMPLE (10 PERCENT)", "it has a TABLESAMPLE"),
        ("SELECT 1 AS id", "a SELECT of it reads no table"),
        ("SELECT id, customer FROM orders", "it has 2 columns"),
        ("FROM orders |> SELECT id", "it has pipes"),
        ("SELECT DISTINCT explode(array(id, customer)) AS id FROM orders", "it makes rows of a value beside"),
    ],
)
def test_a_query_without_a_rule_says_why(query: str, reason: str) -> None:
    found = steps_of(query)
    assert isinstance(found, str) and found.startswith(reason), found


@pytest.mark.parametrize(
    "value",
    [
        *("year(day)", "month(day)", "day(day)", "dayofweek(day)", "dayofyear(day)", "weekofyear(day)", "quarter(day)"),
        *("extract(YEAR FROM day)", "datediff(day, DATE '2026-01-01')", "add_months(day, 1)", "to_date(day)"),
        *("split(customer, ',')", "regexp_replace(customer, 'a', 'b')", "regexp_extract(customer, '(a)', 1)", "customer RLIKE 'a'"),
    ],
)
def test_parts_of_dates_and_patterns_of_texts_are_the_same_each_time(value: str) -> None:
    assert not isinstance(steps_of(f"SELECT {value} AS id FROM (SELECT customer, DATE '2026-01-31' AS day FROM orders) AS o"), str)


@pytest.mark.parametrize("call", ["date_format(customer, 'yyyy')", "trunc(customer, 'YEAR')", "to_date(customer, 'yyyy')"])
def test_a_function_that_has_no_rule_is_named_as_it_is_written(call: str) -> None:
    name = call.partition("(")[0]
    assert str(steps_of(f"SELECT {call} AS id FROM orders")).startswith(f"it calls {name}(), which is not known")


def first_of(source: str, over: str) -> str:
    return f"SELECT id FROM (SELECT id, row_number() OVER ({over}) AS n FROM {source}) AS q WHERE n = 1"


@pytest.mark.parametrize(
    "query",
    [
        first_of("orders", "PARTITION BY customer ORDER BY price"),
        first_of("orders", "PARTITION BY customer"),
        first_of("people", "PARTITION BY age ORDER BY id"),
        first_of(
            "(SELECT id, customer FROM orders UNION ALL SELECT id, age FROM people) AS u", "PARTITION BY customer ORDER BY id"
        ),
        "SELECT s AS id FROM (SELECT sum(id) OVER (PARTITION BY customer ORDER BY price ROWS 1 PRECEDING) AS s FROM orders) q",
    ],
)
def test_a_window_that_may_choose_among_equal_rows_has_no_rule(query: str) -> None:
    found = steps_of(query)
    assert isinstance(found, str) and found.startswith("a window of it orders rows by columns in which several may be equal"), found


@pytest.mark.parametrize(
    "query",
    [
        first_of("orders", "PARTITION BY customer ORDER BY price, ID"),
        first_of("(SELECT o.id, customer FROM orders o WHERE price > 1) AS u", "PARTITION BY customer ORDER BY id DESC"),
        first_of("(SELECT age AS id, count(*) AS n FROM people GROUP BY age) AS u", "PARTITION BY n ORDER BY id"),
        first_of("orders", "PARTITION BY customer ORDER BY price").replace("row_number", "rank"),
    ],
)
def test_a_window_whose_order_says_all_has_a_rule(query: str) -> None:
    assert not isinstance(steps_of(query), str)


def test_rows_that_are_replaced_by_the_key_of_a_window_may_be_any_of_equal_ones() -> None:
    query = "SELECT customer, row_number() OVER (PARTITION BY customer ORDER BY price) AS n FROM orders"
    assert not isinstance(steps_of(query, ("customer", "n")), str)


def test_a_map_has_no_rule() -> None:
    fields = (Field(id=0, name="id", type=MapType(key=BIGINT, value=BIGINT)),)
    plan = plan_incremental("SELECT id FROM orders", source_of=[0], sources=SOURCES, target=TargetShape(fields=fields))
    assert plan == FullRefresh("column id is a map, and SQL does not compare maps")


def test_a_filter_reads_the_changes_alone() -> None:
    (query,) = steps_of("SELECT o.id, o.Price FROM shop.orders AS o WHERE o.customer = 7", ("id", "price"))
    assert "tablestore_relation_0_changes" in query and "_old" not in query and "_new" not in query


def test_only_inputs_that_changed_have_terms() -> None:
    query = "SELECT o.id FROM orders o JOIN people p ON o.customer = p.id"
    (first,) = steps_of(query, changed=frozenset({0}))
    assert "tablestore_relation_0_changes" in first and "tablestore_relation_1_new" in first
    (second,) = steps_of(query, changed=frozenset({1}))
    assert "tablestore_relation_0_old" in second and "tablestore_relation_1_changes" in second


def test_groups_that_hold_their_counts_read_no_rows_of_the_source() -> None:
    query = "SELECT customer, count(*) AS n, count(price) AS c, sum(price) AS s FROM orders GROUP BY customer"
    fields = columns("customer", "n", "c", "s")
    plan = plan_incremental(query, source_of=[0], sources=SOURCES, target=TargetShape(fields=fields))
    assert not isinstance(plan, FullRefresh)
    made: list[str] = []
    names = ["key_0", "old_customer", "old_n", "old_c", "old_s", "new_n", "new_c", "new_s", "left_over"]

    def run(name: str, sql: str) -> pa.Table:
        made.append(sql)
        flags = {flag: [False] for flag in ("tablestore_there", "same", "unknown")}
        return pa.table({**{name: [1] for name in names}, **flags})

    change = plan.change(frozenset({0}), run)
    assert len(made) == 1 and "_new" not in made[0].replace("new_", "") and "relation_0_old" not in made[0]
    assert change is not None and change.to_pylist() == [{"customer": 1, "n": 1, "c": 1, "s": 1, "tablestore_weight": 1}]


def test_a_step_without_rows_ends_the_work() -> None:
    plan = plan_incremental(
        "SELECT DISTINCT customer AS id FROM orders", source_of=[0], sources=SOURCES, target=TargetShape(fields=columns("id"))
    )
    assert not isinstance(plan, FullRefresh)
    assert plan.change(frozenset({0}), lambda name, sql: pa.table({"key_0": pa.array([], pa.int64())})) is None
    assert plan.change(frozenset(), lambda name, sql: pa.table({"key_0": [1]})) is None


def test_few_keys_are_said_as_literals_beside_columns_of_their_kind() -> None:
    def made(query: str, columns_of_changes: dict[str, list[int | None]], changed: int) -> str:
        plan = plan_incremental(query, source_of=[0, 1], sources=SOURCES, target=TargetShape(fields=columns("id")))
        assert not isinstance(plan, FullRefresh)
        queries: list[str] = []

        def run(name: str, sql: str) -> pa.Table:
            queries.append(sql)
            return pa.table({"key_0": [1, 2]})

        plan.change(frozenset({changed}), run, {changed: pa.table(columns_of_changes)})
        return " ; ".join(queries)

    inner = made("SELECT o.id FROM orders o JOIN people p ON o.customer = p.id", {"customer": [7, None, 7, 9]}, 0)
    assert "WHERE `p`.`id` IN (7, 9)" in inner
    left = made("SELECT o.id FROM orders o LEFT JOIN people p ON o.customer = p.id", {"customer": [7]}, 0)
    assert "ON `o`.`customer` = `p`.`id` AND `p`.`id` IN (7)" in left
    right = made("SELECT o.id FROM orders o LEFT JOIN people p ON o.customer = p.id", {"id": [7]}, 1)
    assert "WHERE `o`.`customer` IN (1, 2)" in right
    assert " IN (" not in made("SELECT o.id FROM orders o JOIN people p ON o.customer = p.id", {"customer": list(range(200))}, 0)


@pytest.mark.parametrize(
    ("query", "unique"),
    [
        ("SELECT id, price FROM orders", True),
        ("SELECT customer AS id, price FROM orders", False),
        ("SELECT o.id, p.age AS price FROM orders o JOIN people p ON o.customer = p.id", False),
        ("SELECT o.id, v.price FROM orders o JOIN orders v ON o.customer = v.id", True),
        ("SELECT o.id, v.price FROM orders o, orders v WHERE v.id = o.customer", True),
        ("SELECT o.id, v.price FROM orders o LEFT JOIN orders v ON o.customer = v.id AND o.price > 1", True),
        ("SELECT o.id, v.price FROM orders o LEFT JOIN orders v ON o.customer = v.customer", False),
        ("SELECT v.id, o.price FROM orders o LEFT JOIN orders v ON o.customer = v.id", False),
        ("SELECT v.id, o.price FROM orders o JOIN orders v ON o.customer = v.id", False),
        ("SELECT v.id, o.price FROM orders o JOIN orders v ON o.id = v.id", True),
        ("SELECT o.id, v.price FROM orders o JOIN orders v ON o.customer = v.id + 0", False),
        (
            "SELECT o.id, n AS price FROM orders o JOIN (SELECT age, count(*) AS n FROM people GROUP BY age) q ON o.price = q.age",
            True,
        ),
        (
            "SELECT o.id, p.age AS price FROM orders o LEFT SEMI JOIN people v ON o.id = v.id JOIN orders p2 ON o.customer = p2.id "
            "LEFT JOIN (SELECT DISTINCT id, age FROM people) p ON p2.customer = p.id AND p2.price = p.age",
            True,
        ),
        ("SELECT customer AS id, max(price) AS price FROM orders GROUP BY customer", True),
        ("SELECT customer % 2 AS id, max(price) AS price FROM orders GROUP BY customer", False),
        ("SELECT a.id, max(a.price) AS price FROM orders a JOIN orders b ON a.customer = b.id GROUP BY a.id, b.price", True),
        ("SELECT a.id, max(a.price) AS price FROM orders a JOIN orders b ON a.price = b.price GROUP BY a.id, b.id", False),
        ("SELECT id, price FROM orders UNION ALL SELECT id, age FROM people", False),
        ("SELECT id, o.price FROM orders o FULL JOIN orders v USING (id)", True),
        ("SELECT coalesce(v.id, o.id) AS id, o.price FROM orders o FULL JOIN orders v ON v.id = o.id WHERE v.price > 1", True),
        ("SELECT id, o.price FROM orders o FULL JOIN people p USING (id)", False),
        ("SELECT id, q.n AS price FROM orders o FULL JOIN (SELECT id, count(*) AS n FROM people GROUP BY id) q USING (id)", False),
        ("SELECT coalesce(o.id, v.id) AS id, v.price FROM orders o FULL JOIN orders v ON o.id = v.id AND o.price > v.price", False),
        ("SELECT coalesce(o.id, v.id) AS id, v.price FROM orders o FULL JOIN orders v ON o.id = v.customer", False),
        ("SELECT o.id, v.price FROM orders o FULL JOIN orders v ON o.id = v.id", False),
        (
            "SELECT coalesce(o.id, v.id) AS id, o.price FROM orders u LEFT JOIN orders o ON u.customer = o.id "
            "FULL JOIN orders v ON v.id = o.id",
            False,
        ),
        ("SELECT o.id, v.price FROM people p JOIN orders v ON p.id = v.id RIGHT JOIN orders o ON o.customer = v.id", False),
        ("SELECT o.id, v.price FROM orders u JOIN orders v ON u.id = v.id RIGHT JOIN orders o ON o.customer = v.id", True),
        ("SELECT 7 AS id, count(*) AS price FROM orders", True),
    ],
)
def test_whether_rows_have_keys_of_their_own_follows_from_keys_and_equalities(query: str, unique: bool) -> None:
    numbers = [1 if "people" in reference.path.parts else 0 for reference in find_references(query)]
    target = TargetShape(fields=columns("id", "price"), primary_key=("id",))
    plan = plan_incremental(query, source_of=numbers, sources=SOURCES, target=target)
    assert not isinstance(plan, FullRefresh)
    assert plan.is_unique is unique
