"""Defines the columns that a table takes from records, and the rows that records are decoded into."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.cdc.records.evolving import Found
from tablestore.cdc.records.faults import Faults
from tablestore.table.write.retractions import RetractionNeeds
from tablestore.types.arrays import Kinds, Mask, Places, is_true, retracts
from tablestore.types.arrowtypes import to_arrow_type, zero_of
from tablestore.types.datatypes import Field
from tablestore.types.rowkind import RowKind

# 0001-01-01, and the day behind 9999-12-31.
_YEARS = (-719_162, 2_932_897)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The columns of a table. ``partition``: those that partition it. ``needs``: what it asks of rows that are taken back.
    ``violations``: the reasons by the place of each row that its constraints refuse. ``evolves``: columns that records have and the
    table lacks are of interest."""

    fields: tuple[Field, ...]
    key: tuple[str, ...] = ()
    partition: tuple[str, ...] = ()
    needs: RetractionNeeds = field(default_factory=RetractionNeeds)
    violations: Callable[[pa.Table, Kinds], Mapping[int, str]] | None = None
    evolves: bool = False

    @property
    def key_fields(self) -> tuple[Field, ...]:
        """The columns of the primary key."""
        return tuple(field for field in self.fields if field.name in self.key)

    @property
    def fixed(self) -> frozenset[str]:
        """The columns whose type is never changed."""
        return frozenset({*self.key, *self.partition})

    @property
    def before_fields(self) -> tuple[Field, ...]:
        """The columns that count of a row that is taken back."""
        names = {*self.key, *self.needs.ordering}
        return self.fields if self.needs.whole else tuple(field for field in self.fields if field.name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some rows: the record that each comes from, what it does, and columns by name (others are null)."""

    places: Places
    kinds: Kinds
    columns: dict[str, pa.Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """Rows of the table in the order of their records. ``kinds`` None: all of them are rows to be added. ``found``: the types of
    columns that the table lacks or that are too narrow."""

    rows: pa.Table
    kinds: Kinds | None = None
    faults: Faults = field(default_factory=dict)
    found: Found = field(default_factory=dict)


def decoded(target: Target, parts: Sequence[Part], faults: Faults) -> Decoded:
    """The rows of ``parts`` together; of one record those of an earlier part come first. Rows of records at fault are left out, and
    so are those, which are faults too, that lack a value where the table takes no NULL, or whose row violates a constraint."""
    faults = dict(faults)
    for part in parts:
        _note_missing(target, part, faults)
        _note_beyond(target, part, faults)
    rows = _together(target, parts, faults)
    if target.violations is None or not rows.rows.num_rows:
        return rows.decoded(target, faults)
    violations = target.violations(rows.rows, rows.kinds)
    if not violations:
        return rows.decoded(target, faults)
    for place, reason in violations.items():
        faults.setdefault(int(rows.places[place]), reason)
    return _together(target, parts, faults).decoded(target, faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows of several parts, in the order of their records."""

    rows: pa.Table
    kinds: Kinds
    places: Places

    def decoded(self, target: Target, faults: Faults) -> Decoded:
        only_adds = not retracts(self.kinds).any()
        return Decoded(rows=self.rows, kinds=None if only_adds and not target.needs.whole else self.kinds, faults=faults)


def _together(target: Target, parts: Sequence[Part], faults: Faults) -> _Rows:
    """The rows of the parts but for those of records at fault."""
    kept_parts = [_kept_rows(part, ~_named(part.places, faults)) for part in parts]
    kept_parts = [part for part in kept_parts if len(part.places)]
    schema = pa.schema(
        [
            pa.field(target_field.name, to_arrow_type(target_field.type), target_field.type.nullable)
            for target_field in target.fields
        ]
    )
    if not kept_parts:
        return _Rows(rows=schema.empty_table(), kinds=inserts(0), places=np.zeros(0, np.int64))
    tables = [_table(target, part, schema) for part in kept_parts]
    kinds = np.concatenate([part.kinds for part in kept_parts])
    places = np.concatenate([part.places for part in kept_parts])
    rows = pa.concat_tables(tables)
    if len(kept_parts) > 1:
        order = np.argsort(places, kind="stable")
        rows, kinds, places = rows.take(pa.array(order)), kinds[order], places[order]
    return _Rows(rows=rows, kinds=kinds, places=places)


def _note_missing(target: Target, part: Part, faults: Faults) -> None:
    """Add the records that lack a value where the table takes no NULL."""
    adds = ~retracts(part.kinds)
    for target_field in target.fields:
        column = part.columns.get(target_field.name)
        if target_field.type.nullable or (target_field.default_value is not None and target_field.name not in target.key):
            continue
        if column is not None and not column.null_count:
            continue
        missing = np.ones(len(part.places), dtype=np.bool_) if column is None else column.is_null().to_numpy(zero_copy_only=False)
        if target_field.name not in target.key:
            # Only the key counts of a row that goes.
            missing &= adds
        for place in part.places[missing].tolist():
            faults.setdefault(place, f"column {target_field.name!r} takes no NULL, and the record has no value for it")


def _note_beyond(target: Target, part: Part, faults: Faults) -> None:
    """Add the records whose row lies at a date that metadata cannot hold."""
    for name in target.fixed & part.columns.keys():
        column = part.columns[name]
        if not pa.types.is_date(column.type) and not (pa.types.is_timestamp(column.type) and column.type.unit != "ns"):
            continue
        kind = column.type if pa.types.is_date(column.type) else pa.timestamp(column.type.unit)
        least, end = (pa.scalar(day, pa.date32()).cast(pa.timestamp("s")).cast(kind) for day in _YEARS)
        beyond = pc.or_(pc.less(column.cast(kind), least), pc.greater_equal(column.cast(kind), end))
        for place in part.places[is_true(beyond)].tolist():
            faults.setdefault(place, f"column {name!r} finds rows: expected a date or timestamp of the years 1 to 9999")


def _table(target: Target, part: Part, schema: pa.Schema) -> pa.Table:
    columns = []
    for target_field, stored in zip(target.fields, schema, strict=True):
        column = part.columns.get(target_field.name)
        if column is None:
            column = pa.nulls(len(part.places), stored.type)
        # The writer looks up the order of a delete that has none.
        if (
            not stored.nullable
            and column.null_count
            and target_field.default_value is None
            and target_field.name not in target.needs.ordering
        ):
            column = pc.fill_null(column, zero_of(stored.type))
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=schema)


def _kept_rows(part: Part, keep: Mask) -> Part:
    if keep.all():
        return part
    mask = pa.array(keep)
    return Part(
        places=part.places[keep],
        kinds=part.kinds[keep],
        columns={name: column.filter(mask) for name, column in part.columns.items()},
    )


def _named(places: Places, faults: Faults) -> Mask:
    if not faults:
        return np.zeros(len(places), dtype=np.bool_)
    named: Mask = np.isin(places, np.fromiter(faults, dtype=np.int64, count=len(faults)))
    return named


def inserts(count: int) -> Kinds:
    """The kinds of so many rows that are added."""
    return np.full(count, int(RowKind.INSERT), dtype=np.int8)
