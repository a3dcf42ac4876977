"""Which statement is a text? The first word decides.

What begins like a query is one and is not looked into: only brackets, texts and comments have to close. Verbs that are an engine's
own business go to it as they are. Everything else is read in full, or refused with the place, what was expected and what was found.
"""

from collections.abc import Callable

from tablestore.names import did_you_mean
from tablestore.sql.parse.alter import alter, comment_on, truncate
from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.definition import create, drop
from tablestore.sql.parse.merge import merge
from tablestore.sql.parse.rows import delete, insert, query_or_insert, update
from tablestore.sql.parse.session import call, reset, set_option, use
from tablestore.sql.parse.show import describe, show
from tablestore.sql.parse.tokens import Kind
from tablestore.sql.source import Path, Span
from tablestore.sql.statements.rows import Insert, StatementSet
from tablestore.sql.statements.session import EngineStatement, Explain, Statement

_VERBS: dict[str, Callable[[Cursor], Statement]] = {
    "SELECT": query_or_insert,
    "WITH": query_or_insert,
    "VALUES": query_or_insert,
    "TABLE": query_or_insert,
    "FROM": query_or_insert,
    "(": query_or_insert,
    "INSERT": insert,
    "DELETE": delete,
    "UPDATE": update,
    "MERGE": merge,
    "CREATE": create,
    "REPLACE": create,
    "DROP": drop,
    "ALTER": alter,
    "TRUNCATE": truncate,
    "COMMENT": comment_on,
    "SHOW": show,
    "DESCRIBE": describe,
    "DESC": describe,
    "USE": use,
    "SET": set_option,
    "RESET": reset,
    "CALL": call,
}
_MODES = ("EXTENDED", "CODEGEN", "COST", "FORMATTED", "LOGICAL")
_ENGINES = (
    *("CACHE", "UNCACHE", "CLEAR", "REFRESH", "ANALYZE", "ADD", "LIST", "DECLARE"),
    *("INSTALL", "LOAD", "ATTACH", "DETACH", "PRAGMA", "SUMMARIZE"),
)
_UNSUPPORTED = {
    "OPTIMIZE": "write ALTER TABLE … COMPACT",
    "VACUUM": "write CALL sys.expire_snapshots(…)",
    "COPY": "write INSERT INTO … SELECT …",
    "MSCK": "partitions come with their rows",
    "REPAIR": "partitions come with their rows",
    "GRANT": "the store's own permissions hold",
    "REVOKE": "the store's own permissions hold",
    "START": "each statement is a transaction of its own; several INSERTs go together in a STATEMENT SET",
    "COMMIT": "each statement is a transaction of its own; several INSERTs go together in a STATEMENT SET",
    "ROLLBACK": "each statement is a transaction of its own; CALL sys.rollback_to(…) goes back to a snapshot",
}


def parse_statement(text: str, span: Span | None = None) -> Statement:
    """The one statement of a text, or of a part of it; a ``;`` may end it. All places count from the start of ``text``.

    Raises InvalidInputError of kind ``sql-syntax``, UnsupportedError of kind ``sql``.
    """
    cursor = Cursor(text, span)
    if cursor.at_end():
        raise cursor.wrong("expected a statement, found none")
    statement = _statement(cursor)
    if cursor.sees(";"):
        while cursor.accept(";"):
            pass
        if cursor.next.kind is not Kind.END:
            raise cursor.wrong("expected one statement, found another behind the ';'; a script is run statement by statement")
    cursor.expect_end()
    return statement


def parse_path(text: str) -> Path:
    """The name of an object, one to three parts with dots between them, backticks allowed. Raises InvalidInputError."""
    cursor = Cursor(text)
    path = cursor.path("a name")
    cursor.expect_end()
    return path


def _statement(cursor: Cursor) -> Statement:
    verb = cursor.next.key
    if verb in _VERBS:
        return _VERBS[verb](cursor)
    if verb == "EXPLAIN":
        return _explain(cursor)
    if verb == "EXECUTE" or cursor.sees("BEGIN", "STATEMENT"):
        return _execute(cursor)
    if verb in _ENGINES:
        return EngineStatement(text=cursor.fragment("a statement"))
    if verb in _UNSUPPORTED:
        raise cursor.unsupported(f"{verb} is not supported; {_UNSUPPORTED[verb]}")
    if verb == "BEGIN":
        raise cursor.unsupported("BEGIN is not supported; several INSERTs go together in EXECUTE STATEMENT SET BEGIN … END")
    if not cursor.sees_name():
        raise cursor.error("a statement")
    near = did_you_mean(verb, (*_VERBS, "EXPLAIN", "EXECUTE", *_ENGINES, *_UNSUPPORTED))
    raise cursor.wrong(f"expected a statement, found {cursor.next.text[:40]!r}{near}")


def _explain(cursor: Cursor) -> Explain:
    cursor.expect("EXPLAIN")
    mode = None
    if not cursor.accept("PLAN", "FOR"):
        mode = cursor.accept_one(*_MODES)
    if cursor.sees("EXPLAIN"):
        raise cursor.wrong("expected a statement other than EXPLAIN")
    statement = _statement_set(cursor) if cursor.accept("STATEMENT", "SET") else _statement(cursor)
    return Explain(statement=statement, mode=None if mode is None else mode.lower())


def _execute(cursor: Cursor) -> StatementSet | EngineStatement:
    start = cursor.next.start
    if cursor.accept("BEGIN", "STATEMENT", "SET"):
        cursor.expect(";")
        return _inserts(cursor)
    cursor.expect("EXECUTE")
    if cursor.sees("IMMEDIATE"):
        cursor.fragment("a statement")
        return EngineStatement(text=cursor.fragment_from(start))
    cursor.expect("STATEMENT", "SET")
    return _statement_set(cursor)


def _statement_set(cursor: Cursor) -> StatementSet:
    cursor.expect("BEGIN")
    return _inserts(cursor)


def _inserts(cursor: Cursor) -> StatementSet:
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
    return StatementSet(inserts=tuple(inserts))
