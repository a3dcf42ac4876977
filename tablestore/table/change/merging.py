"""Runs a merge on the snapshot that it reads.

    rows of the table, a portion at a time -> pairs with rows of the source that match -> the first clause that is for a pair
    rows of the table that have no pair    -> the clauses NOT MATCHED BY SOURCE
    rows of the source that had no pair    -> the clauses NOT MATCHED

Rows are found by their key where the condition says that the whole key is equal, and else by a scan of what may match, which is
joined batch by batch. Values that are equal in SQL match: NaN and NaN, 0.0 and -0.0; NULL matches nothing. The changes are written,
and refused, by the code of SQL's MERGE (:mod:`~tablestore.table.write.changetasks`).

Memory: the source, one portion of the table, and so many pairs at once as :data:`MOST_PAIRS`, or those of one row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.format.snapshot import Snapshot
from tablestore.store.scan.scanplan import plan_scan
from tablestore.store.scan.splitreader import SplitReader
from tablestore.table.change.changedrows import change_rows
from tablestore.table.change.mergeplan import KEY_TYPES, TARGET, MergePlan, PlannedClause, plan_merge
from tablestore.table.change.mergestatement import MergeStatement
from tablestore.table.read.keylookup import KeyLookup, stored_keys
from tablestore.table.write.changetasks import ChangeJob, run_changes
from tablestore.table.write.current import run_until_current, settled
from tablestore.table.write.rowchange import check_change
from tablestore.types.arrays import Mask, Places, one_chunk
from tablestore.types.datatypes import Field
from tablestore.types.expression.coercion import cast_datum
from tablestore.types.expression.evaluate import ColumnValues, holds
from tablestore.types.expression.expression import Call, Column, Expression
from tablestore.types.filter.equalvalues import where_equal
from tablestore.types.filter.predicate import FALSE, Predicate, all_of
from tablestore.types.rowkind import RowKind

MOST_PAIRS = 1 << 20
_NEW_ROWS = 1 << 17
_KINDS = {"UPDATE": RowKind.UPDATE_AFTER, "DELETE": RowKind.DELETE, "INSERT": RowKind.INSERT}


@dataclass(frozen=True, slots=True)
class _Portion:
    """Some rows of the table, and pairs: the row ``places[i]`` of them with the row ``numbers[i]`` of the source."""

    rows: pa.Table
    places: Places
    numbers: Places


def run_merge(merge: MergeStatement) -> Snapshot | None:
    """Merge; None if no row changed. Raises InvalidInputError, UnsupportedError, ConflictError."""
    context, plan = merge.context, plan_merge(merge)
    bounds = None if plan.of("NOT MATCHED BY SOURCE") else _bounds(plan, merge.source)
    check_change(context, plan.change(None))
    return run_until_current(context, partial(_merge, merge, plan, bounds))


def _merge(merge: MergeStatement, plan: MergePlan, bounds: Predicate | None, base: Snapshot | None) -> Snapshot | None:
    context = merge.context
    base = settled(context, base)
    change = plan.change(bounds)
    if plan.is_upsert(context):
        change = replace(change, reads=FALSE, new_keys=False)
    with context.reading():
        job = ChangeJob.of(context, change, base)
        return run_changes(context, merge.log, job, _Run(merge, plan, bounds, base).changes())


class _Run:
    """One attempt, on one snapshot."""

    def __init__(self, merge: MergeStatement, plan: MergePlan, bounds: Predicate | None, base: Snapshot | None) -> None:
        self._context, self._source, self._plan = merge.context, merge.source, plan
        self._bounds, self._base = bounds, base
        self._rest = list(plan.rest)
        self._matched = np.zeros(merge.source.num_rows, np.bool_)

    def changes(self) -> Iterator[pa.Table]:
        """The changed rows."""
        plan = self._plan
        if plan.is_upsert(self._context):
            yield from self._new_rows()
            return
        by_source = plan.of("NOT MATCHED BY SOURCE")
        for candidates in self._portions():
            portion = self._that_hold(candidates)
            self._matched[portion.numbers] = True
            yield from self._changed(plan.of("MATCHED"), portion)
            if by_source:
                unmatched = np.ones(portion.rows.num_rows, np.bool_)
                unmatched[portion.places] = False
                yield from self._changed(by_source, _Portion(portion.rows, np.flatnonzero(unmatched), _NO_ROWS))
        yield from self._new_rows()

    # -- which rows match

    def _portions(self) -> Iterator[_Portion]:
        plan, context = self._plan, self._context
        if self._base is None:
            return
        key = plan.key_of_source()
        if key is None or plan.of("NOT MATCHED BY SOURCE"):
            yield from self._scanned()
            return
        self._rest += [condition for condition in plan.equalities() if not _is_looked_up(condition, key)]
        keys = self._source.select([key[name] for name in plan.keys]).rename_columns(plan.keys)
        if any(map(pa.types.is_null, keys.schema.types)):
            return  # NULL equals nothing.
        stored = stored_keys(keys, [plan.fields[name] for name in plan.keys])
        assert stored is not None, "the key is of types that are looked up"
        for matches in KeyLookup(context, self._base, plan.needed(context)).find(stored):
            yield _Portion(matches.rows, matches.places, matches.keys)

    def _scanned(self) -> Iterator[_Portion]:
        context, join = self._context, _Join(self._plan, self._source)
        reader = SplitReader.whole(context, self._plan.needed(context), self._bounds, positions=not context.schema.is_keyed)
        for split in plan_scan(context, self._base, self._bounds).splits:
            for batch in reader.read(split):
                for start in range(0, batch.num_rows, join.most_rows):
                    rows = pa.Table.from_batches([batch.slice(start, join.most_rows)])
                    yield _Portion(rows, *join.pairs(rows))

    def _that_hold(self, portion: _Portion) -> _Portion:
        """The portion with the pairs for which the rest of the condition is true."""
        for condition in self._rest:
            mask = holds(condition, self._pairs(portion))
            portion = _Portion(portion.rows, portion.places[mask], portion.numbers[mask])
        return portion

    def _pairs(self, portion: _Portion) -> ColumnValues:
        values_by_column: dict[Column, pa.Array] = {}

        def column(reference: Column) -> pa.Array:
            if reference not in values_by_column:
                table, places = (portion.rows, portion.places) if reference.table == TARGET else (self._source, portion.numbers)
                values_by_column[reference] = one_chunk(table.column(reference.name)).take(pa.array(places))
            return values_by_column[reference]

        return ColumnValues(len(portion.places), column)

    # -- what becomes of them

    def _changed(self, clauses: Sequence[PlannedClause], portion: _Portion) -> Iterator[pa.Table]:
        """The changes of rows of the table, which have a pair or none."""
        for clause, chosen in _choices(clauses, self._pairs(portion)):
            if clause.action == "UPDATE" and not clause.sets.expressions:
                # It sets nothing but a key that stays as it is.
                continue
            numbers = portion.numbers[chosen] if len(portion.numbers) else _NO_ROWS
            chosen_portion = _Portion(portion.rows, portion.places[chosen], numbers)
            yield self._rows(clause, self._pairs(chosen_portion), portion.rows.take(pa.array(chosen_portion.places)))

    def _new_rows(self) -> Iterator[pa.Table]:
        """The rows for rows of the source that matched none."""
        clauses = self._plan.of("NOT MATCHED")
        left = np.flatnonzero(~self._matched) if clauses else _NO_ROWS
        for start in range(0, len(left), _NEW_ROWS):
            numbers = left[start : start + _NEW_ROWS]
            rows = self._pairs(_Portion(self._source.slice(0, 0), np.zeros(len(numbers), np.int64), numbers))
            for clause, chosen in _choices(clauses, rows):
                yield self._rows(clause, rows.take(np.flatnonzero(chosen)), None)

    def _rows(self, clause: PlannedClause, rows: ColumnValues, old: pa.Table | None) -> pa.Table:
        columns = {} if old is None else {name: one_chunk(old.column(name)) for name in old.column_names}
        for name in clause.sets.expressions:
            columns[name] = clause.sets.values(self._plan.fields[name], rows)
        return change_rows(self._context, _KINDS[clause.action], columns, rows.count, old)


_NO_ROWS = np.zeros(0, np.int64)


def _choices(clauses: Sequence[PlannedClause], rows: ColumnValues) -> Iterator[tuple[PlannedClause, Mask]]:
    """Each clause with the rows that it is for: the first clause whose condition is true."""
    left = np.arange(rows.count)
    for clause in clauses:
        is_for = np.ones(len(left), np.bool_) if clause.condition is None else holds(clause.condition, rows.take(left))
        if is_for.any():
            chosen = np.zeros(rows.count, np.bool_)
            chosen[left[is_for]] = True
            yield clause, chosen
        left = left[~is_for]


class _Join:
    """Finds the rows of the source whose columns equal those of rows of the table. ``most_rows``: so many may be given at once."""

    def __init__(self, plan: MergePlan, source: pa.Table) -> None:
        self._equal = plan.equal
        self._names = [f"k{place}" for place in range(len(plan.equal))]
        columns = [_comparable(one_chunk(source.column(name)), kind) for _, name, kind in plan.equal]
        self._source = pa.table([*columns, pa.array(np.arange(source.num_rows))], names=[*self._names, "s"])
        counts = self._source.group_by(self._names, use_threads=False).aggregate([("s", "count")]).column("s_count")
        self.most_rows = max(1, MOST_PAIRS // (pc.max(counts).as_py() or 1))

    def pairs(self, rows: pa.Table) -> tuple[Places, Places]:
        """The places of rows, and the numbers of rows of the source that match them."""
        columns = [_comparable(one_chunk(rows.column(name)), kind) for name, _, kind in self._equal]
        left = pa.table([*columns, pa.array(np.arange(rows.num_rows))], names=[*self._names, "t"])
        joined = left.join(self._source, self._names, join_type="inner", use_threads=False)
        places, numbers = (one_chunk(joined.column(name)).to_numpy() for name in ("t", "s"))
        order = np.lexsort((numbers, places))
        return places[order], numbers[order]


def _is_looked_up(condition: Expression, key: Mapping[str, str]) -> bool:
    match condition:
        case Call("=", (Column(name), Column(source))):
            return key.get(name) == source
        case _:
            return False


def _comparable(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of which those that are equal in SQL are equal bytes; no nested ones come here."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    values = cast_datum(values, kind)
    if pa.types.is_floating(kind):
        values = pc.if_else(pc.is_nan(values), pa.scalar(np.nan, kind), pc.add(values, pa.scalar(0, kind)))
    return values


def _bounds(plan: MergePlan, source: pa.Table) -> Predicate | None:
    """A filter that holds for every row of the table that may match; None if nothing can be said."""
    parts = [_part(plan.fields[name], source.column(other), kind) for name, other, kind in plan.equal]
    filters = [part for part in parts if part is not None]
    return all_of(filters) if filters else None


def _part(field: Field, values: pa.ChunkedArray, kind: pa.DataType) -> Predicate | None:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return where_equal(field, values) if kind in KEY_TYPES else None
