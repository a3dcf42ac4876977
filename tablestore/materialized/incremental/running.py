"""Runs the queries of a plan: their names become relations, and what a step gives is kept in memory for those behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from tablestore.environment.engine import ManagedRelation, QueryEngine, Relation, RowsRelation
from tablestore.environment.memoryrows import MemoryRows
from tablestore.environment.rows.relations import Relations
from tablestore.environment.session.session import Session
from tablestore.materialized.incremental.directchange import DirectPlan
from tablestore.materialized.incremental.sources import SourceChanges
from tablestore.sql.incremental.planner import IncrementalPlan
from tablestore.sql.incremental.shapes import TARGET, FullRefresh, source_at, source_changes
from tablestore.table.read.scan import Scan

MOST_ROWS = 5_000_000
"""Rows of a step that are held in memory."""


@dataclass(slots=True, kw_only=True)
class PlanRun:
    """One run of a plan. ``direct``: the same without an engine; ``rows_in``: how many rows of changes it has read."""

    session: Session
    engine: QueryEngine
    target: ManagedRelation
    direct: DirectPlan | None = None
    relations: dict[str, Relation] = field(default_factory=dict)
    rows_in: int = 0

    def change(self, plan: IncrementalPlan, sources: Sequence[SourceChanges]) -> pa.Table | FullRefresh | None:
        """The rows that come and go; None if there are none. FullRefresh if they do not fit into memory."""
        held: dict[int, pa.Table] = {}
        for number, known in enumerate(sources):
            if known.may_change_rows:
                changes = known.read(plan.names)
                if changes is None:
                    return FullRefresh(f"too many rows of source {known.source.name} changed to be held in memory")
                self.rows_in += changes.num_rows
                held[number] = changes
        direct = None if self.direct is None else self.direct.change(self.session, held)
        if direct is not None:
            return direct
        self._relate(sources, held)
        try:
            return plan.change(frozenset(held), self._step, held, self._target_rows)
        except _TooManyError:
            return FullRefresh("too many rows of the table change to be held in memory")

    def _relate(self, sources: Sequence[SourceChanges], changes: Mapping[int, pa.Table]) -> None:
        """Gives the names of the plan's queries their rows."""
        self.relations[TARGET] = self.target
        for number, known in enumerate(sources):
            source = known.source
            self.relations[source_at(number, "old")] = source.relation(self.session, known.before)
            self.relations[source_at(number, "new")] = source.relation(self.session, source.now.id if source.now else None)
            if number in changes:
                rows = MemoryRows(changes[number])
                self.relations[source_changes(number)] = RowsRelation(name=f"changes of {source.name}", rows=rows)

    def _step(self, name: str, sql: str) -> pa.Table:
        rows = self._rows(sql)
        self.relations[name] = RowsRelation(name=name, rows=MemoryRows(rows))
        return rows

    def _target_rows(self, names: Sequence[str], most: int) -> pa.Table | None:
        context, pin = self.target.table.context, self.target.pin
        scan = Scan(context, pin.read_snapshot(context), tuple(names), None)
        # A row of a keyed table may lie in several files.
        return scan.to_arrow() if sum(file.row_count for file in scan.plan.files) <= most else None

    def _rows(self, sql: str) -> pa.Table:
        query = Relations(session=self.session).bind(sql, self.relations)
        reader = self.engine.read(query)
        batches, rows = [], 0
        for batch in reader:
            rows += batch.num_rows
            if rows > MOST_ROWS:
                raise _TooManyError
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema)


class _TooManyError(Exception):
    """More rows than are held in memory."""
