"""Reads the merge options of a table, and checks them against its columns.

    merge-engine, ignore-delete, sequence.field, sequence.field.sort-order
    fields.<column>.aggregate-function | ignore-retract | distinct | list-agg-delimiter | nested-key | count-limit
    fields.default-aggregate-function
    fields.<column>.stats-mode, which every table may have (see :meth:`tablestore.options.TableOptions.stats_modes`)
    fields.<column>[,<column>].sequence-group = <columns>
    partial-update.remove-record-on-delete, partial-update.remove-record-on-sequence-group, aggregation.remove-record-on-delete

``merge_function`` accepts tables of other writers too, and refuses what would merge wrongly. ``check_column_options``
is for tables that are created or written: it also refuses what names nothing and so does nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tablestore import options as opt
from tablestore.errors import InvalidInputError
from tablestore.lsm.functions.columnfunctions import MISSING_SETTINGS, column_function, flag
from tablestore.lsm.functions.mergefunction import ColumnFunction, Keep, MergeFunction, SequenceField, SequenceGroup
from tablestore.names import did_you_mean, split_names
from tablestore.options import COLUMN_STATS_MODE, DEFAULT_FUNCTION, FIELDS_PREFIX, SEQUENCE_GROUP, TableOptions
from tablestore.types.datatypes import TEXT_ROOTS, AtomicType, Field
from tablestore.types.schema import TableSchema, check_known
from tablestore.types.typestring import type_to_sql

_KEEP: Mapping[str, Keep] = {"deduplicate": "last", "first-row": "first"}
_COMPUTING = ("partial-update", "aggregation")
_IGNORE_DELETE_KEYS = (
    "ignore-delete",
    "deduplicate.ignore-delete",
    "first-row.ignore-delete",
    "partial-update.ignore-delete",
)
_GROUP = f".{SEQUENCE_GROUP}"
_STATS_MODE = COLUMN_STATS_MODE.removeprefix(".")
_SETTINGS = ("aggregate-function", "ignore-retract", "distinct", "list-agg-delimiter", "nested-key", "count-limit", _STATS_MODE)


def merge_function(schema: TableSchema) -> MergeFunction:
    """The merge function of a keyed table.

    Raises InvalidInputError for an unknown engine or function (the nearest known one is named), a function that does not fit its
    column's type and options that contradict each other; UnsupportedError for functions of Paimon that tablestore lacks.
    """
    options = TableOptions(schema.options)
    engine = options.get("merge-engine", "deduplicate").strip().lower()
    if engine not in _KEEP and engine not in _COMPUTING:
        engines = (*_KEEP, *_COMPUTING)
        raise InvalidInputError(
            f"expected merge-engine to be one of {', '.join(engines)}, found {engine!r}{did_you_mean(engine, engines)}",
            kind="merge-engine",
        )
    function = MergeFunction(
        engine=engine,
        keep=_KEEP.get(engine, "last"),
        ignore_delete=any(flag(options, key) for key in _IGNORE_DELETE_KEYS),
        sequence_fields=_sequence_fields(schema, options, engine),
        key_columns=frozenset(schema.primary_keys),
        not_null=frozenset(field.name for field in schema.fields if not field.type.nullable),
    )
    if engine == "aggregation":
        function = replace(
            function,
            functions=tuple((field.name, _function(schema, options, field, function)) for field in _value_fields(schema)),
            remove_on_delete=options.flag(opt.AGGREGATION_REMOVE_RECORD),
        )
        if function.remove_on_delete:
            for column, function_of_column in function.functions:
                if function_of_column.ignore_retract:
                    raise _contradiction(opt.AGGREGATION_REMOVE_RECORD.key, f"{FIELDS_PREFIX}{column}.ignore-retract")
    elif engine == "partial-update":
        groups = tuple(_groups(schema, options))
        function = replace(
            function,
            groups=groups,
            functions=tuple(_group_functions(schema, options, replace(function, groups=groups))),
            remove_on_delete=options.flag(opt.PARTIAL_UPDATE_REMOVE_RECORD),
        )
        _check_removal(function, options)
    if function.sequence_fields:
        _check_sequence_types(schema, [field.name for field in function.sequence_fields], opt.SEQUENCE_FIELD.key)
    return function


def check_column_options(schema: TableSchema) -> None:
    """Refuse ``fields.…`` options that name unknown columns or settings, or give a key column a function; and a
    ``rowkind.field`` that is not a text column. In tables without a key only options that apply to them are checked."""
    if schema.is_keyed and (name := schema.options.get(opt.ROWKIND_FIELD.key)) is not None:
        check_known(schema, [name], f"option {opt.ROWKIND_FIELD.key}")
        kind = schema.field(name).type
        if not isinstance(kind, AtomicType) or kind.root not in TEXT_ROOTS:
            raise InvalidInputError(
                f"option {opt.ROWKIND_FIELD.key}: the column {name!r} has to hold text (+I, -U, +U or -D), found "
                f"{type_to_sql(kind)}",
                kind="invalid-option",
            )
    for key in schema.options:
        if not key.startswith(FIELDS_PREFIX) or key == DEFAULT_FUNCTION or key.endswith(_GROUP):
            continue
        column, _, setting = key.removeprefix(FIELDS_PREFIX).rpartition(".")
        if not schema.is_keyed and setting != _STATS_MODE:
            continue
        if setting not in _SETTINGS and setting not in MISSING_SETTINGS:
            raise InvalidInputError(
                f"unknown table option {key!r:.200}: expected {FIELDS_PREFIX}<column>. followed by one of {', '.join(_SETTINGS)}, "
                f"sequence-group{did_you_mean(setting, _SETTINGS)}",
                kind="unknown-option",
            )
        check_known(schema, [column], f"option {key}")
        if setting == "aggregate-function" and column in schema.primary_keys:
            raise InvalidInputError(
                f"option {key}: {column!r} is a key column, whose value is the same in all rows of a key; remove the option",
                kind="invalid-option",
            )


def _value_fields(schema: TableSchema) -> Iterator[Field]:
    return (field for field in schema.fields if field.name not in schema.primary_keys)


def _sequence_fields(schema: TableSchema, options: TableOptions, engine: str) -> tuple[SequenceField, ...]:
    names = split_names(options.get("sequence.field", ""))
    order = options.get("sequence.field.sort-order", "ascending").strip().lower()
    if order not in ("ascending", "descending"):
        raise InvalidInputError(f"expected sequence.field.sort-order to be ascending or descending, found {order!r}")
    if names and engine == "first-row":
        raise InvalidInputError("merge-engine first-row does not take sequence.field: the first arrival is kept")
    if len(set(names)) < len(names):
        raise InvalidInputError(f"option sequence.field names a column more than once: {', '.join(names)}", kind="invalid-option")
    for name in names:
        check_known(schema, [name], "option sequence.field")
        if options.get(f"{FIELDS_PREFIX}{name}.aggregate-function"):
            raise InvalidInputError(
                f"column {name!r} orders rows (sequence.field) and cannot have an aggregate function: it follows the last row; "
                f"remove {FIELDS_PREFIX}{name}.aggregate-function",
                kind="invalid-option",
            )
    return tuple(SequenceField(name=name, descending=order == "descending") for name in names)


def _function(schema: TableSchema, options: TableOptions, field: Field, function: MergeFunction) -> ColumnFunction:
    """The function of a column of an aggregation table."""
    if any(field.name == sequence.name for sequence in function.sequence_fields):
        return ColumnFunction(name="last_value")
    name = options.get(f"{FIELDS_PREFIX}{field.name}.aggregate-function") or options.get(DEFAULT_FUNCTION) or "last_non_null_value"
    return column_function(options, field, name)


def _group_functions(schema: TableSchema, options: TableOptions, function: MergeFunction) -> Iterator[tuple[str, ColumnFunction]]:
    """The functions of a partial-update table: of members of sequence groups only."""
    for field in _value_fields(schema):
        group = function.group_of(field.name)
        key = f"{FIELDS_PREFIX}{field.name}.aggregate-function"
        name = options.get(key) or options.get(DEFAULT_FUNCTION)
        if group is not None and field.name in group.fields:
            if options.get(key):
                raise InvalidInputError(
                    f"column {field.name!r} orders a sequence group and cannot have an aggregate function; remove {key}",
                    kind="invalid-option",
                )
        elif name and group is None and name != "last_non_null_value":
            raise InvalidInputError(
                f"in a partial-update table aggregate functions work inside sequence groups: put {field.name!r} into one "
                f"(fields.<sequence column>.sequence-group = {field.name}), or use last_non_null_value",
                kind="invalid-option",
            )
        elif name and group is not None:
            yield field.name, column_function(options, field, name)


def _groups(schema: TableSchema, options: TableOptions) -> Iterator[SequenceGroup]:
    removing = set(options.names(opt.PARTIAL_UPDATE_REMOVE_RECORD_GROUP))
    group_of_column: dict[str, str] = {}
    fields_of: set[str] = set()
    for key in sorted(options):
        if not (key.startswith(FIELDS_PREFIX) and key.endswith(_GROUP)):
            continue
        fields = split_names(key.removeprefix(FIELDS_PREFIX).removesuffix(_GROUP))
        columns = split_names(options[key])
        if not fields or not columns:
            raise InvalidInputError(
                f"option {key}: expected fields.<sequence columns>.sequence-group = <columns>, found {options[key]!r:.100}",
                kind="invalid-option",
            )
        for name in (*fields, *columns):
            check_known(schema, [name], f"option {key}")
            if name in schema.primary_keys:
                raise InvalidInputError(
                    f"option {key}: {name!r} is a key column, which no sequence group takes", kind="invalid-option"
                )
            if name in group_of_column:
                raise InvalidInputError(
                    f"column {name!r} is in more than one sequence group: {group_of_column[name]} and {key}; it can follow one "
                    "only",
                    kind="invalid-option",
                )
            group_of_column[name] = key
        _check_sequence_types(schema, fields, key)
        fields_of.update(fields)
        yield SequenceGroup(fields=fields, columns=columns, removes=not removing.isdisjoint(fields))
    if unknown := sorted(removing - fields_of):
        raise InvalidInputError(
            f"option {opt.PARTIAL_UPDATE_REMOVE_RECORD_GROUP.key} names {', '.join(unknown)}: no sequence group is ordered by it",
            kind="invalid-option",
        )


def _check_removal(function: MergeFunction, options: TableOptions) -> None:
    delete, group = opt.PARTIAL_UPDATE_REMOVE_RECORD.key, opt.PARTIAL_UPDATE_REMOVE_RECORD_GROUP.key
    removes_by_group = any(sequence_group.removes for sequence_group in function.groups)
    if function.remove_on_delete and function.ignore_delete:
        raise _contradiction(delete, "ignore-delete")
    if removes_by_group and function.ignore_delete:
        raise _contradiction(group, "ignore-delete")
    if function.remove_on_delete and function.groups:
        raise _contradiction(delete, "fields.<column>.sequence-group")


def _check_sequence_types(schema: TableSchema, names: tuple[str, ...] | list[str], key: str) -> None:
    for name in names:
        kind = schema.field(name).type
        if not isinstance(kind, AtomicType):
            raise InvalidInputError(
                f"option {key}: {name!r} of type {type_to_sql(kind)} cannot order rows; use a column without parts",
                kind="invalid-option",
            )


def _contradiction(one: str, other: str) -> InvalidInputError:
    return InvalidInputError(f"the options {one} and {other} contradict each other; keep one of them", kind="invalid-option")
