"""Reads the options of one table reference: ``FROM t /*+ OPTIONS('scan.snapshot-id' = '1') */``.

    scan.snapshot-id, scan.tag-name         the table at that snapshot, as VERSION AS OF
    scan.timestamp, scan.timestamp-millis   … at that time, as TIMESTAMP AS OF
    log.scan = full                         the table as it is, which is what a query reads anyway
    log.scan = latest                       the same; a reader of changes would begin behind it
    log.scan = from-timestamp               the table at the time of log.scan.timestamp-mills
    consumer-id                             nothing: a query has no progress to keep

Those of readers that follow changes are checked as such a reader checks them, so that a text which names them wrongly fails in a
query too. Options of the table as a whole are not those of one reference, and are refused with where they belong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tablestore.environment.engine import StreamStart
from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.lazy import imported
from tablestore.names import did_you_mean
from tablestore.options import LOG_SCAN, LOG_SCAN_TIMESTAMP, LOG_SCAN_TIMESTAMP_ALIAS, TABLE_OPTIONS, Option, refuse_two_spellings
from tablestore.sql.query.hints import DynamicOption
from tablestore.store.context import TableContext
from tablestore.timepoint import epoch_millis

SNAPSHOT_ID = Option(
    key="scan.snapshot-id",
    kind="int",
    default=None,
    sentence="The table at this snapshot, as VERSION AS OF.",
    minimum=1,
)
TAG_NAME = Option(
    key="scan.tag-name",
    kind="text",
    default=None,
    sentence="The table at the snapshot of this tag, as VERSION AS OF.",
)
TIMESTAMP = Option(
    key="scan.timestamp",
    kind="text",
    default=None,
    sentence="The table at this time, such as 2026-01-31 12:00:00, as TIMESTAMP AS OF.",
)
TIMESTAMP_MILLIS = Option(
    key="scan.timestamp-millis",
    kind="int",
    default=None,
    sentence="The table at this time, in milliseconds since the epoch.",
    minimum=0,
)
SCAN = replace(LOG_SCAN, sentence="The newest snapshot (full, latest), or the table at log.scan.timestamp-mills (from-timestamp).")
SCAN_TIMESTAMP = replace(LOG_SCAN_TIMESTAMP, sentence="The time of log.scan = from-timestamp, in milliseconds since the epoch.")
SCAN_TIMESTAMP_ALIAS = replace(
    LOG_SCAN_TIMESTAMP, key=LOG_SCAN_TIMESTAMP_ALIAS, sentence="Another spelling of log.scan.timestamp-mills."
)
CONSUMER_ID = Option(
    key="consumer-id",
    kind="text",
    default=None,
    sentence="The name of a reader that follows changes; a query moves nothing of its progress.",
)
DYNAMIC_OPTIONS = {
    option.key: option
    for option in (
        SNAPSHOT_ID, TAG_NAME, TIMESTAMP, TIMESTAMP_MILLIS, SCAN, SCAN_TIMESTAMP, SCAN_TIMESTAMP_ALIAS, CONSUMER_ID
    )
}  # fmt: skip
# The names of arguments of ``pin_read`` and ``SystemTable.scan``.
_ARGUMENTS = {SNAPSHOT_ID: "snapshot_id", TAG_NAME: "tag", TIMESTAMP: "timestamp", TIMESTAMP_MILLIS: "timestamp"}
_OF_FOLLOWERS = (SCAN, SCAN_TIMESTAMP, SCAN_TIMESTAMP_ALIAS, CONSUMER_ID)
_OF_STREAMS = ("scan.mode", "incremental-between", "from-snapshot")


@dataclass(frozen=True, slots=True)
class ScannedAt:
    """The snapshot that one reference reads: ``at`` is ``snapshot_id``, ``tag`` or ``timestamp`` (in milliseconds), or nothing for
    the newest snapshot; ``chosen``: the key of the option that says so, None where none does."""

    at: Mapping[str, Any]
    chosen: str | None


def scanned_at(context: TableContext, table: str, options: Sequence[DynamicOption]) -> ScannedAt:
    """The snapshot that the options of one reference to a managed table name. ``table``: its name, for errors.

    Raises InvalidInputError for an option that is unknown or of the whole table, or for a second point in time; UnsupportedError
    for options of streams that say nothing about a snapshot.
    """
    points: dict[str, dict[str, Any]] = {}
    following: dict[str, str] = {}
    for option in options:
        definition = DYNAMIC_OPTIONS.get(option.key)
        if definition is None:
            raise refusal(table, option)
        if definition in _OF_FOLLOWERS:
            following[definition.key] = option.value
        else:
            value = epoch_millis(option.value, option.key) if definition is TIMESTAMP else definition.parse(option.value)
            points[definition.key] = {_ARGUMENTS[definition]: value}
    if following:
        points |= _followed(context, following)
    if len(points) > 1:
        raise InvalidInputError(
            f"{table}: {' and '.join(points)} each say which snapshot is read; give one of them", kind="invalid-option"
        )
    return next((ScannedAt(at, chosen) for chosen, at in points.items()), ScannedAt({}, None))


def _followed(context: TableContext, option_values: Mapping[str, str]) -> Mapping[str, dict[str, Any]]:
    """The snapshot that options of readers which follow changes name: by the option, where they name one."""
    time = next(iter(_times(option_values)), None)
    mode = SCAN.parse(option_values.get(SCAN.key, "full"))
    assert isinstance(mode, str)
    # The modules that follow a log are loaded for these options only.
    parse_start = imported("tablestore.log.follow.request:parse_start")
    start = parse_start(context, scan=mode, time_millis=time, consumer_id=option_values.get(CONSUMER_ID.key), position=None)
    if start.scan == "full":
        return {}
    return {SCAN.key: {} if start.time_millis is None else {"timestamp": start.time_millis}}


def followed_from(context: TableContext, table: str, options: Sequence[DynamicOption]) -> StreamStart | None:
    """The start of the stream that one reference to a managed table is; None where its options name a snapshot, so that it is
    none. What no option says the table's own options do.

    Raises InvalidInputError, UnsupportedError as :func:`scanned_at`.
    """
    if any(option.key in DYNAMIC_OPTIONS and DYNAMIC_OPTIONS[option.key] not in _OF_FOLLOWERS for option in options):
        return None
    values: dict[str, str] = {}
    for option in options:
        if option.key not in DYNAMIC_OPTIONS:
            raise refusal(table, option)
        values[option.key] = option.value
    times = _times(values)
    scan = SCAN.parse(values[SCAN.key]) if SCAN.key in values else None
    # The modules that follow a log are loaded for streams only.
    parse_start = imported("tablestore.log.follow.request:parse_start")
    start = parse_start(
        context, scan=scan, time_millis=next(iter(times), None), consumer_id=values.get(CONSUMER_ID.key), position=None
    )
    return StreamStart(scan=start.scan, time_millis=start.time_millis, consumer_id=start.consumer_id)


def _times(values: Mapping[str, str]) -> list[int]:
    """The time of ``log.scan = from-timestamp``, if an option says it."""
    times = {
        key: DYNAMIC_OPTIONS[key].parse(values[key]) for key in (SCAN_TIMESTAMP.key, SCAN_TIMESTAMP_ALIAS.key) if key in values
    }
    refuse_two_spellings(times)
    return [time for time in times.values() if isinstance(time, int)]


def changes_nothing(option: DynamicOption) -> bool:
    """True for an option that only a reader of changes would heed: it says nothing about a query of one snapshot."""
    return option.key == CONSUMER_ID.key or (option.key == SCAN.key and option.value.strip().lower() == "latest")


def refusal(table: str, option: DynamicOption) -> TablestoreError:
    """The error of an option that one reference to a managed table cannot have."""
    option_names = ", ".join(DYNAMIC_OPTIONS)
    if option.key in _OF_STREAMS:
        return UnsupportedError(
            f"{option.key} is for readers that follow the changes of {table}, and a query reads one snapshot of it: choose that "
            f"with {option_names}; SELECT * FROM table_changes('{table}', 1, 5) gives changes, and table.consume(), `tablestore "
            "consume` and spark.readStream follow them",
            kind="streaming",
        )
    if option.key in TABLE_OPTIONS:
        return InvalidInputError(
            f"{option.key} is an option of the whole table {table}, not of one reference to it (those are {option_names}): ALTER "
            f"TABLE {table} SET ('{option.key}' = '{option.value}')",
            kind="invalid-option",
        )
    near = did_you_mean(option.key, (*DYNAMIC_OPTIONS, *_OF_STREAMS))
    return InvalidInputError(
        f"unknown option {option.key!r:.100} of a reference to {table}{near}; known are {option_names}", kind="unknown-option"
    )


def connector_options(connector: Mapping[str, str], options: Sequence[DynamicOption]) -> dict[str, str]:
    """The options of a table with a connector, for one reference: what they mean is the connector's business."""
    return {**connector, **{option.key: option.value for option in options}}
