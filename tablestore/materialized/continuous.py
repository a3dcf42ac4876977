"""Runs the job of a continuous table: it refreshes at the interval of the freshness, until it is to stop.

    waits until the table is whole and names it -> waits for the next time -> still my table? -> refresh -> waits -> …

The statement that makes it fills the table itself, before the table names the job. The job stops when it is canceled, when the
table is suspended, altered or dropped, or when another job has taken over: the definition names the one that counts. A refresh
that fails is logged and kept with the table, and the next round tries again. Where the job stands is in the table: one that dies
leaves nothing but a table that is due.

Other processes of the host know that a job runs by its process and by a lock that it holds: the process may go on when its
environment is closed and the job is over. Nothing relies on it: two that refresh one table at a time are kept apart by its commits.
"""

import hashlib
import json
import logging
import os
import platform
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from filelock import FileLock

from tablestore.environment.jobs import Job
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.result import Result, done
from tablestore.environment.session.session import Session
from tablestore.errors import ConflictError, NotFoundError, TablestoreError
from tablestore.log.publish.slotlocks import try_lock, user_lock_folder
from tablestore.materialized.materializedtable import RefreshHandler, RefreshStatus
from tablestore.materialized.refreshing import CONFLICTS, refresh_now
from tablestore.materialized.storing import StoredTable, open_materialized

LOG = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class ContinuousRefresh:
    """The work of the job of one table. ``options`` hold for what it writes, and are kept nowhere."""

    session: Session
    path: ObjectPath
    options: Mapping[str, str] = field(default_factory=dict)
    _begun: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> None:
        """Goes on: whether the table names the job is settled."""
        self._begun.set()

    def run(self, job: Job[Result]) -> Result:
        """Refreshes until the end. Raises UnsupportedError when it is canceled."""
        lock = _lock_of(job.id)
        try_lock(lock)
        try:
            self._begun.wait()
            job.check()
            stored = self._mine(job.id)
            while stored is not None:
                job.pause(stored.definition.freshness.millis / 1000)
                stored = self._refreshed(job)
        finally:
            lock.release()
        return done()

    def _refreshed(self, job: Job[Result]) -> StoredTable | None:
        """Refreshes the table as it is now; None if another one refreshes it, or nobody."""
        while (stored := self._mine(job.id)) is not None:
            try:
                refresh_now(self.session, stored, options=self.options)
            except TablestoreError as error:
                # A job that was canceled in the middle of a query has failed in it.
                job.check()
                if isinstance(error, ConflictError) and error.kind in CONFLICTS:
                    # Another refresh or definition was faster: what is to be done now is read anew.
                    continue
                LOG.warning("materialized table %s could not be refreshed, it is tried again: %s", self.path, error)
            return stored
        return None

    def _mine(self, job_id: str) -> StoredTable | None:
        """The table, if this job is the one that refreshes it."""
        try:
            stored = open_materialized(self.session, self.path)
        except NotFoundError:
            return None
        active = stored.upkeep.status is RefreshStatus.ACTIVATED
        return stored if active and job_of(stored.upkeep.handler) == job_id else None


def handler_of(job_id: str) -> RefreshHandler:
    """The handler that leads to a job of this process."""
    host, process = platform.node(), os.getpid()
    data = {"jobId": job_id, "host": host, "process": process}
    return RefreshHandler(summary=f"job {job_id} of process {process} on {host}", data=json.dumps(data).encode())


def job_of(handler: RefreshHandler | None) -> str | None:
    """The job that a handler leads to; None if it leads to none."""
    job_id = _content(handler).get("jobId")
    return job_id if isinstance(job_id, str) else None


def is_alive(session: Session, handler: RefreshHandler | None) -> bool:
    """True if the job of a handler runs. One on another host is believed to."""
    content = _content(handler)
    if local_job(session, handler) is not None:
        return True
    process = content.get("process")
    if not isinstance(process, int) or isinstance(process, bool) or process <= 0:
        return False
    if content.get("host") != platform.node():
        return True
    return process != os.getpid() and _runs(process) and not _is_over(content.get("jobId"))


def local_job(session: Session, handler: RefreshHandler | None) -> Job[Result] | None:
    """The job of a handler, if this session runs it."""
    job_id = job_of(handler)
    return next((job for job in session.jobs.under_way() if job.id == job_id), None)


def stop_local(session: Session, handler: RefreshHandler | None) -> None:
    """Ends the job of a handler, if this session runs it; one elsewhere ends by itself when it looks at the table."""
    if (job := local_job(session, handler)) is not None:
        job.cancel()
        job.wait()


def _lock_of(job_id: str) -> FileLock:
    """The lock that a job holds while it runs, in the user's folder of locks."""
    digest = hashlib.sha256(job_id.encode()).hexdigest()[:32]
    return FileLock(str(user_lock_folder() / f"job-{digest}"))


def _is_over(job_id: object) -> bool:
    """True if a job of another process has held its lock and holds it no longer."""
    if not isinstance(job_id, str):
        return False
    lock = _lock_of(job_id)
    # Without a file it has not begun yet, or is a job of another user.
    if not os.path.exists(lock.lock_file) or not try_lock(lock):
        return False
    lock.release()
    return True


def _content(handler: RefreshHandler | None) -> dict[str, object]:
    if handler is None:
        return {}
    try:
        content = json.loads(handler.data)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
