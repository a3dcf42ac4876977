"""Aggregate functions rbm32, rbm64, theta_sketch and hll_sketch: columns that hold a set, or an estimate of one, as bytes.

The union of the sets, in the bytes that Paimon's own libraries write and read: 32-bit Roaring bitmaps in their portable
serialisation, 64-bit ones as Java's ``Roaring64Bitmap`` writes them; Apache DataSketches, whose serialised form is the same in
Java and Python (extra ``managed-tablestore[sketches]``).

A set is an object of its library, so these functions go value by value; values of keys that have a single one are not touched.
"""

from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from tablestore.errors import FormatError, UnsupportedError
from tablestore.format.index.roaring64 import union_bitmap64
from tablestore.lsm.functions.mergefunction import ColumnFunction
from tablestore.lsm.functions.versions import Events

Union = Callable[[list[bytes]], bytes]


def unite(function: ColumnFunction, values: pa.Array, events: Events, name: str) -> pa.Array:
    """The union of each key's sets."""
    union = union_of(function.name)
    sets = values.to_pylist()
    out = []
    # The library's objects have no form that spans rows.
    for start, stop in pairwise([*events.starts().tolist(), len(sets)]):
        try:
            out.append(sets[start] if stop - start == 1 else union(sets[start:stop]))
        except (FormatError, ValueError, IndexError, RuntimeError, MemoryError) as error:
            raise FormatError(
                f"column {name!r} holds bytes that are not a serialised {function.name}: {error}; correct what writes them"
            ) from error
    return pa.array(out, values.type)


def union_of(function: str) -> Union:
    """The union of serialised sets of one kind. Raises UnsupportedError if the library for it is not installed."""
    if function == "rbm32":
        return _union32
    if function == "rbm64":
        return union_bitmap64
    try:
        library = import_module("datasketches")
    except ImportError as error:
        raise UnsupportedError(
            f"the aggregate function {function} needs the package datasketches; install it with "
            "`pip install managed-tablestore[sketches]`",
            kind="missing-package",
        ) from error
    return _theta(library) if function == "theta_sketch" else _hll(library)


def _union32(values: list[bytes]) -> bytes:
    out = BitMap.union(*map(BitMap.deserialize, values))
    out.run_optimize()
    return bytes(out.serialize())


def _theta(library: Any) -> Union:
    def union(values: list[bytes]) -> bytes:
        out = library.theta_union()
        for value in values:
            out.update(library.compact_theta_sketch.deserialize(value))
        return bytes(out.get_result().serialize())

    return union


def _hll(library: Any) -> Union:
    def union(values: list[bytes]) -> bytes:
        sketches = [library.hll_sketch.deserialize(value) for value in values]
        # The precision of the union is the least of its parts', as in Paimon.
        out = library.hll_union(min(sketch.lg_config_k for sketch in sketches))
        for sketch in sketches:
            out.update(sketch)
        return bytes(out.get_result(library.tgt_hll_type.HLL_4).serialize_compact())

    return union
