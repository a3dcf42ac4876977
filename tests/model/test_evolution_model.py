"""Random chains of alterations and writes against a plain model: every column is what it was, under whatever name and type.

The model knows columns by a number of its own and rows as dicts of these numbers. What a scan returns now, what it returns at any
older snapshot, and what a filter on a column finds must be what the model says.
"""

import copy
import datetime
import decimal
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tablestore.errors import UnsupportedError
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.lab import Lab
from tablestore.types.evolution.schemachanges import (
    AddColumn,
    ChangeDefault,
    ChangeType,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SchemaChange,
)

Value = Any
Row = dict[int, Value]
NAMES = count()
KEY = 0

# From each type to the next ones, one step at a time.
WIDER: dict[str, tuple[str, ...]] = {
    "TINYINT": ("SMALLINT", "INT", "DOUBLE"),
    "SMALLINT": ("INT", "DECIMAL(7, 2)"),
    "INT": ("BIGINT", "DECIMAL(12, 1)", "STRING"),
    "BIGINT": ("DECIMAL(20, 0)",),
    "DECIMAL(7, 2)": ("DECIMAL(12, 2)", "DECIMAL(30, 10)"),
    "FLOAT": ("DOUBLE",),
    "VARCHAR(3)": ("VARCHAR(8)", "STRING"),
    "BINARY(3)": ("VARBINARY(5)", "BYTES"),
    "DATE": ("TIMESTAMP(3)", "TIMESTAMP(6)"),
    "TIMESTAMP(3)": ("TIMESTAMP(6)",),
}
TYPES = ("TINYINT", "INT", "FLOAT", "DECIMAL(7, 2)", "VARCHAR(3)", "STRING", "BINARY(3)", "DATE", "TIMESTAMP(3)", "BOOLEAN", "ROW")
ROW_TYPE = pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.string())])


def values_of(kind: str) -> st.SearchStrategy[Value]:
    """Values that a column of the type can hold."""
    if kind.startswith("DECIMAL"):
        scale = int(kind.rstrip(")").split(",")[1])
        return st.integers(-9_999, 9_999).map(
            lambda n: decimal.Decimal(n).scaleb(-min(scale, 1)).quantize(decimal.Decimal(1).scaleb(-scale))
        )
    if kind.startswith("TIMESTAMP"):
        return st.integers(-(10**12), 10**12).map(lambda ms: datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=ms))
    if kind.startswith(("BINARY", "VARBINARY", "BYTES")):
        return st.binary(max_size=3)
    if kind.startswith(("VARCHAR", "STRING")):
        return st.text("abé", max_size=3)
    whole = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
    if kind in whole:
        top = 2 ** whole[kind]
        return st.integers(-top, top - 1)
    if kind == "DATE":
        return st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1))
    if kind == "BOOLEAN":
        return st.booleans()
    if kind == "ROW":
        return st.fixed_dictionaries({"a": st.none() | st.integers(-9, 9), "b": st.none() | st.sampled_from(["x", "y"])})
    return st.integers(-1000, 1000).map(lambda n: n / 8)


def widened(value: Value, old: str, new: str) -> Value:
    """A value of the old type as one of the new, in plain Python."""
    if value is None:
        return None
    if new.startswith("DECIMAL"):
        return decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-int(new.rstrip(")").split(",")[1])))
    if old == "DATE":
        return datetime.datetime.combine(value, datetime.time())
    if new == "DOUBLE":
        return float(value)
    return str(value) if new == "STRING" else value


@dataclass
class Column:
    """A column of the model; ``number`` never changes. ``fields`` are the names in a ROW by their first names."""

    number: int
    name: str
    kind: str
    default: Value = None
    fields: dict[str, str] = field(default_factory=dict)


def shown(columns: list[Column], row: Row) -> dict[str, Value]:
    """A row under the present names."""
    result = {}
    for column in columns:
        value = row.get(column.number)
        if column.kind == "ROW" and value is not None:
            value = {name: value.get(first) for first, name in column.fields.items()}
        result[column.name] = value
    return result


def bag(rows: list[dict[str, Value]]) -> Counter[str]:
    # Floats and decimals print what they are; rows are not hashable.
    return Counter(repr(sorted(row.items())) for row in rows)


class EvolutionMachine(RuleBasedStateMachine):
    """One table that is written and altered in turns."""

    keyed: bool

    @initialize(thin=st.booleans(), buckets=st.sampled_from([1, 3]), stats=st.sampled_from(["full", "none"]))
    def create(self, thin: bool, buckets: int, stats: str) -> None:
        schema = pa.schema([pa.field("k", pa.int32(), nullable=False), pa.field("c1", pa.int32()), pa.field("c2", pa.string())])
        options = {"bucket": str(buckets), "metadata.stats-mode": stats}
        options |= {"data-file.thin-mode": str(thin).lower()} if self.keyed else {"bucket-key": "k"}
        self.lab = Lab(
            MemoryFileStore(f"evolution-{next(NAMES)}"), keyed=self.keyed, schema=schema, primary_key=["k"], options=options
        )
        self.table = self.lab.open()
        self.columns = [Column(KEY, "k", "INT"), Column(1, "c1", "INT"), Column(2, "c2", "STRING")]
        self.numbers = count(3)
        self.rows: list[Row] = []
        self.history: dict[int, list[dict[str, Value]]] = {}

    # -- what happens

    def alter(self, *changes: SchemaChange) -> None:
        before = self.table
        known = before.table_schema.id
        self.table = before.alter(list(changes))
        assert self.table.table_schema.id == known + 1

    @rule(data=st.data(), rows=st.integers(1, 6))
    def write(self, data: st.DataObject, rows: int) -> None:
        given = []
        lacking = data.draw(st.sampled_from([None, *(column for column in self.columns if column.number != KEY)]))
        for _ in range(rows):
            row: Row = {}
            for column in self.columns:
                values = st.integers(0, 9) if column.number == KEY else st.none() | values_of(column.kind)
                row[column.number] = None if column is lacking else data.draw(values)
            given.append(row)
        # Rows of the present schema; a ROW is given under the present names of its fields.
        texts = [shown(self.columns, row) for row in given]
        table = pa.Table.from_pylist(texts, schema=self.table.schema)
        if lacking is not None:
            table = table.drop_columns([lacking.name])
        self.table.upsert(table, missing_columns="null") if self.keyed else self.table.append(table)
        for row in given:
            for column in self.columns:
                if row[column.number] is None:
                    row[column.number] = column.default
                if column.kind == "ROW" and row[column.number] is not None:
                    # A field that is not there now was not written.
                    row[column.number] = {first: row[column.number].get(first) for first in column.fields}
            if self.keyed:
                self.rows = [old for old in self.rows if old[KEY] != row[KEY]]
            self.rows.append(row)
        self.landed()

    @rule(keys=st.lists(st.integers(0, 9), min_size=1, max_size=3))
    def delete(self, keys: list[int]) -> None:
        name = self.columns_by_number()[KEY].name
        if self.keyed:
            self.table.delete(pa.table({name: pa.array(keys, pa.int32())}))
        else:
            self.table.delete(f"`{name}` IN ({', '.join(map(str, keys))})")
        self.rows = [row for row in self.rows if row[KEY] not in keys]
        self.landed()

    @rule(full=st.booleans())
    def compact(self, full: bool) -> None:
        self.table.compact(full=full)
        self.landed()

    @rule(data=st.data(), kind=st.sampled_from(TYPES), place=st.sampled_from(["last", "first", "after"]), default=st.booleans())
    def add(self, data: st.DataObject, kind: str, place: str, default: bool) -> None:
        number = next(self.numbers)
        # Names come back: a new column of an old name must not show the old one's values.
        name = data.draw(st.sampled_from([n for n in ("c1", "c2", f"n{number}") if n not in self.names()]))
        anchor = data.draw(st.sampled_from(self.columns))
        text = "7" if default and kind in ("TINYINT", "INT", "FLOAT", "DECIMAL(7, 2)", "VARCHAR(3)", "STRING") else None
        where = {"first": True} if place == "first" else {"after": anchor.name} if place == "after" else {}
        self.alter(AddColumn(name, ROW_TYPE if kind == "ROW" else kind, default=text, **where))
        column = Column(number, name, kind, fields={"a": "a", "b": "b"} if kind == "ROW" else {})
        column.default = self.default_of(column, text)
        at = {"first": 0, "after": self.columns.index(anchor) + 1}.get(place, len(self.columns))
        self.columns.insert(at, column)

    def default_of(self, column: Column, text: str | None) -> Value:
        if text is None:
            return None
        if column.kind.startswith("DECIMAL"):
            return widened(int(text), "INT", column.kind)
        return {"FLOAT": 7.0, "DOUBLE": 7.0, "VARCHAR(3)": "7", "VARCHAR(8)": "7", "STRING": "7"}.get(column.kind, 7)

    @precondition(lambda self: len(self.columns) > 2)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        column = data.draw(st.sampled_from([c for c in self.columns if c.number != KEY]))
        self.alter(DropColumn(column.name))
        self.columns.remove(column)

    @rule(data=st.data())
    def rename(self, data: st.DataObject) -> None:
        column = data.draw(st.sampled_from(self.columns))
        name = data.draw(st.sampled_from([n for n in ("c1", "c2", "k", "x y", f"r{next(self.numbers)}") if n not in self.names()]))
        self.alter(RenameColumn((column.name,), to=name))
        column.name = name

    @precondition(lambda self: len(self.columns) > 1)
    @rule(data=st.data(), place=st.sampled_from(["first", "last", "after", "before"]))
    def move(self, data: st.DataObject, place: str) -> None:
        column, anchor = data.draw(st.permutations(self.columns))[:2]
        where: dict[str, Any] = {place: True} if place in ("first", "last") else {place: anchor.name}
        self.columns.remove(column)
        at = {"first": 0, "last": len(self.columns)}.get(place)
        if at is None:
            at = self.columns.index(anchor) + (place == "after")
        before = self.table.schema.names
        self.columns.insert(at, column)
        if before == self.names():
            known = self.table.table_schema.id
            assert self.table.alter(MoveColumn((column.name,), **where)).table_schema.id == known
        else:
            self.alter(MoveColumn((column.name,), **where))

    @rule(data=st.data())
    def widen(self, data: st.DataObject) -> None:
        able = [c for c in self.columns if c.kind in WIDER and c.number != KEY]
        if not able:
            return
        column = data.draw(st.sampled_from(able))
        new = data.draw(st.sampled_from(WIDER[column.kind]))
        self.alter(ChangeType((column.name,), new))
        for row in self.rows:
            row[column.number] = widened(row.get(column.number), column.kind, new)
        column.default = widened(column.default, column.kind, new)
        column.kind = new

    @rule(data=st.data(), name=st.sampled_from(["p", "q", "a", "b"]))
    def evolve_a_row(self, data: st.DataObject, name: str) -> None:
        able = [c for c in self.columns if c.kind == "ROW" and name not in c.fields.values()]
        if not able:
            return
        column = data.draw(st.sampled_from(able))
        first = data.draw(st.sampled_from(sorted(column.fields)))
        self.alter(RenameColumn((column.name, column.fields[first]), to=name))
        column.fields[first] = name

    @rule(data=st.data())
    def refuse_to_touch_the_key(self, data: st.DataObject) -> None:
        name = self.columns_by_number()[KEY].name
        refused: list[SchemaChange] = [DropColumn((name,)), ChangeType((name,), "BIGINT")]
        change = data.draw(st.sampled_from(refused))
        with pytest.raises(UnsupportedError):
            self.table.alter([ChangeDefault(self.columns[-1].name, None), change])
        known = self.table.table_schema
        assert self.table.refresh().table_schema == known

    # -- what must hold

    @rule(data=st.data())
    def a_filter_finds_what_the_model_finds(self, data: st.DataObject) -> None:
        column = data.draw(st.sampled_from(self.columns))
        if column.kind == "ROW" or column.kind.startswith(("BINARY", "VARBINARY", "BYTES")):
            return
        present = [row[column.number] for row in self.rows if row.get(column.number) is not None]
        if not present:
            wanted = [row for row in self.rows if row.get(column.number) is None]
            found = self.table.scan(filter=f"`{column.name}` IS NULL").to_arrow()
        else:
            value = data.draw(st.sampled_from(present))
            wanted = [row for row in self.rows if row.get(column.number) == value]
            scalar = pa.scalar(value, self.table.schema.field(column.name).type)
            found = self.table.scan(filter=pc.field(column.name) == scalar).to_arrow()
        assert bag(found.to_pylist()) == bag([shown(self.columns, row) for row in wanted])

    @rule(back=st.integers(0, 50))
    def time_travel_sees_the_columns_of_then(self, back: int) -> None:
        if self.history:
            at = sorted(self.history)[back % len(self.history)]
            found = self.table.scan(snapshot_id=at).to_arrow()
            assert bag(found.to_pylist()) == bag(self.history[at]), f"at snapshot {at}"

    @invariant()
    def the_table_is_what_the_model_says(self) -> None:
        assert self.table.schema.names == self.names()
        found = self.table.scan().to_arrow()
        assert bag(found.to_pylist()) == bag([shown(self.columns, row) for row in self.rows])

    def teardown(self) -> None:
        if hasattr(self, "lab"):
            assert self.lab.auditor.orphans() == set()

    # -- helpers

    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def columns_by_number(self) -> dict[int, Column]:
        return {column.number: column for column in self.columns}

    def landed(self) -> None:
        """New snapshots: a write, and whatever was compacted after it, which changes nothing."""
        now = [shown(self.columns, row) for row in copy.deepcopy(self.rows)]
        for snapshot in self.table.snapshots():
            self.history.setdefault(snapshot.id, now)


class KeyedEvolution(EvolutionMachine):
    keyed = True


class AppendEvolution(EvolutionMachine):
    keyed = False


def run(machine: type[EvolutionMachine], examples: int, steps: int) -> None:
    case = machine.TestCase
    case.settings = settings(settings.default, max_examples=examples, stateful_step_count=steps)
    case("runTest").runTest()


@pytest.mark.deep
@pytest.mark.parametrize("machine", [KeyedEvolution, AppendEvolution])
def test_an_evolving_table_agrees_with_its_model(machine: type[EvolutionMachine]) -> None:
    run(machine, 20, 15)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [KeyedEvolution, AppendEvolution])
def test_an_evolving_table_agrees_with_its_model_for_long(machine: type[EvolutionMachine]) -> None:
    run(machine, 150, 30)
