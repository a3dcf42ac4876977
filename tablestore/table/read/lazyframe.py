"""Presents a scan as a lazy frame of polars.

    query of polars  ->  its columns, and the rows of a weaker predicate, are read; polars' own condition decides about each row

polars gives no way to walk an expression but ``meta.pop``: the parts that the outermost operation has. What the operation is
comes out by doing it: an expression that is equal to ``left > right`` is one. So nothing here depends on how polars writes
expressions down, and what it learns to say later is left to it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from tablestore.table.read.narrowing import Narrowable
from tablestore.types.datatypes import Field, is_float
from tablestore.types.filter.arrowfilter import raw_value
from tablestore.types.filter.binding import bind_comparison, bind_in, bind_prefix
from tablestore.types.filter.predicate import FLIPPED, And, Comparison, IsNull, Not, Operator, Or, Predicate
from tablestore.types.filter.weakening import UNSAID, is_of_kind, weakest

_COMPARISONS: dict[Operator, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
_BETWEEN: dict[Literal["both", "left", "right", "none"], tuple[Operator, Operator]] = {
    "both": (">=", "<="),
    "left": (">=", "<"),
    "right": (">", "<="),
    "none": (">", "<"),
}


def lazy_frame(scan: Narrowable) -> pl.LazyFrame:
    """The rows of a scan, each time that the frame is collected."""
    empty = pl.from_arrow(scan.schema.empty_table())
    assert isinstance(empty, pl.DataFrame)
    return register_io_source(_Source(scan), schema=empty.schema, is_pure=True)


class _Source:
    """The source that polars calls to read. It pickles, as the frame may."""

    def __init__(self, scan: Narrowable) -> None:
        self._scan = scan

    def __call__(
        self, columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        names = self._scan.schema.names if columns is None else columns
        named = [] if predicate is None else predicate.meta.root_names()
        pushed = None if predicate is None else push_polars(predicate, self._scan.fields)
        left = rows
        for batch in self._scan.narrowed([*names, *named], pushed).to_batches():
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame)
            if predicate is not None:
                frame = frame.filter(predicate)
            frame = frame.select(names)
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            yield frame
            if left == 0:
                return


def push_polars(expression: pl.Expr, fields: Mapping[str, Field]) -> Predicate | None:
    """A predicate over these columns that is true wherever the expression is; None if nothing can be said."""
    return weakest(lambda: _Reader(fields).condition(expression), fields)


class _Reader:
    def __init__(self, fields: Mapping[str, Field]) -> None:
        self._fields = fields

    def condition(self, node: pl.Expr) -> Predicate:
        """The predicate of an expression; UNSAID for what no predicate says exactly."""
        if (field := self._column(node)) is not None:
            return _compared("=", field, [pa.scalar(True)])
        # The last part comes first.
        match node.meta.pop()[::-1]:
            case [part]:
                return self._of_one(node, part)
            case [left, right]:
                return self._of_two(node, left, right)
            case [part, low, high]:
                return self._between(node, part, low, high)
            case _:
                return UNSAID

    def _of_one(self, node: pl.Expr, part: pl.Expr) -> Predicate:
        if _is(node, ~part):
            return Not(self.condition(part))
        if (field := self._column(part)) is None:
            return UNSAID
        if _is(node, part.is_null()):
            return IsNull(field.name)
        if _is(node, part.is_not_null()):
            return Not(IsNull(field.name))
        if is_float(field.type) and _is(node, part.is_nan()):
            return Comparison("=", field.name, float("nan"))
        if is_float(field.type) and _is(node, part.is_not_nan()):
            return Comparison("!=", field.name, float("nan"))
        return UNSAID

    def _of_two(self, node: pl.Expr, left: pl.Expr, right: pl.Expr) -> Predicate:
        if _is(node, left & right):
            return And((self.condition(left), self.condition(right)))
        if _is(node, left | right):
            return Or((self.condition(left), self.condition(right)))
        for op, compare in _COMPARISONS.items():
            if _is(node, compare(left, right)):
                if (field := self._column(left)) is not None:
                    return _compared(op, field, _values(right))
                field = self._column(right)
                return UNSAID if field is None else _compared(FLIPPED[op], field, _values(left))
        field, values = self._column(left), _values(right)
        if field is None or values is None or not all(is_of_kind(field, value) for value in values):
            return UNSAID
        if _is(node, left.is_in(right)) and not is_float(field.type):
            # A null in the list equals nothing.
            return bind_in(field, [raw_value(value) for value in values if value.is_valid])
        if _is(node, left.str.starts_with(right)) and len(values) == 1 and isinstance(prefix := values[0].as_py(), str):
            return bind_prefix(field, prefix)
        return UNSAID

    def _between(self, node: pl.Expr, part: pl.Expr, low: pl.Expr, high: pl.Expr) -> Predicate:
        field = self._column(part)
        for closed, (above, below) in _BETWEEN.items():
            if field is not None and _is(node, part.is_between(low, high, closed=closed)):
                return And((_compared(above, field, _values(low)), _compared(below, field, _values(high))))
        return UNSAID

    def _column(self, node: pl.Expr) -> Field | None:
        names = node.meta.root_names()
        return self._fields.get(names[0]) if len(names) == 1 and _is(node, pl.col(names[0])) else None


def _compared(op: Operator, field: Field, values: Sequence[pa.Scalar] | None) -> Predicate:
    if values is None or len(values) != 1 or not is_of_kind(field, values[0]):
        return UNSAID
    return bind_comparison(op, field, raw_value(values[0]))


def _values(node: pl.Expr) -> list[pa.Scalar] | None:
    """The values of a literal: one, or those of a list. None for what is no literal."""
    if node.meta.root_names():
        return None
    try:
        values = pl.select(node).to_series()
    except pl.exceptions.PolarsError:
        return None
    if not isinstance(values.dtype, pl.List | pl.Array):
        return list(values.to_arrow())
    inner = values.item() if len(values) == 1 else None
    return None if inner is None else list(inner.to_arrow())


def _is(node: pl.Expr, other: pl.Expr) -> bool:
    return node.meta.eq(other)
