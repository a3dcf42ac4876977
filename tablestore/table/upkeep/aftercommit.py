"""What a table does by itself once a commit has landed: one order, one place, and no error of it reaches the writer.

    write        settle early rows ── publish ── compact a share ── tag ── expire ── publish what the compaction told
    compaction                                                     tag ── expire ── publish

Who follows up, and what a failure leaves behind, is in :mod:`tablestore.store.followup`.
"""

from collections.abc import Callable, Sequence

from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.snapshot import Snapshot
from tablestore.log.port import ChangeLog, RowsAhead
from tablestore.store.context import TableContext
from tablestore.store.followup import Chore, FollowUp, LeftAlone
from tablestore.store.history.autotags import tag_automatically
from tablestore.table.upkeep.compaction import compact_after_write, settle_level_zero
from tablestore.table.upkeep.expiry import expire_after_commit, is_write_only


def after_write(
    context: TableContext,
    log: ChangeLog,
    snapshot: Snapshot,
    written: Sequence[ManifestEntry],
    *,
    most_compaction_bytes: int,
    early: RowsAhead | None = None,
    is_replay: bool = False,
) -> None:
    """Follow up a write that brought the files ``written``. ``is_replay``: the snapshot is one that landed before, and was
    compacted then; only rows that nobody sees without it are looked after again."""
    chores = FollowUp(context.files, context.clock, snapshot.id)
    if early is not None:
        # A replay returns what landed the first time: these rows are not in it.
        chores.do(Chore.EARLY, lambda: early.ended(landed=not is_replay))
    # First what others wait for; then what is compacted may bring changes of its own.
    published = chores.do(Chore.PUBLISH, log.after_commit)

    def compact() -> None:
        is_waiting = is_replay and context.settings.skips_level_zero
        if not (written or is_waiting):
            raise LeftAlone
        _whose_turn(context, snapshot)
        if is_waiting:
            settle_level_zero(context)
        else:
            compact_after_write(context, written, landed=snapshot, most_bytes=most_compaction_bytes)

    chores.do(Chore.SHOW if context.settings.skips_level_zero else Chore.COMPACT, compact)
    _keep_house(chores, context, snapshot)
    if published:
        chores.do(Chore.PUBLISH, log.after_commit)
    chores.settle()


def after_compaction(context: TableContext, log: Callable[[], ChangeLog], committed: Sequence[int]) -> None:
    """Follow up a compaction that was asked for. Of a ``write-only`` table nobody else expires snapshots.

    ``log`` chooses the log: a table whose options name none of ours can be compacted too, and is warned of.
    """
    if not committed:
        return
    chores = FollowUp(context.files, context.clock, committed[-1])
    # With some changelog producers it is the compaction that writes the changes.
    chores.do(Chore.PUBLISH, lambda: log().after_commit())
    _keep_house(chores, context, None)
    # What was compacted on demand leaves nothing undone that a writer's share left.
    chores.do(Chore.COMPACT, lambda: None)
    chores.settle()


def _keep_house(chores: FollowUp, context: TableContext, written: Snapshot | None) -> None:
    """Tag and expire behind the snapshot of a writer, or (None) behind a compaction that was asked for."""
    tagged: list[str] = []

    def tag() -> None:
        snapshot = _whose_turn(context, written) or context.snapshots.latest()
        if snapshot is not None and (name := tag_automatically(context, snapshot)) is not None:
            tagged.append(name)

    def expire() -> None:
        expire_after_commit(context, _whose_turn(context, written), tagged=bool(tagged))

    chores.do(Chore.TAG, tag)
    chores.do(Chore.EXPIRE, expire)


def _whose_turn(context: TableContext, written: Snapshot | None) -> Snapshot | None:
    if written is not None and context.once(is_write_only):
        raise LeftAlone
    return written
