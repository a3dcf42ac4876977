"""Alters a table's schema: publishes the next schema file, and fences off writers of the old one.

    each round:   newest schema -> evolve (pure) -> check the new schema -> publish schema-(N+1) if absent
                  occupied by another alteration: next round, on top of it

The outcome is landed, lost (next round) or unknown. Schemas are never replaced, so reading resolves unknown: the file holds our
bytes or those of another alteration. An error before the publish means that nothing has changed.

Two checks follow the publish. The schema that ours builds on must still be there; otherwise the table was dropped meanwhile, and
ours is removed. And a change that is valid only while the table is empty, its files are compacted, or its rows hold a constraint,
is fenced: an empty snapshot is committed on top of the newest one, so that a writer with the old schema loses its race and reads
the new one. If rows have landed before the fence that the change does not bear, one more schema takes the alteration back.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tablestore.errors import (
    CommitOutcomeUnknown,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    TablestoreError,
    UnsupportedError,
)
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.paths import schema_path
from tablestore.format.schemafile import decode_schema, encode_schema
from tablestore.format.snapshot import Snapshot
from tablestore.options import checks_of
from tablestore.store.changelogproducer import check_frame_change
from tablestore.store.commit.committer import CommitRequest
from tablestore.store.commit.committerfactory import committer
from tablestore.store.commit.conflict import being_replaced
from tablestore.store.context import TableContext, counts
from tablestore.store.history.references import branch_directories
from tablestore.store.history.tags import Tags
from tablestore.store.scan.violations import check_rows
from tablestore.store.schemas import table_uuid_of
from tablestore.store.settings import check_writable, table_settings
from tablestore.types.evolution.evolve import EvolvedSchema, evolve, same_content
from tablestore.types.evolution.replacing import without_condition
from tablestore.types.evolution.schemachanges import SchemaChange
from tablestore.types.filter.constraints import Constraint, parse_constraint
from tablestore.types.schema import TableSchema

FIRST_WAIT_S = 0.02
LONGEST_WAIT_S = 2.0


Check = Callable[[TableSchema, TableSchema], None]
"""Checks the old and the new schema in every round; raises ConflictError to give up."""


def alter_schema(
    context: TableContext,
    changes: Sequence[SchemaChange] | SchemaChange,
    *,
    rescaling: bool = False,
    check: Check | None = None,
) -> TableSchema:
    """Apply ``changes`` to the newest schema of the table; returns the schema that then is the newest.

    Changes that change nothing publish nothing. ``rescaling``: the caller rewrites the data after a change of ``bucket``. Raises
    what :func:`~tablestore.types.evolution.evolve.evolve` raises, ConflictError (another alteration or new rows made it impossible)
    and StorageError: the table is unchanged then; or CommitOutcomeUnknown.
    """
    # The caller could change a list between two rounds.
    frozen_changes = tuple(changes) if isinstance(changes, list) else changes
    return _Alteration(context=context, changes=frozen_changes, rescaling=rescaling, check=check).run()


def check_alteration(context: TableContext, changes: Sequence[SchemaChange], *, filled: bool = False) -> None:
    """Raise what :func:`alter_schema` would raise of these changes, as the table is now; nothing is altered. ``filled``: rows are
    written before."""
    alteration = _Alteration(context=context, changes=tuple(changes), rescaling=False, check=None)
    alteration._evolved(context.schemas.refreshed_latest(), filled=filled)


def publish_schema(context: TableContext, new_schema: TableSchema, base: TableSchema) -> bool:
    """Make ``new_schema`` the schema after ``base``; False if another alteration has that id. Raises as :func:`alter_schema`."""
    alteration = _Alteration(context=context, changes=(), rescaling=False, check=None)
    return alteration._publish(new_schema, base, context.clock.steady_s() + context.settings.commit_timeout_s)


def take_back_schema(context: TableContext, new_schema: TableSchema, base: TableSchema) -> TableSchema:
    """Publish the content of ``base`` as the schema after ``new_schema``. Raises ConflictError if another was published since."""
    alteration = _Alteration(context=context, changes=(), rescaling=False, check=None)
    return alteration._take_back(new_schema, base, context.clock.steady_s() + context.settings.commit_timeout_s)


def holds_data(context: TableContext) -> bool:
    """True if the newest snapshot has data files."""
    latest = context.snapshots.latest()
    return latest is not None and _has_files(context, latest)


def was_written(context: TableContext) -> bool:
    """True if any snapshot or tag may have data files, also one that has expired."""
    snapshots = context.snapshots.retained()
    expired = bool(snapshots) and snapshots[0].id > 1
    referenced = bool(Tags(context.files).names() or branch_directories(context.main_files))
    return expired or referenced or any(s.stored_records > 0 or s.delta_record_count != 0 for s in snapshots)


def _has_files(context: TableContext, snapshot: Snapshot) -> bool:
    # A positive count is enough. A zero may be another engine's, so the files are read.
    return snapshot.stored_records > 0 or len(context.manifests.live_columns(snapshot, ("kind",))) > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Alteration:
    context: TableContext
    changes: Sequence[SchemaChange] | SchemaChange
    rescaling: bool
    check: Check | None

    def run(self) -> TableSchema:
        clock, settings = self.context.clock, self.context.settings
        deadline_s = clock.steady_s() + settings.commit_timeout_s
        lost_races = 0
        while True:
            base = self.context.schemas.refreshed_latest()
            evolution, rests_on_files = self._evolved(base)
            new_schema = evolution.schema
            if same_content(without_condition(base), new_schema):
                return base
            added = self._added_constraints(base, new_schema)
            checked = self._check_rows(new_schema, added) if added else None
            if self._publish(new_schema, base, deadline_s):
                if evolution.needs_empty_table or rests_on_files or added:
                    self._fence(evolution, base, deadline_s, added, checked)
                return new_schema
            lost_races += 1
            if clock.steady_s() >= deadline_s:
                raise ConflictError(
                    f"lost {lost_races} race(s) for the next schema of table {self._name}, and commit.timeout "
                    f"({settings.commit_timeout_s:.0f} s) is over; nothing was altered: try again",
                    kind="commit-timeout",
                )
            self._wait(lost_races)

    def _evolved(self, base: TableSchema, *, filled: bool = False) -> tuple[EvolvedSchema, bool]:
        """The evolved schema, checked, and whether that depends on the files that are there."""
        self._check_same_table(base)
        self._check_counts(base)
        has_data = filled or holds_data(self.context)
        settled = without_condition(base)
        evolution = evolve(
            settled,
            self.changes,
            has_data=has_data,
            was_written=has_data or was_written(self.context),
            time_millis=max(self.context.clock.now_ms(), base.time_millis),
            rescaling=self.rescaling,
        )
        if same_content(settled, evolution.schema):
            return evolution, False
        self._check_settings(base, evolution.schema)
        if self.check is not None:
            self.check(base, evolution.schema)
        return evolution, self._check_frame(evolution, self.context.snapshots.latest())

    @property
    def _name(self) -> str:
        return self.context.files.root_uri

    def _check_same_table(self, base: TableSchema) -> None:
        if table_uuid_of(base) != self.context.table_uuid:
            raise ConflictError(
                f"table {self._name} was dropped and created again: it was {self.context.table_uuid}, now it is "
                f"{table_uuid_of(base)}; open the table again and repeat the alteration",
                kind="table-replaced",
            )

    def _check_counts(self, base: TableSchema) -> None:
        if not counts(base, self.context.snapshots):
            raise being_replaced(self._name, base)

    def _check_settings(self, base: TableSchema, new_schema: TableSchema) -> None:
        """Options must mean something, and must not end our own writing by accident."""
        settings = table_settings(new_schema)
        try:
            check_writable(base, table_settings(base), self._name)
        except TablestoreError:
            return  # It is another engine's table, which we only read.
        check_writable(new_schema, settings, self._name)

    def _added_constraints(self, base: TableSchema, new_schema: TableSchema) -> tuple[Constraint, ...]:
        before = checks_of(base.options)
        added = {key: text for key, text in checks_of(new_schema.options).items() if before.get(key) != text}
        return tuple(parse_constraint(name, text, new_schema.fields) for name, text in added.items())

    def _check_rows(self, new_schema: TableSchema, constraints: Sequence[Constraint]) -> int | None:
        """Compare the rows that are there with new constraints; the id of the snapshot. Raises InvalidInputError."""
        context = self.context.at_schema(new_schema)
        latest = context.snapshots.latest()
        for constraint in constraints:
            check_rows(context, latest, constraint)
        return None if latest is None else latest.id

    def _check_frame(self, evolution: EvolvedSchema, latest: Snapshot | None) -> bool:
        """Refuse changes of options that files waiting for a compaction depend on; returns whether the files were read."""
        files_read = False

        def live() -> Iterator[ManifestEntry]:
            nonlocal files_read
            files_read = True
            yield from self.context.manifests.live(latest)

        check_frame_change(evolution.options_before, evolution.schema.options, live(), table=self._name)
        return files_read

    # -- publishing

    def _publish(self, new_schema: TableSchema, base: TableSchema, deadline_s: float) -> bool:
        """True: landed. False: another alteration has that id."""
        files, clock = self.context.files, self.context.clock
        path, data = schema_path(new_schema.id), encode_schema(new_schema)
        landed = doubtful = False
        tries = 0
        while True:
            answered = False
            try:
                if not landed:
                    landed = files.publish_if_absent(path, data)
                    answered = True
                if not landed:
                    if files.read(path) != data or not doubtful:
                        return False
                    landed = True
                self._check_built_on(base, path)
                return True
            except ConflictError:
                raise
            except TablestoreError as error:
                undecided = answered or landed or doubtful or error.kind == "unknown-outcome"
                if not undecided:
                    raise
                if not isinstance(error, (StorageError, NotFoundError)) or clock.steady_s() >= deadline_s:
                    raise CommitOutcomeUnknown(
                        f"the outcome of altering table {self._name} is unknown, the store gave no answer: {error}. Look at the "
                        f"newest schema with table.refresh() (it would be schema {new_schema.id}); if the change is not there, "
                        "repeat it"
                    ) from error
                doubtful = doubtful or not landed
            tries += 1
            self._wait(tries)

    def _check_built_on(self, base: TableSchema, path: str) -> None:
        """Remove our schema, and raise ConflictError, unless the one below it is still the one that it was made from."""
        below = schema_path(base.id)
        try:
            stored = decode_schema(self.context.files.read(below), f"{self._name}/{below}")
        except NotFoundError:
            stored = None
        if stored != base:
            self.context.files.delete(path)
            raise ConflictError(
                f"table {self._name} was dropped while it was altered; nothing was altered: open the table again and repeat the "
                "alteration",
                kind="table-replaced",
            )

    def _wait(self, tries: int) -> None:
        longest = min(FIRST_WAIT_S * 2 ** min(tries, 10), LONGEST_WAIT_S)
        self.context.clock.sleep(longest * (0.5 + self.context.ids.fraction()))

    # -- fencing

    def _fence(
        self,
        evolution: EvolvedSchema,
        base: TableSchema,
        deadline_s: float,
        added: Sequence[Constraint],
        checked: int | None,
    ) -> None:
        """Publish an empty snapshot under the new schema, while the files still allow it, and the rows that came behind snapshot
        ``checked`` hold what was ``added``. Raises ConflictError if they do not."""
        new_schema = evolution.schema
        context, schema_id = self.context.at_schema(new_schema), new_schema.id
        try:
            while True:
                try:
                    committer(context).commit(self._fence_request(context, evolution, schema_id, added, checked))
                    return
                except ConflictError as error:
                    if error.kind != "schema-changed":
                        self._take_back(new_schema, base, deadline_s)
                        raise
                    # Another alteration landed on top of ours. The fence is still needed.
                    schema_id = context.schemas.refreshed_latest().id
        except (StorageError, CommitOutcomeUnknown) as error:
            raise CommitOutcomeUnknown(
                f"table {self._name} has schema {new_schema.id} now, but the store failed before it was certain that no rows had "
                f"landed under the old one: {error}. Look whether table.scan() has rows; if it has none, all is well"
            ) from error

    def _fence_request(
        self,
        context: TableContext,
        evolution: EvolvedSchema,
        schema_id: int,
        added: Sequence[Constraint],
        checked: int | None,
    ) -> CommitRequest:
        latest = context.snapshots.latest()
        message = replace(context.message(latest), schema_id=schema_id)

        def refuse_rows(newest: Snapshot | None) -> Sequence[ManifestEntry]:
            if newest is not None and evolution.needs_empty_table and _has_files(context, newest):
                raise self._too_late(newest)
            try:
                self._check_frame(evolution, newest)
            except UnsupportedError as error:
                raise self._too_late(newest) from error
            if newest is not None and newest.id != checked:
                for constraint in added:
                    try:
                        check_rows(context, newest, constraint)
                    except InvalidInputError as error:
                        raise self._too_late(newest) from error
            return ()

        user = context.ids.uuid()
        return CommitRequest(user=user, operation="ALTER", message=message, plan_deletes=refuse_rows, allow_empty=True)

    def _too_late(self, newest: Snapshot | None) -> ConflictError:
        other = f" (snapshot {newest.id} by {newest.commit_user})" if newest else ""
        return ConflictError(
            f"rows landed in table {self._name}{other} while it was altered, and this change is not possible with them; it was "
            "taken back: repeat it to see what to do",
            kind="not-empty",
        )

    def _take_back(self, new_schema: TableSchema, base: TableSchema, deadline_s: float) -> TableSchema:
        """Publish the old content as one more schema. Field ids that the alteration assigned are not used again."""
        restored_schema = replace(
            without_condition(base),
            id=new_schema.id + 1,
            highest_field_id=new_schema.highest_field_id,
            time_millis=max(new_schema.time_millis, base.time_millis),
        )
        if not self._publish(restored_schema, new_schema, deadline_s):
            raise ConflictError(
                f"table {self._name} was altered again at once (schema {restored_schema.id}), while rows landed that schema "
                f"{new_schema.id} does not allow; compare the schemas with table.schema_history() and alter it back",
                kind="not-empty",
            )
        return restored_schema
