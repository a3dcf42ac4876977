"""Parses USE, SET, RESET and CALL."""

from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.literals import constant, option_key
from tablestore.sql.parse.show import DATABASES
from tablestore.sql.parse.tokens import Kind, text_of
from tablestore.sql.statements.session import (
    Argument,
    CallProcedure,
    EngineStatement,
    Literal,
    ResetSessionOption,
    SetSessionOption,
    Show,
    ShowKind,
    UseNames,
)

DEEPEST_LITERAL = 32
_ENGINES_SETS = (("TIME", "ZONE"), ("VAR",), ("VARIABLE",))


def use(cursor: Cursor) -> UseNames:
    """Takes USE …."""
    cursor.expect("USE")
    kind = "any"
    if cursor.sees_name(1) and cursor.accept("CATALOG"):
        kind = "catalog"
    elif cursor.sees_name(1) and cursor.accept_one(*DATABASES):
        kind = "database"
    most = 1 if kind == "catalog" else 2
    return UseNames(what=kind, path=cursor.path(f"the name of a {'database' if kind == 'any' else kind}", most))


def set_option(cursor: Cursor) -> SetSessionOption | Show | EngineStatement:
    """Takes SET …: what stands behind the sign is the value as it is; one text alone is what is between its quotes."""
    start = cursor.next.start
    cursor.expect("SET")
    if any(cursor.sees(*words) and cursor.sees_name(1) for words in _ENGINES_SETS):
        cursor.fragment("a setting")
        return EngineStatement(text=cursor.fragment_from(start))
    if cursor.at_end() or (cursor.sees("-") and cursor.ahead(1).key == "V"):
        while not cursor.at_end():
            cursor.take()
        return Show(kind=ShowKind.OPTIONS)
    place = cursor.next.start
    key = option_key(cursor)
    span = cursor.span_from(place)
    if not cursor.accept("="):
        return SetSessionOption(key=key, value=None, span=span)
    first = cursor.next
    value = cursor.fragment("a value")
    alone = first.kind is Kind.TEXT and first.end == value.span.end
    return SetSessionOption(key=key, value=text_of(cursor.text, first) if alone else value.text, span=span)


def reset(cursor: Cursor) -> ResetSessionOption:
    """Takes RESET …."""
    cursor.expect("RESET")
    if cursor.at_end():
        return ResetSessionOption()
    start = cursor.next.start
    key = option_key(cursor)
    return ResetSessionOption(key=key, span=cursor.span_from(start))


def call(cursor: Cursor) -> CallProcedure:
    """Takes CALL …."""
    cursor.expect("CALL")
    procedure = cursor.path("the name of a procedure")
    if cursor.sees("(", ")"):
        cursor.skip()
        return CallProcedure(procedure=procedure)
    names: set[str] = set()
    arguments = [_argument(cursor, names) for _ in cursor.listed()]
    return CallProcedure(procedure=procedure, arguments=tuple(arguments))


def _argument(cursor: Cursor, names: set[str]) -> Argument:
    """Takes an argument; ``names`` are those that were given before it, and get its own."""
    start = cursor.next.start
    name: str | None = None
    if cursor.sees_name() and cursor.ahead(1).key in ("=>", "="):
        name = cursor.name("the name of an argument")
        cursor.take()
        if name in names:
            raise cursor.wrong(f"the argument {name!r:.80} is given twice", start)
        names.add(name)
    elif names:
        raise cursor.wrong("expected name => value: an argument by position stands before those by name")
    return Argument(value=_literal(cursor, 0), name=name, span=cursor.span_from(start))


def _literal(cursor: Cursor, depth: int) -> Literal:
    if depth > DEEPEST_LITERAL:
        raise cursor.wrong(f"a literal is nested more than {DEEPEST_LITERAL} levels deep")
    if cursor.next.key in ("ARRAY", "MAP") and cursor.ahead(1).key in ("(", "["):
        return _collection(cursor, depth)
    cursor.hope("ARRAY(…)")
    cursor.hope("MAP(…)")
    return constant(cursor).value


def _collection(cursor: Cursor, depth: int) -> Literal:
    start = cursor.next.start
    word = cursor.take().key
    closing = ")" if cursor.take().key == "(" else "]"
    values: list[Literal] = []
    while not cursor.accept(closing):
        values.append(_literal(cursor, depth + 1))
        if not cursor.accept(","):
            cursor.expect(closing)
            break
    if word == "ARRAY":
        return tuple(values)
    if len(values) % 2:
        raise cursor.wrong(f"expected a value for each key of the map, found {len(values)} literals", start)
    return tuple(zip(values[::2], values[1::2], strict=True))
