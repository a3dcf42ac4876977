"""Checks that a log is this table's and holds this table's history.

    what is looked at                                what it finds                              way out
    the table's own record of where it lay           a copy, or a table that was moved          adopt, another topic
    the claim in the log, the end of each bucket     another table; one that was copied and     another topic
      (uuid and location of its writer)                then adopted the log
    the name of the snapshot at each bucket's end    an older copy put in the table's place,    rebuild
                                                       before and after its ids catch up

A copy of a directory brings along everything that lies in the table, its uuid too, so the place is compared; and to
adopt a log is to claim it (:mod:`tablestore.log.publish.claim`), which the other table finds in the log.

The last record of everything that is sent carries the location and the snapshot's name. While a slot is held nobody else writes to
its buckets, so they are looked at when it is opened.
"""

from tablestore.errors import ConflictError, InvalidInputError, NotFoundError
from tablestore.format.snapshot import Snapshot
from tablestore.io.opening import same_place
from tablestore.log.identity import Identity
from tablestore.log.logstore import LogStore
from tablestore.log.publish.ownerfile import LogOwner, read_log_owner
from tablestore.log.record import Tail
from tablestore.log.settings import LogSettings
from tablestore.store.context import TableContext

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
            f"{where} belongs to the table with uuid {tail.table.decode(errors='replace')}{located(tail.location)}, not to "
            f"{context.table_uuid} ({root}): two tables name the same topic, or the table was dropped and created again; "
            f"{_OWN_TOPIC}"
        )
    ours = (owner.location, *owner.former)
    if tail.location is not None and not any(same_place(location, tail.location) for location in ours):
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
    snapshot_id = tail.mark.snapshot_id
    if latest is None or snapshot_id > latest.id:
        raise ConflictError(
            f"{where} holds changes of snapshot {snapshot_id}, the newest of {root} is {latest.id if latest else 'none'}: the "
            f"table was restored from an older copy; {_REBUILD}",
            kind="log-ahead",
        )
    check_name(identity, root, where, snapshot_id, tail.snapshot_uuid)


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
    """The reason why the log is not this table's or not of its history; None if nothing speaks against it. Raises
    StorageError."""
    try:
        owner = owner_here(context)
        try:
            log.incarnation(partitions=settings.partitions)
        except NotFoundError:
            return None
        identity = Identity(context)
        # Records that are being sent count too, and are not waited for.
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
    """The error as :func:`log_problem` gives it, only where the log is not this table's: then it is not to be removed."""
    try:
        problem = log_problem(context, log, settings)
    except InvalidInputError:
        # Somebody has changed the number of partitions, or we may not look: the table's own record, which says ours, has to do.
        return None
    return problem if isinstance(problem, ForeignLog) else None


def shows_owner(context: TableContext, log: LogStore, settings: LogSettings) -> bool:
    """True if something shows that the log is this table's: the table has noted the log's id, which only who asks the log system
    knows, or the last record of a bucket is of the table. Raises NotFoundError, StorageError, InvalidInputError."""
    owner = read_log_owner(context.files)
    # Of any number of partitions: somebody may have changed that.
    if owner is not None and owner.incarnation == log.incarnation(partitions=1):
        return True
    # A topic with fewer partitions was never this table's log.
    log.incarnation(partitions=settings.partitions)
    uuid = (context.table_uuid or "").encode()
    return any(tail.table == uuid for tail in log.tails(range(settings.partitions), uncommitted=True).values())


def is_empty(log: LogStore, settings: LogSettings) -> bool:
    """True if nothing was ever written to the log, by anybody. Raises NotFoundError, StorageError, InvalidInputError."""
    tails = log.tails(range(settings.partitions), uncommitted=True).values()
    return all(tail.empty and tail.next_offset == 0 for tail in tails)


def located(location: str | None) -> str:
    """A location as messages name it."""
    return f" ({location})" if location is not None else ""
