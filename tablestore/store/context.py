"""The context of an open table: its file store, schema, settings and components, wired together.

A context is bound to one schema: what a handle read when it was opened. It pickles by its place and that schema, and reads nothing
when it is unpickled. (Tasks on other processes find their table by a TableSpec, which is plain values.)
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tablestore.clock import Clock, SystemClock
from tablestore.errors import ConflictError, FormatError, NotFoundError, UnsupportedError
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.paths import CREATIONS_DIR, MAIN_BRANCH, schema_path
from tablestore.format.snapshot import Snapshot, without_numbers
from tablestore.ids import Ids, SystemIds
from tablestore.io.diskcache import user_cache
from tablestore.io.filestore import FileStore
from tablestore.io.oserrors import no_conditional_publish
from tablestore.lsm.keyorder import KeyOrder
from tablestore.store.changelogproducer import ChangelogSettings, changelog_settings
from tablestore.store.datapaths import DataPaths, entry_path
from tablestore.store.deletionvectors import DeletionVectors
from tablestore.store.entrybounds import bounds_to_store
from tablestore.store.indexfiles import IndexFiles
from tablestore.store.manifests import DecodedManifests, Manifests
from tablestore.store.rowview import KIND as RULES_KIND
from tablestore.store.rowview import ReadRules, RowView, view_of
from tablestore.store.schemas import TABLE_UUID_OPTION, DecodedSchemas, FieldsById, Schemas, check_is_same
from tablestore.store.sequence import SequenceNumbers
from tablestore.store.settings import TableSettings, check_writable, table_settings
from tablestore.store.snapshots import DecodedSnapshots, Snapshots
from tablestore.telemetry.observers import NOBODY, Observers
from tablestore.types.datatypes import Field
from tablestore.types.evolution.replacing import is_in_force, keeps_layout, without_condition
from tablestore.types.schema import TableSchema

if TYPE_CHECKING:
    from tablestore.io.service.serviceclient import ServiceClient
    from tablestore.store.message import CommitMessage

T = TypeVar("T")
# Paimon's: its clients ask for rules of such tables alone.
_QUERY_AUTH = "query-auth.enabled"


class Shared:
    """Objects, such as caches, that handles from one place share: each is created when it is first asked for. ``observers``: who
    watches these tables."""

    def __init__(self, observers: Observers = NOBODY) -> None:
        self.observers = observers
        self._values: dict[Any, Any] = {}

    def once(self, make: Callable[[], T]) -> T:
        """The value of ``make``, computed when it was first asked for here."""
        if make not in self._values:
            # Threads that ask at once may both make one; one stays.
            self._values.setdefault(make, make())
        value: T = self._values[make]
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class TableContext:
    """One branch of a table, at one schema. ``files``: the table's as this branch sees them; ``main_files``: as ``main`` does.

    ``rules``: those that a catalog service has told of what its caller sees (:meth:`ruled`); None: it is asked by each read.
    ``shared``: in common with the contexts that were made from this one, or by one catalog. It does not pickle.
    """

    files: FileStore
    main_files: FileStore
    branch: str
    schema: TableSchema
    settings: TableSettings
    schemas: Schemas
    snapshots: Snapshots
    manifests: Manifests
    sequence: SequenceNumbers
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)
    shared: Shared = field(default_factory=Shared, repr=False, compare=False)
    rules: ReadRules | None = None
    _values: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[object, ...]:
        # The state that was seen of the table stays here: the process where this arrives looks for itself.
        return _unpickled, (self.files, self.main_files, self.branch, self.clock, self.ids, self.schema, self.rules)

    def once(self, make: Callable[["TableContext"], T]) -> T:
        """The value that ``make`` computes from this context's schema; computed once, since the schema never changes."""
        if make not in self._values:
            self._values[make] = make(self)
        value: T = self._values[make]
        return value

    def check_writable(self, *, new_rows: bool = True) -> None:
        """Raise UnsupportedError if rows could not be committed, or other engines would read them wrong (see
        :func:`~tablestore.store.settings.check_writable`)."""
        if not self.files.can_publish:
            raise no_conditional_publish(self.files.root_uri, "its store has no way to make a file only if it is absent")
        self.once(_check_writable if new_rows else _check_compactable)

    @property
    def changelog_settings(self) -> ChangelogSettings:
        """The changelog options of the table."""
        return self.once(_changelog_settings)

    @property
    def table_uuid(self) -> str | None:
        """The identity that tablestore gave the table when it was created; None for a table of another engine."""
        return self.schema.options.get(TABLE_UUID_OPTION)

    def check_is_there(self) -> None:
        """Raise NotFoundError if the table was dropped, ConflictError if another table is in its place.

        Call it after the newest snapshot was read. It reads the schema only if that snapshot does not continue the history known.
        """
        seen = self.snapshots.histories
        if self._values.get("history") != seen:
            self.still_there()
            self._values["history"] = seen

    def still_there(self) -> "TableContext":
        """The context itself. Raises as :meth:`check_is_there`, and reads the schema each time."""
        try:
            newest = Schemas(self.files, self.schemas.decoded).latest()
        except NotFoundError as error:
            raise NotFoundError(
                f"table {self.files.root_uri} is not there any more: it was dropped since it was opened; create it again, and "
                "repeat what was begun",
                kind="no-such-table",
            ) from error
        check_is_same(self.table_uuid, newest, table=self.files.root_uri)
        return self

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Wraps the reading of a snapshot's files: where they are gone with their table, the error says so.

        Raises NotFoundError of kind ``no-such-table``, ConflictError of kind ``table-replaced`` in place of what is raised inside.
        """
        try:
            yield
        except (NotFoundError, FormatError) as error:
            try:
                self.still_there()
            except (NotFoundError, ConflictError) as table_error:
                raise table_error from error
            raise

    @property
    def paths(self) -> DataPaths:
        """The paths of its data files."""
        return DataPaths(self.schema, self.settings)

    def reopened(self, schema: TableSchema | None = None) -> "TableContext":
        """The same branch of the table opened again, at its newest schema or at ``schema``, known to be that."""
        return open_context(
            self.files,
            main_files=self.main_files,
            branch=self.branch,
            clock=self.clock,
            ids=self.ids,
            schema=schema,
            shared=self.shared,
        )

    def at_schema(self, schema: TableSchema) -> "TableContext":
        """The same table seen through another of its schemas."""
        if schema == self.schema:
            return self
        return replace(self, schema=schema, settings=table_settings(schema))

    def at_newest_schema(self) -> "TableContext":
        """The same table at the schema that it has now. Raises ConflictError if another table is in its place."""
        newest = self.schemas.refreshed_latest()
        check_is_same(self.table_uuid, newest, table=self.files.root_uri)
        return self.at_schema(_that_counts(newest, self.schemas, self.snapshots))

    def followed(self) -> "TableContext":
        """The same table at the schema that it has now: itself as long as there is no newer one, which is all that is looked up.

        Raises ConflictError if another table is in its place and has more schemas; what is read next finds out in any case.
        """
        if not self.files.exists(schema_path(self.schema.id + 1)):
            return self
        newest = self.schemas.refreshed_latest()
        check_is_same(self.table_uuid, newest, table=self.files.root_uri)
        newest = _that_counts(newest, self.schemas, self.snapshots)
        if newest.id == self.schema.id:
            return self
        return self.at_schema(newest) if keeps_layout(self.schema, newest) else self.reopened(newest)

    def ruled(self) -> "TableContext":
        """The same table for one read, under the rules of its catalog service as they are now: itself where there is no service.

        Raises what the service says, StorageError where it says nothing.
        """
        if self.rules is not None or self._service is None:
            return self
        return self.under(self._fetched())

    def under(self, rules: ReadRules | None) -> "TableContext":
        """The same table under rules that a service has told; None: it is asked."""
        return self if rules == self.rules else replace(self, rules=rules)

    @property
    def view(self) -> RowView | None:
        """The part of the rows that the caller sees at this schema; None: all of them. Raises as :meth:`ruled`, and for rules that
        cannot be carried out."""
        if self.rules is None:
            return None if self._service is None else self.ruled().view
        return None if self.rules.is_empty else self.once(_view)

    def check_sees_all(self, what: str) -> None:
        """Raise UnsupportedError if rules hide something of the table from the caller. ``what`` needs all of it."""
        if self.view is not None:
            raise UnsupportedError(
                f"table {self.files.root_uri}: rules of its catalog service hide rows or columns from you, and {what} needs all of "
                "them; let somebody do it who sees them",
                kind=RULES_KIND,
            )

    def shown(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot for its caller's eyes: without numbers of rows where rules hide some of them. Raises as :attr:`view`."""
        return snapshot if self.view is None else without_numbers(snapshot)

    def shown_latest(self) -> Snapshot | None:
        """The newest snapshot, as :meth:`shown`; None where there is none."""
        latest = self.snapshots.latest()
        return None if latest is None else self.shown(latest)

    def _fetched(self) -> ReadRules:
        from tablestore.io.service.tablerules import fetch_rules

        service, location = self._service, self.main_files.root_uri
        # A table that is being made has no name, and no rules, yet.
        if service is None or location.split("/")[-3:-2] == [CREATIONS_DIR]:
            return ReadRules()
        if not service.has_rules and self.schema.options.get(_QUERY_AUTH, "").strip().lower() != "true":
            return ReadRules()
        suffix = "" if self.branch == MAIN_BRANCH else f"$branch_{self.branch}"
        texts = fetch_rules(service, location, self.table_uuid, suffix)
        rules = ReadRules(texts=texts)
        return rules if rules.is_empty else replace(rules, schema_id=self.at_newest_schema().schema.id)

    @property
    def _service(self) -> "ServiceClient | None":
        service: ServiceClient | None = getattr(self.main_files, "service", None)
        return service

    @property
    def index_files(self) -> IndexFiles:
        """The table's index directory."""
        return IndexFiles(self.files, self.ids)

    def deletion_vectors(self, snapshot: Snapshot) -> DeletionVectors:
        """The deletion vectors of a snapshot."""
        return DeletionVectors(self.index_files, self.manifests.read_index(snapshot))

    def message(self, base: Snapshot | None, *, created_millis: int | None = None) -> "CommitMessage":
        """An empty commit message on top of ``base``, begun at ``created_millis`` (default: now)."""
        from tablestore.store.message import CommitMessage

        return CommitMessage(
            table_uuid=self.table_uuid,
            schema_id=self.schema.id,
            base_snapshot_id=base.id if base is not None else 0,
            base_snapshot_uuid=base.uuid if base is not None else None,
            created_millis=self.clock.now_ms() if created_millis is None else created_millis,
        )

    def remove_file(self, entry: ManifestEntry) -> None:
        """Remove a data file that this process wrote and did not commit."""
        self.files.delete(entry_path(self.paths, entry, self.schema))

    def fields_by_schema(self) -> Mapping[int, tuple[Field, ...]]:
        """The columns of every schema of the table, by schema id."""
        return FieldsById(self.schemas)


def open_context(
    files: FileStore,
    *,
    main_files: FileStore | None = None,
    branch: str = MAIN_BRANCH,
    clock: Clock | None = None,
    ids: Ids | None = None,
    schema: TableSchema | None = None,
    shared: Shared | None = None,
) -> TableContext:
    """Open the table in ``files`` (rooted at its directory) at its newest schema; a branch through
    :func:`tablestore.store.history.branchfiles.open_branch`.

    Raises NotFoundError if there is no table, FormatError or UnsupportedError if it cannot be understood.
    """
    ids = ids or SystemIds()
    shared = shared or Shared()
    schemas = Schemas(files, shared.once(DecodedSchemas))
    snapshots = Snapshots(files, shared.once(DecodedSnapshots))
    schema = schema or _that_counts(schemas.latest(), schemas, snapshots)
    settings = table_settings(schema)
    partition_types = [field.type for field in schema.partition_fields]
    decoded = shared.once(_decoded_manifests)
    manifests = Manifests(
        files,
        ids,
        partition_types,
        codec=settings.manifest_codec,
        decoded=decoded,
        bounds=partial(bounds_to_store, schema=schema),
    )
    return TableContext(
        files=files,
        main_files=main_files or files,
        branch=branch,
        schema=schema,
        settings=settings,
        schemas=schemas,
        snapshots=snapshots,
        manifests=manifests,
        sequence=SequenceNumbers(snapshots, manifests, KeyOrder.of(schema.key_fields)),
        clock=clock or SystemClock(),
        ids=ids,
        shared=shared,
    )


def _decoded_manifests() -> DecodedManifests:
    return DecodedManifests(user_cache())


def _unpickled(
    files: FileStore,
    main_files: FileStore,
    branch: str,
    clock: Clock,
    ids: Ids,
    schema: TableSchema,
    rules: ReadRules | None,
) -> TableContext:
    return open_context(files, main_files=main_files, branch=branch, clock=clock, ids=ids, schema=schema).under(rules)


def newest_schema(files: FileStore, shared: Shared) -> TableSchema:
    """The schema with which the table in ``files`` is opened. Raises NotFoundError if there is no table, FormatError."""
    schemas = Schemas(files, shared.once(DecodedSchemas))
    return _that_counts(schemas.latest(), schemas, Snapshots(files, shared.once(DecodedSnapshots)))


def counts(schema: TableSchema, snapshots: Snapshots) -> bool:
    """True if the newest schema is in force (``replacing.is_in_force``). Snapshots are read for that of a replacement only."""
    if without_condition(schema) is schema:
        return True
    latest = snapshots.latest()
    return latest is not None and is_in_force(schema, snapshot_id=latest.id, schema_id=latest.schema_id)


def _that_counts(newest: TableSchema, schemas: Schemas, snapshots: Snapshots) -> TableSchema:
    if counts(newest, snapshots) or newest.id - 1 not in schemas.ids():
        return newest
    return schemas.read(newest.id - 1)


def _view(context: TableContext) -> RowView:
    assert context.rules is not None, "a view is of rules"
    ruled, where = context.schemas.read(context.rules.schema_id), f"table {context.files.root_uri}"
    return view_of(context.rules, ruled, context.schema, where)


def _check_writable(context: TableContext) -> None:
    check_writable(context.schema, context.settings, context.files.root_uri)


def _check_compactable(context: TableContext) -> None:
    check_writable(context.schema, context.settings, context.files.root_uri, new_rows=False)


def _changelog_settings(context: TableContext) -> ChangelogSettings:
    return changelog_settings(context.schema.options)
