"""Names our way for what people of other systems write in SQL: Delta Lake, Iceberg, Paimon, DuckDB, PostgreSQL, Snowflake.

A hint for a text that was refused; a text that runs is never looked at. ``tests/newcomer/sql.toml`` has each of them.
"""

import re

from tablestore.errors import InvalidInputError, NotFoundError, TablestoreError, UnsupportedError

_DUCKDBS_WORDS = "SET 'table.sql-dialect' = 'duckdb' runs queries in DuckDB's own words"
_SPARK_FUNCTIONS = {
    "list_contains": "array_contains",
    "list_value": "array",
    "list_aggregate": "aggregate",
    "list_transform": "transform",
    "list_filter": "filter",
    "list_sort": "array_sort",
    "list_distinct": "array_distinct",
    "list": "collect_list",
    "struct_pack": "named_struct",
    "strftime": "date_format",
    "strptime": "to_timestamp",
    "epoch": "unix_timestamp",
    "epoch_ms": "timestamp_millis",
    "regexp_matches": "regexp_like",
    "string_split": "split",
    "iif": "if",
    "to_json_string": "to_json",
    "generate_series": "sequence or range",
    "safe_cast": "try_cast",
    "len": "length or size",
}

# What stands in a text of others -> what it is here. The first that is there counts.
_WAYS: tuple[tuple[str, str], ...] = (
    (r"^LIST\s+TABLES|^SHOW\s+ALL\s+TABLES|^PRAGMA\s+show_tables|^SHOW\s+FULL\s+TABLES", "SHOW TABLES"),
    (r"^LIST\s+(DATABASES|SCHEMAS)", "SHOW DATABASES"),
    (r"^PRAGMA\s+(table_info|show)\b", "DESCRIBE …"),
    (r"^SUMMARIZE\b", f"SUMMARIZE in DuckDB's words: {_DUCKDBS_WORDS}; DESCRIBE lists columns"),
    (r"^EXPLAIN\s+ANALYZE\b", "EXPLAIN …, which runs nothing"),
    (r"^CREATE\s+(OR\s+REPLACE\s+)?MATERIALIZED\s+VIEW", "CREATE [OR ALTER] MATERIALIZED TABLE … AS …"),
    (r"^REFRESH\s+MATERIALIZED\s+VIEW", "ALTER MATERIALIZED TABLE … REFRESH"),
    (r"^DROP\s+MATERIALIZED\s+VIEW", "DROP MATERIALIZED TABLE …"),
    (r"^(CREATE|DROP)\s+(UNIQUE\s+)?INDEX", "nothing: a primary key orders the files, and filters leave files out"),
    (r"^INSERT\s+OR\s+(REPLACE|IGNORE)", "INSERT INTO …, which replaces rows of a known key; MERGE INTO … decides otherwise"),
    (r"\bON\s+(CONFLICT|DUPLICATE\s+KEY)\b", "INSERT INTO …, which replaces rows of a known key; MERGE INTO … decides otherwise"),
    (r"^(UPSERT|REPLACE)\s+INTO", "INSERT INTO …, which replaces rows of a known key"),
    (r"^CREATE\b.*\b(SHALLOW\s+|DEEP\s+)?CLONE\b", "CREATE TABLE … AS SELECT … for a copy, CALL sys.create_branch(…) for a branch"),
    (r"^CREATE\s+TABLE\b.*\bENGINE\s*=", "CREATE TABLE … without ENGINE; WITH ('key' = 'value') gives options"),
    (r"^CREATE\s+TABLE\b.*\)\s*(CLUSTER|SORT|ORDER)\s+BY\b", "CREATE TABLE … WITH ('clustering.columns' = '…')"),
    (r"^ALTER\s+TABLE\b.*\bCLUSTER\s+BY\b", "ALTER TABLE … SET ('clustering.columns' = '…')"),
    (r"^ALTER\s+TABLE\b.*\bEXECUTE\s+(optimize|rewrite)", "ALTER TABLE … COMPACT"),
    (r"^ALTER\s+TABLE\b.*\bEXECUTE\s+(expire|remove)", "CALL sys.expire_snapshots(…) and CALL sys.remove_orphan_files(…)"),
    (r"^ALTER\s+TABLE\b.*\bSET\s+TAGS?\b", "COMMENT ON TABLE … IS '…'; CALL sys.create_tag(…) names a snapshot"),
    (r"^(DESCRIBE|DESC)\s+DETAIL\b", "DESCRIBE EXTENDED …"),
    (r"^SHOW\s+HISTORY\b", "DESCRIBE HISTORY … or SHOW SNAPSHOTS FROM …"),
    (r"^SHOW\s+INDEX", "SHOW CREATE TABLE …"),
    (r"^ANALYZE\s+(?!TABLE)\w", "ANALYZE TABLE … COMPUTE STATISTICS"),
    (r"^TRUNCATE\s+(?!TABLE)", "TRUNCATE TABLE …"),
    (r"^UNDROP\b", "nothing: a dropped table has lost its files; a tag or branch keeps snapshots of one that is there"),
    (r"^DROP\s+TABLE\b.*\b(CASCADE|RESTRICT)\b", "DROP TABLE … without it; DROP DATABASE … CASCADE drops tables"),
    (r"^CALL\s+\S*\brollback(_to_snapshot)?\s*\(", "CALL sys.rollback_to(…) or RESTORE TABLE … TO VERSION AS OF …"),
    (r"^CALL\s+\S*\b(rewrite_data_files|optimize)\s*\(", "CALL sys.compact(…)"),
    (r"^(EXIT|QUIT|\\Q)\s*;?\s*$", "Ctrl-D in the prompt"),
    (r"^(HELP|\\\?)\s*;?\s*$", "the guide docs/guides/sql.md; SHOW TABLES begins"),
    (r"\bSELECT\s+TOP\s+\d", "SELECT … LIMIT n"),
    (r"\bAT\s*\(\s*(VERSION|SNAPSHOT)\b|\w@v\d", "FROM … VERSION AS OF n"),
    (r"\bAT\s*\(\s*TIMESTAMP\b|\bBEFORE\s*\(", "FROM … TIMESTAMP AS OF '…'"),
    (r"\bcount\s*\(\s*\)", "count(*)"),
    (r"\b(delta|iceberg|hudi)\.`", "a table of this catalog: docs/guides/migrate.md brings others' rows into one"),
    (r"\b(delta|iceberg)_scan\s*\(", "a table of this catalog: docs/guides/migrate.md brings others' rows into one"),
    (r"\bread_(csv|csv_auto|json|json_auto|parquet)\s*\(", f"csv.`path`, json.`path` or parquet.`path` in FROM; {_DUCKDBS_WORDS}"),
    (r"\{\s*'[^']*'\s*:", f"named_struct('name', value); {_DUCKDBS_WORDS}"),
    (r'^INSERT\s+(INTO|OVERWRITE)\s+"', "a name without quotes or in backticks: double quotes are for texts"),
    (
        r"\b(FROM|JOIN)\s+(?:\w+\.)*\w+\.(snapshots|history|files|partitions|manifests|refs|tags|branches|options|schemas)\b",
        "the name of the table, $ and the system table: FROM t$snapshots",
    ),
)


def our_way(text: str) -> str | None:
    """The words for what a refused statement means elsewhere; None for one that no other system has."""
    stripped = text.strip()
    # Compiled here, since most programs are never wrong.
    for pattern, way in _WAYS:
        if re.search(pattern, stripped, re.IGNORECASE | re.DOTALL):
            return way
    call = re.search(rf"\b({'|'.join(_SPARK_FUNCTIONS)})\s*\(", stripped, re.IGNORECASE)
    return None if call is None else f"{_SPARK_FUNCTIONS[call[1].lower()]}, as in Spark; {_DUCKDBS_WORDS}"


def add_our_way(error: TablestoreError, text: str) -> None:
    """Puts into the message of an error what a refused statement is called here, if another system has it."""
    if isinstance(error, (InvalidInputError, UnsupportedError, NotFoundError)) and (way := our_way(text)) is not None:
        hint = f"; here it is {way}"
        if hint not in error.message:
            said, newline, place = error.message.partition("\nline ")
            error.message = f"{said}{hint}{newline}{place}"
            error.args = (error.message,)
