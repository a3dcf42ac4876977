"""Runs SUSPEND, RESUME, REFRESH and DROP of a materialized table, whatever it declares.

INITIALIZING -> ACTIVATED <-> SUSPENDED -> gone
"""

from dataclasses import replace

import pyarrow as pa

from tablestore.environment.definition.databases import database_path
from tablestore.environment.definition.databases import drop_database as drop_plain_database
from tablestore.environment.definition.drop import stored_context
from tablestore.environment.jobs import Job
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.result import Result, done
from tablestore.environment.session.catalogs import sweep_dead
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import FormatError, InvalidInputError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.materialized.altering import Act, run_act
from tablestore.materialized.continuous import is_alive, job_of, stop_local
from tablestore.materialized.declaring import alter_declared
from tablestore.materialized.due import materialized_tables
from tablestore.materialized.evolution.bluegreen import evolve
from tablestore.materialized.freshness import RefreshMode
from tablestore.materialized.incremental.holding import release_sources
from tablestore.materialized.incremental.refreshreport import RefreshReport
from tablestore.materialized.incremental.verify import VerifyReport, verify
from tablestore.materialized.materializedtable import RefreshStatus
from tablestore.materialized.refreshing import (
    check_partition,
    refresh_newest,
    refresh_now,
    refresh_session,
    refresh_until_landed,
)
from tablestore.materialized.storing import (
    StoredTable,
    check_not_initializing,
    find_materialized,
    open_materialized,
    store,
    while_there,
)
from tablestore.materialized.tableversions import drop_whole
from tablestore.materialized.upkeep import keeping_fresh
from tablestore.materialized.workflows import modify_workflow
from tablestore.sql.statements.definition import DropDatabase
from tablestore.sql.statements.materialized import (
    AlterMaterializedTable,
    Compare,
    Discard,
    DropMaterializedTable,
    Promote,
    Refresh,
    Resume,
    Rollback,
    Stage,
    Suspend,
)
from tablestore.table.table import Table

REFRESH_SCHEMA = pa.schema(
    [
        ("job_id", pa.string()),
        ("mode", pa.string()),
        ("reason", pa.string()),
        ("rows_in", pa.int64()),
        ("rows_out", pa.int64()),
        ("snapshot_id", pa.int64()),
        # Rows of the query that the table lacks, and rows that it has beside them: of VERIFY.
        ("missing", pa.int64()),
        ("extra", pa.int64()),
    ]
)


def alter_materialized(session: Session, statement: AlterMaterializedTable, source: Source) -> Result:
    """Runs ALTER MATERIALIZED TABLE. Raises NotFoundError, InvalidInputError, UnsupportedError, ConflictError."""
    match statement.action:
        case Suspend():
            return _suspend(session, find_materialized(session, statement.path, source))
        case Resume() as resume:
            return _resume(session, find_materialized(session, statement.path, source), resume)
        case Refresh() as refresh:
            return _refresh(session, find_materialized(session, statement.path, source), refresh, source)
        case Stage() | Compare() | Promote() | Rollback() | Discard() as action:
            return evolve(session, statement.path, action, source)
    return alter_declared(session, statement, source)


def drop_materialized(session: Session, statement: DropMaterializedTable, source: Source) -> Result:
    """Runs DROP MATERIALIZED TABLE: what refreshes it ends, its other versions go, its sources need keep nothing for it any more.

    Raises NotFoundError, InvalidInputError.
    """
    path = session.expand(statement.path, source)
    with placing(source, statement.path.span):
        session.objects.check_permanent(path, "table")
        try:
            _drop(session, path)
        except NotFoundError:
            if not statement.if_exists:
                raise
    return done()


def drop_database(session: Session, statement: DropDatabase, source: Source) -> Result:
    """Runs DROP DATABASE, with CASCADE its materialized tables first. Raises NotFoundError, InvalidInputError."""
    if statement.cascade:
        catalog, name = database_path(session, statement.path, source)
        with placing(source, statement.path.span):
            _drop_all(session, catalog, name)
    return drop_plain_database(session, statement, source)


def _suspend(session: Session, stored: StoredTable) -> Result:
    check_not_initializing(stored, "suspend")
    continuous = stored.definition.refresh_mode is RefreshMode.CONTINUOUS
    if stored.upkeep.status is RefreshStatus.SUSPENDED:
        raise InvalidInputError(_has_been(stored, "suspended"), kind="materialized-status")
    if not continuous:
        modify_workflow(stored.upkeep.handler, "suspend")
    # From here on nothing that its job still does can land.
    store(stored, replace(stored.upkeep, status=RefreshStatus.SUSPENDED))
    if continuous:
        stop_local(session, stored.upkeep.handler)
    return done()


def _resume(session: Session, stored: StoredTable, resume: Resume) -> Result:
    check_not_initializing(stored, "resume")
    upkeep = stored.upkeep
    active = upkeep.status is RefreshStatus.ACTIVATED
    continuous = stored.definition.refresh_mode is RefreshMode.CONTINUOUS
    if active and (not continuous or is_alive(session, upkeep.handler)):
        raise InvalidInputError(_has_been(stored, "resumed"), kind="materialized-status")
    if resume.options and not continuous:
        raise UnsupportedError(
            f"RESUME WITH is for the job of a continuous table, and {stored.path} has FULL refreshes: ALTER MATERIALIZED TABLE … "
            "SET the options, which hold for all of them",
            kind="unsupported",
        )
    resumed = replace(upkeep, status=RefreshStatus.ACTIVATED, since_ms=session.clock.now_ms())
    if not continuous and upkeep.handler is not None:
        modify_workflow(upkeep.handler, "resume")
        store(stored, resumed)
        return done()

    def act() -> None:
        with keeping_fresh(session, stored.path, stored.definition, resume.options) as prepared:
            if continuous:
                # One that cannot be refreshed stays suspended.
                refresh_newest(session, stored, resume.options)
            store(stored, replace(resumed, handler=prepared.handler))

    return run_act(session, Act(run=act, fills=continuous))


def _has_been(stored: StoredTable, change: str) -> str:
    if stored.definition.refresh_mode is RefreshMode.FULL:
        return f"Materialized table {stored.path} refresh workflow has been {change}."
    job = job_of(stored.upkeep.handler)
    return f"Materialized table {stored.path} continuous refresh job has been {change}, jobId is {job}."


def _refresh(session: Session, stored: StoredTable, refresh: Refresh, source: Source) -> Result:
    check_not_initializing(stored, "refresh")
    if refresh.partition is not None:
        with placing(source, refresh.span):
            check_partition(stored, refresh.partition)
    if refresh.verify and refresh.partition is not None:
        raise UnsupportedError(
            source.mark("VERIFY compares all rows of a table: leave PARTITION out", refresh.span), kind="unsupported"
        )

    def work(job: Job[Result]) -> Result:
        def once(current: StoredTable) -> RefreshReport:
            return refresh_now(session, current, partition=refresh.partition)

        report = refresh_until_landed(session, stored, once)
        return _reported(job.id, report, _verified(session, stored.path) if refresh.verify else None)

    return session.jobs.run(work)


def _verified(session: Session, path: ObjectPath) -> VerifyReport:
    inner, stored = refresh_session(session), open_materialized(session, path)
    with while_there(stored):
        return verify(inner, stored.table, stored.definition.query, spec=inner.spec(path, stored.table))


def _reported(job_id: str, report: RefreshReport, verified: VerifyReport | None) -> Result:
    row = {
        "job_id": job_id,
        "mode": report.mode,
        "reason": report.reason,
        "rows_in": report.rows_in,
        "rows_out": report.rows_out,
        "snapshot_id": report.snapshot_id,
        "missing": None if verified is None else verified.missing,
        "extra": None if verified is None else verified.extra,
    }
    columns = [pa.array([row[column.name]], column.type) for column in REFRESH_SCHEMA]
    return Result(pa.Table.from_arrays(columns, schema=REFRESH_SCHEMA), kind="snapshot", snapshot=report.snapshot)


def _drop_all(session: Session, catalog: str, database: str) -> None:
    try:
        paths = [path for path, _ in materialized_tables(session, catalog, database)]
    except NotFoundError:
        # The statement that drops the database decides whether that is an error.
        return
    dropped: list[str] = []
    for path in paths:
        try:
            if session.exists(path):
                # A version goes with the table that it is of.
                _drop(session, path)
        except TablestoreError as error:
            dropped_text = f"dropped before it: {', '.join(dropped)}" if dropped else "nothing was dropped before it"
            error.message = f"table {database}.{path.name} could not be dropped ({dropped_text}): {error.message}"
            error.args = (error.message,)
            raise
        dropped.append(f"{database}.{path.name}")


def _drop(session: Session, path: ObjectPath) -> None:
    try:
        stored = _whole(session, path)
    except FormatError as error:
        if error.kind != "materialized-definition":
            raise
        table = session.open_table(path)
        if isinstance(table, Table):
            # The definition does not say what refreshes the table: that finds out by itself.
            release_sources(refresh_session(session), table)
        session.factory.on_drop_table(stored_context(session, path), True)
        return
    drop_whole(session, stored)


def _whole(session: Session, path: ObjectPath) -> StoredTable:
    """The table, once nobody is about to make it: an older version of tablestore lets it be seen before."""
    stored = open_materialized(session, path)
    if stored.upkeep.status is RefreshStatus.INITIALIZING:
        catalog = session.catalogs.get(path.catalog)
        # Whoever was about to make it may have died long ago.
        sweep_dead(catalog)
        stored = open_materialized(session, path)
        if (creation := catalog.creation_of(path.in_catalog)) is not None:
            raise InvalidInputError(
                f"Current refresh status of materialized table {path} is initializing, skip the drop operation. Job "
                f"{creation.job_id} makes it; if that has died, it can be dropped an hour later, or after `tablestore clean`",
                kind="materialized-status",
            )
    return stored
