"""The table of functions: rules, their names, what the documents say of them, and functions that DuckDB calls back."""

from collections import Counter
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.sql.binding.sqltypes import INT, array
from tablestore.sql.duckdb.calls import call
from tablestore.sql.duckdb.functions.functionrule import from_text
from tablestore.sql.duckdb.functions.functiontable import ARROW_FUNCTIONS, BOUNDS, NOTED, REASONS, REFUSED, RULES, function_states
from tablestore.sql.duckdb.rewrites import TAKEN
from tablestore.sql.query.functions import is_spark_function


def test_a_function_has_one_rule() -> None:
    names = Counter(name for rule in {id(rule): rule for rule in RULES.values()}.values() for name in (rule.name, *rule.aliases))
    assert [name for name, count in names.items() if count > 1] == []
    assert sorted(RULES.keys() & TAKEN.keys()) == [], "these have a rule, and are written elsewhere too"
    assert sorted(REASONS.keys() & BOUNDS.keys()) == [], "these run, and are said to be refused"


def test_rules_are_of_functions_that_spark_has() -> None:
    assert [name for name in (*RULES, *REASONS) if not is_spark_function(name)] == []


def test_a_function_is_the_same_or_the_table_says_why_not() -> None:
    states = {one.name: one for one in function_states()}
    assert states["array_compact"].state != REFUSED
    assert all(one.note for one in states.values() if one.state in (REFUSED, NOTED))


def test_what_stands_twice_is_computed_once() -> None:
    written = from_text("$0 + $0", call("RANDOM"))
    assert written.sql("duckdb").upper().count("RANDOM") == 1
    assert from_text("$0 + $0", from_text("a")).sql("duckdb") == "a + a"


def test_a_number_of_arguments_that_spark_does_not_take_is_an_error(tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path, engine="duckdb") as env:
        with pytest.raises(ts.InvalidInputError, match="takes more or fewer arguments"):
            env.execute_sql("SELECT array_compact()").to_arrow()
        with pytest.raises(ts.InvalidInputError, match=r"no function `array_compct`; did you mean 'array_compact'\?"):
            env.execute_sql("SELECT array_compct(array(1))").to_arrow()
        with pytest.raises(ts.InvalidInputError, match="expected an array as argument 1, found INT"):
            env.execute_sql("SELECT array_compact(1)").to_arrow()


def test_the_types_of_arrow_functions_are_known() -> None:
    assert all(kind.is_known for function in ARROW_FUNCTIONS.values() for kind in (*function.arguments, function.result))
    assert array(INT).is_known
