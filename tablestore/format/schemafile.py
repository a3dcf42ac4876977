"""Schema files: one JSON file per version of a table's schema.

Version 3 is written. Older ones lack options that used to have other defaults: version 1 means one bucket, versions 1
and 2 mean ORC files. Keys of newer writers are ignored. Two keys of ours make a file checkable:
``tablestore.checksum`` over the whole object, and ``tablestore.version``, so that damage to the name of one still shows.
"""

from tablestore.errors import FormatError, TablestoreError
from tablestore.format.limits import DEFAULT_LIMITS, Limits, json_within_limits, parse_json_bounded
from tablestore.format.paths import parse_schema_id
from tablestore.format.sealed import CHECKSUM_KEY, JsonObject, object_checksum, refuse_unsealed, verify_checksum
from tablestore.types.datatypes import Field, row_types
from tablestore.types.schema import SCHEMA_VERSION, TableSchema
from tablestore.types.typestring import field_to_json, parse_field

# Stored, never renumbered or renamed.
VERSION_KEY = "tablestore.version"
SEAL_VERSION = 1

_KEYS = frozenset(
    ("version", "id", "fields", "highestFieldId", "partitionKeys", "primaryKeys", "options", "comment", "timeMillis")
) | {VERSION_KEY, CHECKSUM_KEY}


def encode_schema(schema: TableSchema) -> bytes:
    """The schema's file, in version 3; always the same bytes for the same value.

    Raises InvalidInputError (kind ``limit``) for one that could not be read again.
    """
    name = f"schema {schema.id}"
    described = protocol_schema(schema)
    content: dict[str, object] = {
        "version": SCHEMA_VERSION,
        "id": schema.id,
        "fields": described.pop("fields"),
        "highestFieldId": schema.highest_field_id,
        **described,
    }
    content["timeMillis"] = schema.time_millis
    content[VERSION_KEY] = SEAL_VERSION
    json_within_limits(content, name)
    content[CHECKSUM_KEY] = object_checksum(content)
    return json_within_limits(content, name, indent=2)


def protocol_schema(schema: TableSchema) -> dict[str, object]:
    """The schema as the REST protocol describes tables ("Schema"): the columns, keys, options and comment of its file, in order."""
    described: dict[str, object] = {
        "fields": [field_to_json(field) for field in schema.fields],
        "partitionKeys": list(schema.partition_keys),
        "primaryKeys": list(schema.primary_keys),
        "options": dict(sorted(schema.options.items())),
    }
    if schema.comment is not None:
        # Never null: Java would show the text "null".
        described["comment"] = schema.comment
    return described


def decode_schema(data: bytes, name: str, limits: Limits = DEFAULT_LIMITS) -> TableSchema:
    """The schema in the file ``name`` (a path ending in ``schema-<id>``).

    Raises FormatError: kind ``checksum`` for damage, ``too-new`` for a newer version, ``swapped`` if the file is another schema
    than its name says, else ``corrupt``. Raises UnsupportedError for a column type that tablestore does not have.
    """
    source = JsonObject(parse_json_bounded(data, name, limits), name)
    _verify(source)
    version = source.integer("version") if "version" in source.content else 1
    if not 1 <= version <= SCHEMA_VERSION:
        raise FormatError(
            f"{name}: expected a schema of version 1 to {SCHEMA_VERSION}, found version {version}. Use a newer "
            "tablestore to read it.",
            kind="too-new",
        )
    options = source.text_map("options")
    if version == 1:
        options.setdefault("bucket", "1")
    if version < 3:
        options.setdefault("file.format", "orc")
    schema = TableSchema(
        version=version,
        id=source.integer("id"),
        fields=_fields(source),
        highest_field_id=source.integer("highestFieldId"),
        partition_keys=source.text_list("partitionKeys"),
        primary_keys=source.text_list("primaryKeys"),
        options=options,
        comment=source.optional_text("comment"),
        time_millis=source.optional_integer("timeMillis") or 0,
    )
    _check(schema, source)
    return schema


def _verify(source: JsonObject) -> None:
    content, name = source.content, source.name
    if CHECKSUM_KEY not in content:
        if VERSION_KEY in content:
            refuse_unsealed(name, CHECKSUM_KEY)
        return
    sealed = {key: value for key, value in content.items() if key != CHECKSUM_KEY}
    verify_checksum(sealed, content[CHECKSUM_KEY], name)
    unknown = content.keys() - _KEYS
    if unknown or content.get(VERSION_KEY) != SEAL_VERSION:
        raise FormatError(
            f"{name}: expected the keys of {VERSION_KEY} {SEAL_VERSION}, found {content.get(VERSION_KEY)} and the keys "
            f"{sorted(unknown)}. Use a newer tablestore to read it.",
            kind="too-new",
        )


def _fields(source: JsonObject) -> tuple[Field, ...]:
    fields = source.content.get("fields")
    if not isinstance(fields, list) or not fields:
        source.refuse("fields", "a list of columns", fields)
    try:
        return tuple(parse_field(item) for item in fields)
    except TablestoreError as error:
        raise type(error)(f"{source.name}: {error.message}", kind=error.kind) from error


def _check(schema: TableSchema, source: JsonObject) -> None:
    promised = parse_schema_id(source.name)
    if promised is not None and promised != schema.id:
        raise FormatError(
            f"{source.name}: expected schema {promised}, found schema {schema.id}. The file was swapped or renamed; "
            "restore it from a copy.",
            kind="swapped",
        )
    if schema.id < 0:
        source.refuse("id", "an id from 0", schema.id)
    names = schema.field_names
    if len(set(names)) != len(names):
        source.refuse("fields", "columns with different names", list(names))
    nested = (part for field in schema.fields for row in row_types(field.type) for part in row.fields)
    ids = [field.id for field in (*schema.fields, *nested)]
    if len(set(ids)) != len(ids) or max(ids) > schema.highest_field_id:
        source.refuse("fields", f"different field ids up to {schema.highest_field_id}", ids)
    for key, columns in (("partitionKeys", schema.partition_keys), ("primaryKeys", schema.primary_keys)):
        if len(set(columns)) != len(columns) or not set(columns) <= set(names):
            source.refuse(key, f"some of the columns {list(names)}", list(columns))
    if schema.is_keyed and not schema.trimmed_primary_keys:
        source.refuse("primaryKeys", f"a column beside {list(schema.partition_keys)}, of the partitions", list(schema.primary_keys))
