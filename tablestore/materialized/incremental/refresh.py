"""Brings a materialized table up to date: from the changes of its sources where its query has rules for that, as a whole otherwise.

    cursor of the target -> newest snapshots of the sources -> no change: nothing is committed
        plan, changes -> rows that come and go -> one commit with the new cursor
        a reason why not -> the whole query -> one commit with the new cursor

The plan reads old rows of one source beside new ones of another, which never were together. So where it fails, the whole query
decides, and only what that raises is an error.

Exactly once: rows and cursor are one commit, which lands only on the refresh that it started from. Every source is read at one
snapshot throughout.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from tablestore.distributed.read import pin_at
from tablestore.distributed.spec import TableSpec
from tablestore.environment.engine import InsertTarget, ManagedRelation, QueryEngine
from tablestore.environment.rows.expressions import types_of
from tablestore.environment.rows.relations import Relations
from tablestore.environment.session.session import Session
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.format.snapshot import Snapshot
from tablestore.materialized.difference import DRIFTED, check_kinds, drifted
from tablestore.materialized.incremental.applying import NotThereError, apply_change, note_of
from tablestore.materialized.incremental.directchange import DirectPlan, direct_plan
from tablestore.materialized.incremental.holding import hold_back, let_go_before
from tablestore.materialized.incremental.refreshcursor import (
    CURSOR_PROPERTY,
    RefreshCursor,
    digest_of,
    parse_cursor,
    stored_cursor,
)
from tablestore.materialized.incremental.refreshreport import RefreshReport, SourceRange
from tablestore.materialized.incremental.running import PlanRun
from tablestore.materialized.incremental.sources import (
    RefreshSource,
    Round,
    SourceChanges,
    Sources,
    as_fragment,
    changes_since,
    find_sources,
    is_ahead,
)
from tablestore.materialized.sametext import takes_all_columns
from tablestore.sql.incremental.planner import IncrementalPlan, plan_incremental
from tablestore.sql.incremental.shapes import WEIGHT, FullRefresh, SourceShape, TargetShape
from tablestore.sql.query.edits import quote_name
from tablestore.sql.source import Fragment
from tablestore.sql.sqldialect import SqlDialect
from tablestore.store.commit.committer import Guard
from tablestore.table.table import Table
from tablestore.table.write.committing import CommitNote
from tablestore.table.write.current import NewestSnapshot, run_until_current, settled

Describe = Callable[[RefreshReport], Mapping[str, str]]
"""A refresh that is about to land -> what its snapshot says of it besides the cursor."""


def refresh(
    session: Session,
    target: Table,
    query: str | Fragment,
    *,
    spec: TableSpec,
    full: bool = False,
    guard: Guard | None = None,
    describe: Describe = lambda report: {},
    in_round: Round | None = None,
    newest: NewestSnapshot | None = None,
) -> RefreshReport:
    """Refreshes a target from its query, and says what was done. ``spec``: how engines find the target; ``full``: as a whole in any
    case; ``in_round``: the refreshes that read the same snapshots; ``newest``: that of the target, if it was just looked up.

    ``guard`` looks at the newest snapshot of the target before the commit lands; ``describe`` gives more of what this says.
    Raises ConflictError (of kind ``refresh-conflict`` where another refresh or a writer was faster; nothing is visible then),
    NotFoundError for a source that is gone, and what the query raises.
    """
    return _Refresh(session, spec, target, as_fragment(query), guard, describe, in_round or Round(), newest).run(full=full)


@dataclass(frozen=True, slots=True)
class TargetPlan:
    """The plan of a target's refreshes; ``direct``: the same without an engine."""

    plan: IncrementalPlan | FullRefresh
    direct: DirectPlan | None = None


@dataclass(slots=True)
class _Refresh:
    session: Session
    spec: TableSpec
    target: Table
    query: Fragment
    guard: Guard | None
    describe: Describe
    in_round: Round
    newest: NewestSnapshot | None

    def run(self, *, full: bool) -> RefreshReport:
        engine = self.session.engine_for("a refresh")
        base = run_until_current(self.target.context, partial(settled, self.target.context), self.newest)
        before = parse_cursor(stored_cursor(base))
        source_set = self._sources(before)
        if isinstance(source_set, FullRefresh):
            return self._whole(engine, base, None, source_set.reason)
        planned = plan_target(self.session, self.query, source_set, self.target)
        changes = self._changes(base, before, source_set, planned.plan, full=full)
        if isinstance(changes, RefreshReport):
            return changes
        if isinstance(changes, str):
            why = changes
        else:
            assert before is not None, "there is no reason against it"
            report = self._from_changes(engine, base, before, planned, changes)
            if isinstance(report, RefreshReport):
                return report
            why = report.reason
            # The handle of the target follows its columns: after an attempt to write they may be those of another definition.
            if self.guard is not None:
                self.guard(self.target.context.snapshots.latest())
        return self._whole(engine, base, source_set, why, before)

    def _sources(self, before: RefreshCursor | None) -> Sources | FullRefresh:
        source_set = find_sources(self.session, self.query, self.in_round)
        if before is None or isinstance(source_set, FullRefresh):
            return source_set
        # Another refresh may have been faster than this round. Rows never go back to what was before.
        behind = [source for source in source_set.sources if is_ahead(before, source)]
        for source in behind:
            self.in_round.move_on(source.table)
        return find_sources(self.session, self.query, self.in_round) if behind else source_set

    def _changes(
        self,
        base: Snapshot | None,
        before: RefreshCursor | None,
        source_set: Sources,
        plan: IncrementalPlan | FullRefresh,
        *,
        full: bool,
    ) -> tuple[SourceChanges, ...] | RefreshReport | str:
        """The changes of each source, if they will do; a report if there are none; else why the whole has to be computed."""
        if full:
            return "it was asked for"
        if before is None:
            return "it is the first refresh" if base is None else "the rows of the table are not those of a refresh"
        if before.query != _digest(self.query):
            return "the query is another one than before"
        changes: list[SourceChanges] = []
        for source in source_set.sources:
            if isinstance(known := changes_since(before, source), str):
                return known
            changes.append(known)
        changed = any(known.may_change_rows for known in changes)
        if not changed and (isinstance(plan, IncrementalPlan) or plan.repeatable):
            return RefreshReport(mode="none", sources=_ranges(before, source_set.sources))
        return plan.reason if isinstance(plan, FullRefresh) else tuple(changes)

    def _from_changes(
        self,
        engine: QueryEngine,
        base: Snapshot | None,
        before: RefreshCursor,
        planned: TargetPlan,
        changes: tuple[SourceChanges, ...],
    ) -> RefreshReport | FullRefresh:
        try:
            return self._incremental(engine, base, before, planned, changes)
        except (InvalidInputError, UnsupportedError) as error:
            # Errors of the store, the memory or another writer are none of the query's, nor is a cancellation.
            if error.kind == "cancelled":
                raise
            return FullRefresh(f"the query over the changes failed: {error.message.splitlines()[0]}")

    def _incremental(
        self,
        engine: QueryEngine,
        base: Snapshot | None,
        before: RefreshCursor,
        planned: TargetPlan,
        changes: tuple[SourceChanges, ...],
    ) -> RefreshReport | FullRefresh:
        plan = planned.plan
        assert isinstance(plan, IncrementalPlan), "there is no reason against it"
        sources = tuple(known.source for known in changes)
        pin = pin_at(self.target.context, self.spec, base.id if base else None, base.uuid if base else None)
        held = ManagedRelation(name=self.target.name, table=self.target, pin=pin)
        run = PlanRun(session=self.session, engine=engine, target=held, direct=planned.direct)
        change = run.change(plan, changes)
        if isinstance(change, FullRefresh):
            return change
        if not plan.is_unique and _goes(change):
            return FullRefresh("rows go, and others of the query may have the same primary key")
        report = RefreshReport(mode="incremental", rows_in=run.rows_in, rows_out=_count(change), sources=_ranges(before, sources))
        try:
            note = self._note(base, sources, report)
            snapshot = apply_change(self.session, engine, self.target, self.spec, change, note, base)
        except NotThereError:
            return FullRefresh("the table does not hold the rows that are to go")
        let_go_before(self.target, sources)
        return replace(report, snapshot_id=snapshot.id if snapshot else None, snapshot=snapshot)

    def _whole(
        self, engine: QueryEngine, base: Snapshot | None, source_set: Sources | None, why: str, before: RefreshCursor | None = None
    ) -> RefreshReport:
        sources = source_set.sources if source_set is not None else ()
        hold_back(self.target, sources)
        relations = Relations(session=self.session)
        for source in sources:
            pin = source.pin(self.session, source.now.id if source.now else None)
            relations.pins[source.table.location, source.table.branch_name] = pin
        schema = self._schema(engine, relations)
        names = target_names(schema, self.query, self.target)
        fields = [self.target.table_schema.field(name) for name in names]
        derived = [replace(field, type=kind or field.type) for field, kind in zip(fields, types_of(schema), strict=True)]
        drift = check_kinds(fields, derived, self.target.name)
        columns = ", ".join(map(quote_name, names))
        rows = relations.bind_around(self.query, "SELECT * FROM ", f" AS `query` ({columns})")
        report = RefreshReport(mode="full", reason="; ".join([why, *drift]), sources=_ranges(before, sources))
        note = self._note(base, sources, report)
        try:
            snapshot = engine.insert(rows, InsertTarget(table=self.target, spec=self.spec, overwrite={}, note=note))
        except InvalidInputError as error:
            if not drift:
                raise
            raise drifted(self.target.name, drift, error.message) from error
        let_go_before(self.target, sources)
        return replace(report, snapshot_id=snapshot.id if snapshot else None, snapshot=snapshot)

    def _schema(self, engine: QueryEngine, relations: Relations) -> pa.Schema:
        try:
            return engine.query(relations.bind_query(self.query)).schema
        except InvalidInputError as error:
            error.message = f"{error.message}\n{DRIFTED}"
            error.args = (error.message,)
            raise

    def _note(self, base: Snapshot | None, sources: tuple[RefreshSource, ...], report: RefreshReport) -> CommitNote:
        cursor = RefreshCursor(query=_digest(self.query), points=tuple(source.point for source in sources))
        return note_of(self.target, base, {CURSOR_PROPERTY: cursor.to_text(), **self.describe(report)}, self.guard)


def _digest(query: Fragment) -> str:
    return digest_of(query.text if query.dialect is SqlDialect.SPARK else f"{query.dialect}:{query.text}")


def plan_target(session: Session, query: str | Fragment, source_set: Sources, target: Table) -> TargetPlan:
    """The plan of a target's refreshes."""
    query = as_fragment(query)
    if query.dialect is not SqlDialect.SPARK:
        # What is known of Spark's words alone: which of them give the same rows each time, too.
        why = f"its query is in the dialect {query.dialect}, which is computed as a whole"
        return TargetPlan(FullRefresh(why, repeatable=False))
    context = target.context
    if context.schema.is_keyed and not context.settings.is_plain and not context.settings.skips_level_zero:
        return TargetPlan(FullRefresh("the table has a merge engine, or a field that orders rows, of its own"))
    if context.settings.rowkind_field is not None:
        return TargetPlan(FullRefresh("a column of the table says of what kind its rows are (rowkind.field)"))
    shapes = tuple(source.shape for source in source_set.sources)
    target_shape = TargetShape(fields=context.schema.fields, primary_key=context.schema.primary_keys)
    return session.memo(_planned, query.text, source_set.source_of, shapes, target_shape)


def _planned(query: str, source_of: tuple[int, ...], sources: tuple[SourceShape, ...], target: TargetShape) -> TargetPlan:
    plan = plan_incremental(query, source_of=source_of, sources=sources, target=target)
    return TargetPlan(plan, direct_plan(plan, sources) if isinstance(plan, IncrementalPlan) else None)


def target_names(schema: pa.Schema, query: Fragment, target: Table) -> list[str]:
    """The target's column for each of the query: by name where the names are the same, else by place.

    Raises InvalidInputError where a ``*`` of the query stands for other columns than those of the target.
    """
    names = list(target.schema.names)
    folded = {name.casefold(): name for name in names}
    if {name.casefold() for name in schema.names} == set(folded):
        return [folded[name.casefold()] for name in schema.names]
    if query.dialect is not SqlDialect.SPARK or takes_all_columns(query.text):
        query_columns, table_columns = (", ".join(map(repr, column_names)) for column_names in (schema.names, names))
        raise InvalidInputError(
            f"the query of materialized table {target.name} gives the columns {query_columns} now, and the table has "
            f"{table_columns}: what its * stands for was altered. CREATE OR ALTER MATERIALIZED TABLE … of the same query adds "
            "columns that came last; after other changes, name the columns, or build another version: ALTER MATERIALIZED TABLE … "
            "STAGE AS query",
            kind="materialized-columns",
        )
    return names


def _ranges(before: RefreshCursor | None, sources: tuple[RefreshSource, ...]) -> tuple[SourceRange, ...]:
    points = [before.of_source(source.name) if before is not None else None for source in sources]
    return tuple(
        SourceRange(name=source.name, before=point.snapshot_id if point else None, after=source.now.id if source.now else None)
        for source, point in zip(sources, points, strict=True)
    )


def _goes(change: pa.Table | None) -> bool:
    return change is not None and bool((change.column(WEIGHT).to_numpy() < 0).any())


def _count(change: pa.Table | None) -> int:
    return 0 if change is None else int(abs(change.column(WEIGHT).to_numpy()).sum())
