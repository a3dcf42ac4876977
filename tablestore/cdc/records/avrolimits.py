"""Finds records of Avro that take stack or memory without bound before they are read.

Two kinds of schema allow it: one whose record holds itself, level below level, and one with a list of values that take no bytes, of
which six bytes promise any number. Of these, and only of these, each record is measured first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MOST_NESTED = 100
_MOST_EMPTY_VALUES = 65_536
_SIZES: Mapping[str, int] = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_NUMBERS, _TEXTS = ("int", "long", "enum"), ("bytes", "string")


class AvroLimits:
    """The limits of the records of one schema, which is parsed."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._named: dict[str, Any] = {}
        self._is_recursive = self._has_empty_values = False
        self._learn(schema, ())

    def check(self, data: bytes) -> None:
        """Raises ValueError for a record beyond them."""
        if self._is_recursive or self._has_empty_values:
            self._skip(self._schema, _Bytes(data), 0)

    def _learn(self, schema: Any, above: tuple[str, ...]) -> None:
        if isinstance(schema, list):
            for member in schema:
                self._learn(member, above)
        elif isinstance(schema, str):
            self._is_recursive |= schema in above
        else:
            if "name" in schema:
                self._named[schema["name"]] = schema
                above = (*above, schema["name"])
            for field in schema.get("fields", ()):
                self._learn(field["type"], above)
            for part in ("items", "values"):
                if part in schema:
                    self._learn(schema[part], above)
            self._has_empty_values |= schema["type"] == "array" and self._is_empty(schema["items"], above)

    def _is_empty(self, schema: Any, above: tuple[str, ...]) -> bool:
        """True if values of a schema take no bytes. Those of a record within itself do."""
        if isinstance(schema, str):
            if schema in above or schema not in self._named:
                return schema == "null"
            above = (*above, schema)
            schema = self._named[schema]
        if isinstance(schema, list):
            return False
        if schema["type"] in ("record", "error"):
            return all(self._is_empty(field["type"], above) for field in schema["fields"])
        return bool(schema["type"] == "null" or (schema["type"] == "fixed" and not schema["size"]))

    def _skip(self, schema: Any, data: "_Bytes", level: int) -> None:
        if level > MOST_NESTED:
            raise ValueError(f"nested more than {MOST_NESTED} levels deep")
        if isinstance(schema, list):
            return self._skip(schema[data.number_below(len(schema))], data, level)
        if isinstance(schema, str):
            schema = self._named.get(schema, {"type": schema})
        kind = schema["type"]
        if kind in ("record", "error"):
            for field in schema["fields"]:
                self._skip(field["type"], data, level + 1)
        elif kind == "array":
            is_empty = self._is_empty(schema["items"], ())
            while count := data.block():
                if is_empty:
                    data.note_empty(count)
                for _ in range(0 if is_empty else count):
                    self._skip(schema["items"], data, level + 1)
        elif kind == "map":
            while count := data.block():
                for _ in range(count):
                    data.skip(data.number())
                    self._skip(schema["values"], data, level + 1)
        elif kind in _NUMBERS:
            data.number()
        elif kind in _TEXTS:
            data.skip(data.number())
        elif isinstance(kind, str):
            data.skip(schema["size"] if kind == "fixed" else _SIZES[kind])
        else:
            self._skip(kind, data, level)


@dataclass(slots=True)
class _Bytes:
    """A cursor over the bytes of a record."""

    data: bytes
    place: int = 0
    empty_values: int = 0

    def number(self) -> int:
        value = shift = 0
        while True:
            self.skip(1)
            byte = self.data[self.place - 1]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            if shift > 63:
                raise ValueError("a number of more than 64 bits")

    def number_below(self, end: int) -> int:
        if not 0 <= (index := self.number()) < end:
            raise ValueError(f"expected one of {end} types, found number {index}")
        return index

    def block(self) -> int:
        """The number of values in the next block, 0 behind the last one."""
        count = self.number()
        if count < 0:
            # The bytes of the block come next.
            self.number()
        return abs(count)

    def skip(self, size: int) -> None:
        if not 0 <= size <= len(self.data) - self.place:
            raise ValueError(f"expected {size} bytes, and {len(self.data) - self.place} are left")
        self.place += size

    def note_empty(self, count: int) -> None:
        self.empty_values += count
        if self.empty_values > _MOST_EMPTY_VALUES:
            raise ValueError(f"{self.empty_values} values without bytes: at most {_MOST_EMPTY_VALUES} are read of one record")
