"""Describes a materialized table, what it declares and its state, for DESCRIBE EXTENDED and SHOW CREATE MATERIALIZED TABLE."""

from collections.abc import Iterator

from tablestore.environment.inspection.parsedback import checked_text
from tablestore.environment.inspection.showcreate import quoted_text, with_options
from tablestore.environment.materialized.due import due
from tablestore.environment.materialized.freshness import LogicalRefreshMode
from tablestore.environment.materialized.lasterror import last_error
from tablestore.environment.materialized.materializedtable import default_constraint
from tablestore.environment.materialized.refreshing import last_refresh, wall_time, zone_of
from tablestore.environment.materialized.storing import Found
from tablestore.options import holds_no_secret
from tablestore.redaction import shown_options
from tablestore.types.typestring import quote_identifier


def materialized_rows(found: Found, now_ms: int) -> Iterator[tuple[str, str, object]]:
    """The name, type and value of each row of DESCRIBE EXTENDED."""
    definition, upkeep, last, zone = found.definition, found.upkeep, last_refresh(found), zone_of(found)
    yield "original-query", "String", definition.original_query
    yield "expanded-query", "String", definition.expanded_query
    yield "freshness", "String", definition.freshness
    yield "logical-refresh-mode", "String", definition.logical_mode
    yield "refresh-mode", "String", definition.refresh_mode
    yield "refresh-status", "String", upkeep.status
    yield "refresh-handler", "String", upkeep.handler.summary if upkeep.handler is not None else None
    yield "last-refresh", "Timestamp", None if last is None else wall_time(last.at_ms, zone)
    yield "last-refresh-mode", "String", None if last is None else last.mode
    yield "last-refresh-reason", "String", None if last is None else last.reason
    when = due(found, last, now_ms)
    yield "refresh-due", "Timestamp", None if when is None else wall_time(when, zone)
    error = last_error(found)
    yield "last-error", "String", None if error is None else error.message
    yield "last-error-time", "Timestamp", None if error is None else wall_time(error.at_ms, zone)


def create_materialized_statement(found: Found) -> str:
    """A statement that makes the same table. Raises FormatError where none does."""
    definition = found.definition
    lines = [f"CREATE MATERIALIZED TABLE {found.path.quoted}"]
    named = definition.constraint != default_constraint(definition.primary_key)
    if definition.primary_key:
        name = f"CONSTRAINT {quote_identifier(definition.constraint or '')} " if named else ""
        lines[0] += f" (\n  {name}PRIMARY KEY ({_names(definition.primary_key)}) NOT ENFORCED\n)"
    if definition.comment is not None:
        lines.append(f"COMMENT {quoted_text(definition.comment)}")
    if definition.partition_by:
        lines.append(f"PARTITIONED BY ({_names(definition.partition_by)})")
    lines += with_options(definition.options).split("\n")[1:]
    if not definition.default_freshness:
        lines.append(f"FRESHNESS = {definition.freshness}")
    if definition.logical_mode is not LogicalRefreshMode.AUTOMATIC:
        lines.append(f"REFRESH_MODE = {definition.logical_mode}")
    query = definition.original_query
    wanted = {
        "the kind": "CreateMaterializedTable",
        "the name": (found.path.catalog, found.path.database, found.path.name),
        "the primary key": definition.primary_key,
        "the constraint": definition.primary_key and named and definition.constraint,
        "the comment": definition.comment is not None and (definition.comment,),
        "the partitions": definition.partition_by,
        "the options": shown_options(definition.options, holds_no_secret),
        "the freshness": not definition.default_freshness
        and (str(definition.freshness.interval), definition.freshness.unit.value),
        "the refresh mode": definition.logical_mode is not LogicalRefreshMode.AUTOMATIC and definition.logical_mode.value,
        "the query": query.strip().rstrip(";").rstrip(),
    }
    return checked_text("\n".join([*lines, f"AS {query}"]), found.path.plain.quoted, wanted)


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(quote_identifier, names))
