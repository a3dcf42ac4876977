"""Defines a materialized table, and how a table's options carry it. Pure.

    type = materialized-table
    materialized-table.definition-query …          the keys of Paimon, which Flink's catalog on Paimon reads and writes too
    tablestore.materialized-table.…                what Paimon has no key for

Another engine sees a plain table. One schema holds the columns and the definition, so both change in one commit. The definition is
what statements declare; its :class:`Upkeep` is how it stands: status, handler and epoch.
"""

import base64
import binascii
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from tablestore import options as opt
from tablestore.errors import FormatError, InvalidInputError, UnsupportedError
from tablestore.htmltext import html_card, html_element
from tablestore.materialized.freshness import Freshness, LogicalRefreshMode, RefreshMode, TimeUnit
from tablestore.options import MATERIALIZED_TABLE, OWN_MATERIALIZED_PREFIX, is_materialized
from tablestore.sql.source import Fragment, Span
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.stored.storedquery import check_stored_query
from tablestore.types.datatypes import Field
from tablestore.types.newschema import default_bucket
from tablestore.types.schema import TableSchema
from tablestore.types.typestring import type_to_sql

# Stored, never renamed.
ORIGINAL_QUERY = f"{OWN_MATERIALIZED_PREFIX}original-query"
DECLARED = f"{OWN_MATERIALIZED_PREFIX}declared"
EPOCH = f"{OWN_MATERIALIZED_PREFIX}epoch"
DIALECT = f"{OWN_MATERIALIZED_PREFIX}sql-dialect"
SINCE = f"{OWN_MATERIALIZED_PREFIX}since-millis"
LAYOUT = (opt.BUCKET.key, opt.BUCKET_KEY.key)
_OPTIONS, _CONSTRAINT, _DEFAULT_FRESHNESS = "options", "constraint", "defaultFreshness"

E = TypeVar("E", bound=StrEnum)


class RefreshStatus(StrEnum):
    """The status of the refreshes of a table. Stored: never renamed."""

    INITIALIZING = "INITIALIZING"
    ACTIVATED = "ACTIVATED"
    SUSPENDED = "SUSPENDED"


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshHandler:
    """The handler that leads to whoever refreshes a table: ``summary`` for people, ``data`` for who made it."""

    summary: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterializedTable:
    """The definition. ``options``: those that were declared, and how its rows lie (:func:`layout_of`), whoever has said so.

    ``original_query`` is the user's own text, ``expanded_query`` the same with all names filled up, since the session forgets its
    current database. ``dialect``: the words that both are in, whatever those of a session are.
    ``default_freshness``: the statement did not say how fresh.
    """

    original_query: str
    expanded_query: str
    dialect: SqlDialect = SqlDialect.SPARK
    freshness: Freshness
    default_freshness: bool = False
    logical_mode: LogicalRefreshMode = LogicalRefreshMode.AUTOMATIC
    refresh_mode: RefreshMode
    fields: tuple[Field, ...] = ()
    primary_key: tuple[str, ...] = ()
    constraint: str | None = None
    partition_by: tuple[str, ...] = ()
    comment: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def query(self) -> Fragment:
        """The query with whole names, in its words."""
        return Fragment(self.expanded_query, Span(0, len(self.expanded_query)), self.dialect)

    def get_original_query(self) -> str:
        """The text that the user gave, with its formatting."""
        return self.original_query

    def get_expanded_query(self) -> str:
        """The text with whole names."""
        return self.expanded_query

    def get_definition_query(self) -> str:
        """The same as :meth:`get_expanded_query`, which took its place."""
        warnings.warn(
            "get_definition_query() is deprecated: get_expanded_query() gives the same text", DeprecationWarning, stacklevel=2
        )
        return self.expanded_query

    def _repr_html_(self) -> str:
        facts = {
            "columns": ", ".join(f"{field.name} {type_to_sql(field.type)}" for field in self.fields),
            "primary key": ", ".join(self.primary_key),
            "partitioned by": ", ".join(self.partition_by),
            "freshness": str(self.freshness),
            "refresh mode": f"{self.refresh_mode.lower()} ({self.logical_mode.lower()})",
            "comment": self.comment,
        }
        card = html_card("Materialized table", "", {key: value for key, value in facts.items() if value})
        return card + html_element("pre", None, self.original_query)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """The state of a materialized table. ``epoch`` rises with each change of it or of the definition; ``since_ms``: since when it
    is kept fresh."""

    status: RefreshStatus
    epoch: int = 1
    since_ms: int = 0
    handler: RefreshHandler | None = None


def definition_of(schema: TableSchema) -> MaterializedTable:
    """The definition that a schema carries. Raises InvalidInputError for another table, FormatError for a damaged one."""
    options = schema.options
    if not is_materialized(options):
        raise InvalidInputError("the table is no materialized table", kind="not-materialized")
    dialect = _choice(options, DIALECT, SqlDialect, str.lower) if DIALECT in options else SqlDialect.SPARK
    expanded = _query(options, opt.MATERIALIZED_DEFINITION_QUERY.key, dialect)
    declared = _declared(options.get(DECLARED))
    interval = _text(options, opt.MATERIALIZED_FRESHNESS.key)
    if not (interval.isascii() and interval.isdecimal() and 0 < int(interval[:20]) < 1 << 31):
        raise _damaged(opt.MATERIALIZED_FRESHNESS.key, "a positive number", interval)
    constraint, declared_options = declared.get(_CONSTRAINT), declared.get(_OPTIONS, {})
    if not isinstance(declared_options, dict) or not all(
        isinstance(part, str) for pair in declared_options.items() for part in pair
    ):
        raise _damaged(DECLARED, "options as texts", str(declared_options))
    return MaterializedTable(
        original_query=_query(options, ORIGINAL_QUERY, dialect) if ORIGINAL_QUERY in options else expanded,
        expanded_query=expanded,
        dialect=dialect,
        freshness=Freshness(interval=int(interval), unit=_choice(options, opt.MATERIALIZED_FRESHNESS_UNIT.key, TimeUnit)),
        default_freshness=declared.get(_DEFAULT_FRESHNESS) is True,
        logical_mode=_choice(options, opt.MATERIALIZED_LOGICAL_MODE.key, LogicalRefreshMode),
        refresh_mode=_choice(options, opt.MATERIALIZED_REFRESH_MODE.key, RefreshMode),
        fields=schema.fields,
        primary_key=schema.primary_keys,
        constraint=constraint if isinstance(constraint, str) else default_constraint(schema.primary_keys),
        partition_by=schema.partition_keys,
        comment=schema.comment,
        # A table is rescaled beside its definition.
        options={**{key: options.get(key, text) for key, text in declared_options.items()}, **layout_of(schema)},
    )


def layout_of(schema: TableSchema) -> dict[str, str]:
    """The options that say in which buckets the rows of a table lie, where that is not as in a table that says nothing of it."""
    options, keyed = schema.options, bool(schema.primary_keys)
    layout = {key: options[key] for key in LAYOUT if key in options}
    if layout.get(opt.BUCKET.key) == default_bucket(keyed=keyed):
        del layout[opt.BUCKET.key]
    return layout


def upkeep_of(schema: TableSchema) -> Upkeep:
    """The state of a materialized table. Raises FormatError for a damaged one."""
    options = schema.options
    summary, data = (options.get(key) for key in (opt.MATERIALIZED_HANDLER_DESCRIPTION.key, opt.MATERIALIZED_HANDLER_BYTES.key))
    handler = None
    if data is not None:
        try:
            handler = RefreshHandler(summary=summary or "", data=base64.b64decode(data, validate=True))
        except (binascii.Error, ValueError) as error:
            raise _damaged(opt.MATERIALIZED_HANDLER_BYTES.key, "base64", data) from error
    return Upkeep(
        status=_choice(options, opt.MATERIALIZED_REFRESH_STATUS.key, RefreshStatus),
        epoch=_number(options, EPOCH),
        since_ms=_number(options, SINCE),
        handler=handler,
    )


def options_of(definition: MaterializedTable, upkeep: Upkeep) -> dict[str, str]:
    """The options that carry both, without those that were declared."""
    declared = {
        _OPTIONS: dict(sorted(definition.options.items())),
        _CONSTRAINT: definition.constraint,
        _DEFAULT_FRESHNESS: definition.default_freshness,
    }
    return {
        opt.TYPE.key: MATERIALIZED_TABLE,
        opt.MATERIALIZED_DEFINITION_QUERY.key: definition.expanded_query,
        opt.MATERIALIZED_FRESHNESS.key: str(definition.freshness.interval),
        opt.MATERIALIZED_FRESHNESS_UNIT.key: definition.freshness.unit,
        opt.MATERIALIZED_LOGICAL_MODE.key: definition.logical_mode,
        opt.MATERIALIZED_REFRESH_MODE.key: definition.refresh_mode,
        ORIGINAL_QUERY: definition.original_query,
        DECLARED: json.dumps(declared, sort_keys=True),
        # A definition that does not say it is in Spark's words.
        **({} if definition.dialect is SqlDialect.SPARK else {DIALECT: definition.dialect.value}),
        **upkeep_options(upkeep),
    }


def upkeep_options(upkeep: Upkeep) -> dict[str, str]:
    """The options that carry how a table stands."""
    stored = {opt.MATERIALIZED_REFRESH_STATUS.key: upkeep.status.value, EPOCH: str(upkeep.epoch), SINCE: str(upkeep.since_ms)}
    if upkeep.handler is not None:
        stored |= {
            opt.MATERIALIZED_HANDLER_DESCRIPTION.key: upkeep.handler.summary,
            opt.MATERIALIZED_HANDLER_BYTES.key: base64.b64encode(upkeep.handler.data).decode("ascii"),
        }
    return stored


def default_constraint(primary_key: tuple[str, ...]) -> str | None:
    """The name of a primary key that was given none."""
    return f"PK_{'_'.join(primary_key)}" if primary_key else None


def _declared(text: str | None) -> dict[str, object]:
    if text is None:
        # Another engine made the table.
        return {}
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(DECLARED, "JSON", text) from error
    if not isinstance(content, dict):
        raise _damaged(DECLARED, "a JSON object", text)
    return content


def _text(options: Mapping[str, str], key: str) -> str:
    if key not in options:
        raise _damaged(key, "a text", "none")
    return options[key]


def _query(options: Mapping[str, str], key: str, dialect: SqlDialect) -> str:
    """A text that is one query, and acts nowhere: whoever writes into the warehouse may have written it."""
    text = _text(options, key)
    try:
        check_stored_query(text, dialect)
    except (InvalidInputError, UnsupportedError) as error:
        raise FormatError(
            f"the definition of the materialized table is not run: option {key}: {error.message}\nWhoever writes into the "
            "warehouse can write it. DROP MATERIALIZED TABLE it, and create it anew",
            kind="materialized-definition",
        ) from error
    return text


def _number(options: Mapping[str, str], key: str) -> int:
    text = options.get(key, "0")
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise _damaged(key, "a number", text)
    return int(text)


def _choice(options: Mapping[str, str], key: str, choices: type[E], folded: Callable[[str], str] = str.upper) -> E:
    text = folded(_text(options, key))
    try:
        return choices(text)
    except ValueError as error:
        raise _damaged(key, f"one of {', '.join(choices)}", text) from error


def _damaged(key: str, expected: str, value: str) -> FormatError:
    return FormatError(
        f"the definition of the materialized table is damaged: option {key}: expected {expected}, found {value!r:.100}; DROP "
        "MATERIALIZED TABLE it, and create it anew",
        kind="materialized-definition",
    )
