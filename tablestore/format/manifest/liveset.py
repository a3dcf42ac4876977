"""Folds manifest entries into the set of live data files and the tombstones that are left.

ADD x … DELETE x   cancel
DELETE x alone     its ADD is in a manifest that was not given (or nowhere): a tombstone
ADD x … ADD x      refused: an identity is added once, and again when it has been deleted (by a rollback)
DELETE x … ADD x   refused too, but where entries have been left out: the ADD before them may be one
"""

from collections.abc import Iterable

from tablestore.errors import FormatError
from tablestore.format.manifest.manifestfile import EntryKind, FileIdentity, ManifestEntry

Entries = dict[FileIdentity, ManifestEntry]
Fold = tuple[Entries, Entries]
"""Live ADDs, and DELETEs without an ADD."""


def live_entries(groups: Iterable[Iterable[ManifestEntry]], *, whole: bool = True) -> dict[FileIdentity, ManifestEntry]:
    """The ADDs that no later DELETE removes, by identity, in the order they were added; ``groups``: the entries of each manifest,
    base list before delta list, in stored order. ``whole``: no ADD was left out. Raises FormatError if an identity is added
    twice."""
    return fold_entries(groups, whole=whole)[0]


def fold_entries(groups: Iterable[Iterable[ManifestEntry]], *, whole: bool = True, onto: Fold | None = None) -> Fold:
    """Folds entries into (live ADDs, DELETEs without an ADD): together the entries of a merged manifest of these, DELETEs
    first. ``onto``: the same of the manifests before them; it stays as it is."""
    live, tombstones = ({}, {}) if onto is None else map(dict, onto)
    for entries in groups:
        for entry in entries:
            identity = entry.identity
            if entry.kind is EntryKind.DELETE:
                if live.pop(identity, None) is None:
                    tombstones[identity] = entry
            elif identity in live or (whole and identity in tombstones):
                fault = "deleted before" if identity in tombstones else "added twice"
                raise FormatError(
                    f"data file {entry.file.file_name} at level {entry.file.level} of bucket {entry.bucket}: expected "
                    f"one ADD and then at most one DELETE, found it {fault}. The manifests contradict each other; read "
                    "an earlier snapshot, and report the writer.",
                    kind="double-add",
                )
            else:
                tombstones.pop(identity, None)
                live[identity] = entry
    return live, tombstones
