"""Parses INSERT, DELETE and UPDATE.

    [WITH name AS (…), …] INSERT INTO|OVERWRITE [TABLE] path [PARTITION (…)] [(column, …) | BY NAME] query
    DELETE FROM path [[AS] alias] [WHERE condition]
    UPDATE path [[AS] alias] SET column = expression | DEFAULT, … [WHERE condition]

Queries, conditions and expressions are handed on as they are.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from tablestore.sql.parse.cursor import Cursor, blanked
from tablestore.sql.parse.literals import constant, partition_column
from tablestore.sql.source import Fragment, Span
from tablestore.sql.statements.rows import Assignment, Delete, Insert, Query, Update


def query_or_insert(cursor: Cursor) -> Query | Insert:
    """Takes what begins with SELECT, VALUES, TABLE, FROM, a bracket or WITH."""
    start = cursor.next.start
    cursor.read_query()
    first = cursor.next.key
    at = cursor.at
    if first == "WITH":
        _skip_names(cursor)
        if cursor.next.key in ("DELETE", "UPDATE", "MERGE"):
            raise cursor.unsupported(f"WITH before {cursor.next.key} is not supported; write the query where its name is used")
        if cursor.next.key == "INSERT":
            verb = cursor.next.start
            statement = insert(cursor)
            spared = Span(verb, statement.query.span.start)
            whole = replace(cursor.fragment_from(start), dialect=statement.query.dialect)
            return replace(statement, query=blanked(whole, spared))
        cursor.at = at
    if first == "FROM":
        _refuse_from_insert(cursor)
    return Query(query=cursor.query())


def insert(cursor: Cursor) -> Insert:
    """Takes INSERT …."""
    cursor.expect("INSERT")
    overwrite = cursor.expect_one("INTO", "OVERWRITE") == "OVERWRITE"
    if cursor.sees("TABLE") and cursor.sees_name(1):
        cursor.take()
    if cursor.sees("DIRECTORY") or cursor.sees("LOCAL", "DIRECTORY"):
        raise cursor.unsupported(
            "INSERT into a directory is not supported; CREATE TABLE … USING a format with LOCATION, and INSERT into it"
        )
    target = cursor.path("the name of a table")
    if cursor.sees("REPLACE"):
        raise cursor.unsupported("INSERT … REPLACE is not supported; DELETE the rows first, or INSERT OVERWRITE … PARTITION")
    partition = _partition(cursor) if cursor.accept("PARTITION") else None
    if cursor.sees("IF", "NOT", "EXISTS"):
        raise cursor.unsupported("INSERT … IF NOT EXISTS is not supported; look with SHOW PARTITIONS")
    columns: tuple[str, ...] | None = None
    by_name = cursor.accept("BY", "NAME")
    if not by_name and cursor.sees("(") and not _bracketed_query(cursor):
        columns = cursor.names("the name of a column")
    return Insert(target=target, query=cursor.query(), overwrite=overwrite, partition=partition, columns=columns, by_name=by_name)


def delete(cursor: Cursor) -> Delete:
    """Takes DELETE FROM …."""
    cursor.expect("DELETE", "FROM")
    target = cursor.path("the name of a table")
    if cursor.sees("USING"):
        raise cursor.unsupported("DELETE … USING is not supported; write WHERE EXISTS (…), or MERGE INTO")
    target_alias = alias(cursor, "WHERE")
    return Delete(target=target, alias=target_alias, where=_where(cursor))


def update(cursor: Cursor) -> Update:
    """Takes UPDATE …."""
    cursor.expect("UPDATE")
    target = cursor.path("the name of a table")
    target_alias = alias(cursor, "SET")
    cursor.expect("SET")
    changes = assignments(cursor, lambda: cursor.sees("WHERE") or _sees_from(cursor))
    if cursor.sees("FROM"):
        raise cursor.unsupported("UPDATE … FROM is not supported; write MERGE INTO")
    return Update(target=target, assignments=changes, alias=target_alias, where=_where(cursor))


def alias(cursor: Cursor, *not_one: str) -> str | None:
    """Takes ``[AS] name``; the words ``not_one`` are no alias."""
    if cursor.accept("AS"):
        return cursor.name("an alias")
    return cursor.name("an alias") if cursor.sees_name() and cursor.next.key not in not_one else None


def assignments(cursor: Cursor, stops: Callable[[], bool]) -> tuple[Assignment, ...]:
    """Takes ``column = expression, …`` up to where ``stops`` holds."""
    by_column: dict[tuple[str, ...], Assignment] = {}
    while True:
        start = cursor.next.start
        column = cursor.dotted("a column").parts
        cursor.expect("=")
        value = assigned(cursor, lambda: cursor.next.key == "," or stops())
        if column in by_column:
            raise cursor.wrong(f"the column {'.'.join(column)!r:.80} is set twice", start)
        by_column[column] = Assignment(column=column, value=value, span=cursor.span_from(start))
        if not cursor.accept(","):
            return tuple(by_column.values())


def assigned(cursor: Cursor, stops: Callable[[], bool]) -> Fragment | None:
    """Takes an expression; None for the word DEFAULT alone."""
    value = cursor.fragment("an expression or DEFAULT", stops)
    return None if value.text.upper() == "DEFAULT" else value


def _sees_from(cursor: Cursor) -> bool:
    return cursor.sees("FROM") and cursor.ahead(-1).key != "DISTINCT"


def _where(cursor: Cursor) -> Fragment | None:
    return cursor.fragment("a condition") if cursor.accept("WHERE") else None


def _partition(cursor: Cursor) -> Mapping[str, Fragment | None]:
    spec: dict[str, Fragment | None] = {}
    for _ in cursor.listed():
        column = partition_column(cursor, spec)
        spec[column] = _partition_value(cursor) if cursor.accept("=") else None
    return spec


def _partition_value(cursor: Cursor) -> Fragment:
    start = cursor.next.start
    if cursor.sees(":"):
        cursor.take()
        cursor.name("the name of a parameter")
    elif cursor.sees("?"):
        cursor.take()
    else:
        constant(cursor)
    return cursor.fragment_from(start)


def _bracketed_query(cursor: Cursor) -> bool:
    at = cursor.at
    cursor.take()
    is_query = cursor.sees_query()
    cursor.at = at
    return is_query


def _skip_names(cursor: Cursor) -> None:
    """Moves behind ``WITH name [(…)] AS (…), …``, to the word that the names are for."""
    cursor.expect("WITH")
    while not cursor.at_end():
        ends = cursor.sees("(")
        cursor.skip()
        if ends and not cursor.sees(",") and not cursor.sees("AS") and not cursor.sees("MAX"):
            return


def _refuse_from_insert(cursor: Cursor) -> None:
    at = cursor.at
    while not cursor.at_end() and cursor.next.key != ")":
        if cursor.sees("INSERT", "INTO") or cursor.sees("INSERT", "OVERWRITE"):
            raise cursor.unsupported("FROM … INSERT is not supported; write INSERT INTO … SELECT …, several in a STATEMENT SET")
        cursor.skip()
    cursor.at = at
