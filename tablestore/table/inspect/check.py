"""Is this table whole? Reads everything that its snapshots, tags and branches lead to, and names what is wrong and what to do.

    line (main, each branch)
      schemas      every file reads, none that a snapshot names is missing
      snapshots    an unbroken range, each reads; hints agree
      tags         each reads
        metadata   lists, manifests, index manifests: there, unchanged (their checksums), readable
        files      data, changelog and index files: there, with the size that the manifest says
      newest       levels above 0 are sorted runs, the row count adds up
      deep         every column of every file reads, page headers included

Nothing is changed and nothing raised: damage is what is looked for. A finding that costs rows is a *problem*, anything else a
*warning*. Bytes that no reader looks at (statistics inside of page headers) are not looked at here either. Memory: one path and
size per file of the table, with ``deep`` its manifest entry.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, TypeVar

from tablestore.errors import FormatError, NotFoundError, TablestoreError
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.paths import INDEX_DIR, LATEST_HINT, SNAPSHOT_DIR, file_format_of, index_path, manifest_path, parse_hint
from tablestore.format.snapshot import Snapshot
from tablestore.lsm.keyorder import KeyOrder
from tablestore.progress import Progress, unseen
from tablestore.store.context import TableContext
from tablestore.store.datapaths import entry_path
from tablestore.store.history.branchfiles import open_branch
from tablestore.store.history.references import Line, metadata_lists, other_lines, own_line
from tablestore.store.indexfiles import IndexFiles
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.snapshots import unbroken_tail

T = TypeVar("T")

Severity = Literal["problem", "warning"]
_RESTORE = "restore the file from a copy; until then read a snapshot that does not need it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is not as it should be, and what to do about it. ``kind`` is stable, for programs."""

    severity: Severity
    kind: str
    subject: str
    message: str
    fix: str


def check_table(context: TableContext, *, deep: bool = False, progress: Progress | None = None) -> tuple[Finding, ...]:
    """What is wrong with a table; empty if it is whole. ``deep`` reads every row of every file too."""
    show = progress or unseen
    found: list[Finding] = []
    with _noting(found, "branches", "the list of branches", "look at the branch directory"):
        for line in (own := own_line(context), *other_lines(own)):
            found.extend(_Check(line, context, deep, show).run())
    return tuple(found)


@dataclass(slots=True)
class _Expected:
    """The files that something names: path to size (None: unknown) and to what needs it first."""

    sizes: dict[str, int | None] = field(default_factory=dict)
    needed_by: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, size: int | None, user: str) -> None:
        self.sizes.setdefault(path, size)
        self.needed_by.setdefault(path, user)


class _Check:
    """The check of one line."""

    def __init__(self, line: Line, context: TableContext, deep: bool, show: Progress) -> None:
        self._line, self._files, self._deep, self._show = line, line.files, deep, show
        self._clock, self._ids = context.clock, context.ids
        self._context: TableContext = context
        self._found: list[Finding] = []
        self._expected = _Expected()
        self._entries: dict[str, ManifestEntry] = {}
        self._damaged: dict[str, tuple[str, list[str]]] = {}

    def run(self) -> list[Finding]:
        schema_ids = self._schemas()
        with self._noting("schema", "the newest schema", "restore the schema file from a copy"):
            self._context = open_branch(self._line.main, self._line.branch, clock=self._clock, ids=self._ids)
            snapshots = self._snapshots(schema_ids)
            named = [*((f"snapshot {one.id}", one) for one in snapshots), *self._tags()]
            for number, (user, snapshot) in enumerate(named):
                self._show(f"{self._name('metadata')} of {user}", number, len(named))
                self._metadata(user, snapshot)
            self._damage()
            self._presence()
            if snapshots:
                self._newest(snapshots[-1])
            if self._deep:
                self._contents()
        return self._found

    # -- schemas, snapshots, tags

    def _schemas(self) -> set[int]:
        readable = set()
        with self._noting("schema", "the list of schemas", _RESTORE):
            for schema_id in self._line.schemas.ids():
                with self._noting(
                    "schema", f"schema {schema_id}", "restore the schema file from a copy; files written with it need it"
                ):
                    self._line.schemas.read(schema_id)
                    readable.add(schema_id)
        return readable

    def _snapshots(self, schema_ids: set[int]) -> list[Snapshot]:
        store = self._line.snapshots
        listed = store.listed_ids()
        tail = unbroken_tail(listed) if listed else ()
        if dead := [snapshot_id for snapshot_id in listed if snapshot_id not in tail]:
            self._warn(
                "dead-snapshots",
                f"snapshots {_shortened(dead)}",
                "lie below a gap: a committer that slept while others expired published them; nobody reads them",
                "remove them with: tablestore clean",
            )
        self._hint(tail[-1] if tail else None)
        found = []
        for snapshot_id in store.live_ids():
            with self._noting("snapshot", f"snapshot {snapshot_id}", "restore the file from a copy, or expire up to it"):
                snapshot = store.read(snapshot_id)
                found.append(snapshot)
                if snapshot.schema_id not in schema_ids:
                    self._problem(
                        "schema-missing",
                        f"snapshot {snapshot_id}",
                        f"names schema {snapshot.schema_id}, which is missing or damaged",
                        "restore the schema file from a copy",
                    )
        return found

    def _hint(self, latest: int | None) -> None:
        try:
            hinted = parse_hint(self._files.read(f"{SNAPSHOT_DIR}/{LATEST_HINT}", max_bytes=64))
        except NotFoundError:
            hinted = None
        except TablestoreError:
            hinted = -1
        # A hint that lags behind is in order: readers go on from it. One that leads ahead sends them nowhere.
        if hinted is not None and (latest is None or not 1 <= hinted <= latest):
            self._warn(
                "hint",
                f"{SNAPSHOT_DIR}/{LATEST_HINT}",
                f"says {hinted}, the newest snapshot is {latest}; tablestore does not follow it, other readers may",
                "any commit writes it again; or remove the file",
            )

    def _tags(self) -> list[tuple[str, Snapshot]]:
        found = []
        with self._noting("tag", "the list of tags", _RESTORE):
            for name in self._line.tags.names():
                with self._noting("tag", f"tag {name}", "delete the tag and make it again from a snapshot, or restore the file"):
                    found.append((f"tag {name}", self._line.tags.get(name).snapshot))
        return found

    # -- what they lead to

    def _metadata(self, user: str, snapshot: Snapshot) -> None:
        manifests = self._context.manifests
        for name in metadata_lists(snapshot):
            for manifest in self._readable(user, name, manifests.read_list):
                self._readable(user, manifest.file_name, manifests.read_manifest)
        if snapshot.index_manifest is not None:
            for index in self._readable(user, snapshot.index_manifest, lambda _: manifests.read_index(snapshot)):
                if index.external_path is None:
                    self._expected.add(index_path(index.file_name), index.file_size, user)
        # What cannot be read was noted above, and names nothing.
        with suppress(TablestoreError):
            for entry in manifests.live(snapshot):
                self._expect(user, entry)
        if snapshot.changelog_manifest_list is not None:
            with suppress(TablestoreError):
                for entry in manifests.entries(manifests.read_list(snapshot.changelog_manifest_list)):
                    if entry.kind is EntryKind.ADD:
                        self._expect(user, entry)

    def _readable(self, user: str, name: str, read: Callable[[str], tuple[T, ...]]) -> tuple[T, ...]:
        """What a metadata file holds; nothing if it cannot be read, which is noted once, with all who need it."""
        if name not in self._damaged:
            try:
                return read(name)
            except TablestoreError as error:
                self._damaged[name] = (error.message, [])
        self._damaged[name][1].append(user)
        return ()

    def _damage(self) -> None:
        for name, (message, users) in self._damaged.items():
            others = f" and {len(users) - 1} more" if len(users) > 1 else ""
            self._problem("metadata", manifest_path(name), f"{message} (needed by {users[0]}{others})", _RESTORE)

    def _expect(self, user: str, entry: ManifestEntry) -> None:
        if entry.file.external_path is None:
            context = self._context
            path = entry_path(context.paths, entry, context.schema)
            self._expected.add(path, entry.file.file_size, user)
            if self._deep:
                self._entries.setdefault(path, entry)

    def _presence(self) -> None:
        """Every directory is listed once."""
        by_directory: dict[str, list[str]] = {}
        for path in self._expected.sizes:
            by_directory.setdefault(path.rpartition("/")[0], []).append(path)
        for number, (directory, paths) in enumerate(sorted(by_directory.items())):
            self._show(self._name("files"), number, len(by_directory))
            there: dict[str, int] = {}
            with self._noting("storage", directory, "look at the storage's own messages"):
                there = {info.name: info.size for info in self._files.list(directory) if not info.is_dir}
                for path in paths:
                    self._one_file(path, there.get(path.rpartition("/")[2]))

    def _one_file(self, path: str, size: int | None) -> None:
        user, wanted = self._expected.needed_by[path], self._expected.sizes[path]
        if size is None:
            self._problem("file-missing", path, f"is missing; {user} needs it", _RESTORE)
        elif wanted is not None and size != wanted:
            self._problem("file-size", path, f"has {size} bytes, its manifest says {wanted}; {user} needs it", _RESTORE)

    # -- the newest snapshot

    def _newest(self, snapshot: Snapshot) -> None:
        live: list[ManifestEntry] = []
        with suppress(TablestoreError):
            live = self._context.manifests.live(snapshot)
            rows = sum(entry.file.row_count for entry in live)
            if rows != snapshot.total_record_count:
                self._warn(
                    "row-count",
                    f"snapshot {snapshot.id}",
                    f"says that it stores {snapshot.total_record_count:,} rows, its files hold {rows:,}",
                    "counts are for statistics only; nothing has to be done",
                )
            self._sorted_runs(live)

    def _sorted_runs(self, live: Iterable[ManifestEntry]) -> None:
        schema = self._context.schema
        if not schema.is_keyed:
            return
        key_of = KeyOrder.of(schema.key_fields)
        levels: dict[tuple[bytes, int, int], list[ManifestEntry]] = {}
        for entry in live:
            if entry.file.level > 0:
                levels.setdefault((entry.partition, entry.bucket, entry.file.level), []).append(entry)
        for (_, bucket, level), entries in levels.items():
            files = [entry.file for entry in entries]
            bounds = sorted((key_of(file.min_key), key_of(file.max_key), file.file_name) for file in files)
            for (_, high, one), (low, _, other) in pairwise(bounds):
                if low <= high:
                    self._problem(
                        "overlap",
                        f"level {level} of bucket {bucket}",
                        f"is no sorted run: the keys of {one} and {other} overlap",
                        "a full compaction puts the bucket in order: tablestore compact --full",
                    )

    def _contents(self) -> None:
        """Every data and changelog file that anything needs is read once, as it is, without merging."""
        reader = SplitReader.of(self._context, self._context.schema.field_names, None)
        for number, (path, entry) in enumerate(self._entries.items()):
            self._show(self._name("rows"), number, len(self._entries))
            if file_format_of(entry.file.file_name) != "parquet":
                # Another engine's postponed rows; that they are there was seen above.
                continue
            with self._noting("data", path, _RESTORE):
                self._one_content(reader, path, entry.file)
        index_files = IndexFiles(self._files, self._ids)
        for path in [path for path in self._expected.sizes if path.startswith(f"{INDEX_DIR}/")]:
            with self._noting("data", path, _RESTORE):
                index_files.read(path.rpartition("/")[2])

    def _one_content(self, reader: SplitReader, path: str, file: DataFileMeta) -> None:
        """All columns, also those that only other engines or older snapshots read; those of today become what they are read as."""
        names = [name for name in reader.schema.field_names if name not in reader.schema.partition_keys]
        opened = reader.open_file(path, file)
        try:
            if opened.row_count != file.row_count:
                raise FormatError(f"{path}: the manifest says {file.row_count} rows, the file holds {opened.row_count}")
            opened.check_pages()
            projection = reader.projection(opened, file, names, (), path)
            for batch in opened.read():
                projection.apply(batch.select(projection.file_columns))
        finally:
            opened.close()

    # -- notes

    def _name(self, what: str) -> str:
        return what if self._line.branch == "main" else f"branch {self._line.branch}: {what}"

    def _noting(self, kind: str, subject: str, fix: str) -> AbstractContextManager[None]:
        return _noting(self._found, kind, self._name(subject), fix)

    def _problem(self, kind: str, subject: str, message: str, fix: str) -> None:
        self._found.append(Finding(severity="problem", kind=kind, subject=self._name(subject), message=message, fix=fix))

    def _warn(self, kind: str, subject: str, message: str, fix: str) -> None:
        self._found.append(Finding(severity="warning", kind=kind, subject=self._name(subject), message=message, fix=fix))


@contextmanager
def _noting(found: list[Finding], kind: str, subject: str, fix: str) -> Iterator[None]:
    """An error of ours inside is a finding, not an error."""
    try:
        yield
    except TablestoreError as error:
        found.append(Finding(severity="problem", kind=kind, subject=subject, message=error.message, fix=fix))


def _shortened(ids: list[int]) -> str:
    return ", ".join(map(str, ids[:5])) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
