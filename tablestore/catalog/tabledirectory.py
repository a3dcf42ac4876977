"""Finds the files in the directory of a table that are no part of a table.

    <table>/schema, snapshot, manifest, …, tablestore-…      files of the table
           [<key>=<value>/…]bucket-<n>/                      its rows
           .…                                                what is hidden: temporary files, notes of file browsers

A directory without schemas is no table, and may hold such parts still: of a writer that went on after its table was dropped.
"""

from collections.abc import Iterator

from tablestore.format import paths
from tablestore.io.filestore import FileStore

_PARTS = frozenset(
    {
        paths.SCHEMA_DIR,
        paths.SNAPSHOT_DIR,
        paths.MANIFEST_DIR,
        paths.INDEX_DIR,
        paths.STATISTICS_DIR,
        paths.CHANGELOG_DIR,
        paths.TAG_DIR,
        paths.CONSUMER_DIR,
        paths.BRANCH_DIR,
    }
)
_OWN_PREFIX = "tablestore-"


def others_files(files: FileStore, directory: str) -> Iterator[str]:
    """The paths, inside the directory of a table, of files and directories that are no part of a table."""
    for info in files.list(directory):
        is_part = info.is_dir and (info.name in _PARTS or info.name.startswith(_OWN_PREFIX))
        yield from () if is_part else _among_rows(files, directory, info.name, is_directory=info.is_dir)


def _among_rows(files: FileStore, directory: str, name: str, *, is_directory: bool) -> Iterator[str]:
    if name.startswith(".") or (is_directory and name.startswith(paths.BUCKET_PREFIX)):
        return
    if not is_directory or "=" not in name:
        yield name
        return
    for info in files.list(f"{directory}/{name}"):
        for path in _among_rows(files, f"{directory}/{name}", info.name, is_directory=info.is_dir):
            yield f"{name}/{path}"
