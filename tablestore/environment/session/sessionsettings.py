"""Keeps the settings of a session: ``SET``, ``RESET`` and :meth:`TableEnvironment.get_config`.

    table-storage.<key>     what tables that this session creates have where their own options do not say: any option of a table
                            but those that belong to one table only
    <key of OPTIONS>        how this session works
    any other               the engine's (``spark.sql.shuffle.partitions``); refused without one

``RESET`` goes back to what the environment was created with.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from tablestore.environment.managed.factory import FILE_PATH, STORAGE_PREFIX
from tablestore.environment.session.connectoraccess import ALLOWED, check_allowed_setting
from tablestore.environment.session.keptfunctions import ALLOWED_MODULES
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.lsm.missingchoice import MissingColumns
from tablestore.names import did_you_mean
from tablestore.options import (
    CHANGE_TRACKING,
    LOG_KAFKA_TOPIC,
    LOG_SCAN,
    LOG_SCAN_TIMESTAMP,
    LOG_SCAN_TIMESTAMP_ALIAS,
    TABLE_OPTIONS,
    UNTRACKED_PARTITIONS,
    Option,
    is_table_option,
)
from tablestore.sql.sqldialect import SQL_DIALECT, SqlDialect

# Options that say how one table is read, or which one it is.
TABLE_ONLY = frozenset(
    (
        *(option.key for option in (CHANGE_TRACKING, UNTRACKED_PARTITIONS, LOG_SCAN, LOG_SCAN_TIMESTAMP, LOG_KAFKA_TOPIC)),
        LOG_SCAN_TIMESTAMP_ALIAS,
    )
)
RUNTIME_MODE = Option(
    key="execution.runtime-mode",
    kind="choice",
    default="batch",
    sentence="Whether statements read a snapshot and end (batch), or read changes without end (streaming).",
    choices=("batch", "streaming"),
)
DML_SYNC = Option(
    key="table.dml-sync",
    kind="bool",
    default=True,
    sentence="Whether INSERT, CREATE TABLE … AS and STATEMENT SET wait for their end; otherwise the result has the job.",
)
CTAS_ATOMICITY = Option(
    key="table.ctas.atomicity-enabled",
    kind="bool",
    default=False,
    sentence="Whether a table that CREATE TABLE … AS makes is there with all its rows or not at all.",
)
MISSING_COLUMNS = Option(
    key="table.insert.missing-columns",
    kind="choice",
    default=MissingColumns.NULL.value,
    sentence="What INSERT writes into columns that it does not name, in the place of a stored row: their default or NULL, what is "
    "stored (keep, which looks it up), or nothing: it is refused.",
    choices=tuple(choice.value for choice in MissingColumns),
)
CHECKPOINTS = Option(
    key="execution.checkpointing.dir",
    kind="text",
    default=None,
    sentence="The folder of the checkpoints of streams: each table that a stream writes has one of its own in it.",
)
PIPELINE_NAME = Option(
    key="pipeline.name",
    kind="text",
    default=None,
    sentence="The name of the streams that begin: one of the same name and target goes on where the last one ended. Where it is "
    "not set, the same statement does.",
)
CHECKPOINT_INTERVAL = Option(
    key="execution.checkpointing.interval",
    kind="duration",
    default=None,
    sentence="How often a stream commits, such as 10 s; where it is not set, whenever it is done with what it commits.",
)
FRESHNESS_THRESHOLD = Option(
    key="materialized-table.refresh-mode.freshness-threshold",
    kind="duration",
    default="30 min",
    sentence="A materialized table of a freshness below this is refreshed continuously, others by FULL refreshes.",
)
CONTINUOUS_FRESHNESS = Option(
    key="materialized-table.default-freshness.continuous",
    kind="duration",
    default="3 min",
    sentence="The freshness of a materialized table whose statement does not say it.",
    minimum=1_000,
)
FULL_FRESHNESS = Option(
    key="materialized-table.default-freshness.full",
    kind="duration",
    default="1 h",
    sentence="The same where the statement asks for REFRESH_MODE = FULL.",
    minimum=1_000,
)
WORKFLOW_SCHEDULER = Option(
    key="workflow-scheduler.type",
    kind="text",
    default="embedded",
    sentence="Who runs FULL refreshes: embedded (any process that refreshes what is due), none, or an installed scheduler.",
)
SQL_DIALECT_OPTION = Option(
    key=SQL_DIALECT,
    kind="choice",
    default=SqlDialect.SPARK.value,
    sentence="The words that queries are written in: Spark's, or DuckDB's own (on the engine duckdb); all other statements are the "
    "same in both, and a view and a materialized table keep the dialect of their query.",
    choices=tuple(SqlDialect),
)
ALLOWED_CONNECTORS = Option(
    key=ALLOWED,
    kind="text",
    default=None,
    sentence="Which permanent tables with a connector of other sessions this one reads and writes: names of connectors, paths and "
    "URLs between commas. Files inside of the warehouse are read anyway.",
)
ALLOWED_FUNCTIONS = Option(
    key=ALLOWED_MODULES,
    kind="text",
    default=None,
    sentence="The modules and packages of Python, between commas, that functions of catalogs may be of.",
)
OPTIONS = {
    option.key: option
    for option in (
        SQL_DIALECT_OPTION,
        RUNTIME_MODE,
        DML_SYNC,
        CTAS_ATOMICITY,
        MISSING_COLUMNS,
        PIPELINE_NAME,
        CHECKPOINTS,
        CHECKPOINT_INTERVAL,
        FRESHNESS_THRESHOLD,
        CONTINUOUS_FRESHNESS,
        FULL_FRESHNESS,
        WORKFLOW_SCHEDULER,
        ALLOWED_CONNECTORS,
        ALLOWED_FUNCTIONS,
    )
}
# Settings of Flink that ask for what is not here, and why there is no need.
NOT_HERE = {
    "execution.checkpointing.savepoint-dir": "a materialized table is suspended and resumed without savepoints, since where its "
    "refreshes go on lies in its own snapshots",
    "materialized-table.default-start-mode": "a materialized table holds all rows of its query, so a new query begins from the "
    "beginning",
}
# Other names of the same settings.
ALIASES = {"table.rtas-ctas.atomicity-enabled": CTAS_ATOMICITY.key}
_OUR_FAMILIES = ("table-storage.", "tablestore.", "execution.", "table.", "materialized-table.", "workflow-scheduler.", "pipeline.")

Forward = Callable[[str, str | None], None]
T = TypeVar("T")


class Settings:
    """Keys and values as text. ``forward`` takes what is not ours; None without an engine."""

    def __init__(self, initial: Mapping[str, str] | None = None, forward: Forward | None = None) -> None:
        self._forward = forward
        self._initial: dict[str, str] = {}
        self._values: dict[str, str] = {}
        for key, value in (initial or {}).items():
            if (canonical := ALIASES.get(key, key)) != key and canonical in (initial or {}):
                raise InvalidInputError(f"{canonical} and {key} are one setting; give one of them", kind="invalid-option")
            self.set(key, value)
        self._initial = dict(self._values)

    def set(self, key: str, value: str) -> None:
        """Sets a key. Raises InvalidInputError for an unknown key or a value that does not parse, UnsupportedError."""
        self._check_texts(key, value)
        key = ALIASES.get(key, key)
        if _is_ours(key):
            check_setting(key, value)
        else:
            self._pass_on(key, value)
        self._values[key] = value

    def get(self, key: str, default: T | None = None) -> "str | T | None":
        """The value as text: what was set, else the default of an option of ours, else ``default``."""
        key = ALIASES.get(key, key)
        if key in self._values:
            return self._values[key]
        option = OPTIONS.get(key)
        if option is None or option.default is None:
            return default
        return str(option.default).lower() if option.kind == "bool" else str(option.default)

    def millis(self, option: Option) -> int:
        """The value of an option of ours that is a duration, in milliseconds."""
        millis = option.parse(str(self.get(option.key)))
        assert isinstance(millis, int), f"{option.key} is no duration"
        return millis

    def flag(self, option: Option) -> bool:
        """The value of an option of ours that is true or false."""
        return bool(option.parse(str(self.get(option.key))))

    def reset(self, key: str | None = None) -> None:
        """Sets a key, or all, back to what the environment was created with. Raises InvalidInputError for an unknown one."""
        for one in (ALIASES.get(key, key),) if key is not None else tuple(self._values):
            if one in self._initial:
                self.set(one, self._initial[one])
            elif self._values.pop(one, None) is not None and not _is_ours(one):
                self._pass_on(one, None)
            elif key is not None and _is_ours(one) and not _is_known(one):
                raise unknown_setting(one)

    def all(self) -> dict[str, str]:
        """The values that were set, by key."""
        return dict(sorted(self._values.items()))

    @property
    def missing_columns(self) -> MissingColumns:
        """The rule of INSERT for columns that it does not name."""
        return MissingColumns.of(str(MISSING_COLUMNS.parse(str(self.get(MISSING_COLUMNS.key)))))

    @property
    def dialect(self) -> SqlDialect:
        """The words that queries are written in."""
        return SqlDialect(str(SQL_DIALECT_OPTION.parse(str(self.get(SQL_DIALECT)))))

    @property
    def is_streaming(self) -> bool:
        """True if statements run without end."""
        return RUNTIME_MODE.parse(str(self.get(RUNTIME_MODE.key))) == "streaming"

    def _pass_on(self, key: str, value: str | None) -> None:
        if self._forward is None:
            raise unknown_setting(key)
        self._forward(key, value)

    @staticmethod
    def _check_texts(key: object, value: object) -> None:
        if not isinstance(key, str) or not isinstance(value, str):
            raise InvalidInputError(
                f"expected text as key and value of a setting, found {key!r:.100}: {value!r:.100}", kind="invalid-option"
            )


def check_setting(key: str, value: str) -> None:
    """Checks a setting of ours. Raises InvalidInputError, UnsupportedError."""
    if key in OPTIONS:
        OPTIONS[key].parse(value)
        if key == ALLOWED:
            check_allowed_setting(value)
        return
    if key in NOT_HERE:
        raise UnsupportedError(f"there is no setting {key!r}: {NOT_HERE[key]}; leave it out", kind="unsupported")
    plain = key.removeprefix(STORAGE_PREFIX)
    if plain == key or not plain:
        raise unknown_setting(key)
    if plain in TABLE_ONLY:
        raise InvalidInputError(
            f"{plain} belongs to one table and cannot be set for a session: give it to the table, WITH ('{plain}' = '{value}')",
            kind="invalid-option",
        )
    if plain in TABLE_OPTIONS:
        TABLE_OPTIONS[plain].parse(value)
    elif plain != FILE_PATH and not is_table_option(plain):
        raise unknown_setting(key)


def unknown_setting(key: str) -> InvalidInputError:
    """The error for a key that nobody knows."""
    ours = [*OPTIONS, *(STORAGE_PREFIX + one for one in (*TABLE_OPTIONS, FILE_PATH) if one not in TABLE_ONLY)]
    return InvalidInputError(
        f"unknown setting {key!r:.100}{did_you_mean(key, ours)}; options of tables have the prefix {STORAGE_PREFIX!r}",
        kind="unknown-option",
    )


def _is_known(key: str) -> bool:
    plain = key.removeprefix(STORAGE_PREFIX)
    return key in OPTIONS or (plain != key and (is_table_option(plain) or plain == FILE_PATH))


def _is_ours(key: str) -> bool:
    return key.startswith(_OUR_FAMILIES)
