"""What is shown of a statement holds no secret, however the statement is wrong; and its places stay."""

import random

import pytest

from tablestore.options import holds_no_secret
from tablestore.sql.statementmask import masked_statement
from tests.support.attacks.canary import CANARY, SECRETS

VALUES = (
    *(f"'{CANARY}'", f'"{CANARY}"', CANARY, f"r'{CANARY}'", f"X'{CANARY}'"),
    *(f"'{CANARY[:4]}' '{CANARY[4:]}'", f'a b="{CANARY}" {CANARY}'),
)
# Where a statement names a value by its place; ``{key}`` is a word.
PLACES = (
    "SET {key} = {value}",
    "SET {key}={value}",
    "SET {key} {value}",
    "SET '{key}' = {value}",
    "SET `{key}` = {value}",
    "SET GLOBAL {key} = {value}",
    "SET {key} /* of mine */ =\n  {value}",
    "SET {key} = --{value}",
    "SELECT 1; SET {key} = {value}",
    "EXPLAIN SET {key} = {value}",
    "ALTER TABLE t SET {key} = {value}",
    "ALTER TABLE t SET ('{key}' = {value})",
    "ALTER TABLE t SET TBLPROPERTIES ({key} {value})",
    "CREATE TABLE c (id INT) WITH ('connector' = 'jdbc', {key} = {value}",
    "CREATE TABLE c (id INT) WITH ('connector' = 'jdbc', '{key}' /* x */ = {value}, 'a' = 'b')) foo",
    "CREATE TABLE c (id INT) WITH ('connector' = 'jdbc' '{key}' = {value})",
    "CREATE TABLE c (id INT) WITH ('connector' = 'jdbc', ('{key}' = {value}))",
    "CREATE TABLE c TBLPROPERTIES ('{key}' = {value}) AS SELECT 1 AS id",
    "CREATE TABLE c (id INT) USING jdbc OPTIONS ({key} {value})",
    "CREATE TABLE c (id INT) USING jdbc OPTIONS ('{key}' {value})",
    "/* it's */ CREATE TEMPORARY VIEW v USING jdbc OPTIONS ({key} {value})",
    "-- don't\nCREATE CATALOG c WITH ('{key}' = {value})",
    "/* CREATE CATALOG c WITH ('{key}' = {value}) */ SELECT",
    "SELECT * FROM t /*+ OPTIONS({key} = {value}) */ WHERE a = 'b'",
    "SELECT * FROM t /*+ OPTIONS('{key}' = {value}) */",
    "CALL sys.ingest('t', 'topic', '{key}' => {value})",
    "CALL sys.ingest(table => 't', properties => map('{key}', {value}))",
    "CALL sys.ingest(table => 't', properties => map('bootstrap.servers', 'k:9092', '{key}', {value}))",
    "CALL sys.ingest(table => 't', properties => map('{key}' => {value}))",
    "CALL sys.ingest(table => 't', properties => MAP {{'{key}': {value}}})",
    "CALL sys.ingest(table => 't', properties => '{key}' = {value})",
    "CREATE SECRET s (TYPE s3, {key} {value})",
)
# Of whom nothing is a secret.
SHOWN = (
    "SET spark.sql.shuffle.partitions = 5",
    "SET 'execution.runtime-mode' = 'batch'; SELECT 'a'",
    "SET TIME ZONE 'UTC'",
    "UPDATE t SET a = 'x', b = 2 WHERE c = 'd'",
    "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'x'",
    "ALTER TABLE t SET ('bucket' = '3', 'merge-engine' = 'aggregation')",
    "ALTER TABLE t UNSET TBLPROPERTIES ('a', 'b')",
    "ALTER TABLE t ALTER COLUMN c SET NOT NULL",
    "ALTER MATERIALIZED TABLE m SET FRESHNESS = INTERVAL '1' HOUR",
    "BEGIN STATEMENT SET; INSERT INTO a SELECT 'x'; END",
    "SELECT set, 'x' FROM options (a, b) WHERE c = 'd'",
    "INSERT INTO options (id, name) VALUES ('a', 'b')",
    "CREATE TABLE options (id INT, name STRING)",
    "WITH x AS (SELECT 'a') SELECT map(a, b)['c'], map('mode', 'FAILFAST') FROM x WHERE y IN ('z')",
    "CREATE TABLE t (id INT) WITH ('bucket' = '2', 'connector' = 'jdbc', 'password' = env:X, 'secret' = 'env:DB_PASSWORD')",
    "SELECT * FROM t /*+ OPTIONS('scan.snapshot-id' = '3') */",
    "CREATE CATALOG c WITH ('uri' = 'postgresql://h:1/db', 'warehouse' = 's3://b/a@b')",
)


@pytest.mark.deep_after(136)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("key", SECRETS)
def test_a_value_is_hidden_by_its_place(place: str, key: str) -> None:
    for value in VALUES:
        statement = place.format(key=key, value=value)
        masked = masked_statement(statement, holds_no_secret)
        assert CANARY not in masked and CANARY[4:] not in masked, statement
        same = [shown in (character, "*") for shown, character in zip(masked, statement, strict=True)]
        assert all(same), "what is no secret stays, in its place"
        if "'" not in value:
            assert masked.partition("(")[0].partition("=")[0] == statement.partition("(")[0].partition("=")[0] or "SET" in place


@pytest.mark.parametrize("statement", SHOWN)
def test_what_is_known_to_be_harmless_and_what_a_query_compares_is_shown(statement: str) -> None:
    expected = statement.replace("env:X", "*****")
    assert masked_statement(statement, holds_no_secret) == expected


def test_the_places_of_a_statement_stay_whatever_it_is() -> None:
    chance = random.Random(7)
    words = ("SET", "WITH", "OPTIONS", "map", "password", "k", "r'", "CALL", "ß")
    pieces = [*"()[]{},;='\"`\\ \n\t", "--", "/*", "*/", "/*+", "=>", *words]
    for _ in range(3_000):
        text = "".join(chance.choices(pieces, k=chance.randrange(40)))
        masked = masked_statement(text, holds_no_secret)
        assert all(shown in (character, "*") for shown, character in zip(masked, text, strict=True)), text


@pytest.mark.deep_after(5)
@pytest.mark.parametrize(
    "piece", ["map(", "SET k = ", "'password' ", "/*", "password => ", "properties => (", "WITH (k ", "'k' = ", "'"]
)
def test_a_long_statement_is_masked_in_time_that_grows_with_it(piece: str) -> None:
    # Minutes, where the work grows with the square.
    text = piece * (100_000 // len(piece))
    assert len(masked_statement(text, holds_no_secret)) == len(text)
