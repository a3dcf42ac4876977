"""The tags of one branch of a table: snapshots under a name, which expiry leaves alone.

Creating one races with expiry, and neither may believe that it won when it did not:

    creator   write tag  -> is its snapshot still there, and not below EARLIEST?   no: take the tag back
    expiry    write EARLIEST -> read tags -> delete what they do not need

Whoever comes second sees the other.
"""

from dataclasses import dataclass

from tablestore.errors import AlreadyExistsError, NotFoundError
from tablestore.format.paths import TAG_DIR, TAG_PREFIX, tag_path
from tablestore.format.snapshot import Snapshot
from tablestore.format.tagfile import Tag, decode_tag, encode_tag
from tablestore.io.filestore import FileStore
from tablestore.store.publish import same_snapshot
from tablestore.store.snapshots import Snapshots


@dataclass(frozen=True, slots=True)
class Tags:
    """The tag files in ``files`` (rooted at the table, or a branch's view of it)."""

    files: FileStore

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(info.name[len(TAG_PREFIX) :] for info in self.files.list(TAG_DIR, prefix=TAG_PREFIX)))

    def find(self, name: str) -> Tag | None:
        """One tag, None if there is none of that name. Raises FormatError if it is damaged."""
        path = tag_path(name)
        try:
            data = self.files.read(path)
        except NotFoundError:
            return None
        return decode_tag(data, name, f"{self.files.root_uri}/{path}")

    def get(self, name: str) -> Tag:
        """One tag. Raises NotFoundError."""
        tag = self.find(name)
        if tag is None:
            there = ", ".join(self.names()[:20]) or "none"
            raise NotFoundError(f"table {self.files.root_uri} has no tag {name!r}; there are: {there}", kind="no-such-tag")
        return tag

    def all(self) -> tuple[Tag, ...]:
        """All tags, in the order of their snapshots, then of their names."""
        found = (self.find(name) for name in self.names())
        return tuple(sorted((tag for tag in found if tag is not None), key=lambda tag: (tag.snapshot.id, tag.name)))

    def publish(
        self, name: str, snapshot_file: bytes, *, create_time_millis: int | None, retained_millis: int | None = None
    ) -> None:
        """Write a tag of the snapshot in ``snapshot_file``. Raises AlreadyExistsError."""
        data = encode_tag(snapshot_file, create_time_millis=create_time_millis, retained_millis=retained_millis)
        if self.files.publish_if_absent(tag_path(name), data):
            return
        # Our own earlier try, answered late, is a success; so is the same content by anybody else.
        if (there := self.find(name)) is None or self.files.read(tag_path(name)) != data:
            taken = f"of snapshot {there.snapshot.id}" if there is not None else "that was just deleted"
            raise AlreadyExistsError(
                f"table {self.files.root_uri} has a tag {name!r} {taken}; choose another name, or delete that one first",
                kind="tag-exists",
            )

    def remove(self, name: str) -> bool:
        """Remove the tag file alone; False if it was gone. What only the tag kept is left to the caller."""
        return self.files.delete(tag_path(name))


def create_tag(
    tags: Tags,
    snapshots: Snapshots,
    name: str,
    snapshot: Snapshot,
    *,
    now_millis: int,
    retained_millis: int | None = None,
    ignore_if_exists: bool = False,
) -> Tag:
    """Tag a live snapshot. Raises AlreadyExistsError, NotFoundError if the snapshot expires meanwhile (nothing is left then)."""
    if (there := tags.find(name)) is not None and ignore_if_exists:
        return there
    data = snapshots.read_file(snapshot.id)
    try:
        tags.publish(name, data, create_time_millis=now_millis, retained_millis=retained_millis)
    except AlreadyExistsError:
        if ignore_if_exists and (there := tags.find(name)) is not None:
            return there
        raise
    current = snapshots.find(snapshot.id)
    if current is None or not same_snapshot(current, snapshot) or not snapshots.is_retained(snapshot.id):
        tags.remove(name)
        raise NotFoundError(
            f"snapshot {snapshot.id} of table {tags.files.root_uri} expired before tag {name!r} could keep it; tag a newer one",
            kind="no-such-snapshot",
        )
    return tags.get(name)
