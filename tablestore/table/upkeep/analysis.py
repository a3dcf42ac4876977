"""Counts the rows of a table and what its columns hold, and keeps that beside its snapshots: ANALYZE TABLE.

A commit of the kind ANALYZE names the file. It changes no row and lands beside the commits of others. Later snapshots of its schema
keep the name, so the numbers are those of the snapshot that the file says.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import CommitOutcomeUnknown, FormatError, NotFoundError, StorageError, TablestoreError
from tablestore.format.partitiontext import partition_value_text
from tablestore.format.paths import STATISTICS_DIR, statistics_file_name, verify_content_name
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.format.statisticsfile import ColumnCounts, TableStatistics, decode_statistics, encode_statistics
from tablestore.options import MIB
from tablestore.store.commit.committer import CommitRequest
from tablestore.store.commit.committerfactory import committer
from tablestore.store.context import TableContext
from tablestore.table.read.scan import Scan
from tablestore.types.datatypes import FLOAT_ROOTS, INTEGER_ROOTS, TEXT_ROOTS, AtomicType, Field, TypeRoot

OPERATION = "ANALYZE"
MOST_DISTINCT = 65_536
"""Distinct values of a column that are counted; of a column with more of them the number stays unknown."""
_MOST_DISTINCT_BYTES = 16 * MIB
# The file is read by every plan that is explained, and has bounds for two numbers or short texts a column.
_LONGEST_BOUND = 256
_BOUNDED = INTEGER_ROOTS | FLOAT_ROOTS | TEXT_ROOTS | {TypeRoot.DECIMAL, TypeRoot.DATE}


def analyze(context: TableContext, columns: Iterable[str] = ()) -> Snapshot | None:
    """Count the rows, and what these columns hold, at the newest snapshot; returns the snapshot of the commit, None before the
    first one. Memory: a batch, and the distinct values of each column, up to ``MOST_DISTINCT`` of them and 16 MiB.

    Raises NotFoundError for an unknown column, ConflictError, StorageError.
    """
    context.check_writable(new_rows=False)
    context.check_sees_all("ANALYZE")
    if (latest := context.snapshots.latest()) is None:
        return None
    data = encode_statistics(_counted(context, latest, [context.schema.field(name) for name in columns]))
    name = statistics_file_name(data, int.from_bytes(context.ids.nonce()[:6], "big"))
    path = f"{STATISTICS_DIR}/{name}"
    context.files.write(path, data)
    context.files.sync(STATISTICS_DIR)
    request = CommitRequest(
        user=context.ids.uuid(),
        kind=CommitKind.ANALYZE,
        operation=OPERATION,
        message=context.message(context.snapshots.latest()),
        allow_empty=True,
        statistics=name,
    )
    try:
        return committer(context).commit(request)
    except CommitOutcomeUnknown:
        raise
    except TablestoreError:
        with suppress(StorageError):
            context.files.delete(path)
        raise


def read_statistics(context: TableContext, snapshot: Snapshot | None) -> TableStatistics | None:
    """The statistics that a snapshot names; None where nobody counted, where rules of a catalog service hide
    something from the caller, or the file is none: they are only advice."""
    if snapshot is None or snapshot.statistics is None or context.view is not None:
        return None
    path = f"{STATISTICS_DIR}/{snapshot.statistics}"
    try:
        data = context.files.read(path)
        verify_content_name(path, data)
        return decode_statistics(data, path)
    except (NotFoundError, FormatError):
        return None


def _counted(context: TableContext, snapshot: Snapshot, fields: Sequence[Field]) -> TableStatistics:
    with context.reading():
        scan = Scan(context, snapshot, tuple(field.name for field in fields) or (context.schema.fields[0].name,), None)
        if fields:
            counters = [_Counter(field) for field in fields]
            rows = 0
            for batch in scan.to_batches():
                rows += batch.num_rows
                for counter in counters:
                    counter.add(batch.column(counter.field.name))
        else:
            counters, rows = [], scan.count()
        files = context.manifests.live_columns(snapshot, ("file_size",))
    stored = max(snapshot.stored_records, 1)
    size = sum(files.numbers("file_size").tolist())
    return TableStatistics(
        snapshot_id=snapshot.id,
        schema_id=context.schema.id,
        row_count=rows,
        size_bytes=size * rows // stored,
        columns={counter.field.name: counter.counts() for counter in counters},
    )


class _Counter:
    """Counts the values of one column, batch by batch."""

    def __init__(self, field: Field) -> None:
        self.field = field
        self._root = field.type.root if isinstance(field.type, AtomicType) else None
        self._nulls = self._values = self._bytes = self._longest = 0
        self._bounds: tuple[pa.Scalar, pa.Scalar] | None = None
        self._is_bounded = self._root in _BOUNDED
        self._distinct: pa.Array | None = None
        self._counts_distinct = self._root is not None

    def add(self, values: pa.Array) -> None:
        """Adds the values of a batch."""
        self._nulls += values.null_count
        values = values.drop_null()
        self._values += len(values)
        if not len(values):
            return
        if self._root in FLOAT_ROOTS:
            # Both zeros are one value; a NaN has no place between the bounds that all readers agree on.
            values = pc.add(values, pa.scalar(0.0, values.type))
            self._is_bounded = self._is_bounded and not pc.any(pc.is_nan(values)).as_py()
        if self._is_bounded:
            self._bound(pc.min_max(values))
        if self._root in TEXT_ROOTS:
            lengths = pc.binary_length(values)
            self._bytes += pc.sum(lengths).as_py()
            self._longest = max(self._longest, pc.max(lengths).as_py())
        if self._counts_distinct:
            known = [] if self._distinct is None else [self._distinct]
            self._distinct = pa.concat_arrays([*known, pc.unique(values)]).unique()
            self._counts_distinct = len(self._distinct) <= MOST_DISTINCT and self._distinct.nbytes <= _MOST_DISTINCT_BYTES
            self._distinct = self._distinct if self._counts_distinct else None

    def _bound(self, of_batch: pa.StructScalar) -> None:
        least, greatest = of_batch["min"], of_batch["max"]
        if self._bounds is not None:
            least = self._bounds[0] if pc.less(self._bounds[0], least).as_py() else least
            greatest = self._bounds[1] if pc.greater(self._bounds[1], greatest).as_py() else greatest
        self._bounds = (least, greatest)

    def counts(self) -> ColumnCounts:
        """The numbers of all that was added."""
        least, greatest = self._bound_texts()
        is_text = self._root in TEXT_ROOTS and self._values > 0
        distinct = (0 if self._distinct is None else len(self._distinct)) if self._counts_distinct else None
        return ColumnCounts(
            column_id=self.field.id,
            distinct_count=distinct,
            least=least,
            greatest=greatest,
            null_count=self._nulls,
            average_length=-(-self._bytes // self._values) if is_text else None,
            greatest_length=self._longest if is_text else None,
        )

    def _bound_texts(self) -> tuple[str | None, str | None]:
        """The bounds as texts; None for both where one is long, or a date that Python does not know."""
        if self._bounds is None or not self._is_bounded:
            return None, None
        try:
            least, greatest = (partition_value_text(bound.as_py(), self.field.type, legacy=False) for bound in self._bounds)
        except OverflowError:
            return None, None
        return (least, greatest) if max(len(least), len(greatest)) <= _LONGEST_BOUND else (None, None)
