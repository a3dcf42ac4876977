"""Translates schemas and schema changes between the protocol's JSON and ours.

A schema of the protocol is a schema file without version, id and time: columns as :mod:`tablestore.types.typestring` writes them.
Options that only other engines know (``sink.parallelism``) are kept as they are, so that those engines find them: they say nothing
of what files mean. One that may hold a secret is refused, because all who read the table see it.
"""

from functools import partial

from tablestore.errors import InvalidInputError
from tablestore.format.sealed import JsonObject
from tablestore.options import is_table_option
from tablestore.redaction import is_telling
from tablestore.server.protocol.errorresponse import ErrorResponse, RequestRefused, bad_request
from tablestore.server.protocol.exchange import json_flag, json_inside, json_items, understood
from tablestore.types.datatypes import DataType, Field
from tablestore.types.evolution.schemachanges import (
    AddColumn,
    ChangeComment,
    ChangeDefault,
    ChangeNullability,
    ChangeType,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetForeignOption,
    SetOption,
    SetTableComment,
)
from tablestore.types.schema import TableSchema
from tablestore.types.typestring import field_to_json, parse_field, parse_type

# Options of clients that name a place or a catalog: of the session that sent them, not of the table.
_OF_CLIENTS = frozenset({"path", "owner", "createdAt", "createdBy", "updatedAt", "updatedBy"})
_LONGEST_OPTION = 10_000


def schema_json(schema: TableSchema) -> dict[str, object]:
    """The schema as clients read it."""
    return {
        "fields": [field_to_json(field) for field in schema.fields],
        "partitionKeys": list(schema.partition_keys),
        "primaryKeys": list(schema.primary_keys),
        "options": dict(sorted(schema.options.items())),
        "comment": schema.comment,
    }


def parse_columns(source: JsonObject, key: str) -> tuple[Field, ...]:
    """The columns under a key; none if it is absent. Raises RequestRefused."""
    return tuple(understood(partial(parse_field, item.content)) for item in json_items(source, key))


def parse_options(source: JsonObject) -> tuple[dict[str, str], dict[str, str]]:
    """The options of a new table that tablestore knows, and those that only other engines know. Raises RequestRefused."""
    options = {key: value for key, value in understood(lambda: source.text_map("options")).items() if key not in _OF_CLIENTS}
    known = {key: value for key, value in options.items() if is_table_option(key)}
    others = {key: value for key, value in options.items() if key not in known}
    for key, value in others.items():
        check_foreign_option(key, value)
    return known, others


def check_foreign_option(key: str, value: str) -> None:
    """Raises RequestRefused for an option of other engines that no table may keep."""
    if is_telling(key):
        raise bad_request(
            f"the option {key!r:.100} may hold a secret, and all who read the table see it; give it to the client instead"
        )
    if len(key) + len(value) > _LONGEST_OPTION:
        raise bad_request(f"the option {key!r:.100} has {len(key) + len(value)} characters, and may have {_LONGEST_OPTION}")


def parse_changes(source: JsonObject, schema: TableSchema) -> list[SchemaChange]:
    """The changes of a request to alter a table. Raises RequestRefused."""
    changes: list[SchemaChange] = []
    for item in json_items(source, "changes"):
        changes += understood(partial(_changes_of, item, schema))
    if not changes:
        raise bad_request(f"{source.name}: expected at least one change under 'changes', found none")
    return changes


def _option_change(key: str, value: str | None) -> SchemaChange:
    if key in _OF_CLIENTS:
        raise bad_request(f"the option {key!r} is no option of a table: it is what the service says about it")
    if is_table_option(key):
        return RemoveOption(key) if value is None else SetOption(key, value)
    if value is not None:
        check_foreign_option(key, value)
    return SetForeignOption(key, value)


def _changes_of(item: JsonObject, schema: TableSchema) -> list[SchemaChange]:
    match action := item.text("action"):
        case "setOption":
            return [_option_change(item.text("key"), item.text("value"))]
        case "removeOption":
            return [_option_change(item.text("key"), None)]
        case "updateComment":
            return [SetTableComment(item.optional_text("comment"))]
        case "addColumn":
            return [_added(item)]
        case "renameColumn":
            return [RenameColumn(_column(item), to=item.text("newName"))]
        case "dropColumn":
            return [DropColumn(_column(item))]
        case "updateColumnComment":
            return [ChangeComment(_column(item), item.optional_text("newComment"))]
        case "updateColumnDefaultValue":
            return [ChangeDefault(_column(item), item.optional_text("newDefaultValue"))]
        case "updateColumnType":
            return _retyped(item, schema)
        case "updateColumnNullability":
            return [ChangeNullability(_column(item), nullable=json_flag(item, "newNullability", default=True))]
        case "updateColumnPosition":
            return [_moved(json_inside(item, "move"))]
        case "dropPrimaryKey":
            raise RequestRefused(
                ErrorResponse(code=501, message="the primary key of a table stays: make another table, and write its rows")
            )
    raise bad_request(f"{item.name}: expected one of the actions of the protocol, found {action!r:.80}")


def _added(item: JsonObject) -> AddColumn:
    data_type = parse_type(item.content.get("dataType"))
    if not data_type.nullable:
        raise InvalidInputError(
            f"column {'.'.join(_column(item))!r:.200} cannot be added as NOT NULL: rows that are there have NULL in it",
            kind="schema",
        )
    comment = item.optional_text("comment")
    if item.content.get("move") is None:
        return AddColumn(_column(item), data_type, comment=comment)
    place = _place(json_inside(item, "move"))
    return AddColumn(_column(item), data_type, comment=comment, first=place.first, after=place.after, before=place.before)


def _retyped(item: JsonObject, schema: TableSchema) -> list[SchemaChange]:
    column, data_type = _column(item), parse_type(item.content.get("newDataType"))
    changes: list[SchemaChange] = [ChangeType(column, data_type)]
    if not json_flag(item, "keepNullability", default=False) and len(column) == 1:
        current = next((field.type for field in schema.fields if field.name == column[0]), None)
        if current is not None and _differ(current, data_type):
            changes.append(ChangeNullability(column, nullable=data_type.nullable))
    return changes


def _differ(current: DataType, wanted: DataType) -> bool:
    return current.nullable != wanted.nullable


def _moved(move: JsonObject) -> MoveColumn:
    return _place(move)


def _place(move: JsonObject) -> MoveColumn:
    kind, name, other = move.text("type"), move.text("fieldName"), move.optional_text("referenceFieldName")
    if kind in ("FIRST", "LAST"):
        return MoveColumn((name,), first=kind == "FIRST", last=kind == "LAST")
    if kind in ("AFTER", "BEFORE") and other is not None:
        return MoveColumn((name,), after=other if kind == "AFTER" else None, before=other if kind == "BEFORE" else None)
    raise bad_request(f"{move.name}: expected FIRST, LAST, or AFTER or BEFORE with a referenceFieldName, found {kind!r:.80}")


def _column(item: JsonObject) -> tuple[str, ...]:
    names = item.text_list("fieldNames")
    if not names:
        item.refuse("fieldNames", "a list with the names that lead to a column", list(names))
    return names
