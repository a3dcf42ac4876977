"""Drops entries of large manifests that cannot matter to a scan, by their columns.

The first and coarse step of pruning, so that only the entries that are left become objects: it drops what
:mod:`tablestore.store.scan.filepruning` would drop, and not all of that.

* ADD and DELETE: by partition values, which both have.
* ADD: by its bucket, of so many; by the bounds of keys; of value columns where every file stands alone. A DELETE whose ADD was
  dropped has no effect, while an ADD without its DELETE would bring a file back.

Bounds are compared where their order is that of numbers or bytes; whatever is unknown is kept.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.format.manifest.entrycolumns import EntryColumns
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.format.rowcolumns import literal_field, row_field
from tablestore.store.scan.filepruning import FilePruning
from tablestore.types.datatypes import DataType
from tablestore.types.filter.predicate import And, Comparison, IsIn, Or, Predicate, keep_only, push_negation
from tablestore.types.schema import TableSchema

Mask = npt.NDArray[np.bool_]

_UPPER_OPERATORS = ("=", "<", "<=")
_LOWER_OPERATORS = ("=", ">", ">=")
# Statistics of another choice of columns are read for each choice by itself.
_MOST_CHOICES = 16
_SEPARATOR = "\x1f"


class EntryPruning:
    """The parts of a predicate that drop entries. ``stands_alone``: no file of the table hides rows of another one."""

    def __init__(self, schema: TableSchema, predicate: Predicate, *, stands_alone: bool) -> None:
        self._schema = schema
        self._files = FilePruning(schema, predicate, {})
        key = keep_only(predicate, schema.trimmed_primary_keys) if schema.is_keyed else None
        self._key = None if key is None else push_negation(key)
        self._value = push_negation(predicate) if stands_alone else None
        self._partitions: dict[bytes, bool] = {}

    def keeps(self, entries: EntryColumns) -> Mask:
        """True for each entry that may matter."""
        mask = self._in_partitions(entries)
        is_delete = _numbers(entries, "kind") == EntryKind.DELETE
        mask &= self._in_buckets(entries) | is_delete
        for predicate, bounds in (
            (self._key, _KeyBounds(entries, self._schema)),
            (self._value, _ValueBounds(entries, self._schema)),
        ):
            if predicate is not None and mask.any() and (matches := _may_match(predicate, bounds)) is not None:
                mask &= matches | is_delete
        return mask

    def _in_partitions(self, entries: EntryColumns) -> Mask:
        partitions = entries.column("partition")
        keeps = np.array([self._keeps_partition(partition) for partition in partitions.dictionary.to_pylist()], np.bool_)
        return keeps[partitions.indices.to_numpy()] if len(keeps) else np.zeros(len(entries), np.bool_)

    def _in_buckets(self, entries: EntryColumns) -> Mask:
        buckets = np.stack([_numbers(entries, "bucket"), _numbers(entries, "total_buckets")], axis=1)
        distinct, which = np.unique(buckets, axis=0, return_inverse=True)
        kept = np.array([self._files.keeps_bucket(bucket, total) for bucket, total in distinct.tolist()], np.bool_)
        return kept[which.ravel()] if len(kept) else np.ones(len(entries), np.bool_)

    def _keeps_partition(self, partition: bytes) -> bool:
        if partition not in self._partitions:
            self._partitions[partition] = self._files.keeps_partition(partition)
        return self._partitions[partition]


class _Bounds:
    """The bounds of columns, one low and one high of each entry, null where unknown."""

    def of(self, name: str) -> tuple[pa.Array, pa.Array] | None:
        """The bounds of a column; None if they are all unknown."""
        raise NotImplementedError

    def type_of(self, name: str) -> DataType:
        """The type of a column."""
        raise NotImplementedError


class _KeyBounds(_Bounds):
    def __init__(self, entries: EntryColumns, schema: TableSchema) -> None:
        self._entries, self._fields = entries, schema.key_fields
        self._places = {field.name: place for place, field in enumerate(self._fields)}

    def type_of(self, name: str) -> DataType:
        return self._fields[self._places[name]].type

    def of(self, name: str) -> tuple[pa.Array, pa.Array] | None:
        place = self._places[name]
        # The first and the last key are exact, but order all columns together: they bound the first one.
        low, high = ("min_key", "max_key") if place == 0 else ("key_stats.min_values", "key_stats.max_values")
        return _fields(self._entries, low, high, len(self._fields), place, self._fields[place].type)


class _ValueBounds(_Bounds):
    """Bounds of files that were written with the newest schema."""

    def __init__(self, entries: EntryColumns, schema: TableSchema) -> None:
        self._entries, self._schema = entries, schema

    def type_of(self, name: str) -> DataType:
        return self._schema.field(name).type

    def of(self, name: str) -> tuple[pa.Array, pa.Array] | None:
        choices = pc.binary_join(self._entries.column("value_stats_cols"), _SEPARATOR).dictionary_encode(null_encoding="encode")
        if len(choices.dictionary) > _MOST_CHOICES:
            return None
        is_newest = _numbers(self._entries, "schema_id") == self._schema.id
        chosen = choices.indices.to_numpy()
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
            here = pa.array(is_newest & (chosen == number))
            lows, highs = (pc.if_else(here, bound, None) for bound in bounds)
            low = lows if low is None else pc.coalesce(low, lows)
            high = highs if high is None else pc.coalesce(high, highs)
        return None if low is None or high is None else (low, high)


def _fields(entries: EntryColumns, low: str, high: str, arity: int, place: int, data_type: DataType) -> tuple[pa.Array, pa.Array]:
    return (
        row_field(entries.column(low), arity, place, data_type),
        row_field(entries.column(high), arity, place, data_type),
    )


def _may_match(predicate: Predicate, bounds: _Bounds) -> Mask | None:
    """True for each entry that may have a row for which the predicate holds; None if that says nothing."""
    if isinstance(predicate, And):
        masks = [mask for child in predicate.children if (mask := _may_match(child, bounds)) is not None]
        return np.logical_and.reduce(masks) if masks else None
    if isinstance(predicate, Or):
        parts = [_may_match(child, bounds) for child in predicate.children]
        masks = [mask for mask in parts if mask is not None]
        return np.logical_or.reduce(masks) if masks and len(masks) == len(parts) else None
    if isinstance(predicate, Comparison):
        return _compare(predicate, bounds)
    if isinstance(predicate, IsIn):
        return _is_in(predicate, bounds)
    return None


def _compare(predicate: Comparison, bounds: _Bounds) -> Mask | None:
    data_type = bounds.type_of(predicate.field)
    literal = literal_field(predicate.literal, data_type)
    if literal is None or predicate.op == "!=" or (pair := bounds.of(predicate.field)) is None:
        return None
    low, high = pair
    # "<" and "<=" alike: of a timestamp, only the milliseconds are compared.
    dropped = pa.scalar(False)
    if predicate.op in _UPPER_OPERATORS:
        dropped = pc.or_kleene(dropped, pc.greater(low, literal))
    if predicate.op in _LOWER_OPERATORS:
        dropped = pc.or_kleene(dropped, pc.less(high, literal))
    return _known(dropped)


def _is_in(predicate: IsIn, bounds: _Bounds) -> Mask | None:
    data_type = bounds.type_of(predicate.field)
    literals = [literal_field(value, data_type) for value in predicate.values if value is not None]
    known = [literal for literal in literals if literal is not None]
    if not known or len(known) < len(literals) or (pair := bounds.of(predicate.field)) is None:
        return None
    low, high = pair
    if pa.types.is_binary(low.type):
        texts = sorted(literal.as_py() for literal in known)
        return _known(pc.or_kleene(pc.greater(low, pa.scalar(texts[-1], low.type)), pc.less(high, pa.scalar(texts[0], low.type))))
    candidates = np.sort(np.array([literal.as_py() for literal in known], np.int64))
    unknown = low.is_null().to_numpy(zero_copy_only=False) | high.is_null().to_numpy(zero_copy_only=False)
    first = np.searchsorted(candidates, low.fill_null(0).to_numpy(), "left")
    behind = np.searchsorted(candidates, high.fill_null(0).to_numpy(), "right")
    mask: Mask = (first < behind) | unknown
    return mask


def _known(dropped: pa.Array) -> Mask:
    """The entries that are not certainly dropped."""
    mask: Mask = pc.invert(pc.fill_null(dropped, False)).to_numpy(zero_copy_only=False)
    return mask


def _numbers(entries: EntryColumns, name: str) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = entries.column(name).to_numpy(zero_copy_only=False)
    return numbers
