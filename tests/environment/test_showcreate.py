"""SHOW CREATE TABLE prints a statement that makes the same table, whatever the table is called and made of."""

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablestore as ts
from tablestore.environment.inspection.showcreate import quoted_text
from tablestore.types.typestring import quote_identifier

NUMBERS = count()
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=8)
ODD = ("a b", "`", "it's", "primary", "CONSTRAINT", "select", "a.b", "\\", "-- x", "/*", "ä", '"')
NAMES = TEXTS.filter(lambda text: bool(text.strip()) and not text.startswith("_")) | st.sampled_from(ODD)
TYPES = st.sampled_from(
    [
        *("BOOLEAN", "INT", "BIGINT", "DOUBLE", "DECIMAL(38, 10)", "CHAR(3)", "VARCHAR", "VARCHAR(9)", "BINARY", "BINARY(2)"),
        *("TIME(3)", "TIMESTAMP(9)", "TIMESTAMP_LTZ(3)", "ARRAY<INT NOT NULL>"),
        "MAP<STRING, ROW<a INT COMMENT 'it''s', `b c` DATE>>",
    ]
)
PLAIN = st.sampled_from(["INT", "STRING", "DATE", "DECIMAL(5, 2)", "TIMESTAMP(3)"])


@st.composite
def clauses(draw: st.DrawFn) -> str:
    """What follows the name of a table."""

    def comment() -> str:
        return f" COMMENT {quoted_text(draw(TEXTS))}" if draw(st.booleans()) else ""

    names = draw(st.lists(NAMES, min_size=3, max_size=7, unique_by=str.casefold))
    quoted = [quote_identifier(name) for name in names]
    keys, parts, others = quoted[:1], quoted[1:2], quoted[2:]
    columns = [f"{name} {draw(PLAIN)}{comment()}" for name in (*keys, *parts)]
    for name in others:
        columns.append(f"{name} {draw(TYPES)}{draw(st.sampled_from(['', ' NOT NULL']))}{comment()}")
    if draw(st.booleans()):
        columns.append(f"`what is it` STRING METADATA FROM {quoted_text(draw(TEXTS))} VIRTUAL{comment()}")
    partitioned = draw(st.booleans())
    if draw(st.booleans()):
        name = f"CONSTRAINT {quote_identifier(draw(NAMES))} " if draw(st.booleans()) else ""
        columns.append(f"{name}PRIMARY KEY ({', '.join([*keys, *(parts if partitioned else ())])}) NOT ENFORCED")
    by = f" PARTITIONED BY ({parts[0]})" if partitioned else ""
    options = draw(st.sampled_from(["", " WITH ('file.format' = 'parquet')", " WITH ('connector' = 'filesystem', 'path' = '/x')"]))
    return f"({', '.join(draw(st.permutations(columns)))}){comment()}{by}{options}"


@pytest.fixture(scope="module")
def shared() -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(f"memory://show-create-{next(NUMBERS)}") as env:
        yield env


@pytest.fixture(scope="module")
def show(shared: ts.TableEnvironment) -> Callable[[], str]:
    return lambda: str(shared.execute_sql("SHOW CREATE TABLE t").text)


def stored(env: ts.TableEnvironment, *, temporary: bool) -> Mapping[str, Any] | None:
    """What the storage of a managed table says, but for what belongs to this one alone."""
    name = "temporary.tablestore-default-t" if temporary else "default.t"
    if not env.catalog().table_exists(name):
        return None
    schema = env.catalog().table(name).table_schema
    options = {key: value for key, value in schema.options.items() if key != "tablestore.table-uuid"}
    return {"fields": schema.fields, "keys": schema.primary_keys, "by": schema.partition_keys, "options": options}


@pytest.mark.deep
@settings(max_examples=150)
@given(clauses=clauses(), temporary=st.booleans())
def test_what_show_create_prints_makes_the_same_table(
    shared: ts.TableEnvironment, show: Callable[[], str], clauses: str, temporary: bool
) -> None:
    what = "TEMPORARY TABLE" if temporary else "TABLE"
    shared.execute_sql(f"CREATE {what} t {clauses}")
    text, before = show(), stored(shared, temporary=temporary)
    assert text.startswith(f"CREATE {what} `tablestore`.`default`.`t` (")
    shared.execute_sql(f"DROP {what} t")
    shared.execute_sql(text)
    try:
        assert show() == text
        assert stored(shared, temporary=temporary) == before
    finally:
        shared.execute_sql(f"DROP {what} t")


@pytest.mark.parametrize("options", ["", " WITH ('connector' = 'filesystem', 'path' = '/x')"])
@pytest.mark.parametrize("what", ["TABLE", "TEMPORARY TABLE"])
def test_a_key_keeps_its_name(shared: ts.TableEnvironment, show: Callable[[], str], what: str, options: str) -> None:
    shared.execute_sql(f"CREATE {what} t (id INT, CONSTRAINT `my key` PRIMARY KEY (id) NOT ENFORCED){options}")
    try:
        assert show().startswith(f"CREATE {what} ")
        assert "\n  CONSTRAINT `my key` PRIMARY KEY (`id`) NOT ENFORCED\n" in show()
        assert "primary-key-constraint" not in show()
    finally:
        shared.execute_sql(f"DROP {what} t")


def test_the_name_of_a_key_goes_with_like_and_with_the_query_of_a_table(duck: ts.TableEnvironment) -> None:
    duck.execute_sql("CREATE TABLE t (CONSTRAINT k PRIMARY KEY (id) NOT ENFORCED) AS SELECT 1 AS id")
    duck.execute_sql("CREATE TABLE u LIKE t")
    duck.execute_sql("CREATE TABLE v (PRIMARY KEY (id) NOT ENFORCED) LIKE t (EXCLUDING CONSTRAINTS)")
    assert ["CONSTRAINT `k`" in str(duck.execute_sql(f"SHOW CREATE TABLE {name}").text) for name in "tuv"] == [True, True, False]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE u (id INT PRIMARY KEY NOT ENFORCED) WITH ('tablestore.primary-key-constraint' = 'k')",
        "ALTER TABLE t SET ('tablestore.primary-key-constraint' = 'k')",
        "ALTER TABLE t RESET ('tablestore.primary-key-constraint')",
    ],
)
def test_the_name_of_a_key_is_no_option_to_write(env: ts.TableEnvironment, statement: str) -> None:
    env.execute_sql("CREATE TABLE t (id INT PRIMARY KEY NOT ENFORCED)")
    with pytest.raises(ts.InvalidInputError, match="write CONSTRAINT name PRIMARY KEY"):
        env.execute_sql(statement)
