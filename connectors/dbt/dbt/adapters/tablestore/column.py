"""Describes a column: its name, and its type in words that declarations and queries share."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from dbt.adapters.base.column import Column

_SIZED_TEXT = re.compile(r"(?:VAR)?CHAR\((\d+)\)", re.IGNORECASE)
_TEXTS = {"string", "text", "varchar"}
_WHOLE_NUMBERS = {"tinyint", "smallint", "int", "integer", "bigint", "long", "short", "byte"}
_FLOATS = {"float", "double", "real", "float4", "float8"}
# A text of no declared length.
_UNBOUNDED = 2**31 - 1


@dataclass
class TablestoreColumn(Column):
    """A column; ``dtype`` is its whole type, with length or precision."""

    # As dbt's macros name types.
    TYPE_LABELS: ClassVar[dict[str, str]] = {
        "STRING": "STRING",
        "TEXT": "STRING",
        "TIMESTAMP": "TIMESTAMP",
        "FLOAT": "DOUBLE",
        "INTEGER": "INT",
        "BOOLEAN": "BOOLEAN",
    }

    @property
    def quoted(self) -> str:
        """The name in backticks."""
        return "`{}`".format(self.column.replace("`", "``"))

    @property
    def data_type(self) -> str:
        """The whole type."""
        return self.dtype

    def is_string(self) -> bool:
        """True for texts, of a declared length or not."""
        return self.dtype.lower() in _TEXTS or _SIZED_TEXT.fullmatch(self.dtype) is not None

    def is_integer(self) -> bool:
        """True for whole numbers."""
        return self.dtype.lower() in _WHOLE_NUMBERS

    def is_float(self) -> bool:
        """True for floating point."""
        return self.dtype.lower() in _FLOATS

    def is_numeric(self) -> bool:
        """True for decimals."""
        return self.dtype.lower().startswith(("decimal", "numeric"))

    def string_size(self) -> int:
        """The most characters of a text."""
        match = _SIZED_TEXT.fullmatch(self.dtype)
        return int(match[1]) if match else _UNBOUNDED

    def can_expand_to(self, other_column: Column) -> bool:
        """True for a text column that may become as long as the other one."""
        return self.is_string() and other_column.is_string() and other_column.string_size() > self.string_size()

    @classmethod
    def string_type(cls, size: int) -> str:
        """The type of texts of so many characters."""
        return "STRING" if size >= _UNBOUNDED else f"VARCHAR({size})"

    @classmethod
    def numeric_type(cls, dtype: str, precision: Any, scale: Any) -> str:
        """A decimal type."""
        return "DECIMAL" if precision is None or scale is None else f"DECIMAL({precision},{scale})"
