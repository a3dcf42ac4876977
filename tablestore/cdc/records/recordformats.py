"""Decodes records of a topic into changes of a table: the formats, and what each record means in them.

    debezium-json   {"before":{…},"after":{…},"op":"c"}   c, r: the row after is new, u: it replaces the one before, d: that goes
    debezium-avro   the same, as fields of a schema       the same
    json            {…}                                   the row itself
    avro            fields, in the order of a schema      the row itself
    all             no value                              the row that the key names is gone

JSON may have its schema around it. Where rows simply replace each other only the key of the row before counts: it is taken back
if the row after has another. An append table takes new rows only. What cannot be understood is named with the reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.cdc.records.avroobjects import AvroReader, AvroSchema
from tablestore.cdc.records.evolving import Found, Sighting, types_seen
from tablestore.cdc.records.faults import Faults, at_places
from tablestore.cdc.records.jsonobjects import ObjectReader, Objects, Row, parse_record
from tablestore.cdc.records.recordkeys import KeyReader
from tablestore.cdc.records.schemaenvelope import by_schema
from tablestore.cdc.records.target import Decoded, Part, Target, decoded
from tablestore.cdc.records.wirevalues import ColumnMeaning
from tablestore.types.arrays import Kinds, Mask, Places, is_true
from tablestore.types.datatypes import AtomicType, DataType, Field, TypeRoot
from tablestore.types.rowkind import RowKind

Bytes = Sequence[bytes | None]
_ONLY_A_KEY = (
    "without the row before: the table takes its values back from what is stored, and `before` is null or holds no more than "
    "the key. Have the database write whole rows before (PostgreSQL: REPLICA IDENTITY FULL)"
)
# The places at which a schema describes the columns.
_ROWS = ("after", "before")


class Decoder(Protocol):
    """Makes rows of one table out of records."""

    def decode(self, keys: Bytes, values: Bytes) -> Decoded:
        """The changes that these records make, in their order; those that cannot be understood are named by their place."""
        ...


class Reader(Protocol):
    """Makes columns out of texts."""

    def read(self, values: Sequence[bytes], meanings: Mapping[str, ColumnMeaning], /) -> Objects:
        """The objects in ``values``. ``meanings``: what their schema says of columns."""
        ...


class SeenColumns:
    """Collects what the records of a batch say of columns that the table lacks, or that are too narrow."""

    def __init__(self, target: Target) -> None:
        self._column_names = {field.name for field in target.fields}
        self._sightings: list[Sighting] = []
        self._narrow: set[int] = set()

    def add(self, objects: Objects, places: Places) -> None:
        """Takes what records at ``places`` hold."""
        self._narrow.update(places[sorted(objects.narrow)].tolist())
        self._sightings += [sighting.at(places) for sighting in objects.seen]

    def describe(self, types: Sequence[tuple[Found, Places]], places: Places) -> None:
        """Takes the types that schemas describe, each of some of the records at ``places``."""
        for described, numbers in types:
            for name, kinds in described.items():
                self._sightings += [
                    Sighting(name, kind, places[numbers], is_new=name not in self._column_names, beyond_double=_is_decimal(kind))
                    for kind in kinds
                ]

    def with_types(self, rows: Decoded) -> Decoded:
        """The rows, with the types that count."""
        return replace(rows, found=types_seen(self._sightings, rows.faults, self._narrow))


class PlainRows:
    """Each record is a row."""

    def __init__(self, target: Target, schema: AvroSchema | None = None, key_schema: AvroSchema | None = None) -> None:
        self._target, self._keys = target, KeyReader(target, key_schema)
        columns = ObjectReader({"": target.fields}, looks_at="" if target.evolves else None, fixed=target.fixed)
        self._reader: Reader = columns if schema is None else AvroReader(columns, schema)

    def decode(self, keys: Bytes, values: Bytes) -> Decoded:
        """Rows to be added, and deletions."""
        texts, places, parts, faults = _split(self._keys, keys, values)
        seen = SeenColumns(self._target)
        for group in by_schema(texts):
            where = places[group.places]
            objects = self._reader.read(group.payloads, group.meanings)
            faults.update(at_places(objects.faults, where.tolist()))
            parts.append(_part(self._target.fields, objects.rows[""], where, RowKind.INSERT))
            seen.add(objects, where)
            seen.describe(group.types, places)
        return seen.with_types(decoded(self._target, parts, faults))


class DebeziumChanges:
    """Each record says what a row was before a change and what it is afterwards."""

    def __init__(self, target: Target, schema: AvroSchema | None = None, key_schema: AvroSchema | None = None) -> None:
        self._target, self._keys = target, KeyReader(target, key_schema)
        self._before = target.before_fields
        looks_at = "after" if target.evolves else None
        columns = ObjectReader({"before": self._before, "after": target.fields}, ["op"], looks_at, fixed=target.fixed)
        self._reader: Reader = columns if schema is None else AvroReader(columns, schema, inside=_ROWS)
        self._is_json = schema is None

    def decode(self, keys: Bytes, values: Bytes) -> Decoded:
        """The rows taken back and added."""
        has_value = np.fromiter((value is not None for value in values), dtype=np.bool_, count=len(values))
        texts, places = [value for value in values if value is not None], np.flatnonzero(has_value)
        deletes = np.zeros(len(values), dtype=np.bool_)
        parts: list[Part] = []
        faults: Faults = {}
        seen = SeenColumns(self._target)
        for group in by_schema(texts, inside=_ROWS):
            objects = self._reader.read(group.payloads, group.meanings)
            where = places[group.places]
            changes, wrong = self._changes(objects, [keys[place] for place in where.tolist()], group.payloads)
            seen.add(objects, where)
            seen.describe(group.types, places)
            faults.update(at_places(wrong, where.tolist()))
            deletes[where] = is_true(pc.equal(objects.texts["op"], "d"))
            parts += [Part(places=where[part.places], kinds=part.kinds, columns=part.columns) for part in changes]
        more, wrong = self._keys.deletions(keys, self._tombstones(keys, has_value, deletes))
        return seen.with_types(decoded(self._target, [*parts, *more], {**faults, **wrong}))

    def _tombstones(self, keys: Bytes, has_value: Mask, deletes: Mask) -> Places:
        """The records without a value that say something: not those behind the ``d`` of their key, which are for the compaction of
        the topic."""
        if RowKind.DELETE in {*self._target.needs.values, *self._target.needs.refused}:
            # Their ``d`` has taken the values back, or was refused, and a key says less.
            return np.zeros(0, dtype=np.int64)
        empty = np.flatnonzero(~has_value)
        behind = [place > 0 and bool(deletes[place - 1]) and keys[place - 1] == keys[place] is not None for place in empty.tolist()]
        return empty[~np.array(behind, dtype=np.bool_)]

    def _changes(self, objects: Objects, keys: Bytes, payloads: Sequence[bytes]) -> tuple[list[Part], Faults]:
        target, needs = self._target, self._target.needs
        before, after, ops, faults = objects.rows["before"], objects.rows["after"], objects.texts["op"], dict(objects.faults)
        new, updated, deleted = (is_true(pc.is_in(ops, value_set=pa.array(names))) for names in (["c", "r"], ["u"], ["d"]))
        _note(faults, ~(new | updated | deleted), lambda place: f"expected op c, r, u or d, found {ops[place].as_py()!r}")
        _note(faults, (new | updated) & ~after.present, lambda place: f"op {ops[place].as_py()!r} without the row in `after`")
        if not target.key:
            needs_key = "and the table has no primary key: it takes c and r"
            _note(faults, updated | deleted, lambda place: f"op {ops[place].as_py()!r}, {needs_key}")
        if not (updated | deleted).any():
            return [_part(target.fields, after, np.arange(len(ops)), RowKind.INSERT)], faults
        has_before = before.present.copy()
        for field, column in zip(self._before, before.columns, strict=True):
            if field.name in target.key:
                has_before &= is_true(column.is_valid())
        for kind, chosen in ((RowKind.UPDATE_BEFORE, updated), (RowKind.DELETE, deleted)):
            if (why := needs.refused.get(kind)) is not None:
                _note(faults, chosen, lambda place, why=why: f"op {ops[place].as_py()!r}: {why}")  # type: ignore[misc]
            if kind in needs.values:
                whole = has_before & self._holds_more(before, chosen & has_before, payloads)
                _note(faults, chosen & ~whole, lambda place: f"op {ops[place].as_py()!r} {_ONLY_A_KEY}")
        moved = updated & has_before & self._moved(before, after)
        unnamed = np.flatnonzero(deleted & ~has_before)
        parts: list[Part] = []
        if len(unnamed) and RowKind.DELETE not in needs.values:
            parts, wrong = self._keys.deletions(keys, unnamed)
            faults.update(wrong)
        old = deleted & has_before
        if needs.whole:
            parts.append(_part(self._before, before, np.flatnonzero(updated & has_before), RowKind.UPDATE_BEFORE))
        else:
            old |= moved
        parts.append(_part(self._before, before, np.flatnonzero(old), RowKind.DELETE))
        kinds = np.where(updated, int(RowKind.UPDATE_AFTER), int(RowKind.INSERT)).astype(np.int8)
        parts.append(_part(target.fields, after, np.flatnonzero(new | updated), kinds))
        return parts, faults

    def _holds_more(self, before: Row, chosen: Mask, payloads: Sequence[bytes]) -> Mask:
        """True for rows that hold a value beside the key. What the table has no column for counts too: such rows are looked at one
        by one, and there are few of them."""
        more = np.zeros(len(chosen), dtype=np.bool_)
        for field, column in zip(self._before, before.columns, strict=True):
            if field.name not in self._target.key:
                more |= is_true(column.is_valid())
        for place in np.flatnonzero(chosen & ~more).tolist() if self._is_json else ():
            row = parse_record(payloads[place])["before"]
            members = row.items() if isinstance(row, dict) else ()
            more[place] = any(value is not None for name, value in members if name not in self._target.key)
        return more

    def _moved(self, before: Row, after: Row) -> Mask:
        """True where the key differs."""
        moved = np.zeros(len(before.present), dtype=np.bool_)
        columns = dict(zip((field.name for field in self._target.fields), after.columns, strict=True))
        for field, old in zip(self._before, before.columns, strict=True):
            if field.name in self._target.key:
                moved |= is_true(pc.not_equal(old, columns[field.name]))
        return moved


AVRO_FORMATS = ("debezium-avro", "avro")
FORMATS = ("debezium-json", "json", *AVRO_FORMATS)


def is_changes(record_format: str) -> bool:
    """True if records say themselves what they do to rows."""
    return record_format.startswith("debezium-")


def open_decoder(
    record_format: str, target: Target, schema: AvroSchema | None = None, key_schema: AvroSchema | None = None
) -> Decoder:
    """The decoder of a format; the schemas: of records of Avro, and of their keys if those are Avro too."""
    return (DebeziumChanges if is_changes(record_format) else PlainRows)(target, schema, key_schema)


def _split(reader: KeyReader, keys: Bytes, values: Bytes) -> tuple[list[bytes], Places, list[Part], Faults]:
    """The values that there are, the records that they are of, and the deletions by the others."""
    present = [value for value in values if value is not None]
    if len(present) == len(values):
        return present, np.arange(len(values), dtype=np.int64), [], {}
    full = np.fromiter((value is not None for value in values), dtype=np.bool_, count=len(values))
    parts, faults = reader.deletions(keys, np.flatnonzero(~full))
    return present, np.flatnonzero(full), parts, faults


def _part(fields: Sequence[Field], row: Row, places: Places, kinds: Kinds | RowKind) -> Part:
    """The rows of some records; ``kinds``: of all records, or one for all."""
    columns = {field.name: column for field, column in zip(fields, row.columns, strict=True)}
    if len(places) < len(row.present):
        columns = {name: column.take(pa.array(places)) for name, column in columns.items()}
    chosen = np.full(len(places), int(kinds), dtype=np.int8) if isinstance(kinds, RowKind) else kinds[places]
    return Part(places=places, kinds=chosen, columns=columns)


def _note(faults: Faults, wrong: Mask, reason: Callable[[int], str]) -> None:
    for place in np.flatnonzero(wrong).tolist():
        faults.setdefault(place, reason(place))


def _is_decimal(kind: DataType) -> bool:
    return isinstance(kind, AtomicType) and kind.root is TypeRoot.DECIMAL
