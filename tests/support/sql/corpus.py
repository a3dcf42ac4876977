"""The corpus of statements in tests/sql/corpus: what they read, and their rows.

A file holds statements, each behind a line ``--- name [ordered] parameters``: ``[ordered]`` if the order of the rows counts,
parameters as JSON. ``expected.json`` has what a statement reads, its rows as Spark gives them over plain temp views (or why Spark
refuses it), and what DuckDB refuses in it. ``tests/integration/spark/test_corpus.py`` writes it anew where WRITE_SQL_CORPUS is set.
"""

import datetime as dt
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

import tablestore as ts
from tablestore.environment.boundquery import bind
from tablestore.environment.engine import BoundQuery, Relation

FOLDER = Path(__file__).parents[2] / "sql" / "corpus"
EXPECTED = FOLDER / "expected.json"
# Of the widest decimal.
_EXACT = Context(prec=38)
_HEAD = re.compile(r"^--- (?P<name>.*?)(?P<ordered> \[ordered\])?(?P<parameters> [\[{].*[\]}])?$")


@dataclass(frozen=True)
class Statement:
    """One statement. ``group`` is the file that it stands in."""

    group: str
    name: str
    text: str
    ordered: bool = False
    parameters: Any = field(default=(), hash=False)

    def __str__(self) -> str:
        return f"{self.group}: {self.name}"


@dataclass(frozen=True)
class CorpusTable:
    """Rows of a table, and how it is made."""

    rows: pa.Table
    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()


@cache
def statements() -> tuple[Statement, ...]:
    """All statements, in the order of the files."""
    found: list[Statement] = []
    for file in sorted(FOLDER.glob("*.sql")):
        for block in ("\n" + file.read_text()).split("\n--- ")[1:]:
            head, _, text = block.partition("\n")
            match = _HEAD.match("--- " + head)
            assert match is not None, head
            parameters = json.loads(match["parameters"]) if match["parameters"] else ()
            found.append(Statement(file.stem, match["name"], text.strip(), bool(match["ordered"]), parameters))
    names = [str(statement) for statement in found]
    assert len(set(names)) == len(names), "two statements have one name"
    return tuple(found)


def expected() -> dict[str, Any]:
    """What each statement reads and gives, by ``str(statement)``."""
    return json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}


@cache
def corpus_tables() -> Mapping[str, CorpusTable]:
    """The tables that the statements name."""
    day = [dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(2024, 1, 31), dt.date(2024, 12, 31)]
    status = ["open", "paid", "void", "open", None]
    note = [None, "late", "handle with care", "gate 7", None, "späť"]
    orders = range(1, 21)
    return {
        "customers": CorpusTable(
            pa.table(
                {
                    "id": pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
                    "name": ["Ada", "O'Neil", "Émile", "bo", None, "Anna"],
                    "city": ["Berlin", "Paris", "Paris", "Berlin", None, "Rome"],
                    "joined": pa.array([dt.date(2020, 1, 1), None, dt.date(1969, 12, 31), dt.date(2024, 2, 29), day[3], day[0]]),
                    "score": pa.array([1.5, math.nan, -0.0, None, math.inf, 2.25], pa.float64()),
                    "tags": pa.array(
                        [["vip", "new"], [], None, ["new"], ["vip", "vip", None], ["old", "new"]], pa.list_(pa.string())
                    ),
                    "address": pa.array(
                        [{"street": "A 1", "zip": 10115}, {"street": None, "zip": 75001}, None, {"street": "B 2", "zip": 10115}]
                        + [None] * 2,
                        pa.struct([("street", pa.string()), ("zip", pa.int32())]),
                    ),
                    "props": pa.array(
                        [[("a", 1), ("b", 2)], [], None, [("a", None)], [("c", 3)], [("b", 5)]], pa.map_(pa.string(), pa.int32())
                    ),
                }
            ),
            primary_key=("id",),
        ),
        "orders": CorpusTable(
            pa.table(
                {
                    "id": pa.array(orders, pa.int64()),
                    "customer": pa.array([None if i % 9 == 0 else i % 5 + 1 for i in orders], pa.int64()),
                    "day": pa.array([day[i % 4] for i in orders]),
                    "amount": pa.array(
                        [None if i == 13 else Decimal(i * i * 7 % 101) + Decimal(i % 4) / 4 for i in orders], pa.decimal128(10, 2)
                    ),
                    "qty": pa.array([None if i % 7 == 0 else i * 3 % 10 for i in orders], pa.int32()),
                    "status": [status[i % 5] for i in orders],
                    "at": pa.array([dt.datetime(2024, 1, 1, i, i * 2, i * 3 % 60, 250_000) for i in orders], pa.timestamp("us")),
                    "note": [note[i % 6] for i in orders],
                }
            ),
            primary_key=("day", "id"),
            partition_by=("day",),
        ),
        "items": CorpusTable(
            pa.table(
                {
                    "order_id": pa.array([1, 1, 2, 3, 3, 3, 5, 8, 13, 21, None], pa.int64()),
                    "product": ["pen", "ink", "pen", "cap", "pen", "ink", "nib", "pen", "cap", "pen", "box"],
                    "price": pa.array(
                        [Decimal(cents) / 100 for cents in (150, 1200, 150, 325, 175, 1199, 10, 200, 300, 444, 999)],
                        pa.decimal128(8, 2),
                    ),
                    "n": pa.array([1, 2, 3, 1, 1, 4, 10, 2, None, 1, 5], pa.int32()),
                }
            )
        ),
        "people": CorpusTable(
            pa.table(
                {
                    "id": pa.array([1, 2, 3, 4, 5], pa.int32()),
                    "boss": pa.array([None, 1, 1, 2, 4], pa.int32()),
                    "name": ["Ada", "Bo", "Cara", "Dino", "Ezra"],
                }
            ),
            primary_key=("id",),
        ),
        "numbers": CorpusTable(
            pa.table(
                {
                    "n": pa.array([1, 2, 3, 4, None, -5], pa.int32()),
                    "x": pa.array([0.5, -2.0, 1e300, 3.0, None, -0.25], pa.float64()),
                    "ok": [True, False, None, True, None, False],
                    "txt": ["one", "10%", "7", "", None, "x 10%"],
                }
            )
        ),
        "order": CorpusTable(
            pa.table(
                {
                    "select": pa.array([1, 2, 3], pa.int32()),
                    "from": ["a", "b", None],
                    "group by": pa.array([0.5, None, 2.0], pa.float64()),
                }
            ),
            primary_key=("select",),
        ),
    }


def make_tables(catalog: ts.Catalog, database: str = "shop") -> dict[str, ts.Table]:
    """The tables, managed. Keyed ones are written twice, so that reading them merges."""
    catalog.create_database(database, ignore_if_exists=True)
    made = {}
    for name, table in corpus_tables().items():
        schema = table.rows.schema
        for key in table.primary_key:
            place = schema.get_field_index(key)
            schema = schema.set(place, schema.field(place).with_nullable(False))
        made[name] = catalog.create_table(
            f"{database}.{name}", schema=schema, primary_key=table.primary_key, partition_by=table.partition_by
        )
        write = made[name].upsert if table.primary_key else made[name].append
        middle = table.rows.num_rows // 2
        write(table.rows.slice(0, middle + (1 if table.primary_key else 0)))
        write(table.rows.slice(middle))
    return made


def bind_statement(statement: Statement, relation_of: Callable[[str], Relation]) -> BoundQuery:
    """The statement with its tables bound to what ``relation_of`` gives for their names."""
    names = {name.casefold() for name in corpus_tables()}

    def resolve(reference: Any) -> Relation | None:
        name = reference.path.parts[-1].casefold()
        return relation_of(name) if name in names else None

    return bind(statement.text, resolve, statement.parameters)


def canonical(rows: pa.Table, *, ordered: bool) -> list[Any]:
    """The rows as JSON values: numbers of one value and NaNs are the same whatever their type; ten digits of floats count."""
    columns = [column.to_pylist() for column in rows.columns]
    found = [[canonical_value(value) for value in row] for row in zip(*columns, strict=True)] if columns else [[]] * rows.num_rows
    return found if ordered else sorted(found, key=lambda row: json.dumps(row, ensure_ascii=False))


def canonical_value(value: Any) -> Any:
    """One value, as :func:`canonical` has it."""
    match value:
        case None | bool() | str():
            return value
        case int() | Decimal():
            return f"{Decimal(value).normalize(_EXACT):f}"
        case float():
            whole = math.isfinite(value) and value == int(value) and abs(int(value)) < 2**53
            return str(int(value)) if whole else f"{float(value):.10g}"
        case dt.datetime():
            moment = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
            return f"at {moment.isoformat(' ')}"
        case dt.date():
            return f"on {value.isoformat()}"
        case bytes():
            return f"bytes {value.hex()}"
        case dict():
            return [canonical_value(item) for item in value.values()]
        case list() if value and all(isinstance(item, tuple) for item in value):
            return sorted(([canonical_value(item) for item in pair] for pair in value), key=json.dumps)
        case list():
            return [canonical_value(item) for item in value]
    raise AssertionError(f"no canonical form of {type(value).__name__}: {value!r}")
