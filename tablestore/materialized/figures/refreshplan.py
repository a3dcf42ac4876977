"""Plans the next refresh of a materialized table: from the changes of its sources, or of all rows, and why."""

from dataclasses import dataclass

from tablestore.environment.session.session import Session
from tablestore.errors import TablestoreError
from tablestore.materialized.incremental.refresh import plan_target
from tablestore.materialized.incremental.sources import find_sources
from tablestore.materialized.refreshing import refresh_session
from tablestore.materialized.storing import StoredTable
from tablestore.sql.incremental.shapes import FullRefresh


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshPlan:
    """The rule of a table's refreshes. ``reason``: why all rows are computed, or why the rule is not known."""

    incremental: bool | None
    reason: str | None = None


def plan_of(session: Session, stored: StoredTable) -> RefreshPlan:
    """The rule of the refreshes of a table. Nothing is run, and no engine is needed."""
    inner = refresh_session(session)
    try:
        sources = find_sources(inner, stored.definition.query)
        if isinstance(sources, FullRefresh):
            return RefreshPlan(incremental=False, reason=sources.reason)
        plan = plan_target(inner, stored.definition.query, sources, stored.table).plan
    except TablestoreError as error:
        return RefreshPlan(incremental=None, reason=error.message)
    return RefreshPlan(incremental=False, reason=plan.reason) if isinstance(plan, FullRefresh) else RefreshPlan(incremental=True)
