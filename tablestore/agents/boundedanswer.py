"""Bounds what a tool answers: rows as JSON values of few characters, and documents of short texts. Pure.

    rows of Arrow -> {"columns": [{"name", "type"}], "rows": [[…]], "truncated": …}

Whatever a table holds, an answer fits into the context of a model: its JSON text has at most so many characters. Cells are cut,
rows left out at the end, and lists cut, and it says so.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.table.inspect.cells import cell_texts

MOST_COLUMNS = 200
# Integers that every reader of JSON keeps.
_MOST_EXACT = 2**53
_LEAST_CHARACTERS = 16
_SHORTER = (120, 40)
# What stands around the rows of a document.
_FRAME_CHARACTERS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLimits:
    """The limits of one answer: characters of a cell or a text, and of the answer's JSON text."""

    cell_characters: int = 500
    characters: int = 60_000


def first_rows(batches: Iterable[pa.RecordBatch], schema: pa.Schema, most: int) -> tuple[pa.Table, bool]:
    """The first rows of a stream, and whether there are more. Reads no further than that."""
    chosen, rows = [], 0
    for batch in batches:
        chosen.append(batch.slice(0, most + 1 - rows))
        rows += chosen[-1].num_rows
        if rows > most:
            break
    return pa.Table.from_batches(chosen, schema=schema).slice(0, most), rows > most


def rows_document(rows: pa.Table, limits: AnswerLimits, *, has_more: bool = False) -> dict[str, Any]:
    """Rows as a document. ``has_more``: rows behind these were not read."""
    shown = rows.select(range(min(rows.num_columns, MOST_COLUMNS)))
    width = limits.characters // (2 * max(shown.num_columns, 1))
    cell = max(min(limits.cell_characters, width), _LEAST_CHARACTERS)
    columns = [_values(column.combine_chunks(), cell) for column in shown.columns]
    named = [{"name": _cut(field.name, cell), "type": _cut(str(field.type), cell)} for field in shown.schema]
    kept: list[list[Any]] = []
    characters = _FRAME_CHARACTERS + _characters(named)
    # One by one, because each row counts by its JSON text; there are few.
    for row in zip(*columns, strict=True):
        characters += _characters(row) + len(", ")
        if kept and characters > limits.characters:
            break
        kept.append(list(row))
    document: dict[str, Any] = {
        "columns": named,
        "rows": kept,
        "truncated": has_more or len(kept) < rows.num_rows,
    }
    if rows.num_columns > shown.num_columns:
        document["columns_left_out"] = rows.num_columns - shown.num_columns
    if any(_is_cut(value, cell) for row in kept for value in row):
        document["cells_cut_at"] = cell
    return document


def _values(column: pa.Array | pa.ChunkedArray, most: int) -> Sequence[Any]:
    """The values of a column as JSON has them: numbers that it keeps exactly and booleans; all else as texts."""
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_null(kind) or _is_exact(column):
        values: list[Any] = column.to_pylist()
        return values
    return cell_texts(column, most)


def _is_exact(column: pa.Array | pa.ChunkedArray) -> bool:
    if pa.types.is_integer(column.type):
        bounds = pc.min_max(column).as_py()
        return all(bound is None or abs(bound) <= _MOST_EXACT for bound in bounds.values())
    if pa.types.is_floating(column.type) and not pa.types.is_float16(column.type):
        return bool(pc.all(pc.is_finite(column), min_count=0).as_py())
    return False


def _is_cut(value: object, most: int) -> bool:
    return isinstance(value, str) and len(value) >= most and value.endswith("…")


def fitting(document: Mapping[str, Any], limits: AnswerLimits) -> dict[str, Any]:
    """A document whose JSON text has at most ``limits.characters``, of texts that are valid: names, comments and options are what
    others wrote. Where it is too long, texts are cut shorter; then all lists and maps to one length, so that rows have as many
    cells as there are columns, with ``truncated`` and ``lists_cut_at`` beside them."""
    for cell in (limits.cell_characters, *_SHORTER):
        fitted: dict[str, Any] = _bounded(document, cell, None)
        if _characters(fitted) <= limits.characters:
            return fitted
    most = _longest(document)
    while _characters(fitted) > limits.characters and most:
        most = most * 3 // 4
        fitted = _bounded(document, _SHORTER[0], most) | {"truncated": True, "lists_cut_at": most}
    return fitted


def _characters(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def _longest(value: Any) -> int:
    """The length of the longest list or map."""
    if isinstance(value, (Mapping, list, tuple)):
        inner = value.values() if isinstance(value, Mapping) else value
        return max(len(value), *map(_longest, inner), 0)
    return 0


def _bounded(value: Any, cell: int, most: int | None) -> Any:
    """A value of texts that are cut, and of lists and maps with at most so many entries."""
    if isinstance(value, str):
        return _cut(value, cell)
    if isinstance(value, Mapping):
        return {_cut(str(key), cell): _bounded(inner, cell, most) for key, inner in islice(value.items(), most)}
    if isinstance(value, (list, tuple)):
        return [_bounded(inner, cell, most) for inner in value[:most]]
    return value


def _cut(text: str, most: int) -> str:
    valid = text.encode("utf-8", "replace").decode() if not text.isascii() else text
    return valid if len(valid) <= most else f"{valid[: most - 1]}…"
