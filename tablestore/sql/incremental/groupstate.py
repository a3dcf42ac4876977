"""Computes new values of groups from their old ones in the target and from the changes alone: no other row is read.

    SELECT g, count(*) AS n, count(x) AS k, sum(x) AS s, min(x) AS m FROM … GROUP BY g

    count    old + those that came - those that went
    sum      the same, of whole numbers and short decimals; NULL where no value is left, which a count(x) beside it says
    min      the least of the old one and those that came; max alike
    group    goes with its last row, which count(*) says; without GROUP BY all rows are one group, which never goes
    constant stays as it is

What the target does not say is computed anew, of these groups only: a min or max that went, a group that lost rows where there is
no count(*), a sum that has fewer values where there is no count(x) and they may
be NULL. Sums of floats depend on their order, so they have no such rule. Of a few rows counts and sums need no query
(:mod:`tablestore.sql.incremental.tally`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tablestore.sql.incremental.keyliterals import literal_kind
from tablestore.sql.incremental.nodes import (
    Input,
    Keyed,
    Node,
    Projection,
    Steps,
    aliased,
    named,
    projected,
    target_rows,
    union_all,
    weighed,
)
from tablestore.sql.incremental.shapes import TARGET, WEIGHT, SourceShape
from tablestore.sql.incremental.tally import MOST_ROWS, THERE, Tally, is_plain_key
from tablestore.sql.query.dialect import Spark4
from tablestore.sql.query.sparktypes import spark_type
from tablestore.types.datatypes import INTEGER_ROOTS, AtomicType, DataType, Field, TypeRoot, is_float, with_nullable

MOST_DIGITS = 18
"""The most digits of decimals whose sums have a rule: sums of wider ones may overflow on the way."""
_CHANGES, _MERGED = "changes", "merged"


@dataclass(frozen=True, slots=True)
class _Total:
    """One aggregate: ``kind`` is rows (count(*)), count, sum, min or max of ``value``; ``counted``: the count of its values.

    ``required``: no value is NULL. A constant is of kind constant.
    """

    kind: str
    name: str
    field: Field
    value: exp.Expr | None = None
    counted: str | None = None
    required: bool = False
    constant: exp.Expr | None = None


@dataclass(frozen=True, slots=True)
class GroupState:
    """A grouped query whose target holds what its rule needs. ``keys``: the names of its key columns, and those of the target.

    ``step``: the text of its first step, where that is the same each time; ``tally``: what does the same, where there is something.
    """

    node: Keyed
    outputs: tuple[tuple[str, Field], ...]
    keys: tuple[tuple[str, Field], ...]
    totals: tuple[_Total, ...]
    step: str | None = None
    tally: Tally | None = None

    def change(self, steps: Steps) -> tuple[pa.Table | None, list[exp.Select]]:
        """The change of the groups whose new values are known, and terms for that of the others."""
        if (groups := self._tallied(steps)) is not None:
            return self._known_changes(groups), []
        if self.step is not None:
            merged, rows = steps.keep(self.step)
        elif (changes := self._changes(steps)) is not None:
            merged, rows = steps.keep(self._merged(changes))
        else:
            return None, []
        unknown = rows.column("unknown")
        known_rows = self._known_changes(rows.filter(pc.invert(unknown)))
        if not pc.any(unknown).as_py():
            return known_rows, []
        keys = [(_col(merged, f"key_{n}"), f"key_{n}") for n in range(len(self.keys))]
        again = projected(exp.select().from_(named(merged, merged)), keys).where(_col(merged, "unknown"), copy=False)
        name, recomputed = steps.keep(again) if keys else ("", pa.table({}))
        computed = weighed(self.node.limited("new", name, recomputed), self.node.columns, 1)
        return known_rows, [computed, target_rows(self.outputs, [field.name for _, field in self.keys], name, recomputed)]

    def with_step(self) -> "GroupState":
        """The same, with the text of the first step: no values of changed rows stand in it, and no step comes before it."""
        first, *other_reads = (one.reads for one in self.node.block.inputs)
        if other_reads or not isinstance(first, int) or not self._has_plain_columns:
            return self
        changes = self._changes(Steps(frozenset({first}), _no_step))
        assert changes is not None, "its source has changed"
        return replace(self, step=self._merged(changes).sql(dialect=Spark4))

    def with_tally(self, types: Mapping[tuple[str, str], DataType]) -> "GroupState":
        """The same, with what needs no query, if these types of the source's columns allow it."""
        keys = [
            key.name for key in self.node.keys if isinstance(key, exp.Column) and is_plain_key(types.get((key.table, key.name)))
        ]
        if len(keys) < len(self.keys) or not keys or self.step is None or self._counted is None:
            return self
        if self.node.block.select.args.get("where") or not all(
            total.kind in ("rows", "count", "sum") and _is_whole(total.field.type) for total in self.totals
        ):
            return self
        columns = {total.name: total.value.name if total.value is not None else None for total in self.totals}
        tally = Tally(
            keys={name: key for (name, _), key in zip(self.keys, keys, strict=True)},
            counts={total.name: columns[total.name] for total in self.totals if total.kind != "sum"},
            sums={total.name: (total.value.name, total.required) for total in self.totals if total.kind == "sum" and total.value},
        )
        return replace(self, tally=tally)

    def _tallied(self, steps: Steps) -> pa.Table | None:
        changes = next(iter(steps.changes.values()), None) if self.tally is not None else None
        if self.tally is None or changes is None or changes.num_rows > MOST_ROWS:
            return None
        target = steps.target([field.name for _, field in self.outputs], MOST_ROWS)
        return None if target is None else self.tally.of(changes, target.rename_columns([name for name, _ in self.outputs]))

    @property
    def _counted(self) -> _Total | None:
        """The count of a group's rows."""
        return next((total for total in self.totals if total.kind == "rows"), None)

    @property
    def _has_plain_columns(self) -> bool:
        values = [total.value for total in self.totals if total.value is not None]
        return all(isinstance(value, exp.Column) for value in (*self.node.keys, *values))

    def _changes(self, steps: Steps) -> exp.Expr | None:
        """One row for each group that changed, to stand in a FROM: how much came and went."""
        values = [(total.value, f"value_{n}") for n, total in enumerate(self.totals) if total.value is not None]
        keys = [(key, f"key_{n}") for n, key in enumerate(self.node.keys)]
        terms = self.node.block.weighted([*keys, *values], steps)
        if not terms:
            return None
        rows = aliased(union_all(terms), "rows")
        columns: list[Projection] = [(_col("rows", name), name) for _, name in keys]
        weight = _col("rows", WEIGHT)
        columns.append((exp.Sum(this=weight), "rows"))
        if self._counted is None:
            columns.append((exp.Min(this=weight.copy()), "least"))
        for n, total in enumerate(self.totals):
            columns += [(value, f"{kind}_{n}") for kind, value in self._came_and_went(total, _col("rows", f"value_{n}"), weight)]
        query = projected(exp.select().from_(rows), columns).group_by(*(_col("rows", name) for _, name in keys), copy=False)
        if self._has_plain_columns:
            return aliased(query, _CHANGES)
        # Names of columns in expressions shall not meet those of the target.
        name, change_rows = steps.keep(query)
        return named(name, _CHANGES) if change_rows.num_rows else None

    def _came_and_went(self, total: _Total, value: exp.Expr, weight: exp.Expr) -> list[tuple[str, exp.Expr]]:
        is_added = exp.GT(this=weight, expression=exp.Literal.number(0))
        present = exp.Not(this=exp.Is(this=value, expression=exp.null()))
        if total.kind in ("rows", "constant"):
            return []
        # The sum of no rows at all is NULL.
        more = exp.Coalesce(this=exp.Sum(this=_case(present, weight, exp.Literal.number(0))), expressions=[exp.Literal.number(0)])
        if total.kind == "count":
            return [("delta", more)]
        is_removed = exp.and_(exp.LT(this=weight, expression=exp.Literal.number(0)), present, copy=True)
        if total.kind == "sum":
            wide = exp.cast(value, _wide(total.field.type), dialect=Spark4)
            delta = ("delta", exp.Sum(this=_case(is_added, wide, exp.Neg(this=wide))))
            return [delta] if total.required or total.counted is not None else [delta, ("more", more)]
        best = exp.Min if total.kind == "min" else exp.Max
        return [("came", best(this=_case(is_added, value, None))), ("gone", best(this=_case(is_removed, value, None)))]

    def _merged(self, source: exp.Expr) -> exp.Select:
        """The groups that changed beside those of the target: their new values, and whether they are not known."""
        changes = _CHANGES
        existing = aliased(
            projected(
                exp.select().from_(named(TARGET, "old")),
                [*((_col("old", field.name), name) for name, field in self.outputs), (exp.true(), THERE)],
            ),
            "old",
        )
        same_key = [
            exp.NullSafeEQ(this=_col("old", name), expression=_col(changes, f"key_{n}")) for n, (name, _) in enumerate(self.keys)
        ]
        on = exp.and_(*same_key, copy=False) if same_key else exp.true()
        columns: list[Projection] = [(_col(changes, f"key_{n}"), f"key_{n}") for n in range(len(self.keys))]
        columns += [(_col("old", name), f"old_{name}") for name, _ in self.outputs]
        columns += [(self._new(total, changes, n), f"new_{total.name}") for n, total in enumerate(self.totals)]
        columns.append((_is_there(), THERE))
        doubts = [doubt for n, total in enumerate(self.totals) if (doubt := self._doubt(total, changes, n)) is not None]
        if self.keys and self._counted is None:
            doubts.append(exp.LT(this=_col(changes, "least"), expression=exp.Literal.number(0)))
        if doubts:
            columns.append((exp.or_(*doubts, copy=False), "doubt"))
        query = projected(exp.select().from_(source), columns)
        query.append("joins", exp.Join(this=existing, side="LEFT", on=on))
        return self._judged(query, [name for _, name in columns])

    def _judged(self, query: exp.Select, names: Sequence[str]) -> exp.Select:
        """A query of groups with these columns and with what follows from their new values: an engine computes each of these
        once."""
        columns: list[Projection] = [(_col(_MERGED, name), name) for name in names if name != "doubt"]
        rows = exp.Literal.number(1) if self._counted is None else _col(_MERGED, f"new_{self._counted.name}")
        left = rows if self.keys else exp.Literal.number(1)
        equal = [
            exp.NullSafeEQ(this=_col(_MERGED, f"old_{total.name}"), expression=_col(_MERGED, f"new_{total.name}"))
            for total in self.totals
        ]
        same = exp.and_(_col(_MERGED, THERE), exp.GT(this=left, expression=exp.Literal.number(0)), *equal, copy=True)
        doubts: list[exp.Expr] = [exp.LT(this=rows.copy(), expression=exp.Literal.number(0))]
        if not self.keys:
            doubts.append(exp.Not(this=_col(_MERGED, THERE)))
        if "doubt" in names:
            doubts.append(_col(_MERGED, "doubt"))
        unknown = exp.Coalesce(this=exp.Paren(this=exp.or_(*doubts, copy=False)), expressions=[exp.true()])
        columns += [(left.copy(), "left_over"), (same, "same"), (unknown, "unknown")]
        return projected(exp.select().from_(aliased(query, _MERGED)), columns)

    def _new(self, total: _Total, changes: str, n: int) -> exp.Expr:
        if total.constant is not None:
            return exp.cast(total.constant, spark_type(total.field.type), dialect=Spark4)
        old = _col("old", total.name)
        if total.kind in ("rows", "count"):
            counted = _sum(old, _col(changes, "rows" if total.kind == "rows" else f"delta_{n}"))
            return exp.cast(counted, spark_type(total.field.type), dialect=Spark4)
        if total.kind == "sum":
            delta = _col(changes, f"delta_{n}")
            # Past the ends of its type it fails as the whole query does.
            new = exp.cast(
                _sum(exp.cast(old, _wide(total.field.type), dialect=Spark4), delta), spark_type(total.field.type), dialect=Spark4
            )
            if total.required:
                return new
            # Where values do not get fewer, one is left if there was one.
            nothing: exp.Expr = exp.and_(_is_null(old), exp.EQ(this=_col(changes, f"more_{n}"), expression=exp.Literal.number(0)))
            if total.counted is not None:
                place = [other.name for other in self.totals].index(total.counted)
                delta_name = "rows" if self.totals[place].kind == "rows" else f"delta_{place}"
                left = _sum(_col("old", total.counted), _col(changes, delta_name))
                nothing = exp.EQ(this=left, expression=exp.Literal.number(0))
            return _case(nothing, exp.null(), new)
        added_best = _col(changes, f"came_{n}")
        best = exp.Least if total.kind == "min" else exp.Greatest
        return _case(_is_null(old), added_best, _case(_is_null(added_best), old, best(this=old, expressions=[added_best])))

    def _doubt(self, total: _Total, changes: str, n: int) -> exp.Expr | None:
        removed_best = _col(changes, f"gone_{n}")
        if total.kind == "sum" and total.counted is None and not total.required:
            return exp.LT(this=_col(changes, f"more_{n}"), expression=exp.Literal.number(0))
        if total.kind in ("min", "max"):
            old = _col("old", total.name)
            worse = exp.GT if total.kind == "min" else exp.LT
            safe = exp.or_(_is_null(removed_best), worse(this=removed_best, expression=old), copy=True)
            return exp.Not(this=exp.Paren(this=exp.Coalesce(this=exp.Paren(this=safe), expressions=[exp.false()])))
        return None

    def _known_changes(self, groups: pa.Table) -> pa.Table:
        """The rows that come and go of groups whose values are known; those that stay as they are do neither."""
        in_target, left = groups.column(THERE), pc.greater(groups.column("left_over"), 0)
        moves = pc.invert(groups.column("same"))
        places = {name: f"key_{n}" for n, (name, _) in enumerate(self.keys)}
        places |= {total.name: f"new_{total.name}" for total in self.totals}
        parts = (
            (pc.and_(left, moves), 1, [places[name] for name, _ in self.outputs]),
            (pc.and_(in_target, moves), -1, [f"old_{name}" for name, _ in self.outputs]),
        )
        tables = []
        for chosen, weight, names in parts:
            rows = groups.filter(chosen).select(names).rename_columns([field.name for _, field in self.outputs])
            tables.append(rows.append_column(WEIGHT, pa.repeat(pa.scalar(weight, pa.int64()), rows.num_rows)))
        return pa.concat_tables(tables, promote_options="permissive")


def group_state(node: Node, outputs: Sequence[tuple[str, Field]], sources: Sequence[SourceShape]) -> GroupState | None:
    """The rule for a grouped query; None where it has no such rule."""
    if not isinstance(node, Keyed) or not node.is_grouped or node.block.select.args.get("having"):
        return None
    fields, texts = dict(outputs), {key.sql(): n for n, key in enumerate(node.keys)}
    keys: dict[int, tuple[str, Field]] = {}
    totals: list[_Total] = []
    types = _column_types(node.block.inputs, sources)
    for one in node.block.select.expressions:
        value, name = one.unalias(), one.alias_or_name
        if value.sql() in texts:
            if texts[value.sql()] in keys:
                return None
            keys[texts[value.sql()]] = (name, fields[name])
        elif (total := _total(value, name, fields[name], types)) is not None:
            totals.append(total)
        else:
            return None
    if len(keys) < len(node.keys):
        return None
    counts = {total.value.sql(): total.name for total in totals if total.kind == "count" and total.value is not None}
    if not node.keys:
        # The group of all rows stays when it is empty, and its sums are NULL then.
        rows = next((total.name for total in totals if total.kind == "rows"), None)
        counts |= {total.value.sql(): rows for total in totals if total.required and total.value is not None and rows is not None}
        totals = [replace(total, required=False) for total in totals]
    totals = [replace(total, counted=counts.get(total.value.sql()) if total.value is not None else None) for total in totals]
    state = GroupState(node, tuple(outputs), tuple(keys[n] for n in range(len(node.keys))), tuple(totals))
    return state.with_step().with_tally(types)


def _total(value: exp.Expr, name: str, field: Field, types: Mapping[tuple[str, str], DataType]) -> _Total | None:
    inner = value.this
    match value:
        case exp.Count():
            if value.expressions or isinstance(inner, exp.Distinct):
                return None
            plain = isinstance(inner, (exp.Star, exp.Literal)) and not isinstance(inner, exp.Null)
            return _Total("rows", name, field) if plain else _Total("count", name, field, inner)
        case exp.Sum():
            column_type = types.get((inner.table, inner.name)) if isinstance(inner, exp.Column) else None
            if column_type is None or not _adds_up(column_type, field.type):
                return None
            return _Total("sum", name, field, inner, required=not column_type.nullable)
        case exp.Min() | exp.Max() if not value.expressions:
            column_type = types.get((inner.table, inner.name)) if isinstance(inner, exp.Column) else None
            if column_type is None or not isinstance(column_type, AtomicType) or is_float(column_type):
                return None
            return _Total("min" if isinstance(value, exp.Min) else "max", name, field, inner)
        case exp.Literal() if literal_kind(field.type) == ("text" if value.is_string else "number" if value.is_int else ""):
            return _Total("constant", name, field, constant=value)
    return None


def _adds_up(value: DataType, total: DataType) -> bool:
    """True if sums of these values are exact, and of the same kind in the target."""
    if not isinstance(value, AtomicType) or not isinstance(total, AtomicType):
        return False
    if value.root in INTEGER_ROOTS:
        return total.root is TypeRoot.BIGINT
    if value.root is not TypeRoot.DECIMAL or total.root is not TypeRoot.DECIMAL or value.scale != total.scale:
        return False
    assert value.precision is not None and total.precision is not None, "decimals have digits"
    return value.precision <= MOST_DIGITS and total.precision >= value.precision + 10


def _column_types(inputs: Sequence[Input], sources: Sequence[SourceShape]) -> dict[tuple[str, str], DataType]:
    """The types of the columns of sources that a block reads itself, by alias and name. An outer join gives NULL for any column."""
    return {
        (one.alias, field.name.lower()): with_nullable(field.type, field.type.nullable or bool(one.equalities))
        for one in inputs
        if isinstance(one.reads, int)
        for field in sources[one.reads].fields
    }


def _is_whole(data_type: DataType) -> bool:
    return isinstance(data_type, AtomicType) and data_type.root in INTEGER_ROOTS


def _no_step(name: str, text: str) -> pa.Table:
    raise AssertionError(f"{name} is the first step: {text}")


def _wide(total: DataType) -> str:
    assert isinstance(total, AtomicType), "a number"
    return f"DECIMAL(38, {total.scale or 0})"


def _is_there() -> exp.Expr:
    return exp.Coalesce(this=_col("old", THERE), expressions=[exp.false()])


def _col(table: str, name: str) -> exp.Column:
    return exp.column(name, table=table, quoted=True)


def _case(condition: exp.Expr, then: exp.Expr, otherwise: exp.Expr | None) -> exp.Case:
    case = exp.Case().when(condition.copy(), then.copy())
    return case if otherwise is None else case.else_(otherwise.copy())


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value.copy(), expression=exp.null())


def _sum(old: exp.Expr, delta: exp.Expr) -> exp.Expr:
    nothing = exp.Literal.number(0)
    parts = [exp.Coalesce(this=part.copy(), expressions=[nothing.copy()]) for part in (old, delta)]
    return exp.Paren(this=exp.Add(this=parts[0], expression=parts[1]))
