"""Finds the suites of dbt-tests-adapter, and says which are left out and why: a suite of a newer version runs by itself."""

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import dbt.tests.adapter

# Of a suite, by the end of its module and its class; a name that ends in a point stands for all of a module.
LEFT_OUT = {
    "grants.": "there are no grants: tests/integration/dbt/test_tablestore.py has what a project with grants sees",
    "python_model.": "models are SQL: the error names functions of Python",
    "functions.test_js_udfs.": "functions are SQL or Python",
    "functions.test_udafs.": "functions of a group are Python's, and made in Python",
    "functions.test_udfs.Python": "a function of Python is kept by its name, which dbt has no words for",
    "functions.test_udfs.Deterministic": "a function of SQL has no volatility: its expression says it",
    "functions.test_udfs.Stable": "as of Deterministic",
    "functions.test_udfs.NonDeterministic": "as of Deterministic",
    "functions.test_udfs.SqlUDFDefaultArgSupport": "arguments have no defaults",
    "functions.test_udfs.CanFindScalarFunctionRelation": "functions are not listed among relations",
    "dbt_debug.": "profiles of Postgres: test_tablestore.py has `dbt debug`",
    "dbt_clone.test_dbt_clone.BaseClonePossible": "a clone is a view, as BaseCloneNotPossible has it",
    "dbt_clone.test_dbt_clone.BaseCloneSame": "as of BaseClonePossible",
    "materialized_view.changes.": "a materialized table takes each change, or refuses it by name",
    "empty.test_empty.BaseTestEmptySeedFlag": "`dbt seed --empty` is of a newer dbt than the one that the tests run on",
    "caching.test_caching.BaseCachingUppercaseModel": "wants MODEL and model to be one table: here they are two",
    "simple_copy.test_copy_uppercase.": "a profile of Postgres, whose database has a name in upper case",
    "column_types.": "types of Postgres: test_tablestore.py has ours",
    "aliases.test_aliases.BaseSameAliasDifferentDatabases": "wants a second database of Postgres",
    "utils.test_current_timestamp.BaseCurrentTimestampNaive": "now has a time zone: BaseCurrentTimestampAware",
    "utils.test_escape_single_quotes.BaseEscapeSingleQuotesQuote": "a quotation mark is escaped by a backslash",
    "constraints.test_constraints.BaseConstraintsColumnsEqual": "a part of others",
    "constraints.test_constraints.BaseContractSqlHeader": "a part of others",
    "caching.test_caching.BaseCachingTest": "a part of others",
    "utils.base_": "a part of others",
    "utils.data_types.base_": "a part of others",
}


def suites() -> Iterator[tuple[str, type]]:
    """Module and name of each suite of dbt's, with its class."""
    folder = Path(next(iter(dbt.tests.adapter.__path__)))
    for path in sorted(folder.rglob("*.py")):
        if path.stem != "__init__":
            yield from _of_module(".".join(("dbt.tests.adapter", *path.relative_to(folder).with_suffix("").parts)))


def _of_module(name: str) -> Iterator[tuple[str, type]]:
    for found in vars(importlib.import_module(name)).values():
        if inspect.isclass(found) and found.__module__ == name and _has_tests(found) and not _repeats(found):
            yield f"{name.removeprefix('dbt.tests.adapter.')}.{found.__name__}", found


def _has_tests(found: type) -> bool:
    return any(name.startswith("test_") and callable(getattr(found, name)) for name in dir(found))


def _repeats(found: type) -> bool:
    """True for the class that runs a suite on Postgres, which changes nothing in it."""
    own = set(vars(found)) - {"__module__", "__doc__", "__firstlineno__", "__static_attributes__"}
    return found.__name__.startswith("Test") and not own


def why_left_out(name: str) -> str | None:
    """The reason; None for a suite that runs."""
    if name.endswith("BaseCurrentTimestamp"):
        return "a part of others"
    return next((why for start, why in LEFT_OUT.items() if name.startswith(start)), None)
