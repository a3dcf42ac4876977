"""SHOW CREATE of what a stranger wrote into a schema file: it prints what makes the same table and nothing else, or is refused."""

import json
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import tablestore as ts
from tablestore.sql.parse.script import split_script
from tests.support.sql.hostile import NO_EXPRESSIONS, NO_QUERIES, REACHING, edit_schema

ODD = (
    *(
        "`",
        "'",
        '"',
        "\\",
        "\\'",
        "''",
        "\n",
        "\r",
        "\u2028",
        "\u2029",
        "\x00",
        "\x85",
        "--",
        "/*",
        "*/",
        ";",
        ")",
        "(",
        ",",
        "${env:HOME}",
    ),
    *(
        "1);\nDROP TABLE d.precious;--",
        "' COMMENT 'x",
        "` INT, `y",
        "STRING, x INT",
        "INT) AS SELECT 1 --",
        "ROW<a INT",
        "INT NOT NULL",
    ),
    *("id + 1", "id -- x", "STRING", "INT COMMENT 'x'", "a" * 300, "ä", "😀", "", " ", "primary key"),
)
TEXTS = st.lists(st.sampled_from(ODD) | st.text(max_size=4), min_size=1, max_size=3).map("".join)
EXPRESSIONS = TEXTS | st.sampled_from([*NO_EXPRESSIONS, "id", "upper(v)", "id * 2 + 1", "CASE WHEN id > 1 THEN 'a''b' END"])
NUMBERS = count()


@st.composite
def edits(draw: st.DrawFn) -> dict[str, Any]:
    """What a stranger changes: parts of the schema by their names."""
    options: dict[str, str] = {}
    for number in range(draw(st.integers(0, 2))):
        prefix = f"schema.{draw(st.integers(0, 3))}"
        options |= {f"{prefix}.name": draw(TEXTS), f"{prefix}.data-type": draw(TEXTS | st.just("STRING"))}
        options |= {f"{prefix}.expr": draw(EXPRESSIONS)} if draw(st.booleans()) else {f"{prefix}.metadata": draw(TEXTS)}
        if draw(st.booleans()):
            options[f"{prefix}.comment"] = f"{draw(TEXTS)}{number}"
    if draw(st.booleans()):
        options |= {
            "schema.watermark.0.rowtime": draw(TEXTS | st.just("ts")),
            "schema.watermark.0.strategy.expr": draw(EXPRESSIONS),
        }
    if draw(st.booleans()):
        options["tablestore.primary-key-constraint"] = draw(TEXTS)
    if draw(st.booleans()):
        options[draw(TEXTS)] = draw(TEXTS)
    edited: dict[str, Any] = {"options": options}
    if draw(st.booleans()):
        edited["comment"] = draw(TEXTS)
    if draw(st.booleans()):
        edited["field"] = {"description": draw(TEXTS), "defaultValue": draw(TEXTS)}
    if draw(st.booleans()):
        edited["name"] = draw(TEXTS)
    return edited


@pytest.fixture(scope="module")
def fresh() -> Iterator[ts.TableEnvironment]:
    """An empty catalog, whose tables have the names of those of the other one."""
    with ts.TableEnvironment.create(f"memory://show-hostile-{next(NUMBERS)}", engine="duckdb") as env:
        yield env


def definition(env: ts.TableEnvironment) -> dict[str, Any]:
    schema = env.catalog().table("default.t").table_schema
    # A metadata column that does not say whether it is virtual is not.
    said = {key: value for key, value in schema.options.items() if not (key.endswith(".virtual") and value == "false")}
    # A column of the name of a stored one is that one.
    unread = tuple(
        key.removesuffix("name")
        for key, name in said.items()
        if re.fullmatch(r"schema\.\d+\.name", key) and name in schema.field_names
    )
    # A computed column has the type of its expression, whatever is stored beside that.
    computed = {f"{key.removesuffix('expr')}data-type" for key in said if re.fullmatch(r"schema\.\d+\.expr", key)}
    unmade = {"tablestore.table-uuid", *computed}
    options = {key: value for key, value in said.items() if key not in unmade and not key.startswith(unread)}
    return {"fields": schema.fields, "keys": schema.primary_keys, "comment": schema.comment, "options": options}


def error_or_text(env: ts.TableEnvironment, statement: str) -> str | None:
    try:
        return str(env.execute_sql(statement).text)
    except ts.TablestoreError:
        return None


def error_kind(env: ts.TableEnvironment, statement: str) -> str | None:
    """The kind of the error of ours that a statement gives; None if it gives none."""
    try:
        env.execute_sql(statement)
    except ts.TablestoreError as error:
        return error.kind
    return None


@pytest.mark.deep
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(edited=edits())
@example(edited={"options": {"schema.0.name": "`", "schema.0.data-type": "STRING", "schema.0.expr": "id"}})
@example(edited={"options": {"schema.0.name": "a", "schema.0.data-type": "STRING", "schema.0.metadata": "a"}})
@example(edited={"options": {"schema.0.name": "a", "schema.0.data-type": "STRING", "schema.0.metadata": ""}})
@example(edited={"options": {"schema.0.name": "a", "schema.0.data-type": "STRING", "schema.0.metadata": "b"}, "name": "a"})
def test_what_is_printed_makes_the_same_table_and_nothing_else(
    fresh: ts.TableEnvironment, tmp_path_factory: pytest.TempPathFactory, edited: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("wh")
    with ts.TableEnvironment.create(folder) as env:
        env.execute_sql("CREATE TABLE t (id BIGINT, v STRING, ts TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED)")

        def edit(schema: dict[str, Any]) -> None:
            schema["options"] |= edited["options"]
            schema["comment"] = edited.get("comment", schema.get("comment"))
            schema["fields"][1] |= edited.get("field", {})
            schema["fields"][2]["name"] = edited.get("name", schema["fields"][2]["name"])

        edit_schema(folder / "default.db" / "t", edit)
        if (text := error_or_text(env, "SHOW CREATE TABLE t")) is None:
            return
        wanted = definition(env)
    assert len(split_script(text)) == 1
    if (kind := error_kind(fresh, text)) is not None:
        # A name or a value that no new table has.
        assert kind not in ("sql-syntax", "stored-expression"), (kind, text)
        return
    try:
        assert fresh.catalog().list_tables("default") == ("t",)
        assert definition(fresh) == wanted
    finally:
        fresh.execute_sql("DROP TABLE t")


def test_statements_of_others_are_not_printed(env: ts.TableEnvironment, tmp_path: Path) -> None:
    env.execute_sql("CREATE TABLE t (id BIGINT)")
    hostile = {
        "schema.1.name": "c",
        "schema.1.data-type": "INT",
        "schema.1.expr": "1);\nDROP TABLE d.precious;\nCREATE TABLE x (a AS (1",
    }
    edit_schema(tmp_path / "wh" / "default.db" / "t", lambda schema: schema["options"].update(hostile))
    with pytest.raises(ts.InvalidInputError, match="the computed column 'c' is not computed"):
        env.execute_sql("SHOW CREATE TABLE t")
    hostile = {"schema.1.name": "c", "schema.1.metadata": "k", "schema.1.data-type": "INT METADATA); DROP TABLE d.precious; --"}
    edit_schema(
        tmp_path / "wh" / "default.db" / "t",
        lambda schema: (schema["options"].pop("schema.1.expr"), schema["options"].update(hostile)),
    )
    with pytest.raises(ts.FormatError, match="expected a type of the column 'c'"):
        env.execute_sql("SHOW CREATE TABLE t")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.sampled_from([*NO_QUERIES, *REACHING]) | TEXTS.map("SELECT id FROM s {}".format), comment=TEXTS, option=TEXTS)
def test_a_definition_that_is_printed_is_one_statement(
    duck: ts.TableEnvironment, tmp_path: Path, query: str, comment: str, option: str
) -> None:
    if not duck.catalog().table_exists("default.m"):
        duck.execute_sql("CREATE TABLE s (id BIGINT)")
        duck.execute_sql("CREATE MATERIALIZED TABLE m REFRESH_MODE = FULL AS SELECT id FROM s")
    key = "tablestore.materialized-table."

    def edit(schema: dict[str, Any]) -> None:
        schema["comment"] = comment
        schema["options"] |= {f"{key}original-query": query, f"{key}declared": '{"options": {"x": ' + json.dumps(option) + "}}"}

    edit_schema(tmp_path / "wh" / "default.db" / "m", edit)
    if (text := error_or_text(duck, "SHOW CREATE MATERIALIZED TABLE m")) is not None:
        assert len(split_script(text)) == 1 and text.startswith("CREATE MATERIALIZED TABLE `tablestore`.`default`.`m`")
        assert text.rstrip().rstrip(";").endswith(query.strip().rstrip(";"))
