"""partial-update and aggregation give what plain Python gives record by record, however the records are folded in steps."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.format.parquet.parquetschema import KIND_COLUMN, SEQUENCE_COLUMN
from tablestore.lsm.functions.mergeoptions import merge_function
from tablestore.lsm.merge.mergespec import MergeSpec, SortedSource
from tablestore.lsm.merge.sortedmerge import merge_section
from tablestore.lsm.write.writebuffer import WriteBuffer
from tablestore.types.newschema import new_schema
from tablestore.types.schema import TableSchema
from tests.support.naivemerge import NaiveEngine, Record, Row

KINDS = ("+I", "-U", "+U", "-D")
INTS = st.none() | st.integers(-9, 9)
TEXTS = st.none() | st.sampled_from(["", "a", "b", "a,b", "c"])
LISTS = st.none() | st.lists(st.sampled_from(["x", "y", None]), max_size=3)
MAPS = st.none() | st.dictionaries(st.sampled_from("pqr"), INTS, max_size=3).map(lambda found: list(found.items()))
NESTED = st.none() | st.lists(
    st.fixed_dictionaries({"k": st.none() | st.integers(0, 2), "v": INTS}), max_size=3, unique_by=lambda row: row["k"]
)
ROWS_TYPE = pa.list_(pa.struct([("k", pa.int32()), ("v", pa.int32())]))
TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "sum": (pa.int64(), INTS),
    "product": (pa.int64(), st.none() | st.integers(1, 3)),
    "min": (pa.string(), TEXTS),
    "max": (pa.float64(), INTS),
    "last_value": (pa.string(), TEXTS),
    "last_non_null_value": (pa.string(), TEXTS),
    "first_value": (pa.int32(), INTS),
    "first_non_null_value": (pa.int32(), INTS),
    "bool_and": (pa.bool_(), st.none() | st.booleans()),
    "bool_or": (pa.bool_(), st.none() | st.booleans()),
    "listagg": (pa.string(), TEXTS),
    "listagg distinct": (pa.string(), TEXTS),
    "collect": (pa.list_(pa.string()), LISTS),
    "collect distinct": (pa.list_(pa.string()), LISTS),
    "merge_map": (pa.map_(pa.string(), pa.int32()), MAPS),
    "nested_update": (ROWS_TYPE, NESTED),
}
WITHOUT_RETRACTIONS = ("min", "max", "first_value", "first_non_null_value", "bool_and", "bool_or", "listagg", "listagg distinct")


@dataclass(frozen=True)
class Case:
    """A table and what may be written to it. ``exact``: any grouping of the fold gives the same.
    ``in_order``: of one key, greater sequence fields never come before smaller ones. ``sequence``: the column of sequence.field."""

    name: str
    engine: NaiveEngine
    types: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]]
    options: dict[str, str]
    kinds: tuple[str, ...] = ("+I", "+U")
    exact: bool = True
    in_order: bool = False
    sequence: str | None = None

    def __str__(self) -> str:
        return self.name

    @property
    def schema(self) -> TableSchema:
        fields = [pa.field("id", pa.int32(), nullable=False), *(pa.field(name, kind) for name, (kind, _) in self.types.items())]
        return new_schema(
            schema=pa.schema(fields),
            primary_key=["id"],
            options={"bucket": "1", "merge-engine": self.engine.engine, **self.options},
        )

    @property
    def records(self) -> st.SearchStrategy[list[Record]]:
        """Any records; where several retractions make a row, one of nothing is not among them (a compaction drops it)."""
        row = st.fixed_dictionaries({"id": st.integers(0, 2), **{name: values for name, (_, values) in self.types.items()}})
        records = st.lists(st.tuples(st.sampled_from(self.kinds), row), min_size=1, max_size=14)
        if self.in_order:
            return records.map(self._arriving_in_order)
        return records.map(_beginning_with_additions) if self.engine.engine == "aggregation" else records

    def _arriving_in_order(self, records: list[Record]) -> list[Record]:
        out = [(kind, dict(row)) for kind, row in records]
        for fields in self.engine.groups:
            for key in {row["id"] for _, row in out}:
                rows = [row for _, row in out if row["id"] == key and any(row[name] is not None for name in fields)]
                values = [{name: row[name] for name in fields} for row in rows]
                values.sort(key=lambda found: [(found[name] is not None, found[name] or 0) for name in fields])
                for row, value in zip(rows, values, strict=True):
                    row.update(value)
        return out


def _beginning_with_additions(records: list[Record]) -> list[Record]:
    seen: set[int] = set()
    out: list[Record] = []
    for kind, row in records:
        out.append((kind if row["id"] in seen else "+I", row))
        seen.add(row["id"])
    return out


def _aggregation(name: str, functions: dict[str, str], *, kinds: tuple[str, ...] = ("+I", "+U"), **parts: Any) -> Case:
    """One column per function."""
    options: dict[str, str] = {}
    for column, function in functions.items():
        plain, _, distinct = function.removeprefix("ignoring ").partition(" ")
        options[f"fields.{column}.aggregate-function"] = plain
        if distinct:
            options[f"fields.{column}.distinct"] = "true"
        if plain == "nested_update":
            options[f"fields.{column}.nested-key"] = "k"
        if function.startswith("ignoring "):
            options[f"fields.{column}.ignore-retract"] = "true"
    remove = parts.pop("remove_on_delete", False)
    if remove:
        options["aggregation.remove-record-on-delete"] = "true"
    ignore = parts.pop("ignore_delete", False)
    if ignore:
        options["ignore-delete"] = "true"
    return Case(
        name=name,
        engine=NaiveEngine(
            key=("id",),
            columns=("id", *functions),
            engine="aggregation",
            functions=functions,
            remove_on_delete=remove,
            ignore_delete=ignore,
        ),
        types={column: TYPES[function.removeprefix("ignoring ")] for column, function in functions.items()},
        options=options,
        kinds=kinds,
        **parts,
    )


PARTIAL = {"a": (pa.int32(), INTS), "b": (pa.string(), TEXTS), "c": (pa.list_(pa.string()), LISTS)}
GROUPS = {
    "a": (pa.int32(), INTS),
    "b": (pa.string(), TEXTS),
    "g": (pa.int32(), st.none() | st.integers(0, 4)),
    "d": (pa.int32(), INTS),
    "h1": (pa.int32(), st.none() | st.integers(0, 2)),
    "h2": (pa.string(), st.none() | st.sampled_from("xy")),
    "u": (pa.int32(), INTS),
}
GROUP_OPTIONS = {"fields.g.sequence-group": "a,b", "fields.h1,h2.sequence-group": "d"}
GROUP_PARTS: dict[str, Any] = {
    "key": ("id",),
    "columns": ("id", *GROUPS),
    "engine": "partial-update",
    "groups": {("g",): ("a", "b"), ("h1", "h2"): ("d",)},
}


def _partial(name: str, options: dict[str, str], kinds: tuple[str, ...] = ("+I", "+U"), **parts: Any) -> Case:
    engine = NaiveEngine(key=("id",), columns=("id", *PARTIAL), engine="partial-update", **parts)
    return Case(name=name, engine=engine, types=PARTIAL, options=options, kinds=kinds)


def _grouped(
    name: str,
    options: dict[str, str],
    *,
    exact: bool = True,
    in_order: bool = False,
    kinds: tuple[str, ...] = KINDS,
    **parts: Any,
) -> Case:
    return Case(
        name=name,
        engine=NaiveEngine(**GROUP_PARTS, **parts),
        types=GROUPS,
        options=GROUP_OPTIONS | options,
        kinds=kinds,
        exact=exact,
        in_order=in_order,
    )


CASES = [
    _partial("partial-update", {}),
    _partial("partial-update, ignoring deletes", {"ignore-delete": "true"}, KINDS, ignore_delete=True),
    _partial("partial-update, removing", {"partial-update.remove-record-on-delete": "true"}, KINDS, remove_on_delete=True),
    _grouped("sequence groups", {}),
    _grouped(
        "sequence groups, one removes",
        {"partial-update.remove-record-on-sequence-group": "g"},
        removing=frozenset({"g"}),
        in_order=True,
    ),
    _grouped(
        "sequence groups, both remove",
        {"partial-update.remove-record-on-sequence-group": "g,h1"},
        removing=frozenset({"g", "h1"}),
        in_order=True,
    ),
    _grouped("a sum in a sequence group", {"fields.a.aggregate-function": "sum"}, functions={"a": "sum"}),
    _grouped(
        "functions in sequence groups",
        {
            "fields.a.aggregate-function": "max",
            "fields.b.aggregate-function": "listagg",
            "fields.d.aggregate-function": "last_non_null_value",
        },
        functions={"a": "max", "b": "listagg", "d": "last_non_null_value"},
        kinds=("+I", "+U"),
        exact=False,
    ),
    *(
        _aggregation(function, {"v": function}, kinds=("+I", "+U") if function in WITHOUT_RETRACTIONS else KINDS)
        for function in TYPES
    ),
    _aggregation("all functions", {f"c{i}": function for i, function in enumerate(TYPES)}),
    _aggregation("ignoring retractions", {"a": "ignoring max", "b": "ignoring listagg", "s": "sum"}, kinds=KINDS),
    _aggregation("ignoring deletes", {"a": "max", "b": "first_value"}, kinds=KINDS, ignore_delete=True),
    _aggregation(
        "removing",
        {"a": "max", "b": "first_value", "s": "sum", "l": "listagg", "c": "collect", "v": "last_value"},
        kinds=("+I", "+U", "-D"),
        remove_on_delete=True,
    ),
]
cases = pytest.mark.parametrize("case", CASES, ids=str)


def _with_sequence(case: Case) -> Case:
    """The same table with sequence.field, which puts its values before the order of arrival."""
    engine, types = case.engine, {**case.types, "q": (pa.int32(), st.none() | st.integers(0, 4))}
    functions = {**engine.functions, "q": "last_value"} if engine.engine == "aggregation" else engine.functions
    return replace(
        case,
        name=f"{case.name}, by sequence",
        engine=replace(engine, columns=(*engine.columns, "q"), functions=functions),
        types=types,
        options={**case.options, "sequence.field": "q"},
        sequence="q",
    )


# Retractions by sequence take back what may come later: no rule says what that is.
ADDING = [case for case in CASES if case.kinds == ("+I", "+U") and not case.in_order]
BY_SEQUENCE = [
    *(_with_sequence(case) for case in ADDING),
    _with_sequence(
        _partial("partial-update, removing", {"partial-update.remove-record-on-delete": "true"}, KINDS, remove_on_delete=True)
    ),
    _with_sequence(_aggregation("last_value and retractions", {"v": "last_value", "s": "sum"}, kinds=KINDS)),
]


@dataclass
class Bucket:
    """Runs of one bucket, oldest first."""

    case: Case
    runs: list[pa.Table] = field(default_factory=list)

    def flush(self, records: list[Record]) -> None:
        """Write records as a writer does."""
        schema = self.case.schema
        buffer = WriteBuffer(schema, total_buckets=1, budget_bytes=1 << 20)
        rows = pa.Table.from_pylist([row for _, row in records], schema=schema.arrow_schema)
        buffer.add(rows, pa.array([KINDS.index(kind) for kind, _ in records], pa.int8()))
        for run in buffer.flush():
            table = run.rows.append_column(KIND_COLUMN, pa.array(run.kinds))
            number = len(self.runs)
            self.runs.append(table.append_column(SEQUENCE_COLUMN, pa.array([number] * table.num_rows, pa.int64())))

    def merge(self, start: int, stop: int, *, drop: bool) -> pa.Table:
        """Merge some neighbouring runs."""
        schema = self.case.schema
        spec = MergeSpec(
            key_fields=schema.key_fields,
            output_columns=schema.field_names,
            function=merge_function(schema),
            drop_retractions=drop,
            ordered=True,
            emit_system_columns=True,
        )
        runs = [[_source(run)] for run in self.runs[start:stop]]
        batches = list(merge_section(runs, spec))
        return pa.Table.from_batches(batches) if batches else self.runs[start].slice(0, 0)

    def compact(self, start: int, stop: int) -> None:
        """Replace neighbouring runs by their merge."""
        # Where a -D leaves the value of a sequence field behind, a compaction that drops it lets older records in again.
        merged = self.merge(start, stop, drop=start == 0 and not self.case.engine.groups)
        self.runs[start:stop] = [merged]

    def contents(self) -> list[Row]:
        """What a reader sees."""
        return (
            self.merge(0, len(self.runs), drop=True).drop_columns([KIND_COLUMN, SEQUENCE_COLUMN]).to_pylist() if self.runs else []
        )


def _source(run: pa.Table) -> SortedSource:
    numbers = run[SEQUENCE_COLUMN].to_pylist() or [0]

    def read() -> Iterator[pa.RecordBatch]:
        yield from run.to_batches(max_chunksize=2)

    return SortedSource(min_sequence=min(numbers), max_sequence=max(numbers), read=read, ours=True)


def _bare(case: Case, records: list[Record]) -> Bucket:
    """Every record in a run of its own, untouched by any flush."""
    bucket = Bucket(case)
    for number, (kind, row) in enumerate(records):
        columns = pa.Table.from_pylist([row], schema=case.schema.arrow_schema)
        columns = columns.append_column(KIND_COLUMN, pa.array([KINDS.index(kind)], pa.int8()))
        bucket.runs.append(columns.append_column(SEQUENCE_COLUMN, pa.array([number], pa.int64())))
    return bucket


def _comparable(rows: list[Row]) -> list[Row]:
    """Rows by key; entries of maps and of keyed lists have no order."""
    rows = sorted(rows, key=lambda row: row["id"])
    return [
        {
            name: sorted(value, key=_text) if isinstance(value, list) and value and isinstance(value[0], (tuple, dict)) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def _text(entry: Any) -> str:
    return repr(sorted(entry.items(), key=repr) if isinstance(entry, dict) else entry)


def _expected(case: Case, records: list[Record]) -> list[Row]:
    if case.sequence is not None:
        # Nulls are the smallest; the order of arrival stays within equal values.
        records = sorted(records, key=lambda record: -1 if record[1][case.sequence] is None else record[1][case.sequence])
    return _comparable(list(case.engine.table(records).values()))


@pytest.mark.deep_after(2)
@cases
@settings(max_examples=15)
@given(data=st.data())
def test_a_flush_and_a_merge_give_what_the_rules_say(case: Case, data: st.DataObject) -> None:
    records = data.draw(case.records)
    bucket = Bucket(case)
    start = 0
    while start < len(records):
        # What depends on the order in which late records come is folded as they come.
        stop = start + (data.draw(st.integers(1, 6)) if case.exact else 1)
        bucket.flush(records[start:stop])
        start = stop
        if not case.exact:
            bucket.compact(0, len(bucket.runs))
    assert _comparable(bucket.contents()) == _expected(case, records)


@pytest.mark.deep
@pytest.mark.parametrize("case", [case for case in CASES if case.exact], ids=str)
@settings(max_examples=15)
@given(data=st.data())
def test_compactions_in_any_order_change_nothing(case: Case, data: st.DataObject) -> None:
    records = data.draw(case.records)
    apart = merge_function(case.schema).keeps_retractions_apart
    bucket = Bucket(case)
    for start in range(0, len(records), 2):
        bucket.flush(records[start : start + 2])
    expected = _expected(case, records)
    assert _comparable(bucket.contents()) == expected
    for _ in range(data.draw(st.integers(1, 4))):
        if len(bucket.runs) < 2:
            break
        start = data.draw(st.integers(0, len(bucket.runs) - 2))
        if apart:
            # Retractions of such functions go with all that is older.
            start = 0
        bucket.compact(start, data.draw(st.integers(start + 2, len(bucket.runs))))
        assert _comparable(bucket.contents()) == expected


@pytest.mark.deep
@pytest.mark.parametrize("case", [*CASES, *BY_SEQUENCE], ids=str)
@settings(max_examples=15)
@given(data=st.data())
def test_versions_are_folded_in_steps_only_where_that_changes_nothing(case: Case, data: st.DataObject) -> None:
    """What ``folds_at_once`` and ``keeps_retractions_apart`` do not forbid, any compaction may do."""
    function = merge_function(case.schema)
    records = data.draw(case.records)
    bucket = Bucket(case)
    for record in records:
        bucket.flush([record])
    whole = _comparable(bucket.contents())
    if case.exact:
        assert whole == _expected(case, records)
    while len(bucket.runs) > 1 and data.draw(st.booleans()):
        start = data.draw(st.integers(0, len(bucket.runs) - 2))
        stop = data.draw(st.integers(start + 2, len(bucket.runs)))
        if function.folds_at_once:
            start, stop = 0, len(bucket.runs)
        elif function.keeps_retractions_apart:
            start = 0
        bucket.compact(start, stop)
        assert _comparable(bucket.contents()) == whole
