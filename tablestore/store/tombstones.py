"""Tombstone retention: keeps deletes through full compactions for a time (``tablestore.tombstone-retention``).

With ``sequence.field`` a row may arrive late: after the delete of its key, with a smaller sequence. A stored delete hides such a
row. Once a full compaction has dropped the delete, the late row is visible. A retention keeps deletes for a time.

Rows have sequence numbers, not times. So snapshots note what number was reached when, as ``time:number`` pairs, oldest first:

    tablestore.sequence-times = 1760000000000:41,1760010000000:57

A row with a number below 57 began to be written before the second time. The newest pair that is older than the retention gives
the number from which deletes are kept. Pairs lie an eighth of the retention apart, so a delete stays a little longer than it must,
never shorter. A commit of another engine drops the note: then deletes are kept until there is a new one.
"""

from collections.abc import Mapping

from tablestore import options as opt
from tablestore.errors import UnsupportedError
from tablestore.format.snapshot import Snapshot
from tablestore.lsm.compaction.compactiontask import KeptRetractions
from tablestore.options import TableOptions
from tablestore.store.changelogproducer import FULL_COMPACTION, LOOKUP
from tablestore.store.sequence import NEXT_SEQUENCE_PROPERTY
from tablestore.types.schema import TableSchema

SEQUENCE_TIMES_PROPERTY = "tablestore.sequence-times"
_STEPS = 8

Times = tuple[tuple[int, int], ...]
"""(milliseconds, the number that was next then), ascending."""


def noted_times(latest: Snapshot, *, now_ms: int, retention_ms: int) -> str:
    """The note of the snapshot after ``latest``, as ``time:number`` pairs."""
    times = _times(latest.properties)
    reached = _reached(latest)
    if reached is not None and (not times or reached[0] - times[-1][0] >= retention_ms // _STEPS):
        times = (*times, reached)
    # The newest that is old enough is needed, those before it are not.
    old = sum(time <= now_ms - retention_ms for time, _ in times)
    return ",".join(f"{time}:{number}" for time, number in times[max(old - 1, 0) :])


def kept_retractions(latest: Snapshot | None, *, now_ms: int, retention_ms: int) -> KeptRetractions:
    """The retractions that a full compaction of ``latest`` keeps."""
    times = _times(latest.properties) if latest is not None else ()
    reached = _reached(latest) if latest is not None else None
    old = [pair for pair in (*times, *([reached] if reached else [])) if pair[0] <= now_ms - retention_ms]
    time, number = max(old, default=(0, 0))
    return KeptRetractions(from_sequence=number, noted_millis=time, retention_ms=retention_ms)


def check_retention(schema: TableSchema, table: str) -> None:
    """Refuse the retention where stored deletes would be taken for rows. Raises UnsupportedError that names the option."""
    options = TableOptions(schema.options)
    if options.value(opt.TOMBSTONE_RETENTION) is None:
        return
    engine = options.get("merge-engine", "deduplicate").strip().lower()
    producer = options.text(opt.CHANGELOG_PRODUCER).lower()
    reasons = {
        "it has no primary key": not schema.is_keyed,
        f"its merge-engine is {engine}, and only deduplicate keeps deletes as they are": engine != "deduplicate",
        "it has deletion vectors, whose readers take every stored row for a live one": options.flag(opt.DELETION_VECTORS_ENABLED),
        f"its changelog-producer {producer} takes stored rows for live ones": producer in (LOOKUP, FULL_COMPACTION),
    }
    for reason, applies in reasons.items():
        if applies:
            raise UnsupportedError(
                f"table {table} cannot keep deletes ({opt.TOMBSTONE_RETENTION.key}): {reason}; remove the option",
                kind="tombstone-retention",
            )


def _reached(snapshot: Snapshot) -> tuple[int, int] | None:
    number = snapshot.properties.get(NEXT_SEQUENCE_PROPERTY, "")
    return (snapshot.time_millis, int(number)) if number.isdigit() else None


def _times(properties: Mapping[str, str]) -> Times:
    pairs = [pair.split(":") for pair in properties.get(SEQUENCE_TIMES_PROPERTY, "").split(",") if pair]
    if not all(len(pair) == 2 and all(part.isdigit() for part in pair) for pair in pairs):
        # A note that cannot be read says nothing: deletes are kept until there is a new one.
        return ()
    return tuple((int(time), int(number)) for time, number in pairs)
