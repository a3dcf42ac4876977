"""Parses statements about materialized tables.

    CREATE [OR ALTER] MATERIALIZED TABLE path
      [([CONSTRAINT name] PRIMARY KEY (column, …) NOT ENFORCED)]
      [COMMENT 'text'] [DISTRIBUTED BY [HASH | RANGE] (column, …) [INTO n BUCKETS] | DISTRIBUTED INTO n BUCKETS]
      [PARTITIONED BY (column, …)] [WITH (…)] [FRESHNESS = INTERVAL 'n' unit] [REFRESH_MODE = CONTINUOUS | FULL]
      AS query
    ALTER MATERIALIZED TABLE path
      AS query | SET (…) | RESET (…) | SET FRESHNESS = … | SET REFRESH_MODE = …
      | SUSPEND | RESUME [WITH (…)] | REFRESH [PARTITION (…)] [VERIFY]
      | STAGE [clauses of CREATE] AS query | COMPARE | PROMOTE | ROLLBACK | DISCARD
    DROP MATERIALIZED TABLE [IF EXISTS] path

The clauses before AS come in any order.
"""

from dataclasses import replace

from tablestore.sql.parse.columndefinitions import key_constraint
from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.literals import option_keys, option_list, optional_partition, set_option
from tablestore.sql.parse.tabledefinition import check_ranges, distribution, partition_columns
from tablestore.sql.parse.tokens import Kind
from tablestore.sql.source import Fragment, Path
from tablestore.sql.statements.alter import ResetOptions, SetOptions
from tablestore.sql.statements.materialized import (
    AlterMaterializedTable,
    Compare,
    CreateMaterializedTable,
    Discard,
    DropMaterializedTable,
    Interval,
    MaterializedAction,
    Promote,
    Refresh,
    Resume,
    Rollback,
    SetFreshness,
    SetQuery,
    SetRefreshMode,
    Stage,
    Suspend,
)

_NAME = "the name of a materialized table"
_MODES = ("CONTINUOUS", "FULL")
_OF_VERSIONS: dict[str, MaterializedAction] = {
    "COMPARE": Compare(),
    "PROMOTE": Promote(),
    "ROLLBACK": Rollback(),
    "DISCARD": Discard(),
}
_ONLY_KEY = (
    "the columns of a materialized table are those of its query: name and cast them there; the brackets hold PRIMARY KEY (…) NOT "
    "ENFORCED only"
)


def create_materialized(cursor: Cursor, *, or_alter: bool) -> CreateMaterializedTable:
    """Takes the rest of CREATE [OR ALTER] MATERIALIZED TABLE, behind MATERIALIZED."""
    cursor.expect("TABLE")
    if cursor.sees("IF", "NOT", "EXISTS"):
        raise cursor.unsupported(
            "CREATE MATERIALIZED TABLE IF NOT EXISTS is not supported; CREATE OR ALTER MATERIALIZED TABLE makes it, or makes it so"
        )
    path = cursor.path(_NAME)
    declared, _ = _declared(cursor, CreateMaterializedTable(path=path, query=Fragment(""), or_alter=or_alter))
    return declared


def alter_materialized(cursor: Cursor) -> AlterMaterializedTable:
    """Takes the rest of ALTER MATERIALIZED TABLE, behind MATERIALIZED."""
    cursor.expect("TABLE")
    path = cursor.path(_NAME)
    return AlterMaterializedTable(path=path, action=_action(cursor, path))


def drop_materialized(cursor: Cursor) -> DropMaterializedTable:
    """Takes the rest of DROP MATERIALIZED TABLE, behind MATERIALIZED."""
    cursor.expect("TABLE")
    if_exists = cursor.if_exists()
    return DropMaterializedTable(path=cursor.path(_NAME), if_exists=if_exists)


def _declared(cursor: Cursor, statement: CreateMaterializedTable) -> tuple[CreateMaterializedTable, frozenset[str]]:
    """Takes the clauses and the query; returns what they make of ``statement``, and the first words of those that stand there."""
    options: dict[str, str] = {}
    seen: set[str] = set()
    if cursor.sees("("):
        seen.add("(")
        constraint, primary_key = _key(cursor)
        statement = replace(statement, constraint=constraint, primary_key=primary_key)
    while not cursor.accept("AS"):
        start, clause = cursor.next.start, cursor.next.key
        if clause in seen:
            raise cursor.wrong(f"the clause {clause} stands here twice")
        seen.add(clause)
        if cursor.accept("COMMENT"):
            statement = replace(statement, comment=cursor.string("a comment"))
        elif cursor.accept("DISTRIBUTED"):
            distribution(cursor, options, start, needs_buckets=False)
        elif cursor.accept("PARTITIONED"):
            cursor.expect("BY")
            statement = replace(statement, partitioned_by=partition_columns(cursor))
        elif cursor.accept("WITH"):
            for _ in cursor.listed():
                set_option(cursor, options)
        elif cursor.accept("FRESHNESS"):
            statement = replace(statement, freshness=_freshness(cursor))
        elif cursor.accept("REFRESH_MODE"):
            statement = replace(statement, refresh_mode=_refresh_mode(cursor))
        else:
            raise cursor.error()
    check_ranges(cursor, statement.primary_key, options)
    return replace(statement, query=cursor.query(), options=options), frozenset(seen)


def _action(cursor: Cursor, path: Path) -> MaterializedAction:
    start = cursor.next.start
    if cursor.accept("AS"):
        return SetQuery(query=cursor.query())
    if cursor.accept("SET"):
        return _set(cursor)
    if cursor.accept("RESET"):
        return ResetOptions(keys=option_keys(cursor))
    if cursor.accept("SUSPEND"):
        return Suspend()
    if cursor.accept("RESUME"):
        return Resume(options=option_list(cursor) if cursor.accept("WITH") else {})
    if cursor.accept("REFRESH"):
        partition = optional_partition(cursor)
        verify = cursor.accept("VERIFY")
        return Refresh(partition=partition, verify=verify, span=cursor.span_from(start))
    if cursor.accept("STAGE"):
        declared, clauses = _declared(cursor, CreateMaterializedTable(path=path, query=Fragment("")))
        return Stage(declared=declared, given=clauses)
    for word, action in _OF_VERSIONS.items():
        if cursor.accept(word):
            return action
    raise cursor.error()


def _set(cursor: Cursor) -> MaterializedAction:
    if cursor.accept("FRESHNESS"):
        return SetFreshness(freshness=_freshness(cursor))
    if cursor.accept("REFRESH_MODE"):
        return SetRefreshMode(refresh_mode=_refresh_mode(cursor))
    options: dict[str, str] = {}
    for _ in cursor.listed():
        option: dict[str, str] = {}
        set_option(cursor, option)
        # The last value counts for a key that stands here twice.
        options |= option
    return SetOptions(options=options)


def _key(cursor: Cursor) -> tuple[str | None, tuple[str, ...]]:
    cursor.expect("(")
    # The grammar of the seed has empty brackets too.
    if cursor.accept(")"):
        return None, ()
    if not cursor.sees("CONSTRAINT") and not cursor.sees("PRIMARY", "KEY"):
        if cursor.sees_name():
            raise cursor.unsupported(_ONLY_KEY)
        cursor.hope("CONSTRAINT")
        raise cursor.error("PRIMARY KEY")
    key = key_constraint(cursor)
    if cursor.sees(","):
        raise cursor.unsupported(_ONLY_KEY)
    cursor.expect(")")
    return key


def _freshness(cursor: Cursor) -> Interval:
    cursor.expect("=")
    start = cursor.next.start
    cursor.expect("INTERVAL")
    number = cursor.next.kind is Kind.NUMBER
    text = cursor.take().text if number else cursor.string("a number of units, such as '5',")
    unit = cursor.name("a unit: SECOND, MINUTE, HOUR or DAY")
    return Interval(interval=text, unit=unit, span=cursor.span_from(start))


def _refresh_mode(cursor: Cursor) -> str:
    cursor.expect("=")
    return cursor.expect_one(*_MODES)
