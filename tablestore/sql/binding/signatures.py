"""Says which types a function that has a rule of its own gives, for the binder: what rules say, by the names of functions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from tablestore.sql.binding.scopes import Columns
from tablestore.sql.binding.sqltypes import SqlType, Type
from tablestore.sql.query.dialect import CALL, Call

Types: TypeAlias = Sequence[Type]
ResultOf: TypeAlias = Callable[[Types, Sequence[exp.Expr]], Type]
"""Takes the types of arguments and the arguments, which may be written out."""
VariablesOf: TypeAlias = Callable[[int, Types], Types]
"""Takes the place of a lambda and the types of the arguments before it."""
ColumnsOf: TypeAlias = Callable[[Types, Sequence[exp.Expr]], "Columns | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """The types of a function. ``variables``: those of a lambda's variables; ``columns``: those of a function that gives rows."""

    result: ResultOf
    variables: VariablesOf | None = None
    columns: ColumnsOf | None = None


def always(result: SqlType) -> ResultOf:
    """The result of a function that gives one type."""
    return lambda types, values: result


def as_argument(place: int = 0) -> ResultOf:
    """The result of a function that gives the type of one of its arguments."""
    return lambda types, values: types[place] if place < len(types) else None


def function_name(node: exp.Expr) -> str | None:
    """The name, in small letters, of the function that is called as it is written; None for what is no call."""
    if isinstance(node, (exp.SubqueryPredicate, exp.QueryTransform)):
        return None
    written_call = node.meta.get(CALL)
    return written_call.name if isinstance(written_call, Call) else None


def arguments_of(node: exp.Expr) -> list[exp.Expr]:
    """The arguments of a call in their order; those behind a DISTINCT too."""
    if isinstance(node, (exp.Anonymous, exp.AnonymousAggFunc)):
        arguments = list(node.expressions)
    else:
        values = (node.args.get(key) for key in node.arg_types)
        arguments = [one for value in values for one in (value if isinstance(value, list) else [value])]
    if arguments and isinstance(arguments[0], exp.Distinct):
        arguments = [*arguments[0].expressions, *arguments[1:]]
    return [one for one in arguments if isinstance(one, exp.Expr)]
