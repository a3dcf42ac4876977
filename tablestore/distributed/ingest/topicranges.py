"""Divides the records of a round of an ingest among its tasks. Pure.

A round takes so many offsets of all partitions, evenly, in ranges of one partition each. Those of a partition are in the order of
their offsets: of one key the later task's row wins, and that is the later record.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tablestore.cdc.topicsource import Offsets

# A task of fewer records takes longer to begin than to read them.
LEAST_OF_A_TASK = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRange:
    """The records of a partition from ``start`` on, before ``end``."""

    partition: int
    start: int
    end: int


def plan_ranges(offsets: Offsets, ends: Offsets, *, most: int, tasks: int) -> tuple[TopicRange, ...]:
    """Ranges behind ``offsets`` and before ``ends``, at most ``most`` records together; about so many ``tasks``, or one for each
    partition if those are more."""
    chosen = _shares({place: ends[place] - offset for place, offset in offsets.items() if offset < ends.get(place, 0)}, most)
    step = max(LEAST_OF_A_TASK, -(-sum(chosen.values()) // max(1, tasks)))
    return tuple(
        part for place, count in sorted(chosen.items()) for part in _cut(place, offsets[place], offsets[place] + count, step)
    )


def behind(offsets: Offsets, ranges: tuple[TopicRange, ...]) -> dict[int, int]:
    """The offsets behind these ranges."""
    return {**offsets, **{topic_range.partition: topic_range.end for topic_range in ranges}}


def _shares(counts: Mapping[int, int], most: int) -> dict[int, int]:
    """The number of records taken of each partition; what one of them lacks is there for the others."""
    chosen: dict[int, int] = {}
    for number, (place, count) in enumerate(sorted(counts.items(), key=lambda pair: pair[1])):
        share = min(count, (most - sum(chosen.values())) // (len(counts) - number))
        if share:
            chosen[place] = share
    return chosen


def _cut(partition: int, start: int, end: int, step: int) -> Iterator[TopicRange]:
    for place in range(start, end, step):
        yield TopicRange(partition=partition, start=place, end=min(place + step, end))
