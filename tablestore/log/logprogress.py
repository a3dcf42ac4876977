"""Records how far a table's log has been published, in small files in the table, one per (slot layout, slot, snapshot).

    tablestore-log/<slots>-<slot>/<snapshot>      {"snapshot": 7, "uuid": …, "log": …, "offsets": {"0": 120, …}}

Each is created if absent and never changes; the greatest snapshot of a slot counts, so progress goes back only where the log has
lost what it had acknowledged. ``log`` is the incarnation of the log that the offsets are of, ``offsets`` the position behind the
snapshot's records in each bucket of the slot; ``early`` is there if rows sent before their snapshot may have to be taken back.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from tablestore.errors import AlreadyExistsError, FormatError, NotFoundError
from tablestore.format.limits import json_within_limits, parse_json_bounded
from tablestore.io.filestore import FileStore
from tablestore.names import is_number
from tablestore.store.snapshots import LOG_OFFSETS_PROPERTY

PROGRESS_DIR = "tablestore-log"
# Each is a transactional producer: no table has so many.
_MOST_SLOTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotProgress:
    """Everything up to and including ``snapshot_id`` is published in the slot's buckets.

    ``begins``: the snapshot whose changes the log begins with. ``gap``: the newest one since whose changes are not in it, 0 for
    none. ``early``: from which positions on there may be early rows that neither landed nor were taken back; None: from ``offsets``
    on.
    """

    snapshot_id: int
    snapshot_uuid: str | None
    incarnation: str
    offsets: Mapping[int, int]
    early: Mapping[int, int] | None = None
    begins: int = 1
    gap: int = 0


@dataclass(frozen=True, slots=True)
class LogProgress:
    """The progress files of one table."""

    files: FileStore

    def read(self, slot: int, slots: int) -> SlotProgress | None:
        """The progress of a slot, None if nothing was recorded."""
        snapshot_ids = self._recorded(slot, slots)
        # A newer file may take the place of the one that was listed.
        for snapshot_id in reversed(snapshot_ids):
            path = f"{_directory(slot, slots)}/{snapshot_id:020d}"
            try:
                return _decode(self.files.read(path), f"{self.files.root_uri}/{path}")
            except NotFoundError:
                continue
        return self.read(slot, slots) if snapshot_ids and self._recorded(slot, slots) != snapshot_ids else None

    def record(self, slot: int, slots: int, progress: SlotProgress, *, lasting: bool = True) -> None:
        """Record that a slot has come further.

        ``lasting``: it outlives a power failure, and older records are removed. Without that an older record may come back, which
        is true as well; nothing may be given up that only the newer one makes superfluous.
        """
        directory = _directory(slot, slots)
        path = f"{directory}/{progress.snapshot_id:020d}"
        if not lasting:
            # Somebody else at work on the slot has come as far.
            with suppress(AlreadyExistsError):
                self.files.write(path, _encode(progress))
            return
        self.files.publish_if_absent(path, _encode(progress))
        for snapshot_id in self._recorded(slot, slots):
            if snapshot_id < progress.snapshot_id:
                self.files.delete(f"{directory}/{snapshot_id:020d}")

    def read_lasting(self, slots: int) -> list[SlotProgress]:
        """The progress of the slots that have begun, which holds even after a power failure."""
        progress_by_slot = {slot: progress for slot in range(slots) if (progress := self.read(slot, slots)) is not None}
        for slot in progress_by_slot:
            self.files.sync(_directory(slot, slots))
        return list(progress_by_slot.values())

    def set_back(self, slot: int, slots: int, progress: SlotProgress) -> None:
        """Record that a slot stands before what was recorded: newer records of it are removed."""
        directory = _directory(slot, slots)
        path = f"{directory}/{progress.snapshot_id:020d}"
        self.files.delete(path)
        self.files.publish_if_absent(path, _encode(progress))
        # The newest last: until then the old state counts, and after a crash all of this is done again.
        for snapshot_id in self._recorded(slot, slots):
            if snapshot_id > progress.snapshot_id:
                self.files.delete(f"{directory}/{snapshot_id:020d}")

    def layouts(self) -> tuple[int, ...]:
        """The slot counts that were ever used."""
        names = (info.name.partition("-")[0] for info in self.files.list(PROGRESS_DIR) if info.is_dir)
        return tuple(sorted({int(name) for name in names if is_number(name) and int(name) <= _MOST_SLOTS}))

    def published(self, slots: int) -> int:
        """The snapshot up to which every slot has published everything; 0 for none."""
        recorded = [self.read(slot, slots) for slot in range(slots)]
        return min((progress.snapshot_id if progress else 0 for progress in recorded), default=0)

    def lower_bounds(self, slots: int, partitions: int) -> tuple[str, dict[int, int]] | None:
        """The log's incarnation, and per bucket a position at or before which records of snapshots to come begin.

        None if nothing is known.
        """
        recorded = [progress for slot in range(slots) if (progress := self.read(slot, slots)) is not None]
        if not recorded or len({progress.incarnation for progress in recorded}) > 1:
            return None
        offsets = dict.fromkeys(range(partitions), 0)
        for progress in recorded:
            offsets.update(progress.offsets)
        return recorded[0].incarnation, offsets

    def forget(self) -> None:
        """Remove all progress: the log is made anew."""
        self.files.delete_directory(PROGRESS_DIR)

    def _recorded(self, slot: int, slots: int) -> list[int]:
        return sorted(int(name) for name in self.files.names(_directory(slot, slots)) if is_number(name))


def encode_log_offsets(incarnation: str, offsets: Mapping[int, int]) -> str:
    """The snapshot property: per bucket a position at or before which no record of a later snapshot begins."""
    return json.dumps({"log": incarnation, "offsets": {str(b): o for b, o in sorted(offsets.items())}}, separators=(",", ":"))


def decode_log_offsets(text: str) -> tuple[str, dict[int, int]]:
    """The incarnation and the offsets of a snapshot property. Raises FormatError."""
    try:
        content = parse_json_bounded(text.encode(), LOG_OFFSETS_PROPERTY)
        assert isinstance(content, dict)
        return str(content["log"]), {int(bucket): int(offset) for bucket, offset in content["offsets"].items()}
    except (AssertionError, FormatError, ArithmeticError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"snapshot property {LOG_OFFSETS_PROPERTY} holds no offsets: {text[:80]!r}") from error


def _directory(slot: int, slots: int) -> str:
    return f"{PROGRESS_DIR}/{slots}-{slot}"


def _encode(progress: SlotProgress) -> bytes:
    return json_within_limits(
        {
            "snapshot": progress.snapshot_id,
            "uuid": progress.snapshot_uuid,
            "log": progress.incarnation,
            "offsets": _texts(progress.offsets),
            "begins": progress.begins,
            "gap": progress.gap,
            **({} if progress.early is None else {"early": _texts(progress.early)}),
        },
        "progress of the log",
    )


def _texts(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(bucket): offset for bucket, offset in sorted(offsets.items())}


def _numbers(offsets: Mapping[str, object]) -> dict[int, int]:
    return {int(bucket): int(str(offset)) for bucket, offset in offsets.items()}


def _decode(data: bytes, where: str) -> SlotProgress:
    try:
        content = parse_json_bounded(data, where)
        assert isinstance(content, dict)
        uuid = content["uuid"]
        return SlotProgress(
            snapshot_id=int(content["snapshot"]),
            snapshot_uuid=None if uuid is None else str(uuid),
            incarnation=str(content["log"]),
            offsets=_numbers(content["offsets"]),
            early=_numbers(content["early"]) if "early" in content else None,
            begins=int(content["begins"]),
            gap=int(content["gap"]),
        )
    except (AssertionError, ArithmeticError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"{where} holds no progress of a log: {data[:80]!r}; `tablestore log rebuild` makes it anew") from error
