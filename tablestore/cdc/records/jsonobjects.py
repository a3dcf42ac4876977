"""Reads JSON objects as columns, as many as can be read: the others are named, with what is wrong with them.

    fast    all texts are one buffer for Arrow's JSON reader, with the types that the columns usually come as
    slow    where it refuses that: each text by Python's reader, then values of one kind (numbers, texts, …) together

The slow way finds the texts that are no JSON, and the values that came otherwise than expected; the reader remembers how, so that
the fast way takes the next ones. An object may hold rows below other names, as Debezium's ``before`` and ``after``: a *place* is
the name above a row, "" where the object is the row. Names that are not asked for are skipped, missing ones are null.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.cdc.records.avrolimits import MOST_NESTED
from tablestore.cdc.records.evolving import MOST_COLUMNS, Sighting, type_of_json, type_of_value, why_no_column, widened
from tablestore.cdc.records.faults import Faults, at_places, convert_each
from tablestore.cdc.records.wholenumbers import beyond_double, is_beyond_double, may_be_changed, refuse_changed
from tablestore.cdc.records.wirevalues import PLAIN, ColumnMeaning, Wire, conform_column, to_column, usual_wire, wire_type
from tablestore.json.jsonrows import has_map, read_objects, values_to_array
from tablestore.json.jsonvalues import NamedTwice, json_text, parse_object, whole_number
from tablestore.types.arrays import Mask, Places, one_chunk
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import DataType, Field

_OPENING, _CLOSING = ord("{"), ord("}")
# The step in the level that a byte outside of texts makes.
_STEPS = np.array([(byte in b"{[") - (byte in b"}]") for byte in range(256)], dtype=np.int8)
_MOST_NAMES = 2 * MOST_COLUMNS
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NAME, _NAME_WITH_ESCAPES = re.compile(rb'"([^"]*)"[ \t\r\n]*:'), re.compile(rb'"((?:[^"\\]|\\.)*)"[ \t\r\n]*:', re.DOTALL)
_INT64 = range(-(2**63), 2**63)

_Kind = tuple[DataType | None, bool]
"""The type of values, and whether a DOUBLE would change them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The rows below one name. ``columns`` are in the order asked for, of the types of their fields; null where there is no row.
    ``present``: whether there is one."""

    columns: Sequence[pa.Array]
    present: Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """Columns of as many rows as there were texts. ``texts``: values of the names asked for as texts. A text at fault has rows,
    which mean nothing. ``seen``: the types of names that were not asked for, and of values that did not fit; ``narrow``: the texts
    at fault only because of such values, for which a wider type would do."""

    rows: Mapping[str, Row]
    texts: Mapping[str, pa.Array]
    faults: Faults
    seen: Sequence[Sighting] = ()
    narrow: Set[int] = frozenset()


class ObjectReader:
    """Reads objects with rows at the given places. ``texts``: names beside them that hold texts. ``looks_at``: the place where
    names that are not asked for, and values that do not fit, are of interest; ``fixed``: the columns that keep their type."""

    def __init__(
        self,
        places: Mapping[str, Sequence[Field]],
        texts: Sequence[str] = (),
        looks_at: str | None = None,
        *,
        fixed: Collection[str] = (),
    ) -> None:
        self._places, self._texts, self._looks_at, self._fixed = places, texts, looks_at, fixed
        self._wires = {
            (place, field.name): usual_wire(to_arrow_type(field.type)) for place, fields in places.items() for field in fields
        }
        self._has_map = any(has_map(to_arrow_type(field.type)) for fields in places.values() for field in fields)

    def read(self, values: Sequence[bytes], meanings: Mapping[str, ColumnMeaning]) -> Objects:
        """The objects in ``values``. ``meanings``: what their schema says of columns."""
        if not self._has_map and all(values):
            try:
                return self._fast(values, meanings)
            except (pa.ArrowException, ValueError):
                pass
        return self._slow(values, meanings)

    def _fast(self, values: Sequence[bytes], meanings: Mapping[str, ColumnMeaning]) -> Objects:
        data = b"\n".join(values)
        _check_cut(data, values)
        if any(map(_is_deep, values)) or (self._looks_at is not None and _has_many_names(data)):
            raise ValueError("only for one by one")
        schema_fields: list[pa.Field] = [pa.field(name, pa.string()) for name in self._texts]
        for place, fields in self._places.items():
            wires = [
                pa.field(
                    field.name,
                    wire_type(to_arrow_type(field.type), self._wires[place, field.name], meanings.get(field.name, PLAIN)),
                )
                for field in fields
            ]
            schema_fields += wires if not place else [pa.field(place, pa.struct(wires))]
        table = read_objects(
            data,
            pa.schema(schema_fields),
            others="ignore" if self._looks_at is None else "infer",
            longest=max(map(len, values)),
            count=len(values),
        ).combine_chunks()
        rows, faults, report = {}, Faults(), _Report()
        for place, fields in self._places.items():
            if place:
                struct = one_chunk(table.column(place))
                present = struct.is_valid().to_numpy(zero_copy_only=False)
                raw = dict(zip((child.name for child in struct.type), struct.flatten(), strict=True))
            else:
                present, raw = (
                    np.ones(len(values), dtype=np.bool_),
                    {name: one_chunk(table.column(name)) for name in table.schema.names},
                )
            columns = []
            for field in fields:
                array = raw.pop(field.name)
                if pa.types.is_float64(array.type) and pc.any(pc.is_inf(array)).as_py():
                    raise ValueError("a number that is too large")
                if may_be_changed(array, to_arrow_type(field.type), data):
                    raise ValueError("a whole number that was rounded")
                column, wrong = _converted(array, field, meanings.get(field.name, PLAIN))
                columns.append(column)
                faults.update(wrong)
                report.note_wrong(
                    field,
                    dict.fromkeys(wrong, type_of_json(array.type)),
                    looks=place == self._looks_at and field.name not in self._fixed,
                )
            rows[place] = Row(columns=columns, present=present)
            if place == self._looks_at:
                for name, array in raw.items():
                    if name not in self._texts:
                        if may_be_changed(array, array.type, data):
                            raise ValueError("a whole number that was rounded")
                        valid, kind = array.is_valid().to_numpy(zero_copy_only=False), type_of_json(array.type)
                        beyond = beyond_double(array) if pa.types.is_int64(array.type) else np.zeros(len(array), dtype=np.bool_)
                        where = {(kind, large): np.flatnonzero(valid & (beyond == large)) for large in (False, True)}
                        faults.update(report.note_new(name, where, meanings.get(name, PLAIN)))
        texts = {name: one_chunk(table.column(name)) for name in self._texts}
        return Objects(rows=rows, texts=texts, faults=faults, seen=report.seen, narrow=report.narrow)

    def _slow(self, values: Sequence[bytes], meanings: Mapping[str, ColumnMeaning]) -> Objects:
        # One by one: what is at fault has to be found, and nothing vectorised says where it is.
        objects: list[dict[str, Any]] = []
        faults: Faults = {}
        for number, value in enumerate(values):
            try:
                objects.append(parse_record(value))
            except ValueError as error:
                faults[number] = str(error)
                objects.append({})
        return self.columns(objects, faults, meanings)

    def columns(self, objects: Sequence[dict[str, Any]], faults: Faults, meanings: Mapping[str, ColumnMeaning]) -> Objects:
        """Objects that were parsed as columns. ``faults``: of texts that were not, in whose place there is an empty one."""
        rows, report = {}, _Report(hard=faults)
        for place, fields in self._places.items():
            row_objects: list[Any] = [record.get(place) for record in objects] if place else list(objects)
            for number, row in enumerate(row_objects):
                if row is not None and not isinstance(row, dict):
                    faults.setdefault(number, f"expected an object as {place!r}, found {row!r:.100}")
                    report.hard.add(number)
                    row_objects[number] = None
            columns = []
            for field in fields:
                # A null is a value of any kind.
                cells = [row.get(field.name) if row else None for row in row_objects]
                column, wrong = self._by_kind(place, cells, field, meanings.get(field.name, PLAIN))
                columns.append(column)
                faults = {**wrong, **faults}
                report.note_wrong(
                    field,
                    {number: type_of_value(cells[number]) for number in wrong},
                    looks=place == self._looks_at and field.name not in self._fixed,
                )
            if place == self._looks_at:
                known_names = {field.name for field in fields}
                new_fields: dict[str, dict[_Kind, list[int]]] = {}
                for number, row in enumerate(row_objects):
                    for name in (row or {}).keys() - known_names:
                        if isinstance(row[name], NamedTwice):
                            faults.setdefault(number, f"field {name!r}: found {row[name]}")
                            report.hard.add(number)
                            continue
                        seen = (type_of_value(row[name]), is_beyond_double(row[name]))
                        new_fields.setdefault(name, {}).setdefault(seen, []).append(number)
                for name, kinds in new_fields.items():
                    where = {kind: np.array(numbers) for kind, numbers in kinds.items()}
                    for number, reason in report.note_new(name, where, meanings.get(name, PLAIN)).items():
                        faults.setdefault(number, reason)
            rows[place] = Row(columns=columns, present=np.array([row is not None for row in row_objects], dtype=np.bool_))
        texts = {}
        for name in self._texts:
            values = [record.get(name) for record in objects]
            texts[name] = pa.array([value if type(value) is str and _is_unicode(value) else None for value in values], pa.string())
        return Objects(rows=rows, texts=texts, faults=faults, seen=report.seen, narrow=report.narrow)

    def _by_kind(self, place: str, cells: Sequence[Any], field: Field, meaning: ColumnMeaning) -> tuple[pa.Array, Faults]:
        """A column of values of several kinds: those of one kind are converted together."""
        kind = to_arrow_type(field.type)
        by_kind: dict[type, list[int]] = {}
        for number, cell in enumerate(cells):
            if cell is not None:
                by_kind.setdefault(type(cell), []).append(number)
        wires = {_wire_of(cell_type) for cell_type in by_kind if cell_type is not NamedTwice}
        if len(wires) == 1 and not pa.types.is_nested(kind):
            self._wires[place, field.name] = next(iter(wires))
        parts, order, faults = [], [], Faults()
        for python, numbers in by_kind.items():
            part, wrong = convert_each([cells[number] for number in numbers], _PartOf(python, field, kind, meaning), kind)
            parts.append(part)
            order += numbers
            faults.update(at_places(_of_column(field, wrong), numbers))
        if not parts:
            return pa.nulls(len(cells), kind), faults
        indices = np.full(len(cells), -1, dtype=np.int64)
        indices[order] = np.arange(len(order))
        return pa.concat_arrays(parts).take(pa.array(indices, mask=indices < 0)), faults


@dataclass(frozen=True, slots=True)
class _PartOf:
    """Values of one Python type become values of a column."""

    python: type
    field: Field
    kind: pa.DataType
    meaning: ColumnMeaning

    def __call__(self, values: Sequence[Any]) -> pa.Array:
        if self.python is NamedTwice:
            raise ValueError(f"found {values[0]}")
        wire = _wire_of(self.python)
        if self.python is bytes:
            return to_column(pa.array(values, pa.binary()), self.field, self.meaning)
        refuse_changed(values, self.kind)
        if pa.types.is_nested(self.kind):
            return conform_column(values_to_array(values, self.kind), self.field)
        if wire == "nested":
            if not pa.types.is_string(self.kind):
                raise ValueError(f"expected a single value, found {values[0]!r:.100}")
            values, wire = [json_text(value) for value in values], "text"
        if wire == "number":
            return self._of_numbers(values)
        target = wire_type(self.kind, wire, self.meaning)
        if pa.types.is_decimal(target):
            target = pa.string()
        return to_column(pa.array(values, target), self.field, self.meaning)

    def _of_numbers(self, values: Sequence[Any]) -> pa.Array:
        if pa.types.is_string(self.kind) or pa.types.is_decimal(self.kind):
            return to_column(pa.array([str(value) for value in values], pa.string()), self.field, PLAIN)
        if pa.types.is_floating(self.kind):
            numbers = pa.array([float(value) for value in values], pa.float64())
            # A float of Python comes from Avro, or is the word for it: it may be infinite.
            if self.python is not float and pc.any(pc.is_inf(numbers)).as_py():
                raise ValueError(f"a number is too large: {values[0]!s:.100}")
            return to_column(numbers, self.field, self.meaning)
        if self.python is float:
            return to_column(pa.array(values, pa.float64()), self.field, self.meaning)
        # Whole numbers may be written with a point.
        whole = [value if isinstance(value, int) else whole_number(value) for value in values]
        if not all(value in _INT64 for value in whole):
            raise ValueError(f"a number of more than 64 bits: {values[0]!s:.100}")
        return to_column(pa.array(whole, pa.int64()), self.field, self.meaning)


class _Report:
    """Collects what records say of columns that the table lacks, or that are too narrow. ``hard``: those at fault for another
    reason."""

    def __init__(self, hard: Iterable[int] = ()) -> None:
        self.seen: list[Sighting] = []
        self.hard, self._narrow = set(hard), set[int]()

    @property
    def narrow(self) -> Set[int]:
        """The records at fault only because columns are too narrow."""
        return self._narrow - self.hard

    def note_new(self, name: str, kinds: Mapping[_Kind, Places], meaning: ColumnMeaning) -> Faults:
        """Values of a name that the table lacks; those are at fault for which it can have no column."""
        faults: Faults = {}
        for (kind, beyond), places in kinds.items():
            if kind is None or not len(places):
                continue
            if (why := why_no_column(name) or meaning.wrong) is not None:
                faults.update(dict.fromkeys(places.tolist(), f"field {name!r} cannot become a column: {why}"))
            self.seen.append(Sighting(name, kind, places, is_new=True, beyond_double=beyond))
        self.hard.update(faults)
        return faults

    def note_wrong(self, field: Field, wrong: Mapping[int, DataType | None], *, looks: bool) -> None:
        """Types of values that did not fit their column, by their places."""
        for place, kind in wrong.items():
            if not looks or kind is None or widened(field.type, kind) is None:
                self.hard.add(place)
            else:
                self._narrow.add(place)
                self.seen.append(Sighting(field.name, kind, np.array([place]), is_new=False))


def _converted(array: pa.Array, field: Field, meaning: ColumnMeaning) -> tuple[pa.Array, Faults]:
    column, faults = convert_each(array, lambda part: to_column(part, field, meaning), to_arrow_type(field.type))
    return column, _of_column(field, faults)


def _of_column(field: Field, faults: Faults) -> Faults:
    return {place: f"column {field.name!r}: {reason}" for place, reason in faults.items()}


def _check_cut(data: bytes, values: Sequence[bytes]) -> None:
    """Each text begins and ends as an object does: then no object goes over several texts, and if there are as many objects as
    texts, there is one in each. Raises ValueError."""
    ends = np.cumsum(np.fromiter(map(len, values), dtype=np.int64, count=len(values)) + 1) - 1
    buffer = np.frombuffer(data, dtype=np.uint8)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1] + 1])
    if not ((buffer[starts] == _OPENING) & (buffer[ends - 1] == _CLOSING)).all():
        raise ValueError("a text that is no object")


def parse_record(value: bytes) -> dict[str, Any]:
    """The object that a record is. Raises ValueError for any other text, also for one that is nested deeper than any column."""
    if not value:
        raise ValueError("the value is empty")
    if _is_deep(value):
        raise ValueError(f"nested more than {MOST_NESTED} levels deep: {value[:100]!r}")
    return parse_object(value)


def _is_unicode(text: str) -> bool:
    """True if a text has no half of a character, which JSON can write and no column takes."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _is_deep(value: bytes) -> bool:
    """True if a text is nested more deeply than any column needs: each level takes stack of the readers behind, Arrow's too."""
    if value.count(b"{") + value.count(b"[") <= MOST_NESTED:
        return False
    marks = np.frombuffer(_TEXT.sub(b"", value), dtype=np.uint8)
    return bool(np.cumsum(_STEPS[marks], dtype=np.int64).max(initial=0) > MOST_NESTED)


def _has_many_names(data: bytes) -> bool:
    """True if objects have so many different names that a column for each, of all rows, takes too much memory."""
    names = _NAME_WITH_ESCAPES if b'\\"' in data else _NAME
    return len(set(names.findall(data))) > _MOST_NAMES


def _wire_of(python: type) -> Wire:
    if python in (str, bytes):
        return "text"
    if python is bool:
        return "boolean"
    return "nested" if python in (dict, list) else "number"
