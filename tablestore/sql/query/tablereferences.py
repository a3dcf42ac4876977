"""Finds the tables that a query reads, and where their names stand in its text.

A walk over the tokens, not a parse: what names a table is decided by the words around it (FROM, JOIN, TABLE, a comma in a FROM
list), so a query with syntax that nobody here has heard of is still understood.

    FROM shop.orders VERSION AS OF 3 TABLESAMPLE (10 ROWS)
         ----------- ***************                      ^
         replaced    cut                                  where an alias is put, as there is none

A hint OPTIONS behind the name is cut too: what it gives are options of the reference, wherever else one stands it is refused.

A name that an enclosing WITH binds is no reference. A WITH binds each of its names from behind its query to the end of the
parentheses around, with RECURSIVE in its query too.

Limits: scripts (``MAP``, ``REDUCE``), names computed at run time (``IDENTIFIER(:name)``) and tables named only in a hint are left
to the engine.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tablestore.sql.parse.tokens import Kind, Token, name_of, tokenize
from tablestore.sql.query.hints import DynamicOption, gives_options, misplaced, options_of
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.source import Fragment, Path, Span, syntax_error
from tablestore.sql.sqldialect import SqlDialect


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeTravel:
    """The literal or expression behind AS OF; ``kind`` is ``version`` or ``timestamp``."""

    kind: str
    expression: Fragment


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One table reference of a query.

    ``span`` is replaced by the relation's name, ``cut`` (time travel, and OPTIONS) by nothing. ``call``: the arguments of a
    table-valued call, whose first one names the table. ``alias_at``: where an alias has to be put, None if there is one or there
    can be none. ``options``: what a hint gives. ``scope``: the text in which the reference can be named (its query, with what is
    nested in it). ``sampled``: TABLESAMPLE follows.
    """

    path: Path
    span: Span
    scope: Span
    alias: str | None = None
    alias_at: int | None = None
    time_travel: TimeTravel | None = None
    cut: Span | None = None
    options: tuple[DynamicOption, ...] = ()
    call: tuple[Fragment, ...] | None = None
    sampled: bool = False


CALLS = frozenset({"table_changes"})
"""Table-valued calls that are tablestore's."""

# Words that begin the clause behind a list, and signs that say that such a word is a name.
_LIST_ENDS = frozenset({"FROM", "WHERE", "HAVING", "QUALIFY", "LIMIT", "UNION", "EXCEPT", "INTERSECT"})
_BEHIND_NAMES = frozenset({",", ".", ")", ":", "=", "AS", "FROM"})
# Words that lead to something, and to what.
_LEADING = {"ON": "a condition", "USING": "columns in parentheses", "IN": "values in parentheses", "BY": "an expression"}
_CHECKED = frozenset({",", "EXCEPT", *_LEADING})
_BEFORE_BY = frozenset({"GROUP", "ORDER", "PARTITION", "SORT", "CLUSTER", "DISTRIBUTE"})
# Behind these such a word is a name.
_BEFORE_NAMES = frozenset(
    {"SELECT", "DISTINCT", "WHERE", "HAVING", "AND", "OR", "BY", "AS", "ON", "CASE", "WHEN", "THEN", "ELSE", "BETWEEN", "LIKE"}
)
_CLAUSE_WORDS = frozenset({"WHERE", "HAVING", "QUALIFY", "LIMIT", "JOIN"})
_QUERY_WORDS = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE"})
_SET_WORDS = frozenset({"UNION", "EXCEPT", "INTERSECT", "MINUS", "SETMINUS"})
# They end the list of a FROM.
_CLAUSES = _SET_WORDS | {
    "|>", "SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW", "QUALIFY",
}  # fmt: skip
# The words and signs that a walk stops at.
_NOTED = _CLAUSES | {"(", ",", "FROM", "JOIN", "LATERAL", "TABLE", "WITH"}
# They follow a table and are not its alias.
_NO_ALIAS = _CLAUSES | {
    "ANTI", "ASOF", "CROSS", "FROM", "FULL", "INNER", "INSERT", "JOIN", "LATERAL", "LEFT", "NATURAL", "ON", "PIVOT", "RIGHT",
    "SEMI", "TABLESAMPLE", "UNPIVOT", "USING", "WITH",
}  # fmt: skip
# Functions with a FROM between their arguments.
_FROM_INSIDE = frozenset({"EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY"})
_DUCKDB_NAMING = frozenset({"SUMMARIZE", "DESCRIBE"})
_DUCKDB_LEADING = _DUCKDB_NAMING | frozenset({"PIVOT", "PIVOT_WIDER", "PIVOT_LONGER", "UNPIVOT"})
_DUCKDB_QUERY_WORDS = _QUERY_WORDS | _DUCKDB_LEADING
_DUCKDB_NO_ALIAS = frozenset({"POSITIONAL", "PIVOT_WIDER", "PIVOT_LONGER"})
_VERSION_WORDS = frozenset({"VERSION", "SYSTEM_VERSION"})
_TIMESTAMP_WORDS = frozenset({"TIMESTAMP", "SYSTEM_TIME"})


def find_references(text: str, calls: frozenset[str] = CALLS, dialect: SqlDialect = SqlDialect.SPARK) -> tuple[Reference, ...]:
    """The table references of a query, in order of their place. Raises InvalidInputError for what is not even tokens."""
    return references_in(Tokens(text, dialect), calls)


def references_in(tokens: Tokens, calls: frozenset[str] = CALLS, *, is_whole: bool = True) -> tuple[Reference, ...]:
    """The references as :func:`find_references` finds them, of tokens. ``is_whole`` False: it may be just the name of a table."""
    text = tokens.text
    if tokens.dialect is SqlDialect.SPARK:
        # DuckDB's own parser says so, and takes a comma behind the last item.
        _check_lists(text, tokens)
    walk = _Walk(text, tokens, calls)
    walk.query(0, len(walk.tokens), frozenset())
    walk.check_hints(is_whole=is_whole)
    return tuple(sorted(walk.found, key=lambda reference: reference.span))


def _check_lists(text: str, tokens: Tokens) -> None:
    """Raises for a comma without an item before or behind it, and for a word without what belongs behind it: sqlglot, which reads
    the text later, lets these pass, and ``JOIN u ON`` would be every row beside every other."""
    for at in tokens.places(_CHECKED):
        word = tokens.key(at)
        if word == "," and (tokens.key(at - 1) in ("(", "SELECT") or _ends_list(tokens, at + 1)):
            raise syntax_error(text, tokens[at].span, "expected an item on either side of the comma")
        if (expected := _LEADING.get(word)) is not None and _leads(tokens, at) and _ends_clause(tokens, at + 1):
            raise syntax_error(text, tokens[at].span, f"expected {expected} behind {word}")
        if word == "EXCEPT" and tokens.key(at - 1) == "*" and tokens.key(at + 1) != "(":
            raise syntax_error(text, tokens[at].span, "expected columns in parentheses behind EXCEPT")


def _leads(tokens: Tokens, at: int) -> bool:
    """True if a word leads what is behind it, and is no name of a column."""
    before = tokens.key(at - 1)
    if tokens.key(at) == "BY":
        return before in _BEFORE_BY
    return before == ")" or (tokens.is_name(at - 1) and before not in _BEFORE_NAMES)


def _ends_clause(tokens: Tokens, at: int) -> bool:
    if tokens.key(at) in ("GROUP", "ORDER"):
        return tokens.key(at + 1) == "BY"
    if at >= len(tokens) or tokens.key(at) in (")", ";", "|>"):
        return True
    return tokens.key(at) in _CLAUSE_WORDS and at + 1 < len(tokens) and tokens.key(at + 1) not in _BEHIND_NAMES


def _ends_list(tokens: Tokens, at: int) -> bool:
    """True if there is no item here: another comma, the end, or a clause. A clause's word can be a name: of a column, say."""
    if at >= len(tokens) or tokens.key(at) in (",", ")", ";", "|>"):
        return True
    if tokens.key(at) in ("GROUP", "ORDER"):
        return tokens.key(at + 1) == "BY"
    return tokens.key(at) in _LIST_ENDS and at + 1 < len(tokens) and tokens.key(at + 1) not in _BEHIND_NAMES


class _Walk:
    """Collects references in ``found``. Its methods take and return places among the tokens."""

    def __init__(self, text: str, tokens: Tokens, calls: frozenset[str]) -> None:
        self.text = text
        self.tokens = tokens
        self.calls = calls
        self.found: list[Reference] = []
        self._is_duckdb = tokens.dialect is SqlDialect.DUCKDB
        self._query_words = _DUCKDB_QUERY_WORDS if self._is_duckdb else _QUERY_WORDS
        self._noted = _NOTED | _DUCKDB_LEADING if self._is_duckdb else _NOTED
        self._no_alias = _NO_ALIAS | _DUCKDB_NO_ALIAS if self._is_duckdb else _NO_ALIAS
        self._hints: dict[Span, list[Token]] = {}  # those that give the options of a reference, by its place

    def check_hints(self, *, is_whole: bool) -> None:
        """Raises InvalidInputError for OPTIONS that are not those of a reference, nor of the name that is not a whole query."""
        reference_hints = {hint.start for reference in self.found for hint in self._hints.get(reference.span, ())}
        behind_name = -1 if is_whole else self.tokens.after_chain(0)
        for at, hints in self.tokens.hints.items():
            for hint in hints if at != behind_name else ():
                if hint.start not in reference_hints and gives_options(self.text, hint):
                    raise misplaced(self.text, hint)

    def query(self, at: int, end: int, bound: frozenset[str], *, reads: bool = True) -> None:
        """Walks what stands between two parentheses; ``reads``: a FROM at this level is followed by tables. ``bound``: names of
        WITH."""
        tokens = self.tokens
        scope = self._place(at, end)
        in_list = False  # in the list of a FROM, where a comma is followed by a table
        while at < end:
            word = tokens.key(at)
            if word not in self._noted or tokens.key(at - 1) == ".":
                at += 1
            elif word in _DUCKDB_LEADING and self._is_duckdb:
                at = self._leading(at, bound, scope)
            elif word == "(":
                at = self._parentheses(at, bound)
            elif word == "WITH" and reads and self._is_binding(at):
                at, bound = self._with(at, bound)
            elif word == "TABLE" and self._begins_table(at):
                at = self._table(at + 1, bound, scope)
            elif reads and (word == "JOIN" or (word == "," and in_list) or (word == "FROM" and self._is_from(at))):
                in_list = in_list or word == "FROM"
                at = self._relation(at + 1, bound, scope)
            else:
                # Behind LATERAL VIEW a comma is followed by names of columns.
                if word in _CLAUSES or (word == "LATERAL" and tokens.key(at + 1) == "VIEW"):
                    in_list = False
                at += 1

    def _leading(self, at: int, bound: frozenset[str], scope: Span) -> int:
        """Walks ``SUMMARIZE t``, ``DESCRIBE t``, ``PIVOT t …`` or ``UNPIVOT t …``, up to behind the table; a query comes next."""
        tokens = self.tokens
        begins = at == 0 or tokens.key(at - 1) in ("(", ")")
        if not begins or self._begins_query(at + 1) or tokens.key(at + 1) in ("FROM", ".", ",", ")", "AS"):
            return at + 1
        if tokens.key(at) not in _DUCKDB_NAMING:
            return self._relation(at + 1, bound, scope)
        if not tokens.is_name(at + 1):
            return at + 1
        return self._table(at + 1, bound, scope)

    def _parentheses(self, at: int, bound: frozenset[str]) -> int:
        """Walks a group that is no relation: a subquery, arguments, an expression."""
        reads = self._begins_query(at + 1) and self.tokens.key(at - 1) not in _FROM_INSIDE
        self.query(at + 1, self.tokens.close(at), bound, reads=reads)
        return self.tokens.after_group(at)

    def _begins_query(self, at: int) -> bool:
        while self.tokens.key(at) == "(":
            at += 1
        return self.tokens.key(at) in self._query_words

    def _is_from(self, at: int) -> bool:
        """True if a FROM is followed by tables: not in ``IS DISTINCT FROM x``, nor where it is the name of a column."""
        tokens = self.tokens
        if tokens.key(at) != "FROM" or (tokens.key(at - 1) == "DISTINCT" and tokens.key(at - 2) in ("IS", "NOT")):
            return False
        return tokens.key(at + 1) == "(" or (tokens.is_name(at + 1) and tokens.key(at + 1) not in ("FROM", "AS"))

    def _is_recursive(self, at: int) -> bool:
        return self.tokens.key(at + 1) == "RECURSIVE" and self.tokens.is_name(at + 2) and self.tokens.key(at + 2) != "AS"

    def _is_binding(self, at: int) -> bool:
        """True if WITH is followed by ``name AS (`` or ``name (columns) AS (``."""
        tokens = self.tokens
        at += 2 if self._is_recursive(at) else 1
        return tokens.is_name(at) and tokens.key(at + 1) in ("AS", "(", "MAX")

    def _with(self, at: int, bound: frozenset[str]) -> tuple[int, frozenset[str]]:
        """Walks the queries of a WITH; returns the place behind it and the names that are bound there."""
        tokens = self.tokens
        recursive = self._is_recursive(at)
        at += 2 if recursive else 1
        while tokens.is_name(at):
            name = tokens.name(at).casefold()
            while at < len(tokens) and tokens.key(at) != "AS":  # its columns, MAX RECURSION LEVEL
                at = max(at + 1, tokens.after_group(at))
            if self._is_duckdb and tokens.key(at + 1) in ("MATERIALIZED", "NOT"):
                at += 1 if tokens.key(at + 1) == "MATERIALIZED" else 2
            if tokens.key(at + 1) != "(":
                break
            self.query(at + 2, tokens.close(at + 1), bound | {name} if recursive else bound)
            bound |= {name}
            at = tokens.after_group(at + 1)
            if tokens.key(at) != ",":
                break
            at += 1
        return at, bound

    def _begins_table(self, at: int) -> bool:
        """True if TABLE is followed by the name of a table: as a query of its own, or as an argument."""
        tokens = self.tokens
        named = tokens.is_name(at + 1) or tokens.key(at + 1) == "("
        return named and (at == 0 or tokens.key(at - 1) in _SET_WORDS | {"(", ")", ",", "=>", "ALL", "DISTINCT"})

    def _table(self, at: int, bound: frozenset[str], scope: Span) -> int:
        """Walks ``TABLE t``, ``TABLE (t)`` or ``TABLE (query)``, from behind the word."""
        tokens = self.tokens
        if tokens.key(at) == "(":
            if self._begins_query(at + 1) or not tokens.is_name(at + 1):
                return self._parentheses(at, bound)
            at += 1
        behind = tokens.after_chain(at)
        if (reference := self._named(at, behind, bound, scope)) is not None:
            self.found.append(replace(reference, alias_at=None))
        return behind

    def _relation(self, at: int, bound: frozenset[str], scope: Span) -> int:
        tokens = self.tokens
        if tokens.key(at) == "LATERAL":
            at += 1
        if tokens.key(at) == "(":
            if tokens.key(at + 1) in self._query_words:
                return self._parentheses(at, bound)
            # (a JOIN b ON …), ((SELECT …) UNION …): a relation again, or more parentheses.
            self.query(self._relation(at + 1, bound, scope), tokens.close(at), bound)
            return tokens.after_group(at)
        if not tokens.is_name(at):
            return at
        if self._is_duckdb and tokens.key(at + 1) == ":" and tokens.is_name(at + 2) and tokens.key(at + 3) != "(":
            behind = tokens.after_chain(at + 2)
            if tokens.key(behind) == "(":
                return self._call(at + 2, behind, bound, scope)
            if (reference := self._named(at + 2, behind, bound, scope)) is not None:
                self.found.append(replace(reference, alias=tokens.name(at), alias_at=None))
            return self._time_travel(behind)[1]
        if tokens.key(at) == "VALUES" and self._is_value(at + 1):
            return self._rows(at + 1, bound)
        behind = tokens.after_chain(at)
        if tokens.key(behind) == "(":
            return self._call(at, behind, bound, scope)
        if (reference := self._named(at, behind, bound, scope)) is not None:
            self.found.append(reference)
        return self._behind_table(behind)[0]

    def _rows(self, at: int, bound: frozenset[str]) -> int:
        """Walks the rows of VALUES in a FROM, to behind its alias: a comma before that is followed by a row."""
        behind = self.tokens.after_expression(at)
        self.query(at, behind, bound, reads=False)
        while self.tokens.key(behind) == ",":
            at, behind = behind + 1, self.tokens.after_expression(behind + 1)
            self.query(at, behind, bound, reads=False)
        return self._behind_table(behind)[0]

    def _is_value(self, at: int) -> bool:
        token = self.tokens.get(at)
        return token is not None and (token.key == "(" or token.kind in (Kind.TEXT, Kind.NUMBER))

    def _call(self, at: int, opening: int, bound: frozenset[str], scope: Span) -> int:
        """Walks a table-valued call: one of ours, ``IDENTIFIER('name')``, or a function whose arguments may read tables."""
        tokens = self.tokens
        close, end = tokens.close(opening), tokens.after_group(opening)
        name = tokens.name(at).lower() if opening == at + 1 else ""
        first = tokens.get(opening + 1)
        ours = name in self.calls or (name == "identifier" and close == opening + 2 and not self._is_duckdb)
        if name in self.calls and (first is None or first.kind is not Kind.TEXT):
            raise syntax_error(
                self.text, self._place(at, end), f"expected the table's name between quotes, as in {name}('t', 1, 2)"
            )
        if first is None or first.kind is not Kind.TEXT or not ours:
            return self._parentheses(opening, bound)
        path = Path(_parts(tokens.value(opening + 1)), first.span)
        reference = self._placed(path, self._place(at, end), end, scope)
        if name in self.calls:
            self.found.append(replace(reference, call=tuple(self._arguments(opening + 1, close))))
        elif path.parts[0].casefold() not in bound:
            self.found.append(reference)
        return self._behind_table(end)[0]

    def _arguments(self, at: int, close: int) -> Iterator[Fragment]:
        start = at
        while at <= close:
            if at == close or self.tokens.key(at) == ",":
                yield self._fragment(start, at)
                start = at + 1
            at = max(at + 1, self.tokens.after_group(at))

    def _named(self, at: int, behind: int, bound: frozenset[str], scope: Span) -> Reference | None:
        parts = tuple(self.tokens.name(i) for i in range(at, behind, 2))
        if len(parts) == 1 and parts[0].casefold() in bound:
            return None
        span = self._place(at, behind)
        return self._placed(Path(parts, span), span, behind, scope)

    def _placed(self, path: Path, span: Span, behind: int, scope: Span) -> Reference:
        """A reference with the clauses that stand behind its name."""
        tokens = self.tokens
        travel, after_travel = self._time_travel(behind)
        hints = [hint for at in sorted({behind, after_travel}) for hint in tokens.hints.get(at, ())]
        if not any(gives_options(self.text, hint) for hint in hints):
            hints = []
        options = options_of(self.text, hints)
        self._hints[span] = hints
        cut_end = max(tokens[after_travel - 1].end, *(hint.end for hint in hints), 0)
        cut = Span(span.end, cut_end) if travel or hints else None
        end, alias_at, sampled = self._behind_table(behind)
        alias = tokens.name(end - 1) if alias_at is None else None
        if alias_at is not None and cut is not None:
            alias_at = max(alias_at, cut.end)
        return Reference(
            path=path,
            span=span,
            scope=scope,
            alias=alias,
            alias_at=alias_at,
            time_travel=travel,
            cut=cut,
            options=options,
            sampled=sampled,
        )

    def _time_travel(self, at: int) -> tuple[TimeTravel | None, int]:
        tokens = self.tokens
        if self._is_duckdb:
            if not (tokens.words(at, "AT", "(") and tokens.key(at + 2) in ("VERSION", "TIMESTAMP") and tokens.key(at + 3) == "=>"):
                return None, at
            close = tokens.close(at + 1)
            return TimeTravel(kind=tokens.key(at + 2).lower(), expression=self._fragment(at + 4, close)), min(
                close + 1, len(tokens)
            )
        word = at + 1 if tokens.key(at) == "FOR" else at
        kind = "version" if tokens.key(word) in _VERSION_WORDS else "timestamp"
        if tokens.key(word) not in _VERSION_WORDS | _TIMESTAMP_WORDS or not tokens.words(word + 1, "AS", "OF"):
            return None, at
        end = tokens.after_expression(word + 3)
        return TimeTravel(kind=kind, expression=self._fragment(word + 3, end)), end

    def _behind_table(self, at: int) -> tuple[int, int | None, bool]:
        """The place behind the alias of the table that ends here; the place where an alias has to be put; True if it is sampled."""
        tokens = self.tokens
        at = self._time_travel(at)[1]
        if self._is_duckdb:
            alias_at = tokens[at - 1].end
            if tokens.key(at) == "AS" and tokens.is_name(at + 1):
                return at + 2, None, tokens.key(at + 2) == "TABLESAMPLE"
            if tokens.is_name(at) and tokens.key(at) not in self._no_alias:
                return at + 1, None, tokens.key(at + 1) == "TABLESAMPLE"
            return at, alias_at, tokens.key(at) == "TABLESAMPLE"
        if tokens.words(at, "WITH", "("):  # options of the engine
            at = tokens.after_group(at + 1)
        sampled = tokens.key(at) == "TABLESAMPLE"
        if sampled:
            at = tokens.after_group(at + 2 if tokens.key(at + 1) in ("SYSTEM", "BERNOULLI") else at + 1)
            if tokens.words(at, "REPEATABLE", "("):
                at = tokens.after_group(at + 1)
        alias_at = tokens[at - 1].end
        if tokens.key(at) == "AS" and tokens.is_name(at + 1):
            return at + 2, None, sampled
        if tokens.is_name(at) and tokens.key(at) not in self._no_alias:
            return at + 1, None, sampled
        return at, alias_at, sampled

    def _place(self, at: int, end: int) -> Span:
        """The characters of the tokens from one place to another."""
        if at >= end:
            return Span(len(self.text), len(self.text))
        return Span(self.tokens[at].start, self.tokens[end - 1].end)

    def _fragment(self, at: int, end: int) -> Fragment:
        span = self._place(at, end)
        return Fragment(self.text[span.start : span.end], span)


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a name given as text: ``a.b``, ``a.`b.c```."""
    return tuple(name_of(token) for token in tokenize(name) if token.kind in (Kind.WORD, Kind.NAME)) or (name,)
