"""Applies schema changes to a table's schema, and refuses those that stored files or keys rule out.

    schema N + changes -> schema N+1        one pure function

A column is identified by its id. A new column takes the next id, ids are never used again, and everything else (name, place,
type, comment) may change: so files of every older schema stay readable. The rules:

* types only widen (:mod:`tablestore.types.evolution.widening`), because old files are read, not rewritten;
* a column that takes nulls cannot be made NOT NULL while the table holds data, because old rows may have nulls in it;
* primary key, partition and bucket key columns keep their type and stay: files are ordered, placed and named by their values.
  The primary key may be renamed, partition columns may not (their names are in directories);
* options that name a column follow its new name, and must be removed before it is dropped;
* constraints that name a column must be dropped before the column is dropped or renamed, and added again behind;
* options that stored files depend on (``bucket`` and others, :mod:`tablestore.types.evolution.optionchanges`) change only while
  there are no files;
* columns, options and comment of a materialized table change together with its definition: in an alteration that requires the
  epoch of the definition it goes from. Comments of columns are no part of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tablestore.errors import ConflictError, InvalidInputError, TablestoreError
from tablestore.options import (
    BUCKET,
    OWN_MATERIALIZED_PREFIX,
    TABLE_OPTIONS,
    is_materialized,
    is_table_option,
    option_text,
    other_spellings,
    refuse_two_spellings,
    validate_options,
)
from tablestore.types.evolution import checkchanges
from tablestore.types.evolution import columnchanges as columns
from tablestore.types.evolution.optionchanges import (
    check_against_data,
    check_never_changed,
    newly_combined,
    touches_layout,
    with_option,
)
from tablestore.types.evolution.schemachanges import (
    AddCheck,
    AddColumn,
    ChangeComment,
    ChangeDefault,
    ChangeNullability,
    ChangeType,
    DropCheck,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    RequireOption,
    SchemaChange,
    SetForeignOption,
    SetOption,
    SetTableComment,
)
from tablestore.types.newschema import check_schema
from tablestore.types.schema import TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolvedSchema:
    """The result of schema changes. ``schema`` is the next one. ``needs_empty_table``: it would have been refused if the table
    held data.

    ``options_before``: the old options under the new names of columns, to compare with the new ones. An option that is new,
    and says how versions of an old column combine, is in it with an empty value.
    """

    schema: TableSchema
    needs_empty_table: bool
    options_before: Mapping[str, str]


def evolve(
    schema: TableSchema,
    changes: Sequence[SchemaChange] | SchemaChange,
    *,
    has_data: bool,
    was_written: bool | None = None,
    time_millis: int,
    rescaling: bool = False,
) -> EvolvedSchema:
    """The schema after ``changes``, in their order, with the next id.

    ``has_data``: the newest snapshot has files; ``was_written``: some older one had (None: as the newest). ``rescaling``: the
    caller will rewrite the data, so ``bucket`` may change.
    Raises InvalidInputError, UnsupportedError, NotFoundError (no such column) or AlreadyExistsError (its new name is taken),
    ConflictError (an option that is required has another value).
    """
    state = columns.State(schema=schema, has_data=has_data, options_before=schema.options)
    change_list = _checked(changes)
    if is_materialized(schema.options) and not rescaling:
        _check_definition(change_list)
    options = {change.key for change in change_list if isinstance(change, SetOption)}
    refuse_two_spellings(options)
    for change in change_list:
        if isinstance(change, RemoveOption) and other_spellings(change.key) & options:
            # What is set takes the place of it.
            continue
        _APPLY[type(change)](state, change)
    evolved = replace(state.schema, id=schema.id + 1, time_millis=time_millis)
    before = {**state.options_before, BUCKET.key: evolved.options[BUCKET.key]} if rescaling else state.options_before
    if touches_layout(before, evolved.options):
        written = has_data if was_written is None else was_written
        check_against_data(before, evolved.options, has_data=has_data, was_written=written)
        state.needs_empty_table = True
    _check_result(schema, evolved)
    ids = {field.id for field in schema.fields}
    combined = newly_combined(state.options_before, evolved.options, [field.name for field in evolved.fields if field.id in ids])
    return EvolvedSchema(
        schema=evolved,
        needs_empty_table=state.needs_empty_table,
        options_before={**dict.fromkeys(combined, ""), **state.options_before},
    )


def same_content(one: TableSchema, other: TableSchema) -> bool:
    """True if two schemas differ in nothing but their ids and times."""
    return replace(one, id=other.id, time_millis=other.time_millis, version=other.version) == other


def _checked(changes: Sequence[SchemaChange] | SchemaChange) -> Sequence[SchemaChange]:
    if isinstance(changes, SchemaChange):
        return [changes]
    if isinstance(changes, str) or not isinstance(changes, Sequence):
        raise InvalidInputError(f"expected a list of changes such as [AddColumn('note', 'STRING')], found {changes!r:.200}")
    if not changes:
        raise InvalidInputError("expected at least one change, found none")
    for change in changes:
        if type(change) not in _APPLY:
            kinds = ", ".join(kind.__name__ for kind in _APPLY)
            raise InvalidInputError(f"expected a change (one of {kinds}), found {change!r:.200}")
    return changes


def _check_definition(changes: Sequence[SchemaChange]) -> None:
    """Refuse what changes a materialized table beside its definition. Raises InvalidInputError."""
    if any(isinstance(change, RequireOption) and change.key.startswith(OWN_MATERIALIZED_PREFIX) for change in changes):
        return
    other = next((change for change in changes if not isinstance(change, (ChangeComment, RequireOption))), None)
    if other is not None:
        raise InvalidInputError(
            f"{type(other).__name__} is not for a materialized table: its columns are those of its query, and change with it by "
            "ALTER MATERIALIZED TABLE … AS query; ALTER MATERIALIZED TABLE … SET ('key' = 'value') changes its options, and "
            "CREATE OR ALTER MATERIALIZED TABLE all of its definition (in Python env.execute_sql, on the command line tablestore "
            "sql)",
            kind="materialized-table",
        )


# -- the table


def _set_option(state: columns.State, change: SetOption) -> None:
    check_never_changed(change.key)
    value = option_text(change.value)
    option = TABLE_OPTIONS.get(change.key)
    if option is None or not isinstance(value, str):
        validate_options({change.key: value})
    else:
        # By itself; how it goes with the others is judged when all are set.
        option.parse(value)
    state.change(options=with_option(state.schema, change))


def _remove_option(state: columns.State, change: RemoveOption) -> None:
    check_never_changed(change.key)
    options = state.schema.options
    # An option goes in whatever spelling it was set.
    stored = options.keys() & {change.key, *other_spellings(change.key)}
    if not stored:
        if change.key not in TABLE_OPTIONS and not other_spellings(change.key):
            # Misspelt: says so, and names the nearest one.
            validate_options({change.key: ""})
        return
    if change.key == BUCKET.key:
        raise InvalidInputError(
            "the option bucket is always written out, because an absent one means something else to other engines; set it to a "
            "number instead",
            kind="invalid-option",
        )
    state.change(options={key: text for key, text in options.items() if key not in stored})


def _set_foreign_option(state: columns.State, change: SetForeignOption) -> None:
    if is_table_option(change.key):
        raise InvalidInputError(f"{change.key!r:.100} is an option of tablestore: SetOption sets it", kind="invalid-option")
    others = {key: text for key, text in state.schema.options.items() if key != change.key}
    state.change(options=others if change.value is None else {**others, change.key: change.value})


def _require_option(state: columns.State, change: RequireOption) -> None:
    current = state.schema.options.get(change.key)
    if current != change.value:
        raise ConflictError(
            f"the option {change.key!r} was altered meanwhile: expected {change.value!r:.100}, found {current!r:.100}; nothing was "
            "altered: read the table again, and repeat",
            kind="option-changed",
        )


def _set_table_comment(state: columns.State, change: SetTableComment) -> None:
    columns.check_text(change.comment, "comment")
    state.change(comment=change.comment)


_APPLY: dict[type, Callable[[columns.State, Any], None]] = {
    AddColumn: columns.add,
    DropColumn: columns.drop,
    RenameColumn: columns.rename,
    MoveColumn: columns.move,
    ChangeType: columns.change_type,
    ChangeNullability: columns.change_nullability,
    ChangeComment: columns.change_comment,
    ChangeDefault: columns.change_default,
    SetOption: _set_option,
    RemoveOption: _remove_option,
    SetForeignOption: _set_foreign_option,
    SetTableComment: _set_table_comment,
    RequireOption: _require_option,
    AddCheck: checkchanges.add,
    DropCheck: checkchanges.drop,
}


def _check_result(old: TableSchema, new: TableSchema) -> None:
    """The whole of the new schema must be one that could be created. What others made odd before is not held against it."""
    try:
        check_schema(old)
    except TablestoreError:
        pass
    else:
        check_schema(new)
    checkchanges.check_all(old, new)
    try:
        validate_options(_known(old.options))
    except TablestoreError:
        return
    validate_options(_known(new.options))


def _known(options: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in options.items() if is_table_option(key)}
