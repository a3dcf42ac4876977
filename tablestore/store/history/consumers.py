"""Consumers, the named readers of changes: ``consumer/consumer-<id>`` holds the next snapshot that each of them needs.

    {"nextSnapshot": 7}      plus keys of our own for the place inside of a snapshot, which others ignore

No expiry, ours or another engine's, removes a snapshot from ``nextSnapshot`` on. A reader registers before it plans, and then
checks that its snapshot is still there; expiry writes EARLIEST before it reads the consumers. So one of them sees the other.
A consumer that has not moved for ``consumer.expiration-time`` is dead.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tablestore.errors import InvalidInputError, NotFoundError
from tablestore.format.limits import json_within_limits, parse_json_bounded
from tablestore.format.paths import CONSUMER_DIR, CONSUMER_PREFIX, consumer_path
from tablestore.format.sealed import JsonObject
from tablestore.io.filestore import FileStore

# Stored, never renamed.
NEXT_SNAPSHOT_KEY = "nextSnapshot"
# Consumers that mirror the table's own holds (tablestore.store.history.retentionleases).
LOG_CONSUMER = "tablestore-log-publisher"
HOLD_CONSUMER_PREFIX = "tablestore-hold-"


def is_reserved(consumer_id: str) -> bool:
    """True if an id is not for users' consumers."""
    return consumer_id == LOG_CONSUMER or consumer_id.startswith(HOLD_CONSUMER_PREFIX)


def check_consumer_id(consumer_id: str, table: str) -> str:
    """The id of a user's consumer. Raises InvalidInputError (kind ``reserved-name``) for one of the table's own."""
    if is_reserved(consumer_id):
        raise InvalidInputError(
            f"consumer {consumer_id!r} of table {table} is the table's own: it keeps snapshots for the log or a stream until they "
            "are done; choose another name. A log that is not wanted ends with log.system = filestore",
            kind="reserved-name",
        )
    return consumer_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """One reader's progress. ``extra`` are further keys of its file; ``modified_ms`` is when it last moved, by the store."""

    id: str
    next_snapshot: int
    extra: Mapping[str, object] = field(default_factory=dict)
    modified_ms: int = 0


@dataclass(frozen=True, slots=True)
class Consumers:
    """The consumer files in ``files`` (rooted at the table, or a branch's view of it)."""

    files: FileStore

    def find(self, consumer_id: str) -> Consumer | None:
        """One consumer, None if there is none of that id. Raises FormatError if its file is damaged."""
        path = consumer_path(consumer_id)
        try:
            data = self.files.read(path)
        except NotFoundError:
            return None
        where = f"{self.files.root_uri}/{path}"
        source = JsonObject(parse_json_bounded(data, where), where)
        next_snapshot = source.integer(NEXT_SNAPSHOT_KEY)
        extra = {key: value for key, value in source.content.items() if key != NEXT_SNAPSHOT_KEY}
        return Consumer(id=consumer_id, next_snapshot=next_snapshot, extra=extra)

    def get(self, consumer_id: str) -> Consumer:
        """One consumer. Raises NotFoundError."""
        consumer = self.find(consumer_id)
        if consumer is None:
            raise NotFoundError(
                f"table {self.files.root_uri} has no consumer {consumer_id!r}; there are: "
                f"{', '.join(consumer.id for consumer in self.all()) or 'none'}",
                kind="no-such-consumer",
            )
        return consumer

    def all(self) -> tuple[Consumer, ...]:
        """The consumers of users, by id."""
        consumers = []
        for info in self.files.list(CONSUMER_DIR, prefix=CONSUMER_PREFIX):
            consumer_id = info.name[len(CONSUMER_PREFIX) :]
            consumer = None if is_reserved(consumer_id) else self.find(consumer_id)
            if consumer is not None:
                consumers.append(replace(consumer, modified_ms=info.modified_ms))
        return tuple(consumers)

    def write(self, consumer_id: str, next_snapshot: int, extra: Mapping[str, object] | None = None) -> None:
        """Record that ``consumer_id`` needs snapshots from ``next_snapshot`` on."""
        if next_snapshot < 1:
            raise InvalidInputError(
                f"consumer {consumer_id!r} of table {self.files.root_uri}: expected a snapshot id from 1, found {next_snapshot}"
            )
        content = {NEXT_SNAPSHOT_KEY: next_snapshot, **(extra or {})}
        self.files.overwrite(consumer_path(consumer_id), json_within_limits(content, f"consumer {consumer_id!r}"))

    def delete(self, consumer_id: str) -> bool:
        """Forget a consumer; False if there was none."""
        return self.files.delete(consumer_path(consumer_id))

    def floor(self, *, alive_since_ms: int | None = None) -> Consumer | None:
        """The consumer that needs the oldest snapshot; those that last moved before ``alive_since_ms`` do not count."""
        alive = [consumer for consumer in self.all() if alive_since_ms is None or consumer.modified_ms >= alive_since_ms]
        return min(alive, key=lambda consumer: (consumer.next_snapshot, consumer.id), default=None)
