"""Picks data files that another engine may read with a reader of its own, of Parquet, and of ORC where it says so.

Those that hold the columns that are read as the schema has them now, and nothing but live rows, or rows of which a key says
whether they count (``layers``).
"""

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tablestore.distributed.layers import Layer, find_layers, layer_key
from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.parquet.parquetschema import file_schema
from tablestore.format.paths import file_format_of
from tablestore.lsm.run import Section
from tablestore.store.context import TableContext
from tablestore.store.scan.filepruning import FilePruning
from tablestore.store.scan.splits import Split
from tablestore.types.evolution.widening import is_same
from tablestore.types.filter.pruning import ColumnRange
from tablestore.types.schema import TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainFile:
    """A data file of which no row needs a cast or a rename. ``path`` is that inside the table, ``columns`` are all that are in the
    file."""

    path: str
    size_bytes: int
    columns: pa.Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcTerms:
    """The terms on which a caller reads ORC files itself. ``least``: the values from which on its reader gives what we give, by the
    names of columns: a file is plain only if its statistics say that it has no smaller one. ``ours_only``: none of other
    writers, which have other types in ORC for some of a table's."""

    least: tuple[tuple[str, dt.date], ...] = ()
    ours_only: bool = False

    def hold(self, file: DataFileMeta, pruning: FilePruning) -> bool:
        """True for a file of which the caller reads the same rows as we do."""
        if self.ours_only and file.footer_digest is None:
            return False
        return not self.least or all(_begins_at(pruning.value_ranges(file).get(name), value) for name, value in self.least)


def _begins_at(values: ColumnRange | None, least: dt.date) -> bool:
    if values is None:
        return False
    is_empty = values.null_count == values.row_count
    # Of another type there is no telling; a time is a date too.
    return is_empty or (type(values.min) is type(least) and values.min >= least)


# Picks the files that the caller reads with its own reader. The same files in, the same out: plans are made twice.
PlainChoice = Callable[[Sequence[PlainFile]], Iterable[PlainFile]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """The files that the caller reads itself: ``paths`` of files that hold nothing but live rows, and ``layers``. And the
    ``splits`` without their files."""

    paths: tuple[str, ...]
    layers: tuple[Layer, ...]
    splits: Sequence[Split]


def set_plain_aside(
    context: TableContext,
    splits: Sequence[Split],
    names: Sequence[str],
    choose: PlainChoice,
    *,
    layers: bool = False,
    orc: OrcTerms | None = None,
) -> SetAside:
    """Sets aside the files that ``choose`` takes for a reader of the columns ``names``. It is asked about ``layers`` only
    where the caller reads some; a layer is taken with all of its files, which are of Parquet. ``orc`` of None: no ORC files."""
    if context.view is not None:
        # What rules of a catalog service hide, another reader would show.
        return SetAside(paths=(), layers=(), splits=tuple(splits))
    pruning = FilePruning(context.schema, None, context.fields_by_schema())

    def is_read(file: DataFileMeta) -> bool:
        file_format = file_format_of(file.file_name)
        return file_format == "parquet" or (file_format == "orc" and orc is not None and orc.hold(file, pruning))

    key = layer_key(context)
    layered_names = {*names, *(field.name for field in (key,) if field is not None)}
    needed = [name for name in context.schema.field_names if name in layered_names]
    formats = {"parquet"} if orc is None else {"parquet", "orc"}
    schema_ids = {file.schema_id for split in splits for file in split.files if file_format_of(file.file_name) in formats}
    schemas = _schemas_alike(context, names, schema_ids)
    layered_schemas = _schemas_alike(context, needed, schema_ids)
    candidates = (
        find_layers(context, splits, lambda file: _is_parquet(file) and file.schema_id in layered_schemas) if layers else ()
    )
    types = [field.type for field in context.schema.partition_fields]
    # File names hold a UUID: they are unique in the table.
    plain_files = {
        bucket_file.file.file_name: PlainFile(
            path=bucket_file.path, size_bytes=bucket_file.file.file_size, columns=layered_schemas[bucket_file.file.schema_id]
        )
        for layer in candidates
        for bucket_file in layer.files
    }
    for split in splits:
        directory = context.paths.bucket(decode_row(split.partition, types), split.bucket)
        deleted_from = {name for name, _ in split.deletions}
        alone = (file for section in split.sections if not section.needs_merge for file in section.files)
        for file in alone:
            is_plain = not file.may_retract and file.schema_id in schemas and file.file_name not in deleted_from
            if is_plain and is_read(file) and file.file_name not in plain_files:
                path = f"{directory}/{file.file_name}"
                plain_files[file.file_name] = PlainFile(path=path, size_bytes=file.file_size, columns=schemas[file.schema_id])
    chosen = {file.path for file in choose(tuple(plain_files.values()))}
    chosen_layers = tuple(layer for layer in candidates if chosen.issuperset(bucket_file.path for bucket_file in layer.files))
    in_layers = {bucket_file.file.file_name for layer in chosen_layers for bucket_file in layer.files}
    # In a layer, or to be merged.
    overlapping = (section for split in splits for section in split.sections if section.needs_merge)
    settled = in_layers | {file.file_name for section in overlapping for file in section.files}
    plain = {name: file.path for name, file in plain_files.items() if file.path in chosen and name not in settled}
    remaining = (_without(split, in_layers | plain.keys()) for split in splits)
    return SetAside(
        paths=tuple(plain.values()), layers=chosen_layers, splits=tuple(split for split in remaining if split is not None)
    )


def _is_parquet(file: DataFileMeta) -> bool:
    return file_format_of(file.file_name) == "parquet"


def _without(split: Split, aside: Collection[str]) -> Split | None:
    """The split without the files of these names; None if nothing is left."""
    left: list[Section] = []
    for section in split.sections:
        if section.needs_merge:
            # All of its files are in one layer, or none.
            left += [] if section.files[0].file_name in aside else [section]
        else:
            left += [Section(((file,),)) for file in section.files if file.file_name not in aside]
    return replace(split, sections=tuple(left)) if left else None


def _schemas_alike(context: TableContext, names: Sequence[str], schema_ids: Collection[int]) -> dict[int, pa.Schema]:
    """The schemas whose files hold the columns ``names`` under their present names and types, and the columns of these files.
    Options do not matter."""
    fields = [context.schema.field(name) for name in names]

    def has_all(schema: TableSchema) -> bool:
        written = {field.id: field for field in schema.fields}
        pairs = ((written.get(field.id), field) for field in fields)
        return all(old is not None and old.name == new.name and is_same(old.type, new.type) for old, new in pairs)

    schemas = {schema_id: context.schemas.read(schema_id) for schema_id in schema_ids}
    return {schema_id: file_schema(schema, thin=False) for schema_id, schema in schemas.items() if has_all(schema)}
