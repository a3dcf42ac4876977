"""Defines a topic that others write to: the protocol that connectors implement, and how one is found.

    a package offers (entry point group ``tablestore.topic_sources``)    (topic, client properties) -> TopicSource

Records are handed around in batches of all partitions, in which those of one partition are in their order. Only what was committed
by its producer is there.

Errors: NotFoundError (no such topic), PositionLost (its retention has passed), StorageError (the system does not answer),
InvalidInputError (settings).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tablestore.errors import NotFoundError, UnsupportedError

GROUP = "tablestore.topic_sources"

Offsets = Mapping[int, int]
"""By partition the offset of the next record."""


class PositionLost(NotFoundError):
    """The topic no longer holds the position asked for."""

    default_kind = "position-lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecords:
    """Records, and where each one was. ``ended``: partitions of which no more was there, and the offset behind their last one."""

    partitions: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    ended: Offsets = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def next_offsets(self) -> dict[int, int]:
        """The offsets at which to go on behind them, in each partition that has any."""
        partitions = np.unique(self.partitions).tolist()
        return {partition: int(self.offsets[self.partitions == partition].max()) + 1 for partition in partitions}


class TopicCursor(Protocol):
    """Reads on from given offsets. Not thread-safe."""

    def poll(self, timeout_s: float, max_records: int, max_bytes: int) -> TopicRecords:
        """Polls the records that are there now, at most so many, and no more once they have so many bytes; waits only while there
        is nothing."""
        ...

    def close(self) -> None:
        """Gives up the connection."""
        ...


class TopicSource(Protocol):
    """One topic."""

    @property
    def name(self) -> str:
        """The name that people call it by."""
        ...

    def incarnation(self) -> str:
        """Identifies this topic among all that ever had its name."""
        ...

    def bounds(self) -> Mapping[int, tuple[int, int]]:
        """The bounds by partition: the first offset that is there, and the one behind the last record."""
        ...

    def open_cursor(self, offsets: Offsets) -> TopicCursor:
        """Reads on from these offsets, in these partitions."""
        ...


OpenTopicSource = Callable[[str, Mapping[str, str]], TopicSource]


def open_topic_source(system: str, topic: str, properties: Mapping[str, str]) -> TopicSource:
    """The topic of a log system, such as ``kafka``. Raises UnsupportedError if its connector is not installed."""
    make: OpenTopicSource = load_topic_connector(GROUP, system)
    return make(topic, properties)


def load_topic_connector(group: str, system: str) -> Any:
    """The object that the connector of a log system offers in an entry point group. Raises UnsupportedError if it is not
    installed."""
    for point in entry_points(group=group):
        if point.name == system:
            try:
                return point.load()
            except ImportError as error:
                raise UnsupportedError(
                    f"topics of {system}: the connector does not load ({error}); pip install 'managed-tablestore[{system}]'",
                    kind="no-topic-connector",
                ) from error
    raise UnsupportedError(
        f"topics of {system} need a connector, which is not installed: pip install 'managed-tablestore[{system}]'",
        kind="no-topic-connector",
    )
