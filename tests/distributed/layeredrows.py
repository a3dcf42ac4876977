"""A layered read by another engine, row by row: what Spark does with the files and keys of a plan."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from tablestore.distributed.keybits import KeyBits, NumberedKeys
from tablestore.distributed.layers import LayerPlan
from tablestore.distributed.read import pin_read, plan_read, planned_layer, read_task
from tablestore.distributed.spec import TableSpec
from tablestore.table.table import Table
from tablestore.types.filter.filters import parse_filter
from tablestore.types.filter.predicate import evaluate


def contains(keys: KeyBits, key: int) -> bool:
    """By shifts and masks of 64 bits."""
    return keys.low <= key <= keys.high and bool(_word(keys, key) >> (key & 63) & 1)


def number_of(numbered: NumberedKeys, key: int) -> int | None:
    """The number of a key; None if it is not in the set."""
    place = key % numbered.places
    start, end = numbered.starts[place : place + 2]
    found = np.flatnonzero(numbered.keys[start:end] == key)
    return int(numbered.numbers[start + found[0]]) if len(found) else None


def _word(keys: KeyBits, key: int) -> int:
    return int(keys.words[(key >> 6) - keys.low_word].astype(np.uint64))


def layered_read(table: Table, filter: str | None = None) -> tuple[int, list[dict[str, Any]]]:
    """How many layers a plan of all columns has, and the rows of all of its parts."""
    spec = TableSpec(location=table.location, storage_options={}, branch=table.context.branch)
    plan = plan_read(pin_read(table, spec), filter=filter, plain_files=tuple, layers=True)
    predicate = parse_filter(filter, table.context.schema.fields)

    def kept(path: str) -> Iterator[dict[str, Any]]:
        rows = pq.ParquetFile(Path(table.location, path)).read()
        yield from rows.filter(evaluate(predicate, rows)).to_pylist()

    found = [row for path in plan.plain_files for row in kept(path)]
    for layer in (planned_layer(plan, one, filter) for one in plan.layers):
        found += [row for path in layer.base for row in kept(path) if _counts_in_base(layer, row)]
        found += [row for path in layer.newer for row in kept(path) if _counts_in_newer(layer, row)]
    found += [row for task in plan.tasks for batch in read_task(spec, task) for row in batch.to_pylist()]
    names = table.context.schema.field_names
    return len(plan.layers), [{name: row[name] for name in names} for row in found]


def _counts_in_base(layer: LayerPlan, row: dict[str, Any]) -> bool:
    return layer.hidden is None or not contains(layer.hidden, row[layer.key.name])


def _counts_in_newer(layer: LayerPlan, row: dict[str, Any]) -> bool:
    key = row[layer.key.name]
    if layer.newest and row["_SEQUENCE_NUMBER"] < (number_of(layer.newest, key) or 0):
        return False
    if not layer.retractions:
        assert row["_VALUE_KIND"] in (0, 2)
    return row["_VALUE_KIND"] in (0, 2)
