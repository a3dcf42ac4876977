"""Finds the sources of a query: which tables it reads, at which snapshots, and whether all that changed in between is known.

A new snapshot is pinned where the changes recorded up to it add up to its rows: of tables whose compactions write the changelog,
the newest one of which everything is compacted.

What a writer says of its changes is not believed: of a table with ``changelog-producer = input`` the rows that came and went are
found in its data files, as of one without a producer.

Changes are netted before a query sees them: a row that came and went in between is in neither of the two snapshots, and an
expression over it may fail although the query does not.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.distributed.read import ReadPin, pin_at
from tablestore.environment.engine import ManagedRelation
from tablestore.environment.managed.nonphysical import read_unstored
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.session.session import Session
from tablestore.errors import NotFoundError
from tablestore.format.parquet.parquetschema import KIND_COLUMN
from tablestore.format.snapshot import Snapshot
from tablestore.lsm.functions.valuecodes import row_codes
from tablestore.materialized.expansion import check_whole
from tablestore.materialized.incremental.refreshcursor import Point, RefreshCursor, point_of
from tablestore.sql.incremental.shapes import WEIGHT, FullRefresh, SourceShape
from tablestore.sql.query.tablereferences import Reference, find_references
from tablestore.sql.source import Fragment, Span
from tablestore.sql.sqldialect import SqlDialect
from tablestore.store.changes.changeplan import change_rule
from tablestore.store.snapshots import parent_uuid
from tablestore.table.read.changes import Changes, PlannedChanges
from tablestore.table.read.scan import check_filled
from tablestore.table.table import Table
from tablestore.types.arrays import Places, first_of_group, retracts
from tablestore.types.arrowtypes import to_arrow_schema

MOST_CHANGES = 5_000_000
"""Rows of changes that one refresh holds in memory; of more than these the whole is computed anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshSource:
    """A table that the query reads. ``now``: the snapshot that a refresh reads of it."""

    path: ObjectPath
    table: Table
    now: Snapshot | None

    @property
    def name(self) -> str:
        """Its whole name."""
        return str(self.path)

    @property
    def shape(self) -> SourceShape:
        """The shape that the planner knows of it."""
        schema = self.table.table_schema
        return SourceShape(name=self.name, fields=schema.fields, primary_key=schema.primary_keys)

    @property
    def point(self) -> Point:
        """The point that the cursor has of it after the refresh."""
        return point_of(self.name, self.table, self.now)

    def pin(self, session: Session, snapshot_id: int | None) -> ReadPin:
        """A read of it at a snapshot, with the columns that it has now."""
        return pin_at(self.table.context, session.spec(self.path, self.table), snapshot_id)

    def relation(self, session: Session, snapshot_id: int | None) -> ManagedRelation:
        """Its rows at a snapshot."""
        return ManagedRelation(name=self.name, table=self.table, pin=self.pin(session, snapshot_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources of a query, each once; ``source_of``: the one that each of its table references reads."""

    sources: tuple[RefreshSource, ...]
    source_of: tuple[int, ...]


@dataclass(slots=True)
class Round:
    """Refreshes that see one set of snapshots: each source at the one that was its newest when the round first looked at it."""

    _seen: dict[tuple[str, str], Snapshot | None] = field(default_factory=dict)

    def snapshot_of(self, table: Table) -> Snapshot | None:
        """The snapshot at which this round reads a table."""
        place = (table.location, table.branch_name)
        if place not in self._seen:
            self._seen[place] = _newest(table)
        return self._seen[place]

    def move_on(self, table: Table) -> None:
        """Reads a table at its newest snapshot from now on: it was refreshed in this round, or by somebody else meanwhile."""
        self._seen[table.location, table.branch_name] = _newest(table)


def find_sources(session: Session, query: str | Fragment, in_round: Round | None = None) -> Sources | FullRefresh:
    """The sources at the snapshots of a round, by default at their newest ones. Raises NotFoundError for one that is gone, or was
    not filled yet, UnsupportedError for one of which rules of a catalog service hide something from the caller."""
    in_round = in_round or Round()
    by_place: dict[tuple[str, str], RefreshSource] = {}
    places: list[tuple[str, str]] = []
    fragment = as_fragment(query)
    named = [
        (reference.path, session.find(reference.path)) for reference in session.memo(_references, fragment.text, fragment.dialect)
    ]
    for _, table in named:
        check_whole(table)
    for written, table in named:
        path = session.expand(written)
        if not isinstance(table, Table):
            return FullRefresh(f"it reads {path}, which is no managed table", repeatable=False)
        schema = table.table_schema
        if read_unstored(schema.options, schema.field_names).computed:
            return FullRefresh(f"it reads {path}, which has computed columns")
        place = (table.location, table.branch_name)
        places.append(place)
        if place not in by_place:
            newest = in_round.snapshot_of(table)
            check_filled(newest, schema, str(path))
            by_place[place] = RefreshSource(path=path, table=table, now=newest)
    numbers = {place: number for number, place in enumerate(by_place)}
    return Sources(sources=tuple(by_place.values()), source_of=tuple(numbers[place] for place in places))


def _references(text: str, dialect: SqlDialect) -> tuple[Reference, ...]:
    return find_references(text, dialect=dialect)


def as_fragment(query: str | Fragment) -> Fragment:
    """A query in its words; a text alone is in Spark's."""
    return Fragment(query, Span(0, len(query))) if isinstance(query, str) else query


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChanges:
    """The changes of a source since a cursor, all of them known; None: no snapshot came. ``before``: the snapshot of the cursor."""

    source: RefreshSource
    before: int | None
    changes: PlannedChanges | None

    @property
    def may_change_rows(self) -> bool:
        """True if anything came but compactions that changed nothing."""
        return self.changes is not None and self.changes.may_change_rows

    def read(self, names: frozenset[str]) -> pa.Table | None:
        """The rows that came and went, in the columns of these names, with weights; None for too many rows."""
        fields = self.source.table.table_schema.fields
        columns = [one for one in fields if one.name.lower() in names] or fields
        target = pa.schema([*to_arrow_schema(columns), pa.field(WEIGHT, pa.int32(), nullable=False)])
        batches, rows = [], 0
        for batch in self.changes.coded([one.name for one in columns]) if self.changes is not None else ():
            rows += batch.num_rows
            if rows > MOST_CHANGES:
                return None
            weights = np.where(retracts(batch.column(KIND_COLUMN).to_numpy()), -1, 1).astype(np.int32)
            batches.append(pa.RecordBatch.from_arrays([*batch.columns[1:], pa.array(weights)], schema=target))
        return net_changes(pa.Table.from_batches(batches, target))


def changes_since(cursor: RefreshCursor, source: RefreshSource) -> SourceChanges | str:
    """The changes of a source since a cursor, or the reason why they are not all known."""
    table, newest, name, point = source.table, source.now, source.name, cursor.of_source(source.name)
    if point is None:
        return f"source {name} was not read before"
    if point.table_uuid != table.context.table_uuid:
        return f"source {name} is another table than before: it was dropped and made anew, or replaced"
    if table.context.schemas.read(point.schema_id).fields != table.table_schema.fields:
        return f"the columns of source {name} were altered"
    if point.snapshot_id is None:
        return (newest and _known_changes(source, newest, 0)) or SourceChanges(source=source, before=None, changes=None)
    snapshots, changes = table.context.snapshots, _known_changes(source, newest, point.snapshot_id) if newest is not None else None
    if isinstance(changes, SourceChanges) and _goes_on(changes, point):
        return changes
    old = newest if newest is not None and newest.id == point.snapshot_id else snapshots.find(point.snapshot_id)
    if old is None:
        return f"snapshot {point.snapshot_id} of source {name}, which was read last, has expired"
    if changes is None or old.uuid != point.snapshot_uuid:
        return f"source {name} has another history than before: snapshot {point.snapshot_id}, which was read last, is no part of it"
    if not _is_in_frame(table, old):
        return f"source {name} was read before its compaction had written its changes"
    return changes


def is_ahead(cursor: RefreshCursor, source: RefreshSource) -> bool:
    """True if the rows of a cursor were made from a later snapshot than this one of the same table."""
    point = cursor.of_source(source.name)
    if point is None or point.table_uuid != source.table.context.table_uuid or point.snapshot_id is None:
        return False
    if point.snapshot_id <= (source.now.id if source.now else 0):
        return False
    later = source.table.context.snapshots.find(point.snapshot_id)
    return later is not None and later.uuid == point.snapshot_uuid


def net_changes(changes: pa.Table) -> pa.Table:
    """The changes without the rows that went as often as they came.

    Rows are the same only if an expression cannot tell them apart: -0.0 is not 0.0. Each row that is left still weighs 1 or -1.
    """
    weights = changes.column(WEIGHT).to_numpy()
    if len(weights) == 0 or abs(int(weights.sum())) == len(weights):
        return changes
    if (sums := _sums(changes)) is None:
        return changes
    rows, first, net = sums
    net_rows = rows.take(pa.array(np.repeat(first, np.abs(net))))
    return net_rows.append_column(changes.schema.field(WEIGHT), pa.array(np.repeat(np.sign(net), np.abs(net)), pa.int32()))


def added_up(changes: pa.Table) -> pa.Table:
    """The changes of plain values, each row once with all its weight, and none without one. Rows are the same if SQL groups them:
    -0.0 is 0.0."""
    if not changes.num_rows:
        return changes
    if (sums := _sums(changes, one_zero=True)) is None:
        weights = changes.column(WEIGHT).to_numpy()
        return changes.drop_columns([WEIGHT]).append_column(WEIGHT, pa.array(weights.astype(np.int64)))
    rows, first, net = sums
    kept = np.flatnonzero(net)
    return rows.take(pa.array(first[kept])).append_column(WEIGHT, pa.array(net[kept]))


def _sums(changes: pa.Table, *, one_zero: bool = False) -> tuple[pa.Table, Places, Places] | None:
    """The rows without their weights, the place of the first of those that are the same, and the sum of the weights of these; None
    if no two are the same."""
    rows = changes.drop_columns([WEIGHT])
    columns = [pc.add(one, pa.scalar(0, one.type)) if one_zero and pa.types.is_floating(one.type) else one for one in rows.columns]
    codes = row_codes(columns)
    count = int(codes.max()) + 1
    if count == len(codes):
        return None
    net = np.bincount(codes, weights=changes.column(WEIGHT).to_numpy(), minlength=count).astype(np.int64)
    return rows, first_of_group(codes, count, np.ones(len(codes), dtype=np.bool_)), net


def _newest(table: Table) -> Snapshot | None:
    snapshots = table.context.snapshots
    latest = snapshots.latest()
    table.context.check_is_there()
    if latest is None or not change_rule(table.context).changelog.on_compaction:
        return latest
    for number in reversed(snapshots.live_ids()):
        snapshot = snapshots.find(number)
        if snapshot is not None and _is_in_frame(table, snapshot):
            return snapshot
    return latest


def _is_in_frame(table: Table, snapshot: Snapshot) -> bool:
    """True if the changes recorded up to a snapshot add up to its rows."""
    rule = change_rule(table.context)
    return not rule.changelog.on_compaction or all(
        rule.in_frame(entry.file.level) for entry in table.context.manifests.live(snapshot)
    )


def _known_changes(source: RefreshSource, newest: Snapshot, first: int) -> SourceChanges | str | None:
    """The changes behind the snapshot ``first``, or the reason why they are not all known; None if the newest one is older."""
    if newest.id < first:
        return None
    changes = Changes(
        source.table.context,
        from_snapshot=first,
        to_snapshot=newest.id,
        columns=(),
        predicate=None,
        on_discontinuity="skip",
        as_written=False,
    )
    try:
        planned = changes.planned(newest)
    except NotFoundError as error:
        return f"the changes of source {source.name} are not all there any more: {error.message}"
    if planned.gaps:
        return f"of source {source.name}, {planned.gaps[0].reason}"
    return SourceChanges(source=source, before=first or None, changes=planned)


def _goes_on(known: SourceChanges, point: Point) -> bool:
    """True if the first of the changes says that it was built on the snapshot of a point, and that is still there."""
    context, changes = known.source.table.context, known.changes
    if changes is None or not changes.snapshots or point.snapshot_id is None or point.snapshot_uuid is None:
        return False
    # Whether its compaction had written its changes is read in it.
    if change_rule(context).changelog.on_compaction or parent_uuid(changes.snapshots[0]) != point.snapshot_uuid:
        return False
    return context.snapshots.is_there(point.snapshot_id)
