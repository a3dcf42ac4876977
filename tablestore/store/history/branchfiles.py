"""Wraps a table's file store so that it shows the files of one of its branches.

    schema/ snapshot/ tag/ changelog/ consumer/ and our own notes   ->  branch/branch-<name>/…
    manifest/ index/ statistics/ and all data files                 ->  where those of the main branch lie

So a branch is a table like any other to everything that is built on a :class:`FileStore`: it is read, written, expired and
tagged by the same code. Only what looks at *all* branches (which files are in use?) starts from ``TableContext.main_files``.
"""

from dataclasses import dataclass

from tablestore.clock import Clock
from tablestore.format.paths import (
    CHANGELOG_DIR,
    CONSUMER_DIR,
    MAIN_BRANCH,
    SCHEMA_DIR,
    SNAPSHOT_DIR,
    TAG_DIR,
    branch_directory,
)
from tablestore.ids import Ids
from tablestore.io.filestore import FileStore
from tablestore.io.wrapped import WrappedFileStore
from tablestore.store.context import Shared, TableContext, open_context
from tablestore.store.history.expiryintents import EXPIRY_DIR
from tablestore.store.history.retentionleases import HOLDS_DIR
from tablestore.store.postcommit import UNDONE_DIR
from tablestore.store.replay import MARKS_DIR

# Directories that belong to one history and not to the table.
OWN_DIRECTORIES = frozenset(
    {SCHEMA_DIR, SNAPSHOT_DIR, TAG_DIR, CHANGELOG_DIR, CONSUMER_DIR, MARKS_DIR, EXPIRY_DIR, UNDONE_DIR, HOLDS_DIR}
)


@dataclass(frozen=True)
class BranchFiles(WrappedFileStore):
    """The files of the table in ``inner`` as its branch ``branch`` sees them; ``root_uri`` is the table's own place."""

    branch: str

    def real_path(self, path: str) -> str:
        return f"{branch_directory(self.branch)}/{path}" if path.partition("/")[0] in OWN_DIRECTORIES else path


def branch_files(main: FileStore, branch: str) -> FileStore:
    """The files of the table in ``main`` as ``branch`` sees them."""
    return main if branch == MAIN_BRANCH else BranchFiles(main, branch)


def open_branch(
    main: FileStore, branch: str, *, clock: Clock | None = None, ids: Ids | None = None, shared: Shared | None = None
) -> TableContext:
    """Open a branch of the table in ``main``. Raises what :func:`~tablestore.store.context.open_context` raises."""
    return open_context(branch_files(main, branch), main_files=main, branch=branch, clock=clock, ids=ids, shared=shared)
