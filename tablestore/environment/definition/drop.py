"""Runs DROP TABLE, VIEW and FUNCTION, of permanent objects and (TEMPORARY) of those of the session.

While a temporary object has the name of a permanent one, this is not dropped.
"""

from dataclasses import replace

from tablestore.environment.definition.functions import drop_function
from tablestore.environment.definition.tabledefinition import definition_of
from tablestore.environment.managed.factory import ManagedTableContext
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.result import Result, done
from tablestore.environment.session.objects import TemporaryTable, kind_of
from tablestore.environment.session.session import Session, made_by_query, placing
from tablestore.environment.source import NO_SOURCE, Source
from tablestore.errors import FormatError, InvalidInputError, NotFoundError, TablestoreError
from tablestore.options import is_materialized
from tablestore.sql.source import NOWHERE
from tablestore.sql.statements.definition import Drop
from tablestore.table.table import Table


def drop(session: Session, statement: Drop, source: Source) -> Result:
    """Runs DROP [TEMPORARY] TABLE, VIEW, FUNCTION. Raises NotFoundError, InvalidInputError, UnsupportedError."""
    if statement.what == "function":
        return drop_function(session, statement, source)
    return (_drop_temporary if statement.temporary else _drop_permanent)(session, statement, source)


def _drop_permanent(session: Session, statement: Drop, source: Source) -> Result:
    path = session.expand(statement.path, source)
    with placing(source, statement.path.span):
        session.objects.check_permanent(path, statement.what)
        kept = _kept_kind(session, path)
        if kept == statement.what and session.kept.drop(path):
            return done()
        if statement.what == "view":
            return _no_view(session, path, statement)
        if kept == "view":
            raise InvalidInputError(f"{path} is a view: DROP VIEW drops it", kind="not-a-table")
    if path.suffix:
        raise InvalidInputError(
            source.mark(f"{path} is a part of a table; CALL delete_branch deletes a branch", statement.path.span),
            kind="invalid-name",
        )
    with placing(source, statement.path.span):
        drop_managed(session, path, ignore_if_not_exists=statement.if_exists)
    return done()


def _kept_kind(session: Session, path: ObjectPath) -> str | None:
    """``table`` or ``view``, as which a catalog keeps a definition; None if it keeps none. One that cannot be read is both."""
    try:
        kept = session.kept.find(path)
    except FormatError:
        return "table"
    return None if kept is None else kind_of(kept)


def _no_view(session: Session, path: ObjectPath, statement: Drop) -> Result:
    if path.catalog in session.catalogs.names() and session.exists(path):
        raise InvalidInputError(f"{path} is a table: DROP TABLE drops it", kind="not-a-view")
    if statement.if_exists:
        return done()
    raise NotFoundError(
        f"View with identifier '{path.quoted}' does not exist. SHOW VIEWS lists those that do; DROP VIEW IF EXISTS takes one that "
        "does not",
        kind="no-such-view",
    )


def _drop_temporary(session: Session, statement: Drop, source: Source) -> Result:
    path = session.expand(statement.path, source)
    with placing(source, statement.path.span):
        if not drop_temporary_object(session, path, statement.what) and not statement.if_exists:
            raise NotFoundError(
                f"{statement.what.capitalize()} with identifier '{path.quoted}' does not exist.", kind=f"no-such-{statement.what}"
            )
    return done()


def drop_temporary_object(session: Session, path: ObjectPath, kind: str) -> bool:
    """Drops a temporary ``table``, with the storage of a managed one, or a temporary ``view``; true if there was one."""
    existing = session.objects.temporary(path)
    if existing is None or kind_of(existing) != kind:
        return False
    if isinstance(existing, TemporaryTable):
        session.factory.on_drop_table(stored_context(session, existing.storage, temporary=True), True)
    session.objects.drop_temporary(path)
    return True


def drop_managed(session: Session, path: ObjectPath, *, ignore_if_not_exists: bool) -> None:
    """Drops a managed table and its log. Raises NotFoundError."""
    try:
        table = session.open_table(path)
    except NotFoundError as error:
        if error.kind not in ("no-such-table", "no-such-database", "no-such-catalog"):
            raise
        if ignore_if_not_exists:
            return
        raise NotFoundError(
            f"{error.message}. Suggestion: please try `DROP TABLE IF EXISTS` ddl instead.", kind=error.kind
        ) from error
    except TablestoreError:
        # A table that cannot be read can still be dropped.
        table = None
    if isinstance(table, Table) and is_materialized(table.options()):
        raise made_by_query(path, "DROP TABLE", NO_SOURCE, NOWHERE)
    session.factory.on_drop_table(stored_context(session, path), ignore_if_not_exists)


def stored_context(session: Session, path: ObjectPath, *, temporary: bool = False) -> ManagedTableContext:
    """The context of the factory for a table that is there: what is stored, as far as it can be read."""
    plain = ManagedTableContext(
        path=path,
        catalog=session.catalogs.get(path.catalog),
        options={},
        configuration=session.settings.all(),
        is_temporary=temporary,
    )
    try:
        table = session.open_table(path)
    except TablestoreError:
        return plain
    if not isinstance(table, Table):
        return plain
    definition = definition_of(table)
    return replace(
        plain,
        options=table.options(),
        fields=definition.fields,
        primary_key=definition.primary_key,
        partition_by=definition.partition_by,
        comment=definition.comment,
    )
