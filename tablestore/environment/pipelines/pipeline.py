"""Runs a write in two steps: it is planned, then it runs as a job.

plan      names are resolved, columns and types are checked, snapshots are fixed; nothing has happened
run       the job: its hooks are called, the engine runs the queries, snapshots are published
"""

from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa

from tablestore.environment.jobs import Job, JobStatusHook, check_hook
from tablestore.environment.pipelines.streams import StreamInsert
from tablestore.environment.result import DONE_SCHEMA, NoticeKind, Result, ResultKind, pending
from tablestore.environment.session.session import Session
from tablestore.environment.session.sessionsettings import DML_SYNC


class JobPlan(Protocol):
    """The work that a job runs. ``hooks`` are its own; ``kind`` and ``schema`` are those of its result."""

    @property
    def kind(self) -> ResultKind: ...

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def hooks(self) -> tuple[JobStatusHook, ...]: ...

    def run(self, job: Job[Result]) -> Result:
        """Writes the rows. Raises TablestoreError."""
        ...

    def explain(self) -> str:
        """The plan of the queries, as text."""
        ...


def run_statement(session: Session, plan: JobPlan) -> Result:
    """Runs a plan as a statement: to its end, or beside what follows where ``table.dml-sync`` is false, or it has no end."""
    if isinstance(plan, StreamInsert):
        return pending(_started(session, plan, plan.hooks), plan.kind, plan.schema)
    return run_work(session, plan.run, kind=plan.kind, schema=plan.schema, hooks=plan.hooks)


def run_work(
    session: Session,
    work: Callable[[Job[Result]], Result],
    *,
    kind: ResultKind = "nothing",
    schema: pa.Schema = DONE_SCHEMA,
    hooks: tuple[JobStatusHook, ...] = (),
) -> Result:
    """Runs the work of a statement as a job: to its end, or beside what follows where ``table.dml-sync`` is false."""
    if session.settings.flag(DML_SYNC):
        return session.jobs.run(work, hooks)
    return pending(session.jobs.start(work, hooks), kind, schema)


class TablePipeline:
    """A write that is ready to run, made by ``query.insert_into(path)``, ``query.save_as(path).create()``. Each execution plans and
    writes anew."""

    def __init__(self, session: Session, plan: Callable[[], JobPlan], again: Callable[[], JobPlan] | None = None) -> None:
        """``again`` plans what follows an execution that made the table; without it, ``plan`` does."""
        self._session, self._plan, self._again = session, plan, again or plan
        self._hooks: list[JobStatusHook] = []

    def register_job_status_hook(self, hook: Any) -> "TablePipeline":
        """Calls a :class:`JobStatusHook` when the status of a job of this pipeline changes, and returns the pipeline, to go on.

        Hooks are called in the order in which they were registered. Raises InvalidInputError for what is no hook.
        """
        check_hook(hook)
        self._hooks.append(hook)
        return self

    def execute(self) -> Result:
        """Writes the rows, and waits until they have landed; a stream is begun, and the result has its job."""
        plan = self._plan()
        hooks = (*plan.hooks, *self._hooks)
        if isinstance(plan, StreamInsert):
            return pending(_started(self._session, plan, hooks), plan.kind, plan.schema)
        return self._session.jobs.run(self._work(plan), hooks)

    def execute_async(self) -> Job[Result]:
        """Writes the rows in a thread of its own. What can be refused before it begins is raised here, the rest by the job."""
        plan = self._plan()
        hooks = (*plan.hooks, *self._hooks)
        if isinstance(plan, StreamInsert):
            return _started(self._session, plan, hooks)
        return self._session.jobs.start(self._work(plan), hooks)

    def explain(self) -> str:
        """The plan of the queries, with what it reads of each managed table."""
        return self._plan().explain()

    def _work(self, plan: JobPlan) -> Callable[[Job[Result]], Result]:
        def run(job: Job[Result]) -> Result:
            result = plan.run(job)
            if all(notice.kind is not NoticeKind.ALREADY_THERE for notice in result.notices):
                self._plan = self._again
            return result

        return run


def _started(session: Session, plan: JobPlan, hooks: tuple[JobStatusHook, ...]) -> Job[Result]:
    if not isinstance(plan, StreamInsert):
        return session.jobs.start(plan.run, hooks)
    job = session.jobs.start(plan.run, hooks, ends=False)
    plan.wait_begun(job)
    return job
