"""The jobs of one environment: they get their ids here, and end before it closes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tablestore.environment.jobs.hooks import JobStatusHook, check_serializable
from tablestore.environment.jobs.job import Job
from tablestore.ids import Ids

T = TypeVar("T")


@dataclass(slots=True)
class Jobs:
    """Makes jobs. ``interrupt`` ends what runs in a thread."""

    ids: Ids
    interrupt: Callable[[int], None] = lambda thread: None
    _started: list[Job[Any]] = field(default_factory=list)
    _endless: list[Job[Any]] = field(default_factory=list)

    def run(self, work: Callable[[Job[T]], T], hooks: Iterable[JobStatusHook] = ()) -> T:
        """Run a job here, to its end; what it gives. Raises what it ends with."""
        return self.prepare(work, hooks).run()

    def start(self, work: Callable[[Job[T]], T], hooks: Iterable[JobStatusHook] = (), *, ends: bool = True) -> Job[T]:
        """Start a job in a thread of its own. ``ends``: by itself, or only when it is canceled."""
        return self.launch(self.prepare(work, hooks), ends=ends)

    def prepare(self, work: Callable[[Job[T]], T], hooks: Iterable[JobStatusHook] = ()) -> Job[T]:
        """A job that has its id and does not run yet."""
        hooks = tuple(hooks)
        check_serializable(hooks)
        return Job(self.ids.uuid(), work, hooks=hooks, interrupt=self.interrupt)

    def launch(self, job: Job[T], *, ends: bool = True) -> Job[T]:
        """Start a job that was prepared, as :meth:`start`."""
        self._started = [one for one in self._started if not one.done()]
        self._endless = [one for one in self._endless if not one.done()]
        (self._started if ends else self._endless).append(job)
        return job.start()

    def under_way(self) -> tuple[Job[Any], ...]:
        """What was started and has not ended, in the order in which it was started; streams come last."""
        return tuple(job for job in (*self._started, *self._endless) if not job.done())

    def wait(self) -> None:
        """Wait until all that was started has ended; what does not end by itself is canceled."""
        for job in self._endless:
            job.cancel()
        for job in (*self._started, *self._endless):
            job.wait()
