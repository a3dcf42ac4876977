"""Parses filters as callers give them: SQL text, an Arrow expression, or a predicate.

All three become one tree over the table's columns, with literals of exactly the columns' types (``binding``).
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pyarrow.compute as pc

from tablestore.errors import InvalidInputError
from tablestore.names import did_you_mean
from tablestore.recursion import deep_stack
from tablestore.types.datatypes import Field
from tablestore.types.filter.predicate import (
    And,
    Comparison,
    Computed,
    Constant,
    IsIn,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    StartsWith,
)

# Chains of AND and OR count once; everything that walks a tree may recurse this deep.
MAX_FILTER_DEPTH = 200
_TOO_DEEP = f"the filter is nested more than {MAX_FILTER_DEPTH} levels deep; write it with fewer parentheses and NOTs"
_NODES = (And, Or, Not, Constant, Comparison, IsIn, IsNull, StartsWith, Like, Computed)


# pyarrow's stubs know no union with Expression: it is Any to the type checker.
Filter: TypeAlias = "str | pc.Expression | Predicate | None"
"""A filter as callers give it. None: all rows."""


def parse_filter(filter: Filter, fields: Sequence[Field]) -> Predicate | None:
    """The predicate of a filter over the columns ``fields``; None keeps every row.

    Raises InvalidInputError for an unknown column (naming the nearest), a literal that does not compare with its
    column, or text that is not a condition; UnsupportedError for what a filter cannot express.
    """
    if filter is None:
        return None
    try:
        with deep_stack():
            predicate = _read(filter, _resolver(fields))
        check_depth(predicate)
    except RecursionError as error:
        raise InvalidInputError(_TOO_DEEP, kind="limit") from error
    return predicate


def _read(filter: object, field_of: Callable[[str], Field]) -> Predicate:
    if isinstance(filter, str):
        # Each way needs a reader of its own; sqlglot takes a while to load.
        from tablestore.types.filter.sqlfilter import parse_sql

        return parse_sql(filter, field_of)
    if isinstance(filter, pc.Expression):
        from tablestore.types.filter.arrowfilter import parse_expression

        return parse_expression(filter, field_of)
    if isinstance(filter, _NODES):
        from tablestore.types.filter.binding import rebind

        return rebind(filter, field_of)
    raise InvalidInputError(
        f'expected a filter as SQL text or pyarrow expression, found {type(filter).__name__}; for example filter="price > 10"'
    )


def check_depth(predicate: Predicate, left: int = MAX_FILTER_DEPTH) -> None:
    """Raise InvalidInputError for a predicate that is nested too deeply."""
    if left == 0:
        raise InvalidInputError(_TOO_DEEP, kind="limit")
    match predicate:
        case And(children) | Or(children):
            for child in children:
                check_depth(child, left - 1)
        case Not(child):
            check_depth(child, left - 1)
        case _:
            pass


def _resolver(fields: Sequence[Field]) -> Callable[[str], Field]:
    exact = {field.name: field for field in fields}
    folded: dict[str, list[Field]] = {}
    for field in fields:
        folded.setdefault(field.name.casefold(), []).append(field)

    def resolve(name: str) -> Field:
        if name in exact:
            return exact[name]
        candidates = folded.get(name.casefold(), [])
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            raise InvalidInputError(
                f"the filter names the column {name!r}, which could be {' or '.join(repr(f.name) for f in candidates)}; "
                "write it as in the table",
                kind="ambiguous-column",
            )
        raise InvalidInputError(
            f"the filter names the column {name!r}, which does not exist{did_you_mean(name, exact)} (columns: {', '.join(exact)})",
            kind="unknown-column",
        )

    return resolve
