"""Applies changes of columns to a schema, one function for each kind of change.

All edit a :class:`State`, which :mod:`tablestore.types.evolution.evolve` creates and finishes. The rules stand there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tablestore.errors import AlreadyExistsError, InvalidInputError, UnsupportedError
from tablestore.options import CHECK_PREFIX
from tablestore.types.arrowtypes import from_arrow_type
from tablestore.types.datatypes import (
    TEXT_ROOTS,
    ArrayType,
    AtomicType,
    DataType,
    Field,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VariantType,
    with_new_ids,
    with_nullable,
)
from tablestore.types.defaults import default_scalar
from tablestore.types.evolution.fieldpaths import Fields, Path, dotted, edit_field, edit_fields, edit_type, find_field, parse_path
from tablestore.types.evolution.optionchanges import naming_options, renamed_options, without_column
from tablestore.types.evolution.schemachanges import (
    AddColumn,
    ChangeComment,
    ChangeDefault,
    ChangeNullability,
    ChangeType,
    ColumnType,
    DropColumn,
    MoveColumn,
    RenameColumn,
)
from tablestore.types.evolution.widening import is_same, keeps_conditions, keeps_values
from tablestore.types.filter.constraints import naming_constraints
from tablestore.types.schema import TableSchema
from tablestore.types.typestring import type_to_sql
from tablestore.types.userschema.schematext import parse_type_text


@dataclass(slots=True, kw_only=True)
class State:
    """The schema while it changes. ``options_before``: the old options under the new names of columns, to compare with."""

    schema: TableSchema
    has_data: bool
    options_before: Mapping[str, str]
    needs_empty_table: bool = False

    @property
    def fields(self) -> Fields:
        return self.schema.fields

    def change(self, **parts: Any) -> None:
        """Replace parts of the schema."""
        self.schema = replace(self.schema, **parts)

    def next_id(self) -> int:
        self.change(highest_field_id=self.schema.highest_field_id + 1)
        return self.schema.highest_field_id

    def path(self, change: Any) -> Path:
        return parse_path(change.column, self.fields)

    def roles(self, path: Path) -> list[str]:
        """The roles a column has in the table besides holding values, such as key or partition column."""
        if len(path) > 1:
            return []
        columns = {
            "partition column": self.schema.partition_keys,
            "primary key column": self.schema.primary_keys,
            "bucket-key column": self.schema.bucket_keys,
        }
        return [role for role, names in columns.items() if path[0] in names]

    def need_empty(self, why: str, way_out: str) -> None:
        if self.has_data:
            raise InvalidInputError(f"{why} while the table holds data; {way_out}", kind="not-empty")
        self.needs_empty_table = True


def add(state: State, change: AddColumn) -> None:
    """Apply an AddColumn."""
    path = state.path(change)
    parent, name = path[:-1], path[-1]
    new_id = state.next_id()
    data_type = _type_of(change.type, state.next_id)
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

    state.change(fields=edit_fields(state.fields, parent, insert))


def drop(state: State, change: DropColumn) -> None:
    """Apply a DropColumn."""
    path = state.path(change)
    if roles := state.roles(path):
        raise UnsupportedError(
            f"column {dotted(path)!r} is a {roles[0]} and cannot be dropped: the stored files are placed and ordered by it; create "
            "a table without it and copy the rows into it",
            kind="key-column",
        )
    if len(path) == 1:
        find_field(state.fields, path[0])
        if keys := list(naming_options(state.schema.options, path[0])):
            raise InvalidInputError(
                f"column {path[0]!r} cannot be dropped while the option {keys[0]!r} names it; put "
                f"RemoveOption({keys[0]!r}), or SetOption with another column, before DropColumn({path[0]!r})",
                kind="column-in-option",
            )

        _check_unconstrained(state, path[0], "dropped", "DropColumn(…)")
        # Options about this column alone go with it, which changes nothing of what is left.
        state.options_before = without_column(state.options_before, path[0])

    def remove(siblings: Fields) -> Fields:
        position = find_field(siblings, path[-1], inside=path[:-1])
        if len(siblings) == 1:
            raise InvalidInputError(
                f"{dotted(path)!r} is the last one left; drop {dotted(path[:-1]) or 'the table'!r} instead", kind="last-column"
            )
        return (*siblings[:position], *siblings[position + 1 :])

    state.change(fields=edit_fields(state.fields, path[:-1], remove))


def rename(state: State, change: RenameColumn) -> None:
    """Apply a RenameColumn; keys and options that name the column follow."""
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
    if len(path) == 1:
        find_field(state.fields, old)
        _check_unconstrained(state, old, "renamed", "RenameColumn(…), AddCheck(…)")

    def renamed(siblings: Fields) -> Fields:
        position = find_field(siblings, old, inside=path[:-1])
        _check_free(siblings, new, path[:-1])
        return (*siblings[:position], replace(siblings[position], name=new), *siblings[position + 1 :])

    state.change(fields=edit_fields(state.fields, path[:-1], renamed))
    if len(path) == 1:
        state.change(
            primary_keys=tuple(new if name == old else name for name in state.schema.primary_keys),
            options=renamed_options(state.schema.options, old, new),
        )
        state.options_before = renamed_options(state.options_before, old, new)


def move(state: State, change: MoveColumn) -> None:
    """Apply a MoveColumn."""
    path = state.path(change)
    parent, name = path[:-1], path[-1]
    if change.first + change.last + (change.after is not None) + (change.before is not None) != 1:
        raise InvalidInputError(f"expected exactly one of first, last, after and before to move {dotted(path)!r}, found {change!r}")

    def moved(siblings: Fields) -> Fields:
        position = find_field(siblings, name, inside=parent)
        if name in (change.after, change.before):
            raise InvalidInputError(f"column {dotted(path)!r} cannot be put beside itself; name another column")
        remaining = (*siblings[:position], *siblings[position + 1 :])
        place = _place(remaining, change, parent, default=len(remaining))
        return (*remaining[:place], siblings[position], *remaining[place:])

    state.change(fields=edit_fields(state.fields, parent, moved))


def change_type(state: State, change: ChangeType) -> None:
    """Apply a ChangeType."""
    path = state.path(change)
    find_field(state.fields, path[0])
    if roles := state.roles(path):
        raise UnsupportedError(
            f"column {dotted(path)!r} is a {roles[0]} and keeps its type: the stored files are placed and ordered by its values; "
            "create a table with the new type and copy the rows into it",
            kind="key-column",
        )
    new = _type_of(change.type, state.next_id)
    naming = list(naming_options(state.schema.options, path[0])) if len(path) == 1 else []

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
        if naming and new.root is TypeRoot.VARCHAR and old.root not in TEXT_ROOTS:
            raise UnsupportedError(
                f"column {dotted(path)!r} cannot become text while the option {naming[0]!r} names it: texts are ordered and "
                "combined otherwise than the values that they spell. Name another column there first, or widen it to "
                "another number",
                kind="column-in-option",
            )
        if not keeps_conditions(old, new) and len(path) == 1:
            _check_unconstrained(state, path[0], "given another kind of type", "ChangeType(…), AddCheck(…)")
        return with_nullable(new, old.nullable)

    state.change(fields=edit_type(state.fields, path, widened))
    if len(path) == 1:
        # The default may not suit the widened type any more.
        default_scalar(state.fields[find_field(state.fields, path[0])])


def change_nullability(state: State, change: ChangeNullability) -> None:
    """Apply a ChangeNullability."""
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

    state.change(fields=edit_type(state.fields, path, changed))


def change_comment(state: State, change: ChangeComment) -> None:
    """Apply a ChangeComment."""
    check_text(change.comment, "comment")
    state.change(fields=edit_field(state.fields, state.path(change), lambda f: replace(f, description=change.comment)))


def change_default(state: State, change: ChangeDefault) -> None:
    """Apply a ChangeDefault."""
    path = state.path(change)
    check_text(change.default, "default")
    if len(path) > 1:
        raise UnsupportedError(f"{dotted(path)!r} is a nested field; only columns take a default", kind="nested-default")
    state.change(fields=edit_field(state.fields, path, lambda f: replace(f, default_value=change.default)))
    default_scalar(state.fields[find_field(state.fields, path[0])])


def check_text(text: object, what: str) -> None:
    """Refuse what is neither text nor None."""
    if text is not None and not isinstance(text, str):
        raise InvalidInputError(f"expected a text or None as {what}, found {text!r:.100}")


def _check_unconstrained(state: State, column: str, action: str, way_on: str) -> None:
    """Refuse a change of a column that constraints look at."""
    if names := naming_constraints(state.schema.options, state.fields, column):
        raise InvalidInputError(
            f"column {column!r} cannot be {action} while the constraint {names[0]!r} looks at it: CHECK "
            f"({state.schema.options[f'{CHECK_PREFIX}{names[0]}']:.200}); alter both together, "
            f"DropCheck({names[0]!r}), {way_on}; in SQL DROP CONSTRAINT before it, and ADD CONSTRAINT behind it",
            kind="column-in-constraint",
        )


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


def _type_of(column_type: ColumnType, next_id: Callable[[], int]) -> DataType:
    """The logical type that a change names, with fresh ids from ``next_id`` for the fields of nested rows, in pre-order."""
    if isinstance(column_type, str):
        return with_new_ids(parse_type_text(column_type), next_id)
    if isinstance(column_type, pa.DataType):
        return from_arrow_type(column_type, True, next_id)
    if isinstance(column_type, (AtomicType, ArrayType, MapType, MultisetType, RowType, VariantType)):
        return with_new_ids(column_type, next_id)
    raise InvalidInputError(f'expected a type as SQL text ("DECIMAL(10, 2)") or a pyarrow type, found {column_type!r:.100}')
