"""Carrying out a plan: the definition changes in one schema, and what keeps the table fresh begins anew where it has to.

    CONTINUOUS   the job ends -> definition, columns and the new job's handler are stored -> the new job begins, from the beginning
    FULL         the next refresh is of the new query; another freshness is another workflow
    suspended    only the definition changes

A new job that cannot begin takes the definition back, and the old one goes on.
"""

from dataclasses import replace

from tablestore.environment.materialized.continuous import local_job
from tablestore.environment.materialized.difference import Plan
from tablestore.environment.materialized.freshness import RefreshMode
from tablestore.environment.materialized.incremental.holding import held_sources, release
from tablestore.environment.materialized.materializedtable import RefreshStatus, Upkeep
from tablestore.environment.materialized.refreshing import refresh_session
from tablestore.environment.materialized.storing import Found, store, store_back
from tablestore.environment.materialized.upkeep import Prepared, end_upkeep, prepare_upkeep
from tablestore.environment.result import Result, done
from tablestore.environment.session.session import Session
from tablestore.errors import TablestoreError


def carry_out(session: Session, found: Found, plan: Plan) -> Result:
    """Make a table what a plan says. Raises what altering it raises, and what a new job raises that cannot begin."""
    if not plan.changes:
        return done()
    if found.upkeep.status is RefreshStatus.SUSPENDED:
        _suspended(session, found, plan)
    elif not _begins_anew(plan):
        _stored(session, found, found.upkeep, plan)
    else:
        _active(session, found, plan)
    return done()


def _stored(session: Session, found: Found, upkeep: Upkeep, plan: Plan) -> Found:
    """Store what a plan changes. What another query reads is held from its first refresh on."""
    held = held_sources(refresh_session(session), found.table, found.definition.expanded_query) if plan.changes_query else {}
    stored = store(found, upkeep, plan)
    release(found.table, held)
    return stored


def _begins_anew(plan: Plan) -> bool:
    """Whether another job or workflow is needed. One that refreshes as a whole reads the definition each time."""
    if plan.old.refresh_mode is plan.new.refresh_mode is RefreshMode.FULL:
        return plan.old.freshness != plan.new.freshness
    return plan.restarts


def _suspended(session: Session, found: Found, plan: Plan) -> None:
    upkeep = found.upkeep
    if _begins_anew(plan):
        # RESUME makes what it needs.
        upkeep = replace(upkeep, handler=None)
    _stored(session, found, upkeep, plan)
    if upkeep.handler is None:
        end_upkeep(session, found)


def _active(session: Session, found: Found, plan: Plan) -> None:
    continued = local_job(session, found.upkeep.handler) is not None
    if plan.old.refresh_mode is RefreshMode.CONTINUOUS:
        end_upkeep(session, found)
    prepared: Prepared | None = None
    stored = found
    try:
        prepared = prepare_upkeep(session, found.path, plan.new)
        stored = _stored(session, found, _active_upkeep(session, found, prepared), plan)
        prepared.begin()
    except BaseException as error:
        if prepared is not None:
            prepared.take_back()
        _take_back(session, found, stored, plan, continued=continued)
        if isinstance(error, TablestoreError) and plan.new.refresh_mode is RefreshMode.CONTINUOUS and stored is not found:
            error.message = (
                f"Failed to start the continuous refresh job using new query {plan.new.original_query} when altering materialized "
                f"table {found.path} select query.\nThe table is as it was before. {error.message}"
            )
            error.args = (error.message,)
        raise
    if plan.old.refresh_mode is RefreshMode.FULL:
        end_upkeep(session, found)


def _take_back(session: Session, found: Found, stored: Found, plan: Plan, *, continued: bool) -> None:
    """Make the definition the old one again, and let the old job go on if it ran here."""
    restarts = continued and plan.old.refresh_mode is RefreshMode.CONTINUOUS
    if stored is found and not restarts:
        return
    again = prepare_upkeep(session, found.path, plan.old) if restarts else None
    upkeep = found.upkeep if again is None else _active_upkeep(session, found, again)
    if stored is found:
        store(found, upkeep)
    else:
        store_back(stored, plan, upkeep)
    if again is not None:
        again.begin()


def _active_upkeep(session: Session, found: Found, prepared: Prepared) -> Upkeep:
    return replace(found.upkeep, status=RefreshStatus.ACTIVATED, handler=prepared.handler, since_ms=session.clock.now_ms())
