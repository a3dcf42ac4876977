"""A table's life over a log, drawn by chance, among people who copy, restore, drop and alter what is in use.

    place "prod"    the table, its log, and two processes that write
    place "copy"    what `cp -r` made of it, and goes on writing
    followers       keep rows and a position of their own, and no name in the table

Now and then everything is compared:

* a plain reader of the log finds every change of the table's snapshots since the log began, each once and none of anybody else; or
  the publisher says by name what is the matter, has sent what it could, and does it all once the way out that it names is taken;
* each follower holds what the table holds, in the columns that the table has; or its position is refused by name, for the reason
  that there is, and it begins anew.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Any, Protocol

import pyarrow as pa

import tablestore as ts
from tablestore.errors import ConflictError, InvalidInputError, NotFoundError, TablestoreError
from tablestore.io.memory import MemoryFileStore
from tablestore.log.connector import open_log_store
from tablestore.log.events import Restarted, SchemaLanded
from tablestore.log.follow.consumption import ChangeBatch
from tablestore.log.follow.request import Consumption, parse_start
from tablestore.log.position import LogPlace, Position, parse_position
from tablestore.log.record import RawRecords
from tablestore.testing.auditor import walk
from tablestore.testing.deterministic import ManualClock, SeededIds
from tablestore.types.evolution.schemachanges import AddColumn, ChangeType, SetOption

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
NAME = "shop.t"
LIMIT_OPTION = "log.kafka.message.max.bytes"
# What the table's options allow, what an administrator lowers the log to, and rows between them and above both.
LIMIT, LOWERED, LARGE, TOO_LARGE = 200_000, 50_000, 100_000, 300_000
EVERYTHING = 10_000
MOST_POLLS = 30
TOO_LARGE_KIND = "log-record-too-large"
HISTORY_KINDS = ("log-ahead", "log-history", "log-replaced")
Row = dict[str, Any]
Record = tuple[int, int, str | None]
"""Snapshot, id, and the text of the row; None for a row that was removed."""


class Broker(Protocol):
    """Keeps logs."""

    silent: bool
    address: str

    def limit(self, name: str, record_bytes: int) -> None:
        """A log takes no larger records from now on: nobody who uses it hears of that."""
        ...


@dataclass(slots=True)
class Truth:
    """Holds what is true of the table, and goes back with it when an older copy takes its place."""

    incarnation: str
    # The snapshot that the log begins with.
    begins: int = 1
    changes: dict[int, list[Record]] = field(default_factory=dict)
    uuids: dict[int, str | None] = field(default_factory=dict)

    def copy(self) -> "Truth":
        return Truth(self.incarnation, self.begins, dict(self.changes), dict(self.uuids))

    def told(self) -> Counter[Record]:
        """The records that its log has to hold."""
        return Counter(record for number, of_it in self.changes.items() if number >= self.begins for record in of_it)


class LogPlay:
    """One life. ``topic``: what the log is called; ``broker`` outlives the play."""

    def __init__(self, seed: int, broker: Broker, *, topic: str = "play", steps: int = 40) -> None:
        self.seed, self.broker, self.topic, self.steps = seed, broker, topic, steps
        self.chance, self.clock = random.Random(seed), ManualClock()
        self.files = MemoryFileStore(f"play-{broker.address}-{topic}-{seed}".replace(":", "-").replace(",", "-"), clock=self.clock)
        self.happened: Counter[str] = Counter()
        self.trace: list[str] = []
        self._ids = self._texts = self._limit = self._columns = 0
        self._opened: list[ts.Catalog] = []
        self.followers = [Follower(self) for _ in range(3)]

    def run(self) -> Counter[str]:
        """Play it; what happened, how often. The seed and the steps are in every failure."""
        try:
            self._catalog("prod").create_database("shop")
            self._make()
            for _ in range(self.steps):
                step = self.chance.choices(list(STEPS), [often for _, often in STEPS.values()])[0]
                self._note(step)
                self.clock.advance(1)
                STEPS[step][0](self)
                self._look()
            self._note("check")
            self._check()
        except BaseException as error:
            error.add_note(f"seed {self.seed}: " + ", ".join(self.trace))
            raise
        finally:
            self._end_processes()
            self.broker.silent = False
            MemoryFileStore.forget(self.files.root_uri.removeprefix("memory://"))
        return self.happened

    def _note(self, what: str) -> None:
        self.trace.append(what)
        self.happened[what] += 1

    # -- processes

    def _catalog(self, place: str) -> ts.Catalog:
        """Another process, as it were."""
        self._ids += 1
        ids = SeededIds(self.seed * 1_000_003 + self._ids)
        self._opened.append(made := ts.open_catalog(f"{self.files.root_uri}/{place}", clock=self.clock, ids=ids))
        return made

    def open(self, place: str = "prod") -> ts.Table:
        """A handle of a process of its own."""
        return _table(self._catalog(place))

    def _end_processes(self) -> None:
        while self._opened:
            self._opened.pop().close()

    def _restart(self) -> None:
        self._end_processes()
        self.writers = [self._catalog("prod"), self._catalog("prod")]
        for follower in self.followers:
            follower.table = None

    def _writer(self) -> ts.Table:
        return _table(self.chance.choice(self.writers))

    # -- the table and its log

    def _make(self) -> None:
        options = {"bucket": "2", "write-only": "true", LIMIT_OPTION: str(LIMIT)}
        kafka = {"log.kafka.bootstrap.servers": self.broker.address, "log.kafka.topic": self.topic}
        table = self._catalog("prod").create_table(NAME, COLUMNS, primary_key=["id"], options={**options, **kafka})
        self.truth, self.has_copy = Truth(_incarnation(table)), False
        self.backup: tuple[Mapping[str, bytes], Truth] | None = None
        self.is_expired = False
        # A publisher may have noted it, and a backup brings the note back.
        self.was_lowered = False
        self._restart()

    def _make_again(self) -> None:
        self._end_processes()
        self._catalog("prod").drop_table(NAME)
        self._make()

    def _back_up(self) -> None:
        self.backup = self._files("prod"), self.truth.copy()

    def _restore(self) -> None:
        """An older copy takes the table's place."""
        if self.backup is None:
            return
        files, truth = self.backup
        self._end_processes()
        self._replace("prod", files)
        self.truth = truth.copy()
        self._restart()

    def _copy(self) -> None:
        self._replace("copy", self._files("prod"))
        self.has_copy = True
        self._write_to_the_copy()

    def _write_to_the_copy(self) -> None:
        """It lands, and nobody hears of it in the log of the original."""
        if not self.has_copy:
            return
        copy = self.open("copy")
        assert copy.upsert(_rows(copy, {self.chance.randrange(6): self._text("copy")})) is not None
        error = _published(copy)
        assert error is not None and error.kind == "log-moved", f"a copy published to the original's log, or was told {error!r}"

    def _files(self, place: str) -> Mapping[str, bytes]:
        files = self.files.at(place)
        return {path: files.read(path) for path in walk(files)}

    def _replace(self, place: str, found: Mapping[str, bytes]) -> None:
        self.files.delete_directory(place)
        files = self.files.at(place)
        for path, data in found.items():
            files.write(path, data)

    def _look(self) -> None:
        self.truth.uuids |= {snapshot.id: snapshot.uuid for snapshot in self.open().snapshots()}

    # -- writes

    def _text(self, what: str, size: int = 0) -> str:
        self._texts += 1
        return f"{what}{self._texts}-".ljust(size, "x")

    def _write(self, *, size: int = 0) -> None:
        """A few rows, one of them of ``size``."""
        texts = {key: self._text("w") for key in self.chance.sample(range(6), 3)}
        if size:
            texts[self.chance.choice(list(texts))] = self._text("large", size)
        table = self._writer()
        try:
            landed = table.upsert(_rows(table, texts))
        except InvalidInputError as error:
            may_refuse = size == TOO_LARGE or (size and self.was_lowered)
            if error.kind != TOO_LARGE_KIND or not may_refuse or not _names(error, texts, size):
                raise
            self.happened["refused to write"] += 1
            return
        assert landed is not None and size != TOO_LARGE, "a row landed that its log cannot take"
        self.truth.changes[landed.id] = [(landed.id, key, text) for key, text in texts.items()]

    def _write_too_large(self) -> None:
        self._write(size=TOO_LARGE)

    def _delete(self) -> None:
        keys = self.chance.sample(range(6), 2)
        landed = self._writer().delete(pa.table({"id": keys}))
        if landed is not None:
            self.truth.changes[landed.id] = [(landed.id, key, None) for key in keys]

    def _overwrite(self) -> None:
        """With rows, or with none. The log moves on without it."""
        table = self._writer()
        table.overwrite(_rows(table, self.chance.choice([{}, {}, {self.chance.randrange(6): self._text("over")}])))

    def _roll_back(self) -> None:
        table = self._writer()
        if snapshots := table.snapshots():
            table.rollback_to(self.chance.choice(snapshots).id)

    def _evolve(self) -> None:
        table = self._writer()
        narrow = [field.name for field in table.schema if field.type == pa.int32()]
        if narrow and self.chance.random() < 0.5:
            table.alter(ChangeType(self.chance.choice(narrow), pa.int64()))
        elif len(table.schema) < 6:
            self._columns += 1
            table.alter(AddColumn(f"n{self._columns}", pa.int32()))
        self._write()

    def _expire(self, *, whole: bool = False) -> None:
        table = self._writer()
        table.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(0))
        assert not whole or len(table.snapshots()) == 1, "snapshots are kept that nobody needs"
        self.is_expired = True

    def _brokers_away(self) -> None:
        self.broker.silent = True
        for _ in range(self.chance.randrange(1, 4)):
            self.chance.choice([self._write, self._delete, self._overwrite])()
        self._answers()

    def _limit_lowered(self) -> None:
        """While nobody publishes, and before a row that was within the limit."""
        self.broker.silent = True
        self._write()
        self.broker.limit(self.topic, LOWERED)
        self.was_lowered = True
        self._write(size=LARGE)
        self._write()
        self._answers()

    def _answers(self) -> None:
        self.broker.silent = False
        # Writers ask again after a while.
        self.clock.advance(60)

    # -- what must come out

    def _read(self) -> None:
        self.chance.choice(self.followers).read(self.chance.choice([1, 2, 5]))

    def _check(self) -> None:
        self._answers()
        table = self.open()
        before = self._in_log(table)
        while (error := _published(table)) is not None:
            if error.kind == TOO_LARGE_KIND:
                self._check_too_large(table, error)
            elif error.kind in HISTORY_KINDS:
                self._check_history(table, error, before)
            else:
                raise error
            table = self.open()
        found, wanted = self._in_log(table), self.truth.told()
        lacks, exceeds = sorted(map(_short, wanted - found)), sorted(map(_short, found - wanted))
        assert found == wanted, f"the log lacks {lacks}, and has too much {exceeds}"
        for follower in self.followers:
            follower.check(table)

    def _check_history(self, table: ts.Table, error: TablestoreError, before: Counter[Record]) -> None:
        """The log holds another history, nothing was added to it, and it is made anew as the error says."""
        assert self.is_log_of_another(table), f"the log holds what it should, and was refused: {error}"
        assert self._in_log(table) == before and "log rebuild" in str(error)
        self.happened[error.kind] += 1
        try:
            table.change_log.rebuild()
        except InvalidInputError as too_large:
            if too_large.kind != TOO_LARGE_KIND:
                raise
        self.truth.begins, self.truth.incarnation = table.snapshots()[0].id if table.snapshots() else 1, _incarnation(table)

    def _check_too_large(self, table: ts.Table, error: TablestoreError) -> None:
        """Check that what comes before the row is in the log, the row is named, and there are two ways on."""
        held, told = self._in_log(table), self.truth.told()
        first = min(record[0] for record in told if len(record[2] or "") >= LARGE and record not in held)
        of_it = {key: text for number, key, text in told if number == first and text is not None}
        assert _names(error, of_it, LARGE), f"snapshot {first} has the row that is too large: {error}"
        before = Counter({record: count for record, count in told.items() if record[0] < first})
        assert before <= held, f"what comes before the row is not sent: {sorted(map(_short, before - held))}"
        assert all(record[0] <= first for record in held) and held <= told, "what comes behind the row was sent before it"
        self.happened["named"] += 1
        if self.chance.random() < 0.5:
            self._limit += 1
            table.alter(SetOption(LIMIT_OPTION, str(LIMIT + self._limit)))
            self._restart()
            # The first writer knows of it, before any publisher was there.
            self.was_lowered = False
            self._write(size=LARGE)
            assert _published(self.open()) is None, "with a higher limit it goes on"
        else:
            table.alter(SetOption("log.system", "filestore"))
            self._restart()
            self._write(size=LARGE)
            self._expire(whole=True)
            begun = self.open().alter(SetOption("log.system", "kafka"))
            self.truth.begins, self.truth.incarnation = begun.snapshots()[-1].id + 1, _incarnation(begun)
            self._restart()
        self._look()

    def _in_log(self, table: ts.Table) -> Counter[Record]:
        """The records that a reader finds who knows nothing of tablestore."""
        settings = table.change_log.settings
        log = open_log_store(settings)
        buckets = range(settings.partitions)
        ends = {bucket: tail.next_offset for bucket, tail in log.tails(buckets).items() if not tail.empty}
        cursor = log.open_cursor({bucket: begin for bucket, (begin, _) in log.bounds(buckets).items()}, keys=True)
        found: Counter[Record] = Counter()
        for _ in range(MOST_POLLS):
            if not ends:
                break
            for batch in cursor.poll(1.0, EVERYTHING):
                found.update(_records(batch))
                if batch.next_offset >= ends.get(batch.bucket, 0):
                    ends.pop(batch.bucket, None)
        cursor.close()
        assert not ends, f"the log does not give what its tails say: {ends}"
        return found

    def is_of_history(self, position: Position) -> bool:
        """True if what a position rests on is of the table's snapshots."""
        place = position.place
        rests = {place.anchor: position.snapshot_uuid}
        if isinstance(place, LogPlace) and place.newest > place.anchor:
            rests[place.newest] = position.newest_uuid
        return all(not number or self.truth.uuids.get(number) == uuid for number, uuid in rests.items())

    def is_log_of_another(self, table: ts.Table) -> bool:
        """True if the log holds another history than the table has by now, or was made anew since."""
        return bool(self._in_log(table) - self.truth.told()) or self.truth.incarnation != _incarnation(table)


# How often each is drawn.
STEPS: Mapping[str, tuple[Callable[[LogPlay], None], int]] = {
    "write": (LogPlay._write, 6),
    "write too large": (LogPlay._write_too_large, 1),
    "delete": (LogPlay._delete, 1),
    "overwrite": (LogPlay._overwrite, 2),
    "evolve": (LogPlay._evolve, 2),
    "roll back": (LogPlay._roll_back, 1),
    "expire": (LogPlay._expire, 1),
    "read": (LogPlay._read, 5),
    "back up": (LogPlay._back_up, 2),
    "restore": (LogPlay._restore, 3),
    "copy": (LogPlay._copy, 1),
    "write to the copy": (LogPlay._write_to_the_copy, 2),
    "make again": (LogPlay._make_again, 1),
    "brokers away": (LogPlay._brokers_away, 1),
    "limit lowered": (LogPlay._limit_lowered, 1),
    "restart": (LogPlay._restart, 1),
    "check": (LogPlay._check, 3),
}


class Follower:
    """Holds rows of its own, and the position that they are of. Reads with the columns that it began with, and opens the table when
    it has to."""

    def __init__(self, play: LogPlay) -> None:
        self._play = play
        self.table: ts.Table | None = None
        self._position: str | None = None
        self._rows: dict[int, Row] = {}

    def read(self, batches: int) -> None:
        """Take so many batches, unless there are fewer."""
        while batches:
            if self.table is None:
                self.table = self._play.open()
            try:
                for batch in islice(_reading(self.table, self._position), batches):
                    batches -= 1
                    self._take(batch)
                    if isinstance(batch.event, SchemaLanded):
                        self.table = None
                        break
                else:
                    return
            except (InvalidInputError, NotFoundError) as error:
                self._begin_anew(error)

    def check(self, table: ts.Table) -> None:
        """Read everything: what is held is what the table holds."""
        self.read(EVERYTHING)
        snapshots = table.snapshots()
        if not snapshots:
            return
        assert self.table is not None
        columns = table.context.schemas.read(snapshots[-1].schema_id).field_names
        known = self.table.context.schema.field_names
        assert set(columns) <= set(known), f"a schema landed and nobody heard of it: {columns}, known are {known}"
        held = {key: {name: row.get(name) for name in columns} for key, row in self._rows.items()}
        there = {row["id"]: row for row in table.scan(columns=list(columns)).to_arrow().to_pylist()}
        assert held == there, f"a follower holds {_shortened(held)}, the table {_shortened(there)}"

    def _take(self, batch: ChangeBatch) -> None:
        self._position = str(batch.position)
        if isinstance(batch.event, Restarted):
            self._rows.clear()
            self._play.happened["restarted"] += 1
        for row in batch.rows.to_pylist():
            if row.pop("_row_kind") in ("+I", "+U"):
                self._rows[row["id"]] = row
            else:
                self._rows.pop(row["id"], None)

    def _begin_anew(self, error: TablestoreError) -> None:
        assert self._position is not None and self.table is not None
        position = parse_position(self._position)
        is_of_table = position.table == self._play.open().context.table_uuid
        allowed = {
            "position-table": not is_of_table,
            "position-history": is_of_table and not self._play.is_of_history(position),
            # What has expired is not always known to be of another history.
            "snapshot-expired": self._play.is_expired and is_of_table,
            # Its place inside of a snapshot is one of the log.
            "position": isinstance(position.place, LogPlace) and self._play.is_log_of_another(self.table),
        }
        if not allowed.get(error.kind):
            raise error
        self._play.happened[error.kind] += 1
        self._position, self.table = None, None
        self._rows.clear()


def _table(catalog: ts.Catalog) -> ts.Table:
    table = catalog.table(NAME)
    assert isinstance(table, ts.Table)
    return table


def _published(table: ts.Table) -> TablestoreError | None:
    """Look at the log and send what it lacks; why that cannot be done."""
    try:
        table.change_log.publish(look=True)
    except (ConflictError, InvalidInputError) as error:
        return error
    return None


def _incarnation(table: ts.Table) -> str:
    settings = table.change_log.settings
    return open_log_store(settings).incarnation(partitions=settings.partitions)


def _reading(table: ts.Table, position: str | None) -> Iterator[ChangeBatch]:
    """As ``table.consume``, with the columns that the handle has."""
    context = table.context
    request = Consumption(
        columns=context.schema.field_names,
        predicate=None,
        pairs=False,
        start=parse_start(context, scan="full", time_millis=None, consumer_id=None, position=position),
        follow=False,
        on_discontinuity="restart",
        stop=None,
    )
    return table.change_log.follow(request)


def _rows(table: ts.Table, texts: Mapping[int, str]) -> pa.Table:
    """Rows in all columns of the handle; wide numbers where they are wide."""
    wide = {field.name: 2**40 if field.type == pa.int64() else 7 for field in table.schema}
    numbers = {name: number for name, number in wide.items() if name not in ("id", "v")}
    return pa.Table.from_pylist([{"id": key, "v": text, **numbers} for key, text in texts.items()], schema=table.schema)


def _records(batch: RawRecords) -> Iterable[Record]:
    for snapshot_id, key, value in zip(batch.snapshots.tolist(), batch.keys, batch.values, strict=True):
        assert key is not None
        yield snapshot_id, json.loads(key)["id"], json.loads(value)["after"]["v"] if value is not None else None


def _names(error: TablestoreError, texts: Mapping[int, str], size: int) -> bool:
    """True if it names the key of one of the rows that have ``size``."""
    return any(f'{{"id":{key}}}' in str(error) for key, text in texts.items() if len(text) >= size)


def _short(record: Record) -> tuple[int, int, str]:
    return record[0], record[1], (record[2] or "-")[:12]


def _shortened(rows: Mapping[int, Row]) -> dict[int, Row]:
    return {key: {name: str(value)[:12] for name, value in row.items()} for key, row in sorted(rows.items())}
