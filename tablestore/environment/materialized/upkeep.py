"""Starting and ending what keeps a materialized table fresh: the job of a continuous one, the workflow of one with FULL refreshes.

    prepare   it exists, and has a handler: a job that does not run yet, a workflow
    begin     after the handler was stored: the job runs, and its first refresh is waited for
    end       the job is canceled, the workflow is removed

So what runs is on record before it runs, and what is on record and does not run is found out by whoever looks.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tablestore.environment.jobs.job import Job
from tablestore.environment.materialized.continuous import ContinuousRefresh, handler_of, stop_local
from tablestore.environment.materialized.freshness import RefreshMode, cron
from tablestore.environment.materialized.materializedtable import MaterializedTable, RefreshHandler
from tablestore.environment.materialized.storing import Found
from tablestore.environment.materialized.workflows import RefreshWorkflow, create_workflow, modify_workflow
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.result import Result
from tablestore.environment.session.session import Session
from tablestore.environment.session.sessionsettings import DML_SYNC


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What is going to keep a table fresh."""

    session: Session
    handler: RefreshHandler
    job: Job[Result] | None = None
    loop: ContinuousRefresh | None = None

    def begin(self) -> None:
        """Start it. Raises what the first refresh raises, where statements wait for it (``table.dml-sync``)."""
        if self.job is None or self.loop is None:
            return
        self.session.jobs.launch(self.job, ends=False)
        if self.session.settings.flag(DML_SYNC):
            self.loop.wait_begun(self.job)

    def take_back(self) -> None:
        """End it: it is not needed, or what was to follow has failed."""
        if self.job is None:
            modify_workflow(self.handler, "delete")
        else:
            stop_local(self.session, self.handler)


def prepare_upkeep(
    session: Session, path: ObjectPath, definition: MaterializedTable, options: Mapping[str, str] | None = None
) -> Prepared:
    """Prepare what keeps a table fresh. ``options`` hold for the target in this run only. Raises UnsupportedError without an engine
    or a scheduler, and what the scheduler raises."""
    if definition.refresh_mode is RefreshMode.FULL:
        name = f"Materialized_table_{path}_periodic_refresh_job"
        workflow = RefreshWorkflow(
            name=name,
            table=path.quoted,
            cron=cron(definition.freshness),
            statement=f"ALTER MATERIALIZED TABLE {path.quoted} REFRESH",
        )
        return Prepared(session=session, handler=create_workflow(session, workflow))
    session.engine_for("a continuous refresh")
    loop = ContinuousRefresh(session=session, path=path, options=dict(options or {}))
    job = session.jobs.prepare(loop.run)
    return Prepared(session=session, handler=handler_of(job.id), job=job, loop=loop)


def end_upkeep(session: Session, found: Found) -> None:
    """End what keeps a table fresh."""
    if found.definition.refresh_mode is RefreshMode.FULL:
        modify_workflow(found.upkeep.handler, "delete")
    else:
        stop_local(session, found.upkeep.handler)
