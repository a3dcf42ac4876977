"""Reads the statements of the SQL files of a folder, in the order in which they run.

A folder declares: CREATE OR ALTER MATERIALIZED TABLE, and CREATE TABLE and CREATE DATABASE with IF NOT EXISTS for what they read.
Databases come first, then tables, then materialized tables, each behind those that its query reads; else the order of the files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.session.session import Session
from tablestore.environment.source import Source
from tablestore.errors import InvalidInputError, NotFoundError, StorageError, TablestoreError
from tablestore.sql.parse.script import split_script
from tablestore.sql.parse.statement import checked_text, parse_statement
from tablestore.sql.query.tablereferences import references_in
from tablestore.sql.query.tokenstream import tokens_of
from tablestore.sql.source import Fragment, Span
from tablestore.sql.statements.definition import CreateDatabase, CreateTable
from tablestore.sql.statements.materialized import CreateMaterializedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One statement. ``table`` is what it declares, None for a database; ``reads`` are tables that its query names."""

    file: str
    statement: CreateMaterializedTable | CreateTable | CreateDatabase
    source: Source
    table: ObjectPath | None = None
    reads: tuple[ObjectPath, ...] = ()

    @property
    def name(self) -> str:
        """The name of what it declares."""
        if isinstance(self.statement, CreateDatabase):
            return ".".join(self.statement.path.parts)
        return str(self.table)


def read_folder(session: Session, folder: Path) -> tuple[Declaration, ...]:
    """The statements of all ``*.sql`` files, in the order in which they run.

    Raises NotFoundError for no such folder, InvalidInputError for what a folder does not declare, for a table that is declared
    twice, and for a circle; StorageError for a file that cannot be read.
    """
    if not folder.is_dir():
        raise NotFoundError(f"{folder} is no folder: name the one that holds the .sql files", kind="no-such-file")
    files = sorted(folder.rglob("*.sql"))
    if not files:
        raise NotFoundError(f"{folder} holds no file that ends with .sql: nothing is declared there", kind="no-such-file")
    declarations = [declaration for file in files for declaration in _declarations(session, file, str(file.relative_to(folder)))]
    by_table: dict[ObjectPath, Declaration] = {}
    for declaration in declarations:
        if declaration.table is not None and (other := by_table.setdefault(declaration.table, declaration)) is not declaration:
            raise InvalidInputError(
                f"{declaration.table} is declared twice: in {other.file} and in {declaration.file}; keep one of them",
                kind="declared-twice",
            )
    first = [
        declaration
        for kind in (CreateDatabase, CreateTable)
        for declaration in declarations
        if isinstance(declaration.statement, kind)
    ]
    tables = {
        path: declaration for path, declaration in by_table.items() if isinstance(declaration.statement, CreateMaterializedTable)
    }
    return (*first, *_in_order(tables))


def in_file(file: str, error: TablestoreError) -> TablestoreError:
    """The error with the file that it is about."""
    error.message = f"{file}: {error.message}"
    error.args = (error.message,)
    return error


def _declarations(session: Session, file: Path, name: str) -> Sequence[Declaration]:
    try:
        text = checked_text(file.read_text("utf-8"), "SQL text")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{name}: expected a text in UTF-8: {error}", kind="encoding") from error
    except OSError as error:
        raise StorageError(f"cannot read {file}: {error.strerror}", kind="file") from error
    source = Source(text)
    try:
        return [_declaration(session, name, source, piece) for piece in split_script(text, session.settings.dialect)]
    except TablestoreError as error:
        raise in_file(name, error) from error


def _declaration(session: Session, file: str, source: Source, piece: Fragment) -> Declaration:
    span = piece.span
    statement = parse_statement(source.text, span, piece.dialect)
    match statement:
        case CreateMaterializedTable(or_alter=True):
            references = references_in(tokens_of(statement.query))
            return Declaration(
                file=file,
                statement=statement,
                source=source,
                table=session.expand(statement.path, source),
                reads=tuple(session.expand(reference.path).plain for reference in references if reference.call is None),
            )
        case CreateTable(if_not_exists=True, temporary=False, query=None):
            return Declaration(file=file, statement=statement, source=source, table=session.expand(statement.path, source))
        case CreateDatabase(if_not_exists=True):
            return Declaration(file=file, statement=statement, source=source)
    raise InvalidInputError(
        source.mark(
            "expected CREATE OR ALTER MATERIALIZED TABLE, or CREATE TABLE or CREATE DATABASE with IF NOT EXISTS: a folder declares "
            "what is to be there, and can be applied again and again",
            Span(span.start, span.start + 1),
        ),
        kind="not-declarative",
    )


def _in_order(tables: Mapping[ObjectPath, Declaration]) -> Sequence[Declaration]:
    sorter = TopologicalSorter(
        {path: [source for source in declared.reads if source in tables] for path, declared in tables.items()}
    )
    try:
        return [tables[path] for path in sorter.static_order()]
    except CycleError as error:
        circle = " reads ".join(f"{path} ({tables[path].file})" for path in reversed(error.args[1]))
        raise InvalidInputError(f"materialized tables read each other: {circle}", kind="circle") from error
