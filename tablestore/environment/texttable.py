"""Formats rows as text for eyes: one line each, columns aligned, at most a few."""

import unicodedata
from collections.abc import Sequence
from itertools import islice

import pyarrow as pa

WIDEST = 60


def text_table(reader: pa.RecordBatchReader, limit: int) -> str:
    """The first ``limit`` rows; the last line says if there are more. Reads no further than that."""
    rows: list[list[str]] = []
    for batch in reader:
        values = batch.slice(0, limit + 1 - len(rows)).to_pydict()
        rows.extend([_cell(value) for value in row] for row in zip(*values.values(), strict=True))
        if len(rows) > limit:
            break
    names = [_cell(name) for name in reader.schema.names]
    shown = list(islice(rows, limit))
    widths = [max([_width(name), *(_width(row[i]) for row in shown)]) for i, name in enumerate(names)]
    rule = "+".join("-" * (width + 2) for width in widths)
    lines = [_line(names, widths), rule, *(_line(row, widths) for row in shown)]
    return "\n".join([*lines, *([f"only the first {limit} rows"] if len(rows) > limit else [])])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "|".join(f" {cell}{' ' * (width - _width(cell))} " for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cell(value: object) -> str:
    text = "NULL" if value is None else str(value)
    # Line breaks and control characters would break the table, or the terminal.
    text = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text[: WIDEST + 1])
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text if not unicodedata.combining(char))
