"""Bounds how long the values are that a query computes: those of its columns are followed from one SELECT to the next.

    WITH a AS (SELECT v || v AS s FROM t),      s: 2 v
         b AS (SELECT s || s AS s FROM a)       s: 4 v
    SELECT replace(s, 'x', s) FROM b            refused

Where it is not known which of some columns a name means, it stands for the longest of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from sqlglot import exp

from tablestore.sql.query.dialect import CALL, STACK
from tablestore.sql.stored.sparkreach import HOST_WORDS
from tablestore.sql.stored.valuelengths import ROW, Length, TooLong, ValueLengths, longest, of_row, total

_CLAUSES = ("where", "group", "having", "qualify", "order", "sort", "cluster", "distribute", "limit", "offset", "windows")
_MOST_COLUMNS = 10_000
_BEHIND = ("having", "qualify", "order", "sort", "cluster", "distribute")


class HostWord(Exception):
    """Signals a word that Spark takes for a function which tells of the host, where no column has this name."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a query or a table. ``order``: those that are known, by their names in small letters; ``is_whole``: they are
    all of them. ``others``: the length of all else."""

    order: tuple[tuple[str, Length], ...] = ()
    is_whole: bool = False
    others: Length = field(default_factory=of_row)
    names: Mapping[str, Length] = field(init=False)

    def __post_init__(self) -> None:
        names: dict[str, Length] = {}
        for name, length in self.order:
            if name:
                names[name] = longest([length, names[name]]) if name in names else length
        object.__setattr__(self, "names", names)

    def of(self, name: str) -> Length:
        """The length of a column."""
        return self.names.get(name, self.others)

    @property
    def longest(self) -> Length:
        """The length of any of them."""
        return longest([*(length for _, length in self.order), self.others])

    def renamed(self, alias: exp.Expr | None) -> "Columns":
        """The same with the names that stand behind them: ``AS t (a, b)``."""
        names = [one.name.lower() for one in alias.args.get("columns") or ()] if alias is not None else []
        if not names:
            return self
        is_known = self.is_whole and len(self.order) == len(names)
        lengths = [length for _, length in self.order] if is_known else [self.longest] * len(names)
        return Columns(tuple(zip(names, lengths, strict=True)), is_known, self.others if is_known else self.longest)

    def hidden(self) -> "Columns":
        """The same without their names."""
        return Columns(others=self.longest)


@dataclass(slots=True)
class _Frame:
    """The meaning of the names in one SELECT. ``items``: those of its own items. ``is_behind``: what is looked at comes behind
    them."""

    sources: list[tuple[str, Columns]] = field(default_factory=list)
    items: dict[str, Length] = field(default_factory=dict)
    is_behind: bool = False


class QueryLengths:
    """Checks one query. ``relations``: the columns of its relations by their names in the text, in small letters."""

    def __init__(self, relations: Mapping[str, Sequence[str]]) -> None:
        self._relations = relations
        self._values = ValueLengths(self._column, lambda node: self._query(node).longest)
        self._frames: list[_Frame] = []
        self._tables: list[dict[str, Columns]] = []
        self._variables = count()
        # Recursive queries in recursive ones would be looked at twice as often with each level.
        self._second_looks = 8

    def check(self, tree: exp.Expr) -> None:
        """Raises TooLong, HostWord."""
        self._query(tree)
        self._frames.append(_Frame())
        for node in tree.walk():
            if isinstance(node, (exp.Func, exp.DPipe, exp.Column)) and id(node) not in self._values.seen:
                self._values.of(node)

    def _query(self, node: exp.Expr) -> Columns:
        with self._with(node.args.get("with_")):
            match node:
                case exp.Select():
                    return self._select(node)
                case exp.SetOperation():
                    columns = _together(self._query(node.this), self._query(node.expression))
                    self._clauses(node, _Frame([("", columns)]))
                    return columns
                case exp.Subquery():
                    columns = self._source(node)
                    self._clauses(node, _Frame([("", columns)]))
                    return columns
                case exp.Values() | exp.Table():
                    return self._source(node)
        return Columns()

    @contextmanager
    def _with(self, clause: exp.Expr | None) -> Iterator[None]:
        """Makes the queries of a WITH known by their names."""
        if clause is None:
            yield
            return
        columns_by_name: dict[str, Columns] = {}
        self._tables.append(columns_by_name)
        try:
            for one in clause.expressions:
                name, alias = one.alias.lower(), one.args.get("alias")
                is_own = clause.args.get("recursive") and any(table.name.lower() == name for table in one.this.find_all(exp.Table))
                columns_by_name[name] = (
                    self._recursive(one, name, columns_by_name) if is_own else self._query(one.this).renamed(alias)
                )
            yield
        finally:
            self._tables.pop()

    def _recursive(self, with_item: exp.Expr, name: str, columns_by_name: dict[str, Columns]) -> Columns:
        """A query that reads itself: each step may add to its values, and multiplies none."""
        alias, before = with_item.args.get("alias"), f"before {next(self._variables)}"
        step = Length({before: 1})
        names = [column.name.lower() for column in alias.args.get("columns") or ()] if alias is not None else []
        if not names and isinstance(with_item.this, exp.Query):
            names = [called.lower() for called in with_item.this.named_selects if called and called != "*"]
        columns_by_name[name] = Columns(tuple((called, step) for called in names), others=step)
        columns = self._query(with_item.this).renamed(alias)
        if columns.longest.parts.get(before, 0) > 1 and columns.is_whole and self._second_looks:
            self._second_looks -= 1
            # A column that holds nothing of the step before (n + 1) is as long in each of them.
            columns_by_name[name] = Columns(
                tuple((called, step if before in length.parts else length) for called, length in columns.order), others=step
            )
            columns = self._query(with_item.this).renamed(alias)
        if columns.longest.parts.get(before, 0) > 1:
            raise TooLong(with_item.this, "a recursive query whose steps have each value of the step before at most once")

        def grown(length: Length) -> Length:
            parts = {key: number for key, number in length.parts.items() if key != before}
            # The number of its steps is not known.
            is_grown = before in length.parts and any(parts.values())
            return Length({**parts, ROW: max(parts.get(ROW, 0), 1) + is_grown})

        return Columns(tuple((key, grown(length)) for key, length in columns.order), columns.is_whole, grown(columns.others))

    def _select(self, node: exp.Select) -> Columns:
        frame = _Frame()
        self._frames.append(frame)
        try:
            from_ = node.args.get("from_")
            tables = [from_.this] if from_ is not None else []
            self._read(frame, [*tables, *(node.args.get("joins") or ()), *(node.args.get("laterals") or ())])
            columns = self._items(node, frame)
        finally:
            self._frames.pop()
        self._clauses(node, frame)
        return columns

    def _read(self, frame: _Frame, tables: Sequence[exp.Expr]) -> None:
        """Makes the tables known that a SELECT reads."""
        conditions: list[exp.Expr] = []
        rows: list[tuple[exp.Expr, Columns]] = []
        left = list(reversed(tables))
        while left:
            table = left.pop()
            if isinstance(table, exp.Join):
                conditions += [one for one in (table.args.get("on"),) if one is not None]
                left.append(table.this)
                continue
            read_columns = self._source(table)
            # What is only looked up names no column.
            is_hidden = isinstance(table.parent, exp.Join) and table.parent.kind in ("SEMI", "ANTI")
            frame.sources.append((table.alias_or_name.lower(), read_columns.hidden() if is_hidden else read_columns))
            if isinstance(table, (exp.Subquery, exp.Values, exp.Table)):
                rows.append((table, read_columns))
            left += reversed([*(table.args.get("joins") or ()), *(table.args.get("laterals") or ())])
        for table, columns in rows if len(frame.sources) > 1 else ():
            # A value that is computed once stands beside each row of the others.
            for length in columns.names.values():
                self._values.check(table, Length(length.parts), "a column beside the rows of another table")
        for condition in conditions:
            self._values.of(condition)

    def _source(self, node: exp.Expr) -> Columns:
        columns = self._plain_source(node)
        for pivot in node.args.get("pivots") or ():
            with self._in(_Frame([("", columns)])):
                lengths = [self._values.of(part) for part in (*pivot.expressions, *(pivot.args.get("fields") or ()))]
            columns = Columns(others=longest([columns.longest, *lengths]))
        return columns.renamed(node.args.get("alias"))

    def _plain_source(self, node: exp.Expr) -> Columns:
        match node:
            case exp.Subquery():
                inner = self._query(node.this)
                if not node.args.get("joins"):
                    return inner
                frame = _Frame([("", inner)])
                with self._in(frame):
                    self._read(frame, node.args["joins"])
                return _of_all(frame)
            case exp.Values():
                rows = [one.expressions if isinstance(one, exp.Tuple) else [one] for one in node.expressions]
                columns = [longest([self._item(one) for one in column]) for column in zip(*rows, strict=False)]
                return Columns(tuple((f"col{place + 1}", one) for place, one in enumerate(columns)), is_whole=True)
            case exp.Table(this=exp.Identifier()) if len(node.parts) == 1:
                name = node.name.lower()
                named_columns = next((tables[name] for tables in reversed(self._tables) if name in tables), None)
                if named_columns is not None:
                    return named_columns
                return Columns(tuple((column.lower(), of_row()) for column in self._relations.get(name, ())))
            case exp.Select() | exp.SetOperation():
                return self._query(node)
        # A function that gives rows: what they have is in what it is given.
        argument = node.this if isinstance(node, (exp.Table, exp.Lateral)) else node
        query_columns = self._query(argument) if isinstance(argument, exp.Query) else None
        if query_columns is not None:
            return query_columns
        if isinstance(argument, exp.Unnest):
            return Columns(others=total([of_row(0, 16), *map(self._values.of, argument.expressions)]))
        return Columns(others=total([of_row(0, 16), self._values.of(argument)]))

    def _items(self, node: exp.Select, frame: _Frame) -> Columns:
        named_lengths: list[tuple[str, Length]] = []
        computed: list[Length] = []
        other_lengths = [of_row(0)]
        is_whole = True
        for item in node.expressions:
            value = item.unalias()
            if value.is_star and isinstance(value, (exp.Star, exp.Column)):
                of = value.args.get("table") if isinstance(value, exp.Column) else None
                for name, columns in frame.sources:
                    if of is None or of.name.lower() == name:
                        named_lengths += columns.order
                        if len(named_lengths) > _MOST_COLUMNS:
                            raise TooLong(node, f"a query of at most {_MOST_COLUMNS:,} columns")
                        other_lengths.append(columns.others)
                        computed += [Length({"": one.added}) for one in (*columns.names.values(), columns.others)]
                        is_whole = is_whole and columns.is_whole and len(frame.sources) == 1
                continue
            called = [one.name.lower() for one in item.expressions] if isinstance(item, exp.Aliases) else [item.output_name.lower()]
            length = self._item(value.this if isinstance(value, exp.Aliases) else value)
            computed.append(Length({"": length.added}) if isinstance(value, exp.Column) else length)
            is_whole = is_whole and not isinstance(value, (exp.Inline, exp.Posexplode, STACK))
            for name in called:
                named_lengths.append((name, length))
                frame.items[name] = longest([length, frame.items[name]]) if name in frame.items else length
        # Of rows that are many; what stands without a table is one.
        gives_rows = any(item.find(exp.Explode, exp.Posexplode, exp.Inline, STACK, exp.Unnest) for item in node.expressions)
        together = Length(total(computed).parts, is_written=not frame.sources and not gives_rows)
        self._values.check(node, together, "columns of one SELECT that are together")
        return Columns(tuple(named_lengths), is_whole, longest([*other_lengths, *(length for _, length in named_lengths)]))

    def _item(self, node: exp.Expr) -> Length:
        length = self._values.of(node)
        return Length({ROW: 0, **length.parts})

    def _clauses(self, node: exp.Expr, frame: _Frame) -> None:
        for key in _CLAUSES:
            clause = node.args.get(key)
            frame.is_behind = key in _BEHIND
            for part in clause if isinstance(clause, list) else [clause] if clause is not None else []:
                with self._in(frame):
                    self._each(part)

    def _each(self, node: exp.Expr) -> None:
        """The values of a clause, each for itself."""
        if isinstance(node, (exp.Condition, exp.Query)):
            self._values.of(node)
        else:
            for part in node.iter_expressions():
                self._each(part)

    @contextmanager
    def _in(self, frame: _Frame) -> Iterator[None]:
        self._frames.append(frame)
        try:
            yield
        finally:
            self._frames.pop()

    def _column(self, node: exp.Column) -> Length:
        if isinstance(node.this, exp.Star):
            return of_row()
        parts = [part.name.lower() for part in node.parts]
        if len(parts) == 1 and parts[0] in HOST_WORDS and CALL not in node.meta:
            self._check_word(parts[0])
        lengths = [of_row(0)]
        for frame in reversed(self._frames):
            is_known = self._in_frame(frame, parts, lengths)
            if is_known:
                break
        return longest(lengths) if len(lengths) > 1 else of_row()

    def _in_frame(self, frame: _Frame, parts: Sequence[str], lengths: list[Length]) -> bool:
        """Adds what a name may mean in one SELECT. True if it means nothing further out."""
        of = [columns for name, columns in frame.sources if name == parts[0]] if len(parts) > 1 else []
        if of:
            lengths += [columns.of(parts[1]) for columns in of]
            return True
        name = parts[0]
        sources = [columns for _, columns in frame.sources]
        exact = [columns.names[name] for columns in sources if name in columns.names]
        lengths += exact or [columns.others for columns in sources]
        lengths += [frame.items[name]] if name in frame.items else []
        return bool(exact)

    def _check_word(self, word: str) -> None:
        frame = self._frames[-1] if self._frames else _Frame()
        is_column = any(word in columns.names for _, columns in frame.sources)
        if not is_column and not (frame.is_behind and word in frame.items):
            raise HostWord(word)


def _together(left: Columns, right: Columns) -> Columns:
    """The columns of two queries whose rows stand below each other."""
    if left.is_whole and right.is_whole and len(left.order) == len(right.order):
        pairs = zip(left.order, right.order, strict=True)
        order = tuple((name, longest([length, other])) for (name, length), (_, other) in pairs)
        return Columns(order, is_whole=True, others=longest([left.others, right.others]))
    both = longest([left.longest, right.longest])
    return Columns(tuple((name, both) for name, _ in left.order), others=both)


def _of_all(frame: _Frame) -> Columns:
    """The columns of all tables that are read."""
    order = tuple(column for _, columns in frame.sources for column in columns.order)
    return Columns(order, others=longest([columns.others for _, columns in frame.sources]))
