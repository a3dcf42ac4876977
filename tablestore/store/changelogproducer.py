"""Changelog producers: the rules by which commits write a changelog, and of what.

    changelog-producer    written by              holds                                   in the snapshot of the
    none                  no commit
    input                 every flush             the rows as they were given             write
    lookup                every compaction        the frame before against after          compaction
    full-compaction       every full compaction   the same                                compaction

The *frame* is the state that a reader of the changelog has: the files whose changes are in it. It is every file for ``none`` and
``input``, levels above 0 for ``lookup``, and the top level for ``full-compaction``. A compaction that moves files into the frame
writes the difference that they make, also where it does not rewrite them (an upgrade). So the changes up to a snapshot, folded,
give the frame of that snapshot, with any merge engine.

Pure. Elsewhere: writing the changelog (changelogfiles), finding differences (statediff), reading changes (changefeed).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tablestore import options as opt
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.options import TableOptions
from tablestore.types.schema import TableSchema

NONE, INPUT, LOOKUP, FULL_COMPACTION = "none", "input", "lookup", "full-compaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogSettings:
    """The changelog options of a table. ``top_level``: of its merge tree."""

    producer: str
    deduplicate: bool
    ignored: tuple[str, ...]
    top_level: int

    @property
    def on_compaction(self) -> bool:
        """True if compactions write the changelog."""
        return self.producer in (LOOKUP, FULL_COMPACTION)

    def in_frame(self, level: int) -> bool:
        """True if the changelog has the changes of files of this level."""
        if self.producer == LOOKUP:
            return level > 0
        return self.producer != FULL_COMPACTION or level == self.top_level


def changelog_settings(options: Mapping[str, str]) -> ChangelogSettings:
    """The settings in a schema's options. Raises InvalidInputError for values that do not parse."""
    typed = TableOptions(options)
    levels = typed.value(opt.NUM_LEVELS)
    ignored = typed.value(opt.CHANGELOG_ROW_DEDUPLICATE_IGNORE)
    return ChangelogSettings(
        producer=typed.text(opt.CHANGELOG_PRODUCER).lower(),
        deduplicate=typed.flag(opt.CHANGELOG_ROW_DEDUPLICATE),
        ignored=ignored if isinstance(ignored, tuple) else (),
        top_level=(levels if isinstance(levels, int) else typed.integer(opt.COMPACTION_TRIGGER) + 1) - 1,
    )


def check_producer(schema: TableSchema, table: str) -> None:
    """Refuse a changelog producer that the table cannot have. Raises InvalidInputError that says what to choose."""
    settings = changelog_settings(schema.options)
    if settings.producer == NONE:
        return
    if not schema.is_keyed:
        raise InvalidInputError(
            f"table {table} has changelog-producer = {settings.producer} and no primary key: the changes of an append table are "
            "its rows; leave the option out",
            kind="changelog-producer",
        )
    engine = TableOptions(schema.options).text(opt.MERGE_ENGINE).lower()
    if engine == "first-row" and settings.producer != LOOKUP:
        raise InvalidInputError(
            f"table {table} has merge-engine = first-row with changelog-producer = {settings.producer}: most of what is written "
            "to it changes nothing, and only changelog-producer = lookup finds the rest; choose lookup or none",
            kind="changelog-producer",
        )
    unknown = [name for name in settings.ignored if name not in schema.field_names]
    if unknown:
        raise InvalidInputError(
            f"table {table}: {opt.CHANGELOG_ROW_DEDUPLICATE_IGNORE.key} names {', '.join(unknown)}, which the table does not have; "
            f"its columns are {', '.join(schema.field_names)}",
            kind="changelog-producer",
        )


def check_frame_change(
    old_options: Mapping[str, str], new_options: Mapping[str, str], live: Iterable[ManifestEntry], *, table: str
) -> None:
    """Refuse changes of options that the files outside of the frame depend on: their changes would be lost, or seen twice.

    ``live``: the table's live files. Raises UnsupportedError that says what to do first.
    """
    old, new = changelog_settings(old_options), changelog_settings(new_options)
    merges = not _merge_alike(old_options, new_options)
    producers = (old.producer, old.top_level) != (new.producer, new.top_level)
    if not merges and not producers:
        return
    files = list(live)
    if merges:
        # Another engine folds the versions of a key differently: there must be one version only, and no stored delete.
        outside = _several_runs_or_deletes(files)
    else:
        outside = [entry for entry in files if not (old.in_frame(entry.file.level) and new.in_frame(entry.file.level))]
    if not outside:
        return
    option_text = "merge-engine, sequence.field or how a column combines (fields.…)" if merges else "changelog-producer"
    raise UnsupportedError(
        f"table {table}: {option_text} cannot change while {len(outside)} of its {len(files)} files wait for a full compaction, "
        f"because their changes would be lost or seen twice; {_way_out(old_options)} while no writer is at work, then change it",
        kind="outside-frame",
    )


def _way_out(options: Mapping[str, str]) -> str:
    compact = "run table.compact(full=True)"
    if TableOptions(options).value(opt.TOMBSTONE_RETENTION) is None:
        return compact
    return f"remove {opt.TOMBSTONE_RETENTION.key}, by which deletes are kept, and {compact}"


# Options that decide which version of a key counts.
_MERGING = (opt.SEQUENCE_FIELD.key, opt.SEQUENCE_FIELD_SORT_ORDER.key, opt.IGNORE_DELETE.key)


def _merge_alike(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """True if versions of a key combine as before. A function that is named for the first time is that of a new column."""
    if TableOptions(old).text(opt.MERGE_ENGINE).lower() != TableOptions(new).text(opt.MERGE_ENGINE).lower():
        return False
    if any(old.get(key) != new.get(key) for key in _MERGING):
        return False
    return all(new.get(key) == value for key, value in old.items() if opt.combines_rows(key))


def _several_runs_or_deletes(files: Sequence[ManifestEntry]) -> list[ManifestEntry]:
    """The files of buckets that hold more than one sorted run, and those with deletes (see ``tombstones``)."""
    levels: dict[tuple[bytes, int], set[int]] = {}
    for entry in files:
        levels.setdefault((entry.partition, entry.bucket), set()).add(entry.file.level)
    return [
        entry
        for entry in files
        if levels[entry.partition, entry.bucket] != {entry.file.level} or entry.file.level == 0 or entry.file.delete_row_count != 0
    ]
