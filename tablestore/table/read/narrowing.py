"""Narrows a scan to the columns and rows that a query on a dataset or a lazy frame needs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from tablestore.types.datatypes import Field
from tablestore.types.filter.predicate import Predicate


class Narrowable(Protocol):
    """A scan, as far as others push columns and conditions down into it."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def fields(self) -> Mapping[str, Field]: ...

    def narrowed(self, columns: Sequence[str], predicate: Predicate | None = None) -> "Narrowable": ...

    def to_batches(self) -> Iterator[pa.RecordBatch]: ...

    def count(self) -> int: ...
