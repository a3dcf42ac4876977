"""CREATE TABLE: columns, keys, and the clauses behind them, which may come in any order.

CREATE [OR REPLACE] [TEMPORARY] TABLE [IF NOT EXISTS] path  |  REPLACE TABLE path
  [(name type […] | name AS expression | name type METADATA […] | name
    | WATERMARK FOR column AS expression | [CONSTRAINT name] PRIMARY KEY (column, …) [NOT ENFORCED], …)]
  [USING provider] [COMMENT 'text'] [PARTITIONED BY (column, …)] [WITH|OPTIONS|TBLPROPERTIES (…)] [LOCATION 'path']
  [DISTRIBUTED BY (column, …) INTO n BUCKETS] [LIKE path [(INCLUDING|EXCLUDING|OVERWRITING what …)]]
  [AS query]
"""

from dataclasses import dataclass, field, replace

from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.datatype import data_type, nullability
from tablestore.sql.parse.literals import add_option, constant, set_option
from tablestore.sql.source import Fragment
from tablestore.sql.statements.definition import (
    Column,
    ComputedColumn,
    CreateTable,
    Like,
    MetadataColumn,
    PhysicalColumn,
    Watermark,
)
from tablestore.types.datatypes import with_nullable

_LIKE_HOW = ("INCLUDING", "EXCLUDING", "OVERWRITING")
_LIKE_WHAT = ("ALL", "CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS")
_OTHER_CONSTRAINTS = ("UNIQUE", "CHECK", "FOREIGN")
_OTHER_CLAUSES = {
    "STORED": "write the format as WITH ('file.format' = '…'), or USING",
    "ROW": "write USING with the options of the format",
    "SKEWED": "leave it out",
    "CLUSTER": "write DISTRIBUTED BY (…) INTO n BUCKETS",
}


@dataclass(slots=True)
class _Elements:
    """What stands in the brackets behind the table's name."""

    columns: list[Column] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    primary_key: tuple[str, ...] = ()
    watermark: Watermark | None = None


def create_table(cursor: Cursor, *, temporary: bool, replaces: bool, must_exist: bool = False) -> CreateTable:
    """Take the rest of CREATE TABLE, behind the word TABLE."""
    if_not_exists = cursor.if_not_exists()
    if if_not_exists and replaces:
        raise cursor.wrong("CREATE OR REPLACE replaces the table that exists: leave out OR REPLACE, or IF NOT EXISTS")
    path = cursor.path("the name of a table")
    sparks = _names_provider(cursor)
    elements = _Elements()
    if cursor.sees("("):
        for _ in cursor.listed():
            _element(cursor, elements, sparks)
    if elements.columns and elements.names:
        raise cursor.wrong(f"expected a type for the column {elements.names[0]!r:.80}: either all columns have one, or none")
    made = CreateTable(
        path=path,
        columns=tuple(elements.columns) or None,
        names=tuple(elements.names),
        primary_key=elements.primary_key,
        watermark=elements.watermark,
        temporary=temporary,
        if_not_exists=if_not_exists,
        replace=replaces,
        must_exist=must_exist,
    )
    return _checked(cursor, _clauses(cursor, made))


def physical_column(cursor: Cursor, *, sparks: bool = False) -> PhysicalColumn:
    """Take ``name type [NOT NULL] [COMMENT 'text'] [DEFAULT literal]``, as ALTER TABLE has it."""
    start = cursor.next.start
    name = cursor.name("the name of a column")
    if cursor.sees("AS"):
        raise cursor.unsupported("ALTER TABLE adds no computed columns; make the table anew with CREATE TABLE … LIKE", start)
    column, key = _typed_column(cursor, name, start, sparks)
    if key or not isinstance(column, PhysicalColumn):
        raise cursor.unsupported("ALTER TABLE knows only stored columns that are no key; make the table anew for others", start)
    return column


def default_value(cursor: Cursor) -> str | None:
    """Take the literal behind DEFAULT, as the text that the engine reads; None for NULL."""
    text = constant(cursor).text
    # The engine takes one pair of quotes off a default.
    quoted = text is not None and len(text) >= 2 and text[0] == text[-1] == "'"
    return f"'{text}'" if quoted else text


def _names_provider(cursor: Cursor) -> bool:
    """Whether the statement has a USING: then its types are Spark's. The cursor stays."""
    at = cursor.at
    while not cursor.at_end() and cursor.next.key not in ("USING", "AS"):
        cursor.skip()
    found = cursor.next.key == "USING"
    cursor.at = at
    return found


def _element(cursor: Cursor, elements: _Elements, sparks: bool) -> None:
    start = cursor.next.start
    if cursor.accept("WATERMARK", "FOR"):
        if elements.watermark is not None:
            raise cursor.wrong("a table has one watermark, found a second", start)
        column = cursor.name("a column")
        cursor.expect("AS")
        elements.watermark = Watermark(column=column, expression=_expression(cursor))
    elif _sees_constraint(cursor):
        _constraint(cursor, elements)
    else:
        _column(cursor, elements, sparks)


def _sees_constraint(cursor: Cursor) -> bool:
    """Whether a constraint comes next, and no column that bears such a name."""
    if cursor.sees("CONSTRAINT"):
        return cursor.ahead(2).key in ("PRIMARY", *_OTHER_CONSTRAINTS)
    return cursor.sees("PRIMARY", "KEY") or (cursor.next.key in _OTHER_CONSTRAINTS and cursor.ahead(1).key in ("KEY", "("))


def _constraint(cursor: Cursor, elements: _Elements) -> None:
    start = cursor.next.start
    if cursor.accept("CONSTRAINT"):
        cursor.name("the name of the constraint")
    if cursor.next.key in _OTHER_CONSTRAINTS:
        raise cursor.unsupported(f"a constraint {cursor.next.key} is not supported; only PRIMARY KEY (…) NOT ENFORCED is")
    cursor.expect("PRIMARY", "KEY")
    _set_key(cursor, elements, cursor.names("a key column"), start)
    _not_enforced(cursor)


def _set_key(cursor: Cursor, elements: _Elements, key: tuple[str, ...], start: int) -> None:
    if elements.primary_key:
        raise cursor.wrong("a table has one primary key, found a second; for several columns write PRIMARY KEY (a, b)", start)
    elements.primary_key = key


def _not_enforced(cursor: Cursor) -> None:
    if cursor.next.key == "ENFORCED":
        raise cursor.unsupported("an ENFORCED key is not supported: a later row replaces the earlier one; write NOT ENFORCED")
    if cursor.accept("NOT"):
        cursor.expect("ENFORCED")


def _column(cursor: Cursor, elements: _Elements, sparks: bool) -> None:
    start = cursor.next.start
    name = cursor.name("the name of a column")
    if name in elements.taken:
        raise cursor.wrong(f"the column {name!r:.80} stands here twice", start)
    elements.taken.add(name)
    if cursor.sees(",") or cursor.sees(")"):
        elements.names.append(name)
    elif cursor.accept("AS"):
        expression = _expression(cursor)
        comment = cursor.string("a comment") if cursor.accept("COMMENT") else None
        elements.columns.append(ComputedColumn(name=name, expression=expression, comment=comment, span=cursor.span_from(start)))
    else:
        column, key = _typed_column(cursor, name, start, sparks)
        elements.columns.append(column)
        if key:
            _set_key(cursor, elements, (name,), start)


def _expression(cursor: Cursor) -> Fragment:
    return cursor.fragment(
        "an expression",
        lambda: cursor.next.key == "," or (cursor.next.key == "COMMENT" and cursor.sees_text(1)),
    )


def _typed_column(cursor: Cursor, name: str, start: int, sparks: bool) -> tuple[PhysicalColumn | MetadataColumn, bool]:
    """The column, and whether it alone is the primary key."""
    found = data_type(cursor, sparks=sparks)
    column: PhysicalColumn | MetadataColumn = PhysicalColumn(name=name, type=found)
    key = False
    while True:
        clause = cursor.next.start
        if (nullable := nullability(cursor)) is not None:
            column = replace(column, type=with_nullable(column.type, nullable))
        elif cursor.accept("COMMENT"):
            column = replace(column, comment=cursor.string("a comment"))
        elif cursor.accept("PRIMARY"):
            cursor.expect("KEY")
            key = True
            if not cursor.sees("NOT", "NULL"):
                _not_enforced(cursor)
        elif cursor.accept("METADATA"):
            column = _metadata(cursor, column, clause)
        elif isinstance(column, PhysicalColumn) and cursor.accept("DEFAULT"):
            column = replace(column, default=default_value(cursor))
        elif cursor.next.key in ("GENERATED", "UNIQUE", "CHECK", "REFERENCES"):
            raise cursor.unsupported(f"a column with {cursor.next.key} is not supported; a computed column is: name AS expression")
        else:
            return replace(column, span=cursor.span_from(start)), key


def _metadata(cursor: Cursor, column: PhysicalColumn | MetadataColumn, start: int) -> MetadataColumn:
    if isinstance(column, MetadataColumn) or column.default is not None:
        raise cursor.wrong("a METADATA column has neither a second METADATA nor a DEFAULT", start)
    key = cursor.string("the key of the metadata") if cursor.accept("FROM") else None
    virtual = cursor.accept("VIRTUAL")
    return MetadataColumn(name=column.name, type=column.type, key=key, virtual=virtual, comment=column.comment)


def _clauses(cursor: Cursor, made: CreateTable) -> CreateTable:
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
            made = replace(made, comment=cursor.string("a comment"))
        elif cursor.accept("PARTITIONED"):
            cursor.expect("BY")
            made = replace(made, partitioned_by=_partition_columns(cursor))
        elif cursor.accept_one("WITH", "OPTIONS", "TBLPROPERTIES"):
            for _ in cursor.listed():
                set_option(cursor, options)
        elif cursor.accept("USING"):
            made = replace(made, provider=str(cursor.dotted("a format such as tablestore or parquet")))
        elif cursor.accept("LOCATION"):
            add_option(cursor, options, "path", cursor.string("a path"), cursor.span_from(start))
        elif word := cursor.accept_one("DISTRIBUTED", "CLUSTERED"):
            _distribution(cursor, options, start, clustered=word == "CLUSTERED")
        elif cursor.accept("LIKE"):
            made = replace(made, like=_like(cursor))
        elif cursor.accept("AS"):
            made = replace(made, query=cursor.query())
            break
        elif clause in _OTHER_CLAUSES:
            raise cursor.unsupported(f"the clause {clause} is not supported; {_OTHER_CLAUSES[clause]}")
        else:
            cursor.hope("the end of the statement")
            raise cursor.error()
    return replace(made, options=options)


def _partition_columns(cursor: Cursor) -> tuple[str, ...]:
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


def _distribution(cursor: Cursor, options: dict[str, str], start: int, *, clustered: bool) -> None:
    keys: tuple[str, ...] = ()
    if clustered or cursor.accept("BY"):
        if clustered:
            cursor.expect("BY")
        if cursor.accept("RANGE"):
            raise cursor.unsupported("DISTRIBUTED BY RANGE is not supported; rows are distributed by the hash of their key", start)
        cursor.accept("HASH")
        keys = cursor.names("a column")
        if cursor.next.key == "SORTED":
            raise cursor.unsupported("SORTED BY is not supported; leave it out")
        cursor.expect("INTO")
    else:
        cursor.expect("INTO")
    buckets = cursor.whole_number("a number of buckets")
    cursor.expect("BUCKETS")
    place = cursor.span_from(start)
    add_option(cursor, options, "bucket", str(buckets), place)
    if keys:
        add_option(cursor, options, "bucket-key", ",".join(keys), place)


def _like(cursor: Cursor) -> Like:
    source = cursor.path("the name of a table")
    choices: dict[str, str] = {}
    if cursor.accept("("):
        while not cursor.accept(")"):
            start = cursor.next.start
            how = cursor.expect_one(*_LIKE_HOW)
            what = cursor.expect_one(*_LIKE_WHAT).lower()
            if what in choices:
                raise cursor.wrong(f"LIKE says twice what becomes of {what}", start)
            choices[what] = how.lower()
            cursor.accept(",")
    return Like(source=source, choices=choices)


def _checked(cursor: Cursor, made: CreateTable) -> CreateTable:
    if made.names and made.query is None:
        raise cursor.error(f"AS query, or a type for the column {made.names[0]!r:.80}")
    given = made.columns or made.like or made.query or made.provider or "connector" in made.options
    if not given:
        raise cursor.error("columns, LIKE or AS")
    return made
