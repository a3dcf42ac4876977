"""Writes FULL JOIN and RIGHT JOIN as LEFT JOINs, which have a rule.

    a RIGHT JOIN b ON c             b LEFT JOIN a ON c
    a … z RIGHT JOIN b ON c         b LEFT JOIN (SELECT … FROM a … z) AS j ON c
    a … z FULL JOIN b ON c          (SELECT … FROM a … z LEFT JOIN b ON c
                                     UNION ALL SELECT … FROM a … z RIGHT JOIN b ON c WHERE no row of a … z was found) AS j

What stands in a query of its own gives the columns that are read of it, under names of their own.
"""

from collections.abc import Iterable, Iterator

from sqlglot import exp

from tablestore.sql.incremental.reading import conjuncts

_Names = dict[tuple[str, str], str]
"""The alias of a table and a column of it -> the name of this column in the query that the table stands in."""

_THERE = "there"

APART = "apart"
"""In the meta of the UNION ALL of a FULL JOIN: pairs of its columns, left and right, whose equality is all that joins the sides.
No value of the left one in the first side is one of the right one in the second."""


def write_as_left_joins(select: exp.Select) -> None:
    """Writes the RIGHT and FULL JOINs of a FROM as LEFT JOINs."""
    number = 0
    while (place := _first_to_turn(select)) is not None:
        join = select.args["joins"][place]
        if join.side.upper() == "FULL":
            _turn_full(select, place, f"tablestore_joined_{number}")
        else:
            _turn_right(select, place, f"tablestore_joined_{number}")
        number += 1


def _first_to_turn(select: exp.Select) -> int | None:
    joins = enumerate(select.args.get("joins") or ())
    return next((n for n, join in joins if join.side.upper() in ("RIGHT", "FULL") and join.kind.upper() in ("", "OUTER")), None)


def _turn_right(select: exp.Select, place: int, alias: str) -> None:
    joins = select.args["joins"]
    before, join, behind = joins[:place], joins[place], joins[place + 1 :]
    left, right = select.args["from_"].this, join.this
    if before:
        names = _renamed(_readers(select, joins[place:]), _aliases(left, before), alias)
        left = exp.select(*_columns(names)).from_(left, copy=False).subquery(exp.to_identifier(alias, quoted=True), copy=False)
        left.this.set("joins", before)
    select.args["from_"].set("this", right)
    join.set("this", left)
    join.set("side", "LEFT")
    select.set("joins", [join, *behind])


def _turn_full(select: exp.Select, place: int, alias: str) -> None:
    joins = select.args["joins"]
    before, join, behind = joins[:place], joins[place], joins[place + 1 :]
    left = select.args["from_"].this
    inside = _aliases(left, [*before, join])
    names = _renamed(_readers(select, behind), inside, alias)
    sides = []
    for side in ("LEFT", "RIGHT"):
        part = exp.select(*(_columns(names) or [exp.alias_(exp.true(), _THERE, quoted=True)])).from_(left.copy(), copy=False)
        turned = join.copy()
        turned.set("side", side)
        part.set("joins", [*(one.copy() for one in before), turned])
        sides.append(part)
    _leave_found_out(sides[1], _aliases(left, before))
    together = exp.Union(this=sides[0], expression=sides[1], distinct=False)
    together.meta[APART] = _joining(join, names)
    select.args["from_"].set("this", together.subquery(exp.to_identifier(alias, quoted=True), copy=False))
    select.set("joins", behind)


def _joining(join: exp.Join, names: _Names) -> tuple[tuple[str, str], ...]:
    """The names of the columns on the left and on the right that a join compares, if it does nothing else and both are read."""
    pairs = []
    for condition in conjuncts(join.args.get("on")):
        sides = [condition.left, condition.right] if isinstance(condition, exp.EQ) else []
        columns = [side for side in sides if isinstance(side, exp.Column) and (side.table, side.name) in names]
        if len(columns) < 2:
            return ()
        columns.sort(key=lambda column: column.table == join.this.alias_or_name)
        left, right = (names[column.table, column.name] for column in columns)
        pairs.append((left, right))
    return tuple(pairs)


def _leave_found_out(select: exp.Select, aliases: set[str]) -> None:
    """Keeps the rows of the right side, the last one, for which no row of the left was found."""
    *before, join = select.args["joins"]
    for condition in conjuncts(join.args.get("on")):
        for value in (condition.left, condition.right) if isinstance(condition, exp.EQ) else ():
            if isinstance(value, exp.Column) and value.table in aliases:
                # A value that equals something is not NULL.
                select.where(exp.Is(this=value.copy(), expression=exp.null()), copy=False)
                return
    alias = "tablestore_left"
    names = _renamed([*select.expressions, join.args.get("on")], aliases, alias)
    inner = exp.select(*_columns(names), exp.alias_(exp.true(), _THERE, quoted=True))
    inner = inner.from_(select.args["from_"].this, copy=False)
    inner.set("joins", before)
    select.args["from_"].set("this", inner.subquery(exp.to_identifier(alias, quoted=True), copy=False))
    select.set("joins", [join])
    select.where(exp.Is(this=exp.column(_THERE, table=alias, quoted=True), expression=exp.null()), copy=False)


def _aliases(first: exp.Expr, joins: Iterable[exp.Join]) -> set[str]:
    return {first.alias_or_name, *(join.this.alias_or_name for join in joins)}


def _readers(select: exp.Select, joins: Iterable[exp.Join]) -> Iterator[exp.Expr | None]:
    """The parts that read columns of the joined tables: the conditions of these joins, and all clauses behind."""
    yield from (join.args.get("on") for join in joins)
    for name, value in select.args.items():
        if name not in ("from_", "joins"):
            yield from (part for part in (value if isinstance(value, list) else [value]) if isinstance(part, exp.Expr))


def _renamed(readers: Iterable[exp.Expr | None], aliases: set[str], alias: str) -> _Names:
    """Lets all readers read columns of these tables from the query of an alias; the names that they have there."""
    names: _Names = {}
    for reader in list(readers):
        for column in list(reader.find_all(exp.Column)) if reader is not None else ():
            if column.table in aliases:
                name = names.setdefault((column.table, column.name), f"column_{len(names)}")
                column.replace(exp.column(name, table=alias, quoted=True))
    return names


def _columns(names: _Names) -> list[exp.Expr]:
    return [exp.alias_(exp.column(name, table=table, quoted=True), alias, quoted=True) for (table, name), alias in names.items()]
