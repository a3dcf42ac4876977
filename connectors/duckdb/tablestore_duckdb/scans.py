"""Plans the scan of a managed table at a snapshot: the files that DuckDB reads itself, and those that we merge for it.

plain files                    DuckDB's own Parquet scan: its push-down, its threads
files under a few newer rows   the same, without the rows whose keys the newer files have
all others                     a stream of ours, begun anew each time that DuckDB scans it; also the newer rows
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tablestore.distributed.layers import BucketFile, layer_key
from tablestore.distributed.plainfiles import set_plain_aside
from tablestore.environment.engine import BoundQuery, ConnectorRelation, ManagedRelation, QueryRelation
from tablestore.errors import TablestoreError, UnsupportedError
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.lsm.keyorder import KeyOrder
from tablestore.lsm.run import partition_intervals
from tablestore.sql.duckdb.rowconditions import RowConditions
from tablestore.store.context import TableContext
from tablestore.store.scan.filepruning import file_pruning
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.scan.splits import Split
from tablestore.table.read.scan import ArrowSource, ReadOptimizedScan, Scan, check_columns
from tablestore.types.datatypes import AtomicType, Field, TypeRoot
from tablestore.types.filter.predicate import IsNull, keep_only
from tablestore.types.filter.predicate import columns as filter_columns
from tablestore.types.schema import TableSchema
from tablestore_duckdb.filetables import connector_folder
from tablestore_duckdb.native import (
    are_clear,
    can_name,
    choose,
    has_screened_field,
    is_screened,
    names_of,
    native_scan,
    reads_alike,
)
from tablestore_duckdb.quoting import Sql, ViewPlace, identifier, joined
from tablestore_duckdb.rowtypes import cast, rows_in

_WIDTHS = {TypeRoot.BOOLEAN: 1, TypeRoot.TINYINT: 1, TypeRoot.SMALLINT: 2, TypeRoot.INT: 4, TypeRoot.DATE: 4, TypeRoot.FLOAT: 4}


class RowStream(ArrowSource):
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
class LayeredFiles:
    """Files of which DuckDB reads the rows that have no key of the ``newer`` ones."""

    base: tuple[NativeFile, ...]
    newer: tuple[BucketFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedScan:
    """A managed table, planned: the files that DuckDB reads, and the splits that we merge.

    ``read_columns``: those that the query uses. A scan has one column at least, also where the query only counts rows.
    """

    scan: Scan
    location: str
    read_columns: tuple[str, ...]
    plain: tuple[NativeFile, ...] = ()
    layers: tuple[LayeredFiles, ...] = ()
    rest: Sequence[Split] = ()

    @property
    def native(self) -> tuple[NativeFile, ...]:
        """All files that DuckDB reads."""
        return (*self.plain, *(file for layer in self.layers for file in layer.base))

    @property
    def screened(self) -> frozenset[str]:
        """The columns on which no condition may reach DuckDB's scan (``native``)."""
        context = self.scan.context
        metas = [file.meta for file in self.native]
        checked_fields = [context.schema.field(name) for name in self.checked_columns]
        can_be_null = [field for field in checked_fields if field.type.nullable and is_screened(field.type)]
        holds_null = ((field.name, file_pruning(context, IsNull(field.name))) for field in can_be_null)
        inside = {field.name for field in checked_fields if has_screened_field(field.type)}
        return frozenset(inside.union(name for name, may_hold in holds_null if any(map(may_hold, metas))))

    @property
    def checked_columns(self) -> tuple[str, ...]:
        """The columns that DuckDB reads of its files."""
        key = layer_key(self.scan.context) if self.layers else None
        return self.read_columns if key is None or key.name in self.read_columns else (*self.read_columns, key.name)

    def to_sql(self, view: Callable[[RowStream], ViewPlace], conditions: RowConditions) -> Sql:
        """The rows as a query; ``view`` makes a view of a stream. ``conditions``: those that are put to them."""
        columns, reader = self.scan.columns, self.scan.reader
        parts: list[Sql] = []
        if self.plain:
            fields = self._fields(columns)
            parts.append((native_scan(self._paths(self.plain), fields, screening=self.screened, positions=reader.positions),))
        parts += [self._layer_sql(layer, view, conditions) for layer in self.layers if layer.base]
        if self.rest or not parts:
            # Filtered as far as the plan was, so DuckDB sees fewer rows.
            rows = RowStream(reader.arrow_schema, lambda: self._merged(reader))
            parts.append(("SELECT * FROM ", view(rows)))
        return joined(parts[0], *(piece for part in parts[1:] for piece in (" UNION ALL ", *part)))

    def _merged(self, reader: SplitReader) -> Iterator[pa.RecordBatch]:
        with self.scan.context.reading():
            for split in self.rest:
                yield from reader.read(split)

    def _layer_sql(self, layer: LayeredFiles, view: Callable[[RowStream], ViewPlace], conditions: RowConditions) -> Sql:
        columns = self.scan.columns
        key = layer_key(self.scan.context)
        assert key is not None, "layers have a key"
        read_columns = columns if key.name in columns else (*columns, key.name)
        base = native_scan(self._paths(layer.base), self._fields(read_columns), screening=self.screened, positions=False)
        if not layer.newer:
            return (f"SELECT {names_of(columns)} FROM ({base})",)
        reader = SplitReader.whole(self.scan.context, (key.name,), None)
        hidden = RowStream(
            reader.arrow_schema,
            lambda: (batch for one in layer.newer for batch in reader.file_rows(one.directory, one.file, (key.name,), ())),
        )
        chosen = ", ".join(_fenced(name, conditions) for name in columns)
        return f"SELECT {chosen} FROM ({base}) ANTI JOIN ", view(hidden), f" USING ({identifier(key.name)})"

    def _fields(self, names: Sequence[str]) -> list[Field]:
        return [self.scan.context.schema.field(name) for name in names]

    def _paths(self, files: Sequence[NativeFile]) -> list[str]:
        return [f"{self.location}/{file.path}" for file in files]

    def explain(self, name: str) -> str:
        """Describes what is read, as text for people."""
        whole = self.scan.explain().splitlines()
        if self.scan.context.view is not None:
            return "\n".join([f"{name}: {whole[0]}", *whole[1:]])
        merged = [file for split in self.rest for file in split.files]
        under = sum(len(layer.base) for layer in self.layers)
        newer = f" ({under} without the keys of newer files)" if under else ""
        sizes = [sum(file.file_size for file in files) for files in ([file.meta for file in self.native], merged)]
        lines = [
            f"  read by    DuckDB {len(self.native)} files{newer}, tablestore {len(merged)} files",
            f"             DuckDB {sizes[0]:,} bytes, tablestore {sizes[1]:,} bytes",
        ]
        if merged and not is_on_disk(self.location):
            lines.append("             DuckDB reads no files that are not on a disk of this machine")
        return "\n".join([f"{name}: {whole[0]}", *whole[1:], *lines])


def _fenced(name: str, conditions: RowConditions) -> str:
    """A column of a layer, through which no condition gets down to the rows that are hidden if it may fail on one of these.

    DuckDB pushes no condition through what may be another value each time.
    """
    column = identifier(name)
    if not conditions.may_fail(name):
        return column
    return f"CASE WHEN random() >= 0 THEN {column} END AS {column}"


def plan_managed(relation: ManagedRelation) -> PlannedScan:
    """Plans the scan of a managed table. Raises UnsupportedError for columns that DuckDB cannot keep apart."""
    pin = relation.pin
    context = pin.at_schema(relation.table.context)
    schema = context.schema
    names = check_columns(relation.columns, schema.field_names)
    snapshot = pin.read_snapshot(context)
    scan_class = ReadOptimizedScan if pin.read_optimised else Scan
    scan = scan_class(context, snapshot, names or (_narrowest(schema),), relation.filter, positions=relation.positions)
    _check_clear(relation.name, scan.schema)
    with context.reading():
        return _shared_out(PlannedScan(scan=scan, location=pin.spec.location, read_columns=names))


def folders_of(query: BoundQuery) -> Iterator[str]:
    """The folders in which DuckDB may find files of what a query reads."""
    for relation in query.relations:
        match relation:
            case ManagedRelation(pin=pin) if is_on_disk(pin.spec.location):
                yield pin.spec.location
            case QueryRelation(query=inner):
                yield from folders_of(inner)
            case ConnectorRelation():
                yield from connector_folder(relation)


def is_on_disk(location: str) -> bool:
    """True for a location that is a path of this machine."""
    return location.startswith("/")


def _shared_out(planned: PlannedScan) -> PlannedScan:
    """The scan with its files shared out."""
    scan, location = planned.scan, planned.location
    context, splits = scan.context, scan.plan.splits
    read_names = {*scan.columns, *filter_columns(scan.predicate)}
    read_fields = [field for field in context.schema.fields if field.name in read_names]
    if context.view is not None:
        return replace(planned, rest=splits)
    if not (is_on_disk(location) and can_name(location) and all(reads_alike(field.type) for field in read_fields)):
        return replace(planned, rest=splits)
    aside = set_plain_aside(context, splits, [field.name for field in read_fields], choose, layers=True)
    files = {file.file_name: file for file in scan.plan.files}
    may_match = file_pruning(context, scan.predicate)
    key = layer_key(context)
    # A file hides only rows of keys that it may have.
    may_hide = file_pruning(context, keep_only(scan.predicate, (key.name,)) if key is not None else None)
    layers = [
        LayeredFiles(
            base=tuple(NativeFile(path=one.path, meta=one.file) for one in layer.base if may_match(one.file)),
            newer=tuple(one for one in layer.newer if may_hide(one.file)),
        )
        for layer in aside.layers
    ]
    newer = {one.file.file_name for layer in layers for one in layer.newer}
    return replace(
        planned,
        plain=tuple(NativeFile(path=path, meta=files[path.rpartition("/")[2]]) for path in aside.paths),
        layers=tuple(layers),
        rest=(*aside.splits, *_only(splits, newer, context)),
    )


def _only(splits: Sequence[Split], names: Collection[str], context: TableContext) -> Iterator[Split]:
    """The files of these names alone, to be merged with one another."""
    order = KeyOrder.of(context.schema.key_fields)
    for split in splits if names else ():
        if files := [file for file in split.files if file.file_name in names]:
            yield replace(split, sections=partition_intervals(files, order))


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
