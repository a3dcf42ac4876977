"""What does a table's schema become when it is altered?

    schema N + changes -> schema N+1        one function, pure; it refuses or returns, and never alters anything

Columns are known by id. A new column takes the next id that was never used, a dropped one takes its id with it, and everything
else (name, place, type, comment) may change around an id: that is what lets files of every older schema be read. So:

* types only widen (:mod:`tablestore.types.widening`), because old files are read, not rewritten;
* a column that takes nulls cannot be made NOT NULL while the table holds data, because old rows may have nulls in it;
* primary key, partition and bucket key columns keep their type and stay: files are ordered, placed and named by their values.
  The primary key may be renamed, partition columns may not (their names are in directories);
* options that name a column follow its new name, and must be removed before it is dropped;
* what the stored files rest on (``bucket`` and others, :mod:`tablestore.types.optionchanges`) changes only while there are none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tablestore.errors import AlreadyExistsError, InvalidInputError, TablestoreError, UnsupportedError
from tablestore.options import BUCKET, TABLE_OPTIONS, validate_options
from tablestore.types.changes import (
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
    SetOption,
    SetTableComment,
)
from tablestore.types.datatypes import AtomicType, DataType, Field, with_nullable
from tablestore.types.defaults import default_scalar
from tablestore.types.fieldpaths import Fields, Path, dotted, edit_field, edit_fields, edit_type, find_field, parse_path
from tablestore.types.giventypes import type_of
from tablestore.types.optionchanges import (
    check_against_data,
    check_never_changed,
    naming_options,
    renamed_options,
    touches_layout,
)
from tablestore.types.schema import TableSchema, check_schema
from tablestore.types.typestring import type_to_sql
from tablestore.types.widening import is_same, keeps_values


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolution:
    """``schema`` is the next one. ``rests_on_emptiness``: it would have been refused if the table held data.

    ``options_before``: the old options under the new names of columns, for whoever compares them with the new ones.
    """

    schema: TableSchema
    rests_on_emptiness: bool
    options_before: Mapping[str, str]


def evolve(
    schema: TableSchema,
    changes: Sequence[SchemaChange] | SchemaChange,
    *,
    has_data: bool,
    time_millis: int,
    rescaling: bool = False,
) -> Evolution:
    """The schema after ``changes``, in their order, with the next id.

    ``rescaling``: whoever asks will rewrite the data for another ``bucket``, which is allowed then.
    Raises InvalidInputError, UnsupportedError, NotFoundError (no such column) or AlreadyExistsError (its new name is taken).
    """
    state = _State(
        schema=schema,
        has_data=has_data,
        fields=schema.fields,
        highest_field_id=schema.highest_field_id,
        primary_keys=schema.primary_keys,
        options=dict(schema.options),
        options_before=schema.options,
        comment=schema.comment,
    )
    for change in _checked(changes):
        _APPLY[type(change)](state, change)
    before = {**state.options_before, BUCKET.key: state.options[BUCKET.key]} if rescaling else state.options_before
    if touches_layout(before, state.options):
        if has_data:
            check_against_data(before, state.options)
        state.rests_on_emptiness = True
    made = replace(
        schema,
        id=schema.id + 1,
        fields=state.fields,
        highest_field_id=state.highest_field_id,
        primary_keys=state.primary_keys,
        options=state.options,
        comment=state.comment,
        time_millis=time_millis,
    )
    _check_result(schema, made)
    return Evolution(schema=made, rests_on_emptiness=state.rests_on_emptiness, options_before=state.options_before)


def same_content(one: TableSchema, other: TableSchema) -> bool:
    """Whether two schemas differ in nothing but their ids and times."""
    return replace(one, id=other.id, time_millis=other.time_millis, version=other.version) == other


@dataclass(slots=True, kw_only=True)
class _State:
    """The schema while it changes. ``options_before``: the old options under the new names of columns, to compare with."""

    schema: TableSchema
    has_data: bool
    fields: Fields
    highest_field_id: int
    primary_keys: tuple[str, ...]
    options: dict[str, str]
    options_before: Mapping[str, str]
    comment: str | None
    rests_on_emptiness: bool = False

    def next_id(self) -> int:
        self.highest_field_id += 1
        return self.highest_field_id

    def path(self, change: Any) -> Path:
        return parse_path(change.column, self.fields)

    def roles(self, path: Path) -> list[str]:
        """What a column is to the table besides holding values."""
        if len(path) > 1:
            return []
        named = {
            "partition column": self.schema.partition_keys,
            "primary key column": self.primary_keys,
            "bucket-key column": replace(self.schema, options=self.options, primary_keys=self.primary_keys).bucket_keys,
        }
        return [role for role, names in named.items() if path[0] in names]

    def need_empty(self, why: str, way_out: str) -> None:
        if self.has_data:
            raise InvalidInputError(f"{why} while the table holds data; {way_out}", kind="not-empty")
        self.rests_on_emptiness = True


def _checked(changes: Sequence[SchemaChange] | SchemaChange) -> Sequence[SchemaChange]:
    if isinstance(changes, SchemaChange):
        return [changes]
    if isinstance(changes, str) or not isinstance(changes, Sequence):
        raise InvalidInputError(f"expected a list of changes such as [AddColumn('note', 'STRING')], found {changes!r:.200}")
    if not changes:
        raise InvalidInputError("expected at least one change, found none")
    for change in changes:
        if type(change) not in _APPLY:
            known = ", ".join(kind.__name__ for kind in _APPLY)
            raise InvalidInputError(f"expected a change (one of {known}), found {change!r:.200}")
    return changes


# -- columns


def _add(state: _State, change: AddColumn) -> None:
    path = state.path(change)
    parent, name = path[:-1], path[-1]
    new_id = state.next_id()
    data_type = type_of(change.type, state.next_id)
    if not data_type.nullable:
        state.need_empty(
            f"column {dotted(path)!r} cannot be added as NOT NULL",
            "the rows that are there would have null in it: add it as nullable (with default=… writers fill it from now on)",
        )
    if change.default is not None and parent:
        raise UnsupportedError(f"{dotted(path)!r} is a nested field; only columns take a default", kind="nested-default")
    added = Field(id=new_id, name=name, type=data_type, description=change.comment, default_value=change.default)
    default_scalar(added)

    def insert(siblings: Fields) -> Fields:
        _check_free(siblings, name, parent)
        place = _place(siblings, change, parent, default=len(siblings))
        return (*siblings[:place], added, *siblings[place:])

    state.fields = edit_fields(state.fields, parent, insert)


def _drop(state: _State, change: DropColumn) -> None:
    path = state.path(change)
    if roles := state.roles(path):
        raise UnsupportedError(
            f"column {dotted(path)!r} is a {roles[0]} and cannot be dropped: the stored files are placed and ordered by it; create "
            "a table without it and copy the rows into it",
            kind="key-column",
        )
    if len(path) == 1:
        find_field(state.fields, path[0])
        if keys := list(naming_options(state.options, path[0])):
            raise InvalidInputError(
                f"column {path[0]!r} cannot be dropped while the option {keys[0]!r} names it; put "
                f"RemoveOption({keys[0]!r}), or SetOption with another column, before DropColumn({path[0]!r})",
                kind="column-in-option",
            )

    def remove(siblings: Fields) -> Fields:
        position = find_field(siblings, path[-1], inside=path[:-1])
        if len(siblings) == 1:
            raise InvalidInputError(
                f"{dotted(path)!r} is the last one left; drop {dotted(path[:-1]) or 'the table'!r} instead", kind="last-column"
            )
        return (*siblings[:position], *siblings[position + 1 :])

    state.fields = edit_fields(state.fields, path[:-1], remove)


def _rename(state: _State, change: RenameColumn) -> None:
    path = state.path(change)
    old, new = path[-1], change.to
    if not isinstance(new, str) or not new or new.isspace():
        raise InvalidInputError(f"expected a column name as the new name of {dotted(path)!r}, found {new!r}", kind="invalid-name")
    if "partition column" in state.roles(path):
        raise UnsupportedError(
            f"column {old!r} is a partition column and cannot be renamed: its name is in the directories of the stored files; "
            "create a table with the new name and copy the rows into it",
            kind="key-column",
        )

    def renamed(siblings: Fields) -> Fields:
        position = find_field(siblings, old, inside=path[:-1])
        _check_free(siblings, new, path[:-1])
        return (*siblings[:position], replace(siblings[position], name=new), *siblings[position + 1 :])

    state.fields = edit_fields(state.fields, path[:-1], renamed)
    if len(path) == 1:
        state.primary_keys = tuple(new if name == old else name for name in state.primary_keys)
        state.options = renamed_options(state.options, old, new)
        state.options_before = renamed_options(state.options_before, old, new)


def _move(state: _State, change: MoveColumn) -> None:
    path = state.path(change)
    parent, name = path[:-1], path[-1]
    if change.first + change.last + (change.after is not None) + (change.before is not None) != 1:
        raise InvalidInputError(f"expected exactly one of first, last, after and before to move {dotted(path)!r}, found {change!r}")

    def moved(siblings: Fields) -> Fields:
        position = find_field(siblings, name, inside=parent)
        if name in (change.after, change.before):
            raise InvalidInputError(f"column {dotted(path)!r} cannot be put beside itself; name another column")
        others = (*siblings[:position], *siblings[position + 1 :])
        place = _place(others, change, parent, default=len(others))
        return (*others[:place], siblings[position], *others[place:])

    state.fields = edit_fields(state.fields, parent, moved)


def _change_type(state: _State, change: ChangeType) -> None:
    path = state.path(change)
    find_field(state.fields, path[0])
    if roles := state.roles(path):
        raise UnsupportedError(
            f"column {dotted(path)!r} is a {roles[0]} and keeps its type: the stored files are placed and ordered by its values; "
            "create a table with the new type and copy the rows into it",
            kind="key-column",
        )
    new = type_of(change.type, state.next_id)

    def widened(old: DataType) -> DataType:
        if is_same(old, new):
            return old
        if not isinstance(old, AtomicType) or not isinstance(new, AtomicType):
            raise UnsupportedError(
                f"column {dotted(path)!r} cannot become {type_to_sql(new)}, it is {type_to_sql(old)}: change a nested type part by "
                "part, such as AddColumn('address.zip', …) or ChangeType('items.element', …)",
                kind="nested-type-change",
            )
        if not keeps_values(old, new):
            raise UnsupportedError(
                f"column {dotted(path)!r} cannot become {type_to_sql(with_nullable(new, True))}, it is "
                f"{type_to_sql(with_nullable(old, True))}: types are only widened, so that every stored value is read as it was "
                "written (or engines disagree on it). Add a column of the new type, fill it, and drop this one",
                kind="narrowing",
            )
        return with_nullable(new, old.nullable)

    state.fields = edit_type(state.fields, path, widened)
    if len(path) == 1:
        # What is widened may not suit its default any more.
        default_scalar(state.fields[find_field(state.fields, path[0])])


def _change_nullability(state: _State, change: ChangeNullability) -> None:
    path = state.path(change)
    if not isinstance(change.nullable, bool):
        raise InvalidInputError(f"expected True or False as nullable, found {change.nullable!r}")
    if change.nullable and "primary key column" in state.roles(path):
        raise UnsupportedError(
            f"column {dotted(path)!r} is a primary key column and stays NOT NULL; create a table with another key",
            kind="key-column",
        )

    def changed(old: DataType) -> DataType:
        if old.nullable and not change.nullable:
            state.need_empty(
                f"column {dotted(path)!r} cannot be made NOT NULL",
                "old rows may have null in it, and files are not rewritten: give it a default (ChangeDefault), or copy the rows "
                "into a table that has it NOT NULL",
            )
        return with_nullable(old, change.nullable)

    state.fields = edit_type(state.fields, path, changed)


def _change_comment(state: _State, change: ChangeComment) -> None:
    _check_text(change.comment, "comment")
    state.fields = edit_field(state.fields, state.path(change), lambda f: replace(f, description=change.comment))


def _change_default(state: _State, change: ChangeDefault) -> None:
    path = state.path(change)
    _check_text(change.default, "default")
    if len(path) > 1:
        raise UnsupportedError(f"{dotted(path)!r} is a nested field; only columns take a default", kind="nested-default")
    state.fields = edit_field(state.fields, path, lambda f: replace(f, default_value=change.default))
    default_scalar(state.fields[find_field(state.fields, path[0])])


# -- the table


def _set_option(state: _State, change: SetOption) -> None:
    check_never_changed(change.key)
    # One by one first: the message is about this option, whatever the others are.
    validate_options({change.key: change.value})
    state.options[change.key] = change.value


def _remove_option(state: _State, change: RemoveOption) -> None:
    check_never_changed(change.key)
    if change.key not in state.options:
        if change.key not in TABLE_OPTIONS:
            # Misspelt: says so, and names the nearest one.
            validate_options({change.key: ""})
        return
    if change.key == BUCKET.key:
        raise InvalidInputError(
            "the option bucket is always written out, because an absent one means something else to other engines; set it to a "
            "number instead",
            kind="invalid-option",
        )
    del state.options[change.key]


def _set_table_comment(state: _State, change: SetTableComment) -> None:
    _check_text(change.comment, "comment")
    state.comment = change.comment


_APPLY: dict[type, Callable[[_State, Any], None]] = {
    AddColumn: _add,
    DropColumn: _drop,
    RenameColumn: _rename,
    MoveColumn: _move,
    ChangeType: _change_type,
    ChangeNullability: _change_nullability,
    ChangeComment: _change_comment,
    ChangeDefault: _change_default,
    SetOption: _set_option,
    RemoveOption: _remove_option,
    SetTableComment: _set_table_comment,
}


# -- helpers


def _check_text(text: object, what: str) -> None:
    if text is not None and not isinstance(text, str):
        raise InvalidInputError(f"expected a text or None as {what}, found {text!r:.100}")


def _check_free(siblings: Fields, name: str, parent: Path) -> None:
    if any(sibling.name == name for sibling in siblings):
        where = f" in {dotted(parent)!r}" if parent else ""
        raise AlreadyExistsError(f"there is a column {name!r}{where} already; choose another name", kind="column-exists")


def _place(siblings: Fields, change: AddColumn | MoveColumn, parent: Path, *, default: int) -> int:
    if change.first + (change.after is not None) + (change.before is not None) > 1:
        raise InvalidInputError(f"expected at most one of first, after and before, found {change!r}")
    if change.first:
        return 0
    if change.after is not None:
        return find_field(siblings, change.after, inside=parent) + 1
    if change.before is not None:
        return find_field(siblings, change.before, inside=parent)
    return default


def _check_result(old: TableSchema, new: TableSchema) -> None:
    """The whole of the new schema must be one that could be created. What others made odd before is not held against it."""
    try:
        check_schema(old)
    except TablestoreError:
        pass
    else:
        check_schema(new)
    try:
        validate_options(old.options)
    except TablestoreError:
        return
    validate_options(new.options)
