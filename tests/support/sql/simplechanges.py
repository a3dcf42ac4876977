"""Makes random expressions and statements of the kind that need no engine, over columns of all types with values at the edges."""

import datetime as dt
import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

NAN, INF = math.nan, math.inf
COLUMNS = """
id INT, p STRING, t1 TINYINT, t2 SMALLINT, t4 INT, t8 BIGINT, f FLOAT, x DOUBLE, y DOUBLE, m DECIMAL(10, 2), w DECIMAL(38, 5),
s STRING, u STRING, vc VARCHAR(8), b BOOLEAN, bin BYTES, d DATE, e DATE, ts TIMESTAMP(6), tz TIMESTAMP_LTZ(6),
st ROW<a INT, z STRING>, arr ARRAY<INT>, `odd "n``` INT, `Größe` DOUBLE
"""
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32()),
        ("p", pa.string()),
        ("t1", pa.int8()),
        ("t2", pa.int16()),
        ("t4", pa.int32()),
        ("t8", pa.int64()),
        ("f", pa.float32()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("m", pa.decimal128(10, 2)),
        ("w", pa.decimal128(38, 5)),
        ("s", pa.string()),
        ("u", pa.string()),
        ("vc", pa.string()),
        ("b", pa.bool_()),
        ("bin", pa.binary()),
        ("d", pa.date32()),
        ("e", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("tz", pa.timestamp("us", tz="UTC")),
        ("st", pa.struct([("a", pa.int32()), ("z", pa.string())])),
        ("arr", pa.list_(pa.int32())),
        ('odd "n`', pa.int32()),
        ("Größe", pa.float64()),
    ]
)
_TEXTS = ["", " ink ", "\tx\u00a0 ", "\U0001f600a", "a", "ab", "äÖ%_", "日本", "a\nb", "it's", None, "ink", "zzzz"]
_DOUBLES = [NAN, 0.0, -0.0, INF, -INF, 1.5, -2.25, 1e308, 5e-324, None, 0.1, 2.0**53 + 2]
_DAYS = [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(2024, 1, 31), None]
_VALUES: dict[str, list[Any]] = {
    "p": ["a", "b", "ü"],
    "t1": [-128, 127, 0, 1, -1, None, 5],
    "t2": [-(2**15), 2**15 - 1, 0, 3, None],
    "t4": [-(2**31), 2**31 - 1, 0, 7, -7, 100, None],
    "t8": [-(2**63), 2**63 - 1, 0, 2**53 + 1, 12, -3, None],
    "f": [NAN, 0.0, -0.0, INF, 1.5, 3.25, -1e30, None],
    "x": _DOUBLES,
    "y": _DOUBLES,
    "m": [Decimal("99999999.99"), Decimal("-99999999.99"), Decimal("0.00"), Decimal("1.25"), Decimal("2.50"), None],
    "w": [Decimal("9" * 33 + ".99999"), Decimal("-1.50000"), Decimal("0.00001"), Decimal(0), Decimal("1.25"), None],
    "s": _TEXTS,
    "u": _TEXTS,
    "vc": ["", "12345678", "é", None],
    "b": [True, False, None],
    "bin": [b"", b"\x00\xff", b"a", None],
    "d": _DAYS,
    "e": _DAYS,
    "ts": [dt.datetime(2024, 2, 29, 1, 2, 3, 456789), dt.datetime(1969, 12, 31, 23, 59, 59), None],
    "tz": [dt.datetime(2024, 2, 29, 1, 2, 3, tzinfo=dt.UTC), None],
    "st": [{"a": 1, "z": "q"}, {"a": None, "z": None}, None],
    "arr": [[1, None], [], None],
    'odd "n`': [1, 2, None],
    "Größe": [1.0, NAN, None],
}
# The names of columns of each kind, some in another case than the table's.
_NAMES = {
    "int": ["t1", "t2", "T4", "t8", "t4", "id", '`odd "n```'],
    "float": ["f"],
    "double": ["x", "y", "X", "`Größe`"],
    "decimal": ["m", "w"],
    "text": ["s", "u", "S", "vc", "p"],
    "bool": ["b"],
    "bytes": ["bin"],
    "date": ["d", "e"],
    "moment": ["ts", "tz"],
}
_LITERALS = {
    "int": "0 1 -1 2 7 127 -128 100 32767 2147483647 -2147483648 2147483648 9223372036854775807 -9223372036854775808".split(),  # noqa: SIM905
    "float": ["NULL"],
    "double": ["0.5", "2", "1e0", "1.5e300", "-2.25", "0.1", "100", "0.0", "-0.0", "1e-5"],
    "decimal": ["1.25", "0.5", "2.50", "-1.5", "99999999.99", "0.00001", "7"],
    "text": ["''", "'ink'", "'a'", "' '", "'日本'", "'äÖ'", "'z' 'z'"],
    "bool": ["TRUE", "FALSE"],
    "bytes": ["X'00FF'", "X''"],
    "date": ["DATE '2024-02-29'", "DATE '1969-12-31'", "DATE '0001-01-01'"],
    "moment": ["TIMESTAMP '2024-02-29 01:02:03'"],
}
_COMPARED = ["=", "<>", "<", "<=", ">", ">=", "<=>", "=", "=="]


def edge_rows(rng: random.Random, count: int) -> pa.Table:
    """Rows with values at the edges; ``id`` counts them."""
    columns = {name: [rng.choice(values) for _ in range(count)] for name, values in _VALUES.items()}
    return pa.table({"id": list(range(count)), **columns}, schema=SCHEMA)


class Texts:
    """Random texts of SQL."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def expression(self, kind: str, depth: int = 2) -> str:
        """An expression of a kind of values."""
        rng = self._rng
        if depth <= 0 or rng.random() < 0.25:
            return rng.choice(_NAMES[kind] if rng.random() < 0.65 else _LITERALS[kind])
        made: str = getattr(self, f"_{kind}", self._other)(kind, depth - 1)
        return made

    def _int(self, kind: str, depth: int) -> str:
        one, two = self.expression("int", depth), self.expression("int", depth)
        forms = [
            f"({one} {self._rng.choice('+-*%')} {two})",
            f"({one} {self._rng.choice('+-*')} {two})",
            f"(- {one})",
            f"abs({one})",
            f"length({self.expression('text', depth)})",
            f"{self._rng.choice(['year', 'month', 'day', 'YEAR'])}({self.expression('date', depth)})",
            f"CAST({one} AS {self._rng.choice(['BIGINT', 'INT', 'TINYINT', 'SMALLINT'])})",
            f"greatest({one}, {two})",
            f"least({one}, {two}, 3)",
        ]
        return self._rng.choice([*forms, *self._choices(kind, depth)])

    def _double(self, kind: str, depth: int) -> str:
        one, two = self.expression("double", depth), self.expression(self._rng.choice(["double", "double", "int"]), depth)
        forms = [
            f"({one} {self._rng.choice('+-*/%')} {two})",
            f"(- {one})",
            f"abs({one})",
            f"({self.expression('int', depth)} / {two})",
        ]
        return self._rng.choice([*forms, *self._choices(kind, depth), f"CAST({self.expression('int', depth)} AS DOUBLE)"])

    def _float(self, kind: str, depth: int) -> str:
        return self._rng.choice([f"(f {self._rng.choice('+-*')} f)", "(- f)", "abs(f)", *self._choices(kind, depth)])

    def _decimal(self, kind: str, depth: int) -> str:
        one, two = self.expression("decimal", depth), self.expression(self._rng.choice(["decimal", "int"]), depth)
        forms = [f"({one} {self._rng.choice('+-*')} {two})", f"(- {one})", f"abs({one})", f"CAST({one} AS DECIMAL(12, 1))"]
        return self._rng.choice([*forms, *self._choices(kind, depth), f"CAST({self.expression('int', depth)} AS DECIMAL(12, 2))"])

    def _text(self, kind: str, depth: int) -> str:
        one = self.expression("text", depth)
        forms = [
            f"({one} || {self.expression('text', depth)})",
            f"concat({one}, '-', u)",
            f"{self._rng.choice(['trim', 'ltrim', 'rtrim', 'upper', 'lower'])}({one})",
            f"substring({one}, {self._rng.choice('1230')}, {self._rng.choice('012')})",
            f"replace({one}, {self._rng.choice(_LITERALS['text'])}, 'q')",
            f"CAST({self.expression('int', depth)} AS STRING)",
        ]
        return self._rng.choice([*forms, *self._choices(kind, depth)])

    def _date(self, kind: str, depth: int) -> str:
        return self._rng.choice([*self._choices(kind, depth), f"greatest(d, {self.expression('date', depth)})", "least(d, e)"])

    def _other(self, kind: str, depth: int) -> str:
        return self._rng.choice(self._choices(kind, depth))

    def _choices(self, kind: str, depth: int) -> list[str]:
        one, two = self.expression(kind, depth), self.expression(kind, depth)
        condition = self.expression("bool", depth)
        return [
            f"coalesce({one}, {two})",
            f"nullif({one}, {two})",
            f"CASE WHEN {condition} THEN {one} ELSE {two} END",
            f"if({condition}, {one}, {two})",
            f"CASE {one} WHEN {two} THEN {one} END",
        ]

    def _bool(self, kind: str, depth: int) -> str:
        rng = self._rng
        if rng.random() < 0.35:
            one, two = self.expression("bool", depth), self.expression("bool", depth)
            return rng.choice(
                [f"({one} AND {two})", f"({one} OR {two})", f"(NOT {one})", f"({one} IS NOT TRUE)", f"({one} = {two})"]
            )
        inner = rng.choice(["int", "double", "decimal", "text", "date", "float", "bytes", "int", "text"])
        one, two = self.expression(inner, depth), self.expression(inner, depth)
        forms = [
            f"({one} {rng.choice(_COMPARED)} {two})",
            f"({one} {rng.choice(_COMPARED)} {rng.choice(_LITERALS[inner])})",
            f"({rng.choice(_NAMES[inner])} {rng.choice(_COMPARED)} {rng.choice(_LITERALS[inner])})",
            f"({one} IS {rng.choice(['', 'NOT '])}NULL)",
            f"({one} {rng.choice(['', 'NOT '])}IN ({', '.join(rng.choices(_LITERALS[inner], k=3))}))",
            f"({one} BETWEEN {rng.choice(_LITERALS[inner])} AND {two})",
            f"(d {rng.choice(_COMPARED)} '2024-02-29')",
            f"(m > {rng.choice(_LITERALS['int'])})",
            f"({rng.choice(_NAMES['int'])} < {rng.choice(_LITERALS['decimal'])})",
        ]
        if inner == "text":
            forms += [
                f"({one} {rng.choice(['', 'NOT '])}LIKE '{rng.choice(['%', 'a%', '_nk', '%n%', '', 'a_b', '%Ö%'])}')",
                f"{rng.choice(['startswith', 'endswith', 'contains'])}({one}, {rng.choice(_LITERALS['text'])})",
            ]
        return rng.choice(forms)

    def kind(self) -> str:
        """A kind of values."""
        return self._rng.choice([*_NAMES, "int", "double", "decimal", "text"])

    def assignments(self) -> str:
        """``column = expression, …``."""
        rng = self._rng
        sets: dict[str, str] = {}
        for _ in range(rng.choice([1, 1, 2, 3])):
            kind = self.kind()
            given = kind if rng.random() < 0.8 else rng.choice(["int", "decimal", "text", "double", "date"])
            value = "NULL" if rng.random() < 0.05 else self.expression(given, rng.choice([0, 1, 2, 2]))
            sets.setdefault(rng.choice(_NAMES[kind]).lower().replace("größe", "Größe"), value)
        sets.pop("id", None)
        if not sets or rng.random() < 0.02:
            sets["id"] = "id + 1"
        return ", ".join(f"{column} = {value}" for column, value in sets.items())

    def statement(self, table: str = "{table}") -> str:
        """An UPDATE, a DELETE or an INSERT."""
        rng = self._rng
        kind = rng.random()
        where = "" if rng.random() < 0.15 else f" WHERE {self.expression('bool', rng.choice([1, 2]))}"
        if kind < 0.55:
            return f"UPDATE {table} SET {self.assignments()}{where}"
        if kind < 0.75:
            return f"DELETE FROM {table}{where if where and rng.random() < 0.95 else f' WHERE id = {rng.randrange(40)}'}"
        return self.insert(table)

    def insert(self, table: str) -> str:
        """An INSERT of literals."""
        rng = self._rng
        kinds = {name.lower().replace("größe", "Größe"): kind for kind, names in _NAMES.items() for name in names}
        names = ["id", "p", *rng.sample([name for name in kinds if name not in ("id", "p")], rng.randrange(4))]
        rows = []
        for _ in range(rng.choice([1, 1, 2, 3])):
            row = [str(rng.randrange(60)), rng.choice(["'a'", "'b'"])]
            for name in names[2:]:
                kind = kinds[name] if rng.random() < 0.85 else rng.choice(["int", "decimal", "text"])
                row.append(rng.choice(["NULL", "DEFAULT"]) if rng.random() < 0.1 else rng.choice(_LITERALS[kind]))
            rows.append(f"({', '.join(row)})")
        return f"INSERT INTO {table} ({', '.join(names)}) VALUES {', '.join(rows)}"
