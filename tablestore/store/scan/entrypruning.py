"""Drops entries of large manifests that cannot matter to a scan, by their columns.

The first and coarse step of pruning, so that only the entries that are left become objects: it drops what
:mod:`tablestore.store.scan.filepruning` would drop, and not all of that.

* ADD and DELETE: by partition values, which both have.
* ADD: by its bucket, of so many; by the bounds of keys; of value columns where every file stands alone. A DELETE whose ADD was
  dropped has no effect, while an ADD without its DELETE would bring a file back.

Where a manifest has sums of its partitions and buckets, these are looked at first: mostly they drop all of it, or need no column.

Bounds are compared where their order is that of numbers or bytes; whatever is unknown is kept.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.format.manifest.bucketsums import file_mask
from tablestore.format.manifest.entrycolumns import EntryColumns
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.format.rowcolumns import literal_field
from tablestore.store.entrybounds import ColumnBounds, KeyBounds, SumBounds, ValueBounds
from tablestore.store.scan.filepruning import FilePruning
from tablestore.types.arrays import NO, Mask, mask_of, numbers_of, places_array
from tablestore.types.filter.predicate import And, Comparison, IsIn, Or, Predicate, keep_only, push_negation
from tablestore.types.schema import TableSchema

_UPPER_OPERATORS = ("=", "<", "<=")
_LOWER_OPERATORS = ("=", ">", ">=")


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
        if (sums := entries.sums()) is not None:
            # Of ADDs alone.
            mask, is_delete = file_mask(sums, self._keeps_sums(sums)), np.zeros(len(entries), np.bool_)
        else:
            mask = self._in_partitions(entries)
            if not mask.any():
                return mask
            is_delete = numbers_of(entries.column("kind")) == EntryKind.DELETE
            mask &= self._in_buckets(entries) | is_delete
        for predicate, bounds in (
            (self._key, KeyBounds(entries, self._schema)),
            (self._value, ValueBounds(entries, self._schema)),
        ):
            if predicate is not None and mask.any() and (matches := _may_match(predicate, bounds)) is not None:
                mask &= matches | is_delete
        return mask

    def _keeps_sums(self, sums: EntryColumns) -> Mask:
        """True for each row of sums that may have a file that matters."""
        mask = self._in_partitions(sums) & self._in_buckets(sums)
        for predicate, of_key in ((self._key, True), (self._value, False)):
            if predicate is not None and mask.any():
                matches = _may_match(predicate, SumBounds(sums, self._schema, of_key=of_key))
                mask = mask if matches is None else mask & matches
        return mask

    def _in_partitions(self, entries: EntryColumns) -> Mask:
        partitions = entries.column("partition")
        distinct, known = partitions.dictionary.to_pylist(), self._partitions
        for partition in distinct:
            if partition not in known:
                known[partition] = self._files.keeps_partition(partition)
        keeps = np.array([known[partition] for partition in distinct], np.bool_)
        return keeps[numbers_of(partitions.indices)] if len(keeps) else np.zeros(len(entries), np.bool_)

    def _in_buckets(self, entries: EntryColumns) -> Mask:
        if not self._files.prunes_buckets:
            return np.ones(len(entries), np.bool_)
        bucket, total = (numbers_of(entries.column(name)).astype(np.int64) for name in ("bucket", "total_buckets"))
        if len(bucket) and (bucket == bucket[0]).all() and (total == total[0]).all():
            return np.full(len(entries), self._files.keeps_bucket(int(bucket[0]), int(total[0])), np.bool_)
        least = int(total.min(initial=0))
        span = int(total.max(initial=0)) - least + 1
        distinct, which = np.unique(bucket * span + (total - least), return_inverse=True)
        kept = np.array([self._files.keeps_bucket(pair // span, pair % span + least) for pair in distinct.tolist()], np.bool_)
        return kept[which] if len(kept) else np.ones(len(entries), np.bool_)


def _may_match(predicate: Predicate, bounds: ColumnBounds) -> Mask | None:
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


def _compare(predicate: Comparison, bounds: ColumnBounds) -> Mask | None:
    data_type = bounds.type_of(predicate.field)
    literal = literal_field(predicate.literal, data_type)
    if literal is None or predicate.op == "!=" or (pair := bounds.of(predicate.field)) is None:
        return None
    low, high = pair
    # "<" and "<=" alike: of a timestamp, only the milliseconds are compared.
    dropped = NO
    if predicate.op in _UPPER_OPERATORS:
        dropped = pc.or_kleene(dropped, pc.greater(low, literal))
    if predicate.op in _LOWER_OPERATORS:
        dropped = pc.or_kleene(dropped, pc.less(high, literal))
    return _known(dropped)


def _is_in(predicate: IsIn, bounds: ColumnBounds) -> Mask | None:
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
    unknown = mask_of(low.is_null()) | mask_of(high.is_null())
    first = np.searchsorted(candidates, numbers_of(_or_zero(low)), "left")
    behind = np.searchsorted(candidates, numbers_of(_or_zero(high)), "right")
    mask: Mask = (first < behind) | unknown
    return mask


def _known(dropped: pa.Array) -> Mask:
    """The entries that are not certainly dropped."""
    return ~mask_of(pc.fill_null(dropped, NO))


def _or_zero(numbers: pa.Array) -> pa.Array:
    return numbers.fill_null(places_array(np.zeros(1, np.int64))[0])
