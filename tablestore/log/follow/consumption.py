"""Follows a table through its snapshots: its rows now, and every change after them.

    scan="full"             |-- rows at snapshot N --|-- changes of N+1 --|-- changes of N+2 --| …
    scan="latest"                                    |-- changes of N+1 --| …
    scan="from-timestamp"          |-- changes of the first snapshot at or after the time --| …

No gap and no duplicate: the rows at N are exactly what the changes up to N add up to (of tables whose compactions write the
changelog: the compacted rows), and every batch says at which :class:`Position` it ends. A named consumer keeps its position in
the table, and expiry keeps what it still has to read.

    for batch in table.consume(consumer_id="billing"):
        handle(batch.rows)
        batch.commit()          # from here on a restart begins behind this batch: at least once
                                # exactly once: store batch.position with the results, pass it as position=

Memory: two batches. Left to others: what a snapshot's changes are (store.changefeed).
"""

from collections.abc import Generator, Iterator
from dataclasses import replace

import pyarrow as pa

from tablestore import options as opt
from tablestore.errors import FormatError, InvalidInputError, NotFoundError, UnsupportedError
from tablestore.format.parquet.parquetschema import KIND_COLUMN
from tablestore.format.paths import content_uuid
from tablestore.format.snapshot import Snapshot
from tablestore.log.events import Event, Restarted, does_not_fit, schema_landed
from tablestore.log.follow.request import Consumption
from tablestore.log.identity import Identity
from tablestore.log.position import POSITION_KEY, LogPlace, Place, Position, StorePlace, done, parse_stored
from tablestore.options import TableOptions
from tablestore.store.changes.changefeed import ChangeFeed
from tablestore.store.changes.changeplan import change_rule
from tablestore.store.changes.changescope import Discontinuity
from tablestore.store.changes.expiredchanges import Changelogs
from tablestore.store.context import TableContext
from tablestore.store.history.consumers import Consumer, Consumers
from tablestore.store.rowview import stored_condition
from tablestore.store.scan.scanplan import WantedFiles, plan_scan
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.snapshots import follows
from tablestore.types.arrays import empty_batch
from tablestore.types.rowkind import ROW_KIND_COLUMN, symbols_from_kinds
from tablestore.types.schema import TableSchema


class ChangeBatch:
    """Some rows in order: ``_row_kind``, then the columns. Rows of the table as it was at the start are ``+I``.

    ``event``: no rows, but something that a follower of the table has to know (:mod:`tablestore.log.events`); else None.
    """

    def __init__(
        self,
        rows: pa.RecordBatch,
        snapshot_id: int,
        place: Place,
        *,
        in_frame: bool,
        progress: "Progress",
        event: Event | None = None,
    ) -> None:
        self.rows, self.snapshot_id, self.in_frame, self.event = rows, snapshot_id, in_frame, event
        self.position = progress.named(place)
        self._progress, self._number = progress, progress.next_number()

    def commit(self) -> None:
        """Record in the table that the named consumer is done with this batch and all before it. Of a batch before one that it is
        done with, that has been recorded.

        Raises ConflictError if another table is in its place, NotFoundError if it was dropped.
        """
        self._progress.check_is_there()
        self._progress.commit(self.position.place, self._number)

    def __repr__(self) -> str:
        content = f"rows={self.rows.num_rows}" if self.event is None else f"event={self.event!r}"
        return f"ChangeBatch(snapshot_id={self.snapshot_id}, {content}, position={self.position})"


class Progress:
    """The stored progress of a named consumer, in the table; without a name nothing is kept."""

    def __init__(self, consumers: Consumers, consumer_id: str | None, identity: Identity) -> None:
        self._consumers, self._id, self._identity = consumers, consumer_id, identity
        self._committed: Place | None = None
        self._handed_out = self._done = 0

    def next_number(self) -> int:
        """The number of the next batch that is handed out."""
        self._handed_out += 1
        return self._handed_out

    def named(self, place: Place) -> Position:
        """The place, with the history that it is of."""
        return self._identity.position(place)

    def check_is_there(self) -> None:
        """Another table that has the place now knows nothing of the consumer."""
        self._identity.check_is_there()

    @property
    def is_begun(self) -> bool:
        """True if this process has said where the consumer stands."""
        return self._committed is not None

    def begin(self, place: Place) -> None:
        self._committed = place
        self._write(place)

    def commit(self, place: Place, number: int) -> None:
        """The consumer is done with the batch of this number, which ends at ``place``."""
        if self._id is None:
            raise InvalidInputError(
                "this consumer has no name to keep its progress under: pass consumer_id=..., or store batch.position yourself and "
                "go on with consume(position=...)",
                kind="no-consumer",
            )
        if number > self._done:
            self._done = number
            self._move(place)

    def keep_alive(self) -> None:
        """Say that the consumer is still at work where it stands (``consumer.expiration-time``)."""
        if self._committed is not None:
            self._move(self._committed)

    def passed(self, before: Place, after: Place) -> None:
        """Moves the consumer over a stretch in which nothing lies: one that was done with its beginning is done with its end."""
        if self._id is not None and self._committed == before:
            self._move(after)

    def _move(self, place: Place) -> None:
        self._committed = place
        stored = None if self._id is None else self._consumers.find(self._id)
        # Another process of this name has come further, or the consumer was moved on: it is not moved back.
        if stored is None or stored.next_snapshot <= place.needed_snapshot:
            self._write(place)

    def _write(self, place: Place) -> None:
        if self._id is not None:
            self._consumers.write(self._id, place.needed_snapshot, {POSITION_KEY: self.named(place).to_json()})


class FileStoreConsumption:
    """Reads a table's snapshots and their changes from the file store.

    ``last``: behind what was handed out last; ``resumed``: a named consumer went on where it stood; ``wants_older``: it begins with
    the oldest changes there are, and older ones were asked for.
    """

    def __init__(self, context: TableContext, request: Consumption) -> None:
        self._unruled, context = context, context.ruled()
        self._context, self._request = context, request
        self._identity = Identity(context)
        self.progress = Progress(Consumers(context.files), request.start.consumer_id, self._identity)
        self._reading, self._feed = self._fingerprint(), self._changes_feed()
        schema = SplitReader.of(context, request.columns, None).arrow_schema
        self.schema = pa.schema([pa.field(ROW_KIND_COLUMN, pa.string(), nullable=False), *schema])
        self.last: StorePlace | None = None
        self._last_read: Snapshot | None = None
        self._schema_id = context.schema.id
        self._gap = ""
        self.resumed = self.wants_older = False
        self._interval_s = TableOptions(context.schema.options).integer(opt.DISCOVERY_INTERVAL) / 1000

    def _fingerprint(self) -> str:
        rules = self._context.rules
        shown = "" if rules is None or rules.is_empty else f" {content_uuid(repr(rules.texts).encode())}"
        return f"{self._request.fingerprint(self._context.schema)}{shown}"

    def _changes_feed(self) -> ChangeFeed:
        request = self._request
        feed = ChangeFeed(
            context=self._context,
            columns=request.columns,
            predicate=request.predicate,
            pairs=request.pairs,
            as_written=request.as_written,
        )
        feed.check()
        return feed

    def _look_at_rules(self) -> None:
        """The rules of a catalog service are those of now, snapshot by snapshot."""
        if self._context.rules is None or (context := self._unruled.ruled()).rules == self._context.rules:
            return
        self._context = context
        self._reading, self._feed = self._fingerprint(), self._changes_feed()

    def take_tombstones(self) -> None:
        """Gives all batches the columns of those from a log, where a delete names nothing but its key: any may be NULL."""
        self.schema = pa.schema([field.with_nullable(place > 0) for place, field in enumerate(self.schema)])

    def batches(self) -> Iterator[ChangeBatch]:
        """The batches, for ever if the request follows. Where to begin is decided now, not with the first batch.

        Raises NotFoundError (expired, discontinuity), ConflictError if another table is in the place of this one.
        """
        start = self.start()
        # A position in a log that the table no longer has: everything up to its base is done.
        return self.batches_from(start if isinstance(start, StorePlace) else self._out_of_log(start))

    def batches_from(self, position: StorePlace) -> Iterator[ChangeBatch]:
        """Reads as :meth:`batches`, from a place on."""
        with self._context.reading():
            yield from self._batches_from(position)

    def _batches_from(self, position: StorePlace) -> Iterator[ChangeBatch]:
        while not self._stopped():
            if position.phase == "frame":
                yield from self._frame(position)
                position = self._pass(position)
                continue
            snapshot = self.find(position.snapshot_id)
            if snapshot is None:
                if not self._request.follow:
                    return
                self._context.clock.sleep(self._interval_s)
                continue
            self._identity.note(snapshot)
            self._look_at_rules()
            plan = self._feed.plan(snapshot)
            if plan.gap is not None and (restart := self.on_discontinuity(plan.gap)) is not None:
                yield self.restarted(position := restart)
                continue
            if (landed := self.schema_landed(snapshot.id, plan.context.schema, position)) is not None:
                yield landed
            yield from self._handed_out(plan.batches(), position, frame=False)
            position = self._pass(position)

    # -- where to begin

    def start(self) -> Place:
        """The place to begin at: where the named consumer stood, at the position given, or where ``scan`` says."""
        start, consumers = self._request.start, Consumers(self._context.files)
        consumer = consumers.find(start.consumer_id) if start.consumer_id is not None else None
        if consumer is not None:
            self.resumed = True
            self.progress.begin(place := self._stored_place(consumer))
            return place
        if start.position is not None:
            return self._checked(self._identity.checked(start.position))
        while True:
            first = self._first()
            # Registered first, then looked at: expiry that did not see the registration has removed it by now.
            self.progress.begin(first)
            if first.phase == "changes" or self._context.snapshots.find(first.snapshot_id) is not None:
                return first

    def _stored_place(self, consumer: Consumer) -> Place:
        """The stored place of a named consumer."""
        stored = consumer.extra.get(POSITION_KEY)
        position = parse_stored(stored) if stored is not None else None
        # Another engine moves nextSnapshot and does not know of places inside of a snapshot.
        if position is None or position.needed_snapshot != consumer.next_snapshot:
            return done(consumer.next_snapshot - 1)
        if isinstance(position, Position):
            return self._checked(self._identity.checked(position, is_kept=True))
        return self._checked(position, reading=self._request.unnamed_fingerprint())

    def _first(self) -> StorePlace:
        start = self._request.start
        latest = self._context.snapshots.latest()
        self._context.check_is_there()
        newest = latest.id if latest else 0
        if start.scan == "full" and latest is not None:
            return StorePlace(phase="frame", snapshot_id=newest)
        first = newest + 1
        if start.scan == "from-timestamp":
            assert start.time_millis is not None
            for snapshot in self._feed.readable():
                if snapshot.time_millis < start.time_millis:
                    break
                first = snapshot.id
            else:
                self.wants_older = first > 1
        return done(first - 1)

    def _checked(self, place: Place, *, reading: str | None = None) -> Place:
        if not isinstance(place, StorePlace) or not place.rows:
            return place
        if place.reading != (self._reading if reading is None else reading):
            raise InvalidInputError(
                f"the position {self.progress.named(place)} lies inside of a snapshot and was made with another filter or "
                "pairs: go on as before, or begin anew under another consumer_id",
                kind="position",
            )
        return replace(place, reading=self._reading)

    def _out_of_log(self, place: LogPlace) -> StorePlace:
        if place.marks:
            raise InvalidInputError(
                f"the position {self.progress.named(place)} lies inside of snapshot {place.base + 1} in a log that this table "
                "no longer has, or that has no -U rows: go on as before, or begin anew under another consumer_id",
                kind="position",
            )
        return done(place.base)

    # -- reading on

    def batch(self, rows: pa.RecordBatch, snapshot_id: int, place: Place) -> ChangeBatch:
        """Changes as they are handed out."""
        return ChangeBatch(rows, snapshot_id, place, in_frame=False, progress=self.progress)

    def restarted(self, place: StorePlace) -> ChangeBatch:
        """The event that all rows come next."""
        return self._event(Restarted(snapshot_id=place.snapshot_id, reason=self._gap), place, in_frame=True)

    def schema_landed(self, snapshot_id: int, schema: TableSchema, place: Place) -> ChangeBatch | None:
        """The event that the changes behind ``place`` may have other columns than before; None if that was handed out."""
        if schema.id <= self._schema_id:
            return None
        self._schema_id = schema.id
        event = schema_landed(self._context.schema, schema, snapshot_id)
        return None if event is None else self._event(event, place, in_frame=False)

    def _event(self, event: Event, place: Place, *, in_frame: bool) -> ChangeBatch:
        nothing = empty_batch(self.schema)
        return ChangeBatch(nothing, event.snapshot_id, place, in_frame=in_frame, progress=self.progress, event=event)

    def finish(self, position: StorePlace) -> Generator[ChangeBatch, None, int]:
        """The rest of the snapshot in which ``position`` lies; returns the snapshot up to which everything is then done."""
        if position.phase == "changes" and not position.rows:
            return position.snapshot_id - 1
        if position.phase == "frame":
            yield from self._frame(position)
        elif (snapshot := self.find(position.snapshot_id)) is not None:
            yield from self._changes(position, snapshot)
        return position.snapshot_id

    def place(self, position: StorePlace) -> StorePlace:
        """``position``, or the place behind its snapshot if the rest of that was handed out."""
        return position.behind() if self.last == position.behind() else position

    def _frame(self, position: StorePlace) -> Iterator[ChangeBatch]:
        self._look_at_rules()
        context, request = self._context, self._request
        snapshot = context.snapshots.find(position.snapshot_id)
        if snapshot is None:
            raise self.expired(position.snapshot_id)
        self._check_history(snapshot)
        self._identity.note(snapshot)
        if (landed := self.schema_landed(snapshot.id, context.schemas.read(snapshot.schema_id), position)) is not None:
            yield landed
        rule = change_rule(context)
        plan = plan_scan(
            context, snapshot, stored_condition(context.view, request.predicate), wanted=WantedFiles(at_level=rule.in_frame)
        )
        reader = SplitReader.of(context, request.columns, request.predicate)
        rows = (batch for split in plan.splits for batch in reader.read(split))
        yield from self._handed_out(rows, position, frame=True)

    def _changes(self, position: StorePlace, snapshot: Snapshot) -> Iterator[ChangeBatch]:
        self._look_at_rules()
        plan = self._feed.plan(snapshot)
        assert not isinstance(plan, Discontinuity), "looked at before"
        yield from self._handed_out(plan.batches(), position, frame=False)

    def _handed_out(self, batches: Iterator[pa.RecordBatch], position: StorePlace, *, frame: bool) -> Iterator[ChangeBatch]:
        before, seen = position.rows, 0
        # Held back until it is known whether it is the last one: that ends at the place behind the snapshot.
        held: tuple[pa.RecordBatch, int] | None = None
        for batch in self._fitting(batches):
            skipped = min(max(before - seen, 0), batch.num_rows)
            seen += batch.num_rows
            batch = batch.slice(skipped)
            if not batch.num_rows:
                continue
            if held is not None:
                inside = replace(position, rows=held[1], reading=self._reading)
                yield self._handed(held[0], position.snapshot_id, inside, frame=frame)
            held = batch, seen
        if held is not None:
            yield self._handed(held[0], position.snapshot_id, position.behind(), frame=frame)

    def _fitting(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except (FormatError, UnsupportedError) as error:
            if self._schema_id <= self._context.schema.id:
                raise
            raise does_not_fit(f"table {self._context.files.root_uri}", self._schema_id, self._context.schema.id, error) from error

    def _handed(self, batch: pa.RecordBatch, snapshot_id: int, place: StorePlace, *, frame: bool) -> ChangeBatch:
        kinds = pa.repeat(pa.scalar("+I"), batch.num_rows) if frame else symbols_from_kinds(batch.column(KIND_COLUMN))
        rows = pa.RecordBatch.from_arrays([kinds, *(batch.column(name) for name in self._request.columns)], schema=self.schema)
        self.last = place
        return ChangeBatch(rows, snapshot_id, place, in_frame=frame, progress=self.progress)

    def _pass(self, position: StorePlace) -> StorePlace:
        """Behind the snapshot of ``position``, all of which was handed out."""
        self.progress.passed(self.place(position), position.behind())
        return position.behind()

    def on_discontinuity(self, gap: Discontinuity) -> StorePlace | None:
        """The place to begin anew at a snapshot whose changes are not all known; None to go on without. Raises NotFoundError."""
        reaction = self._request.on_discontinuity
        if reaction == "raise":
            raise NotFoundError(
                f"table {self._context.files.root_uri}: {gap.reason}, so the changes behind snapshot {gap.snapshot_id - 1} are "
                'not known; go on with on_discontinuity="restart" (the whole table as of that snapshot comes next) or "skip"',
                kind="discontinuity",
            )
        self._gap = gap.reason
        return None if reaction == "skip" else StorePlace(phase="frame", snapshot_id=gap.snapshot_id)

    def find(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot, None if it is still to come. Raises NotFoundError (expired), ConflictError (the table was replaced)."""
        if (snapshot := self._look_up(snapshot_id)) is not None:
            self._check_history(snapshot)
        return snapshot

    def _check_history(self, snapshot: Snapshot) -> None:
        """A snapshot that was built on the one that was read last is of the same table; for another one that is looked up."""
        last, self._last_read = self._last_read, snapshot
        if last is None or snapshot.id != last.id + 1 or follows(snapshot, last) is not True:
            self._context.still_there()

    def _look_up(self, snapshot_id: int) -> Snapshot | None:
        context = self._context
        if (snapshot := context.snapshots.find(snapshot_id)) is not None and self._feed.is_whole(snapshot):
            return snapshot
        latest = context.snapshots.latest()
        if latest is None or latest.id < snapshot_id:
            context.check_is_there()
            return None
        # It may have landed between the two looks.
        if (snapshot := context.snapshots.find(snapshot_id)) is not None and self._feed.is_whole(snapshot):
            return snapshot
        if (changelog := Changelogs(context.files).find(snapshot_id)) is not None and not self._feed.looks_up(changelog):
            return changelog
        raise self.expired(snapshot_id)

    def expired(self, snapshot_id: int) -> NotFoundError:
        """The error that a snapshot which is needed is gone."""
        context = self._context
        retained = context.snapshots.live_ids()
        return NotFoundError(
            f"table {context.files.root_uri}: snapshot {snapshot_id}, which this consumer needs next, has expired (retained are "
            f'{f"{retained[0]} to {retained[-1]}" if retained else "none"}); begin anew with scan="full" under another '
            "consumer_id, and read under a consumer_id so that expiry keeps what is still to be read",
            kind="snapshot-expired",
        )

    def _stopped(self) -> bool:
        return self._request.stop is not None and self._request.stop()
