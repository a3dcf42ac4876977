"""Drops partitions: those that are named, or those that are older than ``partition.expiration-time``.

Data never expires by itself: ``expire_partitions`` is called on demand, and reports with ``dry_run`` what it would drop. The age
of a partition comes from its values (``partition.expiration-strategy`` = values-time), either a DATE or TIMESTAMP column or text
by ``partition.timestamp-pattern`` (``'$day $hour:00:00'``) and ``partition.timestamp-formatter``; or from its newest file
(update-time). A partition whose values give no time is never dropped, nor one with a file that does not say when it was written.

Memory: about 0.9 KB of each live file, what is cached of manifests among it (``python -m benchmarks scale``), and the entries
of the files that go.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from tablestore import options as opt
from tablestore.errors import InvalidInputError
from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.partitiontext import partition_dir
from tablestore.format.snapshot import Snapshot
from tablestore.htmltext import PrintedInNotebooks
from tablestore.log.port import ChangeLog
from tablestore.options import TableOptions
from tablestore.store.context import TableContext
from tablestore.store.filesums import FileSums, summed_files
from tablestore.store.history.storeclock import check_clock
from tablestore.table.chosenpartitions import partition_matcher
from tablestore.table.write.committing import Origin, commit_message, overwriting
from tablestore.types.partitionspec import COLUMN_OF_PATTERN, partition_time

_EPOCH = datetime(1970, 1, 1)

Choose = Callable[[Sequence[FileSums]], set[bytes]]
"""The partitions to drop, serialised, among all that there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReport(PrintedInNotebooks):
    """The partitions that were dropped, or with ``dry_run`` would be. Print it."""

    dry_run: bool
    partitions: tuple[str, ...] = ()
    undated: tuple[str, ...] = ()
    files: int = 0
    rows: int = 0
    bytes: int = 0
    snapshot: Snapshot | None = None

    def __str__(self) -> str:
        """One line, and one for the partitions without a time."""
        verb = "would drop" if self.dry_run else "dropped"
        text = f"{verb} {len(self.partitions)} partition(s) with {self.files} file(s), {self.rows} row(s), {self.bytes:,} bytes"
        if self.partitions:
            text += f": {', '.join(self.partitions)}"
        if self.undated:
            text += f"\nkept, because their values give no time: {', '.join(self.undated)}"
        return text


def drop_partitions(
    context: TableContext, log: ChangeLog, partitions: Iterable[Mapping[str, Any]], *, dry_run: bool = False
) -> PartitionReport:
    """Drop the partitions given by some or all of their values. Raises InvalidInputError."""
    specs = list(partitions) if not isinstance(partitions, Mapping) else partitions
    if not isinstance(specs, Mapping) and any(not spec for spec in specs):
        raise InvalidInputError(
            f"an empty partition of table {context.files.root_uri} would be all of it: name partitions, or "
            "overwrite(rows, partition={}) with no rows",
            kind="unknown-partition-column",
        )
    matches = partition_matcher(context, specs)
    return _drop(context, log, lambda sums: {one.group[0] for one in sums if matches(one.group[0])}, dry_run=dry_run)


def expire_partitions(
    context: TableContext, log: ChangeLog, *, age_millis: int | None = None, dry_run: bool = False
) -> PartitionReport:
    """Drop the partitions older than ``age_millis``, or than the table's ``partition.expiration-time``.

    Raises InvalidInputError, and StorageError (kind ``clock-skew``) where the host's clock is ahead of the store's.
    """
    options = TableOptions(context.schema.options)
    age = age_millis if age_millis is not None else options.value(opt.PARTITION_EXPIRATION_TIME)
    table = context.files.root_uri
    if not isinstance(age, int):
        raise InvalidInputError(
            f"table {table} has no {opt.PARTITION_EXPIRATION_TIME.key}: set it, or pass older_than", kind="no-expiration-time"
        )
    if not context.schema.partition_keys:
        raise InvalidInputError(f"table {table} is not partitioned: delete rows by a condition instead", kind="not-partitioned")
    limit = datetime.fromtimestamp(context.clock.now_ms() / 1000) - timedelta(milliseconds=age)
    if not dry_run:
        check_clock(context.files, context.clock, context.ids)
    by_files = options.text(opt.PARTITION_EXPIRATION_STRATEGY) == "update-time"
    time_of = None if by_files else _value_time(context, options)

    def time_of_group(sums: FileSums) -> datetime | None:
        return time_of(sums.group[0]) if time_of is not None else _update_time(sums)

    undated: list[str] = []

    def expired(sums: Sequence[FileSums]) -> set[bytes]:
        times = {one.group[0]: time_of_group(one) for one in sums}
        # Noted in each round, so that nothing that could fail is read after the commit has landed.
        undated[:] = sorted(_text(context, partition) for partition, time in times.items() if time is None)
        return {partition for partition, time in times.items() if time is not None and time < limit}

    return replace(_drop(context, log, expired, dry_run=dry_run), undated=tuple(undated))


def _drop(context: TableContext, log: ChangeLog, choose: Choose, *, dry_run: bool) -> PartitionReport:
    """Drop the partitions that ``choose`` picks, anew in every round of the commit."""
    # Before anything tells which partitions there are.
    context.check_sees_all("dropping of partitions")
    latest = context.snapshots.latest()
    sums = summed_files(context.manifests, latest, "partition")
    chosen = choose(sums)
    expiring = [one for one in sums if one.group[0] in chosen]
    report = PartitionReport(
        dry_run=dry_run,
        partitions=tuple(sorted({_text(context, one.group[0]) for one in expiring})),
        files=sum(one.files for one in expiring),
        rows=sum(one.rows for one in expiring),
        bytes=sum(one.size_bytes for one in expiring),
    )
    if dry_run or not expiring:
        return report

    def plan_deletes(latest: Snapshot | None) -> Sequence[ManifestEntry]:
        nonlocal chosen
        chosen = choose(summed_files(context.manifests, latest, "partition"))
        going = context.manifests.live_in(latest, lambda place: place[0] in chosen)
        return [replace(entry, kind=EntryKind.DELETE) for entry in going]

    effect = overwriting(plan_deletes=plan_deletes, replaces=lambda partition: partition in chosen, keeps_rows=True)
    landed = commit_message(context, log, context.message(latest), effect, Origin(user=context.ids.uuid()))
    return replace(report, snapshot=landed)


def _update_time(sums: FileSums) -> datetime | None:
    """The time when the newest file of a partition was written, in local time, as files have it."""
    if sums.newest_millis is None or not sums.is_dated:
        return None
    return _EPOCH + timedelta(milliseconds=sums.newest_millis)


def _value_time(context: TableContext, options: TableOptions) -> Callable[[bytes], datetime | None]:
    """The time of a serialised partition, None where its values give none."""
    keys = context.schema.partition_keys
    types = [field.type for field in context.schema.partition_fields]
    pattern, formats = partition_time(options, keys)
    named = keys[:1] if pattern is None else COLUMN_OF_PATTERN.findall(pattern)

    def time_of(partition: bytes) -> datetime | None:
        values = dict(zip(keys, decode_row(partition, types), strict=True))
        value = values.get(keys[0] if pattern is None else pattern.removeprefix("$"))
        if isinstance(value, datetime):
            return value.replace(tzinfo=None)
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day)
        if any(values[name] is None for name in named):
            return None
        text = str(value) if pattern is None else COLUMN_OF_PATTERN.sub(lambda match: str(values[match[1]]), pattern)
        for time_format in formats:
            try:
                return datetime.strptime(text, time_format).replace(tzinfo=None)
            except ValueError:
                continue
        return None

    return time_of


def _text(context: TableContext, partition: bytes) -> str:
    fields = context.schema.partition_fields
    values = decode_row(partition, [field.type for field in fields])
    return partition_dir([field.name for field in fields], [field.type for field in fields], values, legacy=False)
