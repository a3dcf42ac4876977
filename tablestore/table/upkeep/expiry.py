"""Expires snapshots after a commit and on demand: the arguments of the table's methods in the engine's terms.

After every commit (unless ``write-only``) a writer expires what the options allow, at most ``snapshot.expire.limit`` snapshots
(:mod:`~tablestore.table.upkeep.aftercommit`). The next run finishes what a run leaves.
"""

from dataclasses import replace
from datetime import date, timedelta

from tablestore import options as opt
from tablestore.errors import StorageError, UnsupportedError
from tablestore.format.snapshot import Snapshot
from tablestore.options import TableOptions, parse_duration
from tablestore.store.context import TableContext
from tablestore.store.history.autotags import expire_tags
from tablestore.store.history.expire import ExpireReport, expire_due, expire_snapshots, finish_expiries
from tablestore.store.history.expirechangelogs import expire_changelogs
from tablestore.store.history.orphans import CleanReport, remove_orphan_files
from tablestore.store.history.retention import Retention, changelog_retention, snapshot_retention
from tablestore.store.history.storeclock import check_clock
from tablestore.table.upkeep.ages import Age, millis_of
from tablestore.timepoint import datetime_of, epoch_millis


def expire_after_commit(context: TableContext, landed: Snapshot | None, *, tagged: bool) -> None:
    """Expire due snapshots after a commit of a writer (None: of a compaction); ``tagged``: it made a tag, so that older ones
    may go."""
    retention, changes = context.once(_retention)
    if landed is not None:
        report = expire_due(context, retention, landed, decoupled=changes is not None)
    else:
        report = expire_snapshots(context, retention, decoupled=changes is not None)
    if report.snapshots and changes is not None:
        expire_changelogs(context, changes)
    if report.snapshots or tagged:
        expire_tags(context)


def expire(
    context: TableContext,
    *,
    retain_max: int | None = None,
    retain_min: int | None = None,
    older_than: Age = None,
    limit: int | None = None,
    dry_run: bool = False,
) -> ExpireReport:
    """Expire snapshots, kept changelogs and tags; arguments that are left out come from the table's options."""
    # Another table has options of its own about what it retains.
    context.still_there()
    retention, changes = context.once(_retention)
    retention = replace(
        retention,
        num_max=retention.num_max if retain_max is None else retain_max,
        num_min=retention.num_min if retain_min is None else retain_min,
        age_millis=retention.age_millis if older_than is None else _age_millis(older_than, context),
        limit=retention.limit if limit is None else limit,
    ).checked(context.files.root_uri)
    report = ExpireReport(dry_run=dry_run, tags=expire_tags(context, dry_run=dry_run))
    report = report.plus(expire_snapshots(context, retention, decoupled=changes is not None, dry_run=dry_run))
    return report.plus(expire_changelogs(context, changes, dry_run=dry_run))


def finish_begun(context: TableContext) -> ExpireReport:
    """Finish expiries that a crash interrupted, and begin none."""
    return finish_expiries(context, decoupled=context.once(_retention)[1] is not None)


def clean(context: TableContext, *, older_than: Age = None, dry_run: bool = True) -> CleanReport:
    """Remove orphan files; None: those older than ``tablestore.orphan-age``.

    Ages are counted by the store's clock. Raises StorageError (kind ``clock-skew``) where the host's is ahead of it.
    """
    try:
        now_ms = check_clock(context.files, context.clock, context.ids)
    except (StorageError, UnsupportedError) as error:
        if not dry_run or error.kind in ("clock-skew", "no-file-times"):
            raise
        # A dry run works without the right to write.
        now_ms = context.clock.now_ms()
    age = round(context.settings.orphan_age_s * 1000) if older_than is None else _age_millis(older_than, context)
    return remove_orphan_files(context, older_than_millis=now_ms - age, dry_run=dry_run)


def is_write_only(context: TableContext) -> bool:
    """True if writers of the table neither compact, tag nor expire. For ``context.once``."""
    return TableOptions(context.schema.options).flag(opt.WRITE_ONLY)


def _retention(context: TableContext) -> tuple[Retention, Retention | None]:
    """The retention options of snapshots, and of the changes of expired ones (None: changes go with their snapshots)."""
    return snapshot_retention(context.schema.options), changelog_retention(context.schema.options)


def _age_millis(older_than: Age, context: TableContext) -> int:
    if isinstance(older_than, str):
        older_than = datetime_of(older_than) or timedelta(milliseconds=parse_duration(older_than))
    if isinstance(older_than, date):
        return max(context.clock.now_ms() - epoch_millis(older_than, "older_than"), 0)
    age = millis_of(older_than, "older_than")
    assert age is not None, "an age was given"
    return age
