"""Carries out a plan: definition, columns and rows change in one step, and what keeps the table fresh begins anew where it has to.

    CONTINUOUS   another query: a version with its rows is made where nobody sees it, and takes the place of the table
                 another freshness or mode: the table is refreshed, then its definition changes
    FULL         the next refresh is of the new query; another freshness is another workflow
    suspended    only the definition changes

The table names the new job from this step on, and the old one ends. Whatever fails before it, the table is as it was, the old job
goes on, and the error is kept with the table.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tablestore.environment.jobs import Job
from tablestore.environment.pipelines.pipeline import run_work
from tablestore.environment.result import Notice, Result, done
from tablestore.environment.session.session import Session
from tablestore.errors import ConflictError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.materialized.difference import AlterationPlan, ModifyOptions, validate
from tablestore.materialized.freshness import RefreshMode
from tablestore.materialized.incremental.holding import held_sources, release
from tablestore.materialized.lasterror import forget_error, keep_error
from tablestore.materialized.materializedtable import RefreshStatus, Upkeep
from tablestore.materialized.newversion import Version, build, changed_meanwhile
from tablestore.materialized.refreshing import check_formats, refresh_newest, refresh_session
from tablestore.materialized.storing import StoredTable, check_storable, store
from tablestore.materialized.tableversions import VERSION
from tablestore.materialized.upkeep import end_upkeep, keeping_fresh
from tablestore.materialized.workflows import check_scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """The checked action of a statement: the statement runs it, EXPLAIN prints what is ``shown``.

    ``fills``: rows are made, so it is a job, which may run beside what follows (``table.dml-sync`` = false). ``notices``: those of
    its result.
    """

    run: Callable[[], None]
    fills: bool = False
    shown: str = ""
    notices: tuple[Notice, ...] = ()


def run_act(session: Session, act: Act) -> Result:
    """Runs an action. Raises what it raises, unless nobody waits for it: then its job does."""

    def work(_: Job[Result]) -> Result:
        act.run()
        return done(*act.notices)

    if act.fills:
        return run_work(session, work)
    act.run()
    return done(*act.notices)


def plan_act(session: Session, stored: StoredTable, plan: AlterationPlan) -> Act:
    """The action that makes a table what a plan says. Raises InvalidInputError, UnsupportedError for a plan that cannot be carried
    out."""
    shown = f"== Alters ==\n{stored.path}\n{plan}"
    if not plan.changes:
        return Act(shown=shown, run=lambda: forget_error(stored, during="alter"))
    validate(plan)
    check_formats(plan.new.options)
    suspended = stored.upkeep.status is RefreshStatus.SUSPENDED
    fills = plan.restarts and not suspended and plan.new.refresh_mode is RefreshMode.CONTINUOUS
    replaces = fills and (plan.changes_query or plan.widens)
    check_storable(stored, plan, filled=fills and not replaces)
    if suspended:
        return Act(shown=shown, run=lambda: _suspended(session, stored, plan))
    if not plan.restarts:
        return Act(shown=shown, run=lambda: _store(session, stored, stored.upkeep, plan))
    check_scheduler(session, plan.new.refresh_mode)
    if replaces:
        _check_log_stays(stored, plan)
    shown += "\nthe refresh begins anew"
    return Act(shown=shown, run=lambda: _active(session, stored, plan, replaces=replaces), fills=fills)


def _store(session: Session, stored: StoredTable, upkeep: Upkeep, plan: AlterationPlan) -> None:
    """Stores what a plan changes. What another query reads is held from its first refresh on."""
    held = held_sources(refresh_session(session), stored.table, stored.definition.query) if plan.changes_query else {}
    store(stored, upkeep, plan)
    release(stored.table, held)


def _suspended(session: Session, stored: StoredTable, plan: AlterationPlan) -> None:
    upkeep = stored.upkeep
    if plan.restarts:
        # RESUME makes what it needs.
        upkeep = replace(upkeep, handler=None)
    _store(session, stored, upkeep, plan)
    if upkeep.handler is None:
        end_upkeep(session, stored)


def _active(session: Session, stored: StoredTable, plan: AlterationPlan, *, replaces: bool) -> None:
    with _explained(session, stored, plan), keeping_fresh(session, stored.path, plan.new) as prepared:
        upkeep = replace(stored.upkeep, status=RefreshStatus.ACTIVATED, handler=prepared.handler, since_ms=session.clock.now_ms())
        if plan.new.refresh_mode is RefreshMode.FULL:
            _store(session, stored, upkeep, plan)
        elif replaces:
            _replace(session, stored, upkeep, plan)
        else:
            refresh_newest(session, stored)
            _store(session, stored, upkeep, plan)
    end_upkeep(session, stored)


def _replace(session: Session, stored: StoredTable, upkeep: Upkeep, plan: AlterationPlan) -> None:
    """Puts a version with the rows of another query in the place of the table. Its columns stay as they are, with their
    comments."""
    version = Version(
        path=stored.path,
        definition=plan.new,
        upkeep=replace(upkeep, epoch=stored.upkeep.epoch + 1),
        like=stored,
        marks={key: text for key, text in stored.table.options().items() if key == VERSION},
    )
    try:
        build(session, version, over=stored)
    except TablestoreError as error:
        raced = isinstance(error, ConflictError) or not session.exists(stored.path)
        if not raced or error.kind == "materialized-changed":
            raise
        raise changed_meanwhile(stored.path) from error


def _check_log_stays(stored: StoredTable, plan: AlterationPlan) -> None:
    for change in plan.changes:
        keys = (*change.set, *change.reset) if isinstance(change, ModifyOptions) else ()
        if log := sorted(key for key in keys if key.startswith("log.")):
            raise UnsupportedError(
                f"Materialized table {stored.path} gets another query, whose rows take the place of the old ones in one step, and "
                f"its log goes on: ALTER MATERIALIZED TABLE … SET or RESET {', '.join(log)} in a statement before this one",
                kind="log-option",
            )


@contextmanager
def _explained(session: Session, stored: StoredTable, plan: AlterationPlan) -> Iterator[None]:
    try:
        yield
    except TablestoreError as error:
        if plan.new.refresh_mode is RefreshMode.CONTINUOUS and not isinstance(error, ConflictError | NotFoundError):
            error.message = (
                f"Failed to start the continuous refresh job using new query {plan.new.original_query} when altering materialized "
                f"table {stored.path} select query.\nThe table is as it was before. {error.message}"
            )
            error.args = (error.message,)
        keep_error(stored, error, during="alter", now_ms=session.clock.now_ms())
        raise
