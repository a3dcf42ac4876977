"""Tags of one branch of a table: snapshots under a name, which expiry leaves alone.

Creating a tag races with expiry. A tag must not be visible before it is certain, because branches and rollbacks build on it, so a
*hold* comes first:

    creator   write hold -> check that the snapshot is there and not below EARLIEST -> write tag -> remove hold
    expiry    write EARLIEST -> read holds and tags, twice -> delete what they do not need

The second of the two sees the first. A hold that a crash left behind is removed with the orphan files.
"""

from contextlib import suppress
from dataclasses import dataclass

from tablestore.clock import Clock
from tablestore.errors import AlreadyExistsError, ConflictError, FormatError, InvalidInputError, NotFoundError, StorageError
from tablestore.format.paths import TAG_DIR, TAG_PREFIX, tag_path
from tablestore.format.snapshot import Snapshot
from tablestore.format.tagfile import Tag, decode_tag, encode_tag
from tablestore.ids import Ids
from tablestore.io.filestore import FileStore
from tablestore.store.snapshots import Snapshots, same_snapshot

# Files of this name in the tag directory keep a snapshot while a tag of it is being made.
HOLD_PREFIX = ".hold-"


@dataclass(frozen=True, slots=True)
class Tags:
    """The tag files in ``files`` (rooted at the table, or a branch's view of it)."""

    files: FileStore

    def names(self) -> tuple[str, ...]:
        """The names, sorted."""
        return tuple(sorted(name[len(TAG_PREFIX) :] for name in self.files.names(TAG_DIR, prefix=TAG_PREFIX)))

    def names_and_holds(self) -> tuple[str, ...]:
        """The file names of all tags and holds, for :meth:`find_either`."""
        return tuple(name for name in self.files.names(TAG_DIR) if name.startswith((TAG_PREFIX, HOLD_PREFIX)))

    def find(self, name: str) -> Tag | None:
        """One tag, None if there is none of that name. Raises FormatError if it is damaged."""
        return self.find_either(f"{TAG_PREFIX}{name}")

    def find_either(self, file_name: str) -> Tag | None:
        """The tag or hold in a file of the tag directory."""
        name = file_name.removeprefix(TAG_PREFIX)
        path = f"{TAG_DIR}/{file_name}"
        try:
            data = self.files.read(path)
        except NotFoundError:
            return None
        return decode_tag(data, name, f"{self.files.root_uri}/{TAG_DIR}/{TAG_PREFIX}{name}")

    def get(self, name: str) -> Tag:
        """One tag. Raises NotFoundError."""
        tag = self.find(name)
        if tag is None:
            tag_names = ", ".join(self.names()[:20]) or "none"
            raise NotFoundError(f"table {self.files.root_uri} has no tag {name!r}; there are: {tag_names}", kind="no-such-tag")
        return tag

    def all(self) -> tuple[Tag, ...]:
        """The tags, in the order of their snapshots, then of their names."""
        tags = (self.find(name) for name in self.names())
        return tuple(sorted((tag for tag in tags if tag is not None), key=lambda tag: (tag.snapshot.id, tag.name)))

    def publish(
        self, name: str, snapshot_file: bytes, *, create_time_millis: int | None, retained_millis: int | None = None
    ) -> None:
        """Write a tag of the snapshot in ``snapshot_file``. Raises AlreadyExistsError."""
        data = encode_tag(snapshot_file, create_time_millis=create_time_millis, retained_millis=retained_millis)
        if self.files.publish_if_absent(tag_path(name), data):
            return
        try:
            # The same content is a success: our own earlier try that had no answer, or that of another process.
            occupied = self.files.read(tag_path(name)) != data
        except NotFoundError:
            occupied = True
        if occupied:
            raise _name_taken(self, name, self.find(name))

    def remove(self, name: str) -> bool:
        """Remove the tag file alone, durably; False if it was gone. The caller removes files that only the tag referenced."""
        if not self.files.delete(tag_path(name)):
            return False
        # Else a tag could be back after a power failure, and its files gone.
        self.files.sync(TAG_DIR)
        return True


def create_tag(
    tags: Tags,
    snapshots: Snapshots,
    name: str,
    snapshot: Snapshot,
    *,
    ids: Ids,
    clock: Clock,
    orphan_age_s: float,
    retained_millis: int | None = None,
    ignore_if_exists: bool = False,
) -> Tag:
    """Tag a live snapshot. Raises AlreadyExistsError, NotFoundError if the snapshot expires meanwhile (nothing is left then)."""
    if (existing := tags.find(name)) is not None:
        if ignore_if_exists:
            return existing
        raise _name_taken(tags, name, existing)
    data = snapshots.read_file(snapshot.id)
    now_millis = clock.now_ms()
    # One that could not be read again would be in the way of all that looks at tags.
    tag = _readable(data, name, create_time_millis=now_millis, retained_millis=retained_millis)
    hold = f"{TAG_DIR}/{HOLD_PREFIX}{ids.uuid()}"
    tags.files.write(hold, encode_tag(data, create_time_millis=now_millis, retained_millis=None))
    try:
        current = snapshots.find(snapshot.id)
        if current is None or not same_snapshot(current, snapshot) or not snapshots.is_retained(snapshot.id):
            raise NotFoundError(
                f"snapshot {snapshot.id} of table {tags.files.root_uri} expired before tag {name!r} could keep it; tag a newer one",
                kind="no-such-snapshot",
            )
        if clock.now_ms() - now_millis > orphan_age_s * 1000 / 2:
            raise ConflictError(
                f"creating tag {name!r} of table {tags.files.root_uri} took longer than half of the age at which the hold on its "
                "snapshot may be removed: create it again",
                kind="too-old",
            )
        tags.publish(name, data, create_time_millis=now_millis, retained_millis=retained_millis)
    except AlreadyExistsError:
        if ignore_if_exists and (existing := tags.find(name)) is not None:
            return existing
        raise
    finally:
        # A hold that stays is an orphan. It must not hide the outcome.
        with suppress(StorageError):
            tags.files.delete(hold)
    return tag


def _readable(data: bytes, name: str, *, create_time_millis: int, retained_millis: int | None) -> Tag:
    try:
        encoded = encode_tag(data, create_time_millis=create_time_millis, retained_millis=retained_millis)
        return decode_tag(encoded, name, tag_path(name))
    except (FormatError, OverflowError) as error:
        raise InvalidInputError(
            f"tag {name!r}: expected a time to keep it that a tag can hold, found {retained_millis} ms; choose a shorter one"
        ) from error


def _name_taken(tags: Tags, name: str, existing: Tag | None) -> AlreadyExistsError:
    holder = f"of snapshot {existing.snapshot.id}" if existing is not None else "that was just deleted"
    return AlreadyExistsError(
        f"table {tags.files.root_uri} has a tag {name!r} {holder}; choose another name, or delete that one first",
        kind="tag-exists",
    )
