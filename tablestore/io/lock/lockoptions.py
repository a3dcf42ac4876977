"""Parses the options ``catalog.lock.*`` of a catalog: the kind of lock, its location, and how long to wait.

They stand among the options of the file system, and so reach every process that opens the store: tables, Spark tasks, sinks.
All of them must find the same lock, so a location never depends on the working directory.
"""

import os
from collections.abc import Mapping
from typing import Any

from tablestore.clock import Clock, SystemClock
from tablestore.errors import InvalidInputError
from tablestore.io.lock.cataloglock import CatalogLock
from tablestore.names import did_you_mean
from tablestore.options import Option

PREFIX = "catalog.lock."
TYPE = Option(
    key="catalog.lock.type",
    kind="choice",
    default=None,
    choices=("file", "sql"),
    sentence="Publish under a lock: file (an operating system lock, for writers on one machine), or sql (a row of a database).",
)
LOCATION = Option(
    key="catalog.lock.location",
    kind="text",
    default=None,
    sentence="For file the absolute path of a directory that all writers see, for sql the URL of a database.",
)
ACQUIRE_TIMEOUT = Option(
    key="catalog.lock.acquire-timeout",
    kind="duration",
    default=60_000,
    minimum=0,
    sentence="How long a commit waits for the lock before it is refused (lock-timeout).",
)
CHECK_INTERVAL = Option(
    key="catalog.lock.check-interval",
    kind="duration",
    default=250,
    minimum=1,
    sentence="The longest time between two looks whether the lock is free.",
)
OPTIONS = {option.key: option for option in (TYPE, LOCATION, ACQUIRE_TIMEOUT, CHECK_INTERVAL)}


def parse_lock(options: Mapping[str, Any], clock: Clock | None = None) -> tuple[CatalogLock | None, dict[str, Any]]:
    """The lock that ``options`` ask for, if any, and the options that are left. None is no value. Raises InvalidInputError."""
    other_options = {key: value for key, value in options.items() if not key.startswith(PREFIX)}
    if unknown := sorted(set(options) - set(other_options) - set(OPTIONS)):
        raise InvalidInputError(
            f"there is no option {unknown[0]!r}{did_you_mean(unknown[0], OPTIONS)}; options of the lock are {', '.join(OPTIONS)}",
            kind="unknown-option",
        )
    lock_options = {key: options[key] for key in OPTIONS if options.get(key) is not None}
    if not lock_options:
        return None, other_options
    value = {
        key: option.parse(str(lock_options[key])) if key in lock_options else option.default for key, option in OPTIONS.items()
    }
    if missing := [key for key in (TYPE.key, LOCATION.key) if not value[key]]:
        raise InvalidInputError(
            f"{', '.join(lock_options)} without {missing[0]}: a lock needs a type ({', '.join(TYPE.choices)}) and a location",
            kind="invalid-option",
        )
    waits: dict[str, Any] = {
        "timeout_s": float(str(value[ACQUIRE_TIMEOUT.key])) / 1000,
        "longest_wait_s": float(str(value[CHECK_INTERVAL.key])) / 1000,
        "clock": clock or SystemClock(),
    }
    location = str(value[LOCATION.key])
    # Each loads a library that most processes do not need.
    if value[TYPE.key] == "file":
        from tablestore.io.lock.filelock import FileCatalogLock

        directory = os.path.expanduser(location)
        if not os.path.isabs(directory):
            raise InvalidInputError(
                f"option {LOCATION.key}: expected the absolute path of a directory, found {location!r:.200}: every writer must see "
                "the same place, whatever its working directory is",
                kind="invalid-option",
            )
        return FileCatalogLock(directory=os.path.normpath(directory), **waits), other_options
    from tablestore.io.lock.sqllock import SqlCatalogLock

    return SqlCatalogLock(url=location, **waits), other_options
