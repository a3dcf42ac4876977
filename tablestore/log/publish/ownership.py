"""Is this log this table's, and does it hold this table's history?

    what is looked at                                what it finds                              way out
    the table's own record of where it lay           a copy, or a table that was moved          adopt, another topic
    the claim in the log, the end of each bucket     another table; one that was copied and     another topic
      (uuid and location of whoever wrote it)          then adopted the log
    the name of the snapshot at each bucket's end    an older copy put in the table's place,    rebuild
                                                       before and after its ids catch up

A copy of a directory brings along everything that lies in the table, its uuid too, so the place is compared; and whoever adopts a
log says so in the log itself, where the other one finds it. A *claim* is a record that is sent and taken back, in partition 0:
readers of committed records never see it, and the position that it took stays taken, so a log that a table owns is never mistaken
for one that nobody has used, whatever its retention. It is made while the slot is held, so of two tables only one makes it.

The last record of everything that is sent carries the location and the snapshot's name. While a slot is held nobody else writes to
its buckets, so they are looked at when it is opened.
"""

import logging
from collections.abc import Iterable
from dataclasses import replace

from tablestore.errors import ConflictError, FormatError, InvalidInputError, NotFoundError
from tablestore.format.snapshot import Snapshot
from tablestore.io.opening import same_place
from tablestore.log.identity import Identity
from tablestore.log.logstore import LogStore
from tablestore.log.publish.ownerfile import LogOwner, read_log_owner, write_log_owner
from tablestore.log.record import Tail
from tablestore.log.settings import LogSettings
from tablestore.store.context import TableContext
from tablestore.store.history.holds import LOG_HOLD, Holds

LOG = logging.getLogger(__name__)

OPEN_TIMEOUT_S = 60.0
CLAIM_BUCKET = 0
_OWN_TOPIC = (
    "give this one a topic of its own: set log.system = filestore (the topic stays as it is), then another log.kafka.topic and "
    "log.system = kafka"
)
_REBUILD = "`tablestore log rebuild` makes the topic anew from this history"


class ForeignLog(ConflictError):
    """The log belongs to another table, or to the same one in another place: it is not written, not read and not removed."""

    default_kind = "foreign-log"


def owner_here(context: TableContext) -> LogOwner:
    """The table as the owner of its log; one that has recorded nothing is where it lies. Raises ForeignLog for a copy."""
    root = context.files.root_uri
    owner = read_log_owner(context.files)
    if owner is None:
        return LogOwner(table=context.table_uuid, location=root, incarnation="")
    if owner.table != context.table_uuid or not same_place(owner.location, root):
        raise ForeignLog(
            f"the log of table {root} belongs to {owner.location}: this is a copy of it, or it was moved here by hand. If it was "
            f"moved and nothing writes to the old place any more, `tablestore log adopt` takes the log along; else {_OWN_TOPIC}",
            kind="log-moved",
        )
    return owner


def check_end(context: TableContext, log: LogStore, owner: LogOwner, bucket: int, tail: Tail) -> None:
    """The last record of a bucket must be of this table and place. Raises ForeignLog. Strangers' records say nothing here."""
    where, root = f"partition {bucket} of {log.name}", context.files.root_uri
    if tail.table is None:
        return
    if tail.table != (context.table_uuid or "").encode():
        raise ForeignLog(
            f"{where} belongs to the table with uuid {tail.table.decode(errors='replace')}{_at(tail.location)}, not to "
            f"{context.table_uuid} ({root}): two tables name the same topic, or the table was dropped and created again; "
            f"{_OWN_TOPIC}"
        )
    ours = (owner.location, *owner.former)
    if tail.location is not None and not any(same_place(one, tail.location) for one in ours):
        raise ForeignLog(
            f"{where} belongs to {tail.location} by now, and not to {root}: one is a copy of the other, and the log was adopted or "
            f"written to there; {_OWN_TOPIC}. `tablestore log adopt` takes it back"
        )


def check_history(
    context: TableContext, identity: Identity, log: LogStore, bucket: int, tail: Tail, latest: Snapshot | None
) -> None:
    """The last record of a bucket must be of a snapshot of this history; ``latest`` was read after it. Raises ConflictError."""
    where, root = f"partition {bucket} of {log.name}", context.files.root_uri
    if tail.mark is None or not tail.mark.snapshot_id:
        return
    found = tail.mark.snapshot_id
    if latest is None or found > latest.id:
        raise ConflictError(
            f"{where} holds changes of snapshot {found}, the newest of {root} is {latest.id if latest else 'none'}: the table was "
            f"restored from an older copy; {_REBUILD}",
            kind="log-ahead",
        )
    check_name(identity, root, where, found, tail.snapshot_uuid)


def check_name(identity: Identity, root: str, where: str, snapshot_id: int, recorded: str | None) -> None:
    """The snapshot that was published must be the table's. Raises ConflictError."""
    name = identity.name(snapshot_id)
    if None not in (recorded, name) and recorded != name:
        raise ConflictError(
            f"{where} holds the changes of a snapshot {snapshot_id} that {root} does not have: it was {recorded}, the table's is "
            f"{name}. The table was restored from an older copy, or its snapshots were replaced; {_REBUILD}",
            kind="log-history",
        )


def log_problem(context: TableContext, log: LogStore, settings: LogSettings) -> ConflictError | None:
    """Why the log is not this table's or not of its history; None if nothing speaks against it. Raises StorageError."""
    try:
        owner = owner_here(context)
        try:
            log.incarnation(partitions=settings.partitions)
        except NotFoundError:
            return None
        identity = Identity(context)
        # What is being sent counts too, and nobody waits for it.
        tails = log.tails(range(settings.partitions), uncommitted=True)
        latest = context.snapshots.latest()
        for bucket, tail in tails.items():
            check_end(context, log, owner, bucket, tail)
        for bucket, tail in tails.items():
            check_history(context, identity, log, bucket, tail, latest)
    except ConflictError as error:
        return error
    return None


def foreign_log(context: TableContext, log: LogStore, settings: LogSettings) -> ForeignLog | None:
    """As :func:`log_problem`, only that the log is not this table's: then it is not to be removed."""
    try:
        found = log_problem(context, log, settings)
    except InvalidInputError:
        # Somebody has changed the number of partitions, or we may not look: the table's own record, which says ours, has to do.
        return None
    return found if isinstance(found, ForeignLog) else None


def own_log(context: TableContext, log: LogStore, settings: LogSettings) -> None:
    """Take a log that was just made, or that nobody has ever used. Whoever still writes to one of that name does so no longer.

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
    Holds(context.files).take(LOG_HOLD, next_snapshot, owner=owner, ids=context.ids)


def log_owner(log: LogStore, incarnation: str) -> str:
    """Who holds snapshots for a log."""
    return f"the log {log.name} (id {incarnation})"


def remove_log(context: TableContext, log: LogStore, settings: LogSettings) -> None:
    """Delete the log of a table that will have none; that of another table, or of the one it is a copy of, is left alone."""
    if (found := foreign_log(context, log, settings)) is not None:
        LOG.warning("topic %s is left as it is: %s", log.name, found)
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
        known = [*written, *((before.location, *before.former) if before is not None else ())]
        former = tuple(dict.fromkeys(one for one in known if not same_place(one, root)))
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
    """The log was given another limit: what it said before holds no longer, the next publisher notes the new one."""
    owner = read_log_owner(context.files)
    if owner is not None and owner.record_bytes is not None:
        write_log_owner(context.files, replace(owner, record_bytes=None))


def fence_slots(log: LogStore, slots: Iterable[int]) -> None:
    """Whoever still publishes to a log that had this name before does so no longer."""
    for slot in slots:
        log.open_slot(slot, (), timeout_s=OPEN_TIMEOUT_S).close()


def _recorded(context: TableContext) -> LogOwner | None:
    try:
        return read_log_owner(context.files)
    except FormatError:
        # Damaged: it is about to be written anew, and the log says whose it is.
        return None


def _refuse_used(context: TableContext, log: LogStore, settings: LogSettings) -> None:
    """A table begins with a log that nobody has used before: neither another table, nor a moment ago one of that name."""
    uuid = (context.table_uuid or "").encode()
    for bucket, tail in log.tails(range(settings.partitions), uncommitted=True).items():
        if (tail.empty and tail.next_offset) or (not tail.empty and tail.table != uuid):
            whose = "records that are gone" if tail.empty else "records of somebody else"
            if tail.table is not None:
                whose = f"records or the claim of the table with uuid {tail.table.decode(errors='replace')}{_at(tail.location)}"
            raise ForeignLog(
                f"{log.name} holds {whose} (partition {bucket}), it cannot be the log of {context.files.root_uri} too; give the "
                "table a topic of its own (log.kafka.topic), or delete that one if it is nobody's"
            )


def _at(location: str | None) -> str:
    return f" ({location})" if location is not None else ""
