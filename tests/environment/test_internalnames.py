"""Shows that no name that tablestore puts into SQL is taken for one of the user's: a table whose columns, values, comments,
aliases, partitions and parameters are called like that gives the rows that it gives with harmless names."""

import re
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tablestore as ts
from tablestore.environment.session.session import spec_of
from tablestore.errors import InvalidInputError
from tablestore.materialized.incremental.verify import verify
from tablestore.types.newschema import check_column_name
from tests.support.sql.internalnames import internal_names, own_names

NAMES = internal_names()
# What a name of the user's stands for. Columns of one table differ, and so do names of tables.
COLUMNS, TABLES, TEXTS = ("key", "text", "number", "part"), ("alias_a", "alias_b", "cte", "more"), ("value_a", "value_b", "note")
PARAMETERS = ("parameter_a", "parameter_b")
ROLES = (*COLUMNS, *TABLES, *TEXTS, *PARAMETERS)
HARMLESS = {role: f"harmless{place}" for place, role in enumerate(ROLES)}

_STATEMENTS = """
CREATE TABLE t (`{key}` BIGINT, `{text}` STRING COMMENT '{note}', `{number}` INT, PRIMARY KEY (`{key}`) NOT ENFORCED) COMMENT '{note}'
CREATE TABLE p (`{key}` BIGINT, `{part}` STRING, `{number}` INT) PARTITIONED BY (`{part}`)
INSERT INTO t VALUES (1, '{value_a}', 10), (2, '{value_b}', 20), (3, NULL, 30)
INSERT INTO p VALUES (1, '{value_a}', 10), (2, '{value_b}', 20)
INSERT INTO p PARTITION (`{part}` = '{value_a}') SELECT `{key}`, `{number}` FROM t /* {note} */ WHERE `{key}` = 3
INSERT INTO p BY NAME SELECT 4 AS `{number}`, '{value_b}' AS `{part}`, 4 AS `{key}` -- {note}
SELECT * FROM t
SELECT * FROM p WHERE `{part}` = '{value_a}'
SELECT `{alias_b}`.*, `{alias_a}`.`{text}` FROM t AS `{alias_a}` JOIN p `{alias_b}` ON `{alias_a}`.`{key}` = `{alias_b}`.`{key}` /* {note} */
WITH `{cte}` AS (SELECT `{part}` AS `{text}`, sum(`{number}`) AS `{number}` FROM p GROUP BY `{part}`) SELECT `{cte}`.*, '{value_a}' AS `{key}` FROM `{cte}`
SELECT `{text}`, count(*) AS `{number}` FROM (SELECT `{text}` FROM t UNION ALL SELECT `{part}` FROM p) AS `{alias_a}` GROUP BY `{text}` HAVING `{text}` <> '{value_b}'
SELECT `{text}`, CASE WHEN `{text}` = '__rel\\u0061tion_0' THEN 1 END AS `{part}`, length('__tablestore_\\u0030') AS `{number}` FROM t AS `{alias_b}`
SELECT trim('{value_a}'), '{value_b}', concat(`{text}`, '-', '{value_a}') AS `{part}` FROM t WHERE `{text}` IN ('{value_a}', '{value_b}')
SELECT `{key}`, :{parameter_a} AS `{text}`, concat(:{parameter_b}, ':{parameter_a}') AS `{number}` FROM t WHERE `{text}` = :{parameter_a}
SELECT `{key}`, ? AS `{text}`, 'a?' AS `{part}` FROM p AS `{alias_a}` WHERE `{alias_a}`.`{part}` IN (?, ':{parameter_b}')
INSERT INTO p SELECT 5, :{parameter_b}, `{number}` FROM t WHERE `{text}` = :{parameter_a} /* :{parameter_b} */
UPDATE p SET `{number}` = 9 WHERE `{part}` = :{parameter_b} AND `{key}` = 5
SELECT `{alias_a}`.*, `{part}` FROM t AS `{alias_a}` LATERAL VIEW explode(array(1, 2)) AS `{part}`
SELECT `{alias_b}`.`{key}`, `{number}`, `{part}` FROM p AS `{alias_b}` LATERAL VIEW explode(map(`{part}`, 1)) AS `{text}`, `{cte}`
UPDATE t SET `{text}` = '{value_b}', `{number}` = `{number}` + 1 WHERE `{text}` = '{value_a}'
UPDATE t AS `{alias_a}` SET `{text}` = concat('{value_a}', '-', `{alias_a}`.`{text}`) WHERE `{key}` IN (SELECT `{key}` FROM p AS `{alias_b}` WHERE `{part}` = '{value_b}')
SELECT * FROM t
UPDATE p SET `{number}` = -1 WHERE `{part}` = '{value_b}'
DELETE FROM p WHERE `{part}` = '{value_a}' AND `{key}` = 3
SELECT * FROM p
CREATE TEMPORARY VIEW v AS SELECT `{key}`, `{text}` AS `{part}` FROM t WHERE `{text}` <> '{value_a}'
SELECT `{alias_a}`.* FROM v AS `{alias_a}`
CREATE TABLE `{more}` AS SELECT `{key}`, `{text}`, '{value_a}' AS `{part}` FROM t
SELECT * FROM `{more}`
MERGE INTO t AS `{alias_a}` USING (SELECT `{key}`, `{part}`, `{number}` FROM p WHERE `{part}` <> '{note}') AS `{alias_b}` ON `{alias_a}`.`{key}` = `{alias_b}`.`{key}` WHEN MATCHED AND `{alias_b}`.`{number}` > 0 THEN UPDATE SET `{text}` = `{alias_b}`.`{part}` WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (`{key}`, `{text}`) VALUES (`{alias_b}`.`{key}`, '{value_a}') WHEN NOT MATCHED BY SOURCE THEN UPDATE SET `{number}` = 0
SELECT * FROM t
MERGE INTO t USING `{more}` ON t.`{key}` = `{more}`.`{key}` WHEN MATCHED THEN UPDATE SET `{text}` = `{more}`.`{part}` WHEN NOT MATCHED THEN INSERT (`{key}`, `{text}`, `{number}`) VALUES (`{more}`.`{key}`, `{more}`.`{text}`, 7)
SELECT * FROM t
DELETE FROM `{more}` WHERE `{key}` IN (SELECT `{key}` FROM t AS `{alias_b}` WHERE `{alias_b}`.`{key}` > 2)
DELETE FROM t WHERE `{key}` IN (SELECT `{key}` FROM `{more}`)
SELECT * FROM t
SELECT commit_kind AS `{text}`, snapshot_id AS `{number}` FROM t$snapshots AS `{alias_a}` WHERE commit_kind <> '{value_a}'
"""  # noqa: E501
_MATERIALIZED = """
CREATE TABLE a (`{key}` BIGINT, `{text}` STRING, `{number}` INT, PRIMARY KEY (`{key}`) NOT ENFORCED)
CREATE TABLE b (`{key}` BIGINT, `{part}` STRING) PARTITIONED BY (`{part}`)
INSERT INTO a VALUES (1, '{value_a}', 10), (2, '{value_b}', 20)
INSERT INTO b VALUES (1, '{value_a}'), (2, '{value_b}')
CREATE MATERIALIZED TABLE m1 FRESHNESS = INTERVAL '1' MINUTE REFRESH_MODE = FULL AS SELECT `{text}`, count(*) AS `{number}` FROM a GROUP BY `{text}`
CREATE MATERIALIZED TABLE m2 FRESHNESS = INTERVAL '1' MINUTE REFRESH_MODE = FULL AS SELECT `{alias_a}`.`{key}`, `{alias_a}`.`{text}`, `{alias_b}`.`{part}` FROM a AS `{alias_a}` LEFT JOIN b AS `{alias_b}` ON `{alias_a}`.`{key}` = `{alias_b}`.`{key}`
CREATE MATERIALIZED TABLE m3 FRESHNESS = INTERVAL '1' MINUTE REFRESH_MODE = FULL AS WITH `{cte}` AS (SELECT * FROM a WHERE `{text}` <> '{note}') SELECT `{cte}`.`{text}`, sum(`{number}`) AS `{part}`, max(`{key}`) AS `{key}` FROM `{cte}` WHERE `{key}` IN (SELECT `{key}` FROM b) GROUP BY `{cte}`.`{text}`
ALTER MATERIALIZED TABLE m1 REFRESH
ALTER MATERIALIZED TABLE m2 REFRESH
ALTER MATERIALIZED TABLE m3 REFRESH
INSERT INTO a VALUES (1, '{value_b}', 11), (3, '{value_a}', 30)
INSERT INTO b VALUES (3, '{value_a}')
DELETE FROM a WHERE `{key}` = 2
ALTER MATERIALIZED TABLE m1 REFRESH
ALTER MATERIALIZED TABLE m2 REFRESH
ALTER MATERIALIZED TABLE m3 REFRESH
SELECT * FROM m1
SELECT * FROM m2
SELECT * FROM m3
"""  # noqa: E501
STATEMENTS, MATERIALIZED = (tuple(text.strip().splitlines()) for text in (_STATEMENTS, _MATERIALIZED))


def parameters(template: str, names: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The values of a statement's parameters, by place and by name: those of the roles of values."""
    values = dict(zip(PARAMETERS, (names["value_a"], names["value_b"]), strict=True))
    by_place = [names["value_b"]] * (template.count(" ?") + template.count("(?"))
    return by_place, {names[role]: value for role, value in values.items() if not by_place and f":{{{role}}}" in template}


def rows(env: ts.TableEnvironment, statements: Sequence[str], names: Mapping[str, str]) -> list[Any]:
    """What the statements answer, with the roles in the places of names."""
    roles = {name: role for role, name in names.items()}
    told = re.compile(rf"\b(?:{'|'.join(map(re.escape, roles))})\b")
    answers: list[Any] = []

    def plain(value: object) -> object:
        return told.sub(lambda name: roles[name[0]], value) if isinstance(value, str) else value

    for template in statements:
        by_place, by_name = parameters(template, names)
        found = env.execute_sql(template.format(**names), *by_place, **by_name).to_arrow()
        if template.startswith(("SELECT", "WITH")):
            answers.append(tuple(map(plain, found.column_names)))
            answers.append(sorted((tuple(map(plain, row.values())) for row in found.to_pylist()), key=repr))
    return answers


@cache
def expected(statements: tuple[str, ...]) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder, ts.TableEnvironment.create(Path(folder), engine="duckdb") as env:
        return rows(env, statements, HARMLESS)


def is_column(name: str) -> bool:
    try:
        check_column_name(name)
    except InvalidInputError:
        return False
    return True


@st.composite
def named(draw: st.DrawFn) -> dict[str, str]:
    """Names for the roles, those of tablestore's own more often than plain words of its; each once."""
    names = dict(HARMLESS)
    own = [name for name in own_names(NAMES) if is_column(name)]
    words = [name for name in NAMES if is_column(name)]
    for role in ROLES:
        if draw(st.integers(0, 3)):
            name = draw(st.sampled_from(own) if draw(st.booleans()) else st.sampled_from(words))
            if name.casefold() not in (taken.casefold() for taken in names.values()):
                names[role] = name
    return names


def check(statements: tuple[str, ...], names: Mapping[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder, ts.TableEnvironment.create(Path(folder), engine="duckdb") as env:
        assert rows(env, statements, names) == expected(statements)


@pytest.mark.deep
@settings(max_examples=4, deadline=None)
@given(names=named())
@example(names={**HARMLESS, "text": "_tablestore_clause", "number": "_tablestore_is_source", "alias_a": "_tablestore_pairs"})
@example(names={**HARMLESS, "more": "_tablestore_target", "cte": "tablestore_relation_0", "value_a": "__tablestore_0"})
def test_names_of_tablestores_own_are_names_like_any_other(names: dict[str, str]) -> None:
    check(STATEMENTS, names)


@pytest.mark.deep
@settings(max_examples=3, deadline=None)
@given(names=named())
@example(names={**HARMLESS, "text": "tablestore_weight", "part": "tablestore_times"})
def test_names_of_tablestores_own_are_names_like_any_other_in_materialized_tables(names: dict[str, str]) -> None:
    check(MATERIALIZED, names)


@pytest.mark.slow
@pytest.mark.parametrize("statements", [STATEMENTS, MATERIALIZED], ids=["statements", "materialized"])
@settings(max_examples=60, deadline=None)
@given(names=named())
def test_many_names_of_tablestores_own_are_names_like_any_other(statements: tuple[str, ...], names: dict[str, str]) -> None:
    check(statements, names)


def test_a_table_that_is_called_like_the_target_of_a_change_is_another_one(duck: ts.TableEnvironment) -> None:
    for table, values in (("t", "(1), (2), (3)"), ("_tablestore_target", "(3)"), ("_tablestore_source", "(2)")):
        duck.execute_sql(f"CREATE TABLE `{table}` (id INT PRIMARY KEY NOT ENFORCED)")
        duck.execute_sql(f"INSERT INTO `{table}` VALUES {values}")
    duck.execute_sql("DELETE FROM t WHERE id IN (SELECT id FROM `_tablestore_target`)")
    other = "EXISTS (SELECT 1 FROM `_tablestore_source` AS o WHERE o.id = s.id)"
    duck.execute_sql(f"MERGE INTO t USING (SELECT id FROM t) AS s ON t.id = s.id WHEN MATCHED AND {other} THEN DELETE")
    assert duck.execute_sql("SELECT id FROM t").to_arrow().to_pylist() == [{"id": 1}]


@pytest.mark.spark
@pytest.mark.deep
def test_names_of_tablestores_own_are_names_like_any_other_on_spark(tmp_path: Path) -> None:
    own = {
        "text": "_tablestore_clause", "number": "_tablestore_is_source", "alias_a": "_tablestore_pairs", "alias_b": "_generated",
        "more": "_tablestore_target", "cte": "tablestore_relation_0", "value_a": "__tablestore_0", "value_b": "_pyspark_0",
        "note": "__relation_0", "parameter_a": "_1", "parameter_b": "m0",
    }  # fmt: skip
    # The last statement tells of commits, which another engine makes in another order.
    with ts.TableEnvironment.create(tmp_path / "open", engine="spark") as session:
        for folder, names in (("own", {**HARMLESS, **own}), ("mixed", {**HARMLESS, "key": "m0", "part": "_1", "alias_a": "key_0"})):
            with ts.TableEnvironment.create(tmp_path / folder, engine=session.engine) as env:
                assert rows(env, STATEMENTS[:-1], names) == expected(STATEMENTS[:-1])


def test_differences_are_counted_beside_a_column_that_is_called_like_their_number(duck: ts.TableEnvironment) -> None:
    name = "tablestore_times"
    duck.execute_sql(f"CREATE TABLE a (k BIGINT, `{name}` BIGINT)")
    duck.execute_sql("INSERT INTO a VALUES (1, 5), (1, 5), (2, -3), (3, NULL)")
    duck.execute_sql("CREATE MATERIALIZED TABLE m FRESHNESS = INTERVAL '1' MINUTE REFRESH_MODE = CONTINUOUS AS SELECT * FROM a")
    target = duck.catalog().table("default.m")
    assert verify(duck._session, target, "SELECT * FROM a", spec=spec_of(duck.catalog(), target)).is_equal
    evolution = duck.evolution("m")
    evolution.stage("SELECT * FROM a WHERE k > 1 UNION ALL SELECT 4, -7")
    report = evolution.compare()
    assert (report.only_current, report.only_other) == (2, 1)
    assert report.examples_only_other.to_pylist() == [{"k": 4, name: -7}]


def test_columns_are_no_names_of_views_and_entries_that_have_none(duck: ts.TableEnvironment) -> None:
    duck.execute_sql("CREATE TABLE t (_generated STRUCT<c: STRING>, a ARRAY<INT>, _entry MAP<STRING, INT>)")
    duck.execute_sql("INSERT INTO t VALUES (named_struct('c', 'mine'), array(1), map('k', 2))")
    query = "SELECT _generated.c AS own, c, x.* FROM t LATERAL VIEW explode(a) AS c LATERAL VIEW explode(_entry) x AS k, v"
    assert duck.execute_sql(query).to_arrow().to_pylist() == [{"own": "mine", "c": 1, "k": "k", "v": 2}]


def test_the_names_are_found_in_the_source() -> None:
    assert {"_tablestore_target", "__relation_", "key_0", "tablestore_relation_0", "_tablestore_clause"} <= set(own_names(NAMES))
