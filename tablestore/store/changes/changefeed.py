"""Reads the rows of a snapshot's changes, as batches with their row kinds.

    step of changeplan -> rows at the snapshot's schema -> columns of the reader's schema, by field id -> filter -> batches

With a filter, an update after which a row no longer matches becomes ``-D``, and one after which it first matches becomes ``+I``.
Where only the row after a change is known (``input``, and stored rows without pairs), a row that does not match may replace one
that did: it becomes ``-D`` too, and every ``-D`` passes. There a ``-U`` without its ``+U`` is a ``-D``.

Rules of a catalog service (:mod:`~tablestore.store.rowview`) are a filter and masks. Such a filter has to know what a row was
before: changes are read in pairs then, and found in the data files where a writer gave them alone. So no ``-D`` tells of a row that
was never shown.

Memory: one row group of a file, or one window of keys with the versions of their rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore.errors import UnsupportedError
from tablestore.format.parquet.parquetschema import KIND_COLUMN
from tablestore.format.parquet.projection import Projection
from tablestore.format.snapshot import Snapshot
from tablestore.lsm.merge.rowdiff import equal_values
from tablestore.store.changes.changeplan import (
    ChangeFiles,
    ChangeRule,
    FoundChanges,
    StoredChanges,
    change_rule,
    found_rule,
    plan_changes,
    source_of,
)
from tablestore.store.changes.changescope import ChangeScope, Discontinuity, change_scope
from tablestore.store.changes.expiredchanges import Changelogs
from tablestore.store.changes.statediff import BucketState, StateDiff
from tablestore.store.context import TableContext
from tablestore.store.deletionvectors import DeletionVectors
from tablestore.store.rowview import KIND, RowView
from tablestore.store.scan.lookup import SmallFiles
from tablestore.store.scan.splitreader import SplitReader
from tablestore.types.arrays import Kinds, Mask
from tablestore.types.filter.predicate import Predicate, evaluate
from tablestore.types.filter.predicate import columns as columns_of
from tablestore.types.rowkind import RowKind
from tablestore.types.schema import TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFeed:
    """Reads changes of one table as ``context``'s schema sees it.

    ``as_written``: rows of ``changelog-producer = input`` are the changes as their writer gave them; without, what these rows
    changed is found in the data files, as if there were no producer.

    Batches hold ``_VALUE_KIND`` and then ``columns``. ``pairs``: an update comes as ``-U`` and ``+U``, also where the table
    stores only the row after it; without, no ``-U`` comes, and of plain tables nothing is looked up.

    ``whole``: no rule of a catalog service counts; for what nobody is shown.
    """

    context: TableContext
    columns: tuple[str, ...]
    predicate: Predicate | None = None
    pairs: bool = True
    as_written: bool = True
    whole: bool = False

    def __post_init__(self) -> None:
        if not self.whole:
            # Fixed here, so that all that is read of it is under the same rules.
            object.__setattr__(self, "context", self.context.ruled())

    @property
    def view(self) -> RowView | None:
        """The part of the rows that its reader sees."""
        return None if self.whole else self.context.view

    @property
    def condition(self) -> Predicate | None:
        """The condition of the rows that come out: the filter, and that of the rules. Raises UnsupportedError."""
        view = self.view
        return self.predicate if view is None else view.exact_condition(self.predicate, "changes")

    def check(self) -> None:
        """Raise UnsupportedError for a filter and columns that the rules do not allow."""
        if (view := self.view) is not None:
            view.exact_condition(self.predicate, "changes")
            view.check({*self.columns, *columns_of(self.predicate)})

    @property
    def hides_rows(self) -> bool:
        """True if rules leave rows out."""
        return (view := self.view) is not None and view.condition is not None

    @property
    def reads_pairs(self) -> bool:
        """True if ``-U`` rows are read, whether or not they come out."""
        return self.pairs or self.hides_rows

    def plan(self, snapshot: Snapshot) -> "SnapshotChanges":
        """The changes to read of one snapshot."""
        snapshot_context, rule = self._then(snapshot)
        plan = plan_changes(
            snapshot, self._scope(snapshot, snapshot_context), rule, snapshot_context.manifests, pairs=self.reads_pairs
        )
        all_computed = all(isinstance(step, FoundChanges) for step in plan.steps)
        complete = all_computed or not rule.keyed or rule.changelog.on_compaction
        if self.hides_rows and not complete:
            raise UnsupportedError(
                f"table {self.context.files.root_uri}: of the changes of snapshot {snapshot.id} the rows before them are not "
                "known, so that rules of its catalog service cannot be carried out; read the table itself",
                kind=KIND,
            )
        return SnapshotChanges(feed=self, context=snapshot_context, steps=plan.steps, gap=plan.gap, complete=complete)

    def gap(self, snapshot: Snapshot) -> Discontinuity | None:
        """The discontinuity of a snapshot, as its plan has it; for most snapshots their manifests need not be read."""
        snapshot_context, rule = self._then(snapshot)
        source = source_of(snapshot, rule)
        if source is ChangeFiles.FRAMES:
            return self.plan(snapshot).gap
        return source if isinstance(source, Discontinuity) else self._scope(snapshot, snapshot_context).gap(snapshot)

    def has_changes(self, snapshot: Snapshot) -> bool:
        """True if a snapshot may have changes, known or not."""
        return source_of(snapshot, self._then(snapshot)[1]) is not ChangeFiles.NOWHERE

    def looks_up(self, snapshot: Snapshot) -> bool:
        """True if the changes of a snapshot are found by looking up rows that were there before it."""
        rule = self._then(snapshot)[1]
        source = source_of(snapshot, rule)
        return source in (ChangeFiles.FRAMES, ChangeFiles.LEFT_LEVEL_ZERO) or (
            source is ChangeFiles.LEVEL_ZERO and (self.reads_pairs or not rule.plain)
        )

    def is_whole(self, snapshot: Snapshot) -> bool:
        """True if all that the changes of a retained snapshot are found in is still there. Some need the snapshot before it."""
        source = source_of(snapshot, self._then(snapshot)[1])
        if source not in (ChangeFiles.FRAMES, ChangeFiles.LEFT_LEVEL_ZERO) or snapshot.id == 1:
            return True
        return self.context.snapshots.find(snapshot.id - 1) is not None

    def readable(self) -> Iterator[Snapshot]:
        """The snapshots whose changes can be read, newest first: the retained ones, then those whose changes are kept."""
        snapshots = self.context.snapshots
        ids = snapshots.live_ids()
        for snapshot_id in reversed(ids):
            if not self.is_whole(snapshot := snapshots.read(snapshot_id)):
                return
            yield snapshot
        changelogs, snapshot_id = Changelogs(self.context.files), ids[0] - 1 if ids else 0
        while (changelog := changelogs.find(snapshot_id)) is not None and not self.looks_up(changelog):
            yield changelog
            snapshot_id -= 1

    def _scope(self, snapshot: Snapshot, snapshot_context: TableContext) -> ChangeScope:
        # Partition columns keep name and type through all schemas.
        return change_scope(snapshot, snapshot_context.schema, self.condition)

    def _then(self, snapshot: Snapshot) -> tuple[TableContext, ChangeRule]:
        """The table at the snapshot's schema, and the rule of that."""
        snapshot_context = self.context.at_schema(self.context.schemas.read(snapshot.schema_id))
        rule = change_rule(snapshot_context)
        return snapshot_context, rule if self.as_written and not self.hides_rows else found_rule(rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotChanges:
    """The changes of one snapshot. ``context`` is the table at its schema; ``complete``: every update is a pair of rows; ``gap``:
    it changed more than these."""

    feed: ChangeFeed
    context: TableContext
    steps: Sequence[StoredChanges | FoundChanges]
    gap: Discontinuity | None
    complete: bool

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The changes in order. Raises NotFoundError if their files expired, FormatError for damaged ones."""
        projection = self._projection()
        for step in self.steps:
            rows = self._stored(step) if isinstance(step, StoredChanges) else self._compared(step)
            for batch in _whole_pairs(rows) if self._pairs_matter else rows:
                changes = self._selected(batch if projection is None else projection.apply(batch))
                if changes.num_rows:
                    yield changes

    def count(self) -> int:
        """The number of changes, from metadata alone where that knows it."""
        stored = [step.entry.file for step in self.steps if isinstance(step, StoredChanges)]
        if self.feed.view is None and self.feed.predicate is None and self.feed.pairs and len(stored) == len(self.steps):
            return sum(file.row_count for file in stored)
        return sum(batch.num_rows for batch in self.batches())

    @property
    def _pairs_matter(self) -> bool:
        """True if the result depends on which ``-U`` and ``+U`` belong together."""
        return self.feed.condition is not None or not (self.feed.pairs or self.complete)

    @property
    def _needed(self) -> tuple[str, ...]:
        """Columns of the reader's schema that are read: asked for, filtered by, and the key that joins pairs."""
        schema, view = self.feed.context.schema, self.feed.view
        names = set(self.feed.columns if view is None else view.inputs(self.feed.columns))
        names |= columns_of(self.feed.condition)
        if self._pairs_matter:
            names |= set(schema.primary_keys)
        return tuple(name for name in schema.field_names if name in names)

    @property
    def _names_then(self) -> tuple[str, ...]:
        """The same columns under the names that they had, as far as they were there."""
        ids = {self.feed.context.schema.field(name).id for name in self._needed}
        return tuple(field.name for field in self.context.schema.fields if field.id in ids)

    def _projection(self) -> Projection | None:
        reader_schema: TableSchema = self.feed.context.schema
        if self.context.schema.fields == reader_schema.fields:
            return None
        return Projection(
            self.context.schema.fields,
            [reader_schema.field(name) for name in self._needed],
            keep=(KIND_COLUMN,),
            file_names=self._names_then,
            where=f"the changes of table {self.context.files.root_uri}",
        )

    def _stored(self, step: StoredChanges) -> Iterator[pa.RecordBatch]:
        reader = SplitReader.whole(self.context, (), None)
        entry = step.entry
        names = [name for name in self._names_then if name not in self.context.schema.partition_keys]
        directory = reader.directory(entry.partition, entry.bucket)
        for batch in reader.file_rows(directory, entry.file, names, (KIND_COLUMN,) if step.kind is None else ()):
            if step.kind is not None:
                batch = _with_kinds(batch, np.full(batch.num_rows, step.kind, dtype=np.int8))
            yield reader.with_partition(batch, entry.partition).select([KIND_COLUMN, *self._names_then])

    def _compared(self, step: FoundChanges) -> Iterator[pa.RecordBatch]:
        diff = StateDiff(
            reader=SplitReader.whole(self.context, (), None),
            partition=step.partition,
            bucket=step.bucket,
            columns=self._names_then,
            small_files=self.context.shared.once(SmallFiles),
        )
        before = BucketState(files=step.before, vectors=self._vectors(step.vectors_before))
        after = BucketState(files=step.after, vectors=self._vectors(step.vectors_after))
        for changes in diff.changes(before, after, step.touched):
            yield from changes.select([KIND_COLUMN, *self._names_then]).to_batches()

    def _vectors(self, snapshot_id: int | None) -> DeletionVectors | None:
        if not snapshot_id:
            return None
        return self.context.deletion_vectors(self.context.snapshots.read(snapshot_id))

    def _selected(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The changes of a batch that the reader gets. No pair of ``-U`` and ``+U`` may reach across batches."""
        feed, condition = self.feed, self.feed.condition
        if condition is None and feed.pairs:
            return self._shown(batch)
        key = feed.context.schema.primary_keys
        kinds = np.asarray(batch.column(KIND_COLUMN).to_numpy(zero_copy_only=False), dtype=np.int8)
        mask = np.ones(len(kinds), dtype=np.bool_)
        if self._pairs_matter:
            pairs = update_pairs(batch, kinds, key)
            if not self.complete:
                kinds = np.where((kinds == RowKind.UPDATE_BEFORE) & ~pairs, np.int8(RowKind.DELETE), kinds)
            if condition is not None:
                matches = self._matches(condition, batch)
                fixed = columns_of(condition) <= set(key)
                kinds, mask = filtered_kinds(kinds, matches, pairs, known_before=self.complete or fixed)
            batch = _with_kinds(batch, kinds)
        if not feed.pairs:
            mask &= kinds != RowKind.UPDATE_BEFORE
        return self._shown(batch if mask.all() else batch.filter(pa.array(mask)))

    def _matches(self, condition: Predicate, batch: pa.RecordBatch) -> Mask:
        view = self.feed.view
        if view is None or view.condition is None:
            return _mask(condition, batch)
        # By itself: what the caller's condition fails on may be in a hidden row.
        matches = _mask(view.condition, batch)
        matches[matches] = _mask(condition, batch.filter(pa.array(matches)))
        return matches

    def _shown(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that the reader gets, as the rules show them."""
        feed, view = self.feed, self.feed.view
        if view is not None:
            view.check(feed.columns)
            batch = view.shown(batch, feed.columns, {name: feed.context.schema.field(name) for name in feed.columns})
        return batch.select([KIND_COLUMN, *feed.columns])


def _mask(condition: Predicate, batch: pa.RecordBatch) -> Mask:
    mask: Mask = evaluate(condition, batch).to_numpy(zero_copy_only=False).astype(np.bool_)
    return mask


def filtered_kinds(kinds: Kinds, matches: Mask, pairs: Mask, *, known_before: bool) -> tuple[Kinds, Mask]:
    """The row kinds of changes after a filter, and the mask of those that are left. Pure.

    ``pairs[i]``: row i is the ``-U`` of row i + 1. ``known_before``: a row that comes alone takes the place of none that matched.
    """
    first = np.flatnonzero(pairs)
    out, mask = kinds.copy(), matches.copy()
    left, entered = first[matches[first] & ~matches[first + 1]], first[~matches[first] & matches[first + 1]]
    out[left] = RowKind.DELETE
    out[entered + 1] = RowKind.INSERT
    if not known_before:
        unpaired = np.ones(len(kinds), dtype=np.bool_)
        unpaired[first] = unpaired[first + 1] = False
        # The row before may have matched, and a retraction may hold nothing but the key.
        unmatched = unpaired & ~matches & (kinds != RowKind.UPDATE_BEFORE)
        out[unmatched] = RowKind.DELETE
        mask |= unmatched
    return out, mask


def update_pairs(batch: pa.RecordBatch, kinds: Kinds, key: Sequence[str]) -> Mask:
    """The mask of each ``-U`` that is followed by the ``+U`` of its key."""
    pairs = np.zeros(len(kinds), dtype=np.bool_)
    places = np.flatnonzero((kinds[:-1] == RowKind.UPDATE_BEFORE) & (kinds[1:] == RowKind.UPDATE_AFTER))
    pairs[places] = True
    for name in key:
        column = batch.column(name)
        pairs[places] &= equal_values(column.take(pa.array(places)), column.take(pa.array(places + 1)))
    return pairs


def _whole_pairs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, cut so that no batch but the last ends with a ``-U``."""
    held: pa.RecordBatch | None = None
    for batch in batches:
        if held is not None:
            batch = pa.concat_batches([held, batch])
            held = None
        if batch.num_rows and batch.column(KIND_COLUMN)[batch.num_rows - 1].as_py() == RowKind.UPDATE_BEFORE:
            held = batch.slice(batch.num_rows - 1)
            batch = batch.slice(0, batch.num_rows - 1)
        yield batch
    if held is not None:
        yield held


def _with_kinds(batch: pa.RecordBatch, kinds: Kinds) -> pa.RecordBatch:
    names = [name for name in batch.schema.names if name != KIND_COLUMN]
    return pa.RecordBatch.from_arrays(
        [pa.array(kinds), *(batch.column(name) for name in names)],
        schema=pa.schema([pa.field(KIND_COLUMN, pa.int8(), nullable=False), *(batch.schema.field(name) for name in names)]),
    )
