"""The owner file: records which log a table was given, and where the table lay then.

    tablestore-log/owner.json      {"table": uuid, "location": "/wh/shop.db/orders", "log": …, "former": [...], "recordBytes": …}

A copy of the table's directory brings this file along, and so finds that it is a copy: its location is another one. ``log`` is the
incarnation of the log; ``former`` are places where the same table lay before it was moved, so records sent from there are its own.
``recordBytes``, if it is there: how large the log said that records may be, for writers, who do not ask it.
"""

import json
from dataclasses import dataclass

from tablestore.errors import FormatError, NotFoundError
from tablestore.format.limits import parse_json_bounded
from tablestore.io.filestore import FileStore
from tablestore.log.logprogress import PROGRESS_DIR

_PATH = f"{PROGRESS_DIR}/owner.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOwner:
    """A table as the owner of a log. ``incarnation`` is empty while the log has not been looked at."""

    table: str | None
    location: str
    incarnation: str
    former: tuple[str, ...] = ()
    record_bytes: int | None = None


def read_log_owner(files: FileStore) -> LogOwner | None:
    """The owner file of a table; None for one that has no log, or got it from an early version. Raises FormatError."""
    where = f"{files.root_uri}/{_PATH}"
    try:
        data = files.read(_PATH)
    except NotFoundError:
        return None
    try:
        content = parse_json_bounded(data, where)
        assert isinstance(content, dict)
        table, former, size = content["table"], content["former"], content.get("recordBytes")
        assert table is None or isinstance(table, str)
        assert isinstance(former, list)
        assert size is None or isinstance(size, int)
        return LogOwner(
            table=table,
            location=str(content["location"]),
            incarnation=str(content["log"]),
            former=tuple(map(str, former)),
            record_bytes=size,
        )
    except (AssertionError, KeyError, TypeError) as error:
        raise FormatError(
            f"{where} does not say whose log it is: {data[:80]!r}; `tablestore log adopt` writes it anew, if the log is its own"
        ) from error


def write_log_owner(files: FileStore, owner: LogOwner) -> None:
    """Record the owner, in place of the one before."""
    content: dict[str, object] = {
        "table": owner.table,
        "location": owner.location,
        "log": owner.incarnation,
        "former": list(owner.former),
    }
    if owner.record_bytes is not None:
        content["recordBytes"] = owner.record_bytes
    files.overwrite(_PATH, json.dumps(content, separators=(",", ":")).encode())
