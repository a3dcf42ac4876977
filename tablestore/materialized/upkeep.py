"""Starts and ends what keeps a materialized table fresh: the job of a continuous one, the workflow of one with FULL refreshes.

    keeping_fresh     it exists, and has a handler: a job that waits, a workflow
        the table becomes whole and names it, in one step
    then              the job begins its rounds; after an error job and workflow go

So whatever cannot begin fails before anything is visible, and nothing has to be taken back afterwards.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from tablestore.environment.jobs import Job
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.result import Result
from tablestore.environment.session.session import Session
from tablestore.errors import CommitOutcomeUnknown
from tablestore.materialized.continuous import ContinuousRefresh, handler_of, stop_local
from tablestore.materialized.freshness import RefreshMode, cron
from tablestore.materialized.materializedtable import MaterializedTable, RefreshHandler
from tablestore.materialized.storing import StoredTable
from tablestore.materialized.workflows import RefreshWorkflow, create_workflow, modify_workflow


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRefresh:
    """The job or workflow that is going to keep a table fresh."""

    session: Session
    handler: RefreshHandler
    job: Job[Result] | None = None
    loop: ContinuousRefresh | None = None

    def begin(self) -> None:
        """Lets it go on. A job that no table names ends by itself."""
        if self.loop is not None:
            self.loop.begin()

    def take_back(self) -> None:
        """Ends it: what was to be kept fresh has not come to be."""
        if self.job is None:
            modify_workflow(self.handler, "delete")
            return
        self.job.cancel()
        self.begin()
        self.job.wait()


@contextmanager
def keeping_fresh(
    session: Session, path: ObjectPath, definition: MaterializedTable, options: Mapping[str, str] | None = None
) -> Iterator[PreparedRefresh]:
    """Prepares what keeps a table fresh; it begins after the block, in which the table gets the handler. An error takes it back.

    ``options`` hold for what this job writes. Raises UnsupportedError without an engine or a scheduler, and what a scheduler
    raises.
    """
    prepared = prepare_upkeep(session, path, definition, options)
    try:
        yield prepared
    except CommitOutcomeUnknown:
        # The table may have come to be.
        prepared.begin()
        raise
    except BaseException:
        prepared.take_back()
        raise
    prepared.begin()


def prepare_upkeep(
    session: Session, path: ObjectPath, definition: MaterializedTable, options: Mapping[str, str] | None = None
) -> PreparedRefresh:
    """Prepares what keeps a table fresh, as :func:`keeping_fresh`; the caller lets it begin or takes it back."""
    if definition.refresh_mode is RefreshMode.FULL:
        name = f"Materialized_table_{path}_periodic_refresh_job"
        workflow = RefreshWorkflow(
            name=name,
            table=path.quoted,
            cron=cron(definition.freshness),
            statement=f"ALTER MATERIALIZED TABLE {path.quoted} REFRESH",
        )
        return PreparedRefresh(session=session, handler=create_workflow(session, workflow))
    session.engine_for("a continuous refresh")
    loop = ContinuousRefresh(session=session, path=path, options=dict(options or {}))
    job = session.jobs.prepare(loop.run)
    session.jobs.launch(job, ends=False)
    return PreparedRefresh(session=session, handler=handler_of(job.id), job=job, loop=loop)


def end_upkeep(session: Session, stored: StoredTable) -> None:
    """Ends what keeps a table fresh."""
    if stored.definition.refresh_mode is RefreshMode.FULL:
        modify_workflow(stored.upkeep.handler, "delete")
    else:
        stop_local(session, stored.upkeep.handler)
