"""Reads the bounds of columns of manifest entries, from their rows of bounds or from where they are stored beside the entries.

Bounds have the form of :func:`tablestore.format.rowcolumns.row_field`, null where unknown. :func:`bounds_to_store` computes those
that a sidecar gets, by the same rules by which they would be read.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.format.manifest.entrycolumns import BoundedColumn, Bounds, EntryColumns, StoredBounds
from tablestore.format.rowcolumns import has_order, row_field
from tablestore.types.arrays import mask_array, numbers_of, text_scalar
from tablestore.types.datatypes import DataType, Field, with_nullable
from tablestore.types.schema import TableSchema
from tablestore.types.typestring import type_to_sql

# Statistics of another choice of columns are read for each choice by itself.
_MOST_CHOICES = 16
_SEPARATOR = "\x1f"
# Filters are of the first columns: wide tables have thousands.
_MOST_STORED = 32


class ColumnBounds:
    """The bounds of columns, one low and one high of each entry, null where unknown."""

    def of(self, name: str) -> Bounds | None:
        """The bounds of a column; None if they are all unknown."""
        raise NotImplementedError

    def type_of(self, name: str) -> DataType:
        """The type of a column."""
        raise NotImplementedError


class KeyBounds(ColumnBounds):
    """Bounds of the columns of the key."""

    def __init__(self, entries: EntryColumns, schema: TableSchema) -> None:
        self._entries, self._fields = entries, schema.key_fields
        self._places = {field.name: place for place, field in enumerate(self._fields)}

    def type_of(self, name: str) -> DataType:
        return self._fields[self._places[name]].type

    def of(self, name: str) -> Bounds:
        place = self._places[name]
        if (stored := self._entries.bounds(_bounded_key(self._fields, place))) is not None:
            return stored
        low, high = self._rows(place)
        return _fields(self._entries, low, high, len(self._fields), place, self._fields[place].type)

    def columns(self, name: str) -> tuple[str, str]:
        """The columns of the entries that the bounds of a column are read from."""
        place = self._places[name]
        stored = _bounded_key(self._fields, place)
        low, high = stored.stored("low"), stored.stored("high")
        return (low, high) if self._entries.stores(low) and self._entries.stores(high) else self._rows(place)

    @staticmethod
    def _rows(place: int) -> tuple[str, str]:
        # The first and the last key are exact, but order all columns together: they bound the first one.
        return ("min_key", "max_key") if place == 0 else ("key_stats.min_values", "key_stats.max_values")


class SumBounds(ColumnBounds):
    """Bounds of the files of each row of sums (:mod:`tablestore.format.manifest.bucketsums`), of columns of the key (``of_key``) or
    of others."""

    def __init__(self, sums: EntryColumns, schema: TableSchema, *, of_key: bool) -> None:
        self._sums, self._schema, self._of_key = sums, schema, of_key

    def type_of(self, name: str) -> DataType:
        return self._schema.field(name).type

    def of(self, name: str) -> Bounds | None:
        if not self._of_key:
            return self._sums.bounds(_bounded_value(self._schema.field(name)))
        fields = self._schema.key_fields
        return self._sums.bounds(_bounded_key(fields, [field.name for field in fields].index(name)))


class ValueBounds(ColumnBounds):
    """Bounds of files that were written with the newest schema."""

    def __init__(self, entries: EntryColumns, schema: TableSchema) -> None:
        self._entries, self._schema = entries, schema

    def type_of(self, name: str) -> DataType:
        return self._schema.field(name).type

    def of(self, name: str) -> Bounds | None:
        if (stored := self._entries.bounds(_bounded_value(self._schema.field(name)))) is not None:
            return stored
        texts = pc.binary_join(self._entries.column("value_stats_cols"), text_scalar(_SEPARATOR))
        choices = texts.dictionary_encode(null_encoding="encode")
        if len(choices.dictionary) > _MOST_CHOICES:
            return None
        is_newest = numbers_of(self._entries.column("schema_id")) == self._schema.id
        chosen = numbers_of(choices.indices)
        low = high = None
        for number, choice in enumerate(choices.dictionary.to_pylist()):
            names = list(self._schema.field_names) if choice is None else choice.split(_SEPARATOR)
            if name not in names:
                continue
            bounds = _fields(
                self._entries,
                "value_stats.min_values",
                "value_stats.max_values",
                len(names),
                names.index(name),
                self.type_of(name),
            )
            here = mask_array(is_newest & (chosen == number))
            lows, highs = (pc.if_else(here, bound, pa.nulls(1, bound.type)[0]) for bound in bounds)
            low = lows if low is None else pc.coalesce(low, lows)
            high = highs if high is None else pc.coalesce(high, highs)
        return None if low is None or high is None else (low, high)


def bounds_to_store(entries: EntryColumns, schema: TableSchema) -> StoredBounds:
    """The bounds that a sidecar of these entries gets: of all columns of the key, and of the first columns that have an order; the
    first is that by which the entries are put in order. ``schema``: the newest."""
    stored = {}
    if schema.is_keyed:
        keys = KeyBounds(entries, schema)
        for place, field in enumerate(schema.key_fields):
            if has_order(field.type):
                stored[_bounded_key(schema.key_fields, place)] = keys.of(field.name)
    values = ValueBounds(entries, schema)
    # Those of a partition column say no more than the partition.
    fields = sorted(schema.fields, key=lambda field: field.name in schema.partition_keys)
    for field in [field for field in fields if has_order(field.type)][:_MOST_STORED]:
        if (bounds := values.of(field.name)) is not None:
            stored[_bounded_value(field)] = bounds
    return stored


def _bounded_key(fields: Sequence[Field], place: int) -> BoundedColumn:
    return BoundedColumn(f"key {place} of {len(fields)}", _type_text(fields[place].type))


def _bounded_value(field: Field) -> BoundedColumn:
    # They hold under later schemas too, as long as the column has that type.
    return BoundedColumn(f"value {field.id}", _type_text(field.type))


def _type_text(data_type: DataType) -> str:
    # Whether there are nulls makes no difference to bounds.
    return type_to_sql(with_nullable(data_type, True))


def _fields(entries: EntryColumns, low: str, high: str, arity: int, place: int, data_type: DataType) -> Bounds:
    return (
        row_field(entries.column(low), arity, place, data_type),
        row_field(entries.column(high), arity, place, data_type),
    )
