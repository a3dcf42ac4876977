"""A topic in memory: what the protocol of topics asks for, and nothing else."""

from collections.abc import Mapping

import numpy as np

from tablestore.cdc.topicsource import Offsets, TopicRecords

Record = tuple[bytes | None, bytes | None]


class MemoryTopic:
    """``partitions``: the records of each; offsets count from ``first``, which moves on where records are dropped."""

    def __init__(self, name: str = "topic", partitions: int = 1, id: str = "id-1") -> None:
        self.name, self.id = name, id
        self.partitions: list[list[Record]] = [[] for _ in range(partitions)]
        self.first = [0] * partitions

    def incarnation(self) -> str:
        return self.id

    def bounds(self) -> Mapping[int, tuple[int, int]]:
        return {number: (self.first[number], len(records)) for number, records in enumerate(self.partitions)}

    def open_cursor(self, offsets: Offsets) -> "MemoryCursor":
        return MemoryCursor(self, dict(offsets))


class MemoryCursor:
    """Hands out a few records of each partition at a time."""

    def __init__(self, topic: MemoryTopic, offsets: dict[int, int], at_once: int = 3) -> None:
        self._topic, self._offsets, self._at_once = topic, offsets, at_once

    def poll(self, timeout_s: float, max_records: int, max_bytes: int) -> TopicRecords:
        found: list[tuple[int, int, Record]] = []
        for partition, offset in self._offsets.items():
            records = self._topic.partitions[partition]
            stop = min(len(records), offset + self._at_once, offset + max(0, max_records - len(found)))
            found += [(partition, number, records[number]) for number in range(offset, stop)]
            self._offsets[partition] = stop
        ended = {
            partition: offset for partition, offset in self._offsets.items() if offset == len(self._topic.partitions[partition])
        }
        return TopicRecords(
            partitions=np.array([partition for partition, _, _ in found], dtype=np.int32),
            offsets=np.array([number for _, number, _ in found], dtype=np.int64),
            keys=[key for _, _, (key, _) in found],
            values=[value for _, _, (_, value) in found],
            ended=ended,
        )

    def close(self) -> None:
        pass
