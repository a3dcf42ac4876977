"""Texts that a stranger puts where a query or an expression is stored. FILE and SECRET stand for paths of the test."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tablestore.format.sealed import CHECKSUM_KEY, object_checksum

NO_QUERIES = (
    "COPY (SELECT 1 AS id, 2 AS v) TO 'FILE'",
    "SELECT 1 AS id, 2 AS v; COPY (SELECT 1) TO 'FILE'",
    "SELECT 1 AS id, 2 AS v;\n-- \nCOPY (SELECT 1) TO 'FILE'",
    "WITH a AS (SELECT 1) INSERT INTO s SELECT * FROM a",
    "WITH a AS (INSERT INTO s VALUES (1, 2)) SELECT * FROM a",
    "WITH a AS (SELECT 1 AS id, 2 AS v) FROM a INSERT INTO s SELECT *",
    "FROM s INSERT INTO s SELECT *",
    "FROM s INSERT OVERWRITE s SELECT * INSERT INTO s SELECT *",
    "FROM (SELECT 1 AS id, 2 AS v) x INSERT INTO s SELECT *",
    "INSERT OVERWRITE DIRECTORY 'FILE' SELECT 1",
    "ATTACH 'FILE' AS other",
    "INSTALL httpfs",
    "LOAD 'FILE'",
    "PRAGMA database_list",
    "SET memory_limit = '1GB'",
    "ADD JAR 'FILE'",
    "CREATE FUNCTION f AS 'a.B' USING JAR 'FILE'",
    "CREATE TABLE made AS SELECT 1 AS id",
    "DROP TABLE s",
    "EXPORT DATABASE 'FILE'",
    "EXECUTE IMMEDIATE 'DROP TABLE s'",
    "BEGIN DROP TABLE s; END",
    "EXPLAIN SELECT 1",
    "",
    ";",
    "(",
    "SELECT 'not closed",
)
"""Texts in the place of a query."""

REACHING = (
    "SELECT TRANSFORM(id, v) USING 'touch FILE' AS (id, v) FROM s",
    "SELECT /* ( */ TRANSFORM(id, v) USING -- (\n'touch FILE' AS (id BIGINT, v INT) FROM s",
    "FROM s MAP id, v USING 'touch FILE' AS (id, v)",
    "FROM s REDUCE id, v USING 'touch FILE'",
    "SELECT 1 AS id, length(reflect('java.lang.System', 'getProperty', 'user.home')) AS v",
    "SELECT 1 AS id, length(`reflect`('java.lang.System', 'getProperty', 'user.home')) AS v",
    "SELECT 1 AS id, length(system . builtin /**/ . JAVA_METHOD ('java.lang.System', 'getProperty', 'user.home')) AS v",
    "SELECT 1 AS id, -- \r length(reflect('java.lang.System', 'getProperty', 'user.home')) AS\n2 AS v",
    "SELECT /*+ x('*/') */ 1 AS id, length(reflect('java.lang.System','getProperty','user.home')) AS v, '' AS `'`",
    "SELECT 1 AS id, length(\"reflect\"('java.lang.System', 'getProperty', 'user.home')) AS v",
    "SELECT 1 AS id, length(try_reflect('java.lang.System', 'getProperty', 'user.home')) AS v",
    "SELECT 1 AS id, length(IDENTIFIER('reflect')('java.lang.System', 'getProperty', 'user.home')) AS v",
    "SELECT 1 AS id, length(IDENTIFIER('ref' || 'lect')('java.lang.System', 'getProperty', 'user.home')) AS v",
    "SELECT 1 AS id, v FROM (SELECT length('${env:CANARY}') AS v)",
    "SELECT 1 AS id, length('${system:user.home}') AS v",
    "SELECT 1 AS id, from_xml('<a/>', 'b INT', map('rowValidationXSDPath', 'SECRET')).b AS v",
    "SELECT 1 AS id, from_avro(X'00', '\"int\"', map('avroSchemaUrl', 'SECRET')) AS v",
    "SELECT 1 AS id, length(CAST(from_protobuf(X'00', 'A', 'SECRET') AS STRING)) AS v",
    "SELECT 1 AS id, 2 AS v FROM IDENTIFIER('csv.`SEC' || 'RET`')",
    "SELECT count(*) AS id, 1 AS v FROM csv.`SECRET`",
    "SELECT count(*) AS id, 1 AS v FROM s JOIN `text`.`SECRET` ON true",
    "SELECT id, v FROM s WHERE EXISTS (TABLE json.`SECRET`)",
    "FROM s |> JOIN parquet.`SECRET` |> SELECT 1 AS id, 2 AS v",
    "SELECT count(*) AS id, 1 AS v FROM STREAM(csv.`SECRET`)",
    "SELECT 1 AS id, 2 AS v FROM `org.apache.spark.sql.execution.datasources.csv.CSVFileFormat`.`SECRET`",
)
"""Queries that run a program, call Java, or open a file that is none of a table's."""


def texts(folder: str) -> list[str]:
    """All of them, about files in a folder: SECRET is there, FILE is not."""
    return [text.replace("FILE", f"{folder}/written").replace("SECRET", f"{folder}/secret.csv") for text in NO_QUERIES + REACHING]


def set_options(table: Path, options: Mapping[str, str]) -> None:
    """Edit the options in the newest schema file of a table by hand."""
    edit_schema(table, lambda schema: schema["options"].update(options))


def edit_schema(table: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Edit the newest schema file of a table by hand."""
    file = max((table / "schema").glob("schema-*"), key=lambda path: int(path.name.removeprefix("schema-")))
    schema = json.loads(file.read_text())
    edit(schema)
    # Whoever writes files can write a checksum too.
    schema.pop(CHECKSUM_KEY, None)
    schema[CHECKSUM_KEY] = object_checksum(schema)
    file.write_text(json.dumps(schema))


NO_EXPRESSIONS = (
    "(SELECT max(v) FROM 'SECRET')",
    "(SELECT max(v) FROM csv.`SECRET`)",
    "(SELECT count(*) FROM s)",
    "id IN (SELECT id FROM s)",
    "(FROM s)",
    "(TABLE s)",
    "1 AS x, 'extra' AS y, 2",
    "1 AS x",
    "1, 2",
    "id FROM s --",
    "1 -- \n, 2",
    "1); DROP TABLE s; --",
    "1; DROP TABLE s",
    "1 UNION SELECT 2",
    "count(*)",
    "sum(id) OVER ()",
    "*",
    "s.*",
    "struct(*)",
    "COLUMNS('.*')",
    "?",
    ":id",
    "@id",
    "explode(array(1, 2))",
    "reflect('java.lang.System', 'getProperty', 'user.home')",
    "`java_method`('java.lang.System', 'getProperty', 'user.home')",
    "system.builtin.try_reflect('java.lang.System', 'getProperty', 'user.home')",
    "IDENTIFIER('reflect')('java.lang.System', 'getProperty', 'user.home')",
    "transform(array('reflect'), x -> IDENTIFIER(x)('a', 'b'))[0]",
    "from_xml('<a/>', 'b INT', map('rowValidationXSDPath', 'SECRET')).b",
    "'${env:CANARY}'",
    "current_user()",
    "current_user",
    "input_file_name()",
    "_metadata.file_path",
    "getvariable('x')",
    "getenv('CANARY')",
    "current_setting('temp_directory')",
    "read_text('SECRET')",
    "rand()",
    "uuid()",
    "nothing_of_the_table",
    "repeat('x', 1000000000)",
    "repeat('x', id)",
    "repeat(repeat(repeat('x', 1000), 1000), 1000)",
    "length(lpad('x', 1000000000, 'y'))",
    "size(sequence(1, 1000000000000))",
    "aggregate(array(1, 2, 3), 'x', (a, x) -> concat(a, a))",
    "hex(" * 25 + "v" + ")" * 25,
    "replace(v, 'a', v)",
    "replace(v, 'a', '" + "b" * 2000 + "')",
    "regexp_replace(v, 'a', v)",
    "regexp_replace(v, '(?=(.*))', '$1')",
    "regexp_extract_all(v, '(?=(.*))', 1)",
    "levenshtein(v, concat(v, 'x'))",
    "array_join(split(v, ','), v)",
    "concat_ws(v, split(v, ','))",
    "transform(split(v, ''), x -> concat(x, v))",
    "size(filter(split(v, ''), x -> reverse(v) = x))",
    "size(array_insert(array(1), 100000000, 1))",
    "format_number(id, 100000000)",
    "round(id / 3, 1000000000)",
    "transform(array(v), x -> x || x || x || x)[0] || " * 20 + "(" * 400 + "v" + ")" * 400,
    "[x FOR x IN [1]]",
    "x'",
    "",
    "(",
)
"""Texts in the place of an expression over the columns ``id`` and ``v``."""


def expressions(folder: str) -> list[str]:
    """All of them, about files in a folder."""
    return [text.replace("SECRET", f"{folder}/secret.csv") for text in NO_EXPRESSIONS]


def computed(name: str, place: int, text: str) -> dict[str, str]:
    """The options of a computed column."""
    return {f"schema.{place}.name": name, f"schema.{place}.data-type": "STRING", f"schema.{place}.expr": text}
