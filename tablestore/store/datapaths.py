"""Builds the paths of a table's data files."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.entrycolumns import EntryColumns
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.partitiontext import partition_dir
from tablestore.format.paths import bucket_dir
from tablestore.store.settings import TableSettings
from tablestore.types.arrays import places_array, text_array, text_scalar
from tablestore.types.schema import TableSchema


@dataclass(frozen=True, slots=True)
class DataPaths:
    """The paths of a table's data files."""

    schema: TableSchema
    settings: TableSettings

    def bucket(self, partition: tuple[object, ...], bucket: int) -> str:
        """The directory of one bucket, relative to the table."""
        fields = self.schema.partition_fields
        directory = partition_dir(
            self.schema.partition_keys,
            [field.type for field in fields],
            partition,
            self.settings.default_partition,
            self.settings.legacy_partition_names,
        )
        path = bucket_dir(directory, bucket)
        return f"{self.settings.data_directory}/{path}" if self.settings.data_directory else path


def entry_directory(paths: DataPaths, entry: ManifestEntry, schema: TableSchema) -> str:
    """The directory that holds the file of an entry, relative to the table."""
    return paths.bucket(decode_row(entry.partition, [field.type for field in schema.partition_fields]), entry.bucket)


def entry_path(paths: DataPaths, entry: ManifestEntry, schema: TableSchema) -> str:
    """The path of the file of an entry, relative to the table."""
    return f"{entry_directory(paths, entry, schema)}/{entry.file.file_name}"


def file_paths(paths: DataPaths, files: EntryColumns, schema: TableSchema) -> pa.Array:
    """The paths of the files of many entries, of which there are the partition, bucket and file name."""
    types = [field.type for field in schema.partition_fields]
    places, which = files.groups("partition", "bucket")
    directories = text_array([paths.bucket(decode_row(partition, types), bucket) for partition, bucket in places])
    return pc.binary_join_element_wise(directories.take(places_array(which)), files.column("file_name"), text_scalar("/"))
