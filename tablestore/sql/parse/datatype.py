"""Parses the types of columns, in the standard's, Flink's and Spark's spelling.

    type    = name [(n [, n])] [WITH LOCAL TIME ZONE | WITHOUT TIME ZONE]
            | ARRAY<type> | MULTISET<type> | MAP<type, type> | ROW<field, …> | STRUCT<field, …>       also with ( )
            | type ARRAY | type MULTISET
    field   = name [:] type [NOT NULL | NULL] [[COMMENT] 'text']

Without a length VARCHAR is STRING and BINARY is BYTES. TIMESTAMP is without a time zone and TIME counts seconds; in a statement
with USING they are what Spark says: with local time zone, microseconds.
"""

from dataclasses import replace

from tablestore.errors import FormatError, InvalidInputError
from tablestore.names import did_you_mean
from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.tokens import Kind
from tablestore.sql.source import syntax_error
from tablestore.types.datatypes import (
    ArrayType,
    DataType,
    Field,
    MapType,
    MultisetType,
    RowType,
    VariantType,
    types_in,
    with_nullable,
)
from tablestore.types.typestring import ELSEWHERE, MAX_TYPE_DEPTH, declared_type

_NAMES = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "NUMERIC", "DEC"),
    *("CHAR", "VARCHAR", "STRING", "BINARY", "VARBINARY", "BYTES", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "VARIANT"),
)
_ALIASES = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "CHARACTER": "CHAR",
    "TIMESTAMP_NTZ": "TIMESTAMP",
}
_SPARKS = {"TIMESTAMP": "TIMESTAMP_LTZ(6)", "TIME": "TIME(6)"}
_CONSTRUCTED = ("ARRAY", "MULTISET", "MAP", "ROW", "STRUCT")
_UNSUPPORTED = {
    "INTERVAL": "store a BIGINT of its units",
    "OBJECT": "store it as STRING",
    "RAW": "store it as BYTES",
    "GEOMETRY": "store it as BYTES or STRING",
    "GEOGRAPHY": "store it as BYTES or STRING",
    "VOID": "name the type that the values have",
    "NULL": "name the type that the values have",
}


def data_type(cursor: Cursor, *, sparks: bool = False) -> DataType:
    """Takes a type, without the NOT NULL behind it. ``sparks``: bare names mean what Spark says."""
    return _TypeReader(cursor, sparks).read(0)


def nullability(cursor: Cursor) -> bool | None:
    """Takes ``NOT NULL`` or ``NULL``; None if neither comes next."""
    if cursor.accept("NOT"):
        cursor.expect("NULL")
        return False
    return True if cursor.accept("NULL") else None


class _TypeReader:
    def __init__(self, cursor: Cursor, sparks: bool) -> None:
        self.cursor = cursor
        self.sparks = sparks
        self.fields = 0
        self.deepest = 0

    def read(self, depth: int) -> DataType:
        """The type that comes next; ``depth`` levels are around it. ``deepest`` is then the level of its innermost part."""
        cursor = self.cursor
        before, self.deepest = self.deepest, depth
        self._check_depth()
        read_type = self._constructed(depth) if cursor.next.key in _CONSTRUCTED else self._atomic()
        while (suffix := cursor.accept_one("ARRAY", "MULTISET")) is not None:
            read_type = ArrayType(element=read_type) if suffix == "ARRAY" else MultisetType(element=read_type)
            self.deepest += 1
            self._check_depth()
        self.deepest = max(before, self.deepest)
        return read_type

    def _check_depth(self) -> None:
        if self.deepest > MAX_TYPE_DEPTH:
            raise self.cursor.wrong(f"a type is nested more than {MAX_TYPE_DEPTH} levels deep")

    def _part(self, depth: int) -> DataType:
        part = self.read(depth + 1)
        return with_nullable(part, nullability(self.cursor) is not False)

    def _constructed(self, depth: int) -> DataType:
        cursor = self.cursor
        name = cursor.take().key
        closing = ">" if cursor.expect_one("<", "(") == "<" else ")"
        constructed: DataType
        match name:
            case "ARRAY":
                constructed = ArrayType(element=self._part(depth))
            case "MULTISET":
                constructed = MultisetType(element=self._part(depth))
            case "MAP":
                start = cursor.next.start
                key = self._part(depth)
                if any(isinstance(part, VariantType) for part in types_in(key)):
                    raise cursor.wrong("a VARIANT cannot be a key of a map: it is not compared; take a text or a number", start)
                cursor.expect(",")
                constructed = MapType(key=key, value=self._part(depth))
            case _:
                fields: dict[str, Field] = {}
                while not fields or cursor.accept(","):
                    start = cursor.next.start
                    field = self._field(depth)
                    if (other := fields.setdefault(field.name.casefold(), field)) is not field:
                        raise self._same_field(field, other, start)
                constructed = RowType(fields=tuple(fields.values()))
        cursor.expect(closing)
        return constructed

    def _same_field(self, field: Field, other: Field, start: int) -> InvalidInputError:
        why = "stands here twice" if field.name == other.name else f"cannot be told from {other.name!r:.80} by a query"
        return self.cursor.wrong(f"the field {field.name!r:.80} {why}; rename one", start)

    def _field(self, depth: int) -> Field:
        cursor = self.cursor
        field_id, self.fields = self.fields, self.fields + 1
        name = cursor.name("the name of a field")
        cursor.accept(":")
        field = Field(id=field_id, name=name, type=self.read(depth + 1))
        while True:
            nullable = nullability(cursor)
            if nullable is not None:
                field = replace(field, type=with_nullable(field.type, nullable))
            elif cursor.accept("COMMENT") or cursor.sees_text():
                field = replace(field, description=cursor.string("a comment"))
            else:
                return field

    def _atomic(self) -> DataType:
        cursor = self.cursor
        if cursor.next.kind is not Kind.WORD:
            raise cursor.error("a type")
        start = cursor.next.start
        written = cursor.take().key
        name = _ALIASES.get(written, written)
        if name in _UNSUPPORTED:
            raise cursor.unsupported(f"the type {written} is not supported; {_UNSUPPORTED[name]}", start)
        if name not in _NAMES:
            near = f"; write {ELSEWHERE[name]}" if name in ELSEWHERE else did_you_mean(written, (*_NAMES, *_ALIASES, *_CONSTRUCTED))
            raise cursor.wrong(f"expected a type, found {written!r:.80}{near}", start)
        if name == "DOUBLE":
            cursor.accept("PRECISION")
        arguments = self._arguments()
        zone = self._zone(start) if name in ("TIME", "TIMESTAMP") else ""
        bare = self.sparks and not arguments and not zone and written in _SPARKS
        try:
            return declared_type(_SPARKS[written] if bare else f"{name}{arguments}{zone}")
        except FormatError as error:
            raise syntax_error(cursor.text, cursor.span_from(start), str(error)) from None

    def _arguments(self) -> str:
        cursor = self.cursor
        if not cursor.sees("("):
            cursor.hope("(")
            return ""
        return f"({', '.join([str(cursor.whole_number('a number')) for _ in cursor.listed()])})"

    def _zone(self, start: int) -> str:
        cursor = self.cursor
        if cursor.accept("WITHOUT"):
            cursor.expect("TIME", "ZONE")
            return " WITHOUT TIME ZONE"
        if not cursor.accept("WITH"):
            return ""
        if cursor.accept("LOCAL"):
            cursor.expect("TIME", "ZONE")
            return " WITH LOCAL TIME ZONE"
        cursor.expect("TIME", "ZONE")
        raise cursor.unsupported("a type WITH TIME ZONE is not supported; take TIMESTAMP WITH LOCAL TIME ZONE", start)
