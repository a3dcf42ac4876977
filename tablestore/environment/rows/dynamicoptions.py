"""What the options of one table reference mean: ``FROM t /*+ OPTIONS('scan.snapshot-id' = '1') */``.

    scan.snapshot-id, scan.tag-name         the table at that snapshot, as VERSION AS OF
    scan.timestamp, scan.timestamp-millis   … at that time, as TIMESTAMP AS OF
    log.scan = full                         the table as it is, which is what a query reads anyway

Other options of readers that follow changes (``log.scan`` = latest, ``consumer-id``) say nothing about a query that reads a
snapshot, and those of the table as a whole are not those of one reference: both are refused with where they belong.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.names import did_you_mean
from tablestore.options import LOG_SCAN, LOG_SCAN_TIMESTAMP, LOG_SCAN_TIMESTAMP_ALIAS, TABLE_OPTIONS, Option
from tablestore.sql.query.hints import DynamicOption
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
DYNAMIC_OPTIONS = {option.key: option for option in (SNAPSHOT_ID, TAG_NAME, TIMESTAMP, TIMESTAMP_MILLIS)}
# The names of arguments of ``pin_read`` and ``SystemTable.scan``.
_ARGUMENTS = {SNAPSHOT_ID: "snapshot_id", TAG_NAME: "tag", TIMESTAMP: "timestamp", TIMESTAMP_MILLIS: "timestamp"}
_OF_STREAMS = (
    LOG_SCAN.key,
    LOG_SCAN_TIMESTAMP.key,
    LOG_SCAN_TIMESTAMP_ALIAS,
    "consumer-id",
    "scan.mode",
    "incremental-between",
)


def scanned_at(table: str, options: Sequence[DynamicOption]) -> dict[str, Any]:
    """``snapshot_id``, ``tag`` or ``timestamp`` (in milliseconds), as the options of a managed table say it.

    Raises InvalidInputError for an option that is unknown or of the whole table, or for a second one; UnsupportedError for one of
    those that follow changes.
    """
    at: dict[str, Any] = {}
    for option in options:
        if option.key == LOG_SCAN.key and option.value.strip().lower() == LOG_SCAN.default:
            continue
        if option.key not in DYNAMIC_OPTIONS:
            raise refusal(table, option)
        if at:
            raise InvalidInputError(
                f"{table}: {options[0].key} and {option.key} each say which snapshot is read; give one of them",
                kind="invalid-option",
            )
        chosen = DYNAMIC_OPTIONS[option.key]
        at[_ARGUMENTS[chosen]] = epoch_millis(option.value, option.key) if chosen is TIMESTAMP else chosen.parse(option.value)
    return at


def refusal(table: str, option: DynamicOption) -> TablestoreError:
    """The error of an option that one reference to a managed table cannot have."""
    known = ", ".join(DYNAMIC_OPTIONS)
    if option.key in _OF_STREAMS:
        return UnsupportedError(
            f"{option.key} is for readers that follow the changes of {table}, and a query reads one snapshot of it: choose that "
            f"with {known}; SELECT * FROM table_changes('{table}', 1, 5) gives changes, and table.consume(), `tablestore consume` "
            "and spark.readStream follow them",
            kind="streaming",
        )
    if option.key in TABLE_OPTIONS:
        return InvalidInputError(
            f"{option.key} is an option of the whole table {table}, not of one reference to it (those are {known}): ALTER TABLE "
            f"{table} SET ('{option.key}' = '{option.value}')",
            kind="invalid-option",
        )
    near = did_you_mean(option.key, (*DYNAMIC_OPTIONS, *_OF_STREAMS))
    return InvalidInputError(
        f"unknown option {option.key!r:.100} of a reference to {table}{near}; known are {known}", kind="unknown-option"
    )


def connector_options(connector: Mapping[str, str], options: Sequence[DynamicOption]) -> dict[str, str]:
    """The options of a table with a connector, for one reference: what they mean is the connector's business."""
    return {**connector, **{option.key: option.value for option in options}}
