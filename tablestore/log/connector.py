"""Loads the log store that a table's settings name.

It comes from an installed package, by the entry point group ``tablestore.log_stores``: the engine knows no client library.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points

from tablestore.errors import UnsupportedError
from tablestore.log.logstore import LogStore
from tablestore.log.settings import LogSettings

GROUP = "tablestore.log_stores"

OpenLogStore = Callable[[str, Mapping[str, str]], LogStore]
"""The function that an entry point gives: (topic, client properties of the table) -> the log."""


def open_log_store(settings: LogSettings) -> LogStore:
    """The log store that the settings name. Raises UnsupportedError if its connector is not installed."""
    points = [point for point in entry_points(group=GROUP) if point.name == settings.system]
    if not points:
        raise UnsupportedError(
            f"log.system = {settings.system} needs its connector, which is not installed: pip install "
            f"'managed-tablestore[{settings.system}]'",
            kind="no-log-connector",
        )
    try:
        make: OpenLogStore = points[0].load()
    except ImportError as error:
        raise UnsupportedError(
            f"log.system = {settings.system}: its connector does not load ({error}); "
            f"pip install 'managed-tablestore[{settings.system}]'",
            kind="no-log-connector",
        ) from error
    return make(settings.topic, settings.properties)
