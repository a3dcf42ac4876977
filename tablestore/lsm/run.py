"""Sections, sorted runs and levels of a bucket's files.

    Section   files whose key ranges hang together; sections are independent and in key order
    run       files of a section with disjoint key ranges, in key order; a section of one run needs no merge
    Levels    a bucket's files by level: level 0 newest first (each file a run of its own), then 1 to the top

Pure: values in, values out. Keys are compared through ``key_of``: a ``KeyOrder``.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, TypeVar

from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.lsm.keyorder import FEWEST_AT_ONCE, KeyOrder

T = TypeVar("T")
KeyOf = Callable[[bytes], Any]
"""A serialised key as a value that sorts as the key does."""


@dataclass(frozen=True, slots=True)
class Section:
    """Files that overlap at least through others, as the fewest runs that the greedy packing finds."""

    runs: tuple[tuple[DataFileMeta, ...], ...]

    @property
    def files(self) -> tuple[DataFileMeta, ...]:
        """The files of the section, run by run."""
        return tuple(chain.from_iterable(self.runs))

    @property
    def needs_merge(self) -> bool:
        """True if a key can occur in more than one file."""
        return len(self.runs) > 1


@dataclass(frozen=True, slots=True)
class Levels:
    """A bucket's files: ``level_zero`` newest first, ``upper[i]`` the sorted run of level i + 1, possibly empty."""

    level_zero: tuple[DataFileMeta, ...]
    upper: tuple[tuple[DataFileMeta, ...], ...]

    @property
    def runs(self) -> tuple[tuple[DataFileMeta, ...], ...]:
        """The sorted runs, newest first: level-0 files one by one, then the levels that hold files."""
        return (*((file,) for file in self.level_zero), *(run for run in self.upper if run))

    @property
    def top(self) -> int:
        """The highest level that holds files."""
        return max((level + 1 for level, run in enumerate(self.upper) if run), default=0)


def levels(files: Sequence[DataFileMeta], key_of: KeyOf) -> Levels:
    """A bucket's files by level; level 0 by max sequence, min sequence, creation time (all newest first), then name."""
    zero = [file for file in files if file.level == 0]
    zero.sort(key=lambda file: file.file_name)
    zero.sort(
        key=lambda file: (file.max_sequence_number, file.min_sequence_number, file.creation_time_millis or 0),
        reverse=True,
    )
    top = max((file.level for file in files), default=0)
    upper: list[list[DataFileMeta]] = [[] for _ in range(top)]
    for file in files:
        if file.level > 0:
            upper[file.level - 1].append(file)
    return Levels(tuple(zero), tuple(tuple(sorted(run, key=lambda file: key_of(file.min_key))) for run in upper))


def partition_intervals(files: Sequence[DataFileMeta], key_of: KeyOf) -> tuple[Section, ...]:
    """Cut files into sections in key order and pack each section into runs (Paimon's interval partition).

    A run of the result that is given first holds the file with the smallest key; runs say nothing about age.
    """
    sections = key_intervals([key for file in files for key in (file.min_key, file.max_key)], files, key_of)
    return tuple(Section(tuple(map(tuple, runs))) for runs in sections)


def key_intervals(ends: Sequence[bytes], items: Sequence[T], key_of: KeyOf) -> Iterator[list[list[T]]]:
    """The sections of :func:`partition_intervals`, each as its runs, of any items; ``ends``: the first and the last key of each.

    Items with the same keys stay in order."""
    keys = key_of.of_all(ends) if len(ends) >= FEWEST_AT_ONCE and isinstance(key_of, KeyOrder) else list(map(key_of, ends))
    bounded = list(zip(keys[::2], keys[1::2], items, strict=True))
    bounded.sort(key=itemgetter(0, 1))
    pending: list[tuple[Any, Any, T]] = []
    reach: Any = None
    for smallest, largest, item in bounded:
        if pending and smallest > reach:
            yield _pack_runs(pending)
            pending = []
        reach = largest if not pending or largest > reach else reach
        pending.append((smallest, largest, item))
    if pending:
        yield _pack_runs(pending)


def _pack_runs(section: Sequence[tuple[Any, Any, T]]) -> list[list[T]]:
    """Each item, by smallest key, joins the run that ends first if it starts behind it; else it opens a run."""
    if len(section) == 1:
        return [[section[0][2]]]
    runs: list[list[T]] = []
    ends: list[tuple[Any, int]] = []
    for smallest, largest, item in section:
        if ends and ends[0][0] < smallest:
            _, run = heapq.heappop(ends)
            runs[run].append(item)
        else:
            run = len(runs)
            runs.append([item])
        heapq.heappush(ends, (largest, run))
    return runs
