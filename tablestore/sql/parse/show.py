"""Parses SHOW and DESCRIBE.

    SHOW CATALOGS | JOBS [LIKE 'pattern']
    SHOW DATABASES | [TEMPORARY] TABLES | VIEWS | [USER|SYSTEM|ALL] FUNCTIONS | PROCEDURES [FROM|IN path]
         [[NOT] LIKE|ILIKE 'pattern']
    SHOW COLUMNS FROM|IN table [FROM|IN database] [LIKE 'pattern']
    SHOW SNAPSHOTS | TAGS | BRANCHES | OPTIONS | PARTITIONS [FROM|IN] table [PARTITION (…)] [WHERE condition]
    SHOW MATERIALIZED TABLES [FROM|IN path] [LIKE 'pattern']
    SHOW TBLPROPERTIES table [('key')]  |  SHOW CREATE TABLE|MATERIALIZED TABLE|VIEW|CATALOG name  |  SHOW CURRENT CATALOG|DATABASE
    DESCRIBE|DESC [TABLE|DATABASE|CATALOG] [EXTENDED|FORMATTED] path [PARTITION (…)]
    DESCRIBE|DESC HISTORY table [LIMIT n]

Patterns are handed on as they are.
"""

from dataclasses import replace

from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.literals import option_key, optional_partition
from tablestore.sql.source import Path
from tablestore.sql.statements.session import Describe, DescribeFunction, DescribeHistory, EngineStatement, Show, ShowKind

DATABASES = ("DATABASE", "SCHEMA", "NAMESPACE")
_LISTS = {
    "CATALOGS": ShowKind.CATALOGS,
    "DATABASES": ShowKind.DATABASES,
    "SCHEMAS": ShowKind.DATABASES,
    "NAMESPACES": ShowKind.DATABASES,
    "TABLES": ShowKind.TABLES,
    "VIEWS": ShowKind.VIEWS,
    "FUNCTIONS": ShowKind.FUNCTIONS,
    "PROCEDURES": ShowKind.PROCEDURES,
    "JOBS": ShowKind.JOBS,
}
_EVERYWHERE = (ShowKind.CATALOGS, ShowKind.JOBS)
_TEMPORARY = ("TABLES", "VIEWS", "FUNCTIONS")
_OF_TABLE = ("SNAPSHOTS", "TAGS", "BRANCHES", "OPTIONS", "PARTITIONS")


def show(cursor: Cursor) -> Show | EngineStatement:
    """Takes SHOW …."""
    start = cursor.next.start
    cursor.expect("SHOW")
    if cursor.accept("CREATE"):
        return _create(cursor)
    if cursor.accept("CURRENT"):
        kind = cursor.expect_one("CATALOG", *DATABASES)
        return Show(kind=ShowKind.CURRENT_CATALOG if kind == "CATALOG" else ShowKind.CURRENT_DATABASE)
    if cursor.accept("TBLPROPERTIES"):
        return _properties(cursor)
    if cursor.accept("COLUMNS"):
        return _columns(cursor)
    if (word := cursor.accept_one(*_OF_TABLE)) is not None:
        return _of_table(cursor, ShowKind(word))
    if cursor.sees("SYSTEM", "FUNCTIONS") or cursor.sees("ALL", "FUNCTIONS"):
        at, scope = cursor.at, cursor.expect_one("SYSTEM", "ALL")
        cursor.expect("FUNCTIONS")
        if cursor.sees_name() and cursor.next.key not in ("FROM", "IN", "LIKE", "ILIKE", "NOT"):
            # The name of one function, which Spark takes there.
            cursor.at = at
            cursor.fragment("FUNCTIONS")
            return EngineStatement(text=cursor.fragment_from(start))
        listed = _list(cursor, Show(kind=ShowKind.FUNCTIONS, system=scope == "SYSTEM"))
        return replace(listed, text=cursor.fragment_from(start))
    if cursor.sees("TABLE", "EXTENDED"):
        raise cursor.unsupported("SHOW TABLE EXTENDED is not supported; DESCRIBE TABLE EXTENDED shows one table")
    if cursor.sees("USER", "FUNCTIONS"):
        cursor.take()
        cursor.take()
        return _list(cursor, Show(kind=ShowKind.FUNCTIONS, user=True))
    temporary = cursor.accept("TEMPORARY")
    words: tuple[str, ...] = _TEMPORARY if temporary else tuple(_LISTS)
    if not temporary and cursor.accept("MATERIALIZED"):
        cursor.expect("TABLES")
        return _list(cursor, Show(kind=ShowKind.MATERIALIZED_TABLES))
    return _list(cursor, Show(kind=_LISTS[cursor.expect_one(*words)], temporary=temporary))


def describe(cursor: Cursor) -> Describe | DescribeFunction | DescribeHistory | EngineStatement:
    """Takes DESCRIBE …."""
    start = cursor.next.start
    cursor.expect_one("DESCRIBE", "DESC")
    if cursor.sees("FUNCTION") and (cursor.sees_name(1) or cursor.sees_text(1)):
        cursor.expect("FUNCTION")
        extended = cursor.sees_name(1) and cursor.accept("EXTENDED")
        if not cursor.sees_name() or cursor.sees("CASE") or cursor.sees("BETWEEN"):
            # Spark describes its operators too.
            cursor.fragment("the name of a function")
            return EngineStatement(text=cursor.fragment_from(start))
        path = cursor.path("the name of a function")
        return DescribeFunction(path=path, text=cursor.fragment_from(start), extended=extended)
    if cursor.sees_query() and not cursor.sees("TABLE"):
        raise cursor.unsupported("DESCRIBE of a query is not supported; EXPLAIN it, or create a TEMPORARY VIEW and DESCRIBE that")
    if cursor.sees_name(1) and cursor.next.key == "HISTORY" and cursor.ahead(1).key != "PARTITION":
        return _history(cursor)
    kind = "table"
    if cursor.sees_name(1) and (word := cursor.accept_one("TABLE", "CATALOG", *DATABASES)):
        kind = "database" if word in DATABASES else word.lower()
    extended = cursor.sees_name(1) and cursor.accept_one("EXTENDED", "FORMATTED") is not None
    most = {"table": 3, "database": 2, "catalog": 1}[kind]
    path = cursor.path(f"the name of a {kind}", most)
    partition = optional_partition(cursor) if kind == "table" else None
    return Describe(path=path, what=kind, extended=extended, partition=partition)


def _history(cursor: Cursor) -> DescribeHistory:
    cursor.expect("HISTORY")
    if cursor.sees("TABLE") and cursor.sees_name(1):
        cursor.take()
    path = cursor.path("the name of a table")
    return DescribeHistory(path=path, limit=cursor.whole_number("a number of snapshots") if cursor.accept("LIMIT") else None)


def _create(cursor: Cursor) -> Show:
    if cursor.accept("MATERIALIZED"):
        cursor.expect("TABLE")
        return Show(kind=ShowKind.CREATE_MATERIALIZED_TABLE, path=cursor.path("the name of a materialized table"))
    word = cursor.expect_one("TABLE", "VIEW", "CATALOG")
    path = cursor.path(f"the name of a {word.lower()}", 1 if word == "CATALOG" else 3)
    return Show(kind=ShowKind(f"CREATE {word}"), path=path)


def _properties(cursor: Cursor) -> Show:
    statement = Show(kind=ShowKind.OPTIONS, path=cursor.path("the name of a table"))
    if not cursor.accept("("):
        return statement
    key = option_key(cursor)
    cursor.expect(")")
    return replace(statement, key=key)


def _columns(cursor: Cursor) -> Show:
    cursor.expect_one("FROM", "IN")
    path = cursor.path("the name of a table")
    if cursor.accept_one("FROM", "IN"):
        database = cursor.path("the name of a database", most=2)
        if len(path.parts) > 1:
            raise cursor.wrong(f"expected the name of a table alone before the database, found {path}", path.span.start)
        path = Path((*database.parts, *path.parts), cursor.span_from(path.span.start))
    return _like(cursor, Show(kind=ShowKind.COLUMNS, path=path))


def _of_table(cursor: Cursor, kind: ShowKind) -> Show:
    if kind is ShowKind.OPTIONS and cursor.at_end():
        return Show(kind=kind)
    if cursor.sees_name(1):
        cursor.accept_one("FROM", "IN")
    path = cursor.path("the name of a table")
    partition = optional_partition(cursor) if kind is ShowKind.PARTITIONS else None
    where = cursor.fragment("a condition") if kind is ShowKind.PARTITIONS and cursor.accept("WHERE") else None
    return Show(kind=kind, path=path, partition=partition, where=where)


def _list(cursor: Cursor, statement: Show) -> Show:
    if statement.kind not in _EVERYWHERE and cursor.accept_one("FROM", "IN"):
        is_databases = statement.kind is ShowKind.DATABASES
        statement = replace(
            statement, path=cursor.path(f"the name of a {'catalog' if is_databases else 'database'}", 1 if is_databases else 2)
        )
    return _like(cursor, statement)


def _like(cursor: Cursor, statement: Show) -> Show:
    negated = cursor.accept("NOT")
    word = cursor.expect_one("LIKE", "ILIKE") if negated else cursor.accept_one("LIKE", "ILIKE")
    if word is None and not cursor.sees_text():
        return statement
    return replace(statement, like=cursor.string("a pattern"), like_ignores_case=word == "ILIKE", not_like=negated)
