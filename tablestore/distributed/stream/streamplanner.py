"""Plans the batches of a stream: which rows the next one has, and which tasks read them.

    latest(start, limits) -> offset       how far the next batch goes, within the limits and up to the newest snapshot
    tasks(start, offset)  -> tasks        what lies between two offsets; the same rows whenever it is asked
    commit(offset)                        nothing before it will be asked for again: expiry may have it

    |-- rows at snapshot N, in as many batches as the limits make --|-- changes of N+1, N+2, … --|

A batch holds rows of one snapshot, or changes of any number of them. It ends before a snapshot whose columns are others, where the
stream stops (ConflictError of kind ``schema-changed``; a stream that has older columns than the rows it would begin with does not
begin), and before one that does not say what it changed, which is then met as ``on_discontinuity`` says. What is read is what
``table.consume`` reads, with its rules. Where the table has a log of its own, changes come from that
(:mod:`~tablestore.distributed.stream.loggedchanges`), whole snapshots at a time.

The stream is a named consumer of the table from before its first batch on, so expiry keeps what it has still to read; the name is
in its offsets. Not thread-safe. Memory: the plans of one batch.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tablestore import options as opt
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.stream.batchplan import BatchPlans, StreamCursor
from tablestore.distributed.stream.loggedchanges import logged_changes
from tablestore.distributed.stream.streamoffset import StreamOffset, parse_offset, refused_offset
from tablestore.distributed.stream.streamrequest import BatchLimits, Budget, StreamRequest, check_request
from tablestore.distributed.stream.streamsteps import files_of, reading_of
from tablestore.distributed.stream.streamtask import StreamTask, TaskHead
from tablestore.errors import ConflictError, InvalidInputError, NotFoundError, TablestoreError
from tablestore.format.snapshot import Snapshot
from tablestore.log.events import schema_landed
from tablestore.log.follow.consumption import FileStoreConsumption
from tablestore.log.identity import Identity
from tablestore.log.position import LogPlace, Place, Position, StorePlace, done
from tablestore.options import TableOptions
from tablestore.store.changes.changescope import Discontinuity
from tablestore.store.history.consumers import Consumers
from tablestore.types.datatypes import DataType, Field
from tablestore.types.filter.predicate import columns as filter_columns
from tablestore.types.schema import TableSchema

# An engine may ask for the latest offset a hundred times a second; the table is looked at so often, and the engine waits for that.
LOOK_S = 0.1
# Snapshots without anything to read make no batch of their own until they are so many: then an offset moves, and expiry can go on.
QUIET_SNAPSHOTS = 16
_ANEW = {"position-table", "position-history", "snapshot-expired", "table-replaced", "stream-offset"}


class StreamPlanner:
    """Plans one stream, in one process. All that another process needs to go on is in the offsets."""

    def __init__(self, spec: TableSpec, request: StreamRequest, *, schema_id: int | None = None, look_s: float = LOOK_S) -> None:
        self._request, self._look_s = request, look_s
        self._unruled = spec.open(schema_id)
        self._context = self._unruled.ruled()
        self._identity = Identity(self._context)
        following = check_request(self._context, request)
        self._reading = following.fingerprint(self._context.schema)
        self._read = {*following.columns, *filter_columns(following.predicate), *self._context.schema.primary_keys}
        head = TaskHead(
            schema_id=self._context.schema.id,
            columns=following.columns,
            filter=request.filter,
            pairs=request.pairs,
            row_kinds=request.row_kinds,
            rules=self._context.rules,
        )
        self._plans = BatchPlans(self._context, head, following.predicate, find=self._find, find_frame=self._find_frame)
        self._head, self._log = head, logged_changes(self._context, pairs=request.pairs)
        # The table as a named consumer follows it, once the name is known.
        self._store: FileStoreConsumption | None = None
        self._consumer = ""
        self._first: StreamCursor | None = None
        self._checked: tuple[str, ...] = ()
        self._looked: tuple[float, Snapshot | None] | None = None
        self._upto: int | None = None
        self._alive_s = self._context.clock.steady_s()
        self._reached: StreamCursor | None = None

    # -- what an engine asks

    def stop_at_newest(self) -> None:
        """Ends the stream at the newest snapshot: from here on nothing counts that lands later."""
        with _ways_out():
            newest = self._look()
            self._upto = newest.id if newest else 0

    def latest(self, start: Mapping[str, object], limits: BatchLimits | None) -> dict[str, object]:
        """The offset behind the next batch, or ``start`` where there is nothing to read. ``limits`` None: all there is.

        Raises NotFoundError (kinds ``discontinuity``, ``snapshot-expired``), ConflictError (``schema-changed``,
        ``table-replaced``), InvalidInputError (an offset of another table, history or reader).
        """
        with _ways_out():
            offset = parse_offset(start)
            self._look()
            cursor = self._begun() if offset.at is None else self._resumed(offset)
            self._plans.forget(before=cursor.snapshot_id - 1)
            begin, end, budget = self._next(cursor, self._newest_id(cursor), limits)
            self._reached = end
            self._keep_alive()
            is_new, begins_anew = offset.at is None, begin != cursor
            is_quiet = end == cursor or end.snapshot_id - cursor.snapshot_id < QUIET_SNAPSHOTS
            if is_quiet and not (budget.is_begun or is_new or begins_anew or (cursor.in_frame and end != cursor)):
                return dict(start)
            before = None if offset.at is None or begins_anew else offset.at.place
            return self._offset(end, before, begin if is_new or begins_anew else None).to_json()

    def tasks(self, start: Mapping[str, object], end: Mapping[str, object]) -> list[StreamTask]:
        """The tasks that read the rows between two offsets, for
        :func:`~tablestore.distributed.stream.streamtask.read_stream_task`.

        Raises NotFoundError of kind ``snapshot-expired``, InvalidInputError.
        """
        with _ways_out():
            first, last = parse_offset(start), parse_offset(end)
            if last.at is None:
                return []
            self._check_rules()
            stop = self._resumed(last, is_end=True)
            start_offset = first if last.begin is None else StreamOffset(at=last.begin, consumer=last.consumer)
            begin = self._resumed(start_offset)
            if (logged := self._logged(start_offset, begin, stop)) is not None:
                return logged
            return self._plans.tasks(begin, stop, task_bytes=self._request.task_bytes, parallelism=self._request.parallelism)

    def commit(self, end: Mapping[str, object]) -> None:
        """Releases what lies before this offset, which will not be asked for again."""
        with _ways_out():
            offset = parse_offset(end)
            if offset.at is not None:
                place = self._checked_place(offset.at)
                progress = self._open(offset.consumer, place).progress
                progress.commit(place, progress.next_number())

    def newest(self) -> dict[str, object] | None:
        """The newest state of the table, and how far behind it the batch ends that was planned last; None before the first
        one."""
        reached, newest = self._reached, self._newest()
        if reached is None or newest is None:
            return None
        behind = 0 if reached.in_frame else newest.id - (reached.snapshot_id - 1)
        last = self._plans.known(reached.snapshot_id - 1)
        lag_ms = newest.time_millis - last.time_millis if last is not None and behind > 0 else 0
        return {"snapshot": newest.id, "behind-snapshots": max(behind, 0), "behind-millis": lag_ms}

    # -- offsets and places

    def _begun(self) -> StreamCursor:
        """The place where a new stream begins; it is registered with the table first."""
        if self._first is not None:
            return self._first
        request, context = self._request, self._context
        if (newest := self._newest()) is not None:
            # Before it is registered: a stream that cannot begin holds back no expiry.
            self._check_columns(newest)
        name = request.consumer_id or f"stream-{context.ids.uuid()}"
        store = self._open(name, None)
        place: Place
        if request.from_snapshot is not None and Consumers(context.files).find(name) is None:
            # Raises for a snapshot that is still to come.
            self._identity.after(request.from_snapshot)
            place = done(request.from_snapshot)
            self._check_is_kept(place)
            store.progress.begin(place)
            # It may have expired before expiry could see the registration.
            self._check_is_kept(place)
        else:
            place = store.start()
        if (isinstance(place, StorePlace) and place.rows) or (isinstance(place, LogPlace) and place.marks):
            raise InvalidInputError(
                f"consumer {name!r} of table {context.files.root_uri} stands inside of snapshot {place.needed_snapshot}, at a row, "
                "and a stream goes on only between files: let table.consume finish that snapshot, or take another consumer-id",
                kind="position",
            )
        self._first = StreamCursor(place=_store_place(place))
        return self._first

    def _resumed(self, offset: StreamOffset, *, is_end: bool = False) -> StreamCursor:
        """The place of an offset. ``is_end``: what comes before it may still be read."""
        if offset.at is None:
            raise refused_offset(offset.to_json())
        place = self._checked_place(offset.at)
        self._open(offset.consumer, None if is_end else place)
        cursor = StreamCursor(place=_store_place(place), pieces=offset.pieces)
        if offset.pieces and self._reading_at(cursor) != offset.reading:
            raise InvalidInputError(
                f"the offset lies inside of snapshot {cursor.snapshot_id} of table {self._context.files.root_uri}, and was made "
                "with another filter or pairs, or by another release: go on as before until that snapshot is done, or begin anew "
                "with an empty checkpoint",
                kind="position",
            )
        return cursor

    def _checked_place(self, position: Position) -> Place:
        """The place of a position, which must be of this table and this history."""
        text = str(position)
        if text not in self._checked:
            self._identity.checked(position, is_kept=True)
            self._checked = (*self._checked[-16:], text)
        return position.place

    def _open(self, name: str, place: Place | None) -> FileStoreConsumption:
        """The table as followed under the stream's name. ``place``: registered to need what comes behind it, if it is not yet."""
        name = self._request.consumer_id or name
        if self._store is None or self._consumer != name:
            self._store = FileStoreConsumption(self._context, check_request(self._context, self._request, name))
            self._consumer = name
        if place is not None and not self._store.progress.is_begun:
            self._check_is_kept(place)
            self._store.progress.begin(place)
        return self._store

    def _check_is_kept(self, place: Place) -> None:
        """Raise NotFoundError where what a place needs has expired: to register there would hold back expiry for nothing."""
        assert self._store is not None, "a stream is opened before its places are looked at"
        if isinstance(place, LogPlace):
            # The log may have what has expired.
            return
        if place.phase == "frame":
            self._find_frame(place.snapshot_id)
        else:
            self._store.find(place.needed_snapshot)

    def _logged(self, start: StreamOffset, begin: StreamCursor, end: StreamCursor) -> list[StreamTask] | None:
        """The tasks that read the changes between the two from the log; None where the log does not have them."""
        if self._log is None or begin.in_frame or begin.pieces or end.pieces or begin == end:
            return None
        assert start.at is not None, "resumed before"
        ranges = self._log.ranges(start.at.place, upto=end.snapshot_id - 1)
        return None if ranges is None else [StreamTask(head=self._head, log=log_range) for log_range in ranges]

    def _offset(self, end: StreamCursor, before: Place | None, begin: StreamCursor | None) -> StreamOffset:
        place: Place = end.place
        if self._log is not None and not end.in_frame and not end.pieces:
            place = self._log.place(end.snapshot_id - 1, before) or place
        return StreamOffset(
            at=self._identity.position(place),
            pieces=end.pieces,
            reading=self._reading_at(end) if end.pieces else "",
            begin=None if begin is None else self._identity.position(begin.place),
            consumer=self._consumer,
        )

    def _reading_at(self, cursor: StreamCursor) -> str:
        return reading_of(self._reading, self._plans.pieces(cursor)[: cursor.pieces])

    # -- how far a batch goes

    def _next(self, cursor: StreamCursor, newest: int, limits: BatchLimits | None) -> tuple[StreamCursor, StreamCursor, Budget]:
        """The place where the next batch begins (``cursor``, unless it begins anew), where it ends, and what it has taken."""
        budget = Budget(limits)
        if cursor.in_frame:
            return cursor, self._through_frame(cursor, budget), budget
        end = cursor
        while end.snapshot_id <= newest and not budget.is_full and (planned := self._plans.changes(end.snapshot_id)) is not None:
            gap = planned.changes.gap if not end.pieces and self._request.on_discontinuity != "skip" else None
            schema = planned.changes.context.schema
            if gap is not None or self._has_changed(schema):
                if budget.is_begun:
                    break
                if gap is None:
                    raise self._schema_changed(schema, planned.snapshot)
                anew = self._anew(gap)
                return anew, self._through_frame(anew, budget), budget
            steps = planned.changes.steps
            if self._log is not None and not end.pieces:
                # The log knows no pieces.
                if budget.takes(file for step in steps for file in files_of(step)):
                    end = end.moved(len(steps), len(steps))
                continue
            piece_count = end.pieces
            while piece_count < len(steps) and budget.takes(files_of(steps[piece_count])):
                piece_count += 1
            end = end.moved(piece_count, len(steps))
        return cursor, end, budget

    def _through_frame(self, cursor: StreamCursor, budget: Budget) -> StreamCursor:
        # Its rows are handed out once: with the columns that they had before, the new ones would never come.
        self._check_columns(self._find_frame(cursor.snapshot_id))
        pieces = self._plans.frame(cursor.snapshot_id)
        piece_count = cursor.pieces
        for piece in self._plans.kept(pieces[piece_count:]):
            if not budget.takes(() if piece is None else piece.files):
                break
            piece_count += 1
        return cursor.moved(piece_count, len(pieces))

    def _anew(self, gap: Discontinuity) -> StreamCursor:
        """The place where all rows begin anew, as of a snapshot that does not say what it changed. Raises NotFoundError unless
        that was asked for."""
        if self._request.on_discontinuity == "raise":
            raise NotFoundError(
                f"table {self._context.files.root_uri}: {gap.reason}, so the changes behind snapshot {gap.snapshot_id - 1} are not "
                "known; go on from the same checkpoint with on-discontinuity = restart (all rows as of that snapshot come next, as "
                "new ones) or skip (without those changes)",
                kind="discontinuity",
            )
        return StreamCursor(place=StorePlace(phase="frame", snapshot_id=gap.snapshot_id))

    def _check_rules(self) -> None:
        """Raise ConflictError where a catalog service has other rules for the caller than when the stream began."""
        if self._context.rules is not None and self._unruled.ruled().rules != self._context.rules:
            raise ConflictError(
                f"table {self._context.files.root_uri}: the rules of its catalog service for you are others than when this stream "
                "began. Nothing is lost: load the stream again, start it with the same checkpoint, and it goes on under them",
                kind="rules-changed",
            )

    def _check_columns(self, snapshot: Snapshot) -> None:
        """Raise ConflictError where a snapshot has other columns than the stream."""
        schema = self._context.schemas.read(snapshot.schema_id)
        if self._has_changed(schema):
            raise self._schema_changed(schema, snapshot)

    def _has_changed(self, schema: TableSchema) -> bool:
        """True if what is read has other columns from here on."""
        stream_schema = self._context.schema
        if schema.id <= stream_schema.id:
            return False
        if self._request.columns is None:
            return _columns(schema.fields) != _columns(stream_schema.fields)
        read = {stream_schema.field(name).id: stream_schema.field(name).type for name in self._read}
        return read != {field.id: field.type for field in schema.fields if field.id in read}

    def _schema_changed(self, schema: TableSchema, snapshot: Snapshot) -> ConflictError:
        stream_schema = self._context.schema
        landed = schema_landed(stream_schema, schema, snapshot.id)
        return ConflictError(
            f"table {self._context.files.root_uri}: schema {schema.id} landed with snapshot {snapshot.id} "
            f"({'; '.join(landed.changes) if landed else 'columns were altered'}), and this stream reads the columns of schema "
            f"{stream_schema.id}. Nothing is lost: load the stream again, start it with the same checkpoint, and it goes on with "
            "the new columns",
            kind="schema-changed",
        )

    # -- looking at the table

    def _find(self, snapshot_id: int) -> Snapshot | None:
        assert self._store is not None, "a stream is opened before it is planned"
        snapshot = self._store.find(snapshot_id)
        if snapshot is not None:
            self._identity.note(snapshot)
        return snapshot

    def _find_frame(self, snapshot_id: int) -> Snapshot:
        assert self._store is not None, "a stream is opened before it is planned"
        snapshot = self._context.snapshots.find(snapshot_id)
        if snapshot is None:
            raise self._store.expired(snapshot_id)
        return snapshot

    def _look(self) -> Snapshot | None:
        """The newest snapshot, with all that landed before this was asked: so an engine can wait for all that is there."""
        clock = self._context.clock
        if self._looked is not None and (early_s := self._looked[0] + self._look_s - clock.steady_s()) > 0:
            clock.sleep(early_s)
        now_s, newest = clock.steady_s(), self._context.snapshots.latest()
        self._context.check_is_there()
        self._looked = now_s, newest
        return newest

    def _newest(self) -> Snapshot | None:
        """The newest snapshot as of the last look."""
        return self._look() if self._looked is None else self._looked[1]

    def _newest_id(self, cursor: StreamCursor) -> int:
        newest = self._newest()
        newest_id = newest.id if newest is not None else 0
        if newest_id < cursor.place.anchor:
            # The table has gone back to an older copy: what was checked before does not count.
            self._identity.checked(self._identity.position(cursor.place), is_kept=True)
        readable = newest_id if self._log is None else self._log.newest(newest_id)
        return readable if self._upto is None else min(readable, self._upto)

    def _keep_alive(self) -> None:
        """An idle stream is not a dead one."""
        expiration_ms = TableOptions(self._context.schema.options).value(opt.CONSUMER_EXPIRATION_TIME)
        now_s = self._context.clock.steady_s()
        if isinstance(expiration_ms, int) and self._store is not None and now_s - self._alive_s > expiration_ms / 4000:
            self._alive_s = now_s
            self._store.progress.keep_alive()


def _columns(fields: Sequence[Field]) -> list[tuple[int, str, DataType]]:
    return [(field.id, field.name, field.type) for field in fields]


def _store_place(place: Place) -> StorePlace:
    return place if isinstance(place, StorePlace) else done(place.base)


@contextmanager
def _ways_out() -> Iterator[None]:
    """Errors that end a stream say how another one begins."""
    try:
        yield
    except TablestoreError as error:
        if error.kind not in _ANEW:
            raise
        raise type(error)(f"{error.message}. A stream begins anew with an empty checkpoint", kind=error.kind) from error
