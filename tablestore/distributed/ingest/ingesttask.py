"""Runs a task of an ingest: writes a range of a topic's partition as files of the table.

    records ── rows ── files ── message
             └ bad records ── files of the table of dead letters ── message

Nothing of a task is visible until the driver commits its messages, so an engine may run it again. Memory: as an ingest without
tasks.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, dataclass, field

import numpy as np

from tablestore.cdc.ingest.deadletters import letter_rows
from tablestore.cdc.ingest.ingestprogress import Count
from tablestore.cdc.ingest.ingestrequest import IngestRequest
from tablestore.cdc.ingest.topicrows import BATCH_BYTES, BATCH_RECORDS, RowReader, bad_record, joined, letters_of
from tablestore.cdc.records.evolving import Found, plan_evolution
from tablestore.cdc.topicsource import TopicRecords, TopicSource
from tablestore.clock import Clock
from tablestore.distributed.ingest.topicranges import TopicRange
from tablestore.distributed.taskjson import bytes_to_text, decode_task, encode_task, text_to_bytes
from tablestore.distributed.write import WriteJob, task_message, task_writer
from tablestore.errors import StorageError
from tablestore.store.message import CommitMessage
from tablestore.table.write.writer import TableWriter
from tablestore.types.typestring import parse_type, type_to_json

_KIND, _DONE = "ingest task", "ingested range"
_POLL_S, _PATIENCE_S = 0.5, 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestJob:
    """The values that the tasks of a round share. ``letters`` None: bad records are counted, or stop the ingest."""

    request: IngestRequest
    open_source: Callable[[], TopicSource]
    rows: WriteJob
    letters: WriteJob | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeDone:
    """The result of a task, with the messages to be committed. ``found``: types of columns that the table lacks or that are too
    narrow; if it has to be altered for them, the messages are incomplete."""

    count: Count
    rows: CommitMessage
    letters: CommitMessage | None = None
    found: Found = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The same as bytes, for the process that began the task."""
        letters = None if self.letters is None else bytes_to_text(self.letters.to_bytes())
        types_json = {name: [type_to_json(kind) for kind in types] for name, types in self.found.items()}
        content = {
            "count": asdict(self.count),
            "rows": bytes_to_text(self.rows.to_bytes()),
            "letters": letters,
            "found": types_json,
        }
        return encode_task(_DONE, content)

    @classmethod
    def from_bytes(cls, data: bytes) -> "RangeDone":
        """Parses what :meth:`to_bytes` gave. Raises FormatError."""
        parsed = decode_task(_DONE, data, ("count", "rows", "letters", "found"))
        return cls(
            count=Count(**parsed["count"]),
            rows=_message(parsed["rows"]),
            letters=None if parsed["letters"] is None else _message(parsed["letters"]),
            found={name: {parse_type(kind) for kind in types} for name, types in parsed["found"].items()},
        )


def ingest_range(job: IngestJob, chosen: TopicRange, task_index: int) -> RangeDone:
    """Write a range; ``task_index``: its place among all. Raises FormatError (``bad-record``), PositionLost, StorageError."""
    source, request, count = job.open_source(), job.request, Count()
    table = job.rows.spec.table(job.rows.schema_id)
    reader = RowReader(table.context, request)
    column_types: Found = {}
    with task_writer(job.rows, table, task_index) as writer, _letter_writer(job, task_index) as letters:
        for records in _records(source, chosen, table.context.clock):
            read = reader.read(records)
            column_types = joined(column_types, read.found)
            if request.evolve and plan_evolution(table.table_schema, column_types):
                # The table has to be altered first. The other records say what else it lacks.
                continue
            if read.faults:
                bad = letters_of(source.name, records, read.faults)
                if request.on_error == "stop":
                    raise bad_record(bad[0], table.name)
                if letters is not None:
                    letters.write(letter_rows(bad))
                count.bad += len(bad)
            if read.rows is not None:
                writer.write(read.rows)
                count.rows += read.rows.num_rows
            count.records += len(records)
        return RangeDone(
            count=count,
            rows=task_message(job.rows, writer),
            letters=task_message(job.letters, letters) if job.letters is not None and letters is not None and count.bad else None,
            found=column_types,
        )


def encode_range(chosen: TopicRange, task_index: int) -> bytes:
    """A task for another process."""
    return encode_task(_KIND, {"index": task_index, **asdict(chosen)})


def decode_range(data: bytes) -> tuple[TopicRange, int]:
    """The task of :func:`encode_range`. Raises FormatError."""
    content = decode_task(_KIND, data, ("index", "partition", "start", "end"))
    return TopicRange(partition=content["partition"], start=content["start"], end=content["end"]), content["index"]


def _message(text: object) -> CommitMessage:
    return CommitMessage.from_bytes(text_to_bytes(_DONE, text))


def _letter_writer(job: IngestJob, task_index: int) -> AbstractContextManager[TableWriter | None]:
    if job.letters is None:
        return nullcontext()
    return task_writer(job.letters, job.letters.spec.table(job.letters.schema_id), task_index)


def _records(source: TopicSource, chosen: TopicRange, clock: Clock) -> Iterator[TopicRecords]:
    """The records of a range, in batches. Raises StorageError if they do not come."""
    partition, at = chosen.partition, chosen.start
    with closing(source.open_cursor({partition: at})) as cursor:
        moved_s = clock.steady_s()
        while at < chosen.end:
            records = cursor.poll(_POLL_S, BATCH_RECORDS, BATCH_BYTES)
            reached = max(records.next_offsets().get(partition, at), records.ended.get(partition, at))
            if reached > at:
                at, moved_s = reached, clock.steady_s()
            elif clock.steady_s() - moved_s >= _PATIENCE_S:
                raise StorageError(
                    f"topic {source.name} has given nothing for {_PATIENCE_S:.0f} s at offset {at} of partition {partition}, and "
                    f"is to be read up to {chosen.end}; check that its brokers are up, then run the ingest again: it goes on "
                    "behind its last commit",
                    kind="topic-stuck",
                )
            if len(inside := _before(records, chosen.end)):
                yield inside


def _before(records: TopicRecords, end: int) -> TopicRecords:
    """The records of a single partition before an offset."""
    count = int(np.searchsorted(records.offsets, end))
    if count == len(records):
        return records
    return TopicRecords(
        partitions=records.partitions[:count],
        offsets=records.offsets[:count],
        keys=records.keys[:count],
        values=records.values[:count],
    )
