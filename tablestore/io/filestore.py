"""The file store protocol, :class:`FileStore`: a handful of operations on named, immutable files.

    store = LocalFileStore("/data/wh").at("shop.db/orders")
    store.publish_if_absent("snapshot/snapshot-3", data)      # the one atomic step of a commit

Invariants that every implementation keeps (``tablestore.testing.contracts.filestore`` tests them):

* paths are relative to the store's root, "/"-separated, and joined by :func:`join_inside` alone, so nothing
  outside of the root can be named;
* a file is written once: ``write``, ``open_output`` and ``publish_if_absent`` never replace one (only
  ``overwrite`` does, for hints);
* what an operation reported as done is durable, and a file that appears under a published name is whole;
* "gone" (:class:`NotFoundError`), "denied" (:class:`StorageError` of kind ``denied``) and "failed" (any other
  :class:`StorageError`) are told apart, because only "gone" may change a decision.

Directories are not objects here: they appear with their first file, and one that is missing lists as empty.
Left to others: which files exist and what they mean (``format``, ``store``), and who may commit (``io.lock``).
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol, runtime_checkable

from tablestore.errors import InvalidInputError, UnsupportedError

if TYPE_CHECKING:
    import pyarrow as pa

READ_LIMIT_BYTES = 256 * 1024 * 1024
"""Most bytes that :meth:`FileStore.read` takes into memory unless told otherwise; metadata is far smaller."""

MAX_SEGMENT_BYTES = 255
_COPY_BYTES = 8 << 20
# Unicode's class Cc. Every call of a store checks its path: one search, and not a look at each character.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
TEMPORARY_PREFIX = ".tmp-"
"""Files being published carry this prefix; a crash may leave one behind, and orphan clean-up takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """One entry of a listing. ``modified_ms`` is 0 and ``size`` is 0 for directories of stores that keep none.

    ``is_link``: it stands for what lies elsewhere, which the rest describes.
    """

    name: str
    size: int
    modified_ms: int
    is_dir: bool = False
    is_link: bool = False


class FileStore(Protocol):
    """The verbs. All implementations are picklable and may be used from several threads."""

    @property
    def root_uri(self) -> str:
        """The address of this store, for people: "/data/wh", "s3://bucket/wh". Never holds credentials."""
        ...

    @property
    def can_publish(self) -> bool:
        """True if :meth:`publish_if_absent` may work here; if not, only a lock makes this store writable (``io.lock``)."""
        ...

    def read(self, path: str, *, max_bytes: int = READ_LIMIT_BYTES) -> bytes:
        """The bytes of a file. NotFoundError if it is gone, FormatError of kind "too-large" over ``max_bytes``."""
        ...

    def size(self, path: str) -> int:
        """Bytes of a file; NotFoundError if it is gone."""
        ...

    def exists(self, path: str) -> bool:
        """True if a file (not a directory) of that name is there; raises rather than guessing when denied."""
        ...

    def open_input(self, path: str) -> "pa.NativeFile | BinaryIO":
        """A random-access binary file, as ``pyarrow.parquet`` wants it; the caller closes it."""
        ...

    def open_output(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A writable binary file. Clean exit: durable; exception: removed. AlreadyExistsError if present."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Make a new file, whole or not at all; AlreadyExistsError if present. Its content is durable at once, its name
        with the next :meth:`sync` of its directory."""
        ...

    def write_all(self, files: Mapping[str, bytes]) -> None:
        """Make several new files, by path, under names that nobody knows yet: until this returns they may be there in part. Their
        contents are durable then, their names with the next :meth:`sync`; if one fails, others may stay."""
        ...

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        """Make ``path`` hold ``data`` unless it exists, atomically against every other process.

        True: this call made it, durably. False: occupied, by whatever content; the caller reads it back and
        compares. StorageError of kind "unknown-outcome": undecided; repeat the call with the same bytes.
        UnsupportedError of kind "no-conditional-publish": this store cannot, see :attr:`can_publish`.
        """
        ...

    def overwrite(self, path: str, data: bytes, *, lasting: bool = True) -> None:
        """Replace a file atomically, or make it. For hints only: the last writer wins. Not ``lasting``: after a power failure it
        may hold what it held before, or nothing; nobody waits for it."""
        ...

    def list(self, directory: str, prefix: str = "") -> Sequence[FileInfo]:
        """Entries of one directory (``""`` is the root) whose name starts with ``prefix``, sorted by name.

        Always fresh, not recursive, and empty when the directory is missing.
        """
        ...

    def names(self, directory: str, prefix: str = "") -> Sequence[str]:
        """The names that :meth:`list` gives, without looking at what is behind them; one may be gone by now."""
        ...

    def delete(self, path: str) -> bool:
        """Remove a file; False if it was gone already."""
        ...

    def delete_directory(self, path: str) -> None:
        """Remove a directory and all below it; nothing happens if it is missing. The root is refused."""
        ...

    def sync(self, directory: str) -> None:
        """Make the names of new files in ``directory`` durable: call it before publishing a reference to them."""
        ...

    def at(self, path: str) -> "FileStore":
        """A store rooted deeper; nothing is created."""
        ...


@runtime_checkable
class RenamesDirectories(Protocol):
    """Stores that can rename a directory in one step."""

    def rename_directory(self, old: str, new: str) -> None:
        """Rename; AlreadyExistsError if ``new`` is there, NotFoundError if ``old`` is not."""
        ...


@runtime_checkable
class ExchangesDirectories(Protocol):
    """Stores that can exchange two directories in one step."""

    def exchange_directories(self, one: str, other: str) -> None:
        """Exchange; NotFoundError if one is not there, UnsupportedError where this file system cannot."""
        ...


@runtime_checkable
class CopiesFiles(Protocol):
    """Stores that copy a file by themselves, without its bytes passing through here. Use :func:`copy_file`."""

    def copy_file(self, old: str, new: str) -> None:
        """Copies as :func:`copy_file` does. UnsupportedError: not this file; then its bytes are read and written."""
        ...


@runtime_checkable
class PublishesAlone(Protocol):
    """Stores without a conditional write, which publish safely while nobody else publishes at that place."""

    def publish_alone(self, path: str, data: bytes) -> bool:
        """Publishes as :meth:`FileStore.publish_if_absent`, but atomically only against readers: the caller keeps other
        writers away."""
        ...


def copy_file(files: FileStore, old: str, new: str) -> None:
    """Make ``new`` a file of the same content as ``old``, whole or not at all: by the store itself where it can.

    ``new`` is a name that nobody else gives away; the store may replace what is there. Its name is durable with the next
    :meth:`FileStore.sync` of its directory. Raises NotFoundError, AlreadyExistsError, StorageError. Memory: one chunk.
    """
    if isinstance(files, CopiesFiles):
        try:
            files.copy_file(old, new)
        except UnsupportedError:
            pass
        else:
            return
    with closing(files.open_input(old)) as source, files.open_output(new) as sink:
        while chunk := source.read(_COPY_BYTES):
            sink.write(chunk)


def join_inside(root: str, path: str) -> str:
    """``root`` and ``path`` joined, or InvalidInputError of kind "path" if ``path`` could leave the root.

    The only way from a relative name to a real one. It refuses what any store could take for something else:
    absolute paths, ``.``, ``..``, empty segments, backslashes, control characters, text that is not UTF-8, and
    segments of more than 255 bytes.
    """
    check_path(path)
    return f"{root}{path}" if root.endswith("/") else f"{root}/{path}"


def join_directory(root: str, directory: str) -> str:
    """Like :func:`join_inside`, where ``""`` stands for the root itself."""
    return join_inside(root, directory) if directory else root


def check_path(path: str) -> None:
    """Raise InvalidInputError of kind "path" unless ``path`` is one that :func:`join_inside` takes."""
    if not isinstance(path, str):
        raise _refusal(repr(path), "it is not text")
    if not path:
        raise _refusal(path, "it is empty")
    if path.startswith("/"):
        raise _refusal(path, "it is absolute")
    if "\\" in path:
        raise _refusal(path, "it holds a backslash")
    if _CONTROL.search(path):
        raise _refusal(path, "it holds a control character")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise _refusal(path, "it is not valid Unicode text") from None
    for segment in path.split("/"):
        if segment in ("", ".", ".."):
            raise _refusal(path, f"it has the segment {segment!r}")
        if len(segment.encode()) > MAX_SEGMENT_BYTES:
            raise _refusal(path, f"a segment is longer than {MAX_SEGMENT_BYTES} bytes")


def _refusal(path: str, reason: str) -> InvalidInputError:
    shown = path if len(path) <= 80 else path[:77] + "..."
    return InvalidInputError(
        f"file path {shown!r} is refused because {reason}: expected a relative path of plain names joined by '/' "
        "that stays inside the table; check the name that it was built from",
        kind="path",
    )
