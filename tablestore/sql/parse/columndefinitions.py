"""Parses what stands in the brackets of CREATE TABLE, and the columns that ALTER TABLE adds.

    name type [NOT NULL | NULL] [DEFAULT literal] [COMMENT 'text'] [PRIMARY KEY [NOT ENFORCED]]
              [CHECK (condition)] [CONSTRAINT name CHECK (condition) | NOT NULL]
    name type METADATA [FROM 'key'] [VIRTUAL]
    name AS expression [COMMENT 'text']
    name
    WATERMARK FOR column AS expression
    [CONSTRAINT name] PRIMARY KEY (column, …) [NOT ENFORCED]
    [CONSTRAINT name] CHECK (condition) [ENFORCED]

What follows a type comes in any order. A name alone is a column of the query behind AS.
"""

from dataclasses import dataclass, field, replace

from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.datatype import data_type, nullability
from tablestore.sql.parse.literals import constant
from tablestore.sql.source import Fragment
from tablestore.sql.statements.definition import Check, Column, ComputedColumn, MetadataColumn, PhysicalColumn, Watermark
from tablestore.types.datatypes import with_nullable
from tablestore.types.expression.sqlwords import name_text

_OTHER_CONSTRAINTS = ("UNIQUE", "FOREIGN")


@dataclass(slots=True)
class Elements:
    """The elements taken so far; ``taken`` are the names of all columns."""

    columns: list[Column] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    primary_key: tuple[str, ...] = ()
    constraint: str | None = None
    checks: list[Check] = field(default_factory=list)
    watermark: Watermark | None = None


def element(cursor: Cursor, elements: Elements, *, sparks: bool) -> None:
    """Takes one element and put it into ``elements``. ``sparks``: types are Spark's."""
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
        _column(cursor, elements, sparks=sparks)


def physical_column(cursor: Cursor) -> PhysicalColumn:
    """Takes ``name type [NOT NULL] [COMMENT 'text'] [DEFAULT literal]``, as ALTER TABLE has it."""
    start = cursor.next.start
    name = cursor.name("the name of a column")
    if cursor.sees("AS"):
        raise cursor.unsupported("ALTER TABLE adds no computed columns; make the table anew with CREATE TABLE … LIKE", start)
    column, key, checks = _typed_column(cursor, name, start, sparks=False)
    if checks:
        raise cursor.unsupported(
            "a new column comes without a CHECK: ALTER TABLE … ADD CONSTRAINT name CHECK (…) adds it behind", start
        )
    if key or not isinstance(column, PhysicalColumn):
        raise cursor.unsupported("ALTER TABLE knows only stored columns that are no key; make the table anew for others", start)
    return column


def check_constraint(cursor: Cursor, name: str | None = None, column: str | None = None) -> Check:
    """Takes ``CHECK (condition) [ENFORCED]``."""
    start = cursor.next.start
    cursor.expect("CHECK")
    cursor.expect("(")
    condition = cursor.fragment("a condition")
    cursor.expect(")")
    if cursor.sees("NOT", "ENFORCED"):
        raise cursor.unsupported(
            "a CHECK that is NOT ENFORCED says nothing; every writer compares its rows: leave NOT ENFORCED out", start
        )
    cursor.accept("ENFORCED")
    return Check(condition=condition, name=name, column=column)


def key_constraint(cursor: Cursor) -> tuple[str | None, tuple[str, ...]]:
    """Takes ``[CONSTRAINT name] PRIMARY KEY (column, …) [NOT ENFORCED]``: the name, and the columns."""
    name = cursor.name("the name of the constraint") if cursor.accept("CONSTRAINT") else None
    if cursor.sees("CHECK"):
        raise cursor.unsupported("a materialized table has no CHECK: its rows are those of its query, which may leave rows out")
    if cursor.next.key in _OTHER_CONSTRAINTS:
        raise cursor.unsupported(f"a constraint {cursor.next.key} is not supported; PRIMARY KEY (…) NOT ENFORCED and CHECK (…) are")
    cursor.expect("PRIMARY", "KEY")
    key = cursor.names("a key column")
    _not_enforced(cursor)
    return name, key


def default_value(cursor: Cursor) -> str | None:
    """Takes the literal behind DEFAULT, as the text that the engine reads; None for NULL."""
    text = constant(cursor).text
    # The engine takes one pair of quotes off a default.
    quoted = text is not None and len(text) >= 2 and text[0] == text[-1] == "'"
    return f"'{text}'" if quoted else text


def _sees_constraint(cursor: Cursor) -> bool:
    """True if a constraint comes next, and no column that bears such a name."""
    if cursor.sees("CONSTRAINT"):
        return cursor.ahead(2).key in ("PRIMARY", "CHECK", *_OTHER_CONSTRAINTS)
    others = ("CHECK", *_OTHER_CONSTRAINTS)
    return cursor.sees("PRIMARY", "KEY") or (cursor.next.key in others and cursor.ahead(1).key in ("KEY", "("))


def _constraint(cursor: Cursor, elements: Elements) -> None:
    start = cursor.next.start
    if cursor.sees("CHECK") or (cursor.sees("CONSTRAINT") and cursor.ahead(2).key == "CHECK"):
        name = cursor.name("the name of the constraint") if cursor.accept("CONSTRAINT") else None
        _add_check(cursor, elements, check_constraint(cursor, name), start)
        return
    name, key = key_constraint(cursor)
    _set_key(cursor, elements, key, start)
    elements.constraint = name


def _add_check(cursor: Cursor, elements: Elements, check: Check, start: int) -> None:
    if check.name is not None and any(
        other.name is not None and other.name.casefold() == check.name.casefold() for other in elements.checks
    ):
        raise cursor.wrong(f"the constraint {check.name!r:.80} stands here twice", start)
    elements.checks.append(check)


def _set_key(cursor: Cursor, elements: Elements, key: tuple[str, ...], start: int) -> None:
    if elements.primary_key:
        raise cursor.wrong("a table has one primary key, found a second; for several columns write PRIMARY KEY (a, b)", start)
    elements.primary_key = key


def _not_enforced(cursor: Cursor) -> None:
    if cursor.next.key == "ENFORCED":
        raise cursor.unsupported("an ENFORCED key is not supported: a later row replaces the earlier one; write NOT ENFORCED")
    if cursor.accept("NOT"):
        cursor.expect("ENFORCED")


def _column(cursor: Cursor, elements: Elements, *, sparks: bool) -> None:
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
        column, key, checks = _typed_column(cursor, name, start, sparks=sparks)
        elements.columns.append(column)
        for check in checks:
            _add_check(cursor, elements, check, start)
        if key:
            _set_key(cursor, elements, (name,), start)


def _expression(cursor: Cursor) -> Fragment:
    return cursor.fragment(
        "an expression",
        lambda: cursor.next.key == "," or (cursor.next.key == "COMMENT" and cursor.sees_text(1)),
    )


# The clauses that a column has once, by the word that begins each.
_ONCE = {
    **dict.fromkeys(("NULL", "NOT"), "one of NULL and NOT NULL"),
    "COMMENT": "COMMENT",
    "DEFAULT": "DEFAULT",
    "PRIMARY": "PRIMARY KEY",
}


def _typed_column(
    cursor: Cursor, name: str, start: int, *, sparks: bool
) -> tuple[PhysicalColumn | MetadataColumn, bool, list[Check]]:
    """Takes a column with its type; True if it alone is the primary key; and its conditions."""
    column_type = data_type(cursor, sparks=sparks)
    column: PhysicalColumn | MetadataColumn = PhysicalColumn(name=name, type=column_type)
    key, seen, checks = False, set[str](), list[Check]()
    while True:
        clause, kind = cursor.next.start, _ONCE.get(cursor.next.key)
        if kind in seen:
            raise cursor.wrong(f"expected {kind} once for the column {name!r}", clause)
        if kind is not None:
            seen.add(kind)
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
        elif isinstance(column, PhysicalColumn) and (check := _column_check(cursor, name)) is not None:
            checks.append(check)
        elif cursor.next.key in ("GENERATED", "UNIQUE", "CHECK", "REFERENCES"):
            raise cursor.unsupported(f"a column with {cursor.next.key} is not supported; a computed column is: name AS expression")
        else:
            return replace(column, span=cursor.span_from(start)), key, checks


def _column_check(cursor: Cursor, column: str) -> Check | None:
    """Takes ``[CONSTRAINT name] CHECK (condition)`` or ``CONSTRAINT name NOT NULL`` behind a column, if it comes next."""
    if cursor.sees("CHECK"):
        return check_constraint(cursor, column=column)
    if not cursor.sees("CONSTRAINT"):
        return None
    cursor.take()
    name = cursor.name("the name of the constraint")
    if cursor.accept("NOT"):
        cursor.expect("NULL")
        return Check(condition=Fragment(f"{name_text(column)} IS NOT NULL"), name=name, column=column)
    return check_constraint(cursor, name, column)


def _metadata(cursor: Cursor, column: PhysicalColumn | MetadataColumn, start: int) -> MetadataColumn:
    if isinstance(column, MetadataColumn) or column.default is not None:
        raise cursor.wrong("a METADATA column has neither a second METADATA nor a DEFAULT", start)
    key = cursor.string("the key of the metadata") if cursor.accept("FROM") else None
    virtual = cursor.accept("VIRTUAL")
    return MetadataColumn(name=column.name, type=column.type, key=key, virtual=virtual, comment=column.comment)
