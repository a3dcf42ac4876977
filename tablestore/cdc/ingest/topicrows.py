"""Decodes records of a topic into rows of one table, for the loop in this process as for the tasks of an engine."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from tablestore.cdc.ingest.deadletters import DeadLetter
from tablestore.cdc.ingest.ingestrequest import IngestRequest
from tablestore.cdc.records.evolving import Found
from tablestore.cdc.records.faults import Faults
from tablestore.cdc.records.recordformats import is_changes, open_decoder
from tablestore.cdc.records.target import Decoded, Target
from tablestore.cdc.topicsource import TopicRecords
from tablestore.errors import FormatError, InvalidInputError
from tablestore.store.context import TableContext
from tablestore.store.write.rowconstraints import RowConstraints
from tablestore.table.write.retractions import retraction_needs
from tablestore.table.write.writer import with_defaults
from tablestore.types.arrays import Kinds
from tablestore.types.datatypes import DataType
from tablestore.types.rowkind import ROW_KIND_COLUMN, symbols_from_kinds

# So many records, or bytes of them, are asked for at once.
BATCH_RECORDS, BATCH_BYTES = 32_768, 32 * 1024 * 1024
# So many records of a batch, or bytes of them, are parsed at once: if one is bad, these are looked at one by one.
_PARSED_AT_ONCE, _PARSED_BYTES = 8_192, 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRows:
    """Rows for a writer, with their kinds unless all are added; None if there are none. ``faults``: records that cannot become
    rows, by their place; ``found``: types of columns that the table lacks or that are too narrow."""

    rows: pa.Table | None
    faults: Faults
    found: Found


class RowReader:
    """Reads records for one table as it is."""

    def __init__(self, context: TableContext, request: IngestRequest) -> None:
        if (field := context.settings.rowkind_field) is not None and is_changes(request.format):
            raise InvalidInputError(
                f"table {context.files.root_uri} takes the kind of a row from its column {field!r} (rowkind.field), and "
                f"{request.format} records say it themselves: ingest into a table without that option",
                kind="row-kind",
            )
        target = Target(
            fields=context.schema.fields,
            key=context.schema.primary_keys,
            partition=context.schema.partition_keys,
            evolves=request.evolve,
            needs=retraction_needs(context),
            violations=partial(_violations, context) if context.settings.constrained else None,
        )
        self._decoder = open_decoder(request.format, target, request.schema, request.key_schema)

    def read(self, records: TopicRecords) -> TopicRows:
        """The rows of a batch."""
        batch: list[Decoded] = []
        faults: Faults = {}
        column_types: Mapping[str, Set[DataType]] = {}
        for chosen in _parsed_at_once(records.values):
            part = self._decoder.decode(records.keys[chosen], records.values[chosen])
            faults.update({chosen.start + place: reason for place, reason in part.faults.items()})
            column_types = joined(column_types, part.found)
            batch.append(part)
        return TopicRows(rows=_as_rows(batch), faults=faults, found=column_types)


def _parsed_at_once(values: Sequence[bytes | None]) -> Iterator[slice]:
    ends = np.cumsum([len(value or b"") for value in values])
    start = 0
    while start < len(values):
        limit = (ends[start - 1] if start else 0) + _PARSED_BYTES
        end = min(int(np.searchsorted(ends, limit, side="right")), start + _PARSED_AT_ONCE)
        yield slice(start, start := max(end, start + 1))


def joined(one: Found, other: Found) -> Found:
    """The column types of both, together."""
    return {name: one.get(name, set()) | other.get(name, set()) for name in {**one, **other}}


def letters_of(topic: str, records: TopicRecords, faults: Faults) -> list[DeadLetter]:
    """The records that cannot become rows."""
    return [
        DeadLetter(
            topic=topic,
            partition=int(records.partitions[place]),
            offset=int(records.offsets[place]),
            reason=reason,
            key=records.keys[place],
            value=records.values[place],
        )
        for place, reason in sorted(faults.items())
    ]


def bad_record(letter: DeadLetter, table: str) -> FormatError:
    """The error for a record that stops the ingest."""
    return FormatError(
        f"the record at offset {letter.offset} of partition {letter.partition} of topic {letter.topic} cannot become a row of "
        f"{table}: {letter.reason}; the ingest has stopped behind its last commit. Correct the table or the producer, name a table "
        "for dead letters, or skip such records (on_error)",
        kind="bad-record",
    )


def _violations(context: TableContext, rows: pa.Table, kinds: Kinds) -> Mapping[int, str]:
    """The reasons by the place of each row that a constraint refuses, as the row will be written."""
    return RowConstraints.of(context).reasons(with_defaults(context, rows, kinds), kinds)


def _as_rows(batch: Sequence[Decoded]) -> pa.Table | None:
    full = [part for part in batch if part.rows.num_rows]
    if not full:
        return None
    rows = pa.concat_tables([part.rows for part in full])
    if all(part.kinds is None for part in full):
        return rows
    kinds = np.concatenate([np.zeros(part.rows.num_rows, dtype=np.int8) if part.kinds is None else part.kinds for part in full])
    return rows.append_column(ROW_KIND_COLUMN, symbols_from_kinds(pa.array(kinds)))
