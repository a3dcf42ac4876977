"""Which data files may another engine read with a Parquet reader of its own?

Those that hold nothing but live rows, in the columns that are read as the schema has them now.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tablestore.format.binaryrow import decode_row
from tablestore.format.parquet.parquetschema import file_schema
from tablestore.lsm.run import Section
from tablestore.store.context import TableContext
from tablestore.store.scan.splits import Split
from tablestore.types.evolution.widening import is_same
from tablestore.types.schema import TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainFile:
    """A data file that holds nothing but live rows in the columns of the schema: no merge, no cast, no rename is needed.

    ``path`` is that inside the table, ``columns`` are all that are in the file.
    """

    path: str
    size_bytes: int
    columns: pa.Schema


# Which plain files the caller reads with a Parquet reader of its own. The same files in, the same out: plans are made twice.
PlainChoice = Callable[[Sequence[PlainFile]], Iterable[PlainFile]]


def set_plain_aside(
    context: TableContext, splits: Sequence[Split], names: Sequence[str], choose: PlainChoice
) -> tuple[tuple[str, ...], list[Split]]:
    """Paths of the plain files that ``choose`` takes for a reader of the columns ``names``, and the splits without them."""
    schemas = _schemas_alike(context, names, {file.schema_id for split in splits for file in split.files})
    types = [field.type for field in context.schema.partition_fields]
    # File names hold a UUID: they are unique in the table.
    plain: dict[str, PlainFile] = {}
    for split in splits:
        directory = context.paths.bucket(decode_row(split.partition, types), split.bucket)
        deleted_from = {name for name, _ in split.deletions}
        for file in (file for section in split.sections if not section.needs_merge for file in section.files):
            if not file.may_retract and file.schema_id in schemas and file.file_name not in deleted_from:
                path = f"{directory}/{file.file_name}"
                plain[file.file_name] = PlainFile(path=path, size_bytes=file.file_size, columns=schemas[file.schema_id])
    chosen = {file.path for file in choose(tuple(plain.values()))}
    aside = {name: file.path for name, file in plain.items() if file.path in chosen}
    return tuple(aside.values()), [rest for split in splits if (rest := _without(split, aside)) is not None]


def _without(split: Split, aside: Collection[str]) -> Split | None:
    """The split without the files of these names; None if nothing is left."""
    left: list[Section] = []
    for section in split.sections:
        if section.needs_merge:
            left.append(section)
        else:
            left += [Section(((file,),)) for file in section.files if file.file_name not in aside]
    return replace(split, sections=tuple(left)) if left else None


def _schemas_alike(context: TableContext, names: Sequence[str], schema_ids: Collection[int]) -> dict[int, pa.Schema]:
    """Those of the schemas whose files hold the columns ``names`` under their present names and types, and the columns of these
    files. Options do not matter."""
    asked = [context.schema.field(name) for name in names]

    def has_all(schema: TableSchema) -> bool:
        there = {field.id: field for field in schema.fields}
        found = ((there.get(field.id), field) for field in asked)
        return all(old is not None and old.name == new.name and is_same(old.type, new.type) for old, new in found)

    schemas = {schema_id: context.schemas.read(schema_id) for schema_id in schema_ids}
    return {schema_id: file_schema(schema, thin=False) for schema_id, schema in schemas.items() if has_all(schema)}
