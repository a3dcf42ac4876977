"""Parses CREATE TABLE.

    CREATE [OR REPLACE] [TEMPORARY] TABLE [IF NOT EXISTS] path  |  REPLACE TABLE path
      [(column or key, …)]
      [USING provider] [COMMENT 'text'] [PARTITIONED BY (column, …)] [WITH|OPTIONS|TBLPROPERTIES (…)] [LOCATION 'path']
      [DISTRIBUTED BY [HASH] (column, …) INTO n BUCKETS | DISTRIBUTED BY RANGE (column, …) [INTO n BUCKETS]]
      [LIKE path [(INCLUDING|EXCLUDING|OVERWRITING what …)]]
      [AS query]

The clauses behind the columns come in any order, but for AS. A distribution becomes the options ``bucket`` and ``bucket-key``;
one by ranges those of clustering.
"""

from collections.abc import Mapping
from dataclasses import replace

from tablestore.sql.parse.columndefinitions import Elements, element
from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.literals import add_option, set_option
from tablestore.sql.statements.definition import CreateTable, LikeClause

_LIKE_HOW = ("INCLUDING", "EXCLUDING", "OVERWRITING")
_LIKE_WHAT = ("ALL", "CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS")
_OTHER_CLAUSES = {
    "STORED": "write WITH ('file.format' = 'orc') (parquet, orc or avro), or USING for files at a path",
    "ROW": "write USING with the options of the format",
    "SKEWED": "leave it out",
    "CLUSTER": "write DISTRIBUTED BY (…) INTO n BUCKETS",
}


def create_table(cursor: Cursor, *, temporary: bool, replaces: bool, must_exist: bool = False) -> CreateTable:
    """Takes the rest of CREATE TABLE, behind the word TABLE."""
    if_not_exists = cursor.if_not_exists()
    if if_not_exists and replaces:
        raise cursor.wrong("CREATE OR REPLACE replaces the table that exists: leave out OR REPLACE, or IF NOT EXISTS")
    path = cursor.path("the name of a table")
    sparks = _names_provider(cursor)
    elements = Elements()
    if cursor.sees("("):
        for _ in cursor.listed():
            element(cursor, elements, sparks=sparks)
    if elements.columns and elements.names:
        raise cursor.wrong(f"expected a type for the column {elements.names[0]!r:.80}: either all columns have one, or none")
    statement = CreateTable(
        path=path,
        columns=tuple(elements.columns) or None,
        names=tuple(elements.names),
        primary_key=elements.primary_key,
        constraint=elements.constraint,
        checks=tuple(elements.checks),
        watermark=elements.watermark,
        temporary=temporary,
        if_not_exists=if_not_exists,
        replace=replaces,
        must_exist=must_exist,
    )
    return _checked(cursor, _clauses(cursor, statement))


def _names_provider(cursor: Cursor) -> bool:
    """True if the statement has a USING: then its types are Spark's. The cursor stays."""
    at = cursor.at
    while not cursor.at_end() and cursor.next.key not in ("USING", "AS"):
        cursor.skip()
    has_using = cursor.next.key == "USING"
    cursor.at = at
    return has_using


def _clauses(cursor: Cursor, statement: CreateTable) -> CreateTable:
    options: dict[str, str] = {}
    seen: set[str] = set()
    while not cursor.at_end():
        start = cursor.next.start
        clause = cursor.next.key
        if clause in seen and clause not in ("WITH", "OPTIONS", "TBLPROPERTIES"):
            raise cursor.wrong(f"the clause {clause} stands here twice")
        seen.add(clause)
        if cursor.accept("COMMENT"):
            cursor.accept("=")
            statement = replace(statement, comment=cursor.string("a comment"))
        elif cursor.accept("PARTITIONED"):
            cursor.expect("BY")
            statement = replace(statement, partitioned_by=partition_columns(cursor))
        elif cursor.accept_one("WITH", "OPTIONS", "TBLPROPERTIES"):
            for _ in cursor.listed():
                set_option(cursor, options)
        elif cursor.accept("USING"):
            statement = replace(statement, provider=str(cursor.dotted("a format such as tablestore or parquet")))
        elif cursor.accept("LOCATION"):
            add_option(cursor, options, "path", cursor.string("a path"), cursor.span_from(start))
        elif word := cursor.accept_one("DISTRIBUTED", "CLUSTERED"):
            distribution(cursor, options, start, clustered=word == "CLUSTERED")
        elif cursor.accept("LIKE"):
            statement = replace(statement, like=_like(cursor))
        elif cursor.accept("AS"):
            statement = replace(statement, query=cursor.query())
            break
        elif clause in _OTHER_CLAUSES:
            raise cursor.unsupported(f"the clause {clause} is not supported; {_OTHER_CLAUSES[clause]}")
        else:
            cursor.hope("the end of the statement")
            raise cursor.error()
    return replace(statement, options=options)


def partition_columns(cursor: Cursor) -> tuple[str, ...]:
    """Takes ``(column, …)``, after PARTITIONED BY."""
    names: dict[str, None] = {}
    for _ in cursor.listed():
        start = cursor.next.start
        name = cursor.name("a partition column")
        if cursor.sees("("):
            cursor.skip()
            raise cursor.unsupported(
                "partitions by a function are not supported; name columns, and for buckets write DISTRIBUTED BY (…) INTO n BUCKETS",
                start,
            )
        if cursor.sees_name():
            raise cursor.unsupported(
                f"a typed partition column is not supported; write {name!r:.80} with its type among the columns, here alone",
                start,
            )
        if name in names:
            raise cursor.wrong(f"the partition column {name!r:.80} stands here twice", start)
        names[name] = None
    return tuple(names)


def distribution(
    cursor: Cursor, options: dict[str, str], start: int, *, clustered: bool = False, needs_buckets: bool = True
) -> None:
    """Takes what follows DISTRIBUTED or CLUSTERED as the options ``bucket`` and ``bucket-key``, or those of clustering."""
    keys: tuple[str, ...] = ()
    distributed = cursor.accept("BY")
    if clustered and not distributed:
        raise cursor.error()
    if distributed:
        if cursor.accept("RANGE"):
            _ranges(cursor, options, start, clustered=clustered)
            return
        cursor.accept("HASH")
        keys = cursor.names("a column")
        if cursor.next.key == "SORTED":
            raise cursor.unsupported("SORTED BY is not supported; leave it out")
    if needs_buckets or not keys or cursor.sees("INTO"):
        cursor.expect("INTO")
        buckets = cursor.whole_number("a number of buckets")
        cursor.expect("BUCKETS")
        add_option(cursor, options, "bucket", str(buckets), cursor.span_from(start))
    place = cursor.span_from(start)
    if keys:
        add_option(cursor, options, "bucket-key", ",".join(keys), place)


def _ranges(cursor: Cursor, options: dict[str, str], start: int, *, clustered: bool) -> None:
    """Takes what follows BY RANGE as the options of an append table whose writes make a file for each range."""
    if clustered:
        raise cursor.error()
    columns = cursor.names("a column")
    count = 0
    if cursor.accept("INTO"):
        number = cursor.next.span.start
        count = cursor.whole_number("a number of buckets")
        if count < 1:
            raise cursor.wrong("expected INTO 1 BUCKETS or more; without INTO the size of files decides", number)
        cursor.expect("BUCKETS")
    place = cursor.span_from(start)
    for key, value in (
        ("bucket", "-1"),
        ("clustering.columns", ",".join(columns)),
        ("clustering.strategy", "order"),
        ("clustering.incremental", "true"),
        ("tablestore.clustering.ranges", str(count)),
    ):
        add_option(cursor, options, key, value, place)


def check_ranges(cursor: Cursor, primary_key: tuple[str, ...], options: Mapping[str, str]) -> None:
    """Refuses ranges of a keyed table."""
    if primary_key and "tablestore.clustering.ranges" in options:
        raise cursor.wrong(
            "DISTRIBUTED BY RANGE is for tables without a primary key: rows of a keyed table lie in buckets by the hash of their "
            "key, where every engine looks for them, and inside of a bucket in the order of the key. Write DISTRIBUTED BY HASH, or "
            "leave the key out"
        )


def _like(cursor: Cursor) -> LikeClause:
    source = cursor.path("the name of a table")
    choices: dict[str, str] = {}
    if cursor.accept("("):
        while not cursor.accept(")"):
            start = cursor.next.start
            how = cursor.expect_one(*_LIKE_HOW)
            category = cursor.expect_one(*_LIKE_WHAT).lower()
            if category in choices:
                raise cursor.wrong(f"LIKE says twice what becomes of {category}", start)
            choices[category] = how.lower()
            cursor.accept(",")
    return LikeClause(source=source, choices=choices)


def _checked(cursor: Cursor, statement: CreateTable) -> CreateTable:
    check_ranges(cursor, statement.primary_key, statement.options)
    if statement.names and statement.query is None:
        raise cursor.error(f"AS query, or a type for the column {statement.names[0]!r:.80}")
    if statement.like and statement.query:
        raise cursor.wrong("a table takes its columns from LIKE or from AS, not from both")
    columns_source = (
        statement.columns or statement.like or statement.query or statement.provider or "connector" in statement.options
    )
    if not columns_source:
        raise cursor.error("columns, LIKE or AS")
    return statement
