"""What of a managed table at a snapshot does DuckDB read itself, and what do we merge for it?

    plain files    DuckDB's own Parquet scan: its push-down, its threads
    all others     a stream of ours, begun anew each time that DuckDB scans it
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from tablestore.distributed.plainfiles import set_plain_aside
from tablestore.environment.engine import ManagedRelation
from tablestore.errors import TablestoreError, UnsupportedError
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.store.scan.splits import Split
from tablestore.table.read.scan import ArrowSource, ReadOptimizedScan, Scan, check_columns
from tablestore.types.datatypes import AtomicType, Field, TypeRoot
from tablestore.types.filter.filters import parse_filter
from tablestore.types.filter.predicate import columns as filter_columns
from tablestore.types.schema import TableSchema
from tablestore_duckdb.native import are_clear, can_name, choose, native_scan, reads_alike
from tablestore_duckdb.rowtypes import cast, rows_in

_WIDTHS = {TypeRoot.BOOLEAN: 1, TypeRoot.TINYINT: 1, TypeRoot.SMALLINT: 2, TypeRoot.INT: 4, TypeRoot.DATE: 4, TypeRoot.FLOAT: 4}


class Stream(ArrowSource):
    """Rows that DuckDB pulls; every scan reads them anew. ``failure``: what went wrong in it, before DuckDB made a text of it."""

    def __init__(self, schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]]) -> None:
        self._schema, self._batches = rows_in(schema), batches
        self.failure: TablestoreError | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._batches():
                yield cast(batch, self._schema)
        except TablestoreError as error:
            self.failure = error
            raise

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeFile:
    """A file that DuckDB reads: its path inside the table, and what the manifest says of it."""

    path: str
    meta: DataFileMeta


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedScan:
    """A managed table, planned: the files that DuckDB reads, and the splits that we merge.

    ``read_columns``: those that the query uses. A scan has one column at least, also where the query only counts rows.
    """

    scan: Scan
    location: str
    read_columns: tuple[str, ...]
    native: tuple[NativeFile, ...]
    rest: tuple[Split, ...]

    def native_sql(self) -> str | None:
        """The query over the files that DuckDB reads, None if there are none."""
        paths = [f"{self.location}/{file.path}" for file in self.native]
        return native_scan(paths, self.scan.columns, positions=self.scan.reader.positions) if paths else None

    def stream(self) -> Stream | None:
        """The rows that we merge; None if DuckDB reads all. Filtered as far as the plan was, so DuckDB sees fewer."""
        if self.native and not self.rest:
            return None
        reader = self.scan.reader
        return Stream(reader.arrow_schema, lambda: (batch for split in self.rest for batch in reader.read(split)))

    def explain(self, name: str) -> str:
        """What is read, as text for people."""
        whole = self.scan.explain().splitlines()
        merged = sum(len(split.files) for split in self.rest)
        return "\n".join(
            [f"{name}: {whole[0]}", *whole[1:], f"  read by    DuckDB {len(self.native)} files, tablestore {merged} files"]
        )


def plan_managed(relation: ManagedRelation) -> PlannedScan:
    """Plan the scan of a managed table. Raises UnsupportedError for columns that DuckDB cannot keep apart."""
    context, pin = relation.table.context, relation.pin
    if context.schema.id != pin.schema_id:
        context = context.at_schema(context.schemas.read(pin.schema_id))
    schema = context.schema
    predicate = parse_filter(relation.filter, schema.fields)
    names = check_columns(relation.columns, schema.field_names)
    snapshot = None if pin.snapshot_id is None else context.snapshots.read(pin.snapshot_id)
    made = ReadOptimizedScan if pin.read_optimised else Scan
    scan = made(context, snapshot, names or (_narrowest(schema),), predicate, positions=relation.positions)
    _check_clear(relation.name, scan.schema)
    native, rest = _shared_out(scan, pin.spec.location)
    return PlannedScan(scan=scan, location=pin.spec.location, read_columns=names, native=native, rest=rest)


def _shared_out(scan: Scan, location: str) -> tuple[tuple[NativeFile, ...], tuple[Split, ...]]:
    """The files that DuckDB reads, and the splits without them."""
    asked = {*scan.columns, *filter_columns(scan.predicate)}
    needed = [field for field in scan.context.schema.fields if field.name in asked]
    if not (location.startswith("/") and can_name(location) and all(reads_alike(field.type) for field in needed)):
        return (), tuple(scan.plan.splits)
    aside = set_plain_aside(scan.context, scan.plan.splits, [field.name for field in needed], choose)
    files = {file.file_name: file for file in scan.plan.files}
    return tuple(NativeFile(path=path, meta=files[path.rpartition("/")[2]]) for path in aside.paths), aside.splits


def _check_clear(name: str, schema: pa.Schema) -> None:
    if not are_clear(list(schema)):
        folded = [field.name.casefold() for field in schema]
        alike = [field.name for field in schema if folded.count(field.name.casefold()) > 1]
        raise UnsupportedError(
            f"table {name} has names that are equal but for their case{': ' if alike else ' inside a column'}{', '.join(alike)}. "
            "DuckDB takes them for one: name only one of them, or read the table with table.scan()",
            kind="engine",
        )


def _narrowest(schema: TableSchema) -> str:
    """The column that is cheapest to read, for queries that only count rows."""
    if schema.is_keyed:
        return schema.trimmed_primary_keys[0]
    return min(schema.fields, key=lambda field: _width(field)).name


def _width(field: Field) -> int:
    return _WIDTHS.get(field.type.root, 8) if isinstance(field.type, AtomicType) else 16
