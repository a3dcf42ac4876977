"""Materialized tables used wrongly at random: every error is one of ours, and a statement that fails changes no definition."""

import random
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts

SETUP = """
CREATE TABLE plain (id BIGINT, v INT, s STRING);
INSERT INTO plain VALUES (1, 1, 'a'), (2, NULL, 'b');
CREATE TEMPORARY VIEW seen AS SELECT 1 AS id, 2 AS v;
CREATE TEMPORARY TABLE passing (id INT, v INT);
"""
MADE = (
    "CREATE OR ALTER MATERIALIZED TABLE mt (PRIMARY KEY (id) NOT ENFORCED) REFRESH_MODE = FULL AS SELECT id, v FROM plain",
    "CREATE OR ALTER MATERIALIZED TABLE over REFRESH_MODE = FULL AS SELECT id, v FROM mt",
    "CREATE OR ALTER MATERIALIZED TABLE cont FRESHNESS = INTERVAL '1' MINUTE AS SELECT s, count(*) AS n FROM plain GROUP BY s",
)
TABLES = ("mt", "over", "cont")
NAMES = (
    *(*3 * TABLES, "new", "new", "plain", "nowhere", "seen", "passing", "mt__staged"),
    *("`mt$files`", "no.such", "a.b.c.d", "``", "odd$x"),
)
ROWS = ("id, v", "id", "v, id", "id, v, 1 AS w", "id, CAST(v AS STRING) AS v", "id, id", "*", "id AS `a.b`, v AS _row_kind")
FIRST = ("1 / 0", "CAST('x' AS INT)", "INTERVAL '1' DAY", "ARRAY(id)", "9223372036854775807 + id")
SECOND = ("rand()", "now()", "nothing(v)", "sum(v)", "NULL", "x'ff'", "(SELECT v FROM plain)", ":p")
QUERIES = (
    *(f"SELECT {columns} FROM plain" for columns in ROWS),
    *(f"SELECT {one} AS id, v FROM plain" for one in FIRST),
    *(f"SELECT id, {one} AS v FROM plain" for one in SECOND),
    *(f"SELECT id, v FROM {name}" for name in NAMES),
    "SELECT id, v FROM plain p JOIN plain q USING (id)",
    "SELECT id, v FROM table_changes('plain', 0)",
    "VALUES (1, 2)",
    "SELECT FROM",
    "DROP TABLE plain",
)
NUMBERS = ("1", "5", "7", "0", "-1", "99999999999999999999", "1.5", "abc", "")
UNITS = ("SECOND", "MINUTES", "HOUR", "DAY", "MONTH", "HOUR TO MINUTE", "")
KEYS = (
    *("bucket", "write-only", "no.such", "log.system", "type", "materialized-table.refresh-mode", "merge-engine", "sequence.field"),
    *("partition.fields.s.date-formatter", "sink.process-time-zone", "data-file.prefix", "connector", "changelog-producer", ""),
)
VALUES = ("1", "-3", "true", "x", "kafka", "yyyy", "%Q", "id", "", "aggregation", "Nowhere/City", "💥", "9" * 30)


class Misuse:
    """Statements of one seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def statement(self) -> str:
        one, name = self._chance.choice, self._chance.choice(NAMES)
        plain = ("ADD COLUMN z INT", "RENAME TO y", "DROP COLUMN v", "COMPACT", f"SET ({self.options()})")
        return one(
            (
                f"CREATE MATERIALIZED TABLE {name} {self.clauses()} AS {one(QUERIES)}",
                f"CREATE OR ALTER MATERIALIZED TABLE {name} {self.clauses()} AS {one(QUERIES)}",
                f"CREATE OR ALTER MATERIALIZED TABLE mt (PRIMARY KEY (id) NOT ENFORCED) REFRESH_MODE = FULL AS {one(QUERIES)}",
                f"EXPLAIN CREATE OR ALTER MATERIALIZED TABLE {name} {self.clauses()} AS {one(QUERIES)}",
                *3
                * (f"ALTER MATERIALIZED TABLE {name} {self.action()}", f"ALTER MATERIALIZED TABLE {one(TABLES)} {self.action()}"),
                f"DROP MATERIALIZED TABLE {one(('', 'IF EXISTS '))}{name}",
                f"SHOW CREATE MATERIALIZED TABLE {name}",
                f"ALTER TABLE {name} {one(plain)}",
                f"INSERT INTO {one(('plain', name))} VALUES (3, NULL, 'x')",
            )
        )

    def action(self) -> str:
        one = self._chance.choice
        partition = f"{one(('id', 's', 'no'))} = {one(('1', 'NULL', ''))}"
        return one(
            (
                *("SUSPEND", "RESUME", "REFRESH", "REFRESH VERIFY", "COMPARE", "PROMOTE", "ROLLBACK", "DISCARD", "RENAME TO x", ""),
                f"RESUME WITH ({self.options()})",
                f"REFRESH PARTITION ({partition}) {one(('', 'VERIFY'))}",
                *2 * (f"AS {one(QUERIES)}", f"STAGE {self.clauses()} AS {one(QUERIES)}"),
                f"SET ({self.options()})",
                f"RESET ('{one(KEYS)}')",
                f"SET {self.freshness()}",
                f"SET REFRESH_MODE = {one(('FULL', 'CONTINUOUS', 'AUTOMATIC', 'x'))}",
            )
        )

    def clauses(self) -> str:
        one, columns = self._chance.choice, ", ".join(self._chance.choices(("id", "v", "no", ""), k=self._chance.randint(1, 2)))
        given = (
            f"(PRIMARY KEY ({columns}) NOT ENFORCED)",
            f"DISTRIBUTED BY HASH ({columns}) INTO {one(('2', '0', '-1', '99999999999'))} BUCKETS",
            f"PARTITIONED BY ({columns})",
            f"WITH ({self.options()})",
            self.freshness(),
            f"REFRESH_MODE = {one(('FULL', 'CONTINUOUS', 'FULL', 'x'))}",
        )
        return " ".join(clause for clause in given if self._chance.random() < 0.25)

    def freshness(self) -> str:
        return f"FRESHNESS = INTERVAL '{self._chance.choice(NUMBERS)}' {self._chance.choice(UNITS)}"

    def options(self) -> str:
        return f"'{self._chance.choice(KEYS)}' = '{self._chance.choice(VALUES)}'"


def definitions(env: ts.TableEnvironment) -> dict[str, Any]:
    """What each table declares, or why that cannot be said."""
    found: dict[str, Any] = {}
    for name in TABLES:
        try:
            found[name] = env.materialized_table(name)
        except ts.TablestoreError as error:
            found[name] = error.kind
    return found


def misuse(env: ts.TableEnvironment, count: int, seed: int) -> int:
    """Run statements of a seed; how many were refused."""
    statements, refused = Misuse(seed), 0
    for number in range(count):
        if number % 20 == 0:
            for text in MADE:
                run(env, text)
        before, text = definitions(env), statements.statement()
        error = run(env, text)
        assert error is None or isinstance(error, ts.TablestoreError), f"{type(error).__name__} for {text!r}: {error}"
        assert error is None or definitions(env) == before, f"changed by {text!r}, which was refused: {error}"
        refused += error is not None
    return refused


def run(env: ts.TableEnvironment, text: str) -> Exception | None:
    try:
        env.execute_sql(text).to_arrow()
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize(("seed", "count"), [(1, 60), *(pytest.param(seed, 600, marks=pytest.mark.slow) for seed in (2, 3, 4))])
def test_what_is_used_wrongly_gets_typed_errors_and_changes_no_definition(tmp_path: Path, seed: int, count: int) -> None:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as env:
        env.execute_script(SETUP)
        assert count > misuse(env, count, seed) > count / 2
