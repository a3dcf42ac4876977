"""Keeps columns that are not stored, and the watermark, in a table's options.

    schema.<i>.name  .data-type  .expr  [.comment]               a computed column; <i> is its place among all columns
    schema.<i>.name  .data-type  .metadata  .virtual             a metadata column
    schema.watermark.0.rowtime  .strategy.expr  .strategy.data-type

Paimon's catalog for Flink keeps them so: SQL of either makes tables that the other reads. Pure.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tablestore.errors import InvalidInputError
from tablestore.options import SCHEMA_PREFIX
from tablestore.types.typestring import quote_identifier

_NAME = re.compile(r"schema\.(\d{1,9})\.name", re.ASCII)
_WATERMARK = f"{SCHEMA_PREFIX}watermark.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnstoredColumn:
    """A computed column (``expression``) or a metadata column (``metadata``: its key). ``position`` counts all columns from 0."""

    name: str
    position: int
    type_text: str
    expression: str | None = None
    metadata: str | None = None
    virtual: bool = False
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkOf:
    """The watermark of a table: ``WATERMARK FOR column AS expression``."""

    column: str
    expression: str
    type_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unstored:
    """The columns of one table that are not stored, by position, and its watermark."""

    columns: tuple[UnstoredColumn, ...] = ()
    watermark: WatermarkOf | None = None

    @property
    def computed(self) -> tuple[UnstoredColumn, ...]:
        """The computed columns."""
        return tuple(column for column in self.columns if column.expression is not None)


def read_unstored(options: Mapping[str, str], stored: Sequence[str]) -> Unstored:
    """The columns that are not stored, and the watermark, as the options of a table keep them. Names of stored columns count as
    these."""
    columns = []
    for key, name in options.items():
        if (match := _NAME.fullmatch(key)) is None or name in stored:
            continue
        prefix = f"{SCHEMA_PREFIX}{match[1]}"
        expression, metadata = options.get(f"{prefix}.expr"), options.get(f"{prefix}.metadata")
        if expression is None and metadata is None:
            continue
        columns.append(
            UnstoredColumn(
                name=name,
                position=int(match[1]),
                type_text=options.get(f"{prefix}.data-type", "STRING"),
                expression=expression,
                metadata=metadata if expression is None else None,
                virtual=options.get(f"{prefix}.virtual") == "true",
                comment=options.get(f"{prefix}.comment"),
            )
        )
    return Unstored(columns=tuple(sorted(columns, key=lambda column: column.position)), watermark=_watermark(options))


def _watermark(options: Mapping[str, str]) -> WatermarkOf | None:
    column, expression = options.get(f"{_WATERMARK}.rowtime"), options.get(f"{_WATERMARK}.strategy.expr")
    if column is None or expression is None:
        return None
    type_text = options.get(f"{_WATERMARK}.strategy.data-type", "TIMESTAMP(3)")
    return WatermarkOf(column=column, expression=expression, type_text=type_text)


def unstored_options(unstored: Unstored) -> dict[str, str]:
    """The options that keep them."""
    options: dict[str, str] = {}
    for column in unstored.columns:
        prefix = f"{SCHEMA_PREFIX}{column.position}"
        options |= {f"{prefix}.name": column.name, f"{prefix}.data-type": column.type_text}
        if column.expression is not None:
            options[f"{prefix}.expr"] = column.expression
        else:
            key = column.name if column.metadata is None else column.metadata
            options |= {f"{prefix}.metadata": key, f"{prefix}.virtual": str(column.virtual).lower()}
        if column.comment is not None:
            options[f"{prefix}.comment"] = column.comment
    if unstored.watermark is not None:
        options |= {
            f"{_WATERMARK}.rowtime": unstored.watermark.column,
            f"{_WATERMARK}.strategy.expr": unstored.watermark.expression,
            f"{_WATERMARK}.strategy.data-type": unstored.watermark.type_text,
        }
    return options


def in_order(stored: Sequence[str], unstored: Unstored) -> list[str | UnstoredColumn]:
    """All columns of a table in their order: names of stored ones, and the others."""
    columns: list[str | UnstoredColumn] = list(stored)
    for column in unstored.columns:
        columns.insert(column.position, column)
    return columns


def renumbered(columns: Iterable[str | UnstoredColumn]) -> tuple[UnstoredColumn, ...]:
    """The columns that are not stored, at the places that they have in a list of all columns."""
    return tuple(
        replace(column, position=position) for position, column in enumerate(columns) if isinstance(column, UnstoredColumn)
    )


def refused_column(table: str, name: str, why: str) -> InvalidInputError:
    """The error of who reads a computed column whose text is no expression over the columns of its table."""
    return InvalidInputError(
        f"table {table}: the expression of the computed column {name!r:.80} is not computed: {why}\nWhoever writes into the "
        f"warehouse can write it. Read the other columns, and ALTER TABLE {table} DROP COLUMN {quote_identifier(name):.80}",
        kind="stored-expression",
    )


def mentions(expression: str, name: str) -> bool:
    """True if an expression may use a column: its name stands there as a word or between backticks."""
    return re.search(rf"(?<![\w'])`?{re.escape(name)}`?(?![\w'(])", expression, re.IGNORECASE) is not None
