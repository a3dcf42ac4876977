"""What goes by itself, and what goes when it is asked for: the arguments of the table's methods in the engine's terms.

After every commit (unless ``write-only``) a writer tags the period that has ended, where that is asked for, and expires what the
options let go, at most ``snapshot.expire.limit`` snapshots. That comes after the commit has landed: a failure there is not the
commit's, and what it leaves the next run finishes.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from tablestore import options as opt
from tablestore.errors import InvalidInputError, TablestoreError
from tablestore.format.snapshot import Snapshot
from tablestore.options import TableOptions
from tablestore.store.autotags import expire_tags, tag_automatically
from tablestore.store.context import TableContext
from tablestore.store.expire import ExpireReport, expire_snapshots
from tablestore.store.expirechangelogs import expire_changelogs
from tablestore.store.orphans import CleanReport, remove_orphan_files
from tablestore.store.retention import Retention, changelog_retention, snapshot_retention

LOG = logging.getLogger(__name__)

Age: TypeAlias = "timedelta | datetime | int | None"


def after_commit(context: TableContext, committed: Snapshot) -> None:
    """Tag and expire what is due, unless the table is ``write-only``. Never raises for what the store or a file does."""
    if not context.once(_is_write_only):
        _keep_house(context, committed)


def after_compaction(context: TableContext, committed: Sequence[int]) -> None:
    """As :meth:`after_commit`, for a compaction that was asked for: in a ``write-only`` table nobody else does it."""
    snapshot = context.snapshots.find(committed[-1]) if committed else None
    if snapshot is not None:
        _keep_house(context, snapshot)


def _keep_house(context: TableContext, committed: Snapshot) -> None:
    try:
        tagged = tag_automatically(context, committed)
        retention, changes = context.once(_retention)
        if len(context.snapshots.listed_ids()) <= retention.num_min:
            return
        report = expire_snapshots(context, retention, decoupled=changes is not None)
        if report.snapshots and changes is not None:
            expire_changelogs(context, changes)
        if report.snapshots or tagged:
            expire_tags(context)
    except TablestoreError as error:
        # The commit has landed; what is left undone the next run does.
        LOG.warning("table %s: the expiry after a commit was given up: %s", context.files.root_uri, error)


def expire(
    context: TableContext,
    *,
    retain_max: int | None = None,
    retain_min: int | None = None,
    older_than: Age = None,
    limit: int | None = None,
    dry_run: bool = False,
) -> ExpireReport:
    """Expire snapshots, kept changelogs and tags; what is not given comes from the table's options."""
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


def clean(context: TableContext, *, older_than: Age = None, dry_run: bool = True) -> CleanReport:
    """Remove orphan files; None: those older than ``tablestore.orphan-age``."""
    now = context.clock.now_ms()
    age = round(context.settings.orphan_age_s * 1000) if older_than is None else _age_millis(older_than, context)
    return remove_orphan_files(context, older_than_millis=now - age, dry_run=dry_run)


def millis_of(duration: timedelta | int | None, what: str) -> int | None:
    """A duration in milliseconds."""
    if duration is None:
        return None
    if isinstance(duration, timedelta):
        duration = round(duration.total_seconds() * 1000)
    if isinstance(duration, bool) or not isinstance(duration, int) or duration < 0:
        raise InvalidInputError(f"expected {what} as a timedelta or in milliseconds from 0, found {duration!r:.80}")
    return duration


def _is_write_only(context: TableContext) -> bool:
    return TableOptions(context.schema.options).flag(opt.WRITE_ONLY)


def _retention(context: TableContext) -> tuple[Retention, Retention | None]:
    """What the options say about snapshots, and about the changes of expired ones (None: changes go with their snapshots)."""
    return snapshot_retention(context.schema.options), changelog_retention(context.schema.options)


def _age_millis(older_than: Age, context: TableContext) -> int:
    if isinstance(older_than, datetime):
        # A moment; a naive one is local time.
        return max(context.clock.now_ms() - round(older_than.astimezone(UTC).timestamp() * 1000), 0)
    age = millis_of(older_than, "older_than")
    assert age is not None, "an age was given"
    return age
