"""Positions of readers: how far a reader of a table has come, as a value that can be stored.

    done      snapshot 7 is done                       the normal form: reading goes on with snapshot 8
    frame     5000 rows of snapshot 7                  in the midst of the rows that snapshot 7 holds
    changes   20 changes of snapshot 8                 snapshot 7 is done too
    log       snapshot 7 is done, bucket 0 at 120      what follows is read from the log, each bucket from its own place

A :class:`Position` is a *place* and the history that it is a place of: the table's uuid, the name of the snapshot that it rests on,
and in the log that of the newest snapshot of which a bucket has handed out changes. A place of another table, or of a history that
was replaced, is so found before anything is read (:mod:`tablestore.log.identity`). It is a value: kept in a named consumer's file,
or by users beside their results, and reading goes on from it with nothing lost and nothing twice. A batch that ends a snapshot has
the normal form, whatever was read of it.

    {"position":1,"table":"2c…","done":[7,"8f…"]}
    {"position":1,"table":"2c…","frame":[7,"8f…"],"rows":5000,"reading":"a1…"}
    {"position":1,"table":"2c…","changes":[8,"e0…"],"rows":20,"reading":"a1…"}
    {"position":1,"table":"2c…","done":[7,"8f…"],"log":"Xy…","offsets":{"0":120},"marks":{"0":[8,5]},
     "newest":"e0…"}

Rows are counted as they were handed out, so a place inside of a snapshot holds for the same filter and ``pairs`` only: ``reading``
is their fingerprint. It names columns by their ids, and the columns that are handed out do not matter, so that columns may come and
be renamed. What is written is the same text for the same value; what is read is read strictly.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NoReturn

from tablestore.errors import InvalidInputError
from tablestore.log.record import Mark

Phase = Literal["frame", "changes"]

# Stored, never renamed: an extra key of the consumer's file.
POSITION_KEY = "tablestore.position"
# Stored, never renumbered.
VERSION = 1
_VERSION_KEY = "position"
_HIGHEST = 2**63 - 1
_WHOLE = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePlace:
    """A place in the file store.

    ``snapshot_id``: the snapshot that reading needs next, ``rows``: how many of its rows or changes were handed out; ``reading`` is
    empty where there are none.
    """

    phase: Phase
    snapshot_id: int
    rows: int = 0
    reading: str = ""

    @property
    def needed_snapshot(self) -> int:
        """The oldest snapshot that reading on from here needs."""
        return self.snapshot_id

    @property
    def anchor(self) -> int:
        """The snapshot that this place rests on: the one that it lies in, else the last one that is done; 0 for none."""
        return self.snapshot_id - 1 if self.phase == "changes" and not self.rows else self.snapshot_id

    def behind(self) -> "StorePlace":
        """The place behind the snapshot: the first change of the one after it."""
        return done(self.snapshot_id)


def done(snapshot_id: int) -> StorePlace:
    """The place behind a snapshot."""
    return StorePlace(phase="changes", snapshot_id=snapshot_id + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlace:
    """The place of a reader of the log: per bucket the next position, and the last change handed out.

    ``base``: everything up to this snapshot is done in every bucket. ``incarnation``: the log that the positions are of.
    """

    incarnation: str
    base: int
    offsets: Mapping[int, int]
    marks: Mapping[int, Mark] = field(default_factory=dict)

    @property
    def needed_snapshot(self) -> int:
        """The oldest snapshot that reading on from here may need, if the log does not hold it."""
        return self.base + 1

    @property
    def anchor(self) -> int:
        """The snapshot that this place rests on."""
        return self.base

    @property
    def newest(self) -> int:
        """The newest snapshot of which something is done."""
        return max((mark.snapshot_id for mark in self.marks.values()), default=self.base)

    def mark(self, bucket: int) -> Mark:
        """The last change that is done in a bucket."""
        whole = Mark(self.base, _WHOLE)
        return max(self.marks.get(bucket, whole), whole)

    def moved(self, bucket: int, next_offset: int, mark: Mark | None) -> "LogPlace":
        """The place behind a record of a bucket."""
        marks = self.marks if mark is None else {**self.marks, bucket: mark}
        return replace(self, offsets={**self.offsets, bucket: next_offset}, marks=marks)

    def at_base(self, snapshot_id: int) -> "LogPlace":
        """The same with everything up to ``snapshot_id`` done."""
        marks = {bucket: mark for bucket, mark in self.marks.items() if mark.snapshot_id > snapshot_id}
        return replace(self, base=snapshot_id, marks=marks)


Place = StorePlace | LogPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A place of one history.

    ``table`` is the table's uuid (None: it has none), ``snapshot_uuid`` the name of the snapshot that the place rests on (None: no
    snapshot is done, or its name is not known any more), ``newest_uuid`` that of :attr:`LogPlace.newest` where it is another one.
    """

    table: str | None
    snapshot_uuid: str | None
    place: Place
    newest_uuid: str | None = None

    @property
    def needed_snapshot(self) -> int:
        """The oldest snapshot that reading on from here needs."""
        return self.place.needed_snapshot

    @property
    def done_snapshot(self) -> int:
        """Everything up to this snapshot was handed out; 0 for none."""
        return self.place.snapshot_id - 1 if isinstance(self.place, StorePlace) else self.place.base

    def to_json(self) -> dict[str, object]:
        """The position as a JSON object."""
        place, anchor = self.place, [self.place.anchor, self.snapshot_uuid]
        head: dict[str, object] = {_VERSION_KEY: VERSION, "table": self.table}
        if isinstance(place, LogPlace):
            return {
                **head,
                "done": anchor,
                "log": place.incarnation,
                "offsets": {str(bucket): offset for bucket, offset in sorted(place.offsets.items())},
                "marks": {str(bucket): [mark.snapshot_id, mark.ordinal] for bucket, mark in sorted(place.marks.items())},
                **({} if self.newest_uuid is None else {"newest": self.newest_uuid}),
            }
        if place.phase == "changes" and not place.rows:
            return {**head, "done": anchor}
        return {**head, place.phase: anchor, "rows": place.rows, "reading": place.reading}

    def __str__(self) -> str:
        return json.dumps(self.to_json(), separators=(",", ":"))


def parse_position(value: object) -> Position:
    """Parses what ``to_json`` or ``str()`` made of a position.

    Raises InvalidInputError: of kind ``position-too-new`` for a newer version, ``position-unnamed`` for one that does not say
    which table it is of, as early versions made them, else ``position``.
    """
    if isinstance(value, Position):
        return value
    content = _as_mapping(value)
    if _VERSION_KEY not in content:
        if "phase" in content:
            _refuse_unnamed(content)
        _refuse(value, f"no key {_VERSION_KEY!r}")
    version = content[_VERSION_KEY]
    if not _is_count(version, VERSION) or version != VERSION:
        if _is_count(version, VERSION + 1):
            raise InvalidInputError(
                f"the position {value!r:.200} has version {version}, this tablestore reads version {VERSION}: read on with the "
                "tablestore that made it, or a newer one",
                kind="position-too-new",
            )
        _refuse(value, f"version {version!r:.40}")
    try:
        return _decoded(content)
    except (KeyError, TypeError, ValueError) as error:
        _refuse(value, str(error), error)


def parse_stored(value: object) -> Position | Place:
    """Parses as :func:`parse_position`, a consumer's file, which lies in its table: there a place that does not name it will
    do."""
    content = _as_mapping(value)
    if _VERSION_KEY in content or "phase" not in content:
        return parse_position(content)
    try:
        if content["phase"] == "log":
            return _log_place(content, _count(content, "base"))
        rows = _count(content, "rows")
        phase: Phase = "frame" if content["phase"] == "frame" else "changes"
        reading = _text(content, "reading") if rows else ""
        return StorePlace(phase=phase, snapshot_id=_count(content, "snapshot", 1), rows=rows, reading=reading)
    except (KeyError, TypeError, ValueError) as error:
        _refuse(value, str(error), error)


def fingerprint(filter_text: str | None, pairs: bool, *, as_written: bool = True) -> str:
    """The fingerprint of what is read, in 16 characters; the filter names columns by id."""
    return hashlib.sha256(json.dumps([filter_text, pairs, *([] if as_written else ["found"])]).encode()).hexdigest()[:16]


def unnamed_fingerprint(columns: tuple[str, ...], filter_text: str | None, pairs: bool) -> str:
    """The same in a place that does not name its table: it named columns, and counted those that were handed out."""
    return hashlib.sha256(json.dumps([list(columns), filter_text, pairs]).encode()).hexdigest()[:16]


_KEYS = {
    "frame": {"frame", "rows", "reading"},
    "changes": {"changes", "rows", "reading"},
    "log": {"done", "log", "offsets", "marks", "newest"},
    "done": {"done"},
}


def _decoded(content: Mapping[str, object]) -> Position:
    form = next((key for key in _KEYS if key in content), None)
    if form is None:
        raise ValueError(f"none of {', '.join(_KEYS)}")
    if unknown := sorted(set(content) - _KEYS[form] - {_VERSION_KEY, "table"}):
        raise ValueError(f"unknown key {unknown[0]!r}")
    table = content["table"]
    if table is not None and not (isinstance(table, str) and table):
        raise TypeError("no uuid of a table")
    anchor = content["done" if form == "log" else form]
    if not isinstance(anchor, list) or len(anchor) != 2:
        raise TypeError("no snapshot id and uuid")
    snapshot_id, uuid = anchor
    if not _is_count(snapshot_id, 1 if form in ("frame", "changes") else 0):
        raise TypeError("no snapshot id")
    if uuid is not None and not (isinstance(uuid, str) and uuid):
        raise TypeError("no uuid of a snapshot")
    place: Place
    if form == "log":
        place = _log_place(content, snapshot_id)
    elif form == "done":
        place = done(snapshot_id)
    else:
        rows = _count(content, "rows", 1 if form == "changes" else 0)
        phase: Phase = "frame" if form == "frame" else "changes"
        place = StorePlace(phase=phase, snapshot_id=snapshot_id, rows=rows, reading=_text(content, "reading"))
    newest = content.get("newest")
    if newest is not None and not (isinstance(newest, str) and newest):
        raise TypeError("no uuid of the newest snapshot")
    return Position(table=table, snapshot_uuid=uuid, place=place, newest_uuid=newest)


def _log_place(content: Mapping[str, object], base: int) -> LogPlace:
    offsets, marks = content["offsets"], content["marks"]
    if not isinstance(offsets, Mapping) or not isinstance(marks, Mapping):
        raise TypeError("offsets and marks are no objects")
    bucket_marks = {}
    for bucket, mark in marks.items():
        if not isinstance(mark, list) or len(mark) != 2 or not all(_is_count(number, 0) for number in mark):
            raise TypeError("a mark is no snapshot id and ordinal")
        bucket_marks[_bucket(bucket)] = Mark(*mark)
    return LogPlace(
        incarnation=_text(content, "log"),
        base=base,
        offsets={_bucket(bucket): _count(offsets, bucket) for bucket in offsets},
        marks=bucket_marks,
    )


def _bucket(text: object) -> int:
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or str(int(text)) != text:
        raise TypeError(f"no bucket: {text!r:.40}")
    return int(text)


def _count(content: Mapping[str, object], key: str, least: int = 0) -> int:
    value = content[key]
    if not _is_count(value, least) or not isinstance(value, int):
        raise TypeError(f"{key} is no whole number from {least}")
    return value


def _text(content: Mapping[str, object], key: str) -> str:
    value = content[key]
    if not isinstance(value, str):
        raise TypeError(f"{key} is no text")
    return value


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= _HIGHEST


def _as_mapping(value: object) -> Mapping[str, object]:
    content: object = value
    if isinstance(value, str):
        try:
            content = json.loads(value)
        except (ValueError, RecursionError) as error:
            _refuse(value, "no JSON", error)
    if not isinstance(content, Mapping):
        _refuse(value, "no JSON object")
    return content


def _refuse(value: object, why: str, cause: BaseException | None = None) -> NoReturn:
    raise InvalidInputError(
        f"expected a position that a batch of table.consume(...) gave, found {value!r:.200} ({why:.100})", kind="position"
    ) from cause


def _refuse_unnamed(content: Mapping[str, object]) -> NoReturn:
    snapshot_id = content.get("base") if content["phase"] == "log" else content.get("snapshot")
    behind = snapshot_id - (content["phase"] != "log") if _is_count(snapshot_id, 1) and isinstance(snapshot_id, int) else 0
    raise InvalidInputError(
        f"the position {json.dumps(dict(content))[:200]} was made by an early version and does not say which table it is of: one "
        f"that was dropped and made again would lose changes without a word. If it is of this one, go on with "
        f"position=table.position_after({behind}), which may repeat what follows snapshot {behind}; else begin anew",
        kind="position-unnamed",
    )
