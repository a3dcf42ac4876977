"""Keeps the jobs of one environment: they get their ids here, and end before it closes.

A job that nobody waited for is kept when it has failed, so that its error can be asked for.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeVar

from tablestore.environment.jobs.hooks import JobStatusHook, check_serializable
from tablestore.environment.jobs.job import Job, JobStatus
from tablestore.ids import Ids

T = TypeVar("T")
MOST_FAILED = 100
"""How many jobs that have failed are kept: the newest."""


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
