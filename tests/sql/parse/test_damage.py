"""Whatever is done to a statement, it is parsed or refused with one of tablestore's errors, and in linear time."""

import random

import pytest

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.sql.parse import cursor as cursors
from tablestore.sql.parse.script import split_script
from tablestore.sql.parse.statement import parse_statement
from tablestore.sql.parse.tokens import Token, tokenize
from tablestore.sql.source import Span, marked

STATEMENTS = [
    "CREATE TABLE IF NOT EXISTS c.d.t (a INT NOT NULL DEFAULT -1 COMMENT 'x', b ARRAY<ROW<c STRING, d DECIMAL(10, 2)>>, "
    "e AS a + 1, m TIMESTAMP(3) METADATA FROM 'ts' VIRTUAL, WATERMARK FOR m AS m - INTERVAL '5' SECOND, "
    "CONSTRAINT k PRIMARY KEY (a) NOT ENFORCED) COMMENT 'y' PARTITIONED BY (b) WITH ('bucket' = '4', log.system = 'kafka')",
    "CREATE OR REPLACE TABLE t USING tablestore TBLPROPERTIES ('a' = 'b') AS WITH x AS (SELECT 1) SELECT * FROM x",
    "CREATE TABLE t DISTRIBUTED BY (a) INTO 4 BUCKETS LIKE s (INCLUDING ALL, EXCLUDING OPTIONS)",
    "CREATE OR REPLACE TEMPORARY VIEW v (a, b) COMMENT 'x' AS SELECT 1, 2",
    "CREATE TEMPORARY FUNCTION IF NOT EXISTS f AS 'm.C' LANGUAGE PYTHON",
    "CREATE CATALOG c WITH ('type' = 'memory')",
    "CREATE DATABASE IF NOT EXISTS c.d COMMENT 'x' WITH ('a' = 'b')",
    "DROP TEMPORARY TABLE IF EXISTS c.d.t",
    "DROP SCHEMA IF EXISTS d CASCADE",
    "ALTER TABLE t ADD COLUMNS (a INT FIRST, s.b STRING COMMENT 'x' AFTER s.c)",
    "ALTER TABLE t ALTER COLUMN a TYPE BIGINT COMMENT 'x' AFTER b",
    "ALTER TABLE t PARTITION (a = 1, b = DATE '2024-01-31') SET ('change-tracking' = 'false')",
    "ALTER TABLE t DROP IF EXISTS PARTITION (a = 1), PARTITION (a = 2)",
    "ALTER TABLE t RENAME COLUMN a TO b",
    "TRUNCATE TABLE t PARTITION (a = 'x')",
    "INSERT OVERWRITE TABLE t PARTITION (a = 1, b) (c, d) SELECT 1, 'x;' FROM s WHERE (a > 1)",
    "WITH x AS (SELECT 1) INSERT INTO t BY NAME SELECT * FROM x",
    "DELETE FROM t AS x WHERE a IN (SELECT 1)",
    "UPDATE t SET a = a + 1, b.c = DEFAULT, d = CASE WHEN a THEN 1 END WHERE a > 1",
    "MERGE INTO t AS x USING (SELECT 1) AS y (a, b) ON x.a = y.a WHEN MATCHED AND x.b > 1 THEN UPDATE SET b = y.b "
    "WHEN NOT MATCHED THEN INSERT (a, b) VALUES (y.a, DEFAULT) WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b VALUES (2); END;",
    "SHOW COLUMNS FROM t IN d NOT LIKE 'a%'",
    "SHOW PARTITIONS t PARTITION (a = 1)",
    "DESCRIBE TABLE EXTENDED c.d.t PARTITION (a = 1)",
    "USE CATALOG `my cat`",
    "SET 'table-storage.bucket' = '4'",
    "SET spark.sql.x = a b c",
    "CALL sys.rollback_to(`table` => 'd.t', snapshot => 3, x => ARRAY(1, -2.5), y => MAP('a', DATE '2024-01-31'))",
    "EXPLAIN FORMATTED SELECT /*+ HINT(a) */ a[0], :p, ? FROM t -- x\n WHERE b = '\\'' /* y */",
]
STRANGE = [
    "'",
    '"',
    "`",
    "(",
    ")",
    ";",
    "/*",
    "*/",
    "--",
    ".",
    ",",
    "=",
    "1e999",
    "9" * 30,
    "``",
    "''",
    "\x00",
    "\ud800",
    "`\ud800`",
    "🦉",
]
DAMAGES = 2_000


def damaged(pick: random.Random) -> str:
    """A statement with some of its tokens dropped, doubled, swapped, or replaced by strange ones."""
    text = pick.choice(STATEMENTS)
    pieces = [text[token.start : token.end] for token in tokenize(text)[:-1]]
    for _ in range(pick.randint(1, 3)):
        at = pick.randrange(len(pieces))
        match pick.randrange(5):
            case 0:
                del pieces[at]
            case 1:
                pieces.insert(at, pieces[at])
            case 2:
                other = pick.randrange(len(pieces))
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case 3:
                pieces[at] = pick.choice(STRANGE)
            case 4:
                pieces[at] = pieces[at][: pick.randint(0, len(pieces[at]))]
        if not pieces:
            break
    return pick.choice([" ", "\n"]).join(pieces)


def refusal(text: str) -> str | None:
    """Why a statement is refused; None if it is not. Every other error is a failure."""
    try:
        parse_statement(text)
    except (InvalidInputError, UnsupportedError) as error:
        return str(error)
    return None


def test_a_damaged_statement_is_parsed_or_refused_with_our_own_errors() -> None:
    pick = random.Random(12)
    refusals = [refusal(damaged(pick)) for _ in range(DAMAGES)]
    said = [text for text in refusals if text is not None]
    # The rest is well-formed: a name swapped for another, a clause doubled inside of a query.
    assert len(said) > DAMAGES // 2
    assert all("\nline " in text and text.endswith("^") for text in said)


def test_every_beginning_of_a_statement_is_parsed_or_refused_with_our_own_errors() -> None:
    for text in STATEMENTS:
        assert refusal(text) is None
        said = [refusal(text[:end]) for end in range(len(text))]
        assert all(one is None or "\nline " in one for one in said)


@pytest.mark.deep
@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 40_000,
        "SELECT " + "(" * 40_000 + ")" * 40_000,
        "SELECT " + "/*" * 40_000,
        "SELECT " + "'a''" * 20_001,
        "SELECT " + "`a``" * 20_001,
        "SELECT " + "1" * 40_000 + "x",
        "SELECT " + "1." * 40_000,
        "CALL p(" + "ARRAY(" * 40_000,
        "CALL p(" + "ARRAY(" * 10_000 + ")" * 10_000 + ")",
        "CALL p(MAP(" + "1, " * 20_001 + "))",
        "CALL p(" + "9" * 40_000 + ")",
        "CREATE TABLE t (a INT DEFAULT " + "-" * 40_000 + "1)",
        "CREATE TABLE " + "a." * 40_000 + "b (c INT)",
        "EXPLAIN " * 40_000 + "SELECT 1",
        "UPDATE t SET a = " + "CASE " * 40_000,
        "x" * 40_000,
        "CREATE TABLE t (a " + "x" * 40_000 + ")",
        "WITH " + "a AS (SELECT 1), " * 10_000 + "b AS (SELECT 1) SELECT 1",
        ";" * 40_000,
    ],
    ids=lambda text: text[:30],
)
def test_a_huge_statement_is_parsed_or_refused_with_our_own_errors(text: str) -> None:
    said = refusal(text)
    assert said is None or len(said) < 2_000


def long_table(columns: int) -> str:
    return f"CREATE TABLE t ({', '.join(f'c{n} INT NOT NULL' for n in range(columns))}) USING x WITH ({options(columns)})"


def options(count: int) -> str:
    return ", ".join(f"'k{n}' = '{n}'" for n in range(count))


@pytest.mark.parametrize(
    "made",
    [
        long_table,
        lambda n: f"UPDATE t SET {', '.join(f'c{i} = CASE WHEN a THEN {i} END' for i in range(n))}",
        lambda n: f"MERGE INTO t USING s ON a WHEN MATCHED THEN UPDATE SET {', '.join(f'c{i} = {i}' for i in range(n))}",
        lambda n: f"CALL p({', '.join(f'a{i} => {i}' for i in range(n))})",
        lambda n: "FROM t |> WHERE a " * n,
        lambda n: f"EXECUTE STATEMENT SET BEGIN {'INSERT INTO t SELECT 1; ' * n} END",
        lambda n: f"WITH {'a AS (SELECT 1), ' * n} b AS (SELECT 1) INSERT INTO t SELECT 1",
    ],
)
def test_twice_the_text_is_twice_the_work(made: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(made)
    visits = 0

    def next_token(self: cursors.Cursor) -> Token:
        nonlocal visits
        visits += 1
        return self.tokens[self.at]

    monkeypatch.setattr(cursors.Cursor, "next", property(next_token))

    def work(text: str) -> int:
        nonlocal visits
        visits = 0
        parse_statement(text)
        return visits

    assert work(made(400)) < 2.1 * work(made(200))


def test_a_script_of_many_statements_is_split() -> None:
    script = "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; END; USE a;\n" * 5_000
    assert len(split_script(script)) == 10_000


def test_marks_fit_to_any_place() -> None:
    for start in range(-1, 6):
        for end in range(start, 8):
            assert marked("ab\ncd", Span(start, end)).endswith("^")
