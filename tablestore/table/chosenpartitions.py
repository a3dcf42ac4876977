"""Matches partitions by the values of their columns."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tablestore.errors import InvalidInputError
from tablestore.format.binaryrow import decode_row
from tablestore.store.context import TableContext
from tablestore.types.partitionspec import PartitionSpecs, partition_values


def partition_matcher(context: TableContext, partitions: Iterable[Mapping[str, Any]] | None) -> Callable[[bytes], bool]:
    """A function that is true for the serialised partitions given by some or all of their values; None: for all.

    Raises InvalidInputError, and UnsupportedError where rules of a catalog service hide rows: what becomes of a named partition
    tells whether it is there.
    """
    if partitions is None:
        return lambda partition: True
    context.check_sees_all("work on partitions that you name")
    schema, chosen = context.schema, list(partitions)
    if isinstance(partitions, Mapping) or not all(isinstance(partition, Mapping) for partition in chosen):
        raise InvalidInputError(
            f"expected a list of partitions such as [{{'day': 'mon'}}], found {partitions!r:.100}; put a single one into a list",
            kind="partition",
        )
    specs = PartitionSpecs(keys=schema.partition_keys, specs=tuple(partition_values(schema, partition) for partition in chosen))
    types = [field.type for field in schema.partition_fields]
    return lambda partition: specs.covers(decode_row(partition, types))
