"""Predicates: the frozen tree of a filter, and the rows of a batch that it keeps.

A frozen tree over the columns of one table, with SQL's three-valued logic: a comparison with NULL is unknown,
NOT unknown is unknown, and a row is kept only where the whole is true.

    predicate = And | Or | Not | leaf
    leaf      = Comparison | IsIn | IsNull | StartsWith | Like | Constant | Computed

Literals are Python values as Arrow gives them (``as_py``; ``numpy.datetime64`` for nanoseconds), already of the
column's type: ``filters`` binds them. Floats are ordered as SQL engines do: NaN equals NaN and is greater than every
other number, -0.0 equals 0.0. Strings are ordered by their UTF-8 bytes.

This module says what a tree means row by row; ``pruning`` says what it means for a file's column ranges.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError
from tablestore.types.arrowtypes import scalar_of
from tablestore.types.expression.evaluate import ColumnValues, evaluate_expression
from tablestore.types.expression.expression import Expression, columns_of, renamed_columns
from tablestore.types.expression.functions import like_regex

Operator = Literal["=", "!=", "<", "<=", ">", ">="]
NEGATED: dict[Operator, Operator] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
FLIPPED: dict[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Constant:
    """True, false, or (None) unknown for every row."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """``field op literal``; unknown where the field is null. The literal is never None."""

    op: Operator
    field: str
    literal: Any

    def __post_init__(self) -> None:
        if self.op not in NEGATED:
            raise InvalidInputError(f"expected one of {', '.join(NEGATED)} as comparison, found {self.op!r}")


@dataclass(frozen=True, slots=True)
class IsIn:
    """``field IN (values)``; a None among the values makes every miss unknown. ``by_bits``: as in Arrow's ``is_in``, -0.0 is not
    0.0, and NaNs of two signs are two values."""

    field: str
    values: tuple[Any, ...]
    by_bits: bool = False


@dataclass(frozen=True, slots=True)
class IsNull:
    """``field IS NULL``; never unknown."""

    field: str


@dataclass(frozen=True, slots=True)
class StartsWith:
    """``field LIKE 'prefix%'``, the prefix taken literally."""

    field: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Like:
    r"""``field LIKE pattern``: ``%`` any text, ``_`` one character, ``\`` takes the next character literally."""

    field: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Computed:
    """A condition that is computed from several columns, or with functions: it says nothing about files."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class And:
    """True where all children are; true if there are none."""

    children: "tuple[Predicate, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    """True where any child is; false if there are none."""

    children: "tuple[Predicate, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    """Swaps true and false; unknown stays."""

    child: "Predicate"


Leaf = Constant | Comparison | IsIn | IsNull | StartsWith | Like | Computed
Predicate = And | Or | Not | Leaf

TRUE = Constant(True)
FALSE = Constant(False)
UNKNOWN = Constant(None)


def all_of(predicates: Iterable[Predicate]) -> Predicate:
    """The conjunction, flattened; TRUE for none."""
    flat = tuple(part for predicate in predicates for part in conjuncts(predicate) if part != TRUE)
    return flat[0] if len(flat) == 1 else And(flat) if flat else TRUE


def any_of(predicates: Iterable[Predicate]) -> Predicate:
    """The disjunction, flattened; FALSE for none."""
    flat: list[Predicate] = []
    for predicate in predicates:
        flat.extend(predicate.children if isinstance(predicate, Or) else (predicate,))
    flat = [part for part in flat if part != FALSE]
    return flat[0] if len(flat) == 1 else Or(tuple(flat)) if flat else FALSE


def columns(predicate: Predicate | None) -> frozenset[str]:
    """The columns that a predicate looks at."""
    match predicate:
        case None | Constant():
            return frozenset()
        case And(children) | Or(children):
            return frozenset().union(*(columns(child) for child in children))
        case Not(child):
            return columns(child)
        case Computed(expression):
            return frozenset(column.name for column in columns_of(expression))
        case _:
            return frozenset((predicate.field,))


def conjuncts(predicate: Predicate | None) -> tuple[Predicate, ...]:
    """The parts that must all be true, nested ANDs dissolved; none for TRUE and None."""
    if predicate is None or predicate == TRUE:
        return ()
    if isinstance(predicate, And):
        return tuple(part for child in predicate.children for part in conjuncts(child))
    return (predicate,)


def push_negation(predicate: Predicate, *, negate: bool = False) -> Predicate:
    """An equal tree in which NOT stands over leaves only, and over no comparison."""
    match predicate:
        case Not(child):
            return push_negation(child, negate=not negate)
        case And(children) | Or(children):
            parts = tuple(push_negation(child, negate=negate) for child in children)
            return And(parts) if isinstance(predicate, And) != negate else Or(parts)
        case _ if not negate:
            return predicate
        case Constant(value):
            return Constant(None if value is None else not value)
        case Comparison(op, field, literal):
            return Comparison(NEGATED[op], field, literal)
        case _:
            return Not(predicate)


def keep_only(predicate: Predicate | None, names: Iterable[str]) -> Predicate | None:
    """A weaker predicate over ``names`` alone, true wherever the given one is; None if nothing can be said."""
    if predicate is None:
        return None
    kept = _keep_only(push_negation(predicate), frozenset(names))
    return None if kept == TRUE else kept


def renamed(predicate: Predicate, names: Mapping[str, str]) -> Predicate:
    """The same predicate with its columns under other names; every one of them is in ``names``."""
    match predicate:
        case And(children):
            return And(tuple(renamed(child, names) for child in children))
        case Or(children):
            return Or(tuple(renamed(child, names) for child in children))
        case Not(child):
            return Not(renamed(child, names))
        case Constant():
            return predicate
        case Computed(expression):
            return Computed(renamed_columns(expression, names))
        case _:
            return replace(predicate, field=names[predicate.field])


def _keep_only(predicate: Predicate, names: frozenset[str]) -> Predicate | None:
    match predicate:
        case And(children):
            parts = [kept for child in children if (kept := _keep_only(child, names)) is not None]
            return all_of(parts) if parts else None
        case Or(children):
            branches = [_keep_only(child, names) for child in children]
            known_branches = [branch for branch in branches if branch is not None]
            return any_of(known_branches) if len(known_branches) == len(branches) else None
        case _:
            return predicate if columns(predicate) <= names else None


MAX_EQUALITIES = 64


def equalities(predicate: Predicate | None, names: Sequence[str]) -> list[dict[str, object]] | None:
    """Every value tuple of ``names`` that a kept row can have, or None if they are not so few (at most 64).

    A value of None stands for null. An empty list means that no row is kept.
    """
    if predicate is None:
        return None
    assignments = _assignments(push_negation(predicate), frozenset(names))
    if any(len(assignment) < len(set(names)) for assignment in assignments):
        return None
    return [{name: value for name, (_, value) in assignment.items()} for assignment in assignments]


# Column name -> (comparison token, value): equal tokens mean the same value.
_Assignment = dict[str, tuple[object, object]]


def _assignments(predicate: Predicate, names: frozenset[str]) -> list[_Assignment]:
    """Partial assignments, one of which every kept row has; ``[{}]`` says nothing."""
    match predicate:
        case Comparison("=", field, literal) if field in names:
            return _assigned(field, (literal,))
        case IsIn(field, values) if field in names:
            return _assigned(field, tuple(value for value in values if value is not None))
        case IsNull(field) if field in names:
            return [{field: (None, None)}]
        case Constant(value) if value is not True:
            return []
        case Or(children):
            branches = [assignment for child in children for assignment in _assignments(child, names)]
            return _distinct(branches)
        case And(children):
            result: list[_Assignment] = [{}]
            for child in children:
                joined = _distinct(
                    [
                        left | right
                        for left in result
                        for right in _assignments(child, names)
                        if all(left[name][0] == right[name][0] for name in left.keys() & right.keys())
                    ]
                )
                # Too many: what is known without this child still holds.
                result = joined if joined != [{}] else result
            return result
        case _:
            return [{}]


def _assigned(field: str, values: Sequence[object]) -> list[_Assignment]:
    assignments: list[_Assignment] = []
    for value in values:
        if isinstance(value, float) and math.isnan(value):
            # NaNs of several bit patterns are equal here, and different to a hash.
            return [{}]
        if isinstance(value, float) and value == 0:
            assignments += [{field: ("0.0", 0.0)}, {field: ("-0.0", -0.0)}]
        else:
            assignments.append({field: ((type(value).__name__, value), value)})
    return _distinct(assignments)


def _distinct(assignments: list[_Assignment]) -> list[_Assignment]:
    """The assignments without repetitions; ``[{}]`` if one says nothing or there are too many."""
    kept: dict[frozenset[tuple[str, object]], _Assignment] = {}
    for assignment in assignments:
        kept[frozenset((name, token) for name, (token, _) in assignment.items())] = assignment
        if not assignment or len(kept) > MAX_EQUALITIES:
            return [{}]
    return list(kept.values())


def evaluate(predicate: Predicate | None, batch: pa.RecordBatch | pa.Table) -> pa.BooleanArray:
    """True for every kept row of the batch, in its order; never null."""
    if predicate is None or predicate == TRUE:
        return pa.repeat(pa.scalar(True), batch.num_rows)

    def column(name: str) -> pa.Array:
        if name not in batch.schema.names:
            raise InvalidInputError(f"the filter names the column {name!r}; the rows have {', '.join(batch.schema.names)}")
        values = batch.column(name)
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values

    return pc.fill_null(_build(push_negation(predicate), column, batch.num_rows), False)


def _build(predicate: Predicate, column: Callable[[str], pa.Array], rows: int) -> pa.Array:
    """True, false or null (unknown) for each of the rows."""
    match predicate:
        case Constant(value):
            return pa.repeat(pa.scalar(value, pa.bool_()), rows)
        case And(children) | Or(children):
            join = pc.and_kleene if isinstance(predicate, And) else pc.or_kleene
            parts = [_build(child, column, rows) for child in children]
            return reduce(join, parts) if parts else pa.repeat(isinstance(predicate, And), rows)
        case Not(child):
            return pc.invert(_build(child, column, rows))
        case Computed(expression):
            outcome = evaluate_expression(expression, ColumnValues(rows, lambda reference: column(reference.name)))
            return pa.nulls(rows, pa.bool_()) if pa.types.is_null(outcome.type) else outcome
        case IsNull(field):
            return pc.is_null(column(field))
        case StartsWith(field, prefix):
            return pc.starts_with(column(field), pattern=prefix)
        case Like(field, pattern):
            # match_like leaves line breaks out of % and _; SQL does not.
            return pc.match_substring_regex(column(field), pattern=like_regex(pattern))
        case Comparison(op, field, literal):
            return _compare(op, column(field), literal)
        case IsIn(field, values, by_bits):
            return _is_in(column(field), values, by_bits=by_bits)


_FUNCTIONS = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def _compare(op: Operator, values: pa.Array, literal: Any) -> pa.Array:
    is_float = pa.types.is_floating(values.type)
    if is_float and math.isnan(literal):
        # Beside NaN there is only NaN itself and what is smaller.
        is_nan = pc.is_nan(values)
        if op in ("=", ">="):
            return is_nan
        if op in ("!=", "<"):
            return pc.invert(is_nan)
        always = pc.or_kleene(is_nan, pc.invert(is_nan))
        return always if op == "<=" else pc.invert(always)
    compared = _FUNCTIONS[op](values, to_scalar(literal, values.type))
    if is_float and op in (">", ">="):
        return pc.or_kleene(compared, pc.is_nan(values))
    return compared


def _is_in(values: pa.Array, candidates: Sequence[Any], *, by_bits: bool) -> pa.Array:
    has_null = any(value is None for value in candidates)
    plain = [value for value in candidates if value is not None]
    as_numbers = pa.types.is_floating(values.type) and not by_bits
    has_nan = as_numbers and any(math.isnan(value) for value in plain)
    if as_numbers:
        # To Arrow's is_in -0.0 and 0.0 differ.
        plain = [value for value in plain if not math.isnan(value)]
        plain += [-value for value in plain if value == 0]
    value_set = pa.array([to_scalar(value, values.type) for value in plain], values.type)
    hits = pc.is_in(values, value_set=value_set)
    if has_nan:
        hits = pc.or_kleene(hits, pc.is_nan(values))
    # is_in says false for null; SQL says unknown, and unknown for every miss if the list holds NULL.
    unknown = pa.scalar(None, pa.bool_())
    return pc.if_else(hits, True, unknown) if has_null else pc.if_else(pc.is_null(values), unknown, hits)


def to_scalar(value: Any, arrow_type: pa.DataType) -> pa.Scalar:
    """A literal as an Arrow scalar of the column's type; InvalidInputError if it is none."""
    try:
        return scalar_of(value, arrow_type)
    except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
        raise InvalidInputError(f"expected a value of type {arrow_type} in a filter, found {value!r:.100}") from error


def like_prefix(pattern: str) -> tuple[str, str]:
    """The literal text at the start of a LIKE pattern, and the rest of the pattern."""
    prefix, position = "", 0
    while position < len(pattern) and pattern[position] not in "%_":
        if pattern[position] == "\\":
            position += 1
        prefix += pattern[position : position + 1]
        position += 1
    return prefix, pattern[position:]
