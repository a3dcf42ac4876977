"""Schema changes: one small value for each way to alter a table.

    catalog.alter_table("shop.orders", [
        ts.AddColumn("note", "STRING", after="price"),
        ts.RenameColumn("price", to="net_price"),
        ts.ChangeType("quantity", pa.int64()),
        ts.SetOption("snapshot.num-retained.max", "100"),
    ])

A dot in a name leads into nested values: ``address.city`` is a field of a ROW, ``items.element`` the elements of an ARRAY,
``scores.value`` the values of a MAP, and so on (``items.element.price``). A column of exactly that name comes first. A tuple of
names is never split at dots.

The changes are applied in the order given, all or none; :mod:`tablestore.types.evolution.evolve` says what each may do.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TypeAlias

import pyarrow as pa

from tablestore.types.datatypes import ArrayType, AtomicType, MapType, MultisetType, RowType, VariantType

ColumnName: TypeAlias = str | tuple[str, ...]
ColumnType: TypeAlias = str | pa.DataType | AtomicType | ArrayType | MapType | MultisetType | RowType | VariantType


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new column, last unless ``first``, ``after`` or ``before`` (a name in the same ROW) says where.

    ``type`` is SQL text (``"DECIMAL(10, 2)"``) or a pyarrow type. Rows that are there already have null in it: ``default`` is what
    writers put in place of a null from now on.
    """

    column: ColumnName
    type: ColumnType
    _: KW_ONLY
    comment: str | None = None
    default: str | None = None
    first: bool = False
    after: str | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class DropColumn:
    """Drop a column or nested field. Its id is never used again; time travel still shows it."""

    column: ColumnName


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Give a column or nested field the name ``to``. Keys and options that name the column follow."""

    column: ColumnName
    _: KW_ONLY
    to: str


@dataclass(frozen=True, slots=True)
class MoveColumn:
    """Put a column or nested field first, last, or beside another one of the same ROW: exactly one of the four."""

    column: ColumnName
    _: KW_ONLY
    first: bool = False
    last: bool = False
    after: str | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeType:
    """Widen the type of a column, nested field, element or value; whether it takes nulls stays as it is."""

    column: ColumnName
    type: ColumnType


@dataclass(frozen=True, slots=True)
class ChangeNullability:
    """Let a column take nulls, or (only while the table is empty) make it NOT NULL."""

    column: ColumnName
    _: KW_ONLY
    nullable: bool


@dataclass(frozen=True, slots=True)
class ChangeComment:
    """Set the comment of a column or nested field; None removes it."""

    column: ColumnName
    comment: str | None


@dataclass(frozen=True, slots=True)
class ChangeDefault:
    """Set what writers put in place of a null, as text; None for nothing. Stored rows do not change."""

    column: ColumnName
    default: str | None


@dataclass(frozen=True, slots=True)
class SetOption:
    """Set a table option; ``change-tracking`` also for a ``partition``, given as values of some or all partition columns."""

    key: str
    value: str | int | float
    _: KW_ONLY
    partition: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class RemoveOption:
    """Set a table option back to its default."""

    key: str


@dataclass(frozen=True, slots=True)
class SetForeignOption:
    """Set an option that only other engines know, which is kept as it is; None removes it."""

    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class SetTableComment:
    """Set the comment of the table; None removes it."""

    comment: str | None


@dataclass(frozen=True, slots=True)
class RequireOption:
    """Change nothing, unless a table option still has this value: a read-modify-write of options lands on what it read."""

    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class AddCheck:
    """A condition that every row holds from now on, such as ``AddCheck("positive", "price > 0")``; the rows that are there are
    looked at first. Where it is unknown (a comparison with NULL) a row passes."""

    name: str
    condition: str


@dataclass(frozen=True, slots=True)
class DropCheck:
    """Ask a condition of no row any more."""

    name: str


SchemaChange: TypeAlias = (
    AddColumn
    | DropColumn
    | RenameColumn
    | MoveColumn
    | ChangeType
    | ChangeNullability
    | ChangeComment
    | ChangeDefault
    | SetOption
    | RemoveOption
    | SetForeignOption
    | SetTableComment
    | RequireOption
    | AddCheck
    | DropCheck
)
