"""Every aggregate of every type of column, over rows that lie in every way.

``CONTENTS`` are rows, ``LAYOUTS`` make a table that holds just these rows (what was replaced or deleted has NaN and the ends of
each type), ``questions`` ask in several forms. ``aggregates.json`` has Spark's answers, which the test of the same name that needs
Spark writes anew where WRITE_SQL_CORPUS is set.
"""

import datetime as dt
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa

import tablestore as ts
from tests.support.sql.corpus import FOLDER, canonical_value

RECORDED = FOLDER / "aggregates.json"
NAN, INF = math.nan, math.inf
# Longer than what writers keep of a text in statistics.
LONG = "long" * 17
_FLOAT = re.compile(r"-?\d\.\d{7}e[+-]\d+")
UTC = dt.UTC

# Of each type: values, the last of which is the greatest; and the ends, which only rows have that are gone.
_COLUMNS: Mapping[str, tuple[pa.DataType, Sequence[Any], Sequence[Any]]] = {
    "flag": (pa.bool_(), [False, True], [False, True]),
    "tiny": (pa.int8(), [-3, 0, 7], [-(2**7), 2**7 - 1]),
    "small": (pa.int16(), [-300, 2, 301], [-(2**15), 2**15 - 1]),
    "whole": (pa.int32(), [-70000, 5, 70001], [-(2**31), 2**31 - 1]),
    "big": (pa.int64(), [-(2**40), 6, 2**40 + 1], [-(2**63), 2**63 - 1]),
    "single": (pa.float32(), [-1.5, 0.25, 2.5], [-INF, INF, NAN]),
    "double": (pa.float64(), [1.5, 2.25, 2.7], [-INF, INF, NAN]),
    "money": (pa.decimal128(9, 2), [Decimal("-9.99"), Decimal("0.01"), Decimal("12.50")], [Decimal("-9999999.99")]),
    "wide": (pa.decimal128(30, 10), [Decimal("-1e15"), Decimal("2.5"), Decimal("1e15")], [Decimal("-9e19"), Decimal("9e19")]),
    "word": (pa.string(), [LONG + "a", "m", LONG + "z", "späť"], ["", "\U0010ffff" * 30]),
    "bytes": (pa.binary(), [b"\x00" * 66 + b"a", b"m", b"\xfe" * 66 + b"z"], [b"", b"\xff" * 70]),
    "day": (
        pa.date32(),
        [dt.date(1969, 12, 31), dt.date(2000, 2, 29), dt.date(2024, 1, 1)],
        [dt.date(1, 1, 1), dt.date(9999, 1, 1)],
    ),
    "moment": (
        pa.timestamp("us"),
        [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 1, 1, 0, 0, 0, 1)],
        [dt.datetime(1, 1, 1), dt.datetime(9999, 1, 1)],
    ),
    "instant": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(1970, 1, 1, tzinfo=UTC), dt.datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)],
        [dt.datetime(1900, 1, 1, tzinfo=UTC), dt.datetime(9999, 1, 1, tzinfo=UTC)],
    ),
    "list": (pa.list_(pa.int32()), [[1, None], [2], []], [[]]),
    "pair": (
        pa.struct([("x", pa.float64()), ("s", pa.string())]),
        [{"x": 1.5, "s": "a"}, {"x": 2.7, "s": None}],
        [{"x": NAN, "s": "z"}],
    ),
}
COLUMNS = tuple(_COLUMNS)
INTEGERS, FLOATS, DECIMALS = ("tiny", "small", "whole", "big"), ("single", "double"), ("money", "wide")
NUMBERS = (*INTEGERS, *FLOATS, *DECIMALS)
ATOMS = tuple(name for name in COLUMNS if name not in {"list", "pair"})
# What an expression may be: a column, or the field of a struct.
ORDERED = (*ATOMS, "pair.x", "pair.s")
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("part", pa.int32(), nullable=False),
        pa.field("team", pa.string()),
        *(pa.field(name, arrow) for name, (arrow, _, _) in _COLUMNS.items()),
    ]
)
_ROWS = 24


def _rows(value: Callable[[str, int], Any], ids: Iterable[int]) -> pa.Table:
    ids = list(ids)
    columns: dict[str, list[Any]] = {
        "id": ids,
        "part": [i % 2 for i in ids],
        "team": [None if i % 4 == 3 else "ab"[i % 4 // 2] for i in ids],
    }
    return pa.table({**columns, **{name: [value(name, i) for i in ids] for name in COLUMNS}}, schema=SCHEMA)


def _plain(name: str, i: int) -> Any:
    """Values with NULLs between them; the columns go around at paces of their own."""
    values = [None, *_COLUMNS[name][1]]
    return values[(i * (1 + COLUMNS.index(name) % 3) + i // 5) % len(values)]


def _floats(values: Mapping[str, Sequence[Any]]) -> Callable[[str, int], Any]:
    def value(name: str, i: int) -> Any:
        return values[name][i % len(values[name])] if name in values else _plain(name, i)

    return value


CONTENTS: Mapping[str, pa.Table] = {
    "plain": _rows(_plain, range(_ROWS)),
    "nan": _rows(
        _floats(
            {"single": [1.5, NAN, None, -0.0, INF], "double": [NAN, 2.25, -INF, 0.0, None], "pair": [{"x": NAN, "s": "a"}, None]}
        ),
        range(_ROWS),
    ),
    # The least is 0.0, and the greatest is -0.0.
    "zeros": _rows(_floats({"single": [-0.0, -2.0, None], "double": [0.0, 1.5], "pair": [{"x": 0.0, "s": "é"}]}), range(_ROWS)),
    "one": _rows(_plain, [1]),
    "nulls": _rows(lambda name, i: None, range(_ROWS)),
    "empty": _rows(_plain, []),
}


def _gone(ids: Iterable[int]) -> pa.Table:
    """Rows that no table keeps: the ends of each type, and NaN."""
    return _rows(lambda name, i: _COLUMNS[name][2][i % len(_COLUMNS[name][2])], ids)


def _keyed(table: ts.Table, rows: pa.Table) -> None:
    """The rows, and others under and beside them that are replaced and deleted."""
    table.upsert(_gone(range(-6, _ROWS)))
    table.upsert(rows.slice(0, 9))
    table.upsert(rows.slice(9))
    kept = set(rows["id"].to_pylist())
    table.delete(pa.table({"id": [i for i in range(-6, _ROWS) if i not in kept]}, schema=pa.schema([SCHEMA.field("id")])))


def _compacted(table: ts.Table, rows: pa.Table) -> None:
    _keyed(table, rows)
    table.compact(full=True)


def _newer_above(table: ts.Table, rows: pa.Table) -> None:
    newer = rows.slice(0, 3)
    table.upsert(pa.concat_tables([rows.slice(3), _gone([-1, *newer["id"].to_pylist()])]))
    table.compact(full=True)
    table.upsert(newer)
    table.delete(pa.table({"id": [-1]}, schema=pa.schema([SCHEMA.field("id")])))


def _several_files(table: ts.Table, rows: pa.Table) -> None:
    for start in (0, 5, 11):
        table.append(rows.slice(start, {0: 5, 5: 6, 11: _ROWS}[start]))


def _deleted(table: ts.Table, rows: pa.Table) -> None:
    table.append(pa.concat_tables([rows, _gone(range(-5, 0))]))
    table.delete("id < 0")


_KEY = {"primary_key": ["id"], "options": {"bucket": "1", "write-only": "true"}}
LAYOUTS: Mapping[str, tuple[Mapping[str, Any], Callable[[ts.Table, pa.Table], object]]] = {
    "append, one file": ({}, lambda table, rows: table.append(rows)),
    "append, several files": ({}, _several_files),
    "append, partitions": ({"partition_by": ["part"]}, lambda table, rows: table.append(rows)),
    "append, deleted rows": ({"options": {"deletion-vectors.enabled": "true"}}, _deleted),
    "append, rewritten without deleted rows": ({}, _deleted),
    "keyed, one file": (_KEY, lambda table, rows: table.upsert(rows)),
    "keyed, several runs": (_KEY, _keyed),
    "keyed, compacted": (_KEY, _compacted),
    "keyed, newer rows above": (_KEY, _newer_above),
    "keyed, buckets": ({"primary_key": ["id"], "options": {"bucket": "3"}}, _compacted),
    "keyed, deletion vectors": (
        {"primary_key": ["id"], "options": {"bucket": "1", "deletion-vectors.enabled": "true"}},
        _compacted,
    ),
}


def make_table(catalog: ts.Catalog, layout: str, content: str) -> ts.Table:
    """A table of this layout with the rows of this content, in the database ``d``."""
    settings, write = LAYOUTS[layout]
    table = catalog.create_table(table_name(layout, content), schema=SCHEMA, **settings)
    write(table, CONTENTS[content])
    return table.refresh()


def table_name(layout: str, content: str) -> str:
    """The name of such a table."""
    return f"d.{'_'.join(layout.replace(',', '').split())}_{content}"


# Aggregates, ``{}`` stands for a column; those whose answer depends on the order of rows ask for what does not.
_AGGREGATES: Mapping[str, Sequence[str]] = {
    "count({})": COLUMNS,
    "count(DISTINCT {})": ATOMS,
    "min({})": ORDERED,
    "max({})": ORDERED,
    "sum({})": (*NUMBERS, "pair.x"),
    "sum(DISTINCT {})": NUMBERS,
    "avg({})": (*NUMBERS, "pair.x"),
    "avg(DISTINCT {})": NUMBERS,
    "stddev({})": NUMBERS,
    "stddev_samp({})": NUMBERS,
    "stddev_pop({})": NUMBERS,
    "var_samp({})": NUMBERS,
    "variance({})": NUMBERS,
    "var_pop({})": NUMBERS,
    "skewness({})": NUMBERS,
    "kurtosis({})": NUMBERS,
    "median({})": NUMBERS,
    "percentile({}, 0.25)": NUMBERS,
    "percentile_approx({}, 0.5)": NUMBERS,
    "mode({}, true)": ORDERED,
    "bool_and({})": ("flag",),
    "bool_or({})": ("flag",),
    "every({})": ("flag",),
    "any({})": ("flag",),
    "some({})": ("flag",),
    "count_if({})": ("flag",),
    "bit_and({})": INTEGERS,
    "bit_or({})": INTEGERS,
    "bit_xor({})": INTEGERS,
    "sort_array(collect_list({}))": ATOMS,
    "sort_array(collect_set({}))": ATOMS,
    "sort_array(array_agg({}))": ATOMS,
    "approx_count_distinct({})": ATOMS,
    "max_by({}, id)": COLUMNS,
    "min_by({}, id)": COLUMNS,
    "corr({}, id)": NUMBERS,
    "covar_pop({}, id)": NUMBERS,
    "covar_samp({}, id)": NUMBERS,
    "regr_count({}, id)": NUMBERS,
    "any_value({} IS NULL OR true)": COLUMNS,
    "last({} IS NULL OR true)": COLUMNS,
    "count(*)": ("id",),
}
# Their order decides, so they are asked where it is known.
_ORDERED_AGGREGATES = ("first({})", "last({})", "first_value({})", "last_value({})", "any_value({})")
_WINDOW = "OVER (PARTITION BY team ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
_MOVING = "OVER (PARTITION BY team ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"
_OF_WINDOWS = ("whole", "double", "money", "word", "flag")
_AS_WINDOWS = ("count({})", "min({})", "max({})", "sum({})", "avg({})", "stddev({})", "var_pop({})", "bool_and({})", "bit_or({})")


def _filled(templates: Iterable[str], among: Sequence[str] = (*COLUMNS, *ORDERED, "id")) -> list[str]:
    return [template.format(column) for template in templates for column in _AGGREGATES.get(template, ORDERED) if column in among]


def forms(content: str) -> tuple[str, ...]:
    """The forms in which is asked for a content."""
    return tuple(questions()) if content in {"plain", "nan", "nulls"} else ("alone", "together")


@cache
def questions() -> Mapping[str, tuple[str, ...]]:
    """Expressions by form: how a statement is made of them."""
    every = _filled(_AGGREGATES)
    plain = [one for one in every if "DISTINCT" not in one]
    edges = [f"{one}({column})" for column in ORDERED for one in ("min", "max")]
    few = ("single", "double", "big", "word", "pair.x")
    return {
        # Each is a scalar subquery of its own, so that nothing but the aggregate is asked of the table.
        "alone": (
            *(f"SELECT {one} FROM {{0}}" for one in ("count(*)", "count(double)", "sum(whole)", *edges)),
            *(f"SELECT {one} FROM {{0}} WHERE id >= 0" for one in edges if "single" in one or "double" in one or "word" in one),
            *(f"SELECT count(*) FROM {{0}} WHERE {one[4:-1]} = (SELECT {one} FROM {{0}})" for one in edges if one[4:-1] in few),
            *(f"SELECT {column} FROM {{0}} ORDER BY {column} {order} LIMIT 1" for column in few for order in _ORDERS),
            *(f"SELECT count(*) FROM {{0}} AS a JOIN {{0}} AS b ON a.{column} = b.{column}" for column in few),
            *(f"SELECT count(*) FROM (SELECT DISTINCT {column} FROM {{0}})" for column in few),
            *(f"SELECT count(*) FROM {{0}} WHERE {condition}" for condition in _CONDITIONS),
        ),
        "together": tuple(every),
        "groups": tuple(every),
        "filtered": tuple(f"{one} FILTER (WHERE id % 3 = 1)" for one in plain if not one.startswith("sort_array")),
        "windows": tuple(f"{one} {_WINDOW}" for one in _filled([*_AS_WINDOWS, *_ORDERED_AGGREGATES], _OF_WINDOWS)),
        "moving": tuple(f"{one} {_MOVING}" for one in _filled([*_AS_WINDOWS, *_ORDERED_AGGREGATES], _OF_WINDOWS)),
    }


_ORDERS = ("DESC NULLS LAST", "NULLS LAST")
_CONDITIONS = (
    "double > 1e300",
    "double = CAST('NaN' AS DOUBLE)",
    "double <> double",
    "NOT double > 2.5",
    "double >= 0",
    "double = 0 OR single = 0",
    "double < -1e300",
    "double IN (2.25D, CAST('NaN' AS DOUBLE))",
    "double BETWEEN 2 AND CAST('Infinity' AS DOUBLE)",
    "pair.x > 1e300",
    "single > 1e30",
    "single IS NULL AND double > 1",
    "word > 'm' AND bytes IS NOT NULL",
    "money = 12.5",
    "flag",
)


def statement(form: str, expressions: Sequence[str], table: str) -> str:
    """One statement that asks for all these expressions, as columns ``c0``, ``c1``, …"""
    if form == "alone":
        columns = (f"({one.format(table)}) AS c{place}" for place, one in enumerate(expressions))
        return f"SELECT {', '.join(columns)}"
    columns = (f"{one} AS c{place}" for place, one in enumerate(expressions))
    match form:
        case "groups":
            return f"SELECT {', '.join(columns)} FROM {table} GROUP BY team ORDER BY team NULLS FIRST"
        case "windows" | "moving":
            return f"SELECT {', '.join(columns)} FROM {table} ORDER BY id"
    return f"SELECT {', '.join(columns)} FROM {table}"


def answers(rows: pa.Table) -> list[list[Any]]:
    """What each expression of a statement gave, as JSON values, one of each row."""
    return [[shown(value) for value in column.to_pylist()] for column in rows.columns]


def alike(found: Any, wanted: Any) -> bool:
    """Whether two answers are one: engines add floats up in other orders."""
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(alike, found, wanted))
    if isinstance(found, str) and isinstance(wanted, str) and _FLOAT.fullmatch(found) and _FLOAT.fullmatch(wanted):
        return math.isclose(float(found), float(wanted), rel_tol=1e-6)
    return bool(found == wanted)


def shown(value: Any) -> Any:
    """A value as JSON: eight digits of a float count, zeros and NaNs are one; all others are exact."""
    match value:
        case float():
            return f"{value + 0.0:.7e}"
        case dict():
            return [shown(item) for item in value.values()]
        case list():
            return [shown(item) for item in value]
    return canonical_value(value)


@cache
def recorded() -> dict[str, Any]:
    """Spark's answers by content, form and expression: one of each row."""
    return json.loads(RECORDED.read_text()) if RECORDED.exists() else {}


def record(found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Write ``aggregates.json`` anew, one line an expression."""
    lines = [
        f"{json.dumps(content)}: {{"
        + ",".join(
            f"\n {json.dumps(form)}: {{"
            + ",".join(f"\n  {json.dumps(one)}: {json.dumps(answer, ensure_ascii=False)}" for one, answer in expressions.items())
            + "}"
            for form, expressions in forms.items()
        )
        + "}"
        for content, forms in found.items()
    ]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    recorded.cache_clear()
