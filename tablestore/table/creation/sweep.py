"""Sweeps table creations that died: removes their staged tables, their logs, their copies and their records.

    each record that was not renewed for long:
      say so in its directory          the job finds out with its next step
      staged      take the table away from the job ── the table has its name already?  yes: only the record goes
                  no: what was copied to its name, its log, its files ── record last
      visible     drop it, if the job made it and it has no rows of the job ── record last

Every step may be repeated: a sweeper that dies leaves a record that says how far the job was, and the next one goes on. A directory
without a record is the rest of a removal, or of a job that woke up after it: it goes once all of its files are old. So do files
beside the directories, by which a sweeper has read the store's clock.

What is not understood is reported and left: a damaged record, one of another job, or one that is renewed in the future. Outside of
the job's own directory only that is changed which carries the mark of the job (:mod:`tablestore.catalog.creations`).
"""

import logging
from dataclasses import dataclass
from datetime import timedelta

from tablestore.catalog.creations import CreationRecord
from tablestore.errors import AlreadyExistsError, FormatError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.format.paths import CREATIONS_DIR
from tablestore.htmltext import PrintedInNotebooks
from tablestore.io.filestore import FileStore, RenamesDirectories
from tablestore.store.history.storeclock import check_clock
from tablestore.store.history.unfinishedbranches import walk
from tablestore.table.creation.creationtools import CreationTools
from tablestore.table.creation.replacement import sweep_replacement
from tablestore.table.creation.stagedtable import remove_log
from tablestore.table.creation.visiblecreation import drop_made, is_whole

LOG = logging.getLogger(__name__)

DEAD_AFTER = timedelta(hours=1)
_MOST_AHEAD = timedelta(days=1)
_WORDS = {"create": "visible", "stage": "staged", "replace": "replacement of"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptCreation:
    """A creation that died. ``outcome``: ``removed`` (nothing is left of it), ``finished`` (its table is whole and stays), ``left``
    (a table of this identity stays, because the record of an earlier release does not show that the job made it), ``failed``
    (``error`` says why it was left for the next time). ``table`` is None for the rest of a removal."""

    job_id: str
    table: str | None
    kind: str
    outcome: str
    error: str | None = None

    def __str__(self) -> str:
        subject = "files" if self.table is None else f"{_WORDS[self.kind]} table {self.table}"
        return f"{subject} of job {self.job_id}: {self.outcome}{f' ({self.error})' if self.error else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport(PrintedInNotebooks):
    """The creations that were swept, or with ``dry_run`` would be. Print it."""

    dry_run: bool
    creations: tuple[SweptCreation, ...] = ()

    def __str__(self) -> str:
        verb = "would sweep" if self.dry_run else "swept"
        return "\n  ".join([f"{verb} {len(self.creations)} creation(s) that died", *map(str, self.creations)])


def sweep(tools: CreationTools, older_than: timedelta, *, dry_run: bool) -> SweepReport:
    """Remove the creations that were not renewed for ``older_than``. One that cannot be removed does not keep the others."""
    creations, files = tools.creations, tools.meta.files
    job_ids = creations.job_ids()
    dead_since = tools.clock.now_ms() - older_than // timedelta(milliseconds=1)
    if job_ids and not dry_run:
        # Others' clocks wrote the records.
        check_clock(files, tools.clock, tools.ids, directory=CREATIONS_DIR)
    if not dry_run:
        # A probe that a living sweeper loses, it writes anew.
        creations.delete_probes(dead_since)
    swept = (_sweep_job(tools, job_id, dead_since, dry_run=dry_run) for job_id in job_ids)
    return SweepReport(dry_run=dry_run, creations=tuple(creation for creation in swept if creation is not None))


def _sweep_job(tools: CreationTools, job_id: str, dead_since: int, *, dry_run: bool) -> SweptCreation | None:
    """Sweeps one job and reports what was done; None if it may be alive."""
    creations, table, kind = tools.creations, None, "rest"
    try:
        record = creations.find(job_id)
        if record is None:
            files = tools.meta.files
            if any(info.modified_ms > dead_since for _, info in walk(files, f"{CREATIONS_DIR}/{job_id}")):
                return None
            # One that begins has its directory, and nothing in it yet.
            if any(info.name == job_id and info.modified_ms > dead_since for info in files.list(CREATIONS_DIR)):
                return None
            outcome = "removed"
            if not dry_run:
                creations.end(job_id)
        else:
            table, kind = record.table, record.kind
            renewed = creations.renewed_millis(record)
            _check_past(record, renewed, tools.clock.now_ms())
            if renewed > dead_since and not creations.is_sweeping(record):
                return None
            outcome = _outcome(tools, record) if dry_run else _sweep_record(tools, record)
    except TablestoreError as error:
        LOG.warning("the creation of job %s is left for the next time: %s", job_id, error)
        return SweptCreation(job_id=job_id, table=table, kind=kind, outcome="failed", error=str(error))
    return SweptCreation(job_id=job_id, table=table, kind=kind, outcome=outcome)


def _check_past(record: CreationRecord, renewed_millis: int, now_millis: int) -> None:
    """Raise FormatError for a record that would count as alive for ever."""
    if renewed_millis > now_millis + _MOST_AHEAD // timedelta(milliseconds=1):
        raise FormatError(
            f"the record of job {record.job_id!r} says that it was begun or renewed at {renewed_millis} (milliseconds since 1970), "
            "which is in the future: that was made up, or a clock was wrong, and nothing is done about it; remove its directory if "
            "no job is at work there"
        )


def _outcome(tools: CreationTools, record: CreationRecord) -> str:
    if record.replaced_schema_id is not None:
        return sweep_replacement(tools, record, record.staged_directory, dry_run=True)
    if tools.uuid_of(record.identifier) != record.table_uuid:
        return "removed"
    if record.kind != "create" or is_whole(tools, record):
        return "finished"
    return "removed" if record.marks_its_table else "left"


def _sweep_record(tools: CreationTools, record: CreationRecord) -> str:
    tools.creations.begin_sweeping(record)
    if record.kind == "create":
        outcome = _outcome(tools, record)
        if outcome == "removed":
            drop_made(tools, record)
    else:
        directory = _taken_away(tools.meta.files, record)
        # Only now: whoever has not published it by now cannot do it any more.
        if record.replaced_schema_id is not None:
            outcome = sweep_replacement(tools, record, directory)
        else:
            outcome = _outcome(tools, record)
            tools.meta.abandon_arrival(record.identifier, record.staged_directory)
            if outcome == "removed":
                remove_log(tools, record, directory)
    tools.creations.end(record.job_id)
    return outcome


def _taken_away(files: FileStore, record: CreationRecord) -> str:
    """Takes the staged table away, so that its job cannot rename it, and returns its place; where the store cannot rename,
    neither can the job."""
    if not isinstance(files, RenamesDirectories):
        return record.staged_directory
    try:
        files.rename_directory(record.staged_directory, record.swept_directory)
    except NotFoundError:
        pass  # published, or taken away before
    except AlreadyExistsError:
        # Taken away before, and its job has written to it since.
        files.delete_directory(record.staged_directory)
    except UnsupportedError:
        return record.staged_directory
    return record.swept_directory
