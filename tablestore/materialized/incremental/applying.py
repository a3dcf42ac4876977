"""Commits rows that come and go to the target, together with the new cursor.

    with primary key    -D and +I, an update as its new row (as both where the input is the changelog)
    without             rows are equal by their values: of n equal rows exactly as many go as have to; new ones are appended

The commit lands only on the snapshot that was read, or on a compaction of it.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.distributed.read import ReadPin, pin_at
from tablestore.distributed.spec import TableSpec
from tablestore.environment.engine import ManagedRelation, QueryEngine, Relation, RowsRelation
from tablestore.environment.memoryrows import MemoryRows
from tablestore.environment.rows.relations import Relations
from tablestore.environment.session.session import Session
from tablestore.errors import ConflictError
from tablestore.format.snapshot import Snapshot
from tablestore.lsm.functions.valuecodes import row_codes
from tablestore.sql.incremental.shapes import TARGET, WEIGHT
from tablestore.sql.query.edits import quote_name
from tablestore.store.changelogproducer import INPUT
from tablestore.store.commit.committer import Guard
from tablestore.store.commit.conflict import StalePlan
from tablestore.table.table import Table
from tablestore.table.write.changetasks import ChangeJob, run_changes
from tablestore.table.write.committing import CommitNote
from tablestore.table.write.current import NewestSnapshot, check_unchanged, run_until_current, settled
from tablestore.table.write.rowchange import RowChange
from tablestore.types.rowkind import ROW_KIND_COLUMN
from tablestore.types.rowposition import DATA_FILE_COLUMN, ROW_POSITION_COLUMN

OPERATION = "REFRESH"
_GONE, _TIMES, _NUMBER, _PLACE = "tablestore_gone", "tablestore_times", "tablestore_number", "tablestore_place"


class NotThereError(Exception):
    """Rows that are to go are not in the target."""


def note_of(target: Table, base: Snapshot | None, properties: Mapping[str, str], guard: Guard | None) -> CommitNote:
    """The note of a commit that lands on ``base`` only, or on a compaction of it. ``guard``: what else has to hold."""

    def check(latest: Snapshot | None) -> None:
        try:
            check_unchanged(target.context, base, latest)
        except StalePlan as error:
            raise ConflictError(
                f"table {target.name} was changed while it was refreshed ({error}): another refresh, or a writer, was faster. "
                "Nothing of this refresh is visible; the next one goes on from what is there",
                kind="refresh-conflict",
            ) from error
        if guard is not None:
            guard(latest)

    return CommitNote(properties=properties, guard=check)


def apply_change(
    session: Session,
    engine: QueryEngine,
    target: Table,
    spec: TableSpec,
    change: pa.Table | None,
    note: CommitNote,
    base: Snapshot | None,
) -> Snapshot | None:
    """Commits the rows that come and go, on top of ``base``.

    Raises ConflictError if something else was faster, NotThereError if rows that are to go are not in the target.
    """
    added, removed = _parts(target, change)
    if target.primary_key or removed is None:
        return _write(target, added, removed, note, base)

    def attempt(newest: Snapshot | None) -> Snapshot | None:
        base = settled(target.context, newest)
        assert note.guard is not None, "refreshes have one"
        note.guard(base)
        pin = pin_at(target.context, spec, base.id if base else None, base.uuid if base else None)
        places = _places(session, engine, target, pin, removed)
        job = ChangeJob.of(target.context, RowChange(operation=OPERATION, inserts=True, deletes=True), base)
        return run_changes(target.context, target.change_log, job, _moved(target, added, places).to_batches(), note=note)

    # A compaction meanwhile moves rows: they are looked for again.
    return run_until_current(target.context, attempt, NewestSnapshot(base))


def _parts(target: Table, change: pa.Table | None) -> tuple[pa.Table, pa.Table | None]:
    """The rows that come, as often as they do, and those that go, each once with how often it goes."""
    names = [field.name for field in target.table_schema.fields]
    if change is None:
        return target.schema.empty_table(), None
    weights = change.column(WEIGHT).combine_chunks().to_numpy()
    rows = change.select(names)
    added_places = np.flatnonzero(weights > 0)
    added = rows.take(pa.array(np.repeat(added_places, weights[added_places])))
    removed_places = np.flatnonzero(weights < 0)
    if not len(removed_places):
        return added, None
    removed = rows.take(pa.array(removed_places)).append_column(_TIMES, pa.array(-weights[removed_places], pa.int64()))
    return added, removed


def _write(target: Table, added: pa.Table, removed: pa.Table | None, note: CommitNote, base: Snapshot | None) -> Snapshot | None:
    with target.new_writer() as writer:
        writer.begin_at(base)
        if removed is not None and (deleted := _gone_for_good(target, removed, added)).num_rows:
            writer.write(deleted.append_column(ROW_KIND_COLUMN, pa.repeat(pa.scalar("-D"), deleted.num_rows)))
        if added.num_rows:
            writer.write(added)
        return writer.commit(note=note)


def _gone_for_good(target: Table, removed: pa.Table, added: pa.Table) -> pa.Table:
    """The rows that go and whose keys do not come again: what comes replaces the others. All of them where the changelog is what
    was written."""
    removed = removed.drop_columns([_TIMES])
    if target.context.changelog_settings.producer == INPUT:
        return removed
    keys = [rows.select(target.primary_key) for rows in (removed, added)]
    codes = row_codes(pa.concat_tables(keys, promote_options="permissive").columns)
    comes = np.zeros(removed.num_rows + added.num_rows, dtype=np.bool_)
    comes[codes[removed.num_rows :]] = True
    return removed.filter(pa.array(~comes[codes[: removed.num_rows]]))


def _places(session: Session, engine: QueryEngine, target: Table, pin: ReadPin, removed: pa.Table) -> pa.Table:
    """The places of the rows that go: of equal ones as many as go."""
    names = [field.name for field in target.table_schema.fields]
    on = " AND ".join(f"t.{quote_name(name)} <=> g.{quote_name(name)}" for name in names)
    query = (
        f"SELECT {DATA_FILE_COLUMN}, {ROW_POSITION_COLUMN} FROM (SELECT t.{DATA_FILE_COLUMN} AS {DATA_FILE_COLUMN}, "
        f"t.{ROW_POSITION_COLUMN} AS {ROW_POSITION_COLUMN}, g.{_TIMES} AS {_TIMES}, row_number() OVER (PARTITION BY g.{_NUMBER} "
        f"ORDER BY t.{DATA_FILE_COLUMN}, t.{ROW_POSITION_COLUMN}) AS {_PLACE} FROM {TARGET} AS t JOIN {_GONE} AS g ON {on}) "
        f"AS found WHERE {_PLACE} <= {_TIMES}"
    )
    numbered = removed.append_column(_NUMBER, pa.array(np.arange(removed.num_rows)))
    named_relations: dict[str, Relation] = {
        TARGET: ManagedRelation(name=target.name, table=target, pin=pin, positions=True),
        _GONE: RowsRelation(name="rows that go", rows=MemoryRows(numbered)),
    }
    places = engine.read(Relations(session=session).bind(query, named_relations)).read_all()
    if places.num_rows != pc.sum(removed.column(_TIMES)).as_py():
        raise NotThereError
    return places


def _moved(target: Table, added: pa.Table, places: pa.Table) -> pa.Table:
    """Rows that come, and places of those that go, as a change of the target."""
    schema = target.schema
    nothing = pa.Table.from_arrays(
        [pa.nulls(places.num_rows, field.type) for field in schema],
        schema=pa.schema([field.with_nullable(True) for field in schema]),
    )
    files, positions = (places.column(name) for name in (DATA_FILE_COLUMN, ROW_POSITION_COLUMN))
    deleted_rows = nothing.append_column(DATA_FILE_COLUMN, files.cast(pa.string())).append_column(
        ROW_POSITION_COLUMN, positions.cast(pa.int64())
    )
    deleted_rows = deleted_rows.append_column(ROW_KIND_COLUMN, pa.repeat(pa.scalar("-D"), places.num_rows))
    added_rows = added.append_column(DATA_FILE_COLUMN, pa.nulls(added.num_rows, pa.string())).append_column(
        ROW_POSITION_COLUMN, pa.nulls(added.num_rows, pa.int64())
    )
    added_rows = added_rows.append_column(ROW_KIND_COLUMN, pa.repeat(pa.scalar("+I"), added.num_rows))
    return pa.concat_tables([deleted_rows, added_rows], promote_options="permissive")
