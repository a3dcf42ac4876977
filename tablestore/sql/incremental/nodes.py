"""Computes how the rows of each part of a query change when its sources change: the rules.

A change is a bag of rows with weights, 1 for a row that comes and -1 for one that goes. Every rule is exact for bags, so rules
combine, and what goes and comes again adds up to nothing at the end.

    UNION ALL    the changes of either side
    Block        SELECT … FROM a JOIN b … WHERE …. One input after the other goes from old to new:
                     old, old, CHANGES, new, new
                 where the rows are a sum over the rows of that input (inner joins; the left side of others). The right side of
                 LEFT, SEMI and ANTI joins decides by equal values: of the rows with such a value in its changes
                     + old, old, NEW, new, new      - old, old, OLD, new, new
    Keyed        GROUP BY, DISTINCT, windows: what has a key depends on the rows of that key only. For the keys in the changes
                     + the rows of these keys, new  - the rows of these keys, old
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from tablestore.sql.incremental.keyliterals import add_literals, without_nulls
from tablestore.sql.incremental.reading import conjuncts
from tablestore.sql.incremental.shapes import STEP, TARGET, WEIGHT, Moment, ReadTarget, RunStep, source_at, source_changes
from tablestore.sql.query.dialect import Spark4
from tablestore.types.datatypes import Field

Projection = tuple[exp.Expr, str]


@dataclass(slots=True)
class Steps:
    """The run of one plan: which sources changed, how (as far as the caller has these rows), and the steps so far.

    ``kinds``: of which kind of literal (:mod:`tablestore.sql.incremental.keyliterals`) the columns of sources are.
    ``target``: the target's rows, if they are few.
    """

    changed: frozenset[int]
    run: RunStep
    changes: Mapping[int, pa.Table] = field(default_factory=dict)
    kinds: Mapping[tuple[int, str], str | None] = field(default_factory=dict)
    target: ReadTarget = lambda names, most: None
    count: int = 0

    def keep(self, query: exp.Query | str) -> tuple[str, pa.Table]:
        """Runs a query once for all that read it; returns its name and its rows."""
        text = query if isinstance(query, str) else query.sql(dialect=Spark4)
        name = f"{STEP}{self.count}"
        self.count += 1
        return name, self.run(name, text)


class Node(Protocol):
    """A part of a query. ``sources``: those that it reads."""

    @property
    def columns(self) -> Sequence[str]:
        """The names of its columns."""
        ...

    @property
    def sources(self) -> frozenset[int]: ...

    def rows(self, moment: Moment) -> exp.Query:
        """Its rows at a moment."""
        ...

    def terms(self, steps: Steps) -> list[exp.Select]:
        """Queries whose rows together are its change: its columns and the weight."""
        ...


@dataclass(frozen=True, slots=True)
class Union:
    """UNION ALL. The names of columns are those of the first side.

    ``apart``: pairs of columns of both sides of a FULL JOIN (:data:`tablestore.sql.incremental.outerjoins.APART`).
    """

    sides: tuple[Node, ...]
    apart: tuple[tuple[str, str], ...] = ()

    @property
    def columns(self) -> Sequence[str]:
        return self.sides[0].columns

    @property
    def sources(self) -> frozenset[int]:
        return frozenset().union(*(side.sources for side in self.sides))

    def rows(self, moment: Moment) -> exp.Query:
        return union_all([side.rows(moment) for side in self.sides])

    def terms(self, steps: Steps) -> list[exp.Select]:
        return [renamed(term, self.columns) for side in self.sides for term in side.terms(steps)]


@dataclass(frozen=True, slots=True)
class Equality:
    """``outer`` of the inputs before equals ``inner`` of the input itself, by a sign that may say that NULL equals NULL."""

    outer: exp.Expr
    inner: exp.Expr
    sign: type[exp.Binary]


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a block under a name: a source, by its number, or a part of the query.

    ``equalities``: of the right side of a LEFT, SEMI or ANTI JOIN; none where the rows of the block are a sum over its rows.
    """

    alias: str
    reads: "int | Node"
    equalities: tuple[Equality, ...] = ()

    @property
    def sources(self) -> frozenset[int]:
        """The sources that it reads."""
        return frozenset({self.reads}) if isinstance(self.reads, int) else self.reads.sources

    def at(self, moment: Moment) -> exp.Expr:
        """Its rows at a moment, to stand in a FROM."""
        if isinstance(self.reads, int):
            return named(source_at(self.reads, moment), self.alias)
        return aliased(self.reads.rows(moment), self.alias)

    def change(self, steps: Steps) -> exp.Expr | None:
        """Its change, to stand in a FROM; None if there is none."""
        if isinstance(self.reads, int):
            return named(source_changes(self.reads), self.alias)
        terms = self.reads.terms(steps)
        return aliased(union_all(terms), self.alias) if terms else None


@dataclass(frozen=True, slots=True)
class Block:
    """The FROM, JOIN and WHERE of ``select``, and what it computes of these rows one by one, if that is all."""

    select: exp.Select
    inputs: tuple[Input, ...]

    @property
    def columns(self) -> Sequence[str]:
        return self.select.named_selects

    @property
    def sources(self) -> frozenset[int]:
        return frozenset().union(*(one.sources for one in self.inputs))

    def rows(self, moment: Moment) -> exp.Query:
        return self.reading([one.at(moment) for one in self.inputs])

    def terms(self, steps: Steps) -> list[exp.Select]:
        return self.weighted([(one.unalias(), one.alias_or_name) for one in self.select.expressions], steps)

    def reading(self, inputs: Sequence[exp.Expr]) -> exp.Select:
        """The whole query over other inputs."""
        select = self.select.copy()
        places = [select.args["from_"], *(select.args.get("joins") or ())]
        for place, new_input in zip(places, inputs, strict=True):
            place.set("this", new_input.copy())
        return select

    def weighted(self, projections: Sequence[Projection], steps: Steps) -> list[exp.Select]:
        """The change of its joined rows, with other columns."""
        terms = []
        for place, one in enumerate(self.inputs):
            if not one.sources & steps.changed or (change := one.change(steps)) is None:
                continue
            before = [other.at("old") for other in self.inputs[:place]]
            behind = [other.at("new") for other in self.inputs[place + 1 :]]
            if not one.equalities:
                term = self._joined([*before, change, *behind], projections)
                if isinstance(one.reads, int) and one.reads in steps.changes:
                    self._narrow(term, one, steps.changes[one.reads], steps)
                terms.append(with_weight(term, exp.column(WEIGHT, table=one.alias, quoted=True)))
                continue
            values = [(equality.inner, f"key_{number}") for number, equality in enumerate(one.equalities)]
            name, rows = steps.keep(projected(exp.select().from_(change), values).distinct())
            moments: tuple[tuple[Moment, int], ...] = (("new", 1), ("old", -1))
            for moment, weight in moments if rows.num_rows else ():
                term = self._joined([*before, one.at(moment), *behind], projections)
                self._say_keys(term, one, rows, steps)
                limit(term, name, [(equality.outer, equality.sign) for equality in one.equalities])
                terms.append(with_weight(term, number_of(weight)))
        return terms

    def _narrow(self, term: exp.Select, changed: Input, changes: pa.Table, steps: Steps) -> None:
        """Limits the inputs that are joined by a column of a changed input to the values that its changes have there."""
        joins = term.args.get("joins") or []
        for place, other in enumerate(self.inputs):
            join = joins[place - 1] if place else None
            conditions = [*conjuncts(term.args.get("where")), *(conjuncts(join.args.get("on")) if join is not None else ())]
            if other.equalities and join is not None:
                conditions = list(conjuncts(join.args.get("on")))
            for condition in conditions if other is not changed else ():
                if not isinstance(condition, exp.EQ):
                    continue
                sides = (condition.left, condition.right)
                tables = [side.table if isinstance(side, exp.Column) else None for side in sides]
                if sorted(map(str, tables)) == sorted((changed.alias, other.alias)):
                    mine, its = sides if tables[0] == changed.alias else (sides[1], sides[0])
                    if self._alike(mine, its, steps):
                        rows = without_nulls(changes, mine.name)
                        add_literals(term, its, rows, mine.name, join=join if other.equalities else None)

    def _say_keys(self, term: exp.Select, changed: Input, keys: pa.Table, steps: Steps) -> None:
        """Limits the rows beside the right side of a join to the values that they must have."""
        for number, equality in enumerate(changed.equalities):
            if self._alike(equality.outer, equality.inner, steps):
                rows = without_nulls(keys, f"key_{number}") if equality.sign is exp.EQ else keys
                add_literals(term, equality.outer, rows, f"key_{number}")

    def _alike(self, one: exp.Expr, other: exp.Expr, steps: Steps) -> bool:
        """True if both are columns of sources, and of one kind."""
        reads = {block_input.alias: block_input.reads for block_input in self.inputs}
        kinds = []
        for column in (one, other):
            number = reads.get(column.table) if isinstance(column, exp.Column) else None
            kinds.append(steps.kinds.get((number, column.name)) if isinstance(number, int) else None)
        return kinds[0] is not None and kinds[0] == kinds[1]

    def _joined(self, inputs: Sequence[exp.Expr], projections: Sequence[Projection]) -> exp.Select:
        select = self.reading(inputs)
        for clause in ("group", "having", "qualify", "distinct"):
            select.set(clause, None)
        return projected(select, projections)


@dataclass(frozen=True, slots=True)
class Keyed:
    """A block with groups, DISTINCT or windows: its rows of one key follow from the joined rows of that key.

    Without keys all joined rows are one group, which is there also where there are none.
    """

    block: Block
    keys: tuple[exp.Expr, ...]
    is_grouped: bool = False

    @property
    def columns(self) -> Sequence[str]:
        return self.block.columns

    @property
    def sources(self) -> frozenset[int]:
        return self.block.sources

    def rows(self, moment: Moment) -> exp.Query:
        return self.block.rows(moment)

    def terms(self, steps: Steps) -> list[exp.Select]:
        name, rows = self.changed_keys(steps)
        moments: tuple[tuple[Moment, int], ...] = (("new", 1), ("old", -1))
        return [weighed(self.limited(moment, name, rows), self.columns, weight) for moment, weight in moments if rows.num_rows]

    def changed_keys(self, steps: Steps) -> tuple[str, pa.Table]:
        """The step that holds the keys whose rows may have changed, and these."""
        terms = self.block.weighted([(key, f"key_{number}") for number, key in enumerate(self.keys)], steps)
        if not terms:
            return "", pa.table({})
        keys = [(exp.column(f"key_{number}", quoted=True), f"key_{number}") for number in range(len(self.keys))]
        return steps.keep(projected(exp.select().from_(aliased(union_all(terms), "changed")), keys).distinct())

    def limited(self, moment: Moment, name: str, keys: pa.Table) -> exp.Select:
        """Its rows at a moment, of the keys of a step."""
        rows = self.block.reading([one.at(moment) for one in self.block.inputs])
        for number, key in enumerate(self.keys):
            add_literals(rows, key, keys, f"key_{number}")
        limit(rows, name, [(key, exp.NullSafeEQ) for key in self.keys])
        return rows


def limit(select: exp.Select, name: str, values: Sequence[tuple[exp.Expr, type[exp.Binary]]]) -> None:
    """Keeps the joined rows with values that are among the keys of a step. Without keys these are all."""
    if not values:
        return
    on = [
        sign(this=value.copy(), expression=exp.column(f"key_{n}", table=name, quoted=True))
        for n, (value, sign) in enumerate(values)
    ]
    select.append("joins", exp.Join(this=named(name, name), side="LEFT", kind="SEMI", on=exp.and_(*on, copy=False)))


def target_rows(outputs: Sequence[tuple[str, Field]], keys: Sequence[str], step: str, rows: pa.Table) -> exp.Select:
    """The rows that the target has of the keys of a step, to go."""
    values = [(exp.column(field.name, table=TARGET, quoted=True), name) for name, field in outputs]
    query = projected(exp.select().from_(named(TARGET, TARGET)), values)
    for number, key in enumerate(keys):
        add_literals(query, exp.column(key, table=TARGET, quoted=True), rows, f"key_{number}")
    limit(query, step, [(exp.column(key, table=TARGET, quoted=True), exp.NullSafeEQ) for key in keys])
    return with_weight(query, number_of(-1))


def named(name: str, alias: str) -> exp.Expr:
    """A table under an alias."""
    return exp.alias_(exp.Table(this=exp.to_identifier(name)), exp.to_identifier(alias, quoted=True), table=True)


def aliased(query: exp.Query, alias: str) -> exp.Subquery:
    """A query to stand in a FROM."""
    return query.subquery(exp.to_identifier(alias, quoted=True), copy=False)


def projected(select: exp.Select, projections: Sequence[Projection]) -> exp.Select:
    """The SELECT with other columns."""
    select.set("expressions", [exp.alias_(value.copy(), name, quoted=True) for value, name in projections])
    return select


def with_weight(select: exp.Select, weight: exp.Expr) -> exp.Select:
    """The SELECT with the column of the weight."""
    select.append("expressions", exp.alias_(weight, WEIGHT, quoted=True))
    return select


def weighed(query: exp.Query, columns: Sequence[str], weight: int) -> exp.Select:
    """The rows of a query, each with the same weight."""
    values = [(exp.column(name, quoted=True), name) for name in columns]
    return with_weight(projected(exp.select().from_(aliased(query, "weighed")), values), number_of(weight))


def number_of(weight: int) -> exp.Expr:
    """A weight as an expression."""
    literal = exp.Literal.number(1)
    return exp.Cast(this=literal if weight > 0 else exp.Neg(this=literal), to=exp.DataType(this=exp.DType.INT))


def renamed(term: exp.Select, columns: Sequence[str]) -> exp.Select:
    """A term with other names of its columns."""
    for value, name in zip(list(term.expressions), columns, strict=False):
        value.set("alias", exp.to_identifier(name, quoted=True))
    return term


def union_all(queries: Sequence[exp.Query]) -> exp.Query:
    """The rows of all queries."""
    together = queries[0]
    for query in queries[1:]:
        together = exp.Union(this=together, expression=query, distinct=False)
    return together
