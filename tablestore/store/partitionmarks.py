"""Marks a partition as done by the file that Paimon's action ``success-file`` makes in its directory.

    day=mon/_SUCCESS    {"creationTime": 1767225600000, "modificationTime": 1767229200000}

Whoever waits for the rows of a day looks for the file. A mark says what somebody has said: rows may come after it.
"""

from collections.abc import Sequence

from tablestore.errors import FormatError, NotFoundError
from tablestore.format.limits import DEFAULT_LIMITS, json_within_limits, parse_json_bounded
from tablestore.format.partitiontext import partition_dir
from tablestore.format.sealed import JsonObject
from tablestore.store.context import TableContext

MARK_NAME = "_SUCCESS"
_CREATED, _MODIFIED = "creationTime", "modificationTime"


def mark_done(context: TableContext, values: Sequence[object]) -> None:
    """Marks the partition of these values; one that is marked already keeps the time of its first mark. Raises StorageError."""
    path, now_millis = _mark_path(context, values), context.clock.now_ms()
    created_millis = now_millis
    try:
        mark = JsonObject(parse_json_bounded(context.main_files.read(path), path, DEFAULT_LIMITS), path)
        created_millis = mark.integer(_CREATED)
    except (NotFoundError, FormatError):
        # Engines before Paimon made an empty file of that name.
        pass
    content = {_CREATED: created_millis, _MODIFIED: now_millis}
    context.main_files.overwrite(path, json_within_limits(content, path))


def is_done(context: TableContext, values: Sequence[object]) -> bool:
    """True if the partition is marked. Asks the store once."""
    return context.main_files.exists(_mark_path(context, values))


def _mark_path(context: TableContext, values: Sequence[object]) -> str:
    """The file lies beside the buckets of the table itself, also where data files lie elsewhere and of a branch."""
    types = [field.type for field in context.schema.partition_fields]
    settings = context.settings
    directory = partition_dir(
        context.schema.partition_keys, types, values, settings.default_partition, settings.legacy_partition_names
    )
    return f"{directory}/{MARK_NAME}"
