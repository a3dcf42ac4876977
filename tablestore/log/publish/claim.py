"""Claims a log for one table, so that no other table takes it; moves the claim with the table, or deletes the log with it.

A *claim* is a record that is sent and taken back, in partition 0: readers of committed records never see it, and the position that
it took stays taken, so a log that a table owns is never mistaken for one that nobody has used, whatever its retention. It is made
while the slot is held, so of two tables only one makes it.
"""

import logging
from collections.abc import Iterable
from dataclasses import replace

from tablestore.errors import FormatError, NotFoundError
from tablestore.io.opening import same_place
from tablestore.log.logstore import LogStore
from tablestore.log.publish.ownercheck import ForeignLog, check_end, foreign_log, is_empty, located, shows_owner
from tablestore.log.publish.ownerfile import LogOwner, read_log_owner, write_log_owner
from tablestore.log.settings import LogSettings
from tablestore.store.context import TableContext
from tablestore.store.history.retentionleases import LOG_HOLD, RetentionLeases

LOG = logging.getLogger(__name__)

OPEN_TIMEOUT_S = 60.0
CLAIM_BUCKET = 0


def own_log(context: TableContext, log: LogStore, settings: LogSettings) -> None:
    """Take a log that was just made, or was never used. Publishers of an earlier log of that name are fenced.

    Raises ForeignLog, SlotFenced (somebody else takes it at the same time), StorageError.
    """
    fence_slots(log, range(1, settings.slots))
    incarnation = log.incarnation(partitions=settings.partitions)
    slot = log.open_slot(0, (), timeout_s=OPEN_TIMEOUT_S)
    owner = LogOwner(
        table=context.table_uuid,
        location=context.files.root_uri,
        incarnation=incarnation,
        record_bytes=slot.max_record_bytes,
    )
    try:
        _refuse_used(context, log, settings)
        slot.claim(CLAIM_BUCKET, table=owner.table or "", location=owner.location)
    finally:
        slot.close()
    write_log_owner(context.files, owner)


def hold_for_log(context: TableContext, log: LogStore, settings: LogSettings, next_snapshot: int) -> None:
    """Keep snapshots from ``next_snapshot`` on until the log that was just made has their changes."""
    owner = log_owner(log, log.incarnation(partitions=settings.partitions))
    RetentionLeases(context.files).take(LOG_HOLD, next_snapshot, owner=owner, ids=context.ids)


def log_owner(log: LogStore, incarnation: str) -> str:
    """The owner that a log's hold on snapshots names."""
    return f"the log {log.name} (id {incarnation})"


def remove_log(context: TableContext, log: LogStore, settings: LogSettings, *, is_new: bool = False) -> None:
    """Delete the log of a table that will have none; that of another table, or of the one it is a copy of, is left alone.

    So is one that shows no sign of being this table's: the options of a table, which anybody may have written, name any topic. Of a
    log that ``is_new`` it is sign enough that it is empty: its maker may have died before it left another, and nothing is lost.
    """
    if (foreign := foreign_log(context, log, settings)) is not None:
        LOG.warning("topic %s is left as it is: %s", log.name, foreign)
        return
    try:
        is_own = shows_owner(context, log, settings) or (is_new and is_empty(log, settings))
    except NotFoundError:
        return
    if not is_own:
        LOG.warning("topic %s stays, nothing shows that it is the log of %s: delete it by hand", log.name, context.files.root_uri)
        return
    log.drop(ignore_if_not_exists=True)


def adopt_log(context: TableContext, log: LogStore, settings: LogSettings) -> LogOwner:
    """Make this place the owner of the log: the table was moved here. Another place that owned it is refused when it writes next.

    Raises ForeignLog (of another table), NotFoundError, StorageError.
    """
    root = context.files.root_uri
    incarnation = log.incarnation(partitions=settings.partitions)
    fence_slots(log, range(1, settings.slots))
    slot = log.open_slot(0, (), timeout_s=OPEN_TIMEOUT_S)
    try:
        tails = log.tails(range(settings.partitions), uncommitted=True).values()
        before = _recorded(context)
        written = [tail.location for tail in tails if tail.location is not None]
        locations = [*written, *((before.location, *before.former) if before is not None else ())]
        former = tuple(dict.fromkeys(location for location in locations if not same_place(location, root)))
        owner = LogOwner(
            table=context.table_uuid,
            location=root,
            incarnation=incarnation,
            former=former,
            record_bytes=slot.max_record_bytes,
        )
        for bucket, tail in enumerate(tails):
            check_end(context, log, owner, bucket, tail)
        slot.claim(CLAIM_BUCKET, table=owner.table or "", location=root)
    finally:
        slot.close()
    write_log_owner(context.files, owner)
    return owner


def move_owner(context: TableContext, old_root: str) -> None:
    """The table was renamed, in one step, from ``old_root``: its log goes with it."""
    owner = read_log_owner(context.files)
    if owner is not None and same_place(owner.location, old_root):
        write_log_owner(context.files, replace(owner, location=context.files.root_uri, former=(*owner.former, owner.location)))


def forget_record_limit(context: TableContext) -> None:
    """Forgets the record limit that the log was known to have, since it was given another one: the next publisher notes that."""
    owner = read_log_owner(context.files)
    if owner is not None and owner.record_bytes is not None:
        write_log_owner(context.files, replace(owner, record_bytes=None))


def fence_slots(log: LogStore, slots: Iterable[int]) -> None:
    """Fence the publishers of an earlier log of this name."""
    for slot in slots:
        log.open_slot(slot, (), timeout_s=OPEN_TIMEOUT_S).close()


def _recorded(context: TableContext) -> LogOwner | None:
    try:
        return read_log_owner(context.files)
    except FormatError:
        # Damaged: it is about to be written anew, and the log says whose it is.
        return None


def _refuse_used(context: TableContext, log: LogStore, settings: LogSettings) -> None:
    """Raise ForeignLog for a log that was used before: a table begins with an unused one."""
    uuid = (context.table_uuid or "").encode()
    for bucket, tail in log.tails(range(settings.partitions), uncommitted=True).items():
        if (tail.empty and tail.next_offset) or (not tail.empty and tail.table != uuid):
            whose = "records that are gone" if tail.empty else "records of somebody else"
            if tail.table is not None:
                whose = f"records or the claim of the table with uuid {tail.table.decode(errors='replace')}{located(tail.location)}"
            raise ForeignLog(
                f"{log.name} holds {whose} (partition {bucket}), it cannot be the log of {context.files.root_uri} too; give the "
                "table a topic of its own (log.kafka.topic), or delete that one if it is nobody's"
            )
