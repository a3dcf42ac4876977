"""Runs FULL refreshes at their times by a workflow scheduler, found by the entry point ``tablestore.workflow_schedulers``.

    workflow-scheduler.type = embedded      any process that refreshes what is due: the definition itself is the workflow
                              none          nobody: FULL tables are refused
                              <other>       an installed package

An entry point gives a function without arguments that makes a :class:`WorkflowScheduler`. What it gives back for a workflow, its
handler, is kept with the table, in the scheduler's own form.
"""

import base64
import json
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Literal, Protocol

from tablestore.environment.session.session import Session
from tablestore.environment.session.sessionsettings import WORKFLOW_SCHEDULER
from tablestore.errors import FormatError, InvalidInputError, UnsupportedError
from tablestore.materialized.freshness import RefreshMode
from tablestore.materialized.materializedtable import RefreshHandler
from tablestore.names import did_you_mean

GROUP = "tablestore.workflow_schedulers"
EMBEDDED, NONE = "embedded", "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshWorkflow:
    """The work that a scheduler is to run: ``statement``, at the times of ``cron`` (a Quartz expression)."""

    name: str
    table: str
    cron: str
    statement: str


class WorkflowScheduler(Protocol):
    """Runs workflows. Its handlers are values of its own."""

    def open(self) -> None:
        """Connects. Called before anything else."""
        ...

    def close(self) -> None:
        """Gives the connection up."""
        ...

    def create_refresh_workflow(self, workflow: RefreshWorkflow) -> Any:
        """Makes a workflow, active, and returns its handler."""
        ...

    def modify_refresh_workflow(self, handler: Any, change: Literal["suspend", "resume"]) -> None:
        """Suspends or resumes a workflow."""
        ...

    def delete_refresh_workflow(self, handler: Any) -> None:
        """Removes a workflow; one that is gone is none."""
        ...

    def summary(self, handler: Any) -> str:
        """A handler, for people."""
        ...

    def serialize(self, handler: Any) -> bytes:
        """A handler, to be kept."""
        ...

    def deserialize(self, data: bytes) -> Any:
        """The handler that was kept."""
        ...


class EmbeddedScheduler:
    """The definition of the table says what is due, and its status whether it is: there is nothing to keep but a name."""

    def open(self) -> None:
        pass

    def close(self) -> None:
        pass

    def create_refresh_workflow(self, workflow: RefreshWorkflow) -> str:
        return f"{workflow.name} at {workflow.cron}"

    def modify_refresh_workflow(self, handler: str, change: Literal["suspend", "resume"]) -> None:
        pass

    def delete_refresh_workflow(self, handler: str) -> None:
        pass

    def summary(self, handler: str) -> str:
        return f"embedded workflow {handler}"

    def serialize(self, handler: str) -> bytes:
        return handler.encode()

    def deserialize(self, data: bytes) -> str:
        return data.decode("utf-8", "replace")


def check_scheduler(session: Session, mode: RefreshMode) -> None:
    """Raises UnsupportedError where a table of this mode needs a scheduler, and there is none."""
    if mode is RefreshMode.FULL and _scheduler_name(session) == NONE:
        raise UnsupportedError(
            "The workflow scheduler must be configured when creating materialized table in full refresh mode. "
            f"SET '{WORKFLOW_SCHEDULER.key}' = '{EMBEDDED}', or give the table REFRESH_MODE = CONTINUOUS",
            kind="no-scheduler",
        )


def create_workflow(session: Session, workflow: RefreshWorkflow) -> RefreshHandler:
    """Makes a workflow by the scheduler of the session. Raises UnsupportedError without one, and what it raises."""
    check_scheduler(session, RefreshMode.FULL)
    name = _scheduler_name(session)
    scheduler = open_scheduler(name)
    try:
        handler = scheduler.create_refresh_workflow(workflow)
        data = {"scheduler": name, "handler": base64.b64encode(scheduler.serialize(handler)).decode("ascii")}
        return RefreshHandler(summary=scheduler.summary(handler), data=json.dumps(data).encode())
    finally:
        scheduler.close()


def modify_workflow(refresh_handler: RefreshHandler | None, change: Literal["suspend", "resume", "delete"]) -> None:
    """Suspends, resumes or removes the workflow of a table."""
    if refresh_handler is None:
        return
    scheduler = open_scheduler(scheduler_of(refresh_handler))
    try:
        handler = scheduler.deserialize(_part(refresh_handler))
        if change == "delete":
            scheduler.delete_refresh_workflow(handler)
        else:
            scheduler.modify_refresh_workflow(handler, change)
    finally:
        scheduler.close()


def scheduler_of(refresh_handler: RefreshHandler) -> str:
    """The name of the scheduler that has a workflow. Raises FormatError."""
    return str(_content(refresh_handler).get("scheduler"))


def open_scheduler(name: str) -> WorkflowScheduler:
    """The scheduler of a name, open. Raises InvalidInputError for one that nobody offers."""
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        offered = ", ".join(sorted(points)) or "none; install tablestore again, so that its entry points are known"
        raise InvalidInputError(
            f"option {WORKFLOW_SCHEDULER.key}: no workflow scheduler {name!r:.80}{did_you_mean(name, points)} (installed: "
            f"{offered})",
            kind="unknown-scheduler",
        )
    try:
        scheduler: WorkflowScheduler = points[name].load()()
    except ImportError as error:
        raise UnsupportedError(
            f"the workflow scheduler {name} does not load ({error}); install its package again", kind="unknown-scheduler"
        ) from error
    scheduler.open()
    return scheduler


def _scheduler_name(session: Session) -> str:
    return str(session.settings.get(WORKFLOW_SCHEDULER.key)).strip()


def _content(refresh_handler: RefreshHandler) -> dict[str, object]:
    try:
        content = json.loads(refresh_handler.data)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise FormatError(
            f"the refresh handler {refresh_handler.summary!r:.100} was not written by tablestore", kind="materialized-definition"
        )
    return content


def _part(refresh_handler: RefreshHandler) -> bytes:
    return base64.b64decode(str(_content(refresh_handler).get("handler", "")))
