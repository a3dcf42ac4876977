"""The port to whoever publishes the snapshots of a table: the store itself, or a catalog service.

    StoreCommit      publish_if_absent(snapshot-K): the file store decides which writer is first
    ServiceCommit    POST …/tables/<table>/commit: the service publishes snapshot-K, in the same way, and says whether it did

Both end in the same file, so commits through a service and beside it are safe together. `outcome` asks again until it knows what
became of a snapshot, and looks at the files: an answer of a service is never all that it relies on.
``tablestore.testing.contracts.snapshotcommit`` tests what is promised here.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from tablestore.errors import AlreadyExistsError, ConflictError, NotFoundError, StorageError, TablestoreError
from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.partitiontext import partition_texts
from tablestore.format.paths import CREATIONS_DIR, MAIN_BRANCH, snapshot_path
from tablestore.format.snapshot import Snapshot
from tablestore.io.filestore import FileStore
from tablestore.io.service.tablekeys import named_by_directory
from tablestore.io.service.tablerules import named_by_identity
from tablestore.types.datatypes import Field

if TYPE_CHECKING:
    from tablestore.io.service.serviceclient import ServiceClient
    from tablestore.store.context import TableContext


class SnapshotCommit(Protocol):
    """Publishes snapshots of one branch of a table."""

    def publish(self, snapshot: Snapshot, data: bytes, base: Snapshot | None, entries: Sequence[ManifestEntry]) -> bool:
        """Make ``snapshot`` the newest one, on top of ``base``; ``data`` is its file, ``entries`` its delta.

        True: it is there, durably. False: another one has its id, or had it, and the caller looks which. StorageError of kind
        ``unknown-outcome``: undecided, repeat the call with the same snapshot. Any other error: it is certainly not there.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoreCommit:
    """Lets the file store decide: a snapshot is published if there is none of its id."""

    files: FileStore

    def publish(self, snapshot: Snapshot, data: bytes, base: Snapshot | None, entries: Sequence[ManifestEntry]) -> bool:
        return self.files.publish_if_absent(snapshot_path(snapshot.id), data)


@dataclass(slots=True)
class ServiceCommit:
    """Lets a catalog service publish. ``table_id``: the identity of the table there; None if its name tells it.

    The name is that of the table's directory at first (``shop.db/orders``), and what the service calls it where that is another.
    """

    client: "ServiceClient"
    location: str
    table_id: str | None
    branch: str
    partition_fields: Sequence[Field]
    partition_texts: Callable[[Sequence[object]], Sequence[str]]
    _name: tuple[str, str] | None = field(default=None, init=False)

    def await_turn(self, user: str) -> None:
        """Waits for the turn of a commit of ``user``, where it is the first one to this table, or the last one came too late or had
        to wait: what is built in its turn is built once. Only a courtesy, which a service may not know."""
        name = self._name or named_by_directory(self.location)
        is_first = self.client.has_rules and self.location not in self.client.entered
        if name is None or not (is_first or self.location in self.client.crowded):
            return
        self.client.entered.add(self.location)
        self.client.crowded.discard(self.location)
        with suppress(TablestoreError):
            answer = self._send(name, "commit-turn", {"snapshot": {"commitUser": user}})
            if isinstance(answer, dict) and answer.get("waited") is True:
                self.client.crowded.add(self.location)

    def publish(self, snapshot: Snapshot, data: bytes, base: Snapshot | None, entries: Sequence[ManifestEntry]) -> bool:
        body = {
            "tableId": self.table_id,
            "baseSnapshotUuid": None if base is None else base.uuid,
            "snapshot": json.loads(data),
            "statistics": partition_statistics(entries, self.partition_fields, self.partition_texts),
        }
        name = self._name or named_by_directory(self.location)
        if name is None:
            name = self._looked_up()
        try:
            answer = self._send(name, "commit", body)
        except (NotFoundError, AlreadyExistsError, ConflictError):
            # Nothing was published. It may have another name by now.
            renamed = self._looked_up()
            if renamed == name:
                raise
            name = renamed
            answer = self._send(name, "commit", body)
        self._name = name
        success = answer.get("success") if isinstance(answer, dict) else None
        if not isinstance(success, bool):
            raise StorageError(
                f"{self.client.uri}: expected success true or false as the answer to a commit, found {answer!r:.100}; is it the "
                "address of a catalog service?",
                kind="unknown-outcome",
            )
        if not success:
            self.client.crowded.add(self.location)
        return success

    def _send(self, name: tuple[str, str], verb: str, body: object) -> Any:
        database, table = name
        if self.branch != MAIN_BRANCH:
            table = f"{table}$branch_{self.branch}"
        return self.client.send("POST", self.client.path("databases", database, "tables", table, verb), body)

    def _looked_up(self) -> tuple[str, str]:
        return named_by_identity(self.client, self.location, self.table_id)


def service_commit(context: "TableContext", client: "ServiceClient") -> SnapshotCommit:
    """The port to the service that publishes the snapshots of an open table.

    A table that is being made has no name yet: its job publishes to it alone, and the service is told when it is whole.
    """
    if context.main_files.root_uri.split("/")[-3:-2] == [CREATIONS_DIR]:
        return StoreCommit(context.files)
    return ServiceCommit(
        client=client,
        location=context.main_files.root_uri,
        table_id=context.table_uuid,
        branch=context.branch,
        partition_fields=context.schema.partition_fields,
        partition_texts=partial(
            partition_texts,
            [one.type for one in context.schema.partition_fields],
            default_name=context.settings.default_partition,
            legacy=context.settings.legacy_partition_names,
        ),
    )


def partition_statistics(
    entries: Iterable[ManifestEntry], partition_fields: Sequence[Field], texts: Callable[[Sequence[object]], Sequence[str]]
) -> list[dict[str, object]]:
    """The change of each partition by a commit, as the REST protocol has it (PartitionStatistics). One dict a partition.

    ``texts``: the values of a partition as texts.
    """
    totals: dict[bytes, dict[str, Any]] = {}
    for entry in entries:
        sign = 1 if entry.kind is EntryKind.ADD else -1
        total = totals.setdefault(
            entry.partition,
            {
                "recordCount": 0,
                "fileSizeInBytes": 0,
                "fileCount": 0,
                "lastFileCreationTime": 0,
                "totalBuckets": entry.total_buckets,
            },
        )
        total["recordCount"] += sign * entry.file.row_count
        total["fileSizeInBytes"] += sign * entry.file.file_size
        total["fileCount"] += sign
        total["lastFileCreationTime"] = max(total["lastFileCreationTime"], entry.file.creation_time_millis or 0)
    names, types = [one.name for one in partition_fields], [one.type for one in partition_fields]
    return [
        {"spec": dict(zip(names, texts(decode_row(partition, types)), strict=True)), **total} for partition, total in totals.items()
    ]
