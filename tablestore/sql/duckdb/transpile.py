"""Spark's SQL in DuckDB's words.

sqlglot translates. What it does not bring to the same rows is rewritten here before, and what cannot be brought to them is refused
by name, with Spark as the engine that can. A function is let through if it is known to mean the same (``TAKEN``), so that none
gives other rows in silence.

    differs in DuckDB                                       so
    x / 0, x DIV 0, x % 0 are no errors                     a CASE raises one
    decimals are divided and averaged as doubles            whole numbers are divided
    columns of the result have other types of numbers       named ones are cast to Spark's
    DATE + INTERVAL is a timestamp                          the result is cast to a date
    a FLOAT beside another number stays one                 the FLOAT is cast to DOUBLE
    round, floor, ceil and casts go by the binary value     by the decimal that a double is written as
    DIV of decimals rounds                                  whole numbers are divided
    casts of texts take 1_000 and 2024/01/05                the text is looked at first
    a place behind the end of an array is NULL              an error, but for try_element_at
    array_contains and flatten pass nulls over              NULL, where an element is
    left, right and substr take negative lengths            they are 0
    ln and log of 0 are infinite                            NULL
    differences in months go by the calendar                whole months are counted
    unknown letters in patterns of dates are text           refused
    CAST(2.7 AS INT) rounds                                 the fraction is cut off first
    LIKE has no escape character                            ESCAPE '\\' is said
    substring counts from 0 as from 1 less                  0 becomes 1
    days of the week have other numbers and names           computed
    patterns are RE2's                                      those with look-around and back references are refused
    a UNION of texts and numbers has texts                  refused

Known to differ: names of windows, lambdas and intervals without an alias (``resultnames``); a quotient or an average of decimals
whose digits do not fit into 128 bits is an error; so is the cast of a year, a month or a word to a date (TRY_CAST: NULL); ß and
ligatures have other capitals; ``x IN (SELECT …)`` as a value is NULL where a NULL might be it, as SQL and Spark's documents say,
and false in Spark 4.3.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.errors import UnsupportedError as NotInDuckDB

from tablestore.errors import InvalidInputError
from tablestore.names import did_you_mean
from tablestore.sql.duckdb.calls import MOST_SHOWN, OWN_TEXT, as_date, call, divided, is_distinct, refusal
from tablestore.sql.duckdb.clauses import counted_columns, exploded, group, table_function
from tablestore.sql.duckdb.columnnames import Columns
from tablestore.sql.duckdb.expressionkinds import Kinds, summand
from tablestore.sql.duckdb.floats import DOUBLE_TYPE, ROUNDED, round_as_spark, widened_operands
from tablestore.sql.duckdb.kinds import ARRAY, BIGINT, DATE, INT, INTERVAL, ROW, SINGLE, TEXT, Kind
from tablestore.sql.duckdb.lists import collected, or_empty, subscript
from tablestore.sql.duckdb.moments import months_between, strict_date
from tablestore.sql.duckdb.quotients import average, averaged, quotient, whole_quotient
from tablestore.sql.duckdb.resultnames import name_results
from tablestore.sql.duckdb.resulttypes import named_results, result_type, typed_result
from tablestore.sql.duckdb.rewrites import NAMED, OPERATORS, REWRITES, TAKEN
from tablestore.sql.duckdb.sqlcasts import cast, date_of_text, part_by_part
from tablestore.sql.parse.literals import refused_literal
from tablestore.sql.parse.tokens import Kind as TokenKind
from tablestore.sql.query.depth import deep
from tablestore.sql.query.dialect import CALL, Call, Spark4, spans_of
from tablestore.sql.query.extent import Tokens
from tablestore.sql.query.functions import FUNCTION_PREFIX, SPARK_FUNCTIONS, as_written, is_spark_function
from tablestore.sql.query.tablereferences import references_in
from tablestore.sql.source import Span

# What sqlglot says where a call has too many or too few arguments.
_WRONG_NUMBER = re.compile("number of provided arguments|^Required (?:keyword|argument)")
_UNPARSED = "the query cannot be parsed"
# A word, or a sign.
_SHOWN = re.compile(r"[A-Za-z]\w*|[^\w\s`'\"]{1,3}")


def to_duckdb(text: str, tables: Mapping[str, Columns] | None = None) -> str:
    """A query of Spark's dialect in DuckDB's. ``tables``: the columns of tables by their names in small letters.

    Raises InvalidInputError for text that is no query, UnsupportedError for what DuckDB does not do as Spark does.
    """
    with deep():
        tokens = _with_select(text)
        if (refused := refused_literal(tokens[at] for at in range(len(tokens)))) is not None:
            raise InvalidInputError(refused[1], kind="sql-syntax") from _Misplaced(refused[0])
        tree = _parsed(tokens.text)
        _refuse_aliases(tree)
        name_results(tree, tokens)
        _note_texts(tree, tokens)
        rewritten = _rewritten(tree, tables or {})
        try:
            return rewritten.sql(dialect=DuckDB, unsupported_level=ErrorLevel.RAISE)
        except NotInDuckDB as error:
            raise refusal(str(error)) from error


class _Misplaced(Exception):
    """The cause of an error about a place in the text."""

    def __init__(self, span: Span) -> None:
        super().__init__(span)
        self.span = span


def _refuse_aliases(tree: exp.Expr) -> None:
    """In parentheses sqlglot takes a name for what has none: ``WHERE (a b)``."""
    for paren in tree.find_all(exp.Paren):
        if isinstance(paren.this, exp.Alias) and isinstance(name := paren.this.args["alias"], exp.Identifier):
            place = _Misplaced(Span(name.meta.get("start", 0), name.meta.get("end", -1) + 1))
            raise InvalidInputError(f"{_UNPARSED}{_near_to(name.this)}", kind="sql-syntax") from place


def _parsed(text: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(text, read=Spark4)
    except (SqlglotError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if (span := stumbled_at(error, text)) is not None and text[: span.end].endswith(">>>"):
            raise refusal("the operator >>>") from error
        # On broken text sqlglot stumbles in many ways.
        raise InvalidInputError(f"{_UNPARSED}{_near(error)}", kind="sql-syntax") from error


def stumbled_at(error: BaseException | None, text: str) -> Span | None:
    """Where in a text what :func:`to_duckdb` raised stumbled, by the error's cause; None where that is not known."""
    if not isinstance(error, (ParseError, _Misplaced)) or _with_select(text).text != text:
        return None
    if isinstance(error, _Misplaced):
        return error.span if error.span.end > error.span.start else None
    if not error.errors:
        return None
    first = error.errors[0]
    if _call_of(first) is not None:
        return None
    length = len(first.get("highlight") or "")
    lines = text.split("\n")[: first["line"] - 1]
    # sqlglot counts columns from 1 and gives that of the last character.
    end = sum(len(line) + 1 for line in lines) + first["col"]
    found = Span(end - length, end)
    return found if length and text[found.start : found.end] == first["highlight"] else None


def _near(error: Exception) -> str:
    """What sqlglot stumbled over, if it is the user's (its own words name its classes), or the arguments of a call."""
    if not isinstance(error, ParseError) or not error.errors:
        return ""
    first = error.errors[0]
    if (function := _call_of(first)) is not None:
        return f": {_wrong_number(function)}"
    return _near_to(first.get("highlight"))


def _near_to(found: str | None) -> str:
    return f": something is missing or misplaced near `{found}`" if found and _SHOWN.fullmatch(found) else ""


def _call_of(found: Mapping[str, Any]) -> str | None:
    """The function whose arguments sqlglot stumbled over."""
    call = re.search(r"(\w+)\s*\([^()]*$", found.get("start_context") or "")
    return call[1] if call is not None and _is_of_call(found.get("description") or "") else None


def _is_of_call(description: str) -> bool:
    """Whether what is said is about the arguments of a function, and not of an operator."""
    of = re.search(r"missing for <class '[\w.]*?(\w+)'>", description)
    kind = getattr(exp, of[1], None) if of is not None else exp.Func
    is_function = isinstance(kind, type) and issubclass(kind, exp.Func) and not issubclass(kind, (exp.Binary, exp.Unary, exp.Case))
    return is_function and _WRONG_NUMBER.search(description) is not None


def _with_select(text: str) -> Tokens:
    """The text with ``TABLE t`` written as a SELECT, and ``X 'FF'`` as ``X'FF'``, as sqlglot knows them.

    Raises UnsupportedError for pipes, which sqlglot reads in another order.
    """
    tokens = Tokens(text)
    starts = {tokens[at].start: at for at in range(len(tokens))}
    edits: list[tuple[int, int, str]] = []
    for at in range(len(tokens)):
        if tokens.key(at) == "|>":
            raise refusal("pipes (|>)")
        if tokens.key(at) == "X" and at + 1 < len(tokens) and tokens[at + 1].kind is TokenKind.TEXT:
            edits.append((tokens[at].end, tokens[at + 1].start, ""))
    for reference in references_in(tokens):
        word = starts[reference.span.start] - 1
        if tokens.key(word) == "TABLE":
            edits.append((tokens[word].start, tokens[word].end, "SELECT * FROM"))
    parts, done = [], 0
    for start, end, written in sorted(edit for edit in edits if edit[0] < edit[1]):
        parts += [text[done:start], written]
        done = end
    return Tokens("".join([*parts, text[done:]])) if parts else tokens


def _note_texts(tree: exp.Expr, tokens: Tokens) -> None:
    """Keep with each expression that may fail how the user wrote it."""
    nodes = list(tree.walk(bfs=True))
    if not any(isinstance(node, _MAY_FAIL) for node in nodes):
        return
    spans = spans_of(reversed(nodes), tokens)
    for node in nodes:
        first, end = spans.get(id(node), (0, 0))
        if isinstance(node, _MAY_FAIL) and 0 < end - first <= MOST_SHOWN:
            node.meta[OWN_TEXT] = as_written(tokens.line(first, end))


def _rewritten(tree: exp.Expr, tables: Mapping[str, Columns]) -> exp.Expr:
    for hint in list(tree.find_all(exp.Hint)):
        hint.pop()
    for select in list(tree.find_all(exp.Select)):
        laterals = select.args.get("laterals") or []
        joins = [exp.Join(this=lateral, side="LEFT" if lateral.args.get("outer") else None) for lateral in laterals]
        select.set("laterals", None)
        select.set("joins", [*(select.args.get("joins") or []), *joins])
    for cast_node in list(tree.find_all(exp.Cast)):
        part_by_part(cast_node)
    kinds = Kinds(tree, tables)
    nodes = list(tree.walk(bfs=True))
    _refuse_calls(nodes)
    # Before anything changes.
    known = {id(node): kinds.of(node) for node in nodes if isinstance(node, _TYPED)}
    known |= {id(node): kinds.of(node.this) for node in nodes if isinstance(node, _OF_ITS_OPERAND)}
    sides = {id(node): (kinds.of(node.this), kinds.of(node.expression)) for node in nodes if isinstance(node, _TWO_SIDED)}
    widened = {id(operand) for node in nodes for operand in widened_operands(node, kinds)}
    averages = {id(node): kinds.of(summand(avg)) for node in nodes if (avg := averaged(node)) and not _is_inside(node)}
    for node in nodes:
        _refuse_order(node, kinds)
        _refuse_numbers(node, kinds)
        _refuse_texts(node, kinds)
        _refuse_json(node, kinds)
    typed = [(column, found) for column in named_results(tree) if (found := result_type(column, kinds)) is not None]
    for node in reversed(nodes):
        parent, key, index = node.parent, node.arg_key or "", node.index
        kind = known.get(id(node))
        of = averages.get(id(node))
        if isinstance(node, _TWO_SIDED):
            made = _of_two(node, kind, *sides[id(node)])
        elif kind is not None and of is not None and of.name == "decimal":
            made = average(node, kind, of)
        else:
            made = _node(node, kind)
        if id(node) in widened:
            made = exp.Cast(this=made, to=DOUBLE_TYPE.copy())
        if made is node:
            continue
        if parent is None:
            tree = made
        else:
            parent.set(key, made, index)
    for column, name in typed:
        typed_result(column, name)
    return tree


_MAY_FAIL = (exp.Div, exp.IntDiv, exp.Mod, exp.Bracket, exp.Cast, exp.TsOrDsToDate)
_TYPED = (exp.Div, exp.Add, exp.Sub, exp.Avg, exp.Nullif, exp.Window, exp.Filter)
_OF_ITS_OPERAND = (exp.Cast, exp.Bracket, exp.Reverse, exp.Sign, exp.TsOrDsToDate, *ROUNDED)
_EQUALITIES = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)
_TWO_SIDED = (exp.Div, exp.IntDiv, exp.MonthsBetween)


def _refuse_order(node: exp.Expr, kinds: Kinds) -> None:
    """DuckDB has a NULL inside of a row or array for the greatest, and compares parts of rows by their names."""
    if isinstance(node, (exp.Max, exp.Min, exp.Ordered)) and kinds.of(node.this) in (ARRAY, ROW):
        raise refusal("an order of rows or arrays, in which a NULL is the least (max_by and min_by take a value)")
    if isinstance(node, (exp.LT, exp.LTE, exp.GT, exp.GTE)) and {ARRAY, ROW} & {kinds.of(node.this), kinds.of(node.expression)}:
        raise refusal("an order of rows or arrays, in which a NULL is the least")
    if isinstance(node, _EQUALITIES) and any(isinstance(side.unnest(), exp.Struct) for side in (node.this, node.expression)):
        raise refusal("a comparison with a written row, whose parts may have other names")


def _refuse_texts(node: exp.Expr, kinds: Kinds) -> None:
    """DuckDB makes a column of texts of texts and others, Spark one of the others: ``SELECT '1' UNION ALL SELECT 2``."""
    if not isinstance(node, exp.SetOperation) or node.args.get("by_name"):
        return
    for (name, left), (_, right) in zip(kinds.columns(node.left) or (), kinds.columns(node.right) or (), strict=False):
        found = {kind.name for kind in (left, right) if kind is not None}
        if len(found) == 2 and "text" in found:
            (other,) = found - {"text"}
            raise refusal(f"{node.key.upper()} of text and {other} in the column {name!r} without a CAST")


def _refuse_json(node: exp.Expr, kinds: Kinds) -> None:
    """DuckDB writes NULLs, and has no words for NaN and keys that are no texts."""
    if isinstance(node, exp.JSONFormat):
        row = node.this.unnest()
        fields = row.expressions if isinstance(row, exp.Struct) else ()
        plain = [isinstance(one, exp.PropertyEQ) and kinds.of(one.expression) in (TEXT, INT, BIGINT) for one in fields]
        if not plain or not all(plain):
            raise refusal("to_json of what is not a written row (named_struct) of texts and whole numbers")


def _refuse_numbers(node: exp.Expr, kinds: Kinds) -> None:
    """DuckDB takes a number for a condition: ``DELETE FROM t WHERE 1``."""
    for condition in _conditions(node):
        kind = kinds.of(condition)
        if kind is not None and kind.name != "text":
            raise InvalidInputError(
                f"expected a condition, found {condition.unnest().sql(dialect=Spark4):.80}, which is no BOOLEAN; compare it",
                kind="query",
            )


def _conditions(node: exp.Expr) -> list[exp.Expr]:
    match node:
        case exp.Where() | exp.Having() | exp.Qualify() | exp.Not():
            found = [node.this]
        case exp.And() | exp.Or():
            found = [node.this, node.expression]
        case exp.Join():
            found = [node.args.get("on")]
        case exp.If() if not (isinstance(node.parent, exp.Case) and node.parent.this is not None):
            found = [node.this]
        case _:
            found = []
    return [condition for condition in found if condition is not None]


def _of_two(node: exp.Expr, kind: Kind | None, left: Kind | None, right: Kind | None) -> exp.Expr:
    match node:
        case exp.Div():
            return quotient(node, kind, left, right)
        case exp.IntDiv():
            return whole_quotient(node, left, right)
        case exp.MonthsBetween():
            return months_between(node, left, right)
        case _:
            return node


def _is_inside(node: exp.Expr) -> bool:
    """Whether a function stands in a window or behind a filter, which is rewritten with it."""
    return isinstance(node.parent, (exp.Window, exp.Filter)) and node.arg_key == "this"


def _node(node: exp.Expr, kind: Kind | None) -> exp.Expr:
    """A node as DuckDB has it; its parts are done already. ``kind``: of the node, of a cast's or subscript's operand."""
    rewrite = REWRITES.get(type(node))
    if rewrite is not None:
        return rewrite(node)
    match node:
        case exp.Mod():
            return divided(node)
        case exp.Window() | exp.Filter() | exp.ArrayAgg() | exp.ArrayUniqueAgg() if collected(node) and not _is_inside(node):
            return or_empty(node)
        case exp.Add() | exp.Sub() if kind == DATE:
            return as_date(node)
        case exp.Sub() if kind == INTERVAL:
            raise refusal("the difference of two dates (datediff(a, b) counts the days)")
        case exp.Nullif() if kind == SINGLE:
            return exp.Cast(this=node, to=exp.DataType.build("FLOAT"))
        case exp.Cast():
            return cast(node, kind)
        case exp.Sign() if kind is not None and kind.name == "float":
            return exp.Case(ifs=[exp.If(this=exp.IsNan(this=node.this.copy()), true=node.this.copy())], default=node)
        case exp.Reverse() if kind == ARRAY:
            return call("LIST_REVERSE", node.this)
        case exp.TsOrDsToDate() if kind == TEXT and node.args.get("format") is None:
            return date_of_text(strict_date(node))
        case exp.TsOrDsToDate():
            return strict_date(node)
        case _ if isinstance(node, ROUNDED):
            return round_as_spark(node, kind)
        case exp.Bracket():
            return subscript(node, kind)
        case exp.Select():
            return counted_columns(node)
        case exp.Group():
            return group(node)
        case exp.Table(this=exp.Func()):
            return table_function(node)
        case exp.Join(this=exp.Lateral(this=exp.Func())):
            return exploded(node)
        case exp.Star() if isinstance(node.parent, exp.Func) and not isinstance(node.parent, exp.Count):
            raise refusal("a star inside of a function")
        case exp.Command():
            raise refusal(f"{node.this}")
        case exp.Not() if isinstance(node.this.unnest(), exp.NullSafeEQ):
            return is_distinct(node.this)
        case exp.NullSafeNEQ():
            return is_distinct(exp.NullSafeEQ(this=node.this, expression=node.expression))
        case exp.Func():
            return _function(node)
        case _:
            return node


def _wrong_number(function: str) -> str:
    return f"the function `{function}` takes more or fewer arguments"


def _function(node: exp.Func) -> exp.Expr:
    """A call that no other rule is about; :func:`_refuse_calls` has let it through."""
    rewrite = NAMED.get(str(node.this).lower()) if isinstance(node, exp.Anonymous) else None
    return node if rewrite is None else rewrite(*node.expressions)


def _refuse_calls(nodes: Sequence[exp.Expr]) -> None:
    """Nothing is called that is not known to answer as in Spark (``TAKEN``)."""
    for node in nodes:
        call = node.meta.get(CALL)
        if isinstance(call, Call):
            _refuse_call(call)
        elif isinstance(node, exp.Func) and type(node).__name__ not in OPERATORS:
            raise refusal(f"the function {node.sql_name().lower()}")


def _refuse_call(call: Call) -> None:
    if call.name.startswith(FUNCTION_PREFIX):
        return
    if not is_spark_function(call.name):
        raise InvalidInputError(
            f"there is no function `{call.name}`{did_you_mean(call.name, [*TAKEN, *SPARK_FUNCTIONS])}", kind="query"
        )
    if call.name not in TAKEN:
        raise refusal(f"the function {call.name}")
    if call.named:
        raise refusal(f"the function {call.name} with names of arguments (=>)")
    least, most = TAKEN[call.name]
    if call.arguments < least:
        raise InvalidInputError(_wrong_number(call.name), kind="sql-syntax")
    if call.arguments > most:
        raise refusal(f"the function {call.name} of {call.arguments} arguments")
