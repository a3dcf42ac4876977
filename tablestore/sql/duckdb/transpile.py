"""Translates Spark's SQL to DuckDB's.

sqlglot translates. What it does not bring to the same rows is rewritten here before, and what cannot be brought to them is refused
by name, with Spark as the engine that can. A function is let through if it is known to mean the same (``BOUNDS``), so that none
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
    casts of bytes to texts write \\xFF, and back           decoded and encoded as UTF-8
    a cast of a large DOUBLE to FLOAT is an error           infinite
    a product of small decimals has 18 digits at most       one factor gets more
    ROLLUP and CUBE of no rows have a total                 those without a row are left out
    patterns are RE2's                                      those with look-around and back references are refused
    a UNION of texts and numbers has texts                  refused
    what FILTER leaves out is computed, and may fail        a CASE computes the rest
    equal rows show -0.0 if it is the first zero    0.0
    all sides of AND and OR are computed, and may fail      a CASE goes by their order, but in WHERE, where DuckDB does
    timestamps and bytes in || and concat                   cast to texts as Spark writes them; floats are refused
    array_join of NULLs is NULL                             an empty text
    a written text beside a number is rounded               cast to a BIGINT or a DOUBLE, as any text

Known to differ: names of named windows without an alias (``resultnames``); a quotient or an average of decimals whose digits do
not fit into 128 bits is an error; so is the cast of a year, a month or a word to a date (TRY_CAST: NULL);
``x IN (SELECT …)`` as a value is NULL where a NULL might be it, as SQL and Spark's documents say, and false in Spark 4.3.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.errors import UnsupportedError as NotInDuckDB

from tablestore.errors import InvalidInputError
from tablestore.names import did_you_mean
from tablestore.sql.binding.binder import Bound, bind_types, query_of_with, tables_of_others
from tablestore.sql.binding.functiontypes import element
from tablestore.sql.binding.scopes import Columns
from tablestore.sql.binding.signatures import arguments_of, function_name
from tablestore.sql.binding.sqltypes import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    SqlType,
    Type,
)
from tablestore.sql.depth import deep
from tablestore.sql.duckdb.calls import (
    AROUND_AN_AGGREGATE,
    MOST_SHOWN,
    OWN_TEXT,
    aggregate_of,
    as_date,
    as_partition,
    call,
    divided,
    in_own_text,
    is_distinct,
    note_dividends,
    refusal,
    refused_where,
    unknown_operand,
)
from tablestore.sql.duckdb.clauses import (
    chains_in_order,
    counted_in_pivot,
    exploded,
    generated_columns,
    goes_by_order,
    group,
    in_order,
    map_function,
    name_columns,
    of_counted_rows,
    pivot_around,
    rows_of_table,
    sampled,
    sets_of_groups,
    sort_whole,
    table_function,
)
from tablestore.sql.duckdb.datetimefunctions import (
    added_units,
    as_moments,
    in_microseconds,
    interval_behind,
    interval_between,
    months_between,
    moved,
    moves_by_interval,
    strict_date,
)
from tablestore.sql.duckdb.floats import ROUNDED, Zeros, map_of_keys, round_as_spark, widened_operands, without_signs
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall, as_type
from tablestore.sql.duckdb.functions.functiontable import BOUNDS, RULES, SIGNATURES
from tablestore.sql.duckdb.functions.intervalvalues import plain_interval, quotient_of_intervals, size_of_interval
from tablestore.sql.duckdb.functions.statisticfunctions import ordered_as_arguments
from tablestore.sql.duckdb.joinedtexts import texts_of
from tablestore.sql.duckdb.lateralaliases import field_of_alias, write_out_aliases
from tablestore.sql.duckdb.lists import computed_subscript, field_of_each, subscript
from tablestore.sql.duckdb.numbertypes import Widened, cast_to, casts_of, widen, widened_queries
from tablestore.sql.duckdb.quotients import average, average_of_doubles, averaged, quotient, whole_quotient
from tablestore.sql.duckdb.resultnames import DISTINCT_ROWS, NAMED_HERE, name_results
from tablestore.sql.duckdb.rewrites import NAMED, REWRITES, is_another, whole_aggregate
from tablestore.sql.duckdb.rowconditions import RowConditions, failing_nodes, row_conditions
from tablestore.sql.duckdb.sqlcasts import cast, part_by_part
from tablestore.sql.duckdb.textforms import date_of_text
from tablestore.sql.duckdb.textnumbers import OF_DOUBLES, texts_as_numbers
from tablestore.sql.duckdb.usercalls import check_gives_value, fold_groups
from tablestore.sql.freshnames import fresh_name
from tablestore.sql.parse.literals import refused_literal
from tablestore.sql.parse.tokens import Kind as TokenKind
from tablestore.sql.query.dialect import CALL, GENERATORS, OPERATORS, Call, Spark4, spans_of
from tablestore.sql.query.functions import FUNCTION_PREFIX, SPARK_FUNCTIONS, as_written, is_spark_function
from tablestore.sql.query.parsedquery import ParsedQuery, Trees
from tablestore.sql.query.tablereferences import references_in
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.source import Span

# The message of sqlglot's for a call with too many or too few arguments.
_WRONG_NUMBER = re.compile("number of provided arguments|^Required (?:keyword|argument)")
_UNPARSED = "the query cannot be parsed"
WITH_PREFIX = "__tablestore_with_"
"""The beginning of the names that queries of a WITH have in DuckDB's words."""
# A word, or a sign.
_SHOWN = re.compile(r"[A-Za-z]\w*|[^\w\s`'\"]{1,3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The facts about the names in a query: the columns of its tables by their names in small letters, the types that functions of
    the user's give, and those of parameters, all by their names.

    ``engine_tables``: the names, in parts and small letters, of the other tables that it may read; None: any.
    """

    tables: Mapping[str, Columns | None] = field(default_factory=dict)
    engine_tables: frozenset[tuple[str, ...]] | None = None
    functions: Mapping[str, Type] = field(default_factory=dict)
    parameters: Mapping[str, Type] = field(default_factory=dict)

    def bind(self, tree: exp.Expr) -> Bound:
        """Binds a query."""
        return bind_types(tree, self.tables, functions=self.functions, parameters=self.parameters, signatures=SIGNATURES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """A query in DuckDB's words. ``columns``: its own, where they are known; ``conditions``: those that it puts to rows.

    ``pieces``: the same, with the number of a relation wherever it is read. ``is_ambiguous``: something else in it may be called
    like a relation.
    """

    sql: str
    columns: Columns | None
    conditions: RowConditions
    pieces: tuple[str | int, ...]
    is_ambiguous: bool


class OtherTables(Exception):
    """Signals that a query reads tables of which nothing is known, by these names in parts."""

    def __init__(self, names: Sequence[tuple[str, ...]]) -> None:
        super().__init__(names)
        self.names = names


def to_duckdb(text: str, tables: Mapping[str, Columns] | None = None) -> str:
    """A query of Spark's dialect in DuckDB's. ``tables``: the columns of those that are known, by their names in small letters.

    Raises InvalidInputError for text that is no query, UnsupportedError for what DuckDB does not do as Spark does.
    """
    return translated(text, Known(tables=tables or {})).sql


def translated(query: str | ParsedQuery, known: Known, *, whole: bool = False) -> Translated:
    """A query of Spark's dialect in DuckDB's, as :func:`to_duckdb`. Its tree is taken.

    ``whole``: raise OtherTables where it reads tables that are not known.
    """
    parsed = ParsedQuery(query) if isinstance(query, str) else query
    text, relations = parsed.text, parsed.prefix
    with deep():
        tokens = _with_select(parsed)
        if (refused := refused_literal(tokens[at] for at in range(len(tokens)))) is not None:
            raise InvalidInputError(refused[1], kind="sql-syntax") from _Misplaced(refused[0])
        readable = parsed if tokens is parsed.tokens else ParsedQuery(tokens.text)
        trees = _trees(readable)
        tree = _only_query(trees)
        _refuse_aliases(tree)
        for hint in list(tree.find_all(exp.Hint)):
            hint.pop()
        _refuse_equal_names(tree)
        other_tables = list(tables_of_others(tree, known.tables))
        _refuse_unplanned(other_tables, known, relations)
        if whole and other_tables:
            readable.put_back(trees)
            raise OtherTables(sorted({tuple(part.name for part in one.parts) for one in other_tables}))
        _write_identifiers(tree)
        name_results(tree, tokens)
        _note_texts(tree, tokens)
        _rename_queries_of_with(tree, fresh_name(WITH_PREFIX, text))
        rewritten, columns, conditions = _rewritten(tree, known)
        try:
            sql = rewritten.sql(dialect=DuckDB, unsupported_level=ErrorLevel.RAISE, copy=False)
        except NotInDuckDB as error:
            raise refusal(str(error)) from error
        except ParseError as error:
            # sqlglot writes some functions (initcap) by reading what it has written of their arguments.
            raise refusal("a function of what another one gives, in this form") from error
    pieces = [int(piece) if place % 2 else piece for place, piece in enumerate(re.split(rf"{relations}(\d+)", sql))]
    count = sum(table.name.startswith(relations) for table in rewritten.find_all(exp.Table))
    return Translated(
        sql=sql, columns=columns, conditions=conditions, pieces=tuple(pieces), is_ambiguous=len(pieces) != 2 * count + 1
    )


class _Misplaced(Exception):
    """The cause of an error about a place in the text."""

    def __init__(self, span: Span) -> None:
        super().__init__(span)
        self.span = span


def _refuse_aliases(tree: exp.Expr) -> None:
    """Refuses an alias that sqlglot finds in parentheses around what cannot have one: ``WHERE (a b)``."""
    for paren in tree.find_all(exp.Paren):
        if isinstance(paren.this, exp.Alias) and isinstance(name := paren.this.args["alias"], exp.Identifier):
            place = _Misplaced(Span(name.meta.get("start", 0), name.meta.get("end", -1) + 1))
            raise InvalidInputError(f"{_UNPARSED}{_near_to(name.this)}", kind="sql-syntax") from place


_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def _write_identifiers(tree: exp.Expr) -> None:
    """Puts a column in the place of ``IDENTIFIER('t.a')``."""
    for node in list(tree.find_all(exp.Anonymous)):
        named = node.expressions[0] if len(node.expressions) == 1 else None
        is_column = str(node.this).upper() == "IDENTIFIER" and not isinstance(node.parent, (exp.Table, exp.Dot))
        if is_column and isinstance(named, exp.Literal) and named.is_string and _IDENTIFIER.fullmatch(named.name):
            node.replace(exp.column(*reversed(named.name.split("."))))


def _refuse_equal_names(tree: exp.Expr) -> None:
    """Refuses two queries of one WITH that have one name, and tables that a LATERAL names."""
    for clause in tree.find_all(exp.With):
        seen: set[str] = set()
        for query in clause.expressions:
            if (folded := query.alias.casefold()) in seen:
                raise InvalidInputError(f"two queries of one WITH are called {query.alias!r:.80}; rename one", kind="query")
            seen.add(folded)
    for lateral in tree.find_all(exp.Lateral):
        if isinstance(lateral.this, exp.Identifier):
            raise InvalidInputError(f"{_UNPARSED}: expected a query or a call after LATERAL", kind="query")


def _refuse_unplanned(tables: Iterable[exp.Table], known: Known, relations: str) -> None:
    """Refuses tables other than relations and those that the engine is known to have: DuckDB takes any other name for that of a
    file."""
    for table in tables:
        if not isinstance(table.this, exp.Identifier):
            raise InvalidInputError(f"{_UNPARSED}: expected a table, found {table.sql(dialect=Spark4)[:40]}", kind="query")
        name = tuple(part.name for part in table.parts)
        is_relation = len(name) == 1 and re.fullmatch(rf"{relations}\d+", name[0])
        if is_relation or known.engine_tables is None or tuple(map(str.casefold, name)) in known.engine_tables:
            continue
        place = Span(table.parts[0].meta.get("start", 0), table.parts[-1].meta.get("end", -1) + 1)
        if re.fullmatch(r"[\w$ -]+", name[-1]):
            raise InvalidInputError(
                f"expected the name of a table, found the text {'.'.join(name)[:80]!r}: a name stands without quotes or in "
                "backticks",
                kind="no-such-table",
            ) from _Misplaced(place)
        raise InvalidInputError(
            f"expected the name of a table, found {'.'.join(name)[:80]!r}; a query opens no files and no addresses: declare a "
            "table, CREATE TEMPORARY TABLE files (…) WITH ('connector' = 'filesystem', 'path' = '…', 'format' = 'csv'), or load "
            "them with tablestore import",
            kind="no-such-table",
        ) from _Misplaced(place)


def _rename_queries_of_with(tree: exp.Expr, prefix: str) -> None:
    """Gives the queries of every WITH names of tablestore's own, and what reads them an alias.

    So DuckDB takes none for a file or for a table of its own, should it bind a name in another way than was decided here.
    """
    names: dict[int, str] = {}
    queries = [(table, query_of_with(table)) for table in tree.find_all(exp.Table)]
    for query in tree.find_all(exp.CTE):
        names[id(query)] = f"{prefix}{len(names)}"
    for table, read in queries:
        if read is not None:
            if not table.alias:
                alias = table.args.get("alias") or exp.TableAlias()
                alias.set("this", table.this)
                table.set("alias", alias)
            table.set("this", exp.to_identifier(names[id(read)]))
    for query in tree.find_all(exp.CTE):
        query.args["alias"].set("this", exp.to_identifier(names[id(query)]))


def _only_query(statements: Trees) -> exp.Expr:
    """The one query of a text: DuckDB gets nothing else, whoever has written it."""
    trees = [tree for tree in statements if tree is not None and not isinstance(tree, exp.Semicolon)]
    if len(trees) != 1:
        amount = f"{len(trees)} statements" if trees else "none"
        raise InvalidInputError(f"expected one query, found {amount}", kind="not-a-query" if trees else "sql-syntax")
    tree = trees[0]
    if not isinstance(tree, _QUERIES):
        raise InvalidInputError(f"expected a query, found {_statement_of(tree)}", kind="not-a-query")
    for node in tree.find_all(*_NO_QUERIES):
        raise InvalidInputError(f"expected a query, found {_statement_of(node)} in it", kind="not-a-query")
    return tree


_QUERIES = (exp.Query, exp.Values)
_NO_QUERIES = (exp.DML, exp.Command, exp.Create, exp.Drop, exp.Alter, exp.Describe, exp.Into, exp.MultitableInserts, exp.Set)


def _statement_of(tree: exp.Expr) -> str:
    """The kind of statement, in a word, that a tree is which is no query."""
    return type(tree).__name__.upper() if isinstance(tree, (*_NO_QUERIES, exp.Pragma)) else "what is none"


def _trees(query: ParsedQuery) -> Trees:
    try:
        return query.take()
    except (SqlglotError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # On broken text sqlglot stumbles in many ways.
        raise InvalidInputError(f"{_UNPARSED}{_near(error)}", kind="sql-syntax") from error


def stumbled_at(error: BaseException | None, text: str) -> Span | None:
    """The place in a text that an error of :func:`to_duckdb` is about, by its cause; None where that is not known."""
    if not isinstance(error, (ParseError, _Misplaced)) or _with_select(ParsedQuery(text)).text != text:
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
    span = Span(end - length, end)
    return span if length and text[span.start : span.end] == first["highlight"] else None


def _near(error: Exception) -> str:
    """The text at which sqlglot failed, if it is the user's (its own words name its classes), or the arguments of a call."""
    if not isinstance(error, ParseError) or not error.errors:
        return ""
    first = error.errors[0]
    if (function := _call_of(first)) is not None:
        return f": {_wrong_number(function)}"
    return _near_to(first.get("highlight"))


def _near_to(near_text: str | None) -> str:
    return f": something is missing or misplaced near `{near_text}`" if near_text and _SHOWN.fullmatch(near_text) else ""


def _call_of(error: Mapping[str, Any]) -> str | None:
    """The function in whose arguments sqlglot failed."""
    call = re.search(r"(\w+)\s*\([^()]*$", error.get("start_context") or "")
    return call[1] if call is not None and _is_of_call(error.get("description") or "") else None


def _is_of_call(description: str) -> bool:
    """True if sqlglot's message is about the arguments of a function, and not of an operator."""
    of = re.search(r"missing for <class '[\w.]*?(\w+)'>", description)
    kind = getattr(exp, of[1], None) if of is not None else exp.Func
    is_function = isinstance(kind, type) and issubclass(kind, exp.Func) and not issubclass(kind, (exp.Binary, exp.Unary, exp.Case))
    return is_function and _WRONG_NUMBER.search(description) is not None


def _with_select(query: ParsedQuery) -> Tokens:
    """The text with ``TABLE t`` written as a SELECT, and ``X 'FF'`` as ``X'FF'``, as sqlglot knows them.

    Raises UnsupportedError for pipes, which sqlglot reads in another order, and for windows of time.
    """
    tokens, text = query.tokens, query.text
    edits: list[tuple[int, int, str]] = []
    looks_for_tables = not query.is_checked
    for at in tokens.places(("|>", "TABLE", "X", "WINDOW", "SESSION_WINDOW")):
        if tokens.key(at) in ("WINDOW", "SESSION_WINDOW"):
            # sqlglot stumbles over their columns, window.start.
            if at + 1 < len(tokens) and tokens.key(at + 1) == "(":
                raise refusal(f"the function {tokens.key(at).lower()}")
            continue
        if tokens.key(at) == "|>":
            raise refusal("pipes (|>)")
        if tokens.key(at) == "TABLE":
            looks_for_tables = True
        elif at + 1 < len(tokens) and tokens[at + 1].kind is TokenKind.TEXT:
            edits.append((tokens[at].end, tokens[at + 1].start, ""))
    if looks_for_tables:
        starts = {tokens[at].start: at for at in range(len(tokens))}
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
    """Keeps with each expression that may fail the text that the user wrote."""
    nodes = list(tree.walk(bfs=True))
    if not any(map(_may_fail, nodes)):
        return
    spans = spans_of(reversed(nodes), tokens)
    for node in nodes:
        first, end = spans.get(id(node), (0, 0))
        if _may_fail(node) and 0 < end - first <= MOST_SHOWN:
            node.meta[OWN_TEXT] = as_written(tokens.line(first, end))


def _cast_in(parent: exp.Expr | None, node: exp.Cast) -> exp.Cast:
    """A cast that nobody wrote, whose errors show the expression that it is part of."""
    if parent is not None and (text := parent.meta.get(OWN_TEXT)) is not None:
        node.meta[OWN_TEXT] = text
    return node


def _may_fail(node: exp.Expr) -> bool:
    return isinstance(node, _MAY_FAIL) or function_name(node) in RULES


def _rewritten(tree: exp.Expr, known: Known) -> tuple[exp.Expr, Columns | None, RowConditions]:
    """A tree as DuckDB has it, its columns and its conditions. All types are asked for before anything changes."""
    for select in list(tree.find_all(exp.Select)):
        laterals = select.args.get("laterals") or []
        joins = [exp.Join(this=lateral, side="LEFT" if lateral.args.get("outer") else None) for lateral in laterals]
        select.set("laterals", None)
        select.set("joins", [*(select.args.get("joins") or []), *joins])
    for rows in list(tree.find_all(exp.Values)):
        name_columns(rows)
    for sorted_query in list(tree.find_all(exp.Query)):
        sort_whole(sorted_query)
    for cast_node in list(tree.find_all(exp.Cast)):
        part_by_part(cast_node)
    ordered_as_arguments(tree)
    for added in list(tree.find_all(exp.Add)):
        _keep_together(added)
    for argument in list(tree.find_all(exp.Kwarg)):
        _unname(argument)
    bound = known.bind(tree)
    if write_out_aliases(tree, bound):
        bound = known.bind(tree)
    nodes = [node for node in tree.walk(bfs=True) if not isinstance(node, _NAMES)]
    _refuse_calls(nodes)
    changes: list[Callable[[], exp.Expr]] = []
    casts: dict[int, SqlType] = {}
    numbers: dict[int, SqlType] = {}
    moments: dict[int, tuple[SqlType, SqlType]] = {}
    texts: dict[int, tuple[SqlType, SqlType]] = {}
    zeros = Zeros()
    widened: list[Widened] = []
    for node in nodes:
        if isinstance(node, exp.Literal):
            # A list may have many; what else is to be done with one, that decides which is around it.
            changes.append(partial(_node, node, None))
            continue
        _refuse_order(node, bound)
        if isinstance(node, _OF_VARIANTS):
            _refuse_variants(node, bound)
        _refuse_numbers(node, bound)
        _refuse_texts(node, bound)
        _refuse_digits(node, bound)
        interval_behind(node, bound)
        if isinstance(node, (exp.Div, exp.IntDiv, exp.Mod)):
            note_dividends(node)
        changes.append(_change(node, bound))
        # The node around another one comes first, and decides.
        for at, kind in casts_of(node, bound).items():
            casts.setdefault(at, kind)
        for at, kind in in_microseconds(node, bound).items():
            casts.setdefault(at, kind)
        for operand in widened_operands(node, bound):
            casts.setdefault(id(operand), DOUBLE)
        numbers |= texts_as_numbers(node, bound)
        moments |= as_moments(node, bound)
        texts |= texts_of(node, bound)
        zeros.note(node, bound)
        widened += widened_queries(node, bound)
    failing = failing_nodes(tree, bound, numbers.keys())
    columns, conditions = bound.columns(tree), row_conditions(tree, bound, failing)
    chains = chains_in_order(failing)
    counted = _Counted(most=max(_MOST_NODES, 20 * len(nodes)))
    for node, change in zip(reversed(nodes), reversed(changes), strict=True):
        parent, key, index = node.parent, node.arg_key or "", node.index
        if isinstance(node, exp.Filter):
            of_counted_rows(node)
        rewritten = change()
        if id(node) in chains:
            rewritten = in_order(rewritten)
        if (number := numbers.get(id(node))) is not None:
            rewritten = cast(_cast_in(parent, cast_to(number, rewritten)), STRING)
        if (compared := moments.get(id(node))) is not None:
            kind, moment = compared
            rewritten = cast(cast_to(moment, rewritten), kind)
        if (cast_type := casts.get(id(node))) is not None:
            rewritten = _cast_in(parent, cast_to(cast_type, rewritten))
        if (types := texts.get(id(node))) is not None:
            rewritten = cast(_cast_in(parent, cast_to(types[1], rewritten)), types[0])
        if (signed := zeros.values.get(id(node))) is not None:
            rewritten = without_signs(rewritten, signed)
            if isinstance(node, exp.Column) and isinstance(parent, exp.Select) and key == "expressions":
                rewritten = exp.alias_(rewritten, node.name, quoted=True, copy=False)
        if key == "partition_by":
            rewritten = as_partition(rewritten)
        counted.note(rewritten)
        if rewritten is node:
            continue
        if parent is None:
            tree = rewritten
        else:
            _put(parent, key, index, rewritten)
    for query, side_columns, side_types in reversed(widened):
        widen(query, side_columns, side_types)
    zeros.take_signs()
    return fold_groups(tree), columns, conditions


def _keep_together(added: exp.Add) -> None:
    """Puts parentheses around an interval of several units, which sqlglot reads as their sum: ``a - INTERVAL 1 DAY 2 HOURS``."""
    parent = added.parent
    is_operand = isinstance(parent, (exp.Neg, exp.Binary)) and not (isinstance(parent, exp.Add) and added.arg_key == "this")
    if is_operand and all(isinstance(side, (exp.Interval, exp.Add)) for side in (added.this, added.expression)):
        added.replace(exp.paren(added.copy(), copy=False))


@dataclass(slots=True)
class _Counted:
    """Counts the nodes that stand for parts of a query, from the inside out, each once.

    What stands for a call may have its operands twice or more, so that calls in calls grow with each level.
    """

    most: int
    _count: int = 0
    _known: set[int] = field(default_factory=set)
    # The id of a node that is gone would be that of another one.
    _kept: list[exp.Expr] = field(default_factory=list)

    def note(self, rewritten: exp.Expr) -> None:
        """Counts a node whose parts were counted. Raises InvalidInputError of the kind ``limit`` where all are too many."""
        nodes = [rewritten]
        while nodes:
            node = nodes.pop()
            if id(node) not in self._known:
                self._count += 1
                nodes += node.iter_expressions()
        if self._count > self.most:
            raise InvalidInputError(
                f"the query has more than {self.most:,} parts in DuckDB's words, where calls in calls are written out: name "
                "parts of it in a query below, or run the query on the engine spark",
                kind="limit",
            )
        self._known.add(id(rewritten))
        self._kept.append(rewritten)


def _put(parent: exp.Expr, key: str, index: int | None, new_node: exp.Expr) -> None:
    """Puts a node in the place of another one. In a list ``set`` would look at each of its nodes, for each that is put there."""
    if index is None:
        parent.set(key, new_node)
    else:
        parent.args[key][index] = new_node
        new_node.parent, new_node.arg_key, new_node.index = parent, key, index


def _change(node: exp.Expr, bound: Bound) -> Callable[[], exp.Expr]:
    """The function that makes a node one of DuckDB's when its parts are done."""
    if (rule := RULES.get(function_name(aggregate_of(node)) or "")) is not None:
        return _ruled(node, rule, bound)
    match node:
        case exp.Count() | exp.CountIf() | exp.ArrayAgg() | exp.ArrayUniqueAgg() if (pivot := pivot_around(node)) is not None:
            return partial(counted_in_pivot, node, of_none=_counts_none(pivot, bound))
        case exp.TableSample():
            return partial(sampled, node)
        case exp.Count(this=exp.Distinct(expressions=[exp.Star() as star])):
            return partial(_distinct_rows, node, bound.columns(star))
        case exp.TimestampAdd():
            return partial(added_units, node, bound.of(node.this))
        case exp.Concat() if (
            type(node) is exp.Concat
            and bound.of(node) == STRING
            and (len(node.expressions) == 1 or VOID in map(bound.of, node.expressions))
        ):
            return lambda: exp.cast(node, "TEXT", copy=False)
        case exp.Abs() | exp.Neg() | exp.Sign() if bound.of(node.this) == VOID:
            return lambda: exp.cast(exp.null(), "DOUBLE")
        case exp.Cast(this=exp.Literal(is_string=True)) if node.to.this is exp.DType.TIME:
            if _FINER_TIME.search(node.this.name) and _is_result(node, bound):
                raise refusal(f"a TIME finer than milliseconds{in_own_text(node)}")
        case exp.Cast() if node.to.this is exp.DType.TIME and _is_result(node, bound):
            return lambda: _of_milliseconds(node, _node(node, bound.of(node.this)))
        case exp.Abs() | exp.Neg() if (kind := bound.of(node)) is not None and kind.is_decimal and kind.precision > _SURE_DIGITS:
            return partial(_few_digits, node, kind)
        case exp.Mul() | exp.Div() if bound.of(node) == INTERVAL and not _is_multiple(node, bound):
            raise refusal("an interval by a number, or times another one than a whole one")
        case exp.Interval():
            return partial(plain_interval, node)
        case exp.Column() if (field := field_of_alias(node, bound)) is not None:
            return lambda: field
        case exp.Select():
            of_maps = [at for at, item in enumerate(node.expressions) if _takes_map(_generator(item), bound)]
            in_order = goes_by_order(node)
            return lambda: sets_of_groups(generated_columns(node, of_maps), in_order=in_order)
        case exp.Table(this=exp.Func()) if function_name(node.this) in GENERATORS:
            return partial(rows_of_table, node)
        case exp.Table(this=exp.Explode()) if type(node.this) is exp.Explode and _takes_map(node.this, bound):
            return partial(map_function, node)
        case exp.Join(this=exp.Lateral(this=exp.Func())):
            return partial(exploded, node, of_map=_takes_map(node.this.this, bound))
        case exp.Div():
            return partial(quotient, node, bound.of(node), bound.of(node.this), bound.of(node.expression))
        case exp.IntDiv() if bound.of(node.this) != INTERVAL:
            return partial(whole_quotient, node, bound.of(node.this), bound.of(node.expression))
        case exp.Sub() if bound.of(node) == INTERVAL and bound.of(node.this) in _MOMENTS:
            return partial(interval_between, node, bound.of(node.this), bound.of(node.expression))
        case exp.IntDiv() if bound.of(node.this) == bound.of(node.expression) == INTERVAL:
            return partial(quotient_of_intervals, node)
        case exp.Sign() | exp.Abs() if bound.of(node.this) == INTERVAL:
            return partial(size_of_interval, node)
        case exp.Sum() | exp.Avg() if bound.of(node) == INTERVAL:
            raise refusal(f"{node.key} of intervals")
        case exp.Add() | exp.Sub() if moves_by_interval(node, bound):
            return partial(moved, node)
        case exp.Dot() if _has_rows(bound.of(node.this)):
            return partial(field_of_each, node)
        case exp.Bracket() if _is_computed(node, bound.of(node.this)):
            return partial(computed_subscript, node, bound.of(node.this), bound.of(node.expressions[0]))
        case exp.Map() | exp.VarMap() if isinstance(node.args.get("keys"), exp.Array):
            return partial(map_of_keys, node, bound.of(node))
        case exp.MonthsBetween():
            return partial(months_between, node, bound.of(node.this), bound.of(node.expression))
    if (averages := averaged(node)) is not None and not _is_inside(node):
        kind, of = bound.of(node), bound.of(averages.this)
        if of is None:
            raise unknown_operand("avg", node)
        if kind is not None and of.is_decimal:
            return partial(average, node, kind, of)
    return partial(_node, node, bound.of(node.this) if isinstance(node, _OF_ITS_OPERAND) else bound.of(node))


def _counts_none(pivot: exp.Pivot, bound: Bound) -> bool:
    """True if a PIVOT gives what an aggregate of no rows gives, and no NULL: Spark does where one is no number and no BOOLEAN."""
    types = [bound.of(item) for item in pivot.expressions]
    if None in types:
        raise refusal("PIVOT with counts beside an aggregate whose type is not known")
    return not all(kind is not None and (kind.is_number or kind == BOOLEAN) for kind in types)


def _distinct_rows(node: exp.Count, columns: Columns | None) -> exp.Expr:
    """A count of distinct rows, as one of all columns."""
    names = [name for name, _ in columns or ()]
    if not names or len(set(map(str.casefold, names))) < len(names):
        raise refusal("count(DISTINCT *) of columns that are not known, or have one name")
    alias = node.find_ancestor(exp.Alias, exp.Query)
    if isinstance(alias, exp.Alias) and alias.meta.get(NAMED_HERE):
        named = DISTINCT_ROWS.replace("*", ", ".join(names))
        alias.set("alias", exp.to_identifier(alias.alias.replace(DISTINCT_ROWS, named), quoted=True))
    node.set("this", exp.Distinct(expressions=[exp.column(name, quoted=True) for name in names]))
    return node


# More than three digits of a second, the others not all zeros.
_FINER_TIME = re.compile(r"\.[0-9]{3}0*[1-9]")


def _is_result(node: exp.Expr, bound: Bound) -> bool:
    """True if a TIME may be a value of a result, as far as what is around it and the columns of the result say."""
    columns = bound.columns(node.root())
    if columns is not None and not any(kind is None or kind == TIME or kind.is_nested for _, kind in columns):
        return False
    parent = node.parent
    while parent is not None and not isinstance(parent, (exp.Query, exp.Values)):
        if isinstance(parent, (exp.Condition, exp.Func)) and bound.of(parent) not in (TIME, None):
            return False
        if function_name(parent) == "time_trunc":
            # It refuses such a result itself.
            return False
        parent = parent.parent
    return True


def _of_milliseconds(node: exp.Expr, value: exp.Expr) -> exp.Expr:
    """A TIME, or a refusal of one that is finer than a result counts."""
    finer = call("EPOCH_US", exp.paren(value.copy()))
    is_finer = exp.NEQ(this=exp.Mod(this=finer, expression=exp.Literal.number(1000)), expression=exp.Literal.number(0))
    return refused_where(is_finer, f"a TIME finer than milliseconds{in_own_text(node)}", value)


def _is_multiple(node: exp.Expr, bound: Bound) -> bool:
    """True if a node is a whole number times an interval."""
    factors = (bound.of(node.this), bound.of(node.expression))
    return isinstance(node, exp.Mul) and any(kind is not None and kind.is_integer for kind in factors)


def _few_digits(node: exp.Expr, kind: SqlType) -> exp.Expr:
    """The value without its sign, or with the other one. Spark rounds what has more than 34 digits."""
    least = exp.cast(exp.Literal.string(f"{Decimal(10) ** (_SURE_DIGITS - kind.scale):f}"), f"DECIMAL(38, {kind.scale})")
    is_large = exp.GTE(this=exp.func("ABS", node.this.copy()), expression=least)
    return refused_where(is_large, "abs or - of a decimal of more than 34 digits", node)


def _has_rows(kind: Type) -> bool:
    return kind is not None and kind.name == "array" and kind.parts[0] is not None and kind.parts[0].name == "struct"


def _is_computed(node: exp.Bracket, kind: Type) -> bool:
    """True for a subscript that is computed, or a key of a map that is no text that is written."""
    if len(node.expressions) != 1 or kind is None or kind.name not in ("array", "map"):
        return False
    index = node.expressions[0]
    return not isinstance(index, exp.Literal) or (kind.name == "map" and not index.is_string)


def _unname(argument: exp.Kwarg) -> None:
    """Takes away the name of an argument that is the only one of its function."""
    function = argument.parent
    written_call = function.meta.get(CALL) if function is not None else None
    if function is None or not isinstance(written_call, Call) or written_call.arguments != 1:
        return
    if _ONLY_PARAMETERS.get(written_call.name) == argument.this.name.lower():
        argument.replace(argument.expression)
        function.meta[CALL] = replace(written_call, named=False)


_ONLY_PARAMETERS = {
    **dict.fromkeys(("explode", "explode_outer", "posexplode", "posexplode_outer"), "collection"),
    **dict.fromkeys(("inline", "inline_outer", "variant_explode", "variant_explode_outer"), "input"),
}


def _ruled(node: exp.Expr, rule: FunctionRule, bound: Bound) -> Callable[[], exp.Expr]:
    """The function that writes a call by its rule: an aggregate with its window and filter, when these are done."""
    inner = aggregate_of(node)
    if rule.is_aggregate and isinstance(node.parent, AROUND_AN_AGGREGATE) and node.arg_key == "this":
        return lambda: node
    if inner is not node and not rule.is_aggregate:
        raise refusal(f"the function {function_name(inner)} with OVER or FILTER")
    name = function_name(inner) or rule.name
    if name in GENERATORS and not isinstance(node.parent, (exp.Select, exp.Alias, exp.Aliases, exp.Table, exp.Lateral)):
        raise InvalidInputError(f"the function `{name}` gives rows: expected it alone in SELECT, or in FROM", kind="query")
    types, result = tuple(map(bound.of, arguments_of(inner))), bound.of(node)
    is_distinct = any(isinstance(part, exp.Distinct) for part in inner.iter_expressions())

    def written() -> exp.Expr:
        values = tuple(arguments_of(aggregate_of(node)))
        value = rule.write(RuleCall(name=name, node=node, values=values, types=types, result=result, is_distinct=is_distinct))
        # A number that is written may have a larger type in DuckDB.
        return as_type(value, result) if result is not None and result.has_numbers else value

    return written


def _generator(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, (exp.Alias, exp.Aliases)) else item


def _takes_map(function: exp.Expr, bound: Bound) -> bool:
    """True if a function makes rows of the entries of a map."""
    kind = bound.of(function.this) if isinstance(function, exp.Explode) else None
    return kind is not None and kind.name == "map"


_SURE_DIGITS = 34
_MOST_NODES = 50_000
_NAMES = (exp.Identifier, exp.DataType, exp.DataTypeParam, exp.TableAlias, exp.Var)
_MOMENTS = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_MAY_FAIL = (exp.Div, exp.IntDiv, exp.Mod, exp.Bracket, exp.Cast, exp.TsOrDsToDate, *OF_DOUBLES)
_OF_ITS_OPERAND = (exp.Cast, exp.Bracket, exp.Reverse, exp.Sign, exp.TsOrDsToDate, *ROUNDED)
_EQUALITIES = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)


def _refuse_order(node: exp.Expr, bound: Bound) -> None:
    """Refuses an order of nested values: DuckDB has a NULL inside of one for the greatest, and compares parts of rows by their
    names."""
    if isinstance(node, (exp.Max, exp.Min, exp.Ordered)) and _has_parts(bound.of(node.this)):
        raise refusal("an order of rows or arrays, in which a NULL is the least (max_by and min_by take a value)")
    if any(map(_has_parts, map(bound.of, _ordered(node)))):
        raise refusal("an order of rows or arrays, in which a NULL is the least")
    if function_name(node) == "sort_array" and _has_parts(element(bound.of(node.this))):
        raise refusal("sort_array of rows or arrays, in whose order a NULL is the least")
    if isinstance(node, _EQUALITIES) and any(isinstance(side.unnest(), exp.Struct) for side in (node.this, node.expression)):
        raise refusal("a comparison with a written row, whose parts may have other names")


def _ordered(node: exp.Expr) -> Sequence[exp.Expr]:
    """The operands that a node puts in an order."""
    match node:
        case exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return node.this, node.expression
        case exp.Between():
            return node.this, node.args["low"], node.args["high"]
        case exp.Greatest() | exp.Least():
            return node.this, *node.expressions
        case exp.ArgMax() | exp.ArgMin():
            return (node.expression,)
        case _:
            return ()


def _has_parts(kind: Type) -> bool:
    return kind is not None and kind.name in ("array", "struct")


_COMPARING = frozenset(
    {"array_contains", "array_distinct", "array_except", "array_intersect", "array_position", "array_remove", "array_union"}
    | {"arrays_overlap", "mode", "nullif"}
)
_OF_VARIANTS = (
    *(*_EQUALITIES, exp.In, exp.Group, exp.Distinct, exp.Window, exp.Case, exp.Select, exp.SetOperation),
    *(exp.Alias, exp.Func, exp.Bracket),
)
_KEYS = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Paren)


def _refuse_variants(node: exp.Expr, bound: Bound) -> None:
    """Refuses a VARIANT that is compared, as Spark does: here its bytes would be, which differ where values do not. Refuses parts
    that are taken out of it in other ways than by a function."""
    if isinstance(node, exp.Alias):
        if isinstance(node.args["alias"], exp.Placeholder):
            raise refusal("a part of a VARIANT behind a colon (variant_get takes it out)")
        return
    if isinstance(node, exp.Bracket) and bound.of(node.this) == VARIANT:
        raise InvalidInputError("a VARIANT has no parts in brackets; take them out with variant_get", kind="query")
    if any(kind is not None and kind.has_variant for kind in _compared_types(node, bound)):
        raise InvalidInputError(
            "a VARIANT cannot be compared, grouped, made distinct or a key; take parts out with variant_get, or compare its JSON "
            "with to_json",
            kind="query",
        )


def _compared_types(node: exp.Expr, bound: Bound) -> Sequence[Type]:
    """The types of the values that a node tells apart."""
    match node:
        case exp.EQ() | exp.NEQ() | exp.NullSafeEQ() | exp.NullSafeNEQ() | exp.In() | exp.ArrayUniqueAgg():
            return (bound.of(node.this),)
        case exp.Group() | exp.Distinct():
            return [bound.of(key) for key in _keys_in(node.expressions)]
        case exp.Window():
            return [bound.of(key) for key in node.args.get("partition_by") or ()]
        case exp.Case(this=exp.Expr() as value):
            return (bound.of(value),)
        case exp.Select() if isinstance(node.args.get("distinct"), exp.Distinct):
            return [kind for _, kind in bound.columns(node) or ()]
        case exp.SetOperation() if not isinstance(node, exp.Union) or node.args.get("distinct") is not False:
            return [kind for _, kind in bound.columns(node) or ()]
    if function_name(node) in _COMPARING:
        return [bound.of(argument) for argument in arguments_of(node)]
    kind = bound.of(node) if isinstance(node, exp.Func) else None
    return kind.parts[:1] if kind is not None and kind.name == "map" else ()


def _keys_in(keys: Iterable[exp.Expr]) -> Iterator[exp.Expr]:
    for key in keys:
        if isinstance(key, _KEYS):
            yield from _keys_in([key.this] if isinstance(key, exp.Paren) else key.expressions)
        else:
            yield key


def _refuse_texts(node: exp.Expr, bound: Bound) -> None:
    """Refuses texts beside other values in one column: DuckDB makes it one of texts, Spark one of the others (``SELECT '1' UNION
    ALL SELECT 2``)."""
    if not isinstance(node, exp.SetOperation) or node.args.get("by_name"):
        return
    for (name, left), (_, right) in zip(bound.columns(node.left) or (), bound.columns(node.right) or (), strict=False):
        other_types = {kind for kind in (left, right) if kind is not None and kind not in (STRING, VOID)}
        if STRING in (left, right) and other_types:
            raise refusal(f"{node.key.upper()} of STRING and {other_types.pop()} in the column {name!r} without a CAST")


def _refuse_digits(node: exp.Expr, bound: Bound) -> None:
    """Refuses calls whose results would have other digits, or another type."""
    if isinstance(node, exp.Anonymous) and str(node.this).lower() == "pmod":
        if any(kind is not None and kind.is_decimal for kind in map(bound.of, node.expressions)):
            raise refusal("pmod of decimals")
    elif isinstance(node, exp.SHA2) and not isinstance(node.args.get("length"), (exp.Literal, type(None))):
        raise refusal("sha2 with a number of bits that is computed")
    elif isinstance(node, exp.ArrayUniqueAgg) and _has_map(bound.of(node.this)):
        raise InvalidInputError(f"the function `collect_set` takes no maps, found {bound.of(node.this)}", kind="query")
    elif function_name(node) == "ntile":
        _check_ntile(node, bound)
    elif isinstance(node, exp.Pivot) and any(_counts_inside(call) for call in node.expressions):
        raise refusal("PIVOT with an aggregate that is no NULL of no rows")
    elif isinstance(node, exp.Lambda):
        names = [name.name.casefold() for name in node.expressions]
        if len(set(names)) < len(names):
            raise InvalidInputError("two variables of a lambda have one name; rename one", kind="query")
    elif isinstance(node, exp.Concat) and _is_array(bound.of(node)) and VOID in map(bound.of, node.expressions):
        raise InvalidInputError(
            "the function `concat`: expected arrays or texts, found an array and NULL; cast the NULL", kind="query"
        )
    elif isinstance(node, exp.Cast) and (isinstance(node.to.this, exp.Interval) or node.to.this is exp.DType.INTERVAL):
        raise refusal("the cast to an INTERVAL")


_COUNTED = (exp.Count, exp.CountIf, exp.ArrayAgg, exp.ArrayUniqueAgg)


def _counts_inside(item: exp.Expr) -> bool:
    """True for an aggregate of a PIVOT that counts, and that is not written anew."""
    plain = item.unalias()
    several = isinstance(plain.this, exp.Distinct) and len(plain.this.expressions) > 1
    is_written = isinstance(plain, _COUNTED) and not plain.expressions and not several
    return not is_written and item.find(*_COUNTED, exp.ApproxDistinct) is not None


def _has_map(kind: Type) -> bool:
    return kind is not None and (kind.name == "map" or any(map(_has_map, kind.parts)))


def _check_ntile(node: exp.Expr, bound: Bound) -> None:
    """Raises InvalidInputError for a number of buckets that is no constant INT."""
    for count in arguments_of(node):
        if bound.of(count) not in (INT, None):
            raise InvalidInputError(f"the function `ntile`: expected an INT as argument 1, found {bound.of(count)}", kind="query")
        if count.find(exp.Column, exp.Query) is not None:
            raise InvalidInputError("the function `ntile`: expected a constant as argument 1", kind="query")


def _is_array(kind: Type) -> bool:
    return kind is not None and kind.name == "array"


def _refuse_numbers(node: exp.Expr, bound: Bound) -> None:
    """Refuses a number as a condition, which DuckDB takes: ``DELETE FROM t WHERE 1``."""
    for condition in _conditions(node):
        kind = bound.of(condition)
        if kind is not None and kind not in (BOOLEAN, STRING, VOID):
            raise InvalidInputError(
                f"expected a condition, found {condition.unnest().sql(dialect=Spark4):.80}, which is no BOOLEAN; compare it",
                kind="query",
            )


def _conditions(node: exp.Expr) -> list[exp.Expr]:
    match node:
        case exp.Where() | exp.Having() | exp.Qualify() | exp.Not():
            conditions = [node.this]
        case exp.And() | exp.Or():
            conditions = [node.this, node.expression]
        case exp.Join():
            conditions = [node.args.get("on")]
        case exp.If() if not (isinstance(node.parent, exp.Case) and node.parent.this is not None):
            conditions = [node.this]
        case _:
            conditions = []
    return [condition for condition in conditions if condition is not None]


def _is_below_one(to: exp.DataType) -> bool:
    """True if a type is that of decimals without a digit before the point."""
    digits = [part.name for part in to.expressions]
    return to.this is exp.DType.DECIMAL and len(digits) == 2 and digits[0] == digits[1]


def _is_inside(node: exp.Expr) -> bool:
    """True if a function stands in a window or behind a filter, which is rewritten with it."""
    return isinstance(node.parent, (exp.Window, exp.Filter)) and node.arg_key == "this"


def _node(node: exp.Expr, kind: Type) -> exp.Expr:
    """The node that DuckDB has for a node whose parts are done. ``kind``: the type of the node; of a cast or subscript, of its
    operand."""
    rewrite = REWRITES.get(type(node))
    if rewrite is not None:
        return rewrite(node)
    match node:
        case exp.Mod():
            return divided(node)
        case exp.Window() | exp.Filter() | exp.AggFunc() if not _is_inside(node) and is_another(node):
            return whole_aggregate(node)
        case exp.Avg() if kind == DOUBLE:
            return average_of_doubles(node)
        case exp.Add() | exp.Sub() if kind == DATE:
            return as_date(node)
        case exp.Nullif() if kind == FLOAT:
            return exp.Cast(this=node, to=exp.DataType.build("FLOAT"))
        case exp.Cast() if kind == BOOLEAN and _is_below_one(node.to):
            # DuckDB makes 0.1 of true.
            raise refusal("the cast of a BOOLEAN to a decimal below one")
        case exp.Cast():
            return cast(node, kind)
        case exp.Sign() if kind is not None and kind.is_float:
            is_itself = exp.or_(exp.IsNan(this=node.this.copy()), exp.EQ(this=node.this.copy(), expression=exp.Literal.number(0)))
            return exp.Case(ifs=[exp.If(this=is_itself, true=node.this.copy())], default=node)
        case exp.Reverse() if kind is not None and kind.name == "array":
            return call("LIST_REVERSE", node.this)
        case exp.TsOrDsToDate() if kind == STRING:
            return date_of_text(strict_date(node))
        case exp.TsOrDsToDate():
            return strict_date(node)
        case _ if isinstance(node, ROUNDED):
            return round_as_spark(node, kind)
        case exp.Bracket():
            return subscript(node, kind)
        case exp.Group():
            return group(node)
        case exp.Table(this=exp.Func()):
            return table_function(node)
        case exp.Star() if isinstance(node.parent, exp.Func) and not isinstance(node.parent, exp.Count):
            raise refusal("a star inside of a function")
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
    """The node for a call that no other rule is about; :func:`_refuse_calls` has let it through."""
    if isinstance(node, exp.Anonymous):
        check_gives_value(node)
    rewrite = NAMED.get(str(node.this).lower()) if isinstance(node, exp.Anonymous) else None
    return node if rewrite is None else rewrite(*node.expressions)


def _refuse_calls(nodes: Sequence[exp.Expr]) -> None:
    """Refuses calls that are not known to give the same as in Spark (``BOUNDS``)."""
    for node in nodes:
        call = node.meta.get(CALL)
        if isinstance(call, Call):
            _refuse_call(call)
            if call.name == "range" and not isinstance(node.parent, (exp.Table, exp.Lateral)):
                raise InvalidInputError("the function `range` gives rows: expected it in FROM", kind="query")
        elif isinstance(node, exp.Func) and type(node).__name__ not in OPERATORS:
            raise refusal(f"the function {node.sql_name().lower()}")


def _refuse_call(call: Call) -> None:
    if call.name.startswith(FUNCTION_PREFIX):
        return
    if not is_spark_function(call.name):
        raise InvalidInputError(
            f"there is no function `{call.name}`{did_you_mean(call.name, [*BOUNDS, *SPARK_FUNCTIONS])}", kind="query"
        )
    if call.name not in BOUNDS:
        raise refusal(f"the function {call.name}")
    if call.named:
        raise refusal(f"the function {call.name} with names of arguments (=>)")
    least, most = BOUNDS[call.name]
    if call.arguments < least:
        raise InvalidInputError(_wrong_number(call.name), kind="sql-syntax")
    if call.arguments > most:
        raise refusal(f"the function {call.name} of {call.arguments} arguments")
