"""Statements with damage, run one after another in an environment: every error is one of ours, and after it nothing has changed."""

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tablestore as ts

SETUP = """
CREATE DATABASE shop;
CREATE TABLE shop.orders (id BIGINT, day STRING, v INT, PRIMARY KEY (id, day) NOT ENFORCED) PARTITIONED BY (day);
CREATE TABLE log (at DATE, text STRING DEFAULT 'none', v DECIMAL(10, 2));
CREATE TABLE files (id INT) WITH ('connector' = 'filesystem', 'path' = '/nowhere');
"""
STATEMENTS = [
    "CREATE TABLE IF NOT EXISTS n (id BIGINT NOT NULL COMMENT 'key', s ROW<a INT, b ARRAY<STRING>>, at TIMESTAMP(3), WATERMARK FOR "
    "at AS at - INTERVAL '5' SECOND, PRIMARY KEY (id) NOT ENFORCED) COMMENT 'x' WITH ('bucket' = '2', 'log.retention' = '7 d')",
    "CREATE TABLE m (id INT, twice AS id * 2, c STRING METADATA FROM 'k' VIRTUAL) PARTITIONED BY (id)",
    "CREATE TABLE l LIKE shop.orders (EXCLUDING ALL INCLUDING OPTIONS)",
    "DROP TABLE IF EXISTS shop.nothing",
    "ALTER TABLE shop.orders ADD COLUMN note STRING COMMENT 'n' AFTER id",
    "ALTER TABLE shop.orders ALTER COLUMN v TYPE BIGINT",
    "ALTER TABLE shop.orders RENAME COLUMN v TO w",
    "ALTER TABLE shop.orders SET ('snapshot.num-retained.max' = '20', 'write-only' = 'true')",
    "ALTER TABLE shop.orders PARTITION (day = 'a') SET 'change-tracking' = 'false'",
    "ALTER TABLE shop.orders DROP IF EXISTS PARTITION (day = 'a')",
    "ALTER TABLE shop.orders RESET ('write-only')",
    "ALTER TABLE shop.orders PARTITION (day = 'a') COMPACT",
    "ALTER TABLE log RENAME TO logs",
    "TRUNCATE TABLE shop.orders PARTITION (day = 'a')",
    "DESCRIBE EXTENDED shop.orders PARTITION (day = 'a')",
    "SHOW TABLES IN tablestore.shop LIKE 'o%'",
    "SHOW CREATE TABLE shop.orders",
    "SHOW PARTITIONS shop.orders PARTITION (day = 'a')",
    "DESCRIBE HISTORY shop.orders LIMIT 2",
    "RESTORE TABLE shop.orders TO VERSION AS OF 1",
    "REFRESH TABLE shop.orders",
    "ANALYZE TABLE shop.orders COMPUTE STATISTICS FOR COLUMNS id, v",
    "USE tablestore.shop",
    "SET 'table-storage.bucket' = '3'",
    "RESET 'table-storage.bucket'",
    "CREATE CATALOG lake WITH ('warehouse' = 'memory://mutated')",
    "CALL sys.expire_snapshots(table => 'shop.orders', retain_max => 3, older_than => '1 d', dry_run => true)",
    "CALL sys.create_tag('shop.orders', 'v1')",
    "SELECT a.id, sum(b.v) AS s FROM shop.orders AS a JOIN log b ON a.v = b.v WHERE a.day = 'a' GROUP BY a.id HAVING sum(b.v) > 1",
    "WITH x AS (SELECT id FROM shop.orders VERSION AS OF 1) SELECT * FROM x WHERE id IN (SELECT id FROM shop.orders$ro) ORDER BY 1",
    "SELECT * FROM table_changes('shop.orders', 0, 1) LIMIT 3",
    "SELECT row_number() OVER (PARTITION BY day ORDER BY v DESC) FROM shop.orders TABLESAMPLE (10 ROWS)",
    "INSERT INTO shop.orders (id, day, v) SELECT id + 1, 'b', v FROM shop.orders WHERE id > 0",
    "INSERT OVERWRITE shop.orders PARTITION (day = 'a') VALUES (1, 2), (2, 3)",
    "INSERT INTO log BY NAME SELECT DATE '2026-01-01' AS at, 'x' AS text",
    "DELETE FROM shop.orders AS o WHERE o.id = 1 AND o.day = 'a'",
    "UPDATE shop.orders SET v = v + 1 WHERE day = 'a' AND id BETWEEN 1 AND 2",
    "MERGE INTO shop.orders t USING log s ON t.v = s.v AND t.day = 'a' WHEN MATCHED AND s.v > 1 THEN UPDATE SET v = 3 "
    "WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (7, 'a', 7) WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "EXPLAIN SELECT * FROM shop.orders WHERE id = 1",
    "EXECUTE STATEMENT SET BEGIN INSERT INTO log VALUES (NULL, 'a', 1); INSERT INTO log VALUES (NULL, 'b', 2); END",
    "CREATE TEMPORARY VIEW v AS SELECT * FROM shop.orders",
    "CREATE OR ALTER MATERIALIZED TABLE shop.mt (CONSTRAINT pk PRIMARY KEY (id, day) NOT ENFORCED) COMMENT 'c' DISTRIBUTED BY HASH "
    "(id) INTO 2 BUCKETS PARTITIONED BY (day) WITH ('partition.fields.day.date-formatter' = 'yyyy-MM-dd') FRESHNESS = "
    "INTERVAL '1' HOUR REFRESH_MODE = FULL AS SELECT id, day, v + 1 AS w FROM shop.orders WHERE v > 0",
    "ALTER MATERIALIZED TABLE shop.mt AS SELECT id, day, v + 2 AS w, v FROM shop.orders",
    "ALTER MATERIALIZED TABLE shop.mt SET FRESHNESS = INTERVAL '6' HOURS",
    "ALTER MATERIALIZED TABLE shop.mt SET ('write-only' = 'true')",
    "ALTER MATERIALIZED TABLE shop.mt REFRESH PARTITION (day = 'a')",
    "EXPLAIN CREATE OR ALTER MATERIALIZED TABLE shop.mt FRESHNESS = INTERVAL '1' DAY AS SELECT id, day, v AS w FROM shop.orders",
    "SHOW CREATE MATERIALIZED TABLE shop.mt",
    "DROP MATERIALIZED TABLE IF EXISTS shop.mt",
]
# What an engine gets to see; with little damage most of it reaches one.
QUERIES = [
    text for text in STATEMENTS if text.startswith(("SELECT", "WITH", "INSERT", "DELETE", "UPDATE", "MERGE", "EXPLAIN SELECT"))
]
_TOKEN = re.compile(r"'(?:[^']|'')*'|`[^`]*`|\w+|\s+|.", re.DOTALL)
NOISE = [*"(),'`;$.\\?\0💥", "--", "/*", "=>", "NULL", "1e999", "99999999999999999999", ":x"]


def damaged(text: str, chance: random.Random, most: int = 3) -> str:
    """The text with one token or more, at ``most`` so many, dropped, doubled, swapped or replaced."""
    tokens = _TOKEN.findall(text)
    for _ in range(chance.randint(1, most)):
        tokens = tokens or [" "]
        place = chance.randrange(len(tokens))
        match chance.randrange(5):
            case 0:
                del tokens[place]
            case 1:
                tokens.insert(place, tokens[place])
            case 2:
                other = chance.randrange(len(tokens))
                tokens[place], tokens[other] = tokens[other], tokens[place]
            case 3:
                tokens[place] = chance.choice(NOISE)
            case 4:
                tokens = tokens[:place] or tokens
    return "".join(tokens)


def state(env: ts.TableEnvironment) -> dict[str, Any]:
    """What the tables are, to the last snapshot."""
    catalog = env.catalog("tablestore")
    found: dict[str, Any] = {"catalogs": env.list_catalogs(), "place": (env.current_catalog, env.current_database)}
    for database in catalog.list_databases():
        for name in catalog.list_tables(database):
            table = catalog.table(f"{database}.{name}")
            assert isinstance(table, ts.Table)
            latest = table.context.snapshots.latest()
            tags = [tag.name for tag in table.tags()]
            found[f"{database}.{name}"] = (table.table_schema.id, latest and latest.id, tags)
    return {**found, "settings": env.get_config().to_dict()}


def run_damaged(env: ts.TableEnvironment, count: int, seed: int, statements: Sequence[str] = STATEMENTS, most: int = 3) -> int:
    """Run damaged statements, with ``most`` damages each; how many were refused."""
    chance, refused = random.Random(seed), 0
    before = state(env)
    for number in range(count):
        text = damaged(statements[number % len(statements)], chance, most)
        error = error_of(env, text)
        if error is None:
            before = state(env)
            continue
        refused += 1
        where = f"{text!r} (seed {seed}, number {number})"
        assert isinstance(error, ts.TablestoreError), f"{type(error).__name__} for {where}: {error}"
        assert str(error).strip(), where
        assert state(env) == before, f"changed by {where}, which was refused"
    return refused


def error_of(env: ts.TableEnvironment, text: str) -> Exception | None:
    """What running a statement and reading its rows raises."""
    try:
        env.execute_sql(text).to_arrow()
    except Exception as error:
        return error
    return None


def prepared(tmp_path: Path, **options: Any) -> ts.TableEnvironment:
    """An environment with some tables."""
    env = ts.TableEnvironment.create(tmp_path / "wh", **options)
    env.execute_script(SETUP)
    return env
