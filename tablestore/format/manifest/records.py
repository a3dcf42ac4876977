"""Maps frozen values to Avro records. One table says which field holds which attribute, for the schema, writing and reading."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from tablestore.errors import FormatError
from tablestore.format.manifest.avro import RecordSchema

# Stored, never renamed.
RECORD_NAME = "org.apache.paimon.avro.generated.record"


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """The field ``name`` (stored) of Avro type ``type`` holds ``attribute``. An ``optional`` one may be null or absent.

    ``write`` and ``read`` convert values that Avro holds in another form; ``read`` gets the file's name too, for messages.
    """

    name: str
    attribute: str
    type: object
    optional: bool = False
    write: Callable[[Any], Any] | None = None
    read: Callable[[Any, str], Any] | None = None


class RecordFormat:
    """The record format of one class. ``version``: what the field ``_VERSION`` before all others has to hold, if there is one;
    ``what``: what the record is part of, for messages."""

    def __init__(self, name: str, columns: Sequence[StoredColumn], *, version: int | None = None, what: str = "") -> None:
        fields: list[dict[str, object]] = [] if version is None else [{"name": "_VERSION", "type": "int"}]
        fields += [_field(column) for column in columns]
        self.schema = RecordSchema({"type": "record", "name": name, "fields": fields})
        self.columns = tuple(columns)
        self._version, self._what = version, what
        self._names = [column.name for column in columns]
        self._attributes = [column.attribute for column in columns]
        self._values = attrgetter(*self._attributes)
        self._writes = [(column.name, column.write) for column in columns if column.write is not None]
        self._reads = [(column.attribute, column.read) for column in columns if column.read is not None]

    def encode(self, value: object) -> dict[str, Any]:
        """The record of a value."""
        record = dict(zip(self._names, self._values(value), strict=True))
        for name, write in self._writes:
            record[name] = write(record[name])
        if self._version is not None:
            record["_VERSION"] = self._version
        return record

    def decode(self, record: Mapping[str, Any], where: str) -> dict[str, Any]:
        """The attributes of a record in the file ``where``. Raises FormatError for another version."""
        if self._version is not None:
            check_version(record["_VERSION"], self._version, self._what, where)
        attributes = dict(zip(self._attributes, map(record.get, self._names), strict=True))
        for attribute, read in self._reads:
            attributes[attribute] = read(attributes[attribute], where)
        return attributes


def as_list(values: Sequence[object] | None) -> list[object] | None:
    """The values in the form that fastavro writes as an array: a tuple inside of a union is a pair of type name and value to it."""
    return None if values is None else list(values)


def as_tuple(values: Sequence[Any] | None, where: str) -> tuple[Any, ...] | None:
    """An array as values hold it."""
    return None if values is None else tuple(values)


def check_version(version: int | None, supported: int, what: str, name: str) -> None:
    """Raise FormatError for records of another version."""
    if version != supported:
        newer = isinstance(version, int) and version > supported
        raise FormatError(
            f"{name}: expected a {what} of version {supported}, found version {version}. "
            + ("Use a newer tablestore to read it." if newer else "The file is corrupt; restore it from a copy."),
            kind="too-new" if newer else "corrupt",
        )


def _field(column: StoredColumn) -> dict[str, object]:
    if not column.optional:
        return {"name": column.name, "type": column.type}
    # The order of the union matters: Java and Rust fail on [T, null].
    return {"name": column.name, "type": ["null", column.type], "default": None}
