"""Parses MERGE INTO.

    MERGE INTO path [[AS] alias] USING path | function(…) | (query) [[AS] alias [(column, …)]] ON condition
      WHEN MATCHED [AND condition] THEN UPDATE SET * | UPDATE SET column = expression, … | DELETE
      WHEN NOT MATCHED [BY TARGET] [AND condition] THEN INSERT * | INSERT (column, …) VALUES (expression, …)
      WHEN NOT MATCHED BY SOURCE [AND condition] THEN UPDATE SET … | DELETE

A clause that no row can reach is refused.
"""

from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.rows import alias, assigned, assignments
from tablestore.sql.parse.tokens import Kind
from tablestore.sql.source import Fragment, Path
from tablestore.sql.statements.rows import Assignment, Match, Merge, MergeAction, MergeClause

_TRAVELS = tuple((*before, word) for before in ((), ("FOR",)) for word in ("SYSTEM_TIME", "SYSTEM_VERSION", "VERSION", "TIMESTAMP"))


def merge(cursor: Cursor) -> Merge:
    """Takes MERGE INTO …."""
    cursor.expect("MERGE")
    if cursor.sees("WITH"):
        raise cursor.unsupported("MERGE WITH SCHEMA EVOLUTION is not supported; ALTER TABLE … ADD COLUMNS first")
    cursor.expect("INTO")
    target = cursor.path("the name of a table")
    target_alias = alias(cursor, "USING")
    cursor.expect("USING")
    source = _source(cursor)
    source_alias = alias(cursor, "ON")
    columns = cursor.names("the name of a column") if source_alias is not None and cursor.sees("(") else ()
    cursor.expect("ON")
    on = cursor.fragment("a condition", lambda: _begins_clause(cursor))
    clauses: list[MergeClause] = []
    while not cursor.at_end():
        clauses.append(_clause(cursor, clauses))
    if not clauses:
        raise cursor.error("WHEN")
    return Merge(
        target=target,
        source=source,
        on=on,
        clauses=tuple(clauses),
        alias=target_alias,
        source_alias=source_alias,
        source_columns=columns,
    )


def _source(cursor: Cursor) -> Fragment:
    start = cursor.next.start
    if cursor.sees("("):
        cursor.skip()
        return cursor.fragment_from(start)
    cursor.hope("(query)")
    cursor.path("the name of a table")
    _hints(cursor)
    if cursor.sees("("):
        cursor.skip()
        _hints(cursor)
    elif any(cursor.sees(*words, "AS", "OF") for words in _TRAVELS):
        while not cursor.accept("AS", "OF"):
            cursor.take()
        _moment(cursor)
        _hints(cursor)
    return cursor.fragment_from(start)


def _hints(cursor: Cursor) -> None:
    """Takes hints behind the name of a table, which go with it."""
    while cursor.next.kind is Kind.HINT:
        cursor.take()


def _moment(cursor: Cursor) -> None:
    """Takes the literal or the call behind AS OF."""
    if cursor.sees_text() or cursor.next.kind is Kind.NUMBER or cursor.sees("("):
        cursor.skip()
    elif cursor.sees_name():
        cursor.take()
        if cursor.sees_text() or cursor.sees("("):
            cursor.skip()
    else:
        raise cursor.error("a snapshot's number, a tag or a time")


def _begins_clause(cursor: Cursor) -> bool:
    return cursor.sees("WHEN", "MATCHED") or cursor.sees("WHEN", "NOT", "MATCHED")


def _clause(cursor: Cursor, before: list[MergeClause]) -> MergeClause:
    start = cursor.next.start
    cursor.expect("WHEN")
    match = _match(cursor)
    if any(clause.match is match and clause.condition is None for clause in before):
        raise cursor.wrong(f"a clause WHEN {match.value} without a condition stands before this one, which no row reaches", start)
    condition = cursor.fragment("a condition", lambda: cursor.sees("THEN")) if cursor.accept("AND") else None
    cursor.expect("THEN")
    allowed = ("INSERT",) if match is Match.NOT_MATCHED else ("UPDATE", "DELETE")
    action = MergeAction(cursor.expect_one(*allowed))
    return MergeClause(
        match=match,
        action=action,
        condition=condition,
        assignments=_assignments(cursor, action, match),
        span=cursor.span_from(start),
    )


def _match(cursor: Cursor) -> Match:
    if cursor.accept("MATCHED"):
        return Match.MATCHED
    cursor.expect("NOT", "MATCHED")
    if not cursor.accept("BY"):
        return Match.NOT_MATCHED
    return Match.NOT_MATCHED if cursor.expect_one("TARGET", "SOURCE") == "TARGET" else Match.NOT_MATCHED_BY_SOURCE


def _assignments(cursor: Cursor, action: MergeAction, match: Match) -> tuple[Assignment, ...] | None:
    if action is MergeAction.DELETE:
        return None
    if action is MergeAction.UPDATE:
        cursor.expect("SET")
        if match is Match.MATCHED and cursor.accept("*"):
            return None
        return assignments(cursor, lambda: _begins_clause(cursor))
    return None if cursor.accept("*") else _inserted(cursor)


def _inserted(cursor: Cursor) -> tuple[Assignment, ...]:
    columns: dict[Path, None] = {}
    for _ in cursor.listed():
        column = cursor.dotted("the name of a column")
        if column in columns:
            raise cursor.wrong(f"the column {str(column)!r:.80} stands here twice", column.span.start)
        columns[column] = None
    cursor.expect("VALUES")
    start = cursor.next.start
    values = [assigned(cursor, lambda: cursor.next.key == ",") for _ in cursor.listed()]
    if len(values) != len(columns):
        raise cursor.wrong(f"expected {len(columns)} values, one for each column, found {len(values)}", start)
    return tuple(
        Assignment(column=column.parts, value=value, span=column.span) for column, value in zip(columns, values, strict=True)
    )
