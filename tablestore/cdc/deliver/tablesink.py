"""Writes changes into another table: rows and their position are one snapshot.

key and order as in the source    +I, +U, -D: a row of a key takes the place of the one before
another key or order              -U too: the row before may have another key there, or another order than the key alone says
another key                       of each snapshot all rows that go, then all others: of two rows that swap their keys both stay
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore.errors import ConflictError, FormatError, InvalidInputError
from tablestore.format.limits import parse_json_bounded
from tablestore.format.sealed import JsonObject
from tablestore.log.settings import settings_of
from tablestore.lsm.functions.mergefunction import SequenceField
from tablestore.lsm.missingchoice import MissingColumns
from tablestore.lsm.write.removalorder import updates_in_place
from tablestore.store.changelogproducer import INPUT
from tablestore.store.context import TableContext
from tablestore.store.replay import SOURCE_POSITION_PROPERTY, Replays
from tablestore.table.table import Table
from tablestore.table.write.committing import Effect
from tablestore.table.write.retractions import retraction_needs
from tablestore.table.write.writer import TASK_STRIDE, TableWriter
from tablestore.types.arrays import retracts
from tablestore.types.rowkind import ROW_KIND_COLUMN, kinds_from_symbols


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkNeeds:
    """The requirements of a sink on changes. ``pairs``: the rows that updates replace (``-U``); ``as_written``: as the source's
    writers gave them, who may have left them out; without, they are read from the files of the source, whatever log it has.
    ``whole_snapshots``: a commit ends where a snapshot of the source ends."""

    pairs: bool = False
    as_written: bool = True
    whole_snapshots: bool = False


def needs_of(source: TableContext, target: TableContext, columns: frozenset[str]) -> SinkNeeds:
    """The requirements of a table on the changes of another one, of which it gets these columns. Raises InvalidInputError where it
    needs one that it does not get."""
    merge, other = target.settings.merge, source.settings.merge
    if merge is None or other is None:
        # Without them an update looks like a new row, which a table without a key would add.
        return SinkNeeds(pairs=merge is None)
    named = {*target.schema.primary_keys, *(field.name for field in merge.sequence_fields)}
    if missing := sorted(named - columns):
        raise InvalidInputError(
            f"the changes of table {source.files.root_uri} lack {', '.join(missing)}, which find and order the rows of table "
            f"{target.files.root_uri}; deliver these columns too",
            kind="missing-column",
        )
    key = source.schema.primary_keys
    pairs, whole = asks_for_pairs(target, key, other.sequence_fields), _rekeys(target, key) and not merge.computes
    # A topic has the changes of each bucket, not of one snapshot after the other.
    as_written = not pairs or (source.changelog_settings.producer != INPUT and not (whole and has_topic(source)))
    return SinkNeeds(pairs=pairs, as_written=as_written, whole_snapshots=whole)


def has_topic(source: TableContext) -> bool:
    """True if the changes of a table are in a log system."""
    return settings_of(source).system != "filestore"


def asks_for_pairs(target: TableContext, key: Sequence[str], ordering: tuple[SequenceField, ...]) -> bool:
    """True if a table needs the rows that updates replace, of changes of rows with this key and order."""
    merge = target.settings.merge
    if merge is None or retraction_needs(target).whole or _rekeys(target, key):
        return True
    return bool(merge.sequence_fields) and merge.sequence_fields != ordering


def _rekeys(target: TableContext, key: Sequence[str]) -> bool:
    return set(target.schema.primary_keys) != set(key)


class TableSink:
    """Writes to ``table`` under ``name``. Two processes of one name cannot both go on: see :mod:`tablestore.store.replay`.

    ``removes_first``: of the rows of a commit, those that go come before all others. ``kind``: of the job that writes, which its
    snapshots show. ``missing_columns``: what rows do about columns that they lack."""

    def __init__(
        self,
        table: Table,
        name: str,
        *,
        removes_first: bool = False,
        kind: str = "deliver",
        missing_columns: MissingColumns = MissingColumns.REFUSE,
    ) -> None:
        self._table, self._user, self._operation = table, f"{kind}:{name}", kind.upper()
        self._run = table.context.ids.uuid()
        self._removes_first, self._missing = removes_first, missing_columns
        self._removing: TableWriter | None = None
        self._writer: TableWriter | None = None
        self._identifier = -1

    @property
    def user(self) -> str:
        """The user of its commits."""
        return self._user

    def position(self) -> str | None:
        """The position of the newest snapshot of this name, also if it has expired."""
        context = self._table.refresh().context
        progress = Replays(context.files, context.snapshots).progress(self._user, context.snapshots.latest())
        if progress is None:
            return None
        self._identifier, text = progress
        try:
            return JsonObject(parse_json_bounded((text or "").encode(), self._user), self._user).text("at")
        except FormatError as error:
            raise FormatError(
                f"table {self._table.name}: expected the position of {self._user!r} in its source, found {text!r:.200}; go on "
                "under another name",
                kind="source-position",
            ) from error

    def write(self, rows: pa.RecordBatch) -> None:
        """Adds rows; of one key the later one wins."""
        writer = self._opened()
        if self._removing is None:
            writer.write(rows, changes=True, missing_columns=self._missing)
            return
        kinds = np.asarray(kinds_from_symbols(rows.column(ROW_KIND_COLUMN)))
        key = pa.Table.from_batches([rows]).select(list(self._table.primary_key))
        goes = retracts(kinds) & ~updates_in_place(key, kinds)
        for chosen, part in ((goes, self._removing), (~goes, writer)):
            if chosen.any():
                part.write(rows.filter(pa.array(chosen)), changes=True, missing_columns=self._missing)

    def commit(self, position: str) -> None:
        """Commits one snapshot, also where there are no rows."""
        writer = self._opened()
        text = json.dumps({"at": position, "run": self._run}, separators=(",", ":"))
        effect = Effect(allow_empty=True, operation=self._operation, properties={SOURCE_POSITION_PROPERTY: text})
        before = None if self._removing is None else self._removing.prepare()
        snapshot = writer.commit_as(effect, self._identifier + 1, before=before)
        if snapshot is None or snapshot.properties.get(SOURCE_POSITION_PROPERTY) != text:
            raise ConflictError(
                f"another process writes to {self._table.name} under the same name and has gone on from the same place; nothing "
                "of this commit is visible. Leave it the work, or give this one another name",
                kind="fenced",
            )
        self._identifier += 1
        self._writer = self._removing = None

    def close(self) -> None:
        """Removes the files of rows that were not committed."""
        for writer in (self._removing, self._writer):
            if writer is not None:
                writer.abort()

    def _opened(self) -> TableWriter:
        if self._writer is None:
            table = self._table.refresh()
            if not self._removes_first:
                self._writer = table.new_writer(self._user)
                return self._writer
            context = table.context
            base = context.snapshots.latest()
            first = context.sequence.next_after(base)
            self._removing, self._writer = (
                TableWriter(context, table.change_log, commit_user=self._user, start=(base, first + place * TASK_STRIDE))
                for place in range(2)
            )
        return self._writer
