"""Reads the options of a parser or a writer that stand in a query: ``map('sep', '|')``."""

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.duckdb.functions.functionrule import RuleCall


def written_options(call: RuleCall, place: int) -> dict[str, str]:
    """The options that an argument is in the query, by their names in small letters; none without the argument.

    Raises UnsupportedError for options that are computed, and for one that stands twice.
    """
    if place >= len(call.values):
        return {}
    node = call.values[place].unnest()
    if not isinstance(node, exp.VarMap) or not all(isinstance(node.args[part], exp.Array) for part in ("keys", "values")):
        raise call.refusal("with options that are computed")
    names, values = node.args["keys"].expressions, node.args["values"].expressions
    if not all(isinstance(one, exp.Literal) and one.is_string for one in (*names, *values)):
        raise call.refusal("with options that are computed")
    options = {name.name.lower(): value.name for name, value in zip(names, values, strict=True)}
    if len(options) < len(names):
        raise call.refusal("with an option that stands twice")
    return options


def is_set(call: RuleCall, options: dict[str, str], name: str) -> bool:
    """True for an option that is ``true``, in letters of any size; False without it."""
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise InvalidInputError(
            f"the function `{call.name}`: expected true or false as the option {name}, found {text!r}", kind="query"
        )
    return text == "true"
