"""Runs jobs: work that is started once, ends in one of three ways, and tells hooks of it. They know nothing of tables.

    CREATED -> RUNNING -> FINISHED | FAILED | CANCELED

A job runs once, in the thread that calls :meth:`Job.run` or in one of its own. Its end is decided once: a job that was asked to
cancel and ends with an error is CANCELED; one that ended well before it saw the request is FINISHED, and its rows have landed.

:class:`Jobs` keeps those of one environment: they get their ids there, and end before it closes. A job that nobody waited for is
kept when it has failed, so that its error can be asked for.

Hooks are told of the status, in the order in which they were registered:

    on_created -> (the job runs) -> on_finished | on_failed | on_canceled

``on_created`` is called once, before anything runs; what it raises makes the job fail. Then one of the others is called once, for
each hook whose ``on_created`` was called. What these raise does not change how the job ended: the other hooks are still called.
A hook travels with its job, so it has to survive being pickled, which is checked before the job begins.
"""

import logging
import pickle
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, field
from enum import Enum
from threading import Event, Lock, Thread, get_ident
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from tablestore.errors import CommitOutcomeUnknown, InvalidInputError, TablestoreError, UnsupportedError
from tablestore.ids import Ids

LOG = logging.getLogger(__name__)
T = TypeVar("T")
CANCELLED = "cancelled"
MOST_FAILED = 100
"""How many jobs that have failed are kept: the newest."""


class JobStatus(Enum):
    """The status of a job."""

    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


@runtime_checkable
class JobStatusHook(Protocol):
    """A hook that is called when the status of a job changes."""

    def on_created(self, job_id: str) -> None:
        """The job was made; nothing has run."""
        ...

    def on_finished(self, job_id: str) -> None:
        """The job ended well."""
        ...

    def on_failed(self, job_id: str, error: BaseException) -> None:
        """The job ended with an error."""
        ...

    def on_canceled(self, job_id: str) -> None:
        """The job was canceled."""
        ...


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
        # What is traced in it lies below what goes on here.
        Thread(target=copy_context().run, args=(self._run_quietly,), name=f"tablestore-job-{self._id}", daemon=True).start()
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
            result = self._work(self)
        except BaseException as error:
            ended = self._failed(error)
            self._future.set_exception(ended)
            if ended is error:
                raise
            raise ended from error
        self._set(JobStatus.FINISHED)
        for problem in self._tell(lambda hook: hook.on_finished(self._id)):
            LOG.error("job %s has finished, and a hook of it failed", self._id, exc_info=problem)
        self._future.set_result(result)
        return result

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


@dataclass(slots=True)
class Jobs:
    """Makes jobs. ``interrupt`` ends what runs in a thread."""

    ids: Ids
    interrupt: Callable[[int], None] = lambda thread: None
    _started: list[Job[Any]] = field(default_factory=list)
    _endless: list[Job[Any]] = field(default_factory=list)
    # A job may start others.
    _lock: Lock = field(default_factory=Lock)
    _failed: deque[Job[Any]] = field(default_factory=lambda: deque(maxlen=MOST_FAILED))

    def run(self, work: Callable[[Job[T]], T], hooks: Iterable[JobStatusHook] = ()) -> T:
        """Runs a job here, to its end, and returns what it gives. Raises what it ends with."""
        return self.prepare(work, hooks).run()

    def start(self, work: Callable[[Job[T]], T], hooks: Iterable[JobStatusHook] = (), *, ends: bool = True) -> Job[T]:
        """Starts a job in a thread of its own. ``ends``: by itself, or only when it is canceled."""
        return self.launch(self.prepare(work, hooks), ends=ends)

    def prepare(self, work: Callable[[Job[T]], T], hooks: Iterable[JobStatusHook] = ()) -> Job[T]:
        """A job that has its id and does not run yet."""
        hooks = tuple(hooks)
        check_serializable(hooks)
        return Job(self.ids.uuid(), work, hooks=hooks, interrupt=self.interrupt)

    def launch(self, job: Job[T], *, ends: bool = True) -> Job[T]:
        """Starts a job that was prepared, as :meth:`start`."""
        with self._lock:
            self._set_ended_aside()
            (self._started if ends else self._endless).append(job)
        return job.start()

    def under_way(self) -> tuple[Job[Any], ...]:
        """The jobs that were started and have not ended, in the order in which they were started; streams come last."""
        with self._lock:
            return tuple(job for job in (*self._started, *self._endless) if not job.done())

    def failed(self) -> tuple[Job[Any], ...]:
        """The jobs that were started and have failed, oldest first; of many only the newest."""
        with self._lock:
            self._set_ended_aside()
            return tuple(self._failed)

    def wait(self) -> None:
        """Waits until all that was started has ended; what does not end by itself is canceled."""
        self._cancel_endless()
        for job in self.under_way():
            job.wait()
        # Jobs that have just ended may have begun others.
        for job in self._cancel_endless():
            job.wait()

    def _cancel_endless(self) -> tuple[Job[Any], ...]:
        with self._lock:
            endless = tuple(self._endless)
        for job in endless:
            job.cancel()
        return endless

    def _set_ended_aside(self) -> None:
        ended = [one for one in (*self._started, *self._endless) if one.done()]
        self._started = [one for one in self._started if one not in ended]
        self._endless = [one for one in self._endless if one not in ended]
        self._failed.extend(one for one in ended if one.status is JobStatus.FAILED)


def check_hook(hook: Any) -> None:
    """Raises InvalidInputError for what is no hook."""
    if isinstance(hook, type) or not isinstance(hook, JobStatusHook):
        description = f"the class {hook.__qualname__} itself" if isinstance(hook, type) else type(hook).__qualname__
        raise InvalidInputError(
            f"expected a hook: an object with the methods on_created, on_finished, on_failed and on_canceled, found {description}",
            kind="hook",
        )


def check_serializable(hooks: Iterable[JobStatusHook]) -> None:
    """Raises InvalidInputError for a hook that does not come back from its pickled form."""
    for hook in hooks:
        if (why := why_not_serializable(hook)) is not None:
            raise InvalidInputError(
                f"the hook {type(hook).__qualname__} can not be serialized ({why}), so no job takes it: keep what cannot be "
                "pickled out of it, such as open files, locks and lambdas",
                kind="not-serializable",
            )


def why_not_serializable(value: object) -> str | None:
    """The reason why a value does not come back from its pickled form; None if it does."""
    try:
        pickle.loads(pickle.dumps(value))
    except Exception as error:  # whatever the code of a value raises
        return str(error) or type(error).__name__
    return None


def _say_too(error: BaseException, text: str) -> None:
    if isinstance(error, TablestoreError):
        error.message = f"{error.message}\n{text}"
        error.args = (error.message,)
    else:
        error.add_note(text)
