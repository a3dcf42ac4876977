"""Texts that name a file, an address or what an engine knows of its host where a query names a table."""

from collections.abc import Iterator

_PLACES = (
    "SELECT * FROM {0}",
    "FROM {0}",
    "FROM {0} SELECT *",
    "SELECT * FROM {0} AS f",
    "SELECT * FROM ({0})",
    "SELECT * FROM (({0}))",
    "SELECT * FROM t, {0}",
    "SELECT * FROM t JOIN {0} ON true",
    "SELECT * FROM t POSITIONAL JOIN {0}",
    "SELECT * FROM t CROSS JOIN LATERAL (SELECT * FROM {0})",
    "SELECT (SELECT count(*) FROM {0}) FROM t",
    "SELECT * FROM t WHERE id IN (SELECT a FROM {0})",
    "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM {0})",
    "SELECT 1 FROM t LIMIT (SELECT count(*) FROM {0})",
    "SELECT id FROM t UNION ALL SELECT a FROM {0}",
    "SELECT transform(array(1), z -> (SELECT max(a) FROM {0}))",
    "SELECT * FROM explode((SELECT array_agg(a) FROM {0}))",
    "SELECT * FROM {0} PIVOT (count(*) FOR b IN (2))",
    "WITH c AS (SELECT * FROM {0}) SELECT * FROM c",
    "VALUES ((SELECT max(a) FROM {0}))",
    "SELECT * FROM t VERSION AS OF (SELECT max(a) FROM {0})",
    "SELECT * FROM table_changes('t', (SELECT max(a) FROM {0}))",
    "SET VARIABLE a = (SELECT max(a) FROM {0})",
    "EXPLAIN SELECT * FROM {0}",
    "CREATE TEMPORARY VIEW w AS SELECT * FROM {0}",
    "CREATE TABLE u AS SELECT * FROM {0}",
    "CREATE MATERIALIZED TABLE m AS SELECT * FROM {0}",
    "INSERT INTO t SELECT a, b FROM {0}",
    "INSERT INTO t FROM {0} SELECT a, b",
    "UPDATE t SET v = (SELECT max(b) FROM {0})",
    "DELETE FROM t WHERE id IN (SELECT a FROM {0})",
    "MERGE INTO t USING (SELECT a, b FROM {0}) AS s ON t.id = s.a WHEN MATCHED THEN DELETE",
    # A WITH binds the name elsewhere.
    "SELECT * FROM (WITH {0} AS (SELECT 1) SELECT * FROM {0}), {0}",
    "WITH {0} AS (SELECT * FROM {0}) SELECT * FROM {0}",
    "WITH a AS (SELECT * FROM {0}), {0} AS (SELECT 1) SELECT * FROM a",
    # One that is RECURSIVE binds it behind UNION only.
    "WITH RECURSIVE {0} AS (SELECT a, b FROM {0}) SELECT * FROM {0}",
    "WITH RECURSIVE {0} AS (SELECT a, b FROM {0} UNION ALL SELECT a + 1, b FROM {0} WHERE a < 2) SELECT * FROM {0}",
    "WITH RECURSIVE {0} AS ((SELECT a, b FROM {0}) UNION ALL (SELECT a + 1, b FROM {0} WHERE a < 2)) SELECT * FROM {0}",
    "WITH RECURSIVE {0} AS (SELECT (SELECT max(a) FROM {0}) AS a UNION ALL SELECT a + 1 FROM {0} WHERE a < 2) SELECT * FROM {0}",
    "WITH RECURSIVE {0} AS (WITH w AS (SELECT * FROM {0}) SELECT a, b FROM w UNION ALL SELECT 1, 1 FROM {0}) SELECT * FROM {0}",
    "WITH RECURSIVE a AS (SELECT * FROM {0}), {0} AS (SELECT 1) SELECT * FROM a",
    "WITH RECURSIVE a AS (SELECT 1 AS x UNION ALL SELECT a FROM {0}), {0} AS (SELECT 1) SELECT * FROM a",
    "CREATE MATERIALIZED TABLE m AS WITH RECURSIVE {0} AS (SELECT a, b FROM {0}) SELECT * FROM {0}",
)


def file_texts(path: str) -> Iterator[str]:
    """Statements that read the CSV file at a path, or change the table ``t (id, v)`` by it, if a text can name a file."""
    for place in _PLACES:
        yield place.format(f"'{path}'")
        yield place.format(f'"{path}"')
        yield place.format(f"`{path}`")


def format_texts(path: str) -> Iterator[str]:
    """Statements that read the CSV file at a path by the name of its format, as a query of a session that is not restricted may."""
    yield from (place.format(f"csv.`{path}`") for place in _PLACES)


def host_texts(path: str) -> Iterator[str]:
    """Queries that call what opens files, or tells of the host, by DuckDB's names."""
    yield from (f"SELECT * FROM {one}('{path}')" for one in _BY_PATH)
    yield from (f"SELECT * FROM {one}('{path}', 't')" for one in _BY_NAME)
    yield from (f"SELECT * FROM {one}()" for one in _OF_HOST)
    yield from (f"SELECT * FROM {one}" for one in _HOST_TABLES)
    yield from (f"SELECT {one}" for one in (*_HOST_VALUES, f"read_text('{path}')"))


_BY_PATH = (
    *("read_csv", "read_csv_auto", "read_text", "read_blob", "read_json", "glob", "sniff_csv", "parquet_scan", "read_parquet"),
    *("parquet_metadata", "parquet_schema", "read_duckdb"),
)
_BY_NAME = ("sqlite_scan", "postgres_scan", "mysql_scan", "iceberg_scan", "delta_scan")
_OF_HOST = (
    *("duckdb_settings", "duckdb_secrets", "duckdb_tables", "duckdb_extensions", "pragma_version", "test_all_types"),
    *("main.duckdb_settings", "system.main.duckdb_settings", "`duckdb_settings`"),
)
_HOST_TABLES = (
    *("pragma_table_info('t')", "query('SELECT 1')", "query_table('t')", "which_secret('s3://b/k', 's3')"),
    *("duckdb_settings", "duckdb_tables", "main.duckdb_tables", "sqlite_master", "pragma_database_list", "variable_of_the_caller"),
    *("system.information_schema.tables", "pg_catalog.pg_class", "temp.information_schema.tables"),
    *("'http://127.0.0.1:9/x.csv'", "'s3://bucket/x.parquet'"),
)
_HOST_VALUES = (
    *("getenv('HOME')", "`getenv`('HOME')", "system.getenv('HOME')", "current_setting('temp_directory')", "getvariable('x')"),
    *("current_query()", "pg_typeof(1)", "nextval('s')", "write_log('x')", "list_query('a')"),
)
