"""Holds the table of functions: of each function of Spark's, whether DuckDB runs it, how, and why not.

Each family is a module with ``RULES``; those that have Arrow functions list them in ``ARROW``, and ``REFUSED`` says of functions
that are refused why.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tablestore.sql.binding.signatures import Signature
from tablestore.sql.duckdb.functions import (
    arrayfunctions,
    bitfunctions,
    checksumfunctions,
    ciphers,
    collectingfunctions,
    conditionfunctions,
    countsketches,
    generatorfunctions,
    jsonfunctions,
    lambdafunctions,
    mapfunctions,
    mathfunctions,
    momentfunctions,
    numberformats,
    parsedtexts,
    patternfunctions,
    quantilesketches,
    randomfunctions,
    sketchfunctions,
    spatialfunctions,
    statisticfunctions,
    textfunctions,
    topitems,
    tryfunctions,
    urlfunctions,
    variantfunctions,
    vectorfunctions,
    xmltexts,
    xpathfunctions,
)
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.functionrule import FunctionRule
from tablestore.sql.duckdb.rewrites import TAKEN
from tablestore.sql.query.functions import SPARK_FUNCTIONS

_FAMILIES = (
    arrayfunctions, bitfunctions, checksumfunctions, ciphers, collectingfunctions, conditionfunctions, countsketches,
    generatorfunctions, jsonfunctions, lambdafunctions, mapfunctions, mathfunctions, momentfunctions, numberformats, parsedtexts,
    patternfunctions, quantilesketches, randomfunctions, sketchfunctions, spatialfunctions, statisticfunctions, textfunctions,
    topitems, tryfunctions, urlfunctions, variantfunctions, vectorfunctions, xmltexts, xpathfunctions,
)  # fmt: skip


def _by_name() -> Iterator[tuple[str, FunctionRule]]:
    for family in _FAMILIES:
        for rule in family.RULES:
            yield from ((name, rule) for name in (rule.name, *rule.aliases))


RULES: Mapping[str, FunctionRule] = MappingProxyType(dict(_by_name()))
"""The rules of functions by their names in small letters."""
SIGNATURES: Mapping[str, Signature] = MappingProxyType({name: rule.signature for name, rule in RULES.items()})
"""The types of these functions, for the binder."""
ARROW_FUNCTIONS: Mapping[str, ArrowFunction] = MappingProxyType(
    {function.name: function for family in _FAMILIES for function in getattr(family, "ARROW", ())}
)
"""The functions that DuckDB calls back, by their names."""
BOUNDS: Mapping[str, tuple[int, int]] = MappingProxyType({**TAKEN, **{name: rule.bounds for name, rule in RULES.items()}})
"""The functions that a query may call on DuckDB, and how many arguments they take at least and at most."""
REASONS: Mapping[str, str] = MappingProxyType(
    {name: why for family in _FAMILIES for name, why in getattr(family, "REFUSED", {}).items()}
)
"""Why functions are refused, by their names; of others it is said that no rule for them is there yet."""
SAME, NOTED, REFUSED = "same", "same, with a note", "refused"
_NO_RULE = "no rule for it yet"


@dataclass(frozen=True, slots=True)
class FunctionState:
    """A line of the table: what DuckDB makes of a function. ``note``: what to know of it, or why it is refused."""

    name: str
    state: str
    note: str = ""


def function_states() -> Iterator[FunctionState]:
    """The state of each function of Spark's, by name."""
    for name in sorted(SPARK_FUNCTIONS):
        if name not in BOUNDS:
            yield FunctionState(name, REFUSED, REASONS.get(name, _NO_RULE))
        elif (rule := RULES.get(name)) is not None and rule.note:
            yield FunctionState(name, NOTED, rule.note)
        else:
            yield FunctionState(name, SAME)
