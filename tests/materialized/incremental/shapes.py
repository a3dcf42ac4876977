"""Query shapes and random changes of their sources, for tests that an incremental refresh equals the whole query.

k    keyed by id: g and h are small numbers, often NULL; r never is; x whole numbers up to the ends of their range; d wide
     decimals; f floats with NaN, infinities and both zeros; s short texts
l    keyed by (a, b), joined to k by a, b or g
p    appended rows, some of them equal
i    keyed by id, with changelog-producer = input and a writer that says anything: -U and -D of rows that never were, +U alone
v    keyed by id, with deletion vectors: what is written shows when it is compacted
o    keyed, with names that need quotes, dates, times, truth values and bytes up to the ends of their ranges
"""

import random
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

import tablestore as ts
from tablestore.environment.session.session import spec_of
from tablestore.materialized.incremental.refresh import refresh
from tablestore.materialized.incremental.refreshreport import RefreshReport

TABLES = """
CREATE TABLE k (
    id BIGINT, r BIGINT NOT NULL, g INT, h INT, x BIGINT, d DECIMAL(38, 2), e DECIMAL(12, 3), f DOUBLE, s STRING,
    PRIMARY KEY (id) NOT ENFORCED
);
CREATE TABLE l (a INT, b INT, n BIGINT, t STRING, PRIMARY KEY (a, b) NOT ENFORCED);
CREATE TABLE i (id INT, g INT, x BIGINT, f DOUBLE, PRIMARY KEY (id) NOT ENFORCED) WITH ('changelog-producer' = 'input');
CREATE TABLE v (id INT, g INT, s STRING, PRIMARY KEY (id) NOT ENFORCED)
    WITH ('deletion-vectors.enabled' = 'true', 'write-only' = 'true');
CREATE TABLE p (r INT NOT NULL, g INT, x BIGINT, s STRING, f DOUBLE);
CREATE TABLE `o-1` (
    `select` INT, `a b` STRING, `n.n` SMALLINT, `d``d` DATE, `t s` TIMESTAMP(6), `"b"` BOOLEAN, `by tes` BYTES,
    PRIMARY KEY (`select`) NOT ENFORCED
)
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """A query, the columns of its target, and the primary key of that; none for a bag. ``full``: it has no rule."""

    query: str
    columns: str
    key: str = ""
    full: bool = False


SHAPES: dict[str, Shape] = {
    "project": Shape("SELECT id, x, f, upper(s) AS s FROM k WHERE g >= 1", "id BIGINT, x BIGINT, f DOUBLE, s STRING", "id"),
    "project_bag": Shape("SELECT g, h, f, d FROM k WHERE h IS NULL OR h < 3", "g INT, h INT, f DOUBLE, d DECIMAL(38, 2)"),
    "append": Shape("SELECT g + 1 AS g, x, s, f FROM p WHERE g IS NULL OR g <> 2", "g INT, x BIGINT, s STRING, f DOUBLE"),
    "union": Shape("SELECT g, s FROM k WHERE g = 1 UNION ALL SELECT g, s FROM p UNION ALL SELECT a, t FROM l", "g INT, s STRING"),
    "union_distinct": Shape("SELECT g AS v FROM k UNION SELECT b FROM l UNION SELECT g FROM p", "v INT"),
    "join": Shape(
        "SELECT k.id, l.b, k.x, l.n, l.t FROM k JOIN l ON k.g = l.a AND k.x > l.n - 1000",
        "id BIGINT, b INT, x BIGINT, n BIGINT, t STRING",
        "id, b",
    ),
    "join_bag": Shape(
        "SELECT p.g, p.x, l.t FROM p INNER JOIN l ON p.g = l.b WHERE l.n IS NULL OR l.n > 0", "g INT, x BIGINT, t STRING"
    ),
    "join_three": Shape(
        "SELECT k.id, p.x, l.n FROM k, l, p WHERE k.g = l.a AND l.b = p.g AND k.h = l.b", "id BIGINT, x BIGINT, n BIGINT"
    ),
    "join_by_key": Shape(
        "SELECT u.id AS id, v.x AS x, n.t AS t FROM k u JOIN k v ON u.x = v.id LEFT JOIN l n ON v.g = n.a AND u.h = n.b",
        "id BIGINT, x BIGINT, t STRING",
        "id",
    ),
    "self_join": Shape(
        "SELECT u.id AS left_id, v.id AS right_id, u.s AS s FROM k u JOIN k v ON u.g <=> v.h AND u.id < v.id",
        "left_id BIGINT, right_id BIGINT, s STRING",
        "left_id, right_id",
    ),
    "left_join": Shape("SELECT k.id, l.b, l.t FROM k LEFT JOIN l ON k.g = l.a AND l.n > 0", "id BIGINT, b INT, t STRING"),
    "left_join_using": Shape("SELECT g, k.x, p.s FROM k LEFT OUTER JOIN p USING (g)", "g INT, x BIGINT, s STRING"),
    "left_join_null_safe": Shape(
        "SELECT k.id, p.x FROM k LEFT JOIN p ON k.g <=> p.g WHERE p.x IS NULL OR k.h = 1", "id BIGINT, x BIGINT"
    ),
    "right_join": Shape(
        "SELECT k.id, l.b, l.t, k.x FROM k RIGHT JOIN l ON k.g = l.a AND k.h > l.b", "id BIGINT, b INT, t STRING, x BIGINT"
    ),
    "right_join_then_others": Shape(
        "SELECT p.x, l.t, k.id FROM p RIGHT OUTER JOIN l ON p.g <=> l.b JOIN k ON k.g = l.a WHERE p.s IS NULL OR k.h = 1",
        "x BIGINT, t STRING, id BIGINT",
    ),
    "sums_of_right_join": Shape(
        "SELECT l.a AS a, count(*) AS n, sum(k.r) AS s, max(k.x) AS high FROM k RIGHT JOIN l ON k.g = l.a GROUP BY l.a",
        "a INT, n BIGINT, s BIGINT, high BIGINT",
    ),
    "semi_join": Shape("SELECT id, g, f FROM k LEFT SEMI JOIN l ON k.g = l.a AND k.h = l.b", "id BIGINT, g INT, f DOUBLE", "id"),
    "anti_join": Shape("SELECT id, s FROM k LEFT ANTI JOIN l ON l.a = k.g", "id BIGINT, s STRING", "id"),
    "in_and_exists": Shape(
        "SELECT id, h FROM k WHERE g IN (SELECT b FROM l WHERE n > 0) AND NOT EXISTS (SELECT 1 FROM p WHERE p.g = k.h AND p.x = 1)",
        "id BIGINT, h INT",
        "id",
    ),
    "sums": Shape(
        "SELECT g, count(*) AS n, count(x) AS c, sum(h) AS s, sum(e) AS e, min(x) AS low, max(s) AS high FROM k GROUP BY g",
        "g INT, n BIGINT, c BIGINT, s BIGINT, e DECIMAL(22, 3), low BIGINT, high STRING",
    ),
    "sums_counted": Shape(
        "SELECT h, g, count(*) AS n, count(h) AS c, sum(h) AS s, count(e) AS ce, sum(e) AS e FROM k GROUP BY g, h",
        "h INT, g INT, n BIGINT, c BIGINT, s BIGINT, ce BIGINT, e DECIMAL(22, 3)",
    ),
    "sums_uncounted": Shape("SELECT g, sum(h) AS s, max(x) AS high FROM k GROUP BY g", "g INT, s BIGINT, high BIGINT"),
    "sums_required": Shape("SELECT g, count(*) AS n, sum(r) AS s FROM k GROUP BY g", "g INT, n BIGINT, s BIGINT"),
    "sums_by_required": Shape(
        "SELECT r, count(*) AS n, count(h) AS c, sum(H) AS s, sum(g) AS u, sum(r) AS t FROM k GROUP BY r",
        "r BIGINT NOT NULL, n BIGINT, c BIGINT, s BIGINT, u BIGINT, t BIGINT",
        "r",
    ),
    "sums_of_pairs": Shape("SELECT b, a, sum(n) AS s, count(*) AS c FROM l GROUP BY a, b", "b INT, a INT, s BIGINT, c BIGINT"),
    "sums_required_of_left_join": Shape(
        "SELECT k.g AS g, count(*) AS n, sum(p.r) AS s FROM k LEFT JOIN p ON k.h = p.g GROUP BY k.g", "g INT, n BIGINT, s BIGINT"
    ),
    "sums_appended": Shape(
        "SELECT g, sum(g) AS s, min(x) AS low, max(s) AS high FROM p GROUP BY g", "g INT, s BIGINT, low BIGINT, high STRING"
    ),
    "sums_of_join": Shape(
        "SELECT l.b AS b, count(*) AS n, sum(k.h) AS s, count(k.h) AS c FROM k JOIN l ON k.g = l.a GROUP BY l.b",
        "b INT, n BIGINT, s BIGINT, c BIGINT",
    ),
    "sums_of_left_join": Shape(
        "SELECT k.g AS g, count(*) AS n, max(l.n) AS high, sum(l.b) AS s FROM k LEFT JOIN l ON k.h = l.a GROUP BY k.g",
        "g INT, n BIGINT, high BIGINT, s BIGINT",
    ),
    "averages": Shape(
        "SELECT g, avg(h) AS a, avg(e) AS b, count(DISTINCT h) AS n, max(f) AS m, sum(d) AS t, min(d) AS low FROM k GROUP BY g",
        "g INT, a DOUBLE, b DECIMAL(16, 7), n BIGINT, m DOUBLE, t DECIMAL(38, 2), low DECIMAL(38, 2)",
    ),
    "having": Shape("SELECT g, h, count(*) AS n FROM k GROUP BY g, h HAVING count(*) > 1 AND max(h) < 3", "g INT, h INT, n BIGINT"),
    "float_groups": Shape("SELECT f, count(*) AS n, min(x) AS low FROM k GROUP BY f", "f DOUBLE, n BIGINT, low BIGINT"),
    "group_expression": Shape(
        "SELECT g % 2 AS odd, count(s) AS n, max(x) AS m FROM k GROUP BY g % 2", "odd INT, n BIGINT, m BIGINT"
    ),
    "hidden_key": Shape("SELECT count(*) AS n, sum(h) AS s FROM k GROUP BY g", "n BIGINT, s BIGINT"),
    "distinct": Shape("SELECT DISTINCT g, s FROM k", "g INT, s STRING"),
    "distinct_of_groups": Shape("SELECT DISTINCT count(*) AS n FROM k GROUP BY g, h", "n BIGINT"),
    "top": Shape(
        "SELECT id, g, x FROM "
        "(SELECT *, row_number() OVER (PARTITION BY g ORDER BY x DESC, id) AS place FROM k) AS r WHERE place <= 2",
        "id BIGINT, g INT, x BIGINT",
        "id",
    ),
    "top_qualify": Shape(
        "SELECT g, id, row_number() OVER (PARTITION BY g ORDER BY h, id) AS place FROM k WHERE h IS NOT NULL QUALIFY place <= 2",
        "g INT, id BIGINT, place INT",
    ),
    "composed": Shape(
        "WITH big AS (SELECT g, count(*) AS n FROM k WHERE h > 0 GROUP BY g), named AS (SELECT a, max(t) AS t FROM l GROUP BY a) "
        "SELECT b.g, b.n, m.t FROM big b LEFT JOIN named m ON b.g = m.a",
        "g INT, n BIGINT, t STRING",
    ),
    "groups_of_groups": Shape(
        "SELECT n, count(*) AS c, min(g) AS g FROM (SELECT g, count(*) AS n FROM k GROUP BY g) AS q GROUP BY n",
        "n BIGINT, c BIGINT, g INT",
    ),
}

SHAPES |= {
    "odd_names": Shape(
        "SELECT `a b`, count(*) AS `from`, sum(`n.n`) AS `s.s`, count(`n.n`) AS `c c`, max(`d``d`) AS `d``d`, min(`t s`) AS `t s` "
        "FROM `o-1` GROUP BY `a b`",
        "`a b` STRING, `from` BIGINT, `s.s` BIGINT, `c c` BIGINT, `d``d` DATE, `t s` TIMESTAMP(6)",
    ),
    "odd_joins": Shape(
        "SELECT `o-1`.`select`, k.s AS `Ä.ö`, p.x AS `x x` FROM `o-1` LEFT JOIN k ON `o-1`.`select` = k.g AND `o-1`.`a b` = k.s "
        'JOIN p ON p.s <=> `o-1`.`a b` WHERE `"b"` IS NULL OR `n.n` > 0',
        "`select` INT, `Ä.ö` STRING, `x x` BIGINT",
    ),
    "odd_distinct": Shape(
        'SELECT DISTINCT `d``d`, `t s`, `"b"` AS `b"b`, `by tes` FROM `o-1`',
        '`d``d` DATE, `t s` TIMESTAMP(6), `b"b` BOOLEAN, `by tes` BYTES',
    ),
    "full_join": Shape(
        "SELECT k.id, l.b, l.t, k.x FROM k FULL JOIN l ON k.g = l.a AND k.h > l.b", "id BIGINT, b INT, t STRING, x BIGINT"
    ),
    "full_join_null_safe": Shape(
        "SELECT p.x, count(*) AS n, min(k.id) AS id FROM p FULL OUTER JOIN k ON p.g <=> k.h AND p.s IS NULL WHERE k.f IS NULL "
        "OR k.f <> 1.5 GROUP BY p.x",
        "x BIGINT, n BIGINT, id BIGINT",
    ),
    "full_join_using": Shape(
        "SELECT g, k.s, p.s AS t FROM k FULL JOIN p USING (g) WHERE k.h = 1 OR p.x = 1", "g INT, s STRING, t STRING"
    ),
    "full_join_by_key": Shape(
        "SELECT id, k.s, i.f, k.g + i.g AS g FROM k FULL JOIN i USING (id)", "id BIGINT, s STRING, f DOUBLE, g INT", "id"
    ),
    "full_join_of_groups": Shape(
        "SELECT coalesce(u.g, v.b) AS g, u.n, v.m FROM (SELECT g, count(*) AS n FROM k GROUP BY g) AS u "
        "FULL JOIN (SELECT b, max(n) AS m FROM l GROUP BY b) AS v ON u.g = v.b",
        "g INT, n BIGINT, m BIGINT",
    ),
    "full_join_behind_others": Shape(
        "SELECT k.id, l.t, p.x, q.b FROM k JOIN l ON k.g = l.a AND k.h = l.b FULL JOIN p ON p.g = l.b AND p.r <= k.r "
        "LEFT JOIN l AS q ON q.a = k.h AND q.b = p.g WHERE k.id IS NULL OR k.id > 3",
        "id BIGINT, t STRING, x BIGINT, b INT",
    ),
    "full_joins": Shape(
        "SELECT k.id, l.t, p.x FROM k FULL JOIN l ON k.g = l.a AND k.h = l.b FULL JOIN p ON p.g = coalesce(k.g, l.a) AND p.s = l.t",
        "id BIGINT, t STRING, x BIGINT",
    ),
    "full_join_unread": Shape("SELECT 1 AS one FROM k FULL JOIN l ON l.a <=> k.g AND l.b = k.h", "one INT"),
    "right_join_behind_others": Shape(
        "SELECT k.id, l.t, p.x FROM k LEFT JOIN l ON k.g = l.a RIGHT JOIN p ON p.g = k.h AND p.s = l.t WHERE p.x = 1 OR p.r > 0",
        "id BIGINT, t STRING, x BIGINT",
    ),
    "sums_of_right_join_behind_others": Shape(
        "SELECT p.g, count(*) AS n, sum(k.h) AS s, max(l.n) AS m FROM k JOIN l ON k.g = l.a "
        "RIGHT JOIN p ON p.g = k.h AND p.r < l.b WHERE NOT EXISTS (SELECT 1 FROM `o-1` AS o WHERE o.`select` = p.g) GROUP BY p.g",
        "g INT, n BIGINT, s BIGINT, m BIGINT",
    ),
    "total": Shape(
        "SELECT count(*) AS n, count(x) AS c, sum(h) AS s, sum(e) AS e, sum(r) AS r, min(x) AS low, max(s) AS high FROM k",
        "n BIGINT, c BIGINT, s BIGINT, e DECIMAL(22, 3), r BIGINT, low BIGINT, high STRING",
    ),
    "total_often_empty": Shape(
        "SELECT 1 AS id, 'two' AS name, sum(r) AS r, sum(h) AS s, count(h) AS c, count(*) AS n FROM k WHERE g = 1 AND h = 2",
        "id INT, name STRING, r BIGINT, s BIGINT, c BIGINT, n BIGINT",
        "id",
    ),
    "total_uncounted": Shape("SELECT sum(r) AS r, sum(a) AS a FROM k JOIN l ON k.g = l.a AND k.h = l.b", "r BIGINT, a BIGINT"),
    "total_of_full_join": Shape(
        "SELECT count(*) AS n, count(id) AS k, count(b) AS l FROM k FULL JOIN l ON k.g = l.a AND k.h = l.b",
        "n BIGINT, k BIGINT, l BIGINT",
    ),
    "sums_beside_a_constant": Shape(
        "SELECT 'of k' AS source, g, count(*) AS n, sum(r) AS s FROM k GROUP BY g", "source STRING, g INT, n BIGINT, s BIGINT"
    ),
    "given_changes": Shape("SELECT id, x, f FROM i WHERE g IS NULL OR g > 0", "id INT, x BIGINT, f DOUBLE", "id"),
    "sums_of_given_changes": Shape("SELECT g, count(*) AS n, max(x) AS m FROM i GROUP BY g", "g INT, n BIGINT, m BIGINT"),
    "join_of_given_and_late_changes": Shape(
        "SELECT i.id, v.s, i.f FROM i FULL JOIN v ON i.id = v.id AND i.g = v.g", "id INT, s STRING, f DOUBLE"
    ),
    "late_changes": Shape("SELECT s, count(g) AS c, sum(g) AS g FROM v GROUP BY s", "s STRING, c BIGINT, g BIGINT"),
}

_NUMBERS = (None, 0, 1, 2, 3)
_WHOLE = (None, 0, 1, -1, 7, 2**63 - 1, -(2**63))
_WIDE = (None, Decimal("0.00"), Decimal("-1.25"), Decimal(-(10**34)), Decimal("9999999999999999999999999999999999.99"))
_SHORT = (None, Decimal("0.000"), Decimal("-1.125"), Decimal("999999999.999"))
_FLOATS = (None, float("nan"), 0.0, -0.0, 1.5, float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308)
_TEXTS = (None, "", "a", "ä", "zz")
_SMALL = (None, 0, 7, -(2**15), 2**15 - 1)
_DATES = (None, date(1, 1, 1), date(1970, 1, 1), date(2024, 2, 29), date(9999, 12, 31))
_TIMES = (None, datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(9999, 12, 31, 23, 59, 59, 999999))
_BYTES = (None, b"", b"\x00", b"\xff\x00a")


def create(env: ts.TableEnvironment, names: "list[str] | tuple[str, ...]") -> None:
    """The sources, and a target for each shape."""
    for statement in TABLES.split(";"):
        env.execute_sql(statement)
    for name in names:
        shape = SHAPES[name]
        key = f", PRIMARY KEY ({shape.key}) NOT ENFORCED" if shape.key else ""
        env.execute_sql(f"CREATE TABLE mt_{name} ({shape.columns}{key})")


def refreshed(env: ts.TableEnvironment, name: str, query: str | None = None) -> RefreshReport:
    """Refresh the target of a shape."""
    catalog = env.catalog()
    target = catalog.table(f"default.mt_{name}")
    return refresh(env._session, target, query or SHAPES[name].query, spec=spec_of(catalog, target))


def change_sources(env: ts.TableEnvironment, rng: random.Random) -> None:
    """One random batch of changes: some of the sources, each in a commit or two."""
    table = env.catalog().table
    for _ in range(rng.randint(1, 2)):
        rows = [_keyed(rng) for _ in range(rng.randint(1, 6))]
        if rng.random() < 0.7:
            table("default.k").write_changes(_table(rows, table("default.k").schema))
        if rng.random() < 0.5:
            pairs = [_paired(rng) for _ in range(rng.randint(1, 4))]
            table("default.l").write_changes(_table(pairs, table("default.l").schema))
        if rng.random() < 0.4:
            added = [_appended(rng) for _ in range(rng.randint(1, 3))]
            table("default.p").append(pa.Table.from_pylist(added, table("default.p").schema))
        if rng.random() < 0.5:
            odd = [_odd(rng) for _ in range(rng.randint(1, 4))]
            table("default.o-1").write_changes(_table(odd, table("default.o-1").schema))
        if rng.random() < 0.5:
            given = [_given(rng) for _ in range(rng.randint(1, 4))]
            table("default.i").write_changes(_table(given, table("default.i").schema))
        if rng.random() < 0.3:
            late = [{"id": rng.randint(0, 7), "g": rng.choice(_NUMBERS), "s": rng.choice(_TEXTS), "_row_kind": _kind(rng)}]
            table("default.v").write_changes(_table(late, table("default.v").schema))
        if rng.random() < 0.2:
            table("default.v").compact(full=rng.random() < 0.5)
            table("default.i").compact(full=rng.random() < 0.5)
        if rng.random() < 0.1:
            table("default.k").compact(full=rng.random() < 0.5)


def _table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(rows, schema.append(pa.field("_row_kind", pa.string())))


def _kind(rng: random.Random) -> str:
    return "-D" if rng.random() < 0.35 else "+I"


def _keyed(rng: random.Random) -> dict[str, Any]:
    return {
        "id": rng.choice((*range(14), -(2**63), 2**63 - 1)),
        "g": rng.choice(_NUMBERS),
        "r": rng.choice((0, 1, -(2**40))),
        "h": rng.choice(_NUMBERS),
        "x": rng.choice(_WHOLE),
        "d": rng.choice(_WIDE) if rng.random() < 0.2 else rng.choice(_WIDE[:3]),
        "e": rng.choice(_SHORT),
        "f": rng.choice(_FLOATS),
        "s": rng.choice(_TEXTS),
        "_row_kind": _kind(rng),
    }


def _given(rng: random.Random) -> dict[str, Any]:
    return {
        "id": rng.randint(0, 7),
        "g": rng.choice(_NUMBERS),
        "x": rng.choice((None, 1, 2**62)),
        "f": rng.choice(_FLOATS),
        "_row_kind": rng.choice(("+I", "-U", "+U", "+U", "-D")),
    }


def _paired(rng: random.Random) -> dict[str, Any]:
    return {
        "a": rng.randint(0, 3),
        "b": rng.randint(0, 2),
        "n": rng.choice((None, -1, 1, 5)),
        "t": rng.choice(_TEXTS),
        "_row_kind": _kind(rng),
    }


def _appended(rng: random.Random) -> dict[str, Any]:
    return {
        "r": rng.randint(-2, 2),
        "g": rng.choice(_NUMBERS),
        "x": rng.choice((None, 1, 2**63 - 1)),
        "s": rng.choice(_TEXTS),
        "f": rng.choice(_FLOATS),
    }


def _odd(rng: random.Random) -> dict[str, Any]:
    return {
        "select": rng.choice((*range(4), -(2**31), 2**31 - 1)),
        "a b": rng.choice(_TEXTS),
        "n.n": rng.choice(_SMALL),
        "d`d": rng.choice(_DATES),
        "t s": rng.choice(_TIMES),
        '"b"': rng.choice((None, True, False)),
        "by tes": rng.choice(_BYTES),
        "_row_kind": _kind(rng),
    }
