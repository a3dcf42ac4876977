"""Which partitions does a caller mean who gives some or all of their column values?"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from tablestore.errors import InvalidInputError
from tablestore.format.binaryrow import decode_row
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.schema import TableSchema


def partition_values(schema: TableSchema, given: Mapping[str, Any]) -> dict[str, object]:
    """The values as the engine holds them. Raises InvalidInputError for a column or a value that does not fit."""
    known: dict[str, object] = {}
    for name, value in given.items():
        if name not in schema.partition_keys:
            there = ", ".join(schema.partition_keys) or "none, the table is not partitioned"
            raise InvalidInputError(f"{name!r} is not a partition column (there: {there})", kind="unknown-partition-column")
        try:
            known[name] = pa.scalar(value, to_arrow_type(schema.field(name).type)).as_py()
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(f"partition value {value!r} does not fit column {name!r}: {error}") from error
    return known


def partition_matcher(schema: TableSchema, given: Iterable[Mapping[str, Any]] | None) -> Callable[[bytes], bool]:
    """Tells of a serialised partition whether it is one of those given; None gives all."""
    if given is None:
        return lambda partition: True
    chosen = list(given)
    if isinstance(given, Mapping) or not all(isinstance(one, Mapping) for one in chosen):
        raise InvalidInputError(
            f"expected a list of partitions such as [{{'day': 'mon'}}], found {given!r:.100}; put a single one into a list",
            kind="partition",
        )
    wanted = [partition_values(schema, one) for one in chosen]
    types = [field.type for field in schema.partition_fields]
    positions = {name: position for position, name in enumerate(schema.partition_keys)}

    def matches(partition: bytes) -> bool:
        values = decode_row(partition, types)
        return any(all(values[positions[name]] == value for name, value in one.items()) for one in wanted)

    return matches
