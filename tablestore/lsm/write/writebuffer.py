"""The write buffer: collects rows in memory until a flush turns them into sorted runs.

``flush`` sorts all buckets of all partitions in one pass, by (partition, bucket, key, arrival), keeps one row per key,
moves the rows once, and hands out one slice per bucket. Append tables keep the order of arrival and all their rows.

Engines that compute rows fold what has one key (``flushfold``); a bucket may then occur several times, as below.

Left to others: where the runs are written, their sequence numbers, and the changelog.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.bounds import PASS_BYTES
from tablestore.errors import InvalidInputError
from tablestore.format.bucket import bucket_of
from tablestore.lsm.functions.mergefunction import MergeFunction
from tablestore.lsm.functions.mergeoptions import merge_function
from tablestore.lsm.functions.survivors import rank_versions, versions_of_repeated_keys
from tablestore.lsm.gather import take_rows
from tablestore.lsm.keys import plain_columns, to_words
from tablestore.lsm.sorting import SortedOrder, sort_by_group_and_key
from tablestore.lsm.write.flushfold import fold_layers, prepared
from tablestore.lsm.write.removalorder import updates_in_place, with_orders
from tablestore.types.arrays import U64, Kinds, Mask, Places, one_chunk, python_values, retracts
from tablestore.types.rowkind import RowKind
from tablestore.types.schema import TableSchema

Partitions = list[tuple[object, ...]]
StoredOrder = Callable[[tuple[object, ...], int, pa.Table], tuple[pa.Table, Places]]
"""From a partition, a bucket and rows of distinct keys in key order: the columns of ``sequence.field`` of stored rows, and the
place of each key's row among these (-1: none)."""
AssignBuckets = Callable[[pa.Table, Sequence[tuple[object, ...]], U64 | None], npt.NDArray[np.integer]]
"""The bucket of each row, from the rows, their partitions, and each row's number among these (None: all are of the first)."""

# Arrow strings address 2 GiB per column: no pass comes near that.
_MAX_PASS_ROWS = 1 << 27
# Sorted rows are moved in so many parts, if these are not small: each looks at every column.
_MOVES, _LEAST_MOVED = 8, 1 << 16


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows as they arrived: their kinds, None if all are ``+I``, and which of them hold no order, None if all do."""

    rows: pa.Table
    kinds: pa.ChunkedArray | None = None
    orderless: Mask | None = None

    def slice(self, start: int, stop: int) -> "_Piece":
        return _Piece(
            self.rows.slice(start, stop - start),
            None if self.kinds is None else self.kinds.slice(start, stop - start),
            None if self.orderless is None else self.orderless[start:stop],
        )


@dataclass(frozen=True, slots=True)
class SortedRows:
    """The rows of one flush for one bucket: the value columns, and each row's kind. Places of a keyed table are sorted
    by the trimmed primary key and hold each key once, if the buffer folds; rows of an append table come as they arrived."""

    partition: tuple[object, ...]
    bucket: int
    rows: pa.Table
    kinds: Kinds
    retractions: int


class WriteBuffer:
    """Collects conformed rows of one table until it is flushed.

    ``total_buckets`` is the number of hash buckets; below 1 ``assign`` gives the buckets, and without it every row goes to
    bucket 0. ``budget_bytes`` is when ``full`` turns true; the buffer never refuses rows. ``merge`` is the schema's merge
    function where it is known already. ``keep_input``: what was added can be had unfolded too (:meth:`flush_input`). ``once``: each
    key comes at most once, but for the ``-U`` of an update, which only the input keeps; a flush refuses a second row of a key.
    ``stored_order`` looks up the order of stored rows (see ``removalorder``). ``folds`` False: rows of one key that a merge engine
    combines stay apart, one after the other, because they are written again through a buffer.
    """

    def __init__(
        self,
        schema: TableSchema,
        *,
        total_buckets: int,
        budget_bytes: int,
        assign: AssignBuckets | None = None,
        merge: MergeFunction | None = None,
        keep_input: bool = False,
        once: bool = False,
        stored_order: StoredOrder | None = None,
        folds: bool = True,
    ) -> None:
        self._schema, self._folds = schema, folds
        self._total_buckets = max(total_buckets, 1)
        self._hashed = total_buckets > 0 and bool(schema.bucket_keys)
        self._budget_bytes = budget_bytes
        self._assign = assign
        self._merge = merge_function(schema) if schema.is_keyed and merge is None else merge
        self._stored_order = stored_order
        self._pending: list[_Piece] = []
        self._input: list[_Piece] | None = [] if keep_input else None
        self._once = once
        self.nbytes = 0

    @property
    def full(self) -> bool:
        """True if a flush is due."""
        return self.nbytes >= self._budget_bytes

    def add(self, rows: pa.Table, kinds: pa.Array | pa.ChunkedArray | None = None, *, orderless: Mask | None = None) -> None:
        """Take rows with exactly the table's columns; ``kinds`` holds a row kind code per row, None is all ``+I``. ``orderless``:
        the retractions that take the order of the row that they remove.

        Raises InvalidInputError for kinds that do not fit the table.
        """
        if isinstance(kinds, pa.Array):
            kinds = pa.chunked_array([kinds])
        new_piece = _Piece(rows, kinds, orderless)
        if self._input is not None:
            self._input.extend(_pieces(new_piece))
        for piece in _pieces(new_piece if kinds is None else self._checked(rows, kinds, orderless)):
            self._pending.append(piece)
            self.nbytes += piece.rows.nbytes + piece.rows.num_rows

    def flush(self) -> Iterator[SortedRows]:
        """Empty the buffer: its rows per (partition, bucket), each run sorted when it is asked for.

        More than ``PASS_BYTES`` of rows is done in several passes. Then a bucket occurs several times, and of equal keys the
        later wins, as between flushes.
        """
        pending, self._pending, self.nbytes = self._pending, [], 0
        return self._in_passes(pending, self._pass)

    def flush_input(self) -> Iterator[SortedRows]:
        """The rows that were added since the last call, unfolded: by (partition, bucket, key, version), several of a key.

        Retractions that the table ignores are not among them.
        """
        assert self._input is not None, "the input is kept on request only"
        pending, self._input = self._input, []
        return self._in_passes(pending, self._unfolded)

    def _in_passes(
        self, pending: list[_Piece], sort: Callable[[pa.Table, Kinds | None, Mask | None], Iterator[SortedRows]]
    ) -> Iterator[SortedRows]:
        # No reference stays to rows that were taken: their memory is free once the sorted copy is made.
        while pending:
            yield from sort(*_next_pass(pending))

    def _checked(self, rows: pa.Table, kinds: pa.ChunkedArray, orderless: Mask | None) -> _Piece:
        if len(kinds) != rows.num_rows:
            raise InvalidInputError(f"expected a row kind per row ({rows.num_rows}), found {len(kinds)}")
        if not len(kinds):
            return _Piece(rows)
        codes = kinds.to_numpy().astype(np.int8)
        if self._merge is not None:
            self._merge.check_retractions(codes[codes != RowKind.UPDATE_BEFORE] if self._once else codes)
            mask = self._keep_mask(rows, codes)
            if not mask.all():
                rows, codes = rows.filter(pa.array(mask)), codes[mask]
                orderless = None if orderless is None else orderless[mask]
        if not codes.any():
            return _Piece(rows)
        if self._merge is None:
            raise InvalidInputError("append tables take inserts (+I) only; create the table with a primary key for others")
        rows, codes = prepared(self._merge, rows, codes)
        return _Piece(rows, pa.chunked_array([pa.array(codes)]), orderless if orderless is not None and orderless.any() else None)

    def _keep_mask(self, rows: pa.Table, kinds: Kinds) -> Mask:
        """The rows that go into files, without those that mean nothing there."""
        assert self._merge is not None
        skipped = self._merge.skipped_kinds
        mask: Mask = ~np.isin(kinds, skipped) if skipped else np.ones(len(kinds), np.bool_)
        if self._once:
            mask &= kinds != RowKind.UPDATE_BEFORE
        elif self._merge.engine == "deduplicate" and self._merge.sequence_fields:
            # A row that is older than the one that it updates loses against that, which must not have gone then.
            mask &= ~updates_in_place(rows.select(self._schema.primary_keys), kinds)
        return mask

    def _pass(self, rows: pa.Table, kinds: Kinds | None, orderless: Mask | None) -> Iterator[SortedRows]:
        if not rows.num_rows:
            return
        if not self._schema.is_keyed and not self._hashed and not self._schema.partition_keys:
            yield SortedRows((), 0, rows, np.zeros(rows.num_rows, dtype=np.int8), 0)
            return
        rows = rows.combine_chunks()
        partitions, groups, buckets, counts = self._grouped(rows)
        order: Places | None
        if self._merge is not None and self._merge.computes:
            rows, sorted_order = self._by_version(rows, orderless, partitions, groups, buckets, counts)
            self._check_once(rows, sorted_order)
            if not self._folds:
                order = sorted_order.order
                yield from _runs(rows, order, kinds, counts, partitions, buckets)
                return
            for layer in fold_layers(self._merge, rows, kinds, sorted_order, counts):
                yield from _runs(layer.rows, None, layer.kinds, layer.counts, partitions, buckets)
            return
        if self._schema.is_keyed:
            rows, sorted_order = self._by_version(rows, orderless, partitions, groups, buckets, counts)
            order, counts = self._keyed_order(rows, sorted_order, counts)
        else:
            order = _by_group(groups, rows.num_rows)
        yield from _runs(rows, order, kinds, counts, partitions, buckets)

    def _unfolded(self, rows: pa.Table, kinds: Kinds | None, orderless: Mask | None) -> Iterator[SortedRows]:
        assert self._merge is not None
        rows = rows.combine_chunks()
        if kinds is not None and self._merge.ignore_delete and (retract := retracts(kinds)).any():
            rows, kinds, orderless = rows.filter(pa.array(~retract)).combine_chunks(), kinds[~retract], None
        if not rows.num_rows:
            return
        partitions, groups, buckets, counts = self._grouped(rows)
        rows, sorted_order = self._by_version(rows, orderless, partitions, groups, buckets, counts)
        yield from _runs(rows, sorted_order.order, kinds, counts, partitions, buckets)

    def _grouped(self, rows: pa.Table) -> tuple[Partitions, U64 | None, int, list[int]]:
        """The partitions, each row's (partition, bucket) as a number (None: all are 0), buckets per partition, rows per number."""
        partitions, partition_of = self._partitions(rows)
        groups, buckets = self._groups(rows, partition_of, partitions)
        counts = [rows.num_rows] if groups is None else np.bincount(groups.view(np.int64)).tolist()
        return partitions, groups, buckets, counts

    def _partitions(self, rows: pa.Table) -> tuple[Partitions, U64 | None]:
        """The distinct partitions by first occurrence, and each row's number among them (None: only one)."""
        names = self._schema.partition_keys
        if not names:
            return [()], None
        codes: npt.NDArray[np.int64] | None = None
        columns = [_with_one_nan(one_chunk(rows.column(name))) for name in names]
        for column in columns:
            encoded = pc.dictionary_encode(column, null_encoding="encode").indices.to_numpy().astype(np.int64)
            # Renumbered after each column: the product of the distinct counts cannot overflow.
            codes = encoded if codes is None else _dense(codes * (int(encoded.max()) + 1) + encoded)
        assert codes is not None
        codes = _dense(codes)
        count = int(codes.max()) + 1
        example = np.empty(count, dtype=np.int64)
        example[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
        values = [python_values(column.take(pa.array(example))) for column in columns]
        return list(zip(*values, strict=True)), codes.astype(np.uint64) if count > 1 else None

    def _groups(self, rows: pa.Table, partition_of: U64 | None, partitions: Sequence[tuple[object, ...]]) -> tuple[U64 | None, int]:
        """Each row's (partition, bucket) as one number, None if all rows have number 0; and how many buckets a partition has."""
        count = self._total_buckets
        buckets: U64 | None = None
        if self._assign is not None:
            assigned = self._assign(rows, partitions, partition_of)
            count = int(assigned.max()) + 1
            buckets = assigned.astype(np.uint64) if count > 1 else None
        elif self._hashed and count > 1:
            names = self._schema.bucket_keys
            numbers = bucket_of(
                [one_chunk(rows.column(name)) for name in names],
                [self._schema.field(name).type for name in names],
                count,
                function=self._schema.options.get("bucket-function.type", "default"),
            )
            buckets = numbers.astype(np.uint64)
        if partition_of is None:
            return buckets, count
        groups = partition_of * np.uint64(count)
        return groups if buckets is None else groups + buckets, count

    def _keyed_order(self, rows: pa.Table, sorted_order: SortedOrder, counts: list[int]) -> tuple[Places | None, list[int]]:
        """The places of the rows that a fold keeps, by group and key (None: all, as they are), and the rows per group."""
        assert self._merge is not None
        self._check_once(rows, sorted_order)
        order = sorted_order.order
        if not sorted_order.repeats.any():
            in_order = bool((order[1:] > order[:-1]).all())
            return None if in_order else order, counts
        mask = np.ones(len(order), dtype=np.bool_)
        if self._merge.keep == "last":
            mask[:-1] = ~sorted_order.repeats
        else:
            mask[1:] = ~sorted_order.repeats
        bounds = np.cumsum([0, *counts])
        kept_counts = [int(np.count_nonzero(mask[a:b])) for a, b in pairwise(bounds.tolist())]
        return order[mask], kept_counts

    def _by_version(
        self,
        rows: pa.Table,
        orderless: Mask | None,
        partitions: Partitions,
        groups: U64 | None,
        buckets: int,
        counts: Sequence[int],
    ) -> tuple[pa.Table, SortedOrder]:
        """The rows by group and key, the rows of one key by the sequence fields and arrival; and the rows, each with its order."""
        assert self._merge is not None
        fields = self._schema.key_fields
        plain = plain_columns([one_chunk(rows.column(field.name)) for field in fields], [f.type.nullable for f in fields])
        sorted_order = sort_by_group_and_key(groups, len(partitions) * buckets, to_words(plain))
        if orderless is not None and orderless.any():
            rows = self._with_orders(rows, orderless, sorted_order, partitions, buckets, counts)
        if not self._merge.sequence_fields or not sorted_order.repeats.any():
            return rows, sorted_order
        return rows, SortedOrder(self._by_sequence_fields(rows, sorted_order), sorted_order.repeats)

    def _with_orders(
        self,
        rows: pa.Table,
        orderless: Mask,
        sorted_order: SortedOrder,
        partitions: Partitions,
        buckets: int,
        counts: Sequence[int],
    ) -> pa.Table:
        """The rows with the stored order in the retractions that have none; ``sorted_order`` has them by key and arrival."""
        assert self._merge is not None
        first = np.ones(len(sorted_order.order), dtype=np.bool_)
        first[1:] = ~sorted_order.repeats
        key = np.cumsum(first) - 1
        lacking = np.zeros(int(key[-1]) + 1, dtype=np.bool_)
        lacking[key[orderless[sorted_order.order]]] = True
        chosen = lacking[key]
        # A row of each key that lacks an order, by group and key.
        places = np.flatnonzero(first)[lacking]
        group = np.searchsorted(np.cumsum(counts), places, side="right")
        names = [field.name for field in self._schema.key_fields]
        ordering = [field.name for field in self._merge.sequence_fields]
        stored, stored_of_key, count = [rows.slice(0, 0).select(ordering)], np.full(len(places), -1, dtype=np.int64), 0
        for number in np.unique(group).tolist() if self._stored_order is not None else ():
            members = np.flatnonzero(group == number)
            keys = take_rows(rows.select(names), sorted_order.order[places[members]])
            assert self._stored_order is not None
            stored_rows, row_of_key = self._stored_order(partitions[number // buckets], number % buckets, keys)
            stored_of_key[members] = np.where(row_of_key >= 0, row_of_key + count, -1)
            stored.append(stored_rows.select(ordering).cast(stored[0].schema))
            count += stored_rows.num_rows
        return with_orders(
            rows,
            self._merge.sequence_fields,
            versions=sorted_order.order[chosen],
            key=(np.cumsum(lacking) - 1)[key[chosen]],
            lacks=orderless[sorted_order.order[chosen]],
            stored=pa.concat_tables(stored),
            stored_of_key=stored_of_key,
        )

    def _check_once(self, rows: pa.Table, sorted_order: SortedOrder) -> None:
        if self._once and sorted_order.repeats.any():
            row = int(sorted_order.order[np.argmax(sorted_order.repeats)])
            raise second_match(rows.slice(row, 1).select(self._schema.primary_keys))

    def _by_sequence_fields(self, rows: pa.Table, sorted_order: SortedOrder) -> Places:
        """The order with the rows of one key arranged by the sequence fields, arrival last."""
        assert self._merge is not None
        several, group = versions_of_repeated_keys(sorted_order)
        versions = sorted_order.order[several]
        fields = self._merge.sequence_fields
        ranked = rank_versions(
            group,
            [one_chunk(rows.column(field.name)).take(pa.array(versions)) for field in fields],
            descending=[field.descending for field in fields],
            tie_breakers=[versions],
        )
        order = sorted_order.order.copy()
        order[several] = versions[ranked]
        return order


def shown_row(row: pa.Table | pa.RecordBatch, names: Sequence[str]) -> str:
    """Columns of one row, for messages."""
    values = ((name, row.column(name)[0].as_py()) for name in names)
    return ", ".join(f"{name} = {'NULL' if value is None else f'{value!r:.100}'}" for name, value in values)


def second_match(key: pa.Table | pa.RecordBatch) -> InvalidInputError:
    """The error of a statement that changes the row of ``key`` (one row of key columns) twice."""
    return InvalidInputError(
        f"expected one change of each row, found a second one of the row with {shown_row(key, key.column_names)}: several rows of "
        "the source match it, or are inserted with its key. Which of them counts is not defined; leave one source row for each, by "
        "an aggregation or a narrower condition",
        kind="second-match",
    )


def _next_pass(pending: list[_Piece]) -> tuple[pa.Table, Kinds | None, Mask | None]:
    """Take as many rows from the front as one Arrow array can hold."""
    stop, size, count = 0, 0, 0
    while stop < len(pending) and count <= _MAX_PASS_ROWS:
        size += pending[stop].rows.nbytes
        if stop and size > PASS_BYTES:
            break
        count += pending[stop].rows.num_rows
        stop += 1
    part = pending[:stop]
    del pending[:stop]
    return pa.concat_tables([piece.rows for piece in part]), _concat_kinds(part), _concat_orderless(part)


def _runs(
    rows: pa.Table,
    order: Places | None,
    kinds: Kinds | None,
    counts: Sequence[int],
    partitions: Sequence[tuple[object, ...]],
    buckets: int,
) -> Iterator[SortedRows]:
    """One slice per bucket that has rows. ``order``: the place of each row in ``rows`` and ``kinds``, by bucket; None: as they are.

    Rows are moved a few buckets at a time, while those before are written.
    """
    bounds = np.cumsum([0, *counts])
    first = 0
    while first < len(counts):
        last = len(counts)
        part, part_kinds = rows, kinds
        start = int(bounds[first])
        if order is not None:
            last = int(np.searchsorted(bounds, start + max(rows.num_rows // _MOVES, _LEAST_MOVED), side="left"))
            last = min(max(last, first + 1), len(counts))
            places = order[start : int(bounds[last])]
            part, part_kinds = take_rows(rows, places), None if kinds is None else kinds[places]
        for group in range(first, last):
            if count := counts[group]:
                offset = int(bounds[group]) - start
                run_kinds = np.zeros(count, dtype=np.int8) if part_kinds is None else part_kinds[offset : offset + count]
                yield SortedRows(
                    partition=partitions[group // buckets],
                    bucket=group % buckets,
                    rows=part.slice(offset, count),
                    kinds=run_kinds,
                    retractions=0 if part_kinds is None else int((run_kinds & 1).sum()),
                )
        first = last


def _pieces(piece: _Piece) -> Iterator[_Piece]:
    """The rows in pieces that one pass can take."""
    count = piece.rows.num_rows
    if piece.rows.nbytes <= PASS_BYTES or count < 2:
        if count:
            yield piece
        return
    yield from _pieces(piece.slice(0, count // 2))
    yield from _pieces(piece.slice(count // 2, count))


def _concat_kinds(pending: Sequence[_Piece]) -> Kinds | None:
    if all(piece.kinds is None for piece in pending):
        return None
    return np.concatenate(
        [
            np.zeros(piece.rows.num_rows, dtype=np.int8) if piece.kinds is None else piece.kinds.to_numpy().astype(np.int8)
            for piece in pending
        ]
    )


def _concat_orderless(pending: Sequence[_Piece]) -> Mask | None:
    if all(piece.orderless is None for piece in pending):
        return None
    return np.concatenate(
        [np.zeros(piece.rows.num_rows, dtype=np.bool_) if piece.orderless is None else piece.orderless for piece in pending]
    )


def _by_group(groups: U64 | None, rows: int) -> Places | None:
    """Rows gathered by group, in order of arrival within each; None if they are so already."""
    if groups is None or bool((groups[1:] >= groups[:-1]).all()):
        return None
    row_bits = np.uint64(max(rows - 1, 1).bit_length())
    packed = (groups << row_bits) | np.arange(rows, dtype=np.uint64)
    packed.sort()
    return (packed & ((np.uint64(1) << row_bits) - np.uint64(1))).view(np.int64)


def _with_one_nan(column: pa.Array) -> pa.Array:
    """The values of a partition column; NaNs of any bits are one partition."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)


def _dense(codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Codes renumbered from 0 without gaps, by first occurrence."""
    return pc.dictionary_encode(pa.array(codes)).indices.to_numpy().astype(np.int64)  # type: ignore[no-any-return]
