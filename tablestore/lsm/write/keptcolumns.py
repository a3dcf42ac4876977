"""Fills the columns and fields that written rows lack with their stored values.

    given   id  name  r{a}         stored   id  meal  r{a, b}        out   id  name  meal  r{a, b}
                                                                     a from the given row, b and meal from the stored one

A row whose key is not stored gets the column's default, or null. Pure, whole columns at a time.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError
from tablestore.lsm.functions.versions import take_or_null
from tablestore.types.arrays import Kinds, Places, one_chunk, retracts
from tablestore.types.datatypes import Field
from tablestore.types.defaults import default_scalar
from tablestore.types.evolution.fieldpaths import Path


def with_stored(
    rows: pa.Table, kinds: Kinds, paths: Sequence[Path], stored: pa.Table, places: Places, fields: Sequence[Field], *, where: str
) -> pa.Table:
    """``rows`` with the parts ``paths`` of the stored rows at ``places`` (-1: there is none), in the table's columns ``fields``.

    Raises InvalidInputError where a new row lacks a value that it needs.
    """
    parts: dict[str, list[Path]] = {}
    for path in paths:
        parts.setdefault(path[0], []).append(path[1:])
    for position, field in enumerate(fields):
        if field.name not in parts:
            continue
        new_values = one_chunk(rows.column(field.name))
        stored_values = take_or_null(one_chunk(stored.column(field.name)), places)
        if parts[field.name] == [()]:
            stored_values = _of_new_rows(stored_values, new_values, field, places < 0, kinds, where)
        else:
            stored_values = _joined(new_values, stored_values, parts[field.name])
        rows = rows.set_column(position, rows.schema.field(position), stored_values)
    return rows


def _of_new_rows(
    stored_values: pa.Array, new_values: pa.Array, field: Field, new: npt.NDArray[np.bool_], kinds: Kinds, where: str
) -> pa.Array:
    if not new.any():
        return stored_values
    adds = ~retracts(kinds)
    default = default_scalar(field)
    if default is not None:
        return pc.if_else(pa.array(new & (adds | (not field.type.nullable))), default, stored_values)
    if field.type.nullable:
        return stored_values
    if count := int((new & adds).sum()):
        raise InvalidInputError(
            f"the rows for {where} lack {field.name}, which is NOT NULL and has no default, and {count} of them have keys that are "
            "not stored: give it for new rows",
            kind="missing-column",
        )
    # The values of a retraction are not read.
    return pc.if_else(pa.array(new), new_values, stored_values)


def _joined(new_values: pa.Array, stored: pa.Array, paths: Sequence[Path]) -> pa.Array:
    """The struct ``new_values`` with the fields ``paths`` of ``stored``."""
    names = [field.name for field in new_values.type]
    children = []
    for position, name in enumerate(names):
        inner = [path[1:] for path in paths if path[0] == name]
        mine, other = (pc.struct_field(side, [position]) for side in (new_values, stored))
        children.append(mine if not inner else other if () in inner else _joined(mine, other, inner))
    return pa.StructArray.from_arrays(children, fields=list(new_values.type), mask=new_values.is_null())
