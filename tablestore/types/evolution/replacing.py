"""Builds the next schema of a table whose definition and rows are all replaced at once. Pure.

A column keeps its id where the old one of its name can be read as the new one: so files of older snapshots, which a rollback brings
back, show their values under the new definition too. Any other column is a new one.
"""

from collections.abc import Mapping
from dataclasses import replace

from tablestore.types.datatypes import AtomicType, DataType, Field, with_new_ids, with_nullable
from tablestore.types.evolution.optionchanges import touches_layout
from tablestore.types.evolution.widening import is_same, keeps_values
from tablestore.types.schema import TableSchema

REPLACES_AFTER_OPTION = "tablestore.replaces-after-snapshot"
"""On the schema of a replacement, and no other: it is in force once a snapshot above this id has it. See :func:`is_in_force`."""

REPLACED_BY_OPTION = "tablestore.replaced-by"
"""Beside it: the mark of the job that replaces, which alone may take the schema back."""

OF_REPLACEMENTS = frozenset({REPLACES_AFTER_OPTION, REPLACED_BY_OPTION})


def is_in_force(schema: TableSchema, *, snapshot_id: int, schema_id: int) -> bool:
    """True if the newest schema counts: that of a replacement only with its rows, so that nobody sees others through it.

    ``snapshot_id`` and ``schema_id``: those of the newest snapshot, whose schema is never older than that of one before it.
    """
    after = schema.options.get(REPLACES_AFTER_OPTION, "")
    return not after.isdecimal() or (snapshot_id > int(after) and schema_id >= schema.id)


def without_condition(schema: TableSchema) -> TableSchema:
    """The schema without the options that make a replacement wait for its rows: a base for further schemas."""
    if OF_REPLACEMENTS.isdisjoint(schema.options):
        return schema
    return replace(schema, options={key: value for key, value in schema.options.items() if key not in OF_REPLACEMENTS})


def keeps_layout(old: TableSchema, new: TableSchema) -> bool:
    """True if files of ``new`` may lie beside those of ``old``: the same key, partitioning and buckets."""

    def placing(schema: TableSchema) -> list[object]:
        fields = [schema.field(name) for name in (*schema.primary_keys, *schema.partition_keys)]
        return [schema.primary_keys, schema.partition_keys, *((field.name, with_nullable(field.type, True)) for field in fields)]

    return placing(old) == placing(new) and not touches_layout(old.options, new.options)


def replacing_schema(old: TableSchema, new: TableSchema, *, kept_options: Mapping[str, str]) -> TableSchema:
    """The schema after ``old`` with columns, options and comment of ``new``, and ``kept_options`` where it does not name them."""
    before = {field.name: field for field in old.fields}
    highest = old.highest_field_id

    def next_id() -> int:
        nonlocal highest
        highest += 1
        return highest

    def column(field: Field) -> Field:
        old = before.get(field.name)
        if old is not None and is_same(_without_ids(old.type), _without_ids(field.type)):
            return replace(field, id=old.id, type=with_nullable(old.type, field.type.nullable))
        if old is not None and isinstance(old.type, AtomicType) and isinstance(field.type, AtomicType):  # noqa: SIM102
            if keeps_values(old.type, field.type):
                return replace(field, id=old.id)
        return replace(field, id=next_id(), type=with_new_ids(field.type, next_id))

    fields = tuple(column(field) for field in new.fields)
    return replace(
        new,
        id=old.id + 1,
        fields=fields,
        highest_field_id=highest,
        options={**kept_options, **new.options},
        time_millis=max(new.time_millis, old.time_millis),
    )


def _without_ids(data_type: DataType) -> DataType:
    return with_new_ids(data_type, lambda: 0)
