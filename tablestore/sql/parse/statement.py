"""Parses a statement; its first word decides of which kind it is.

What begins like a query is one and is not looked into: only brackets, texts and comments have to close. Verbs that are an engine's
own business go to it as they are. Everything else is read in full, or refused with the place, what was expected and what was found.
"""

from typing import TYPE_CHECKING

from tablestore.errors import InvalidInputError, TablestoreError
from tablestore.lazy import imported
from tablestore.names import did_you_mean
from tablestore.sql.parse.cursor import DUCKDB_QUERY_WORDS, Cursor
from tablestore.sql.parse.otherwords import Reach, add_our_way
from tablestore.sql.parse.rows import insert, query_or_insert
from tablestore.sql.parse.tokens import Kind
from tablestore.sql.source import Fragment, Path, Span
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.statements.rows import ExecuteStatementSet, Insert

if TYPE_CHECKING:
    from tablestore.sql.statements.anystatement import Explain, Statement
    from tablestore.sql.statements.session import EngineStatement, RefreshTable

# The parser of each statement by its first word: a module beside this one, and the function in it.
_VERBS = {
    "SELECT": "rows:query_or_insert",
    "WITH": "rows:query_or_insert",
    "VALUES": "rows:query_or_insert",
    "TABLE": "rows:query_or_insert",
    "FROM": "rows:query_or_insert",
    "(": "rows:query_or_insert",
    "INSERT": "rows:insert",
    "DELETE": "rows:delete",
    "UPDATE": "rows:update",
    "MERGE": "merge:merge",
    "CREATE": "definition:create",
    "REPLACE": "definition:create",
    "DROP": "definition:drop",
    "ALTER": "alter:alter",
    "RESTORE": "alter:restore",
    "TRUNCATE": "alter:truncate",
    "COMMENT": "alter:comment_on",
    "SHOW": "show:show",
    "DESCRIBE": "show:describe",
    "DESC": "show:describe",
    "USE": "session:use",
    "SET": "session:set_option",
    "RESET": "session:reset",
    "CALL": "session:call",
}
_MODES = ("EXTENDED", "CODEGEN", "COST", "FORMATTED", "LOGICAL")
_ENGINES = (
    *("CACHE", "UNCACHE", "CLEAR", "REFRESH", "ANALYZE", "ADD", "LIST", "DECLARE"),
    *("INSTALL", "LOAD", "ATTACH", "DETACH", "PRAGMA", "SUMMARIZE"),
)
# What others list, and Spark, which lists files and jars, does not.
_LISTED = ("TABLES", "DATABASES", "SCHEMAS")
_FILES = "tablestore import loads files into a table, tablestore table read --output writes a table's rows into a file"
_UNSUPPORTED = {
    "OPTIMIZE": "write ALTER TABLE … COMPACT",
    "CHECKPOINT": "a statement that has ended is on disk",
    "VACUUM": "write CALL sys.expire_snapshots(…)",
    "COPY": f"write INSERT INTO … SELECT …; {_FILES}",
    "EXPORT": _FILES,
    "IMPORT": _FILES,
    "UNLOAD": _FILES,
    "MSCK": "partitions come with their rows",
    "REPAIR": "partitions come with their rows",
    "GRANT": "the store's own permissions hold",
    "REVOKE": "the store's own permissions hold",
    "START": "each statement is a transaction of its own; several INSERTs go together in a STATEMENT SET",
    "COMMIT": "each statement is a transaction of its own; several INSERTs go together in a STATEMENT SET",
    "ROLLBACK": "each statement is a transaction of its own; RESTORE TABLE … TO VERSION AS OF … goes back to a snapshot",
}
# The names that commands have in the shells of other databases, behind a dot or a backslash.
_SHELL_COMMANDS = {
    **dict.fromkeys(("TABLES", "DT"), "SHOW TABLES"),
    **dict.fromkeys(("DATABASES", "L"), "SHOW DATABASES"),
    **dict.fromkeys(("SCHEMA", "D"), "SHOW CREATE TABLE … or DESCRIBE …"),
    **dict.fromkeys(("COPY", "IMPORT", "OUTPUT", "ONCE"), _FILES),
}


def parse_statement(
    text: str, span: Span | None = None, dialect: SqlDialect = SqlDialect.SPARK, reach: Reach = Reach.ALL
) -> "Statement":
    """The one statement of a text, or of a part of it; a ``;`` may end it. All places count from the start of ``text``.

    ``dialect``: the words of its query, where one gives rows to the statement; all else is read in tablestore's own.
    ``reach``: what the session runs, so that a message names no way that it refuses.

    Raises InvalidInputError of kind ``sql-syntax``, UnsupportedError of kind ``sql``.
    """
    cursor = Cursor(checked_text(text, "SQL text"), span, dialect)
    try:
        if cursor.at_end():
            raise cursor.wrong("expected a statement, found none")
        statement = _statement(cursor)
        if cursor.sees(";"):
            while cursor.accept(";"):
                pass
            if cursor.next.kind is not Kind.END:
                raise cursor.wrong("expected one statement, found another behind the ';'; a script is run statement by statement")
        cursor.expect_end()
    except TablestoreError as error:
        add_our_way(error, text if span is None else text[span.start : span.end], reach)
        raise
    return statement


def parse_path(text: str) -> Path:
    """The name of an object, one to three parts with dots between them, backticks allowed. Raises InvalidInputError."""
    cursor = Cursor(checked_text(text, "a name as text, such as orders or shop.orders"))
    path = cursor.path("a name")
    cursor.expect_end()
    return path


def checked_text(text: object, what: str) -> str:
    """The text itself. Raises InvalidInputError for anything but a text, which Python may hand over."""
    if not isinstance(text, str):
        raise InvalidInputError(f"expected {what}, found {type(text).__qualname__}", kind="sql-syntax")
    return text


def _statement(cursor: Cursor) -> "Statement":
    verb = cursor.next.key
    if cursor.dialect is SqlDialect.DUCKDB and verb in DUCKDB_QUERY_WORDS:
        return query_or_insert(cursor)
    if verb in _VERBS:
        statement: Statement = imported(f"tablestore.sql.parse.{_VERBS[verb]}")(cursor)
        return statement
    if verb == "EXPLAIN":
        return _explain(cursor)
    if verb == "EXECUTE" or cursor.sees("BEGIN", "STATEMENT"):
        return _execute(cursor)
    if verb == "ANALYZE" and not (cursor.sees("ANALYZE", "TABLE") or cursor.sees("ANALYZE", "TABLES")):
        cursor.take()
        raise cursor.error("TABLE")
    if verb == "LIST" and cursor.ahead(1).key in _LISTED:
        raise cursor.wrong(f"expected a statement, found 'LIST {cursor.ahead(1).key}'")
    if cursor.sees("ANALYZE", "TABLE") and cursor.sees_name(2):
        analyzed: Statement = imported("tablestore.sql.parse.alter:analyze")(cursor)
        return analyzed
    if cursor.sees("REFRESH", "TABLE") and cursor.sees_name(2):
        return _refresh(cursor)
    if verb in _ENGINES:
        return _engine_statement(cursor.fragment("a statement"))
    if verb in _UNSUPPORTED:
        raise cursor.unsupported(f"{verb} is not supported; {_UNSUPPORTED[verb]}")
    if verb == "BEGIN":
        raise cursor.unsupported("BEGIN is not supported; several INSERTs go together in EXECUTE STATEMENT SET BEGIN … END")
    if verb in (".", "\\"):
        cursor.take()
        instead = _SHELL_COMMANDS.get(cursor.next.key, "SHOW TABLES, DESCRIBE …, SHOW CREATE TABLE …")
        raise cursor.wrong(f"expected a statement, found {verb}{cursor.next.text[:40]}; here it is {instead}")
    if not cursor.sees_name():
        raise cursor.error("a statement")
    near = did_you_mean(verb, (*_VERBS, "EXPLAIN", "EXECUTE", *_ENGINES, *_UNSUPPORTED))
    raise cursor.wrong(f"expected a statement, found {cursor.next.text[:40]!r}{near}")


def _engine_statement(text: Fragment) -> "EngineStatement":
    from tablestore.sql.statements.session import EngineStatement

    return EngineStatement(text=text)


def _refresh(cursor: Cursor) -> "RefreshTable":
    from tablestore.sql.statements.session import RefreshTable

    start = cursor.next.start
    cursor.expect("REFRESH", "TABLE")
    path = cursor.path("the name of a table")
    return RefreshTable(path=path, text=cursor.fragment_from(start))


def _explain(cursor: Cursor) -> "Explain":
    from tablestore.sql.statements.anystatement import Explain

    cursor.expect("EXPLAIN")
    mode = None
    if not cursor.accept("PLAN", "FOR"):
        mode = cursor.accept_one(*_MODES)
    if cursor.sees("ANALYZE") and not cursor.sees("ANALYZE", "TABLE"):
        raise cursor.wrong("expected a statement, found 'ANALYZE'")
    if cursor.sees("EXPLAIN"):
        raise cursor.wrong("expected a statement other than EXPLAIN")
    statement = _statement_set(cursor) if cursor.accept("STATEMENT", "SET") else _statement(cursor)
    return Explain(statement=statement, mode=None if mode is None else mode.lower())


def _execute(cursor: Cursor) -> "ExecuteStatementSet | EngineStatement":
    start = cursor.next.start
    if cursor.accept("BEGIN", "STATEMENT", "SET"):
        cursor.expect(";")
        return _inserts(cursor)
    cursor.expect("EXECUTE")
    if cursor.sees("IMMEDIATE"):
        cursor.fragment("a statement")
        return _engine_statement(cursor.fragment_from(start))
    cursor.expect("STATEMENT", "SET")
    return _statement_set(cursor)


def _statement_set(cursor: Cursor) -> ExecuteStatementSet:
    cursor.expect("BEGIN")
    return _inserts(cursor)


def _inserts(cursor: Cursor) -> ExecuteStatementSet:
    inserts: list[Insert] = []
    while not inserts or not cursor.accept("END"):
        start = cursor.next.start
        if cursor.next.key not in ("INSERT", "WITH"):
            raise cursor.error("INSERT")
        statement = query_or_insert(cursor) if cursor.sees("WITH") else insert(cursor)
        if not isinstance(statement, Insert):
            raise cursor.wrong("a STATEMENT SET holds INSERTs, found a query", start)
        inserts.append(statement)
        cursor.expect(";")
    return ExecuteStatementSet(inserts=tuple(inserts))
