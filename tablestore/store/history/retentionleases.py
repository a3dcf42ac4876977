"""Holds: leases on the snapshots that the table itself needs, such as those that its log has not published.

    tablestore-holds/<name>-<epoch>        {"nextSnapshot": 7, "owner": "log shop.orders", "token": …}      the hold
    tablestore-holds/materialized-<uuid>-<epoch>        the same with "target": where the table lay that holds these
    consumer/consumer-<mirror>             {"nextSnapshot": 7}                                              for other engines

Expiry removes no snapshot from ``nextSnapshot`` on. A hold is no consumer: ``consumer.expiration-time`` does not end it, and users'
consumers cannot have its name. Its owner *takes* it, which begins an epoch. After that an earlier owner can no longer *move* it,
nor can the owner of a hold that was *released*. Other engines read the mirror, an ordinary consumer file.

A table of an earlier release has only the mirror of its log, which is read as a hold of epoch 0.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tablestore.errors import ConflictError, InvalidInputError, NotFoundError
from tablestore.format.limits import parse_json_bounded
from tablestore.format.sealed import JsonObject
from tablestore.ids import Ids
from tablestore.io.filestore import FileStore
from tablestore.store.history.consumers import HOLD_CONSUMER_PREFIX, LOG_CONSUMER, NEXT_SNAPSHOT_KEY, Consumers

# Stored, never renamed.
HOLDS_DIR = "tablestore-holds"
LOG_HOLD = "log"
_TARGET_HOLD, _NO_UUID = "materialized-", "none"
_NAME = re.compile(r"([a-z][a-z0-9]*(?:-[a-z0-9]+)*?)-(\d{20})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionLease:
    """Snapshots from ``next_snapshot`` on are needed. ``owner`` names the holder, ``epoch`` and ``token`` the taking.

    ``target``: where the table that is made from these snapshots lay then; None if no table is, or an earlier release took it.
    """

    name: str
    next_snapshot: int
    owner: str
    epoch: int
    token: str
    target: str | None = None

    @property
    def target_uuid(self) -> str | None:
        """The table that is made from these snapshots, as :func:`hold_uuid` writes it; None if no table is, or it has no uuid."""
        uuid = self.name.removeprefix(_TARGET_HOLD)
        return None if uuid in (self.name, _NO_UUID) else uuid


@dataclass(frozen=True, slots=True)
class RetentionLeases:
    """The holds of the table in ``files`` (or a branch's view of it)."""

    files: FileStore

    def find(self, name: str) -> RetentionLease | None:
        """The hold of that name, None if there is none. Raises FormatError if its file is damaged."""
        holds = [hold for hold in self._recorded(f"{name}-") if hold.name == name]
        if not holds and name == LOG_HOLD:
            return self._of_mirror()
        return max(holds, key=lambda hold: hold.epoch, default=None)

    def all(self) -> tuple[RetentionLease, ...]:
        """The holds, by name."""
        by_name: dict[str, RetentionLease] = {}
        for hold in self._recorded():
            if hold.name not in by_name or by_name[hold.name].epoch < hold.epoch:
                by_name[hold.name] = hold
        if LOG_HOLD not in by_name and (old := self._of_mirror()) is not None:
            by_name[LOG_HOLD] = old
        return tuple(by_name[name] for name in sorted(by_name))

    def floor(self) -> RetentionLease | None:
        """The hold that needs the oldest snapshot."""
        return min(self.all(), key=lambda hold: (hold.next_snapshot, hold.name), default=None)

    def take(self, name: str, next_snapshot: int, *, owner: str, ids: Ids, target: str | None = None) -> RetentionLease:
        """Hold snapshots from ``next_snapshot`` on. Ends the hold of an earlier owner of that name."""
        token = ids.uuid()
        while True:
            before = self.find(name)
            epoch = before.epoch + 1 if before is not None else 1
            first = _checked(next_snapshot)
            hold = RetentionLease(name=name, next_snapshot=first, owner=owner, epoch=epoch, token=token, target=target)
            if self.files.publish_if_absent(_path(hold), _encode(hold)):
                self._mirror(hold)
                self._forget(name, below=epoch)
                return hold

    def move(self, hold: RetentionLease, next_snapshot: int) -> RetentionLease:
        """Let expiry have the snapshots before ``next_snapshot``. Raises ConflictError if another owner has taken the hold."""
        current = self.find(hold.name)
        if current is None or (current.epoch, current.token) != (hold.epoch, hold.token):
            raise ConflictError(
                f"the hold {hold.name!r} of table {self.files.root_uri} was taken in epoch {hold.epoch} by {hold.owner}; by now "
                f"{'it was released' if current is None else f'{current.owner} has it, in epoch {current.epoch}'}: open the table "
                "again",
                kind="hold-taken",
            )
        moved = replace(hold, next_snapshot=_checked(next_snapshot))
        # The mirror first, so that other engines never keep less than the hold says.
        self._mirror(moved)
        if hold.epoch:
            self.files.overwrite(_path(moved), _encode(moved))
        return moved

    def release(self, name: str) -> None:
        """End the hold of this name."""
        # The mirror first: whoever looks for holds that were left behind finds those on record.
        Consumers(self.files).delete(mirror_of(name))
        self._forget(name)

    def _of_mirror(self) -> RetentionLease | None:
        """The hold of the log of a table of an earlier release."""
        consumer = Consumers(self.files).find(LOG_CONSUMER)
        if consumer is None:
            return None
        return RetentionLease(name=LOG_HOLD, next_snapshot=consumer.next_snapshot, owner="the log", epoch=0, token="")

    def _recorded(self, prefix: str = "") -> Iterator[RetentionLease]:
        for info in self.files.list(HOLDS_DIR, prefix=prefix):
            if (match := _NAME.fullmatch(info.name)) is None:
                continue
            try:
                data = self.files.read(f"{HOLDS_DIR}/{info.name}")
            except NotFoundError:
                continue  # A newer epoch is in its place.
            where = f"{self.files.root_uri}/{HOLDS_DIR}/{info.name}"
            source = JsonObject(parse_json_bounded(data, where), where)
            yield RetentionLease(
                name=match[1],
                epoch=int(match[2]),
                next_snapshot=source.integer(NEXT_SNAPSHOT_KEY),
                owner=source.text("owner"),
                token=source.text("token"),
                target=source.optional_text("target"),
            )

    def _mirror(self, hold: RetentionLease) -> None:
        Consumers(self.files).write(mirror_of(hold.name), hold.next_snapshot)

    def _forget(self, name: str, *, below: int = 10**20) -> None:
        for info in self.files.list(HOLDS_DIR, prefix=f"{name}-"):
            match = _NAME.fullmatch(info.name)
            if match is not None and match[1] == name and int(match[2]) < below:
                self.files.delete(f"{HOLDS_DIR}/{info.name}")


def mirror_of(name: str) -> str:
    """The consumer that shows a hold to other engines."""
    return LOG_CONSUMER if name == LOG_HOLD else f"{HOLD_CONSUMER_PREFIX}{name}"


def target_hold(table_uuid: str | None) -> str:
    """The hold of a table on those that it is made from."""
    return f"{_TARGET_HOLD}{hold_uuid(table_uuid)}"


def hold_uuid(table_uuid: str | None) -> str:
    """The uuid of a table as it stands in the name of its hold."""
    return (table_uuid or _NO_UUID).replace("-", "").lower()


def _checked(next_snapshot: int) -> int:
    if next_snapshot < 1:
        raise InvalidInputError(f"expected a snapshot id from 1 to hold on to, found {next_snapshot}")
    return next_snapshot


def _path(hold: RetentionLease) -> str:
    name = f"{hold.name}-{hold.epoch:020d}"
    assert _NAME.fullmatch(name), name
    return f"{HOLDS_DIR}/{name}"


def _encode(hold: RetentionLease) -> bytes:
    content = {NEXT_SNAPSHOT_KEY: hold.next_snapshot, "owner": hold.owner, "token": hold.token}
    if hold.target is not None:
        content["target"] = hold.target
    return json.dumps(content, separators=(",", ":")).encode()
