"""Matches partitions by the values of their columns."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tablestore.errors import InvalidInputError
from tablestore.format.binaryrow import decode_row
from tablestore.types.partitionspec import PartitionSpecs, partition_values
from tablestore.types.schema import TableSchema


def partition_matcher(schema: TableSchema, partitions: Iterable[Mapping[str, Any]] | None) -> Callable[[bytes], bool]:
    """A function that is true for the serialised partitions given by some or all of their values; None: for all."""
    if partitions is None:
        return lambda partition: True
    chosen = list(partitions)
    if isinstance(partitions, Mapping) or not all(isinstance(partition, Mapping) for partition in chosen):
        raise InvalidInputError(
            f"expected a list of partitions such as [{{'day': 'mon'}}], found {partitions!r:.100}; put a single one into a list",
            kind="partition",
        )
    specs = PartitionSpecs(keys=schema.partition_keys, specs=tuple(partition_values(schema, partition) for partition in chosen))
    types = [field.type for field in schema.partition_fields]
    return lambda partition: specs.covers(decode_row(partition, types))
