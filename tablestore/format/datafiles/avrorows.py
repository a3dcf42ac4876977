"""Encodes rows as Avro records without a container, and decodes them: one value of bytes a row, as messages hold them.

    Arrow -> records, a dict each -> fastavro -> bytes of one record each

The types are those of the Avro specification. Every column may be null, and so may every part of it,
whatever the table says: the bytes depend on names and types alone. Rows go one by one, since fastavro takes one record at a time.

Memory: the rows handed in as Python objects.
"""

from collections.abc import Sequence
from io import BytesIO
from itertools import count
from typing import Any, cast

import fastavro
import pyarrow as pa

from tablestore.errors import FormatError
from tablestore.format.datafiles.avrofile import rows_of_objects
from tablestore.format.datafiles.avrowriter import STANDARD, avro_objects, record_schema
from tablestore.format.manifest.avro import RecordSchema, parsed_record
from tablestore.types.arrowtypes import from_arrow_type, to_arrow_schema
from tablestore.types.datatypes import Field, nullable_throughout

_NAMESPACE, _RECORD = "tablestore", "row"
_UNREADABLE = (EOFError, IndexError, ValueError, TypeError, KeyError, ArithmeticError, RecursionError)


class BadAvro(FormatError):
    """Bytes that are no record of the columns: those at ``position``, for the ``reason``."""

    default_kind = "bad-avro"

    def __init__(self, message: str, *, kind: str | None = None, position: int = 0, reason: str = "") -> None:
        super().__init__(message, kind=kind)
        self.position, self.reason = position, reason


class AvroRows:
    """Encodes and decodes rows of the columns of ``schema``, whose names and types Avro holds."""

    def __init__(self, schema: pa.Schema) -> None:
        ids = count()
        types = [nullable_throughout(from_arrow_type(field.type, True, lambda: next(ids))) for field in schema]
        self._fields = [Field(id=next(ids), name=name, type=kind) for name, kind in zip(schema.names, types, strict=True)]
        self._columns = to_arrow_schema(self._fields)
        self._avro = RecordSchema(record_schema(self._columns, _RECORD, set(), STANDARD, namespace=_NAMESPACE))
        self._parsed = parsed_record(self._avro)

    @property
    def schema_text(self) -> str:
        """The schema of the records, as JSON."""
        return self._avro.text

    def encode(self, rows: pa.Table) -> list[bytes]:
        """The record of each row."""
        values: list[bytes] = []
        for batch in rows.cast(self._columns).to_batches():
            for record in avro_objects(batch):
                body = BytesIO()
                fastavro.schemaless_writer(body, self._parsed, record)
                values.append(body.getvalue())
        return values

    def decode(self, values: Sequence[bytes], names: Sequence[str]) -> pa.Table:
        """The rows of records, with the columns ``names``. Raises BadAvro for the first one that is of other columns."""
        fields = [field for name in names for field in self._fields if field.name == name]
        records = [self._record(position, value) for position, value in enumerate(values)]
        if not records:
            return to_arrow_schema(fields).empty_table()
        try:
            return pa.Table.from_batches([_columns(records, fields)])
        except FormatError:
            # Alone, the first wrong one is known.
            for position, record in enumerate(records):
                try:
                    _columns([record], fields)
                except FormatError as error:
                    raise _bad(position, "its values do not fit the columns of the table") from error
            raise

    def _record(self, position: int, value: bytes) -> dict[str, Any]:
        stream = BytesIO(value)
        try:
            record = fastavro.schemaless_reader(stream, self._parsed, None)
        except _UNREADABLE as error:
            raise _bad(position, f"not of the columns of the table: {str(error) or type(error).__name__}") from error
        if stream.tell() != len(value):
            raise _bad(position, f"not of the columns of the table: {len(value) - stream.tell()} bytes are left over")
        return cast("dict[str, Any]", record)


def _columns(records: list[dict[str, Any]], fields: Sequence[Field]) -> pa.RecordBatch:
    return rows_of_objects(records, fields, (), "messages in Avro")


def _bad(position: int, reason: str) -> BadAvro:
    return BadAvro(f"message {position}: {reason}", position=position, reason=reason)
