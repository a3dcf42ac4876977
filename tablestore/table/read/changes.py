"""Reads the changes between two snapshots.

    table.changes(from_snapshot=3, to_snapshot=9)        the changes of snapshots 4 to 9, oldest first
        _row_kind   id   price
        +I          7    1.50                            a new row
        -U          2    9.00                            an update: the row before …
        +U          2    8.50                            … and after
        -D          5    4.00                            a row that went

:class:`Changes` is a recipe like a :class:`Scan`: nothing is read before one of its conversions is called. Applied in order to the
rows at ``from_snapshot`` the changes give the rows at ``to_snapshot`` (of tables whose compactions write the changelog: the rows
that were compacted by then).

A snapshot that changed the table without recording the rows (an overwrite, a rollback, an untracked write) is a *discontinuity*:
reading across it raises NotFoundError with its id, or leaves its changes out (``on_discontinuity="skip"``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import pyarrow as pa

from tablestore.errors import InvalidInputError, NotFoundError
from tablestore.format.parquet.parquetschema import KIND_COLUMN
from tablestore.format.snapshot import Snapshot
from tablestore.store.changes.changefeed import ChangeFeed, SnapshotChanges
from tablestore.store.changes.changescope import Discontinuity
from tablestore.store.changes.expiredchanges import Changelogs
from tablestore.store.context import TableContext
from tablestore.store.rowview import shown_fields
from tablestore.store.snapshots import follows
from tablestore.table.read.scan import ArrowSource, check_columns
from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.filter.predicate import Predicate
from tablestore.types.filter.predicatetext import to_sql
from tablestore.types.rowkind import ROW_KIND_COLUMN, symbols_from_kinds

SNAPSHOT_ID_COLUMN = "_snapshot_id"

OnDiscontinuity = Literal["raise", "skip"]

_MOST_PLANS = 64


class Changes(ArrowSource):
    """The changes of some snapshots of a table. Made by ``table.changes(...)``."""

    def __init__(
        self,
        context: TableContext,
        *,
        from_snapshot: int,
        to_snapshot: int,
        columns: tuple[str, ...],
        predicate: Predicate | None,
        pairs: bool = True,
        snapshot_ids: bool = False,
        on_discontinuity: OnDiscontinuity = "raise",
        as_written: bool = True,
    ) -> None:
        context = context.ruled()
        self._context, self._predicate = context, predicate
        self._from, self._to = from_snapshot, to_snapshot
        self._columns, self._snapshot_ids = columns, snapshot_ids
        self._on_discontinuity = on_discontinuity
        self._feed = ChangeFeed(context=context, columns=columns, predicate=predicate, pairs=pairs, as_written=as_written)
        self._feed.check()

    @property
    def from_snapshot(self) -> int:
        """The snapshot whose rows the changes start from; its own changes are not among them."""
        return self._from

    @property
    def to_snapshot(self) -> int:
        """The last snapshot whose changes are read."""
        return self._to

    @property
    def schema(self) -> pa.Schema:
        """``_row_kind``, then ``_snapshot_id`` if it was asked for, then the columns."""
        system = [pa.field(ROW_KIND_COLUMN, pa.string(), nullable=False)]
        if self._snapshot_ids:
            system.append(pa.field(SNAPSHOT_ID_COLUMN, pa.int64(), nullable=False))
        fields = [self._context.schema.field(name) for name in self._columns]
        return pa.schema([*system, *to_arrow_schema(shown_fields(self._context.view, fields))])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The changes as record batches, streamed: by snapshot, then partition, bucket, file and row.

        Raises NotFoundError of kind ``discontinuity`` for a snapshot whose changes are not known, and of kind
        ``snapshot-expired`` for one that is gone; ConflictError if another table is in the place of this one.
        """
        target = self.schema
        for snapshot, batch in self.coded():
            yield self._labelled(batch, snapshot.id, target)

    def coded(self) -> Iterator[tuple[Snapshot, pa.RecordBatch]]:
        """Reads as :meth:`to_batches`: the snapshot of each batch, and before its columns the codes of the kinds
        (``_VALUE_KIND``)."""
        with self._context.reading():
            for snapshot, changes in self._each():
                for batch in changes.batches():
                    yield snapshot, batch

    def count(self) -> int:
        """The number of changes."""
        with self._context.reading():
            return sum(changes.count() for _, changes in self._each())

    def discontinuities(self) -> tuple[Discontinuity, ...]:
        """The snapshots whose changes are not all known, with the reason, oldest first."""
        with self._context.reading():
            gaps = [plan.gap for _, plan in self._plans()]
        return tuple(gap for gap in gaps if gap is not None)

    def planned(self, last: Snapshot) -> "PlannedChanges":
        """The changes as they are found now; each of their snapshots is read once. ``last``: the last one, which is this table's.

        Raises NotFoundError for one that is gone, ConflictError if another table is in the place of this one.
        """
        snapshots: list[Snapshot] = []
        plans: list[SnapshotChanges] = []
        gaps: list[Discontinuity] = []
        with self._context.reading():
            for snapshot_id in self._ids:
                snapshot, plan = self._plan(snapshot_id, last if snapshot_id == last.id else None)
                snapshots.append(snapshot)
                gaps += [] if plan.gap is None else [plan.gap]
                # Of many snapshots all lists of files are no small thing to hold.
                if len(plans) < _MOST_PLANS:
                    plans.append(plan)
            if any(follows(later, earlier) is not True for earlier, later in pairwise(snapshots)):
                self._context.still_there()
        return PlannedChanges(feed=self._feed, snapshots=tuple(snapshots), plans=tuple(plans), gaps=tuple(gaps))

    def __repr__(self) -> str:
        text = None if self._predicate is None else to_sql(self._predicate)
        return f"Changes(from_snapshot={self._from}, to_snapshot={self._to}, columns={list(self._columns)}, filter={text!r})"

    @property
    def _ids(self) -> range:
        return range(self._from + 1, self._to + 1)

    def _plans(self) -> Iterator[tuple[Snapshot, SnapshotChanges]]:
        """The snapshots and their changes. One that was built on the last is of the same table; for another one that is looked
        up."""
        last: Snapshot | None = None
        for snapshot_id in self._ids:
            snapshot, plan = self._plan(snapshot_id)
            if last is None or follows(snapshot, last) is not True:
                self._context.still_there()
            last = snapshot
            yield snapshot, plan

    def _each(self) -> Iterator[tuple[Snapshot, SnapshotChanges]]:
        for snapshot, plan in self._plans():
            if (gap := plan.gap) is not None and self._on_discontinuity == "raise":
                raise NotFoundError(
                    f"table {self._context.files.root_uri}: {gap.reason}, so the changes from {self._from} to {self._to} are not "
                    f"known; read the table at snapshot {snapshot.id} and go on with changes(from_snapshot={snapshot.id}), or "
                    'go on without with on_discontinuity="skip"',
                    kind="discontinuity",
                )
            yield snapshot, plan

    def _plan(self, snapshot_id: int, snapshot: Snapshot | None = None) -> tuple[Snapshot, SnapshotChanges]:
        context, feed = self._context, self._feed
        if snapshot is not None or (snapshot := context.snapshots.find(snapshot_id)) is not None:
            if not feed.is_whole(snapshot):
                raise _expired(context, snapshot_id)
            return snapshot, feed.plan(snapshot)
        changelog = Changelogs(context.files).find(snapshot_id)
        if changelog is None:
            raise _expired(context, snapshot_id)
        if feed.looks_up(changelog):
            way_out = "set" if replace(feed, pairs=False).looks_up(changelog) else "read them with pairs=False, or set"
            raise NotFoundError(
                f"table {context.files.root_uri}: of snapshot {snapshot_id}, which has expired, only the rows after its changes "
                f"are kept, not those before; {way_out} changelog-producer = lookup to keep both from now on",
                kind="snapshot-expired",
            )
        return changelog, feed.plan(changelog)

    def _labelled(self, batch: pa.RecordBatch, snapshot_id: int, target: pa.Schema) -> pa.RecordBatch:
        system = [symbols_from_kinds(batch.column(KIND_COLUMN))]
        if self._snapshot_ids:
            system.append(pa.repeat(pa.scalar(snapshot_id, pa.int64()), batch.num_rows))
        return pa.RecordBatch.from_arrays([*system, *(batch.column(name) for name in self._columns)], schema=target)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChanges:
    """The changes of some snapshots, oldest first. ``plans``: the files that those of the first ones lie in; ``gaps``: the
    snapshots whose changes are not all known, with the reason."""

    feed: ChangeFeed
    snapshots: tuple[Snapshot, ...]
    plans: tuple[SnapshotChanges, ...]
    gaps: tuple[Discontinuity, ...]

    @property
    def may_change_rows(self) -> bool:
        """True unless there are nothing but compactions that changed nothing."""
        return any(not snapshot.commit_kind.keeps_rows or self.feed.has_changes(snapshot) for snapshot in self.snapshots)

    def coded(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The changes in these columns, with the codes of their kinds (``_VALUE_KIND``) before them. Raises as
        :meth:`Changes.coded`."""
        feed = replace(self.feed, columns=tuple(columns))
        with feed.context.reading():
            for plan in self.plans:
                yield from replace(plan, feed=feed).batches()
            for snapshot in self.snapshots[len(self.plans) :]:
                yield from feed.plan(snapshot).batches()


def read_changes(
    context: TableContext,
    from_snapshot: int,
    to_snapshot: int | None,
    columns: object = None,
    predicate: Predicate | None = None,
    *,
    pairs: bool = True,
    snapshot_ids: bool = False,
    on_discontinuity: OnDiscontinuity = "raise",
    as_written: bool = True,
) -> Changes:
    """The checked recipe of ``table.changes``; ``as_written`` as in :class:`tablestore.store.changes.changefeed.ChangeFeed`.

    Raises InvalidInputError, NotFoundError for snapshots that are not there.
    """
    for name, value in (("from_snapshot", from_snapshot), ("to_snapshot", to_snapshot)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise InvalidInputError(f"expected {name} to be a snapshot id, 0 or more, found {value!r:.80}")
    if on_discontinuity not in ("raise", "skip"):
        raise InvalidInputError(f'expected on_discontinuity to be "raise" or "skip", found {on_discontinuity!r:.80}')
    latest = context.snapshots.latest()
    context.check_is_there()
    newest = latest.id if latest else 0
    last = newest if to_snapshot is None else to_snapshot
    if max(last, from_snapshot) > newest:
        raise NotFoundError(
            f"table {context.files.root_uri} has no snapshot {max(last, from_snapshot)}: the latest is {newest}",
            kind="no-such-snapshot",
        )
    if last < from_snapshot:
        raise InvalidInputError(f"expected to_snapshot to be at least from_snapshot, found {from_snapshot} to {last}")
    changes = Changes(
        context,
        from_snapshot=from_snapshot,
        to_snapshot=last,
        columns=check_columns(columns, context.schema.field_names),
        predicate=predicate,
        pairs=pairs,
        snapshot_ids=snapshot_ids,
        on_discontinuity=on_discontinuity,
        as_written=as_written,
    )
    if from_snapshot < last and context.snapshots.find(from_snapshot + 1) is None:
        changelog = Changelogs(context.files).find(from_snapshot + 1)
        if changelog is None:
            raise _expired(context, from_snapshot + 1)
    return changes


def earliest_start(context: TableContext, *, pairs: bool) -> int:
    """The earliest snapshot from which all changes up to now can be read; 0 where none has expired."""
    start = context.snapshots.latest()
    first = start.id if start is not None else 0
    for snapshot in ChangeFeed(context=context, columns=(), pairs=pairs, whole=True).readable():
        first = snapshot.id - 1
    return first


def _expired(context: TableContext, snapshot_id: int) -> NotFoundError:
    ids = context.snapshots.live_ids()
    changelog_ids = Changelogs(context.files).ids()
    first = min([*ids[:1], *(i for i in changelog_ids if i > snapshot_id)], default=0)
    return NotFoundError(
        f"table {context.files.root_uri}: the changes of snapshot {snapshot_id} have expired; retained are those of {first} to "
        f"{ids[-1] if ids else 0}: read the table at a retained snapshot and go on from there, and register a consumer, or raise "
        "snapshot.time-retained or changelog.time-retained, to keep changes for longer",
        kind="snapshot-expired",
    )
