"""Names our way for what people of other systems write in SQL: Delta Lake, Iceberg, Paimon, DuckDB, PostgreSQL, Snowflake.

    text -> its tokens without comments, texts emptied -> the first pattern -> our way, where the session runs that

A hint for a text that was refused; a text that runs is never looked at. ``tests/newcomer/habits.toml`` has each of them.
"""

import re
from enum import IntEnum
from itertools import pairwise

from tablestore.errors import InvalidInputError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.sql.parse.tokens import Kind, Token, tokenize


class Reach(IntEnum):
    """The statements that a session runs, so that hints name no others."""

    READS = 0
    CHANGES = 1
    ALL = 2


_DUCKDBS_WORDS = "; SET 'table.sql-dialect' = 'duckdb' runs queries in DuckDB's own words"
# The function of Spark's for the arguments of another system's; where they differ, as they are written.
_SPARK_FUNCTIONS = {
    "list_contains": "array_contains",
    "list_value": "array",
    "list_aggregate": "aggregate(list, 0, (sum, x) -> sum + x)",
    "list_transform": "transform",
    "list_filter": "filter",
    "list_sort": "array_sort",
    "list_distinct": "array_distinct",
    "list": "collect_list",
    "struct_pack": "named_struct('name', value)",
    "strftime": "date_format(time, 'yyyy-MM-dd')",
    "strptime": "to_timestamp(text, 'yyyy-MM-dd')",
    "epoch": "unix_timestamp",
    "epoch_ms": "unix_millis, and timestamp_millis of a number",
    "regexp_matches": "regexp_like",
    "string_split": "split, whose separator is a regular expression",
    "iif": "if",
    "to_json_string": "to_json",
    "generate_series": "sequence",
    "safe_cast": "try_cast",
    "len": "length of a text, size of an array",
}

_REPLACES = "INSERT INTO …, which replaces the row of a known key, and appends to a table without a primary key"
_KEEPS = "MERGE INTO … USING … ON … WHEN NOT MATCHED THEN INSERT …, which keeps the row of a known key; INSERT INTO … replaces it"

# What runs it here, what stands in a text of others, and what it is here. The first that is there counts.
_WAYS: tuple[tuple[Reach, str, str], ...] = (
    (Reach.READS, r"^LIST\s+TABLES|^SHOW\s+ALL\s+TABLES|^PRAGMA\s+show_tables|^SHOW\s+FULL\s+TABLES", "SHOW TABLES"),
    (Reach.READS, r"^LIST\s+(DATABASES|SCHEMAS)", "SHOW DATABASES"),
    (Reach.READS, r"^PRAGMA\s+(table_info|show)\b", "DESCRIBE …"),
    (Reach.ALL, r"^SUMMARIZE\b", "SUMMARIZE behind SET 'table.sql-dialect' = 'duckdb'"),
    (Reach.READS, r"^EXPLAIN\s+ANALYZE\b", "EXPLAIN …, which runs nothing"),
    (Reach.ALL, r"^CREATE\s+(OR\s+REPLACE\s+)?MATERIALIZED\s+VIEW", "CREATE [OR ALTER] MATERIALIZED TABLE … AS …"),
    (Reach.ALL, r"^REFRESH\s+MATERIALIZED\s+VIEW", "ALTER MATERIALIZED TABLE … REFRESH"),
    (Reach.ALL, r"^DROP\s+MATERIALIZED\s+VIEW", "DROP MATERIALIZED TABLE …"),
    (Reach.ALL, r"^(CREATE|DROP)\s+(UNIQUE\s+)?INDEX", "nothing: a primary key orders the files, and filters leave files out"),
    (Reach.CHANGES, r"^INSERT\s+(OR\s+)?IGNORE\b|^INSERT\b.*\bON\s+CONFLICT\b.*\bDO\s+NOTHING\b", _KEEPS),
    (Reach.CHANGES, r"^INSERT\s+OR\s+REPLACE\b|^(UPSERT|REPLACE)\s+INTO\b", _REPLACES),
    (
        Reach.CHANGES,
        r"^INSERT\b.*\bON\s+(CONFLICT|DUPLICATE\s+KEY)\b",
        f"{_REPLACES}; MERGE INTO … WHEN MATCHED THEN UPDATE SET … changes some columns",
    ),
    (
        Reach.ALL,
        r"^CREATE\b.*\b(SHALLOW\s+|DEEP\s+)?CLONE\b",
        "CREATE TABLE … AS SELECT … for a copy, CALL sys.create_branch(…) for a branch",
    ),
    (Reach.CHANGES, r"^CREATE\s+TABLE\b.*\bENGINE\s*=", "CREATE TABLE … without ENGINE; WITH ('key' = 'value') gives options"),
    (Reach.CHANGES, r"^CREATE\s+TABLE\b.*\)\s*(CLUSTER|SORT|ORDER)\s+BY\b", "CREATE TABLE … WITH ('clustering.columns' = '…')"),
    (Reach.CHANGES, r"^ALTER\s+TABLE\b.*\bCLUSTER\s+BY\b", "ALTER TABLE … SET ('clustering.columns' = '…')"),
    (Reach.ALL, r"^ALTER\s+TABLE\b.*\bEXECUTE\s+(optimize|rewrite)", "ALTER TABLE … COMPACT"),
    (
        Reach.ALL,
        r"^ALTER\s+TABLE\b.*\bEXECUTE\s+(expire|remove)",
        "CALL sys.expire_snapshots(…) and CALL sys.remove_orphan_files(…)",
    ),
    (Reach.ALL, r"^ALTER\s+TABLE\b.*\bSET\s+TAGS?\b", "COMMENT ON TABLE … IS '…'; CALL sys.create_tag(…) names a snapshot"),
    (Reach.READS, r"^(DESCRIBE|DESC)\s+DETAIL\b", "DESCRIBE EXTENDED …"),
    (Reach.READS, r"^SHOW\s+HISTORY\b", "DESCRIBE HISTORY … or SHOW SNAPSHOTS FROM …"),
    (Reach.READS, r"^SHOW\s+INDEX", "SHOW CREATE TABLE …"),
    (Reach.ALL, r"^ANALYZE\s+(?!TABLE)", "ANALYZE TABLE … COMPUTE STATISTICS"),
    (Reach.CHANGES, r"^TRUNCATE\s+(?!TABLE)", "TRUNCATE TABLE …"),
    (Reach.ALL, r"^UNDROP\b", "nothing: a dropped table has lost its files; a tag or branch keeps snapshots of one that is there"),
    (Reach.CHANGES, r"^DROP\s+TABLE\b.*\b(CASCADE|RESTRICT)\b", "DROP TABLE … without it; DROP DATABASE … CASCADE drops tables"),
    (Reach.ALL, r"^CALL\s+\S*\brollback(_to_snapshot)?\s*\(", "CALL sys.rollback_to(…) or RESTORE TABLE … TO VERSION AS OF …"),
    (Reach.ALL, r"^CALL\s+\S*\b(rewrite_data_files|optimize)\s*\(", "CALL sys.compact(…)"),
    (Reach.READS, r"^(EXIT|QUIT|\\Q)\s*;?\s*$", "Ctrl-D in the prompt"),
    (Reach.READS, r"^(HELP|\\\?)\s*;?\s*$", "the guide docs/guides/sql.md; SHOW TABLES begins"),
    (Reach.READS, r"\bSELECT\s+TOP\s+\d", "SELECT … LIMIT n"),
    (Reach.READS, r"\bAT\s*\(\s*(VERSION|SNAPSHOT)\b|\w@v\d", "FROM … VERSION AS OF n"),
    (Reach.READS, r"\bAT\s*\(\s*TIMESTAMP\b|\bBEFORE\s*\(\s*(TIMESTAMP|STATEMENT|OFFSET)\b", "FROM … TIMESTAMP AS OF '…'"),
    (Reach.READS, r"\bcount\s*\(\s*\)", "count(*)"),
    (Reach.ALL, r"\b(delta|iceberg|hudi)\.`", "a table of this catalog: docs/guides/migrate.md brings others' rows into one"),
    (Reach.ALL, r"\b(delta|iceberg)_scan\s*\(", "a table of this catalog: docs/guides/migrate.md brings others' rows into one"),
    (
        Reach.ALL,
        r"\bread_(csv|csv_auto|json|json_auto|parquet)\s*\(",
        f"csv.`path`, json.`path` or parquet.`path` in FROM{_DUCKDBS_WORDS}",
    ),
    (Reach.READS, r"\{\s*'[^']*'\s*:", f"named_struct('name', value){_DUCKDBS_WORDS}"),
    (Reach.CHANGES, r'^INSERT\s+(INTO|OVERWRITE)\s+"', "a name without quotes or in backticks: double quotes are for texts"),
    (
        Reach.READS,
        r"\b(FROM|JOIN)\s+(?:\w+\.)*\w+\.(snapshots|history|files|partitions|manifests|refs|tags|branches|options|schemas)\b",
        "the name of the table, $ and the system table: FROM t$snapshots",
    ),
)


def our_way(text: str, message: str, reach: Reach = Reach.ALL) -> str | None:
    """The words for what a refused statement means elsewhere; None for one that no other system has, and where a session of that
    reach would not run them. ``message``: of the refusal; a function is meant only where it names that."""
    plain = _plain(text)
    # Compiled here, since most programs are never wrong.
    for needed, pattern, way in _WAYS:
        if re.search(pattern, plain, re.IGNORECASE | re.DOTALL):
            return _within(way, reach) if needed <= reach else None
    for call in re.finditer(rf"(?<![.\w])({'|'.join(_SPARK_FUNCTIONS)})\s*\(", plain, re.IGNORECASE):
        if f"`{call[1]}`".lower() in message.lower():
            return _within(f"{_SPARK_FUNCTIONS[call[1].lower()]}, as in Spark{_DUCKDBS_WORDS}", reach)
    return None


def add_our_way(error: TablestoreError, text: str, reach: Reach = Reach.ALL) -> None:
    """Puts into the message of an error what a refused statement is called here, if another system has it."""
    if not isinstance(error, (InvalidInputError, UnsupportedError, NotFoundError)):
        return
    if (way := our_way(text, error.message, reach)) is not None:
        hint = f"; here it is {way}"
        if hint not in error.message:
            said, newline, place = error.message.partition("\nline ")
            error.message = f"{said}{hint}{newline}{place}"
            error.args = (error.message,)


def _within(way: str, reach: Reach) -> str:
    return way if reach is Reach.ALL else way.removesuffix(_DUCKDBS_WORDS)


def _plain(text: str) -> str:
    """A statement without its comments, its texts empty, and between backticks only names that are words."""
    tokens: list[Token] = []
    try:
        tokenize(text, tokens=tokens)
    except InvalidInputError:
        # What is not closed is not looked at.
        tokens.append(Token(Kind.END, "", len(text), len(text), ""))
    return "".join(_shown(one) + " " * (one.end < other.start) for one, other in pairwise(tokens)).strip()


def _shown(token: Token) -> str:
    if token.kind is Kind.TEXT:
        return token.text[-1] * 2
    if token.kind is Kind.NAME and not token.text[1:-1].isidentifier():
        return "`…`"
    return "" if token.kind is Kind.HINT else token.text
