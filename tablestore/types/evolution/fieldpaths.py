"""Finds and edits a column or nested field of a schema by its path.

A path is a tuple of names: a column, then fields of nested ROWs, ``element`` for what an ARRAY holds and ``value`` for what a MAP
holds. Everything is a value: an edit returns new fields and leaves the old ones as they are.

    ("items", "element", "price")      items ARRAY<ROW<price …>>
"""

from collections.abc import Callable
from dataclasses import replace

from tablestore.errors import InvalidInputError, NotFoundError, UnsupportedError
from tablestore.names import did_you_mean
from tablestore.types.datatypes import ArrayType, DataType, Field, MapType, RowType
from tablestore.types.evolution.schemachanges import ColumnName
from tablestore.types.typestring import type_to_sql

Fields = tuple[Field, ...]
Path = tuple[str, ...]
ELEMENT, VALUE = "element", "value"


def parse_path(column: ColumnName, fields: Fields) -> Path:
    """The path of a name. Raises InvalidInputError for anything else."""
    if isinstance(column, str):
        path = (column,) if column in {field.name for field in fields} else tuple(column.split("."))
    elif isinstance(column, tuple) and all(isinstance(name, str) for name in column):
        path = column
    else:
        raise InvalidInputError(f"expected a column name such as 'price' or 'address.city', found {column!r}", kind="invalid-name")
    if not path or any(not name or name.isspace() for name in path):
        raise InvalidInputError(f"expected a column name such as 'price' or 'address.city', found {column!r}", kind="invalid-name")
    return path


def dotted(path: Path) -> str:
    """A path for people."""
    return ".".join(path)


def find_field(fields: Fields, name: str, *, inside: Path = ()) -> int:
    """The position of a name. Raises NotFoundError that names the nearest one."""
    for position, field in enumerate(fields):
        if field.name == name:
            return position
    names = [field.name for field in fields]
    where = f" in {dotted(inside)!r}" if inside else ""
    raise NotFoundError(
        f"no column {name!r}{where}{did_you_mean(name, names)} (known: {', '.join(names)})",
        kind="unknown-column",
    )


def edit_fields(fields: Fields, parent: Path, edit: Callable[[Fields], Fields]) -> Fields:
    """The fields with ``edit`` applied to those of the ROW at ``parent``; to the columns themselves if that is empty."""
    if not parent:
        return edit(fields)

    def edit_row(data_type: DataType) -> DataType:
        if not isinstance(data_type, RowType):
            raise InvalidInputError(
                f"{dotted(parent)!r} is {type_to_sql(data_type)}, which has no fields; only a ROW does"
                f"{_way_in(data_type)}. A column whose own name holds a dot is given as a tuple of names",
                kind="no-row",
            )
        return replace(data_type, fields=edit(data_type.fields))

    return edit_type(fields, parent, edit_row)


def edit_type(fields: Fields, path: Path, edit: Callable[[DataType], DataType]) -> Fields:
    """The fields with ``edit`` applied to the type at ``path``."""
    return _edit_field(fields, path, 0, edit)


def type_at(fields: Fields, path: Path) -> DataType:
    """The type at ``path``. Raises NotFoundError."""
    types: list[DataType] = []

    def keep(data_type: DataType) -> DataType:
        types.append(data_type)
        return data_type

    edit_type(fields, path, keep)
    return types[0]


def edit_field(fields: Fields, path: Path, edit: Callable[[Field], Field]) -> Fields:
    """The fields with ``edit`` applied to the column or nested field at ``path``."""
    *parent, name = path

    def change(siblings: Fields) -> Fields:
        position = find_field(siblings, name, inside=tuple(parent))
        return (*siblings[:position], edit(siblings[position]), *siblings[position + 1 :])

    return edit_fields(fields, tuple(parent), change)


def _edit_field(fields: Fields, path: Path, depth: int, edit: Callable[[DataType], DataType]) -> Fields:
    position = find_field(fields, path[depth], inside=path[:depth])
    field = fields[position]
    changed = replace(field, type=_edit_part(field.type, path, depth + 1, edit))
    return (*fields[:position], changed, *fields[position + 1 :])


def _edit_part(data_type: DataType, path: Path, depth: int, edit: Callable[[DataType], DataType]) -> DataType:
    if depth == len(path):
        return edit(data_type)
    match data_type:
        case RowType():
            return replace(data_type, fields=_edit_field(data_type.fields, path, depth, edit))
        case ArrayType() if path[depth] == ELEMENT:
            return replace(data_type, element=_edit_part(data_type.element, path, depth + 1, edit))
        case MapType() if path[depth] == VALUE:
            return replace(data_type, value=_edit_part(data_type.value, path, depth + 1, edit))
        case MapType() if path[depth] == "key":
            raise UnsupportedError(
                f"{dotted(path)!r} is a map key: stored keys cannot be altered; add a new column instead", kind="map-key"
            )
        case _:
            raise NotFoundError(
                f"no {path[depth]!r} in {dotted(path[:depth])!r}, which is {type_to_sql(data_type)}{_way_in(data_type)}",
                kind="unknown-column",
            )


def _way_in(data_type: DataType) -> str:
    match data_type:
        case ArrayType():
            return f"; what it holds is called {ELEMENT!r}"
        case MapType():
            return f"; its values are called {VALUE!r}"
        case _:
            return ""
