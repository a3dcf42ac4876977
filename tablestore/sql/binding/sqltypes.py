"""Names Spark's types of expressions, nested ones included, and translates them from and to those of tables and of sqlglot.

None stands wherever a type is not known.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from sqlglot import exp
from sqlglot.errors import SqlglotError

from tablestore.types.datatypes import (
    BINARY_ROOTS,
    MAX_PRECISION,
    TEXT_ROOTS,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VariantType,
    as_map,
    is_finer_than_micros,
)

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type by its ``name`` in Spark.

    ``precision`` and ``scale`` are those of a decimal. ``parts``: the element of an array, the key and the value of a map, the
    fields of a struct, whose names ``fields`` has. ``is_fine``: a timestamp that counts nanoseconds where it is stored; to Spark it
    is like any other. ``is_of_months``: an interval of years and months, and not of days and what is shorter.
    """

    name: str
    precision: int = 0
    scale: int = 0
    parts: "tuple[SqlType | None, ...]" = ()
    fields: tuple[str, ...] = ()
    is_fine: bool = field(default=False, compare=False)
    is_of_months: bool = field(default=False, compare=False)

    @property
    def is_integer(self) -> bool:
        return self.name in _DIGITS

    @property
    def is_float(self) -> bool:
        return self.name in ("float", "double")

    @property
    def is_decimal(self) -> bool:
        return self.name == "decimal"

    @property
    def is_number(self) -> bool:
        return self.is_integer or self.is_float or self.is_decimal

    @property
    def is_nested(self) -> bool:
        return self.name in ("array", "map", "struct")

    @property
    def as_decimal(self) -> "SqlType":
        """The decimal that holds the values of an integer; a decimal is one already."""
        return self if self.is_decimal else decimal(_DIGITS[self.name], 0)

    @property
    def has_numbers(self) -> bool:
        """True if it is a number, or a part of it is one."""
        return self.is_number or any(part is not None and part.has_numbers for part in self.parts)

    @property
    def has_fine(self) -> bool:
        """True if it is a timestamp that counts nanoseconds, or a part of it is one."""
        return self.is_fine or any(part is not None and part.has_fine for part in self.parts)

    @property
    def has_months(self) -> bool:
        """True if it is an interval of years and months, or a part of it is one."""
        return self.is_of_months or any(part is not None and part.has_months for part in self.parts)

    @property
    def has_variant(self) -> bool:
        """True if it is a VARIANT, or a part of it is one."""
        return self == VARIANT or any(part is not None and part.has_variant for part in self.parts)

    @property
    def is_known(self) -> bool:
        """True if the types of all of its parts are known."""
        return all(part is not None and part.is_known for part in self.parts)

    def field(self, name: str) -> "SqlType | None":
        """The type of a field of a struct, regardless of case."""
        for field_name, part in zip(self.fields, self.parts, strict=True):
            if field_name.casefold() == name.casefold():
                return part
        return None

    def __str__(self) -> str:
        if self.is_decimal:
            return f"DECIMAL({self.precision}, {self.scale})"
        if self == VARIANT:
            return "VARIANT"
        if not self.is_nested:
            return self.name.upper()
        parts = ["?" if part is None else str(part) for part in self.parts]
        if self.name == "struct":
            parts = [f"{name}: {part}" for name, part in zip(self.fields, parts, strict=True)]
        return f"{self.name.upper()}<{', '.join(parts)}>"


Type: TypeAlias = "SqlType | None"

VOID, BOOLEAN = SqlType("void"), SqlType("boolean")
TINYINT, SMALLINT, INT, BIGINT = (SqlType(name) for name in _DIGITS)
FLOAT, DOUBLE = SqlType("float"), SqlType("double")
STRING, BINARY = SqlType("string"), SqlType("binary")
DATE, TIME, TIMESTAMP, TIMESTAMP_NTZ = SqlType("date"), SqlType("time"), SqlType("timestamp"), SqlType("timestamp_ntz")
INTERVAL = SqlType("interval")
INTERVAL_OF_MONTHS = SqlType("interval", is_of_months=True)


def decimal(precision: int, scale: int) -> SqlType:
    """A DECIMAL; digits that it cannot have are cut off."""
    return SqlType("decimal", min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def array(element: Type) -> SqlType:
    """The type of arrays of an element."""
    return SqlType("array", parts=(element,))


def map_of(key: Type, value: Type) -> SqlType:
    """The type of maps."""
    return SqlType("map", parts=(key, value))


def struct(**fields: Type) -> SqlType:
    """The type of structs with these fields."""
    return struct_of(tuple(fields), tuple(fields.values()))


def struct_of(names: tuple[str, ...], parts: tuple[Type, ...]) -> SqlType:
    """The type of structs with fields of these names and types."""
    return SqlType("struct", parts=parts, fields=names)


VARIANT = struct(value=BINARY, metadata=BINARY)
"""The type of Spark's VARIANT here: its binary form."""


def type_of(data_type: DataType) -> SqlType:
    """The type of a column of a table."""
    match data_type:
        case ArrayType():
            return array(type_of(data_type.element))
        case MapType() | MultisetType():
            entries = as_map(data_type)
            return map_of(type_of(entries.key), type_of(entries.value))
        case VariantType():
            return VARIANT
        case RowType():
            return struct_of(
                tuple(field.name for field in data_type.fields), tuple(type_of(field.type) for field in data_type.fields)
            )
        case AtomicType(root=TypeRoot.DECIMAL):
            return decimal(data_type.precision or 0, data_type.scale or 0)
        case AtomicType(root=TypeRoot.TIMESTAMP):
            return replace(TIMESTAMP_NTZ, is_fine=is_finer_than_micros(data_type))
        case AtomicType(root=TypeRoot.TIMESTAMP_LTZ):
            return replace(TIMESTAMP, is_fine=is_finer_than_micros(data_type))
    if data_type.root in TEXT_ROOTS:
        return STRING
    return BINARY if data_type.root in BINARY_ROOTS else SqlType(data_type.root.value.lower())


_OF_SQLGLOT = {
    **dict.fromkeys((exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR, exp.DType.NVARCHAR, exp.DType.NCHAR), STRING),
    **dict.fromkeys((exp.DType.BINARY, exp.DType.VARBINARY, exp.DType.BLOB), BINARY),
    **dict.fromkeys((exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ), TIMESTAMP),
    **dict.fromkeys((exp.DType.UUID, exp.DType.JSON, exp.DType.ENUM), STRING),
    exp.DType.BOOLEAN: BOOLEAN, exp.DType.TINYINT: TINYINT, exp.DType.SMALLINT: SMALLINT, exp.DType.INT: INT,
    exp.DType.BIGINT: BIGINT, exp.DType.FLOAT: FLOAT, exp.DType.DOUBLE: DOUBLE, exp.DType.DATE: DATE, exp.DType.TIME: TIME,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ, exp.DType.NULL: VOID, exp.DType.INTERVAL: INTERVAL, exp.DType.VARIANT: VARIANT,
    # DuckDB's own: as they come out (``rowtypes``).
    exp.DType.UTINYINT: SMALLINT, exp.DType.USMALLINT: INT, exp.DType.UINT: BIGINT, exp.DType.UBIGINT: decimal(20, 0),
    exp.DType.INT128: BIGINT, exp.DType.TIMESTAMP_S: TIMESTAMP_NTZ, exp.DType.TIMESTAMP_MS: TIMESTAMP_NTZ,
    exp.DType.TIMESTAMP_NS: replace(TIMESTAMP_NTZ, is_fine=True),
}  # fmt: skip


def written_type(to: exp.DataType, *, plain_timestamp: SqlType = TIMESTAMP) -> Type:
    """A type as it stands in a query. ``plain_timestamp``: what TIMESTAMP means, which in DuckDB has no time zone."""
    match to.this:
        case exp.DType.TIMESTAMP:
            return plain_timestamp
        case exp.DType.DECIMAL:
            numbers = [int(part.name) for part in to.expressions]
            precision, scale = (*numbers, 0)[:2] if numbers else (10, 0)
            return decimal(precision, scale)
        case exp.DType.ARRAY | exp.DType.LIST if len(to.expressions) == 1:
            return array(_part(to.expressions[0], plain_timestamp))
        case exp.DType.MAP if len(to.expressions) == 2:
            key, value = (_part(part, plain_timestamp) for part in to.expressions)
            return map_of(key, value)
        case exp.DType.STRUCT if all(isinstance(part, exp.ColumnDef) for part in to.expressions):
            parts = tuple(_part(part.kind, plain_timestamp) for part in to.expressions)
            return struct_of(tuple(part.name for part in to.expressions), parts)
        case _:
            return _OF_SQLGLOT.get(to.this)


def _part(to: exp.Expr | None, plain_timestamp: SqlType) -> Type:
    return written_type(to, plain_timestamp=plain_timestamp) if isinstance(to, exp.DataType) else None


def engine_type(name: str) -> Type:
    """A type of DuckDB's by its name."""
    if name == '"NULL"':
        return VOID
    if name == "TIMESTAMPTZ_NS":
        return replace(TIMESTAMP, is_fine=True)
    try:
        return written_type(exp.DataType.build(name, dialect="duckdb"), plain_timestamp=TIMESTAMP_NTZ)
    except (ValueError, SqlglotError):
        return None


def engine_words(data_type: SqlType) -> exp.DataType:
    """A type all of whose parts are known, for a cast in DuckDB; timestamps count microseconds."""
    match data_type.name:
        case "decimal":
            numbers = [exp.DataTypeParam(this=exp.Literal.number(digits)) for digits in (data_type.precision, data_type.scale)]
            return exp.DataType(this=exp.DType.DECIMAL, expressions=numbers)
        case "array" | "map":
            root = exp.DType.ARRAY if data_type.name == "array" else exp.DType.MAP
            return exp.DataType(this=root, expressions=_parts(data_type, engine_words), nested=True)
        case "struct":
            fields = [
                exp.ColumnDef(this=exp.to_identifier(name, quoted=True), kind=part)
                for name, part in zip(data_type.fields, _parts(data_type, engine_words), strict=True)
            ]
            return exp.DataType(this=exp.DType.STRUCT, expressions=fields, nested=True)
        case name:
            return exp.DataType(this=_IN_WORDS[name])


def _parts(data_type: SqlType, translate: Callable[[SqlType], exp.DataType]) -> list[exp.DataType]:
    return [translate(part) for part in data_type.parts if part is not None]


_IN_WORDS = {
    "boolean": exp.DType.BOOLEAN, "tinyint": exp.DType.TINYINT, "smallint": exp.DType.SMALLINT, "int": exp.DType.INT,
    "bigint": exp.DType.BIGINT, "float": exp.DType.FLOAT, "double": exp.DType.DOUBLE, "string": exp.DType.TEXT,
    "binary": exp.DType.BLOB, "date": exp.DType.DATE, "timestamp": exp.DType.TIMESTAMPTZ, "timestamp_ntz": exp.DType.TIMESTAMP,
    "time": exp.DType.TIME,
}  # fmt: skip
