"""Plans the batch between two places of a stream, and the tasks in which it is read.

Plans are kept while they may be asked for again: to cut off a batch, and then to read it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tablestore.distributed.read import pack_tasks, pack_weights
from tablestore.distributed.stream.streamsteps import frame_pieces, order_groups, weight_of
from tablestore.distributed.stream.streamtask import ChangePart, StreamTask, TaskHead
from tablestore.errors import NotFoundError
from tablestore.format.snapshot import Snapshot
from tablestore.log.position import StorePlace
from tablestore.store.changes.changefeed import ChangeFeed, SnapshotChanges
from tablestore.store.changes.changeplan import Step
from tablestore.store.context import TableContext
from tablestore.store.rowview import stored_condition
from tablestore.store.scan.scanplan import joined, split_pruning
from tablestore.store.scan.splits import Split
from tablestore.types.filter.predicate import Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCursor:
    """Between two pieces: so many of the snapshot of ``place`` are done."""

    place: StorePlace
    pieces: int = 0

    @property
    def in_frame(self) -> bool:
        """True if rows of a snapshot come next, and not changes."""
        return self.place.phase == "frame"

    @property
    def snapshot_id(self) -> int:
        """The snapshot that comes next."""
        return self.place.snapshot_id

    def moved(self, pieces: int, of: int) -> "StreamCursor":
        """Behind so many pieces of the snapshot, which has ``of``."""
        return StreamCursor(place=self.place.behind()) if pieces == of else replace(self, pieces=pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The changes of a snapshot."""

    snapshot: Snapshot
    changes: SnapshotChanges


class BatchPlans:
    """Plans of one stream. ``find``: a snapshot whose changes are read, None for one that is still to come; it raises for one that
    has expired. ``find_frame``: one whose rows are read."""

    def __init__(
        self,
        context: TableContext,
        head: TaskHead,
        predicate: Predicate | None,
        *,
        find: Callable[[int], Snapshot | None],
        find_frame: Callable[[int], Snapshot],
    ) -> None:
        self._context, self._head, self._find, self._find_frame = context, head, find, find_frame
        self._feed = ChangeFeed(context=context, columns=head.columns, predicate=predicate, pairs=head.pairs)
        self._pruned = split_pruning(context, stored_condition(context.view, predicate))
        self._changes: dict[int, Planned] = {}
        self._frame: tuple[int, Sequence[Split]] | None = None

    def changes(self, snapshot_id: int) -> Planned | None:
        """The changes of a snapshot; None if it is still to come."""
        if snapshot_id not in self._changes:
            snapshot = self._find(snapshot_id)
            if snapshot is None:
                return None
            self._changes[snapshot_id] = Planned(snapshot=snapshot, changes=self._feed.plan(snapshot))
        return self._changes[snapshot_id]

    def known(self, snapshot_id: int) -> Snapshot | None:
        """A snapshot whose changes are planned."""
        planned = self._changes.get(snapshot_id)
        return None if planned is None else planned.snapshot

    def frame(self, snapshot_id: int) -> Sequence[Split]:
        """The pieces of a snapshot's rows."""
        if self._frame is None or self._frame[0] != snapshot_id:
            self._frame = snapshot_id, frame_pieces(self._context, self._find_frame(snapshot_id))
        return self._frame[1]

    def kept(self, pieces: Sequence[Split]) -> Iterator[Split | None]:
        """The part of each piece that the filter leaves."""
        return map(self._pruned, pieces)

    def pieces(self, cursor: StreamCursor) -> Sequence[Split | Step]:
        """The pieces of the snapshot in which a cursor stands; none of one that is still to come."""
        if cursor.in_frame:
            return self.frame(cursor.snapshot_id)
        planned = self.changes(cursor.snapshot_id)
        return () if planned is None else planned.changes.steps

    def forget(self, *, before: int) -> None:
        """Plans of earlier snapshots are not asked for again."""
        for snapshot_id in [snapshot_id for snapshot_id in self._changes if snapshot_id < before]:
            del self._changes[snapshot_id]
        if self._frame is not None and self._frame[0] < before:
            self._frame = None

    def tasks(self, begin: StreamCursor, end: StreamCursor, *, task_bytes: int, parallelism: int) -> list[StreamTask]:
        """Tasks that together read the rows between the two."""
        if begin.in_frame:
            pieces = self.frame(begin.snapshot_id)[begin.pieces : end.pieces if end.in_frame else None]
            splits = list(joined(split for split in self.kept(pieces) if split is not None))
            packed = pack_tasks(splits, task_bytes=task_bytes, parallelism=parallelism)
            return [StreamTask(head=self._head, splits=tuple(split_group)) for split_group in packed]
        steps = list(self._steps(begin, end))
        groups = order_groups(self._context.schema, [step for _, step in steps])
        weights = [sum(weight_of(steps[position][1]) for position in group) for group in groups]
        tasks = []
        for chosen in pack_weights(weights, task_bytes=task_bytes, parallelism=parallelism):
            positions = sorted(position for number in chosen for position in groups[number])
            parts = map(ChangePart.of, _by_snapshot([steps[position] for position in positions]))
            tasks.append(StreamTask(head=self._head, changes=tuple(parts)))
        return tasks

    def _steps(self, begin: StreamCursor, end: StreamCursor) -> Iterator[tuple[SnapshotChanges, Step]]:
        for snapshot_id in range(begin.snapshot_id, end.snapshot_id + (1 if end.pieces else 0)):
            planned = self.changes(snapshot_id)
            if planned is None:
                raise NotFoundError(
                    f"table {self._context.files.root_uri} has no snapshot {snapshot_id}, which a batch of this stream holds: the "
                    "table was restored from an older copy",
                    kind="position-history",
                )
            first = begin.pieces if snapshot_id == begin.snapshot_id else 0
            last = end.pieces if snapshot_id == end.snapshot_id else None
            yield from ((planned.changes, step) for step in planned.changes.steps[first:last])


def _by_snapshot(steps: Sequence[tuple[SnapshotChanges, Step]]) -> list[SnapshotChanges]:
    """The steps as changes of one snapshot after the other."""
    parts: list[tuple[SnapshotChanges, list[Step]]] = []
    for changes, step in steps:
        if not parts or parts[-1][0] is not changes:
            parts.append((changes, []))
        parts[-1][1].append(step)
    return [replace(changes, steps=group) for changes, group in parts]
