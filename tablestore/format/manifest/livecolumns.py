"""Folds the columns of manifests into the entries that are live, as :mod:`tablestore.format.manifest.liveset` folds objects.

Most file names occur once: such an ADD is live, such a DELETE is a tombstone. Names are told apart by their hashes
(:mod:`tablestore.format.manifest.derivedcolumns`). Only entries whose hashes occur again are put in order of their identity, where
each is compared with its neighbours. Where the manifests delete nothing, and no hash occurs again, one walk over them is enough.

Memory: 20 bytes of each entry, and what identifies those whose hashes occur again.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.format.manifest.derivedcolumns import NAME_HASH
from tablestore.format.manifest.entrycolumns import ENTRY_SCHEMA, EntryColumns, Places
from tablestore.format.manifest.liveset import live_entries
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry

IDENTITY_COLUMNS = ("kind", "partition", "bucket", "level", "file_name", "extra_files", "embedded_index", "external_path")
"""The columns that say of which file an entry speaks, and whether it is added or deleted."""

_ENTRIES_OF_A_BATCH = 100_000
# No file name has one.
_SEPARATOR = "/"
Repeated = Callable[[Places], Sequence[ManifestEntry]]
T = TypeVar("T")
Names = Callable[[EntryColumns], Sequence[str]]
"""The columns that are wanted of entries, by what they store."""
Read = Callable[[Names], Iterator[EntryColumns]]
"""Reads columns of the entries of each manifest, in the order of the list. In a manifest it may be another one each time."""


def live_parts(
    read: Read, names: Names, value: Callable[[EntryColumns], T], *, may_delete: bool, whole: bool = True
) -> list[tuple[Places, T]]:
    """A value of the columns ``names`` of the live entries of each manifest, and the places of these among all entries. Files whose
    hashes occur again are a part of their own. ``whole``: no ADD was left out. Raises FormatError if an identity is added twice."""
    if not may_delete and (at_once := _if_nothing_repeats(read, names, value)) is not None:
        return at_once
    repeated = _repeated(np.concatenate([part.numbers(NAME_HASH) for part in read(lambda _: (NAME_HASH,))]))
    parts: list[tuple[Places, T]] = []
    again: list[tuple[Places, EntryColumns]] = []
    start = 0
    for columns in _batches(read(_beside(IDENTITY_COLUMNS, names))):
        is_again = _is_among(columns.numbers(NAME_HASH), repeated)
        once = np.flatnonzero(~is_again & (columns.numbers("kind") == EntryKind.ADD))
        parts.append((start + once, value(columns.take(once))))
        if is_again.any():
            at = np.flatnonzero(is_again)
            again.append((start + at, columns.take(at)))
        start += len(columns)
    if again:
        together = EntryColumns.concat([columns.select((*IDENTITY_COLUMNS, NAME_HASH)) for _, columns in again])
        live = live_places(together, lambda places: _entries(read, together.numbers(NAME_HASH)[places]), whole=whole)
        start = 0
        for places, columns in again:
            here = live[(live >= start) & (live < start + len(columns))] - start
            parts.append((places[here], value(columns.take(here))))
            start += len(columns)
    return parts


def _if_nothing_repeats(read: Read, names: Names, value: Callable[[EntryColumns], T]) -> list[tuple[Places, T]] | None:
    """The parts if all entries are ADDs of different hashes."""
    parts, hashes, start = [], [], 0
    for columns in _batches(read(_beside(("kind",), names))):
        if (columns.numbers("kind") != EntryKind.ADD).any():
            return None
        hashes.append(columns.numbers(NAME_HASH))
        parts.append((np.arange(start, start + len(columns)), value(columns)))
        start += len(columns)
    return None if len(_repeated(np.concatenate(hashes))) else parts


def _batches(parts: Iterator[EntryColumns]) -> Iterator[EntryColumns]:
    """Neighbouring parts with the same columns put together: what is computed of each takes as long for few entries as for many."""
    pending: list[EntryColumns] = []
    for part in parts:
        if pending and not len(part):
            continue
        if pending and not len(pending[0]):
            pending = []
        if pending and (sum(map(len, pending)) + len(part) > _ENTRIES_OF_A_BATCH or not part.fits(pending[0])):
            yield pending[0].joined(pending[1:])
            pending = []
        pending.append(part)
    if pending:
        yield pending[0].joined(pending[1:])


def _beside(more: Sequence[str], names: Names) -> Names:
    return lambda columns: tuple(dict.fromkeys((NAME_HASH, *more, *names(columns))))


def _repeated(hashes: Places) -> Places:
    """The hashes that occur more than once, in order."""
    ordered = np.sort(hashes)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def _is_among(hashes: Places, repeated: Places) -> npt.NDArray[np.bool_]:
    if not len(repeated):
        return np.zeros(len(hashes), np.bool_)
    mask: npt.NDArray[np.bool_] = repeated[np.minimum(np.searchsorted(repeated, hashes), len(repeated) - 1)] == hashes
    return mask


def _entries(read: Read, hashes: Places) -> list[ManifestEntry]:
    """The entries of some hashes as objects."""
    wanted = np.unique(hashes)
    parts = read(lambda _: (*ENTRY_SCHEMA.names, NAME_HASH))
    return [e for part in parts for e in part.take(np.flatnonzero(_is_among(part.numbers(NAME_HASH), wanted))).entries()]


def live_places(entries: EntryColumns, repeated: Repeated, *, whole: bool = True) -> Places:
    """The places of the live entries, in order. ``entries``: those of all manifests, in order. ``whole``: no ADD was left out.
    ``repeated``: the entries at some places as objects. Raises FormatError if an identity is added twice, from ``repeated``."""
    is_add = entries.numbers("kind") == EntryKind.ADD
    names = entries.column("file_name").dictionary_encode()
    codes = names.indices.to_numpy()
    again = np.flatnonzero(np.bincount(codes, minlength=len(names.dictionary))[codes] > 1)
    if not len(again):
        return np.flatnonzero(is_add)
    order = again[np.lexsort(_identities(entries, codes, again))]
    # By identity, and in the order of the manifests where that is the same (the sort is stable).
    is_first = np.ones(len(order), np.bool_)
    for values in _identities(entries, codes, order):
        is_first[1:] &= values[1:] == values[:-1]
    is_first[1:] = ~is_first[1:]
    adds = is_add[order]
    after_add = np.zeros(len(order), np.bool_)
    after_add[1:] = adds[:-1] & ~is_first[1:]
    is_tombstone = ~adds & ~after_add
    after_tombstone = np.zeros(len(order), np.bool_)
    after_tombstone[1:] = is_tombstone[:-1] & ~is_first[1:]
    contradicts = adds & (after_add | after_tombstone if whole else after_add)
    if contradicts.any():
        names_again = np.isin(codes, codes[order[contradicts]])
        live_entries([repeated(np.flatnonzero(names_again))], whole=whole)
    is_last = np.ones(len(order), np.bool_)
    is_last[:-1] = is_first[1:]
    is_live = is_add.copy()
    is_live[again] = False
    is_live[order[adds & is_last]] = True
    return np.flatnonzero(is_live)


def absent_places(entries: EntryColumns, others: EntryColumns) -> Places:
    """The places of the entries whose files are not among those of ``others``. Both have at least :data:`IDENTITY_COLUMNS`."""
    both = EntryColumns.concat([part.select(IDENTITY_COLUMNS) for part in (entries, others)])
    names = both.column("file_name").dictionary_encode().indices.to_numpy()
    codes = np.zeros(len(both), np.int64)
    for values in _identities(both, names, np.arange(len(both))):
        # From 0, as buckets can be negative; and dense after each part, so that it cannot overflow.
        values = values - values.min(initial=0)
        codes = np.unique(codes * (int(values.max(initial=0)) + 1) + values, return_inverse=True)[1]
    return np.flatnonzero(~np.isin(codes[: len(entries)], codes[len(entries) :]))


def _identities(entries: EntryColumns, names: npt.NDArray[np.int32], places: Places) -> list[npt.NDArray[np.int64]]:
    """The parts of the identities at ``places`` as numbers: the same numbers for the same values."""
    here = entries.take(places)
    return [
        _codes(here.column("external_path")),
        _codes(here.column("embedded_index")),
        _codes(pc.fill_null(pc.binary_join(here.column("extra_files"), _SEPARATOR), "")),
        here.numbers("level"),
        here.numbers("bucket"),
        _codes(here.column("partition").cast(pa.binary())),
        names[places].astype(np.int64),
    ]


def _codes(values: pa.Array) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = values.dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64)
    return numbers
