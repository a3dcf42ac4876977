"""The history methods of :class:`~tablestore.table.table.Table`: expiry, tags, branches, rollback, consumers, partitions,
orphan files. Each passes its arguments to the module that does the work."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from tablestore.errors import FormatError, InvalidInputError, NotFoundError
from tablestore.format.paths import MAIN_BRANCH
from tablestore.format.snapshot import Snapshot
from tablestore.log.opening import ChangeLogs
from tablestore.names import check_reference
from tablestore.options import TableOptions
from tablestore.store.context import TableContext
from tablestore.table.upkeep.ages import Age, millis_of

# A method imports what does its work: who only reads a table loads nothing of this.
if TYPE_CHECKING:
    from tablestore.format.tagfile import Tag
    from tablestore.log.port import ChangeLog
    from tablestore.progress import Progress
    from tablestore.store.history.branches import Branch
    from tablestore.store.history.consumers import Consumer
    from tablestore.store.history.expire import ExpireReport
    from tablestore.store.history.orphans import CleanReport
    from tablestore.table.history.partitionexpiry import PartitionReport


class Maintenance:
    """The part of a table's handle that manages its history."""

    def __init__(self, context: TableContext, name: str, logs: ChangeLogs | None = None) -> None:
        # Handles that come from one catalog share their logs' open connections.
        self._context, self._name, self._logs = context, name, logs or ChangeLogs()

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._context, self._name, self._logs)

    @cached_property
    def change_log(self) -> "ChangeLog":
        """Its change log, for connectors and tools. Raises InvalidInputError, UnsupportedError for options that name none."""
        return self._logs.of(self._context)

    def close(self) -> None:
        """Give up open connections to the change log; the next write opens them again."""
        self._logs.close()

    # -- snapshots

    def expire_snapshots(
        self,
        *,
        retain_max: int | None = None,
        retain_min: int | None = None,
        older_than: Age = None,
        limit: int | None = None,
        dry_run: bool = False,
    ) -> "ExpireReport":
        """Remove old snapshots, oldest first, and the files that only they needed; tags whose time is over go too.

        Above ``retain_max`` snapshots go whatever their age, above ``retain_min`` those that were replaced before ``older_than``
        (a timedelta, a datetime, either as text, or an age in milliseconds); at most ``limit`` go at once. What is not given comes
        from the table's ``snapshot.*`` options. Tags, branches and consumers keep what they need. Returns what went, or with
        ``dry_run`` would go; print it. Raises InvalidInputError where less than the minimum would stay.
        """
        from tablestore.table.upkeep import expiry

        return expiry.expire(
            self._now,
            retain_max=retain_max,
            retain_min=retain_min,
            older_than=older_than,
            limit=limit,
            dry_run=dry_run,
        )

    def rollback_to(self, snapshot_id: int | None = None, *, tag: str | None = None, newest: int | None = None) -> Snapshot | None:
        """Give the table the rows of a snapshot or tag, by a new commit; returns its snapshot, None if nothing differs.

        Nothing is removed from the history. The newest schema stays: columns that were dropped since do not come back. ``newest``:
        only if this is the id of the newest snapshot, else ConflictError of kind ``moved-on``.
        """
        from tablestore.table.history import restore

        context = self._present
        target = self._named_snapshot(snapshot_id, tag, "rollback_to")
        return restore.rollback_to(context, self._logs, target, newest=newest)

    # -- tags

    def tags(self) -> "tuple[Tag, ...]":
        """All tags, in the order of their snapshots."""
        from tablestore.store.history.tags import Tags

        context = self._present.ruled()
        return tuple(replace(tag, snapshot=context.shown(tag.snapshot)) for tag in Tags(context.files).all())

    def create_tag(
        self,
        name: str,
        snapshot_id: int | None = None,
        *,
        retain: timedelta | int | None = None,
        ignore_if_exists: bool = False,
    ) -> "Tag":
        """Keep a snapshot (default: the newest) under a name, until it is deleted or for ``retain`` (or milliseconds).

        Raises AlreadyExistsError, NotFoundError.
        """
        from tablestore.store.history.autotags import default_retention
        from tablestore.store.history.tags import Tags, create_tag

        context = self._present
        kept_for = millis_of(retain, "retain")
        if kept_for is None:
            kept_for = default_retention(TableOptions(context.schema.options))
        return create_tag(
            Tags(context.files),
            context.snapshots,
            check_reference(name, "tag"),
            self._live_snapshot(snapshot_id),
            ids=context.ids,
            clock=context.clock,
            orphan_age_s=context.settings.orphan_age_s,
            retained_millis=kept_for,
            ignore_if_exists=ignore_if_exists,
        )

    def rename_tag(self, name: str, new_name: str) -> None:
        """Give a tag another name. Raises NotFoundError, AlreadyExistsError, InvalidInputError if a branch needs it."""
        from tablestore.store.history.branches import rename_tag

        rename_tag(self._present, check_reference(name, "tag"), check_reference(new_name, "tag"))

    def delete_tag(self, name: str, *, ignore_if_not_exists: bool = False) -> None:
        """Delete a tag and the files that only it kept; of a damaged one the orphan removal finds them later. Raises
        NotFoundError, InvalidInputError if a branch began there."""
        from tablestore.store.history.branches import delete_tag
        from tablestore.store.history.tags import Tags

        checked, tags = check_reference(name, "tag"), Tags(self._present.files)
        try:
            delete_tag(self._present, checked)
        except FormatError:
            try:
                tags.get(checked)
            except FormatError:
                tags.remove(checked)
            else:
                raise
        except NotFoundError as error:
            if not (ignore_if_not_exists and error.kind == "no-such-tag"):
                raise

    # -- branches

    def branches(self) -> "tuple[Branch, ...]":
        """All branches, by name, without the table itself (its main branch)."""
        from tablestore.store.history.branches import list_branches

        return list_branches(self._present.main_files)

    def create_branch(self, name: str, *, tag: str | None = None, snapshot_id: int | None = None) -> "Branch":
        """Begin a branch at a tag or a snapshot (default: the newest). Read and write it with ``table.branch(name)``."""
        from tablestore.store.history.branches import create_branch

        context, checked = self._present, check_reference(name, "branch")
        if tag is not None and snapshot_id is None:
            return create_branch(context, checked, tag=check_reference(tag, "tag"))
        snapshot = self._live_snapshot(snapshot_id) if tag is None else self._named_snapshot(snapshot_id, tag, "create_branch")
        return create_branch(context, checked, snapshot=snapshot)

    def delete_branch(self, name: str, *, ignore_if_not_exists: bool = False) -> None:
        """Delete a branch and the files that only it needed."""
        from tablestore.store.history.branches import delete_branch

        try:
            delete_branch(self._present, check_reference(name, "branch"))
        except NotFoundError as error:
            if not (ignore_if_not_exists and error.kind == "no-such-branch"):
                raise

    def branch(self, name: str) -> Self:
        """A handle of a branch: a table of its own, over the same data files. ``"main"`` is the table itself."""
        from tablestore.store.history.branches import check_branch
        from tablestore.store.history.branchfiles import open_branch

        context = self._present
        if name != MAIN_BRANCH:
            check_branch(context.main_files, check_reference(name, "branch"))
        table = self._name.partition("$branch_")[0]
        opened = open_branch(context.main_files, name, clock=context.clock, ids=context.ids, shared=context.shared)
        return type(self)(opened, table if name == MAIN_BRANCH else f"{table}$branch_{name}", self._logs)

    @property
    def branch_name(self) -> str:
        """The branch that this handle reads and writes."""
        return self._context.branch

    def fast_forward(self, branch: str, *, discard_newer: bool = False) -> Snapshot | None:
        """Bring the table to the state of a branch, by a commit forward; returns its snapshot, None if nothing differs.

        Refused with ConflictError if the table went on since the branch began, unless ``discard_newer``.
        """
        from tablestore.table.history import restore

        if self.branch_name != MAIN_BRANCH:
            raise InvalidInputError(f"fast_forward is a matter of the table itself, this is its branch {self.branch_name!r}")
        return restore.fast_forward(self._present, self._logs, check_reference(branch, "branch"), discard_newer=discard_newer)

    # -- consumers

    def consumers(self) -> "tuple[Consumer, ...]":
        """All named consumers, by id, with the next snapshot that each of them needs."""
        from tablestore.store.history.consumers import Consumers

        return Consumers(self._present.files).all()

    def reset_consumer(self, consumer_id: str, next_snapshot: int) -> None:
        """Let a consumer go on with the changes of snapshot ``next_snapshot``, wherever it has been before."""
        from tablestore.store.history.consumers import Consumers

        Consumers(self._present.files).write(self._consumer_id(consumer_id), next_snapshot)

    def delete_consumer(self, consumer_id: str) -> bool:
        """Forget a consumer, so that it holds nothing back; False if there was none."""
        from tablestore.store.history.consumers import Consumers

        return Consumers(self._present.files).delete(self._consumer_id(consumer_id))

    # -- partitions and files

    def drop_partitions(self, partitions: Iterable[Mapping[str, Any]], *, dry_run: bool = False) -> "PartitionReport":
        """Drop partitions, each given by some or all of its column values, in one commit."""
        from tablestore.table.history import partitionexpiry

        return partitionexpiry.drop_partitions(self._present, self.change_log, partitions, dry_run=dry_run)

    def expire_partitions(self, older_than: timedelta | int | None = None, *, dry_run: bool = False) -> "PartitionReport":
        """Drop the partitions older than ``older_than`` (default: the option ``partition.expiration-time``), in one commit.

        Data does not expire by itself: only this call drops it.
        """
        from tablestore.table.history import partitionexpiry

        age = millis_of(older_than, "older_than")
        return partitionexpiry.expire_partitions(self._present, self.change_log, age_millis=age, dry_run=dry_run)

    def remove_orphan_files(self, older_than: Age = None, *, dry_run: bool = True) -> "CleanReport":
        """Remove files that no branch of the table names; by default only report them (``dry_run``).

        ``older_than`` (default: the option ``tablestore.orphan-age``, a day) protects running commits: with less, make sure that no
        writer is at work. Raises NotFoundError, having removed nothing, if metadata that must be there is missing.
        """
        from tablestore.table.upkeep import expiry

        return expiry.clean(self._present, older_than=older_than, dry_run=dry_run)

    def compact_manifests(self, progress: "Progress | None" = None) -> Snapshot | None:
        """Rewrite the large manifests, so that plans of some partitions read few of them; what is in the table stays as it is.

        For tables of many thousands of files, and of other engines: :meth:`compact` does it too where manifests overlap.
        ``progress`` is called with a text, the entries done and the entries in all. Returns the new snapshot, None if there was
        nothing to do. Raises ConflictError of kind ``stale-plan`` if others rewrote the same ones meanwhile: repeat it.
        """
        from tablestore.table.upkeep.aftercommit import after_compaction
        from tablestore.table.upkeep.manifestcompaction import compact_manifests

        context = self._present
        snapshot = compact_manifests(context, progress=progress)
        after_compaction(context, lambda: self.change_log, () if snapshot is None else (snapshot.id,))
        return snapshot

    # -- helpers

    @property
    def _now(self) -> TableContext:
        """The context at the newest schema, which is the handle's from then on."""
        followed = self._context.followed()
        if followed is not self._context:
            self._move_to(followed)
        return followed

    @property
    def _present(self) -> TableContext:
        """The context as :attr:`_now` gives it. Raises ConflictError if another table has taken this one's place."""
        return self._now.still_there()

    def _move_to(self, context: TableContext) -> None:
        self._context = context
        # The log belongs to a schema, and is opened again when it is asked for.
        self.__dict__.pop("change_log", None)

    def _consumer_id(self, consumer_id: str) -> str:
        from tablestore.store.history.consumers import check_consumer_id

        return check_consumer_id(check_reference(consumer_id, "consumer"), self._context.files.root_uri)

    def _named_snapshot(self, snapshot_id: int | None, tag: str | None, operation: str) -> Snapshot:
        if (snapshot_id is None) == (tag is None):
            raise InvalidInputError(f"{operation}: expected a snapshot id or a tag, found {'neither' if tag is None else 'both'}")
        if tag is not None:
            from tablestore.store.history.tags import Tags

            return Tags(self._context.files).get(check_reference(tag, "tag")).snapshot
        return self._live_snapshot(snapshot_id)

    def _live_snapshot(self, snapshot_id: int | None) -> Snapshot:
        snapshots = self._context.snapshots
        if snapshot_id is not None:
            if isinstance(snapshot_id, bool) or not isinstance(snapshot_id, int):
                raise InvalidInputError(f"expected a whole number as snapshot_id, found {snapshot_id!r:.80}")
            return snapshots.live(snapshot_id)
        latest = snapshots.latest()
        if latest is None:
            raise NotFoundError(
                f"table {self._name} has no snapshot yet: write rows first, then tag or branch them", kind="no-such-snapshot"
            )
        return latest
