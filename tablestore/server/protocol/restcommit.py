"""Commits a snapshot that a client has prepared: its files are there, and the service publishes ``snapshot-<id>``.

    id is the next one, on the newest snapshot  ── publish if absent ──> success, or lost to another committer
    id is taken, by this very commit            ──────────────────────> success: the request was repeated
    id is taken by another one                  ──────────────────────> no success: the client builds on the newest
    no answer of the store                      ──────────────────────> 503: the request may be repeated as it is

The step that decides is the one of every committer, so commits through the service and straight to the files are safe together.
The file holds what the client has sent, unknown keys among it. A client that gives its snapshots no uuid (Paimon before 2) gets
one that is made from the content, by which the commit is found again.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tablestore.errors import FormatError, NotFoundError, StorageError
from tablestore.format.limits import json_within_limits
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.paths import MANIFEST_DIR, STATISTICS_DIR, content_uuid, snapshot_path
from tablestore.format.snapshot import Snapshot, decode_snapshot
from tablestore.io.filestore import FileStore
from tablestore.server.protocol.errorresponse import ErrorResponse, RequestRefused, ResourceType, bad_request, missing
from tablestore.server.protocol.exchange import Call, json_inside, understood
from tablestore.server.protocol.restservice import RestService, table_id
from tablestore.store.commit.outcome import Outcome, SnapshotPublisher
from tablestore.store.context import TableContext
from tablestore.store.schemas import table_uuid_of
from tablestore.table.table import Table
from tablestore.table.upkeep.aftercommit import after_client_commit


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCommit:
    """A snapshot as a client has sent it. ``data``: its file. ``base_uuid``: the snapshot that it was built on; None where the
    client does not say."""

    snapshot: Snapshot
    data: bytes
    table_id: str | None
    base_uuid: str | None

    def is_same_as(self, other: Snapshot) -> bool:
        """True if ``other`` is this commit, which has landed before."""
        mine = self.snapshot
        return mine.uuid == other.uuid or (
            (mine.commit_user, mine.commit_identifier, mine.commit_kind, mine.delta_manifest_list)
            == (other.commit_user, other.commit_identifier, other.commit_kind, other.delta_manifest_list)
        )


@dataclass(frozen=True, slots=True)
class SentSnapshot:
    """Publishes a snapshot as its client has sent it. A :class:`~tablestore.store.commit.snapshotcommit.SnapshotCommit`."""

    files: FileStore
    data: bytes

    def publish(self, snapshot: Snapshot, data: bytes, base: Snapshot | None, entries: Sequence[ManifestEntry]) -> bool:
        """Publishes the bytes under the snapshot's id; False if it is taken."""
        return self.files.publish_if_absent(snapshot_path(snapshot.id), self.data)


def _ignore() -> None:
    """Nobody waits for the landing."""


def commit_user(call: Call) -> str:
    """The user of the snapshot in the body of a request: one client. Raises RequestRefused."""
    return understood(lambda: json_inside(call.json(), "snapshot").text("commitUser"))


def commit_table(service: RestService, call: Call, landed: Callable[[], object] = _ignore) -> dict[str, object]:
    """Publishes a snapshot; whether it has landed. ``landed`` is called as soon as it has, before its changes are published."""
    prepared = parse_commit(call)
    table = service.table(call.names)
    if prepared.table_id is not None and prepared.table_id != table_id(table.context):
        raise missing(
            ResourceType.TABLE,
            call.names["table"],
            f"table {table.name} was dropped and created again since it was opened: its id is {table_id(table.context)}, expected "
            f"{prepared.table_id!r:.80}; open the table again",
        )
    return {"success": publish_commit(service, table, prepared, landed)}


def take_turn(service: RestService, call: Call) -> None:
    """Answers a caller that is about to build a snapshot: its turn has come, and the table is kept for it."""


def parse_commit(call: Call) -> PreparedCommit:
    """The commit in the body of a request. Raises RequestRefused."""
    request = call.json()
    source = json_inside(request, "snapshot")
    named, base_uuid = understood(lambda: (request.optional_text("tableId"), request.optional_text("baseSnapshotUuid")))
    content = {key: value for key, value in source.content.items() if value is not None}
    if "uuid" not in content:
        content = {"version": content.pop("version", 3), "uuid": _content_uuid(content), **content}
    data = json_within_limits(content, "the snapshot", indent=2)
    snapshot = understood(lambda: decode_snapshot(data, source.name))
    return PreparedCommit(snapshot=snapshot, data=data, table_id=named, base_uuid=base_uuid)


def publish_commit(service: RestService, table: Table, prepared: PreparedCommit, landed: Callable[[], object] = _ignore) -> bool:
    """Publishes a snapshot; True if it has landed, now or before. Raises RequestRefused, TablestoreError."""
    context, snapshot = table.context, prepared.snapshot
    with service.turns.of(context):
        outcome = _publish(service, context, prepared)
    if outcome is Outcome.LANDED:
        landed()
        with suppress(StorageError):
            context.snapshots.write_latest_hint(snapshot.id)
        after_client_commit(context, lambda: table.change_log, snapshot)
        return True
    return outcome is None


def _publish(service: RestService, context: TableContext, prepared: PreparedCommit) -> Outcome | None:
    """The outcome; None if it had landed before."""
    snapshot, latest = prepared.snapshot, context.snapshots.latest()
    if latest is not None and snapshot.id <= latest.id:
        return None if _landed_before(context, latest, prepared) else Outcome.LOST
    if snapshot.id != (1 if latest is None else latest.id + 1) or not _is_base(latest, prepared):
        return Outcome.LOST
    _check_files(context, snapshot)
    try:
        entries = context.manifests.delta(snapshot)
    except FormatError as error:
        raise bad_request(f"the delta of snapshot {snapshot.id} cannot be read: {error.message}") from error
    publisher = SnapshotPublisher(
        files=context.files,
        commit=SentSnapshot(context.files, prepared.data),
        snapshots=context.snapshots,
        manifests=context.manifests,
        clock=service.clock,
        ids=service.ids,
        is_same_table=lambda: _is_there(context),
    )
    deadline_s = service.clock.steady_s() + service.commit_timeout_s
    outcome = publisher.publish(snapshot, latest, entries, deadline_s=deadline_s)
    if outcome is Outcome.LANDED:
        return outcome
    occupant = context.snapshots.find(snapshot.id)
    return None if occupant is not None and prepared.is_same_as(occupant) else Outcome.LOST


def _landed_before(context: TableContext, latest: Snapshot, prepared: PreparedCommit) -> bool:
    occupant = context.snapshots.find(prepared.snapshot.id)
    if occupant is not None:
        return prepared.is_same_as(occupant)
    # It has expired. What is there of its files shows that it landed; if there is none, nobody knows.
    try:
        added = {entry.file.file_name for entry in context.manifests.delta(prepared.snapshot)}
    except (NotFoundError, FormatError):
        added = set()
    if added and context.manifests.live_named(latest, added):
        return True
    raise RequestRefused(
        ErrorResponse(
            code=500,
            message=f"the outcome of snapshot {prepared.snapshot.id} of table {context.files.root_uri} is unknown: that id has "
            f"expired, the newest is {latest.id}. Look for its rows before they are written again",
        )
    )


def _is_base(latest: Snapshot | None, prepared: PreparedCommit) -> bool:
    """True if the snapshot was built on the newest one."""
    if latest is None:
        return prepared.base_uuid is None
    if prepared.base_uuid is not None:
        return prepared.base_uuid == latest.uuid
    # Clients before Paimon 2 do not say. What they count on shows a table that was rolled back and went on meanwhile.
    return prepared.snapshot.stored_records - (prepared.snapshot.delta_record_count or 0) == latest.stored_records


def _check_files(context: TableContext, snapshot: Snapshot) -> None:
    """Raises RequestRefused if a file that the snapshot names is not there."""
    lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list)
    paths = [f"{MANIFEST_DIR}/{name}" for name in lists if name is not None]
    if snapshot.index_manifest is not None:
        paths.append(f"{MANIFEST_DIR}/{snapshot.index_manifest}")
    if snapshot.statistics is not None:
        paths.append(f"{STATISTICS_DIR}/{snapshot.statistics}")
    for path in paths:
        if not context.files.exists(path):
            raise bad_request(f"snapshot {snapshot.id} names {path}, which is not in {context.files.root_uri}: write it first")
    if snapshot.schema_id not in context.schemas.ids():
        raise bad_request(f"snapshot {snapshot.id} names schema {snapshot.schema_id}, which {context.files.root_uri} has not")


def _is_there(context: TableContext) -> bool:
    try:
        return table_uuid_of(context.schemas.refreshed_latest()) == context.table_uuid
    except NotFoundError:
        return False


def _content_uuid(content: dict[str, object]) -> str:
    return content_uuid(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())
