"""Paimon's Spark against our service: the statements give what they give in its catalog of directories, and ours reads the tables.

Views and functions are kept by a service alone, so their rows are written down here. Where Maven has no jar of Paimon for Spark,
``TABLESTORE_INTEROP_PAIMON_SPARK`` names one, such as one that was built from the sources of the release.
"""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import tablestore as ts
from tests.support.servers.catalogservice import CatalogService

pytestmark = [pytest.mark.interop, pytest.mark.slow]

ROWS = "SELECT * FROM orders ORDER BY id"
SAME = f"""
USE {{c}}.shop
CREATE TABLE orders (id BIGINT NOT NULL, day STRING NOT NULL, price DECIMAL(10,2), note STRING COMMENT 'free text')
  PARTITIONED BY (day) COMMENT 'what was sold' TBLPROPERTIES ('primary-key'='day,id', 'bucket'='2')
INSERT INTO orders VALUES (1, 'mon', 1.5, 'a'), (2, 'mon', 2.5, 'b'), (3, 'tue', 3.5, NULL)
INSERT INTO orders VALUES (2, 'mon', 20.5, 'B'), (4, 'wed', 4.5, 'd')
{ROWS}
SHOW PARTITIONS orders
UPDATE orders SET note = 'u' WHERE id = 3
DELETE FROM orders WHERE id = 1
MERGE INTO orders t USING (SELECT 4L AS id, 'wed' AS day, CAST(44 AS DECIMAL(10,2)) AS price, 'm' AS note
  UNION ALL SELECT 5L, 'thu', CAST(5 AS DECIMAL(10,2)), 'n') s ON t.id = s.id AND t.day = s.day
  WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
{ROWS}
CALL {{c}}.sys.create_tag(table => 'shop.orders', tag => 'v1', snapshot => 2)
SELECT * FROM orders VERSION AS OF 'v1' ORDER BY id
SELECT * FROM orders VERSION AS OF 1 ORDER BY id
CALL {{c}}.sys.create_tag(table => 'shop.orders', tag => 'v2')
CALL {{c}}.sys.rename_tag(table => 'shop.orders', tag => 'v2', target_tag => 'v3')
SELECT tag_name, snapshot_id, record_count FROM `orders$tags` ORDER BY 1
CALL {{c}}.sys.create_branch('shop.orders', 'b1', 'v1')
CALL {{c}}.sys.create_branch('shop.orders', 'b2')
SELECT branch_name FROM `orders$branches` ORDER BY 1
INSERT INTO `orders$branch_b1` VALUES (9, 'sun', 9, 'z')
SELECT * FROM `orders$branch_b1` ORDER BY id
CALL {{c}}.sys.fast_forward('shop.orders', 'b1')
{ROWS}
CALL {{c}}.sys.delete_branch('shop.orders', 'b2')
CALL {{c}}.sys.delete_tag(table => 'shop.orders', tag => 'v3')
{ROWS}
ALTER TABLE orders ADD COLUMN qty INT COMMENT 'pieces' AFTER price
ALTER TABLE orders ADD COLUMNS (extra STRUCT<a: INT, b: STRING>, tags ARRAY<STRING>, m MAP<STRING, INT>)
ALTER TABLE orders RENAME COLUMN note TO remark
ALTER TABLE orders ALTER COLUMN qty TYPE BIGINT
ALTER TABLE orders ALTER COLUMN remark COMMENT 'text'
ALTER TABLE orders ADD COLUMN extra.c DOUBLE
ALTER TABLE orders SET TBLPROPERTIES ('snapshot.num-retained.max'='50', 'sink.parallelism'='3')
ALTER TABLE orders UNSET TBLPROPERTIES ('sink.parallelism')
DESCRIBE orders
INSERT INTO orders (id, day, price, qty, remark, extra, tags, m)
  VALUES (6, 'fri', 6.5, 7, 'f', named_struct('a', 1, 'b', 'x', 'c', 2.5D), array('p', 'q'), map('k', 1))
{ROWS}
CALL {{c}}.sys.compact(table => 'shop.orders')
INSERT OVERWRITE orders PARTITION (day = 'wed') VALUES (7, 7.5, 8, 'o', NULL, NULL, NULL)
ALTER TABLE orders DROP PARTITION (day = 'sun')
{ROWS}
SELECT * FROM orders WHERE day = 'mon' AND id = 2
SHOW PARTITIONS orders
CALL {{c}}.sys.mark_partition_done(table => 'shop.orders', partitions => 'day=tue')
SELECT partition, record_count, file_count FROM `orders$partitions` ORDER BY 1
CALL {{c}}.sys.reset_consumer(table => 'shop.orders', consumerId => 'c1', nextSnapshotId => 1)
SELECT * FROM `orders$consumers`
CREATE TABLE kept (id INT, v STRING) PARTITIONED BY (v) TBLPROPERTIES ('metastore.partitioned-table'='true')
INSERT INTO kept VALUES (1, 'a'), (2, 'b')
CALL {{c}}.sys.mark_partition_done(table => 'shop.kept', partitions => 'v=a')
SHOW PARTITIONS kept
CREATE TABLE made TBLPROPERTIES ('bucket'='-1') AS SELECT id, price FROM orders
ALTER TABLE made RENAME TO renamed
SELECT * FROM renamed ORDER BY id
ANALYZE TABLE renamed COMPUTE STATISTICS FOR ALL COLUMNS
SHOW TABLES
CREATE TABLE cleared AS SELECT * FROM renamed
TRUNCATE TABLE cleared
SELECT count(*) FROM cleared
DROP TABLE cleared
SHOW TABLES
CREATE DATABASE {{c}}.gone
CREATE TABLE {{c}}.gone.t (id INT)
DROP DATABASE {{c}}.gone CASCADE
"""
# What a service keeps alone, and what it does in a way of its own: a rollback goes forward.
THROUGH = """
CREATE VIEW seen AS SELECT id, price FROM orders WHERE id > 2
SELECT * FROM seen ORDER BY id
SHOW VIEWS
CALL {c}.sys.create_function('shop.twice', '[{"id": 0, "name": "x", "type": "INT"}]', '[{"id": 0, "name": "y", "type": "BIGINT"}]',
  true, 'two times', 'k1=v1')
CALL {c}.sys.alter_function('shop.twice', '{"action": "addDefinition", "name": "spark", "definition":
  {"type": "lambda", "definition": "(Integer x) -> { return (long) x * 2; }", "language": "JAVA"}}')
SELECT {c}.shop.twice(21)
CALL {c}.sys.drop_function('shop.twice')
CALL {c}.sys.rename_branch('shop.orders', 'b1', 'b3')
CALL {c}.sys.rollback(table => 'shop.orders', version => 'v1')
SELECT id, remark FROM orders ORDER BY id
"""


def statements(text: str) -> list[str]:
    """Statements, of which each line that is indented goes on with the one before."""
    return text.strip().replace("\n  ", " ").split("\n")


Ran = Callable[[list[str], dict[str, dict[str, str]]], dict[str, list[dict[str, object]]]]


@pytest.fixture
def ran(interpreter: Callable[[str], Path], spark_jar: Path, tmp_path: Path) -> Ran:
    """Runs statements in each of the catalogs: their answers."""
    python = interpreter("paimonspark")
    worker = Path(__file__).with_name("paimon_spark.py")

    def run(texts: list[str], catalogs: dict[str, dict[str, str]]) -> dict[str, list[dict[str, object]]]:
        task = {"jar": str(spark_jar), "warehouse": str(tmp_path / "spark"), "statements": texts, "catalogs": catalogs}
        # A function of Java leaves its class where Spark runs.
        done = subprocess.run([str(python), str(worker)], input=json.dumps(task), capture_output=True, text=True, cwd=tmp_path)
        line = next((line for line in done.stdout.splitlines() if line.startswith("answers:")), None)
        assert line is not None, done.stderr[-5000:]
        answers: dict[str, list[dict[str, object]]] = json.loads(line.removeprefix("answers:"))["answers"]
        return answers

    return run


def test_statements_of_spark_do_through_the_service_what_they_do_in_directories(ran: Ran, tmp_path: Path) -> None:
    texts = ["CREATE DATABASE {c}.shop", *statements(SAME)]
    with CatalogService(tmp_path / "wh") as service:
        answers = ran(texts, {"rest": service.client_options, "files": {"warehouse": str(tmp_path / "files")}})
        for text, through, plain in zip(texts, answers["rest"], answers["files"], strict=True):
            assert "rows" in through, (text, through)
            assert through == plain, text

        ours, theirs = (ts.open_catalog(str(tmp_path / name)) for name in ("wh", "files"))
        assert set(ours.list_tables("shop")) == set(theirs.list_tables("shop")) == {"orders", "kept", "renamed"}
        for name in ours.list_tables("shop"):
            rows = [sorted(map(str, one.table(f"shop.{name}").to_arrow().to_pylist())) for one in (ours, theirs)]
            assert rows[0] == rows[1] != []

        alone = statements(THROUGH)
        told = ran(["USE {c}.shop", *alone], {"rest": service.client_options})["rest"][1:]
        by_text = {text.partition("(")[0].partition(" ORDER")[0]: answer for text, answer in zip(alone, told, strict=True)}
        assert by_text["SELECT * FROM seen"] == {"rows": [["3", "3.50"], ["6", "6.50"], ["7", "7.50"]]}
        assert by_text["SHOW VIEWS"] == {"rows": [["shop", "seen", "False"]]}
        assert by_text["SELECT {c}.shop.twice"] == {"rows": [["42"]]}
        assert by_text["CALL {c}.sys.drop_function"] == {"rows": [["True"]]}
        assert "a branch keeps its name" in str(by_text["CALL {c}.sys.rename_branch"])
        assert by_text["SELECT id, remark FROM orders"] == {"rows": [["1", "a"], ["2", "B"], ["3", "None"], ["4", "d"]]}
        with ts.TableEnvironment.create(ours, engine="duckdb") as environment:
            assert sorted(environment.execute_sql("SELECT id FROM shop.seen").to_arrow()["id"].to_pylist()) == [3, 4]
        assert service.log.count("Traceback") == 0
