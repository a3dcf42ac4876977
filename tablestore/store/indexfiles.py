"""Index files: reads and writes the ``index`` directory of one table, deletion vectors and hash indexes as whole files.

An index file is never changed. What changes is written as a new file, and the commit replaces one by the other in the index
manifest; a bucket has at most one file of a kind. The name holds a checksum of the content and a random number: two attempts
that write the same content write two files, so that the one that loses may remove its own.
"""

from dataclasses import dataclass

from tablestore.errors import NotFoundError
from tablestore.format.limits import refuse_to_write
from tablestore.format.manifest.indexmanifest import DeletionVectorRange, IndexEntry
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.format.paths import INDEX_DIR, index_file_name, index_path, verify_content_name
from tablestore.ids import Ids
from tablestore.io.filestore import READ_LIMIT_BYTES, FileStore


@dataclass(frozen=True, slots=True)
class IndexFiles:
    """Reads and writes index files."""

    files: FileStore
    ids: Ids

    def read(self, name: str) -> bytes:
        """The bytes of an index file, checked against its name where that promises them."""
        path = index_path(name)
        try:
            data = self.files.read(path)
        except NotFoundError as error:
            raise NotFoundError(
                f"index file {self.describe(name)} is gone: the snapshot that names it has expired, or it was removed by hand; "
                "read a retained snapshot",
                kind="metadata-gone",
            ) from error
        verify_content_name(self.describe(name), data)
        return data

    def write(
        self,
        data: bytes,
        *,
        partition: bytes,
        bucket: int,
        index_type: str,
        row_count: int,
        deletion_vectors: tuple[DeletionVectorRange, ...] | None = None,
    ) -> IndexEntry:
        """Write a new index file; returns the entry that adds it. Its name is durable after :meth:`sync`."""
        if len(data) > READ_LIMIT_BYTES:
            way_out = "use more buckets or more partitions"
            refuse_to_write(f"index of bucket {bucket}", "the size in bytes", len(data), READ_LIMIT_BYTES, way_out)
        name = index_file_name(data, int.from_bytes(self.ids.nonce()[:6], "big"))
        self.files.write(index_path(name), data)
        return IndexEntry(
            kind=EntryKind.ADD,
            partition=partition,
            bucket=bucket,
            index_type=index_type,
            file_name=name,
            file_size=len(data),
            row_count=row_count,
            deletion_vectors=deletion_vectors,
        )

    def sync(self) -> None:
        """Make the names of written index files durable, before a commit refers to them."""
        self.files.sync(INDEX_DIR)

    def describe(self, name: str) -> str:
        """A file's full name, for messages."""
        return f"{self.files.root_uri}/{index_path(name)}"
