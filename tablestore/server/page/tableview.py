"""Views a table: its columns with what is known of their values, some of its rows, and the lines of code that read it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

import pyarrow as pa

from tablestore.errors import TablestoreError
from tablestore.format.binaryrow import decode_row
from tablestore.format.snapshot import Snapshot
from tablestore.materialized.figures.freshnessfigures import FreshnessFigures
from tablestore.options import is_materialized
from tablestore.server.page.pagecontext import PageContext
from tablestore.server.page.warehouseview import CareLine, care_of
from tablestore.store.filesums import FileSums, summed_files
from tablestore.table.inspect.cells import cell_rows, is_number_column
from tablestore.table.inspect.tablefigures import table_kind
from tablestore.table.system.systemkinds import SEPARATOR
from tablestore.table.table import Table
from tablestore.table.upkeep.analysis import read_statistics
from tablestore.tableenvironment import TableEnvironment
from tablestore.types.filter.predicate import Comparison, IsNull, Predicate, all_of
from tablestore.types.typestring import quote_identifier, type_to_sql

SAMPLE_ROWS = 50
MOST_FILES_PLANNED = 5_000
"""Files of a table up to which the sample may be of any; of a larger one it is of the partition with the fewest."""
MOST_COLUMNS = 200
"""Columns of the sample; the list of columns is whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHead:
    """The head above every page of a table. ``plain``: the name without its branch."""

    database: str
    name: str
    plain: str
    kind: str
    comment: str | None
    branches: tuple[str, ...]
    branch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLine:
    """One column. ``nulls`` to ``greatest`` are those that ANALYZE TABLE has counted."""

    name: str
    type: str
    role: str
    nullable: bool
    comment: str | None
    default: str | None
    nulls: int | None = None
    distinct: int | None = None
    least: str | None = None
    greatest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsPart:
    """Some rows as texts; ``numbers``: which columns hold numbers; ``error``: why there are none."""

    names: tuple[str, ...] = ()
    numbers: tuple[bool, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    left_out_columns: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLine:
    """The lines of a language that read the table."""

    language: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """The first page of a table."""

    head: TableHead
    location: str
    rows: int | None
    rows_exact: bool
    size_bytes: int
    files: int
    snapshot: Snapshot | None
    primary_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    columns: tuple[ColumnLine, ...]
    statistics_snapshot: int | None
    sample: RowsPart
    code: tuple[CodeLine, ...]
    care: tuple[CareLine, ...]


def view_table(context: PageContext) -> TableView:
    """The first page of the table that the path names. Raises NotFoundError, FormatError, StorageError."""
    table, database, name = context.table(), context.names["database"], context.names["table"]
    inside = table.context
    latest = inside.shown_latest()
    sums = summed_files(inside.manifests, latest, "partition")
    files = sum(one.files for one in sums)
    counted = read_statistics(inside, latest)
    rows, exact = (0, True) if latest is None else (latest.rows, True)
    if rows is None and latest is not None:
        rows, exact = latest.total_record_count, False
    return TableView(
        head=head_of(context, table),
        location=table.location,
        rows=rows,
        rows_exact=exact,
        size_bytes=sum(one.size_bytes for one in sums),
        files=files,
        snapshot=latest,
        primary_key=table.primary_key,
        partition_by=table.partition_by,
        columns=tuple(_columns(table, latest)),
        statistics_snapshot=None if counted is None or not counted.columns else counted.snapshot_id,
        sample=_sample(table, smallest_partition(table, sums) if files > MOST_FILES_PLANNED else None),
        code=tuple(_code(table, context.catalog.location, database, name)),
        care=tuple(care_of(table, database, name, latest, files, _figures(context, table, database, name))),
    )


def head_of(context: PageContext, table: Table) -> TableHead:
    """The head above every page of a table."""
    name = context.names["table"]
    try:
        branches = tuple(branch.name for branch in table.branches())
    except TablestoreError:
        # Only what is shown of it is needed here.
        branches = ()
    return TableHead(
        database=context.names["database"],
        name=name,
        plain=name.partition(SEPARATOR)[0],
        kind=table_kind(table.table_schema),
        comment=table.comment,
        branches=branches,
        branch=table.branch_name,
    )


def _figures(context: PageContext, table: Table, database: str, name: str) -> FreshnessFigures | None:
    if not is_materialized(table.options()):
        return None
    with TableEnvironment.create(context.catalog) as environment:
        return environment.freshness_of(database, name)


def _columns(table: Table, latest: Snapshot | None) -> Iterator[ColumnLine]:
    schema = table.table_schema
    counted = read_statistics(table.context, latest)
    bucket_keys = schema.bucket_keys if "bucket-key" in table.options() else ()
    roles = (("key", table.primary_key), ("partition", table.partition_by), ("bucket", bucket_keys))
    for field in schema.fields:
        counts = counted.columns.get(field.name) if counted is not None else None
        yield ColumnLine(
            name=field.name,
            type=type_to_sql(field.type),
            role=", ".join(word for word, names in roles if field.name in names),
            nullable=field.type.nullable and field.name not in table.primary_key,
            comment=field.description,
            default=field.default_value,
            nulls=counts.null_count if counts else None,
            distinct=counts.distinct_count if counts else None,
            least=counts.least if counts else None,
            greatest=counts.greatest if counts else None,
        )


def smallest_partition(table: Table, sums: Sequence[FileSums]) -> Predicate | None:
    """A predicate that is true for the partition with the fewest files, by itself or with others; None without partitions."""
    fields = table.table_schema.partition_fields
    if not fields or not sums:
        return None
    least = min(sums, key=lambda one: one.files)
    values = decode_row(least.group[0], [field.type for field in fields])
    pairs = zip(fields, values, strict=True)
    return all_of(IsNull(field.name) if value is None else Comparison("=", field.name, value) for field, value in pairs)


def _sample(table: Table, where: Predicate | None) -> RowsPart:
    names = table.table_schema.field_names
    try:
        rows = table.scan(names[:MOST_COLUMNS], filter=where, limit=SAMPLE_ROWS).to_arrow()
    except TablestoreError as error:
        return RowsPart(error=error.message)
    return rows_part(rows, left_out_columns=max(len(names) - MOST_COLUMNS, 0))


def rows_part(rows: pa.Table, *, left_out_columns: int = 0) -> RowsPart:
    """A short table as texts."""
    return RowsPart(
        names=tuple(rows.column_names),
        numbers=tuple(is_number_column(column.type) for column in rows.columns),
        rows=cell_rows(rows),
        left_out_columns=left_out_columns,
    )


def _code(table: Table, warehouse: str, database: str, name: str) -> Iterator[CodeLine]:
    place = f"{database}.{name}"
    quoted = f"{quote_identifier(database)}.{quote_identifier(name)}"
    yield CodeLine(
        language="Python",
        text=f"import tablestore as ts\n\ntable = ts.open_catalog({warehouse!r}).table({place!r})\n"
        "table.scan(limit=10).to_pandas()",
    )
    yield CodeLine(language="SQL", text=f"SELECT * FROM {quoted} LIMIT 10;")
    yield CodeLine(
        language="Spark",
        text=f'spark.read.format("tablestore").load({table.location!r}).show(10)',
    )
    yield CodeLine(language="Command line", text=f"tablestore table read {quote(place)} --limit 10 --warehouse {quote(warehouse)}")
