"""The request of a stream: plain values, which travel; checked against the table where it is opened."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tablestore.distributed.read import TASK_BYTES
from tablestore.errors import InvalidInputError
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.log.follow.request import Consumption, OnDiscontinuity, parse_start
from tablestore.store.context import TableContext
from tablestore.table.read.scan import check_columns
from tablestore.types.datatypes import AtomicType, Field, TypeRoot, with_nullable
from tablestore.types.filter.filters import parse_filter
from tablestore.types.rowkind import ROW_KIND_COLUMN
from tablestore.types.schema import TableSchema

FROM_SNAPSHOT = "from-snapshot"
# Without a limit of the user's: what a batch holds is planned in one process.
MOST_FILES = 10_000
ROW_KIND_FIELD = Field(id=-1, name=ROW_KIND_COLUMN, type=AtomicType(root=TypeRoot.VARCHAR, nullable=False, length=2**31 - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """Limits of one batch, by the metadata of the files that it reads; None: any number. One piece is always taken."""

    rows: int | None = None
    size_bytes: int | None = None
    files: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    """A stream of a table.

    ``columns`` None: all. ``row_kinds``: ``_row_kind`` comes first, and all changes come; without it the rows of an append table
    and the new rows (``+I``, ``+U``) of a keyed one. ``pairs``: ``-U`` too. ``scan`` None: the table's ``log.scan``;
    ``from-snapshot`` begins with the changes behind the snapshot ``from_snapshot``. ``consumer_id`` None: the stream names itself.
    """

    columns: tuple[str, ...] | None = None
    filter: str | None = None
    row_kinds: bool = False
    pairs: bool = False
    scan: str | None = None
    time_millis: int | None = None
    from_snapshot: int | None = None
    consumer_id: str | None = None
    on_discontinuity: OnDiscontinuity = "raise"
    limits: BatchLimits = BatchLimits()
    task_bytes: int = TASK_BYTES
    parallelism: int = 1


def check_request(context: TableContext, request: StreamRequest, consumer_id: str | None = None) -> Consumption:
    """The request as following a table understands it, for a consumer of this name. Raises InvalidInputError."""
    if request.pairs and not request.row_kinds:
        raise InvalidInputError("pairs adds rows before an update (-U), which only their kind sets apart: ask for row-kinds too")
    by_snapshot = request.from_snapshot is not None
    if by_snapshot != (request.scan == FROM_SNAPSHOT) and (request.scan is not None or not by_snapshot):
        raise InvalidInputError(
            f"from-snapshot = <id>, the changes behind that snapshot, goes with log.scan = {FROM_SNAPSHOT}; found "
            f"from-snapshot = {request.from_snapshot} and log.scan = {request.scan}",
            kind="scan-mode",
        )
    scan = "latest" if by_snapshot else request.scan
    return Consumption(
        columns=check_columns(request.columns, context.schema.field_names),
        predicate=parse_filter(request.filter, context.schema.fields),
        pairs=request.pairs,
        start=parse_start(context, scan=scan, time_millis=request.time_millis, consumer_id=consumer_id, position=None),
        follow=True,
        on_discontinuity=request.on_discontinuity,
        stop=None,
    )


def stream_fields(schema: TableSchema, columns: Sequence[str], *, row_kinds: bool) -> tuple[Field, ...]:
    """The columns of the stream. Where deletes come too, all but the key may be null: a delete may name nothing else."""
    fields = [schema.field(name) for name in columns]
    if not row_kinds:
        return tuple(fields)
    named = set(schema.primary_keys if schema.is_keyed else columns)
    return ROW_KIND_FIELD, *(f if f.name in named else replace(f, type=with_nullable(f.type, True)) for f in fields)


class Budget:
    """The room that a batch still has. It takes one piece in any case."""

    def __init__(self, limits: BatchLimits | None) -> None:
        self._limits = limits or BatchLimits()
        self._rows = self._bytes = self._files = 0
        self.is_begun = self.is_full = False

    def takes(self, files: Iterable[DataFileMeta]) -> bool:
        """True if a piece of these files is in the batch; once one is not, none is."""
        counted = tuple(files)
        if not counted or self.is_full:
            return not self.is_full
        self._rows += sum(file.row_count for file in counted)
        self._bytes += sum(file.file_size for file in counted)
        self._files += len(counted)
        limits = self._limits
        totals = ((self._rows, limits.rows), (self._bytes, limits.size_bytes), (self._files, limits.files))
        self.is_full = self.is_begun and any(most is not None and count > most for count, most in totals)
        self.is_begun = True
        return not self.is_full
