"""Finds the sink of rows of a table with a connector: the engine writes them, unless an installed package does it.

    connector = 'kafka', value.format = 'json'      the entry point ``kafka`` of the group ``tablestore.row_sinks``

An entry point gives a function that takes the rows in this process, whatever engine the query runs on, in bounded memory
(``QueryRows.streamed``).
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points

import pyarrow as pa

from tablestore.environment.session.objects import ConnectorTable
from tablestore.errors import UnsupportedError

GROUP = "tablestore.row_sinks"
# Its presence says that rows are to be encoded here. An engine's own source of this name takes messages that a query has made.
VALUE_FORMAT = "value.format"

RowSink = Callable[[str, Mapping[str, str], Sequence[str], pa.RecordBatchReader, str], None]
"""(name of the table, its options, its key, the rows, an id of this job) -> nothing; the rows have landed."""


def row_sink(found: ConnectorTable) -> RowSink | None:
    """The sink that writes to a table; None: the engine. Raises UnsupportedError for a connector that is not installed."""
    if VALUE_FORMAT not in found.options:
        return None
    points = {point.name: point for point in entry_points(group=GROUP)}
    if found.connector not in points:
        return None
    try:
        sink: RowSink = points[found.connector].load()
    except ImportError as error:
        raise UnsupportedError(
            f"the connector {found.connector} does not load ({error}); pip install 'tablestore[{found.connector}]'",
            kind="no-connector",
        ) from error
    return sink
