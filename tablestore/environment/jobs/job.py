"""Runs one job: its work, its status, and how it is waited for and canceled.

    CREATED -> RUNNING -> FINISHED | FAILED | CANCELED

It runs once, in the thread that calls :meth:`Job.run` or in one of its own. Its end is decided once: a job that was asked to cancel
and ends with an error is CANCELED; one that ended well before it saw the request is FINISHED, and its rows have landed.
"""

import logging
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from enum import Enum
from threading import Event, Lock, Thread, get_ident
from typing import Generic, TypeVar

from tablestore.environment.jobs.hooks import JobStatusHook
from tablestore.errors import CommitOutcomeUnknown, TablestoreError, UnsupportedError

LOG = logging.getLogger(__name__)
T = TypeVar("T")
CANCELLED = "cancelled"


class JobStatus(Enum):
    """The status of a job."""

    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


class Job(Generic[T]):
    """A job: work that is under way. ``interrupt`` ends what the work runs in the thread of this number."""

    def __init__(
        self,
        job_id: str,
        work: Callable[["Job[T]"], T],
        *,
        hooks: Iterable[JobStatusHook] = (),
        interrupt: Callable[[int], None] = lambda thread: None,
    ) -> None:
        self._id, self._work, self._hooks, self._interrupt = job_id, work, tuple(hooks), interrupt
        self._status = JobStatus.CREATED
        self._future: Future[T] = Future()
        self._lock = Lock()
        self._cancel = Event()
        self._thread: int | None = None
        self._told: list[JobStatusHook] = []

    @property
    def id(self) -> str:
        """Its id, unique."""
        return self._id

    @property
    def status(self) -> JobStatus:
        """The status that it has now."""
        return self._status

    @property
    def error(self) -> BaseException | None:
        """The error that it ended with; None while it runs, and of one that ended well."""
        return self._future.exception() if self._future.done() else None

    def done(self) -> bool:
        """True once it has ended, and its hooks were called."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> T:
        """Waits for the end, and returns what it gives. Raises the error that it ended with, TimeoutError after ``timeout``
        seconds."""
        try:
            return self._future.result(timeout)
        except TimeoutError:
            if self._future.done():
                raise
            raise TimeoutError(f"job {self._id} has not ended after {timeout} s; it goes on, and cancel() ends it") from None

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for the end, whatever it is; true if it has come."""
        try:
            self._future.exception(timeout)
        except TimeoutError:
            return False
        return True

    def cancel(self) -> bool:
        """Asks it to end without landing; False if it has ended. It may still finish: :attr:`status` says which it was."""
        with self._lock:
            if self._status not in (JobStatus.CREATED, JobStatus.RUNNING):
                return False
            self._cancel.set()
            if self._thread is not None:
                self._interrupt(self._thread)
        return True

    def check(self) -> None:
        """Raises UnsupportedError of kind ``cancelled`` if it was asked to cancel: the work calls this between its steps."""
        if self._cancel.is_set():
            raise self._cancellation()

    def pause(self, seconds: float) -> None:
        """Waits between two steps of the work. Raises as :meth:`check`, at once when it is asked to cancel."""
        self._cancel.wait(seconds)
        self.check()

    def start(self) -> "Job[T]":
        """Runs it in a thread of its own, and returns the job."""
        # A daemon: what no engine can end does not keep the program alive.
        Thread(target=self._run_quietly, name=f"tablestore-job-{self._id}", daemon=True).start()
        return self

    def run(self) -> T:
        """Runs it here, to its end. Raises what it ends with."""
        with self._lock:
            self._thread = get_ident()
        try:
            self.check()
            self._tell_created()
            self._status = JobStatus.RUNNING
            self.check()
            found = self._work(self)
        except BaseException as error:
            ended = self._failed(error)
            self._future.set_exception(ended)
            if ended is error:
                raise
            raise ended from error
        self._set(JobStatus.FINISHED)
        for problem in self._tell(lambda hook: hook.on_finished(self._id)):
            LOG.error("job %s has finished, and a hook of it failed", self._id, exc_info=problem)
        self._future.set_result(found)
        return found

    def __await__(self) -> Generator[object, None, T]:
        import asyncio

        # A task that stops waiting does not end the job.
        return asyncio.shield(asyncio.wrap_future(self._future)).__await__()

    def __repr__(self) -> str:
        return f"Job({self._id!r}, {self._status.value})"

    def _run_quietly(self) -> None:
        try:
            self.run()
        except BaseException:
            LOG.debug("job %s has ended with an error, which result() raises", self._id, exc_info=True)

    def _tell_created(self) -> None:
        for hook in self._hooks:
            self._told.append(hook)
            hook.on_created(self._id)

    def _failed(self, error: BaseException) -> BaseException:
        """Settles how a job ended that has an error, tells its hooks, and returns the error that it ends with."""
        canceled = self._cancel.is_set() or not isinstance(error, Exception) or getattr(error, "kind", None) == CANCELLED
        self._set(JobStatus.CANCELED if canceled else JobStatus.FAILED)
        ended = error
        # An error that leaves it open whether a commit landed tells more than the cancellation.
        if self._cancel.is_set() and getattr(error, "kind", None) != CANCELLED and not isinstance(error, CommitOutcomeUnknown):
            ended = self._cancellation()
        if canceled:
            problems = self._tell(lambda hook: hook.on_canceled(self._id))
        else:
            problems = self._tell(lambda hook: hook.on_failed(self._id, error))
        for problem in problems:
            _say_too(ended, f"a hook of the job failed as well: {problem}")
        return ended

    def _tell(self, call: Callable[[JobStatusHook], None]) -> list[Exception]:
        problems: list[Exception] = []
        for hook in self._told:
            try:
                call(hook)
            except Exception as error:
                problems.append(error)
        return problems

    def _set(self, status: JobStatus) -> None:
        with self._lock:
            self._status, self._thread = status, None

    def _cancellation(self) -> UnsupportedError:
        return UnsupportedError(f"job {self._id} was canceled", kind=CANCELLED)


def _say_too(error: BaseException, text: str) -> None:
    if isinstance(error, TablestoreError):
        error.message = f"{error.message}\n{text}"
        error.args = (error.message,)
    else:
        error.add_note(text)
