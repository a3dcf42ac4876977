"""Spells types in words that mean the same where a table is declared and where a query casts.

Declarations have the words of Flink, queries those of Spark: TIMESTAMP has no time zone in the one and one in the other, BYTES
and ROW are words of the one alone. So dbt sees TIMESTAMP_LTZ, TIMESTAMP_NTZ, BINARY and STRUCT; and what a project declares is a
type as in a query.
"""

import re

import pyarrow as pa

from tablestore.errors import TablestoreError
from tablestore.types.arrowtypes import from_arrow_type
from tablestore.types.datatypes import ArrayType, DataType, MapType, RowType
from tablestore.types.typestring import quote_identifier, type_to_sql

_WITH_ZONE = re.compile(r"TIMESTAMP\((\d+)\) WITH LOCAL TIME ZONE")
_WITHOUT_ZONE = re.compile(r"TIMESTAMP\((\d+)\)")
# The precision of a timestamp in a query.
_MICROSECONDS = "6"
# Words of projects, of other databases' too, as declarations know them.
_DECLARED = {
    "TEXT": "STRING",
    "VARCHAR": "STRING",
    "CHARACTER VARYING": "STRING",
    "TIMESTAMP": "TIMESTAMP_LTZ",
    "TIMESTAMPTZ": "TIMESTAMP_LTZ",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP_LTZ",
    "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP_NTZ",
    "DATETIME": "TIMESTAMP_NTZ",
    "FLOAT4": "FLOAT",
    "REAL": "FLOAT",
    "FLOAT8": "DOUBLE",
    "DOUBLE PRECISION": "DOUBLE",
    "INTEGER": "INT",
    "INT4": "INT",
    "INT8": "BIGINT",
    "LONG": "BIGINT",
    "INT2": "SMALLINT",
    "SHORT": "SMALLINT",
    "BYTE": "TINYINT",
    "BOOL": "BOOLEAN",
    "BYTES": "BINARY",
}


def sql_type(arrow_type: pa.DataType) -> str:
    """The type of a column of a result; ``VOID`` where it has none, as that of NULL."""
    try:
        return spelled(from_arrow_type(arrow_type, True, iter(range(1_000_000)).__next__))
    except TablestoreError:
        return "VOID" if pa.types.is_null(arrow_type) else str(arrow_type).upper()


def spelled(data_type: DataType) -> str:
    """A type in words that declarations and queries share."""
    if isinstance(data_type, ArrayType):
        return f"ARRAY<{spelled(data_type.element)}>"
    if isinstance(data_type, MapType):
        return f"MAP<{spelled(data_type.key)}, {spelled(data_type.value)}>"
    if isinstance(data_type, RowType):
        return f"STRUCT<{', '.join(f'{quote_identifier(part.name)}: {spelled(part.type)}' for part in data_type.fields)}>"
    return shared_word(type_to_sql(data_type).removesuffix(" NOT NULL"))


def shared_word(text: str) -> str:
    """The words for a plain type as DESCRIBE writes it."""
    if text == "BYTES":
        return "BINARY"
    for pattern, word in ((_WITH_ZONE, "TIMESTAMP_LTZ"), (_WITHOUT_ZONE, "TIMESTAMP_NTZ")):
        if match := pattern.fullmatch(text):
            return word if match[1] == _MICROSECONDS else text
    return text


def declared(text: str) -> str:
    """The type that a project names, as a declaration of a column that means what a cast to it means."""
    words = " ".join(text.split()).upper()
    if words in _DECLARED:
        return _DECLARED[words]
    if words.startswith("NUMERIC"):
        return "DECIMAL" + words.removeprefix("NUMERIC")
    return text
