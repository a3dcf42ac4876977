"""Publishes a staged table, made elsewhere in the warehouse, under its name in one step.

    a store that renames directories     rename, which never replaces
    any other                            claim ── copies ── snapshots ── schemas, schema-0 last ── claim gone ── originals gone
                                           └ no schema here?             └ this makes the table

The claim lies among the snapshots, where a creator looks: with one there it refuses, and takes its own schema back if it finds one
only afterwards. A publisher looks for a schema once its claim is there. So of a publish and a creation at least one sees the other
in time. A directory with snapshots and no schema is no table, whatever dies on the way.

At the end the job looks whether it was given up for dead meanwhile (``is_wanted``); whoever gives it up says so before he looks for
the table. Only a process that sleeps through all of that, between its last two requests, shows a table without rows for as long as
the next one takes.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Self

from tablestore.catalog import refusals
from tablestore.errors import (
    AlreadyExistsError,
    CommitOutcomeUnknown,
    ConflictError,
    NotFoundError,
    StorageError,
    TablestoreError,
)
from tablestore.format.paths import SCHEMA_DIR, SNAPSHOT_DIR, parse_schema_id, parse_snapshot_id, schema_path
from tablestore.io.filestore import TEMPORARY_PREFIX, CopiesFiles, FileStore, RenamesDirectories, copy_file

CLAIM_PREFIX = f"{TEMPORARY_PREFIX}creation-"
_MOST_AT_ONCE = 8


def has_claim(files: FileStore, directory: str) -> bool:
    """True if a table is arriving in ``directory`` by copies, or one that was has died."""
    return bool(files.names(f"{directory}/{SNAPSHOT_DIR}", prefix=CLAIM_PREFIX))


def claim_path(source: str, target: str) -> str:
    """The path of the claim of a table that comes from ``source`` to ``target``."""
    return f"{target}/{SNAPSHOT_DIR}/{CLAIM_PREFIX}{hashlib.sha256(source.encode()).hexdigest()[:32]}"


class TablePublish:
    """One table on its way from ``source`` to ``target``, both relative to ``files``. A context manager: what has been copied is
    removed unless the table was revealed."""

    def __init__(self, files: FileStore, source: str, target: str, *, is_wanted: Callable[[], bool]) -> None:
        self._files, self._source, self._target, self._is_wanted = files, source, target, is_wanted
        self._claim = claim_path(source, target)
        self._created: list[str] = []
        self.has_claimed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._created and isinstance(error, Exception):
            self._take_back()

    def bring(self) -> None:
        """Prepares what can be done before the name is the table's own: nothing where the store renames."""
        if not isinstance(self._files, RenamesDirectories):
            self.copy()

    def reveal(self) -> None:
        """The step. Raises AlreadyExistsError (something lies there), NotFoundError (``source`` is gone), ConflictError."""
        if isinstance(self._files, RenamesDirectories) and not self.has_claimed:
            self._files.rename_directory(self._source, self._target)
            return
        if not self.has_claimed:
            self.copy()
        self._reveal_copies()

    # -- by copies

    def copy(self) -> None:
        """Claim the place, and bring everything but snapshots and schemas."""
        self._created.append(self._claim)
        self._files.write(self._claim, b"")
        self.has_claimed = True
        foreign_names = [
            name for name in self._files.names(f"{self._target}/{SNAPSHOT_DIR}") if not self._claim.endswith(f"/{name}")
        ]
        if foreign_names or self._has_schema(self._target):
            raise AlreadyExistsError(f"{self._where} is being created by another job, or is there by now", kind="table-exists")
        excluded = (f"{self._source}/{SCHEMA_DIR}/", f"{self._source}/{SNAPSHOT_DIR}/")
        paths = [path for path in self._walk(self._source) if not path.startswith(excluded)]
        targets = [f"{self._target}{path.removeprefix(self._source)}" for path in paths]
        self._created += targets
        self._copy_all(paths, targets)
        for directory in sorted({path.rpartition("/")[0] for path in targets}):
            self._files.sync(directory)

    def _copy_all(self, paths: Sequence[str], targets: Sequence[str]) -> None:
        if not isinstance(self._files, CopiesFiles):
            for path, target in zip(paths, targets, strict=True):
                copy_file(self._files, path, target)
            return
        with ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
            for future in [pool.submit(copy_file, self._files, *pair) for pair in zip(paths, targets, strict=True)]:
                future.result()

    def _reveal_copies(self) -> None:
        files = self._files
        schema_ids = map(parse_schema_id, files.names(f"{self._source}/{SCHEMA_DIR}"))
        schemas = sorted((schema_id for schema_id in schema_ids if schema_id is not None), reverse=True)
        if not schemas or schemas[-1] != 0:
            raise NotFoundError(f"the table staged in {files.root_uri}/{self._source} is gone", kind="no-such-table")
        if not files.exists(self._claim):
            raise self._swept()
        for name in self._ordered_snapshots():
            path, data = f"{SNAPSHOT_DIR}/{name}", files.read(f"{self._source}/{SNAPSHOT_DIR}/{name}")
            self._created.append(f"{self._target}/{path}")
            if parse_snapshot_id(name) is None:
                files.overwrite(f"{self._target}/{path}", data)
            elif not self._publish(path, data):
                self._created.pop()
                raise AlreadyExistsError(f"{self._where} is being created by another job", kind="table-exists")
        if not files.exists(self._claim):
            raise self._swept()
        contents = {path: files.read(f"{self._source}/{path}") for path in map(schema_path, schemas)}
        try:
            landed = all(self._publish_schema(path, data) for path, data in contents.items())
            is_wanted = landed and self._is_wanted() and files.delete(self._claim)
        except (CommitOutcomeUnknown, StorageError) as error:
            # It may be there: nothing may be removed before that is known.
            self._created.clear()
            raise CommitOutcomeUnknown(
                f"whether {self._where} is there is not known, the store gave no answer: {error}. Look whether the table is there"
            ) from error
        if not landed:
            raise AlreadyExistsError(f"{self._where} is there by now", kind="table-exists")
        if not is_wanted:
            raise self._swept()
        self._created.clear()  # the originals go with the directory of their job

    def _publish_schema(self, path: str, data: bytes) -> bool:
        if landed := self._publish(path, data):
            self._created.append(f"{self._target}/{path}")
        return landed

    def _publish(self, path: str, data: bytes) -> bool:
        """True if the file is there and ours: a request that was repeated meets what it made itself."""
        target = f"{self._target}/{path}"
        try:
            landed = self._files.publish_if_absent(target, data)
        except (CommitOutcomeUnknown, StorageError) as error:
            if error.kind not in ("unknown-outcome", CommitOutcomeUnknown.default_kind):
                raise
            landed = self._files.publish_if_absent(target, data)
        return landed or self._files.read(target) == data

    def _take_back(self) -> None:
        """Remove the copies: schemas first, the claim last. What cannot be removed now, the sweeper removes."""
        with suppress(TablestoreError):
            for path in reversed(self._created):
                self._files.delete(path)
        self._created.clear()

    def _ordered_snapshots(self) -> list[str]:
        names = [name for name in self._files.names(f"{self._source}/{SNAPSHOT_DIR}") if not name.startswith(TEMPORARY_PREFIX)]
        return sorted(names, key=lambda name: (parse_snapshot_id(name) is None, parse_snapshot_id(name) or 0, name))

    def _has_schema(self, directory: str) -> bool:
        return any(parse_schema_id(name) is not None for name in self._files.names(f"{directory}/{SCHEMA_DIR}"))

    def _walk(self, directory: str) -> Iterator[str]:
        for info in self._files.list(directory):
            path = f"{directory}/{info.name}"
            if info.is_dir:
                yield from self._walk(path)
            elif not info.name.startswith(TEMPORARY_PREFIX):
                yield path

    @property
    def _where(self) -> str:
        return f"{self._files.root_uri}/{self._target}"

    def _swept(self) -> ConflictError:
        return refusals.creation_swept(self._where)
