"""Partition specs: sets of partitions, given by values of some or all partition columns; and how these values spell a time.

    {"day": "mon"}                                  every partition of that day
    [{"day": "2026-01-31"}, {"day": null}]          specs as an option's text: JSON, values as text, null for null
    $day $hour:00:00                                the pattern of a time; its columns are those of the partitioning

Pure.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import time
from typing import Any

import pyarrow as pa

from tablestore.errors import InvalidInputError
from tablestore.options import PARTITION_TIMESTAMP_FORMATTER, PARTITION_TIMESTAMP_PATTERN, TableOptions
from tablestore.types.arrowtypes import scalar_of, to_arrow_type, value_of
from tablestore.types.datatypes import AtomicType, TypeRoot
from tablestore.types.numbercast import to_decimal
from tablestore.types.schema import TableSchema
from tablestore.types.typestring import type_to_sql

PartitionSpec = Mapping[str, object]

COLUMN_OF_PATTERN = re.compile(r"\$(\w+)")
"""A column in ``partition.timestamp-pattern``."""
_LETTERS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_DEFAULT_FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d")


def partition_values(schema: TableSchema, spec: Mapping[str, Any]) -> dict[str, object]:
    """The values as the engine holds them; text stands for a value of any type. Raises InvalidInputError for a column or a value
    that does not fit."""
    values: dict[str, object] = {}
    for name, value in spec.items():
        _check_column(schema, name)
        target = to_arrow_type(schema.field(name).type)
        if isinstance(value, str) and not pa.types.is_string(target):
            values[name] = parse_partition_value(schema, name, value)
            continue
        try:
            values[name] = value_of(scalar_of(value, target))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise _does_not_fit(schema, name, value) from error
    return values


def parse_partition_value(schema: TableSchema, name: str, text: str) -> object:
    """A value of a partition column from its text. Raises InvalidInputError."""
    _check_column(schema, name)
    try:
        target, value = to_arrow_type(schema.field(name).type), pa.scalar(text, pa.string())
        if pa.types.is_time(target):
            return pa.scalar(time.fromisoformat(text), pa.time64("us")).cast(target).as_py()
        return value_of(to_decimal(value, target) if pa.types.is_decimal(target) else value.cast(target))
    except (pa.ArrowException, ValueError) as error:
        raise _does_not_fit(schema, name, text) from error


def _does_not_fit(schema: TableSchema, name: str, value: object) -> InvalidInputError:
    kind = schema.field(name).type
    example = ", such as 2026-01-31" if isinstance(kind, AtomicType) and kind.root is TypeRoot.DATE else ""
    return InvalidInputError(f"partition value {value!r} does not fit column {name!r}: expected {type_to_sql(kind)}{example}")


def _check_column(schema: TableSchema, name: str) -> None:
    if name not in schema.partition_keys:
        keys_text = ", ".join(schema.partition_keys) or "none, the table is not partitioned"
        raise InvalidInputError(f"{name!r} is not a partition column (known: {keys_text})", kind="unknown-partition-column")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSpecs:
    """A set of partitions of one table. ``keys``: its partition columns, in order."""

    keys: tuple[str, ...]
    specs: tuple[PartitionSpec, ...] = ()

    def of(self, partitions: Iterable[Sequence[object]]) -> "PartitionSpecs":
        """The specs that match one of these partitions, each given as the values of all partition columns."""
        partition_dicts = [dict(zip(self.keys, values, strict=True)) for values in partitions]
        return PartitionSpecs(
            keys=self.keys, specs=tuple(member for member in self.specs if any(_covers(member, p) for p in partition_dicts))
        )

    def covers(self, values: Sequence[object]) -> bool:
        """True if a partition, given as the values of all partition columns, is one of these."""
        partition = dict(zip(self.keys, values, strict=True))
        return any(_covers(member, partition) for member in self.specs)

    def with_spec(self, spec: PartitionSpec) -> "PartitionSpecs":
        """These partitions and those that ``spec`` matches."""
        if any(_covers(member, spec) for member in self.specs):
            return self
        return PartitionSpecs(keys=self.keys, specs=(*(member for member in self.specs if not _covers(spec, member)), spec))

    def without_spec(self, spec: PartitionSpec) -> "PartitionSpecs":
        """These partitions without those that ``spec`` matches. Raises InvalidInputError if a wider spec covers them."""
        wider = next((member for member in self.specs if _covers(member, spec) and member != spec), None)
        if wider is not None:
            raise InvalidInputError(
                f"partition {dict(spec)} cannot be taken out of {dict(wider)} alone; take out {dict(wider)} as a whole, and put in "
                "again what is to stay",
                kind="partition",
            )
        return PartitionSpecs(keys=self.keys, specs=tuple(member for member in self.specs if not _covers(spec, member)))


def parse_partition_specs(schema: TableSchema, text: str | None) -> PartitionSpecs:
    """Specs from an option's text. Raises InvalidInputError."""
    if not text:
        return PartitionSpecs(keys=schema.partition_keys)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    sound = isinstance(content, list) and all(isinstance(texts, dict) and texts for texts in content)
    if not sound or not all(isinstance(value, str | None) for texts in content for value in texts.values()):
        raise InvalidInputError(
            f'expected partitions as JSON with texts as values, such as [{{"day": "2026-01-31"}}], found {text!r:.200}',
            kind="invalid-option",
        )
    specs = PartitionSpecs(keys=schema.partition_keys)
    for texts in content:
        values = {name: None if value is None else parse_partition_value(schema, name, value) for name, value in texts.items()}
        specs = specs.with_spec(partition_values(schema, values))
    return specs


def print_partition_specs(schema: TableSchema, specs: PartitionSpecs) -> str:
    """Specs as an option's text. Raises InvalidInputError for a value without a text."""
    return json.dumps([{name: _text(schema, name, value) for name, value in spec.items()} for spec in specs.specs])


def _text(schema: TableSchema, name: str, value: object) -> str | None:
    try:
        text: str | None = scalar_of(value, to_arrow_type(schema.field(name).type)).cast(pa.string()).as_py()
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise InvalidInputError(f"partition value {value!r} of column {name!r} cannot be written as text: {error}") from error
    return text


def _covers(spec: PartitionSpec, partition: PartitionSpec) -> bool:
    return spec.items() <= partition.items()


def partition_time(options: TableOptions, partition_keys: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """Returns the pattern by which values of these columns make a time, and the formats of ``strptime`` tried on what it gives.
    Without a pattern (None) the time is the value of the first column.

    Raises InvalidInputError for a pattern that names another column, and for a formatter that cannot be read.
    """
    formatter = options.value(PARTITION_TIMESTAMP_FORMATTER)
    formats = (strptime_format(str(formatter)),) if formatter else _DEFAULT_FORMATS
    pattern = options.value(PARTITION_TIMESTAMP_PATTERN)
    if pattern is None or pattern == "":
        return None, formats
    pattern = str(pattern)
    if unknown := [name for name in COLUMN_OF_PATTERN.findall(pattern) if name not in partition_keys]:
        raise InvalidInputError(
            f"option {PARTITION_TIMESTAMP_PATTERN.key}: {unknown[0]!r} is not a partition column "
            f"(there: {', '.join(partition_keys)})",
            kind="invalid-option",
        )
    return pattern, formats


def strptime_format(formatter: str, option: str = PARTITION_TIMESTAMP_FORMATTER.key) -> str:
    """``yyyyMMdd HH:mm`` as Python spells it. Raises InvalidInputError for letters that mean something else."""
    text, at = "", 0
    while at < len(formatter):
        if formatter[at] == "'":
            end = formatter.find("'", at + 1)
            end = len(formatter) if end < 0 else end
            text += formatter[at + 1 : end].replace("%", "%%")
            at = end + 1
            continue
        run = re.match(r"([A-Za-z])\1*", formatter[at:])
        if run is None:
            text += formatter[at].replace("%", "%%")
            at += 1
            continue
        if run[0] not in _LETTERS:
            raise InvalidInputError(
                f"option {option}: expected {', '.join(_LETTERS)} and other characters, found {run[0]!r} in {formatter[:80]!r}",
                kind="invalid-option",
            )
        text += _LETTERS[run[0]]
        at += len(run[0])
    return text
