"""Defines the request and the report of an ingest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tablestore.cdc.records.avroobjects import AvroSchema
from tablestore.cdc.records.recordformats import AVRO_FORMATS, FORMATS
from tablestore.errors import InvalidInputError
from tablestore.htmltext import PrintedInNotebooks
from tablestore.names import did_you_mean

Start = Literal["earliest", "latest"]
OnError = Literal["stop", "skip", "dead-letter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestRequest:
    """The request of an ingest. ``name``: under which its progress is kept. ``start``: where it begins when it has none, or with
    ``reset`` in any case.

    ``follow``: wait for further records; else it ends at those that are there now. A commit comes after ``commit_records`` records
    or ``commit_every_s``, whichever is first. ``evolve``: give the table the columns that records have, and widen those too narrow.
    ``schema``: of records of Avro; ``key_schema``: of their keys, None if those are JSON or text.
    """

    name: str
    format: str = "debezium-json"
    start: Start = "earliest"
    reset: bool = False
    follow: bool = False
    commit_every_s: float = 10.0
    commit_records: int = 1_000_000
    on_error: OnError = "stop"
    evolve: bool = False
    schema: AvroSchema | None = None
    key_schema: AvroSchema | None = None

    def __post_init__(self) -> None:
        _one_of("format", self.format, FORMATS)
        if (self.format in AVRO_FORMATS) != (self.schema is not None) or (self.key_schema is not None and self.schema is None):
            raise InvalidInputError(
                f"format {self.format}: records of Avro need their schema, others have none", kind="invalid-argument"
            )
        _one_of("start", self.start, ("earliest", "latest"))
        _one_of("on_error", self.on_error, ("stop", "skip", "dead-letter"))
        if not 0 < len(self.name) <= 200:
            raise InvalidInputError(f"expected a name of 1 to 200 characters for the ingest, found {self.name!r:.100}")
        if self.commit_every_s <= 0 or self.commit_records <= 0:
            raise InvalidInputError(
                f"expected a commit after some time and some records, found {self.commit_every_s} s and {self.commit_records}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestCommit:
    """One commit. ``lag``: offsets between where it goes on, ``offsets``, and the ends of the topic; None if it did not answer."""

    snapshot_id: int
    records: int
    rows: int
    bad_records: int
    lag: int | None
    offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport(PrintedInNotebooks):
    """Reports an ingest: records read, rows that they became, records that could not, and the last snapshot of its own."""

    records: int = 0
    rows: int = 0
    bad_records: int = 0
    commits: int = 0
    snapshot_id: int | None = None

    def after(self, commit: IngestCommit) -> "IngestReport":
        """The report with one more commit."""
        return IngestReport(
            records=self.records + commit.records,
            rows=self.rows + commit.rows,
            bad_records=self.bad_records + commit.bad_records,
            commits=self.commits + 1,
            snapshot_id=commit.snapshot_id,
        )

    def __str__(self) -> str:
        bad = f", {self.bad_records:,} could not be read" if self.bad_records else ""
        return f"{self.records:,} records became {self.rows:,} rows in {self.commits:,} commits{bad}"


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidInputError(
            f"expected {', '.join(choices)} as {name}, found {value!r:.80}{did_you_mean(value, choices)}", kind="invalid-argument"
        )
