"""Plans what a folder of SQL files would change, and changes it.

    plan_folder    each statement beside what is there; nothing is done
    apply_folder   the same, statement by statement, and each that changes something runs

With ``blue_green`` a table whose query, key or partitions change is not altered: its new version is staged beside it.

A plan cannot look behind what is still to be made: a table that reads one that is new or gets other columns may be planned only
when that is there. Applying a folder again changes nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.result import Result
from tablestore.environment.session.session import Session, placing
from tablestore.errors import TablestoreError
from tablestore.materialized.altering import plan_act
from tablestore.materialized.declaring import explain_materialized, plan_declared
from tablestore.materialized.due import materialized_tables
from tablestore.materialized.evolution.bluegreen import stage_definition
from tablestore.materialized.folder.sqlfolder import Declaration, in_file, read_folder
from tablestore.materialized.storing import open_materialized
from tablestore.materialized.tableversions import Role, is_version, look_for_version
from tablestore.sql.statements.definition import CreateDatabase, CreateTable
from tablestore.sql.statements.materialized import CreateMaterializedTable


class Action(StrEnum):
    """The action of a statement."""

    CREATE = "create"
    ALTER = "alter"
    STAGE = "stage"
    NOTHING = "no change"
    UNKNOWN = "known later"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStatement:
    """One statement of the folder. ``changes``: one line each."""

    file: str
    name: str
    action: Action
    changes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{self.action}: {self.name} ({self.file})", *(f"  {line}" for line in self.changes)])


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderPlan:
    """All statements in their order. ``undeclared``: materialized tables of their databases that no file declares, but for
    versions beside one."""

    statements: tuple[PlannedStatement, ...]
    undeclared: tuple[ObjectPath, ...] = ()

    @property
    def changes(self) -> tuple[PlannedStatement, ...]:
        """The statements that do something."""
        return tuple(statement for statement in self.statements if statement.action is not Action.NOTHING)


def plan_folder(session: Session, folder: Path, *, blue_green: bool = False) -> FolderPlan:
    """The changes that the folder would make. Raises as :func:`read_folder`, and what a statement would raise, with its file."""
    declared = read_folder(session, folder)
    planned: list[PlannedStatement] = []
    pending: set[ObjectPath | str] = set()
    for declaration in declared:
        statement = _planned(session, declaration, pending, blue_green=blue_green)
        planned.append(statement)
        if statement.action is not Action.NOTHING:
            pending.add(declaration.name if declaration.table is None else declaration.table)
    return FolderPlan(statements=tuple(planned), undeclared=_undeclared(session, declared))


def apply_folder(
    session: Session, folder: Path, run: Callable[[Declaration], Result], *, blue_green: bool = False
) -> Iterator[PlannedStatement]:
    """Makes all that the folder declares; ``run`` runs a statement. Each of them once it is done.

    Raises as :func:`plan_folder`, and what the statements raise; what ran before stays.
    """
    for declaration in read_folder(session, folder):
        planned = _planned(session, declaration, set(), blue_green=blue_green)
        if planned.action is not Action.NOTHING:
            try:
                if planned.action is Action.STAGE:
                    _stage(session, declaration)
                elif (job := run(declaration).job) is not None:
                    job.result()
            except TablestoreError as error:
                raise in_file(declaration.file, error) from error
        yield planned


def _planned(session: Session, declaration: Declaration, pending: set[ObjectPath | str], *, blue_green: bool) -> PlannedStatement:
    try:
        action, changes = _look(session, declaration, blue_green=blue_green)
    except TablestoreError as error:
        waits = [str(path) for path in declaration.reads if path in pending]
        if declaration.table is not None and not waits and declaration.table.database in pending:
            waits = [f"the database {declaration.table.database}"]
        if not waits:
            raise in_file(declaration.file, error) from error
        exists = declaration.table is not None and declaration.table.database not in pending and session.exists(declaration.table)
        action = Action.UNKNOWN if exists else Action.CREATE
        changes = (f"once {', '.join(waits)} is as declared",)
    return PlannedStatement(file=declaration.file, name=declaration.name, action=action, changes=changes)


def _look(session: Session, declaration: Declaration, *, blue_green: bool) -> tuple[Action, tuple[str, ...]]:
    match declaration.statement:
        case CreateDatabase(path=path):
            catalog, name = (session.catalogs.current, *path.parts)[-2:]
            return (Action.NOTHING, ()) if name in session.catalogs.databases(catalog) else (Action.CREATE, ())
        case CreateTable():
            assert declaration.table is not None, "a table has a name"
            return (Action.NOTHING, ()) if session.exists(declaration.table) else (Action.CREATE, ())
    assert declaration.table is not None, "a table has a name"
    if not session.exists(declaration.table):
        return Action.CREATE, tuple(explain_materialized(session, declaration.statement, declaration.source).splitlines()[1:])
    # Refuses what is no materialized table.
    stored = open_materialized(session, declaration.table)
    plan = plan_declared(session, declaration.statement, declaration.source, stored)
    if not plan.changes:
        return Action.NOTHING, ()
    if not (blue_green and plan.changes_rows):
        # Refuses what cannot be done in the table's place.
        plan_act(session, stored, plan)
        return Action.ALTER, tuple(map(str, plan.changes))
    staged = look_for_version(session, stored, Role.STAGED)
    if staged is not None and not plan_declared(session, declaration.statement, declaration.source, staged).changes:
        return Action.NOTHING, ("it is staged: COMPARE it, then PROMOTE it",)
    return Action.STAGE, tuple(map(str, plan.changes))


def _stage(session: Session, declaration: Declaration) -> None:
    assert declaration.table is not None and isinstance(declaration.statement, CreateMaterializedTable), "only these are staged"
    stored = open_materialized(session, declaration.table)
    plan = plan_declared(session, declaration.statement, declaration.source, stored)
    with placing(declaration.source, declaration.statement.path.span):
        stage_definition(session, stored, plan.new)


def _undeclared(session: Session, declared: Sequence[Declaration]) -> tuple[ObjectPath, ...]:
    tables = {declaration.table for declaration in declared if declaration.table is not None}
    places = sorted({(path.catalog, path.database) for path in tables})
    return tuple(
        path
        for catalog, database in places
        if database in session.catalogs.databases(catalog)
        for path, table in materialized_tables(session, catalog, database)
        if path not in tables and not is_version(table)
    )
