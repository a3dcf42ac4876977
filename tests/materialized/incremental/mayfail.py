"""Queries whose expressions may fail, and changes that bring values on which they do; most of these are gone before a refresh.

b    keyed by id: v is a text, now and then no number; w is often 0, n at the end of its type; a has two elements, or fewer
c    keyed by id, joined to b: ok says whether a row of b is looked at
e    appended rows, as those of b; deletes are rewritten files
"""

import random
from typing import Any

import pyarrow as pa

import tablestore as ts
from tests.materialized.incremental.shapes import Shape

TABLES = """
CREATE TABLE b (id INT, v STRING, w INT, n BIGINT, a ARRAY<INT>, f DOUBLE, PRIMARY KEY (id) NOT ENFORCED);
CREATE TABLE c (id INT, ok BOOLEAN, t STRING, PRIMARY KEY (id) NOT ENFORCED);
CREATE TABLE e (v STRING, w INT, n BIGINT)
"""

MAY_FAIL: dict[str, Shape] = {
    "cast": Shape("SELECT id, CAST(v AS INT) AS v FROM b", "id INT, v INT", "id"),
    "divided": Shape("SELECT id, 10 / w AS q, 7 % w AS r FROM b", "id INT, q DOUBLE, r INT", "id"),
    "overflow": Shape("SELECT n + 1 AS n, CAST(n AS INT) AS i FROM b", "n BIGINT, i INT"),
    "places": Shape("SELECT id, a[1] AS second, element_at(a, 2) AS also FROM b", "id INT, second INT, also INT", "id"),
    "floats": Shape("SELECT id, CAST(1 / (f + 1) AS INT) AS i FROM b", "id INT, i INT", "id"),
    "filtered": Shape("SELECT id, 10 / w AS q FROM b WHERE CAST(v AS INT) > 2", "id INT, q DOUBLE", "id"),
    "joined": Shape(
        "SELECT b.id, CAST(b.v AS INT) AS v, 10 / b.w AS q, c.t FROM b JOIN c ON b.id = c.id AND c.ok",
        "id INT, v INT, q DOUBLE, t STRING",
        "id",
    ),
    "left_joined": Shape("SELECT c.id, CAST(b.v AS INT) AS v FROM c LEFT JOIN b ON b.id = c.id WHERE c.ok", "id INT, v INT", "id"),
    "grouped": Shape("SELECT w, sum(CAST(v AS INT)) AS s, count(*) AS n FROM b GROUP BY w", "w INT, s BIGINT, n BIGINT"),
    "group_key": Shape("SELECT CAST(v AS INT) AS v, count(*) AS n FROM b GROUP BY CAST(v AS INT)", "v INT, n BIGINT", "v"),
    "sums": Shape("SELECT w, sum(n) AS s, count(n) AS c FROM b GROUP BY w", "w INT, s BIGINT, c BIGINT"),
    "total": Shape("SELECT sum(n) AS s, count(*) AS c FROM b", "s BIGINT, c BIGINT"),
    "windows": Shape(
        "SELECT id, w, sum(10 / w) OVER (PARTITION BY id % 2 ORDER BY id) AS q FROM b", "id INT, w INT, q DOUBLE", "id"
    ),
    "distinct": Shape("SELECT DISTINCT CAST(v AS INT) AS v FROM b", "v INT"),
    "appended": Shape("SELECT CAST(v AS INT) AS v, 10 / w AS q FROM e", "v INT, q DOUBLE"),
    "appended_sums": Shape("SELECT w, sum(n) AS s, count(*) AS c FROM e GROUP BY w", "w INT, s BIGINT, c BIGINT"),
    "united": Shape("SELECT CAST(v AS INT) AS v FROM b UNION ALL SELECT 10 / w FROM e", "v DOUBLE"),
    "narrow": Shape("SELECT id, n FROM b", "id INT NOT NULL, n INT", "id"),
}

_END = 2**63 - 1


def create_may_fail(env: ts.TableEnvironment) -> None:
    """The sources, and a target for each query."""
    for statement in TABLES.split(";"):
        env.execute_sql(statement)
    for name, shape in MAY_FAIL.items():
        key = f", PRIMARY KEY ({shape.key}) NOT ENFORCED" if shape.key else ""
        env.execute_sql(f"CREATE TABLE mt_{name} ({shape.columns}{key})")


def change_with_bad_rows(env: ts.TableEnvironment, rng: random.Random) -> None:
    """Some commits with bad values among them, and mostly one after them that corrects or deletes these."""
    for _ in range(rng.randint(1, 3)):
        _write(env, "b", [_row(rng, bad=rng.random() < 0.4) for _ in range(rng.randint(1, 3))])
        if rng.random() < 0.5:
            _write(env, "c", [{"id": rng.randrange(5), "ok": rng.random() < 0.5, "t": rng.choice("xy"), "_row_kind": "+I"}])
        if rng.random() < 0.4:
            rows = [_row(rng, bad=rng.random() < 0.3) for _ in range(2)]
            env.catalog().table("default.e").append([{name: row[name] for name in ("v", "w", "n")} for row in rows])
    if rng.random() < 0.8:
        _write(env, "b", [{**_row(rng, bad=False), "id": number, "_row_kind": rng.choice(("+I", "-D"))} for number in range(5)])
        env.catalog().table("default.e").delete("v = 'x' OR w = 0 OR n > 5")


def _write(env: ts.TableEnvironment, name: str, rows: list[dict[str, Any]]) -> None:
    table = env.catalog().table(f"default.{name}")
    table.write_changes(pa.Table.from_pylist(rows, table.schema.append(pa.field("_row_kind", pa.string()))))


def _row(rng: random.Random, *, bad: bool) -> dict[str, Any]:
    return {
        "id": rng.randrange(5),
        "v": rng.choice(("x", "", "3000000000")) if bad and rng.random() < 0.5 else rng.choice((None, "1", "4")),
        "w": 0 if bad and rng.random() < 0.5 else rng.choice((None, 1, 2)),
        "n": rng.choice((_END, -_END - 1)) if bad and rng.random() < 0.5 else rng.choice((None, 1, 5)),
        "a": rng.choice(([], [7])) if bad and rng.random() < 0.5 else rng.choice((None, [1, None], [1, 2])),
        "f": rng.choice((-1.0, float("nan"))) if bad and rng.random() < 0.5 else rng.choice((None, 0.0, -0.0, 1.5)),
        "_row_kind": rng.choice(("+I", "+I", "+I", "-D")),
    }
