"""Finds the parts that written rows lack and whose stored values would be lost if NULL stood in their place.

    deduplicate      every column: the new row takes the place of the stored one
    first-row        none: a stored row stays as it is
    partial-update   none but the members of a sequence group whose order is given, they are taken as they come
    aggregation      none but those of last_value, for which NULL is a value
    sequence.field   always: NULL is the smallest, so the row would lose against the stored one

Retractions lack less where rows replace each other: the key says which row goes. Where rows are computed, what they take back.

A field that a given ROW lacks is such a part under every engine but first-row: a ROW is replaced as a whole. In an append table
nothing can be lost. Pure.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field

import pyarrow as pa

from tablestore.errors import InvalidInputError
from tablestore.lsm.functions.mergefunction import MergeFunction
from tablestore.types.arrays import Kinds
from tablestore.types.arrowtypes import is_list_like
from tablestore.types.datatypes import ArrayType, DataType, Field, MapType, MultisetType, RowType, VariantType, as_row
from tablestore.types.evolution.fieldpaths import Path
from tablestore.types.rowkind import RowKind


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingValues:
    """The values that a write would lose. ``paths``: those lost to rows that add. ``retracted``: by kind the columns whose
    values retractions take back."""

    paths: tuple[Path, ...] = ()
    retracted: Mapping[RowKind, tuple[str, ...]] = dataclass_field(default_factory=dict)

    def check(self, where: str) -> None:
        """Raise InvalidInputError that names the missing columns and the ways out, if there are any."""
        if not self.paths:
            return
        names = ", ".join(path_text(path) for path in self.paths)
        raise InvalidInputError(
            f"the rows for {where} lack {names}: NULL would take the place of what is stored there. Give all columns, or choose: "
            'missing_columns="keep" leaves what is stored, which is looked up; missing_columns="null" writes NULL, or the default '
            "of the column (--missing-columns; in Spark the option missing-columns, in SQL SET 'table.insert.missing-columns'). In "
            "a table with merge-engine = partial-update rows set only what they hold",
            kind="missing-columns",
        )

    def check_retractions(self, kinds: Kinds, where: str) -> None:
        """Raise InvalidInputError if there are retractions among ``kinds`` that lack the values they take back."""
        for kind, names in self.retracted.items():
            if names and (kinds == kind).any():
                raise InvalidInputError(
                    f"rows of kind {kind.symbol} for {where} lack {', '.join(names)}: their values are taken back from what "
                    'is stored, and NULL takes back nothing. Give the whole row as it was; missing_columns="null" takes back NULL',
                    kind="missing-columns",
                )

    def check_keepable(self, where: str) -> None:
        """Raise InvalidInputError for missing parts that cannot be looked up: those of lists and maps, which have no identity."""
        if inside := [path_text(path) for path in self.paths if any(part.startswith("[") for part in path)]:
            raise InvalidInputError(
                f"the rows for {where} lack {', '.join(inside)}: which stored element of a list or map stands for which given one "
                'is not known, so missing_columns="keep" cannot look it up. Give these fields',
                kind="missing-columns",
            )


def path_text(path: Path) -> str:
    """``address.city``, ``items[].price``."""
    return "".join(part if part.startswith("[") or not place else f".{part}" for place, part in enumerate(path))


def lost_to_nulls(function: MergeFunction | None, fields: Sequence[Field], row_schema: pa.Schema) -> MissingValues:
    """The values that rows of ``row_schema`` would lose in a table of ``fields``; ``function`` None is an append table."""
    if function is None or function.engine == "first-row":
        return MissingValues()
    names = frozenset(row_schema.names)
    replaced = _replaced_columns(function, fields, names) | {field.name for field in function.sequence_fields}
    paths: list[Path] = []
    for field in fields:
        if field.name in names:
            # ``conform`` refuses a column that is given twice.
            place = row_schema.names.index(field.name)
            paths += [(field.name, *path) for path in _missing_fields(field.type, row_schema.field(place).type)]
        elif field.name in replaced:
            paths.append((field.name,))
    retractions = (RowKind.UPDATE_BEFORE, RowKind.DELETE)
    return MissingValues(paths=tuple(paths), retracted={kind: _retracted(function, kind, names) for kind in retractions})


def _retracted(function: MergeFunction, kind: RowKind, names: Collection[str]) -> tuple[str, ...]:
    """The columns without which a retraction takes nothing back, or not at its place. Those of some functions may be missing, as in
    the row that it takes back."""
    retracted = function.retracted_columns(kind)
    missing = retracted.difference(names)
    ordering = {field.name for field in function.sequence_fields}
    return tuple(sorted(missing if missing == retracted else missing & ordering))


def _replaced_columns(function: MergeFunction, fields: Sequence[Field], names: Collection[str]) -> set[str]:
    """Columns of which a null in the new row would be taken."""
    if function.engine == "deduplicate":
        return {field.name for field in fields} - function.key_columns
    replaced = {
        name for name, column_function in function.functions if column_function.name == "last_value" and not function.group_of(name)
    }
    for group in function.groups:
        if not set(names).isdisjoint(group.fields):
            combined = {name for name, column_function in function.functions if column_function.name != "last_value"}
            replaced |= {*group.fields, *group.columns} - combined
    return replaced


def _missing_fields(data_type: DataType, arrow_type: pa.DataType) -> Iterator[Path]:
    arrow_type = _plain(arrow_type)
    match data_type:
        case RowType() | VariantType() if pa.types.is_struct(arrow_type):
            inside = {arrow_type.field(place).name: arrow_type.field(place).type for place in range(arrow_type.num_fields)}
            for field in as_row(data_type).fields:
                if field.name not in inside:
                    yield (field.name,)
                else:
                    yield from ((field.name, *path) for path in _missing_fields(field.type, inside[field.name]))
        case ArrayType() if is_list_like(arrow_type):
            yield from (("[]", *path) for path in _missing_fields(data_type.element, arrow_type.value_type))
        case MapType() if pa.types.is_map(arrow_type):
            yield from (("[key]", *path) for path in _missing_fields(data_type.key, arrow_type.key_type))
            yield from (("[value]", *path) for path in _missing_fields(data_type.value, arrow_type.item_type))
        case MultisetType() if pa.types.is_map(arrow_type):
            yield from (("[]", *path) for path in _missing_fields(data_type.element, arrow_type.key_type))


def _plain(arrow_type: pa.DataType) -> pa.DataType:
    """The type of the values, without extension, dictionary or run-end encoding."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _plain(arrow_type.storage_type)
    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        return _plain(arrow_type.value_type)
    return arrow_type
