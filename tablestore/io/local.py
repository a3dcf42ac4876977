"""Stores files on this machine (or on anything mounted on it), so that a power cut loses nothing that was reported.

A publish, in the order that makes it safe:

    .tmp-<id> created (O_EXCL) -> bytes written -> fsync(file) -> link(.tmp-<id>, name)   EEXIST: occupied
                                                               -> fsync(directory … root) -> unlink(.tmp-<id>)

``link`` either makes the whole file appear or fails, and it never replaces; ``os.rename`` onto a published name
would, so it is not used. Data files and manifests are written in place under names that nobody knows yet, and synced
with their directory before something refers to them (:meth:`LocalFileStore.sync`).

Writes and deletes prove, at every call, that no symbolic link is on the way from the outermost root to what they touch: a link in
a table or beside it would lead them to another one, or out of the warehouse. Reads follow links that stay below the root. Listings
tell links apart, so that nobody looks behind one for what is to be removed.
"""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StorageError, UnsupportedError
from tablestore.ids import Ids, SystemIds
from tablestore.io.filestore import (
    READ_LIMIT_BYTES,
    TEMPORARY_PREFIX,
    FileInfo,
    join_directory,
    join_inside,
)
from tablestore.io.oserrors import is_gone, too_large, translated, unknown_outcome
from tablestore.io.rename import NO_HARD_LINKS, exchange, link_if_absent, rename_alone, rename_if_absent

if TYPE_CHECKING:
    import pyarrow as pa

_BUFFER_BYTES = 1024 * 1024
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
# Without O_NONBLOCK a pipe that somebody left under a file's name would block the open for ever.
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
# Two changes further apart than this get different times: the coarsest clocks of file systems tick every two seconds.
_CLOCK_TICK_NS = 3_000_000_000
_MOST_REMEMBERED = 10_000
_MOST_AT_ONCE = 16
"""The most files that are written and not synced yet, each of which is open."""
_ATTEMPTS = 16
"""The most times that work on a directory is begun again when others remove parts of it meanwhile."""


class LocalFileStore:
    """A :class:`~tablestore.io.filestore.FileStore` below a directory, which need not exist yet."""

    can_publish = True

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        ids: Ids | None = None,
        _anchor: str | None = None,
        _synced: dict[str, tuple[int, int, int]] | None = None,
    ) -> None:
        text = os.fspath(root)
        if not text or "\0" in text:
            raise InvalidInputError(f"a directory is expected as root of a file store, found {text!r}", kind="path")
        self._root = os.path.abspath(text)
        self._anchor = _anchor or self._root
        self._ids = ids or SystemIds()
        # Directories above others, as they were when they were synced.
        self._synced: dict[str, tuple[int, int, int]] = {} if _synced is None else _synced

    @property
    def root_uri(self) -> str:
        return self._root

    def __repr__(self) -> str:
        return f"LocalFileStore({self._root!r})"

    def at(self, path: str) -> "LocalFileStore":
        return LocalFileStore(self._inside(path), ids=self._ids, _anchor=self._anchor, _synced=self._synced)

    # ---- reading

    def read(self, path: str, *, max_bytes: int = READ_LIMIT_BYTES) -> bytes:
        full = self._inside(path)
        descriptor, size = _open_regular(full)
        try:
            # One byte more than allowed tells a file that grows while it is read.
            data = _read_all(descriptor, size, max_bytes + 1) if size <= max_bytes else b""
        except OSError as error:
            raise translated(error, verb="read", where=full) from error
        finally:
            os.close(descriptor)
        if max(size, len(data)) > max_bytes:
            raise too_large(full, size=max(size, len(data)), max_bytes=max_bytes)
        return data

    def size(self, path: str) -> int:
        full = self._inside(path)
        return _stat_file(full).st_size

    def exists(self, path: str) -> bool:
        full = self._inside(path)
        try:
            status = os.stat(full)
        except OSError as error:
            # Most are asked for in vain: those above the newest snapshot.
            if is_gone(error):
                return False
            raise translated(error, verb="look at", where=full) from error
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            raise _not_a_file(full, status.st_mode)
        return stat.S_ISREG(status.st_mode)

    def open_input(self, path: str) -> "pa.NativeFile":
        # Metadata is read without Arrow.
        from pyarrow import OSFile

        full = self._inside(path)
        _stat_file(full)  # a pipe or directory would block or fail without an error number
        # Not a memory map: a map of a file that is truncated meanwhile kills the process with SIGBUS.
        try:
            return OSFile(full, "rb")
        except OSError as error:
            raise translated(error, verb="open", where=full) from error

    def list(self, directory: str, prefix: str = "") -> Sequence[FileInfo]:
        full = self._inside(directory) if directory else self._root
        infos = []
        try:
            with os.scandir(full) as entries:
                for entry in entries:
                    if entry.name.startswith(prefix) and (info := _file_info(entry)) is not None:
                        infos.append(info)
        except OSError as error:
            if is_gone(error):
                return []
            raise translated(error, verb="list", where=full) from error
        return sorted(infos, key=lambda info: info.name)

    def names(self, directory: str, prefix: str = "") -> Sequence[str]:
        full = self._inside(directory) if directory else self._root
        try:
            return sorted(name for name in os.listdir(full) if name.startswith(prefix))
        except OSError as error:
            if is_gone(error):
                return []
            raise translated(error, verb="list", where=full) from error

    # ---- writing

    def write(self, path: str, data: bytes) -> None:
        final = self._proved(path)
        if os.path.lexists(final):
            raise _exists(final)
        temporary = self._filled_temporary(os.path.dirname(final), data)
        try:
            if not link_if_absent(temporary, final):
                raise _exists(final)
        finally:
            with suppress(OSError):
                os.unlink(temporary)

    def write_all(self, files: Mapping[str, bytes]) -> None:
        remaining = iter(files.items())
        while some := tuple(islice(remaining, _MOST_AT_ONCE)):
            self._write_some(some)

    def _write_some(self, files: Iterable[tuple[str, bytes]]) -> None:
        # The bytes of all are on their way before the first file is waited for, so a disk makes them durable together; threads that
        # wait for one file each cost more than that. Names become durable with ``sync``: a commit syncs the directory once.
        written: list[tuple[str, int]] = []
        try:
            for path, data in files:
                full = self._proved(path)
                written.append((full, self._begun(full, data)))
                _start_writing_back(written[-1][1])
            for full, descriptor in written:
                _sync_file(descriptor, full)
        except BaseException:
            for full, _ in written:
                with suppress(OSError):
                    os.unlink(full)
            raise
        finally:
            for _, descriptor in written:
                os.close(descriptor)

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        return self._publish(path, data, link_if_absent)

    def publish_alone(self, path: str, data: bytes) -> bool:
        return self._publish(path, data, rename_alone)

    def _publish(self, path: str, data: bytes, give_name: Callable[[str, str], bool]) -> bool:
        final = self._proved(path)
        directory = os.path.dirname(final)
        temporary = ""
        if os.path.lexists(final):
            created = False
        else:
            temporary = self._filled_temporary(directory, data)
        try:
            if temporary:
                created = give_name(temporary, final)
            # Also when occupied: the occupant may be our own earlier attempt, and whoever finds it there
            # by reading it back will acknowledge it.
            try:
                self._sync_upwards(directory)
            except OSError as error:
                raise unknown_outcome(final, f"syncing its directory failed ({error.strerror})") from error
        finally:
            if temporary:
                with suppress(OSError):
                    os.unlink(temporary)
        return created

    def overwrite(self, path: str, data: bytes, *, lasting: bool = True) -> None:
        final = self._proved(path)
        # Without fsync: a name that changes places with another is not lost, and what it holds need not last.
        temporary = self._filled_temporary(os.path.dirname(final), data, durable=lasting)
        try:
            os.replace(temporary, final)
            if lasting:
                _sync_directory(os.path.dirname(final))
        except OSError as error:
            with suppress(OSError):
                os.unlink(temporary)
            if error.errno == errno.EISDIR:
                raise _in_the_way(final) from error
            raise translated(error, verb="overwrite", where=final) from error

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        full = self._proved(path)
        descriptor = self._create(full)
        # Measured with ParquetWriter: a buffered Python file is as fast as a pyarrow one, and unlike that it
        # can refuse an existing name and be fsynced.
        raw = _TypedFile(descriptor, "wb", closefd=False)
        raw.where = full
        file = BufferedWriter(raw, _BUFFER_BYTES)
        try:
            yield file
            file.close()
            _sync_file(descriptor, full)
        except BaseException:
            # Close before the descriptor goes: a late flush would write into whatever file gets its number next.
            with suppress(OSError):
                file.close()
            with suppress(OSError):
                os.unlink(full)
            raise
        finally:
            os.close(descriptor)

    # ---- removing

    def delete(self, path: str) -> bool:
        full = self._proved(path)
        try:
            os.unlink(full)
        except OSError as error:
            if is_gone(error):
                return False
            raise translated(error, verb="delete", where=full) from error
        return True

    def delete_directory(self, path: str) -> None:
        full = self._proved(path)
        if os.path.islink(full):
            raise _is_linked(full, full)
        for _ in range(_ATTEMPTS):
            try:
                shutil.rmtree(full)
            except OSError as error:
                if not is_gone(error):
                    raise translated(error, verb="delete directory", where=full) from error
                # Gone means: all of it, or a part that somebody else removed in the same moment.
                if not os.path.isdir(full):
                    return
            else:
                return
        raise StorageError(f"cannot delete directory {full}: others keep changing it; stop them and repeat")

    def rename_directory(self, old: str, new: str) -> None:
        source, target = self._proved(old), self._proved(new)
        try:
            self._make_directory(os.path.dirname(target))
            if not rename_if_absent(source, target):
                raise UnsupportedError(
                    f"cannot rename {source} to {target}: its file system has no rename that does not replace; create the new "
                    "table from the old one and drop the old one"
                )
            _sync_directory(os.path.dirname(target))
            _sync_directory(os.path.dirname(source))
        except FileExistsError as error:
            raise AlreadyExistsError(f"cannot rename {source} to {target}: it exists; choose another name") from error
        except OSError as error:
            raise translated(error, verb="rename directory", where=source) from error

    def exchange_directories(self, one: str, other: str) -> None:
        first, second = self._proved(one), self._proved(other)
        try:
            if not exchange(first, second):
                raise UnsupportedError(f"{first} and {second} cannot change places: their file system has no such step")
            for directory in (first, second):
                _sync_directory(os.path.dirname(directory))
        except OSError as error:
            raise translated(error, verb="exchange directory", where=first) from error

    def copy_file(self, old: str, new: str) -> None:
        # Files never change, so a second name is as good as a copy, and costs nothing.
        source, target = self._proved(old), self._proved(new)
        try:
            self._make_directory(os.path.dirname(target))
            os.link(source, target, follow_symlinks=False)
        except FileExistsError as error:
            raise _exists(target) from error
        except OSError as error:
            if error.errno in NO_HARD_LINKS or error.errno in (errno.EMLINK, errno.EXDEV):
                raise UnsupportedError(f"cannot give {source} a second name {target}: its file system has no hard links") from error
            raise translated(error, verb="copy", where=source) from error

    def sync(self, directory: str) -> None:
        full = join_directory(self._root, directory)
        try:
            self._sync_upwards(full)
        except OSError as error:
            raise translated(error, verb="sync directory", where=full) from error

    # ---- helpers

    def _inside(self, path: str) -> str:
        """The place of what is to be read, once it is proved to lie below the root, whatever links lead to it."""
        full, place = join_inside(self._root, path), self._root
        for segment in path.split("/"):
            place = f"{place}/{segment}"
            if _is_link(place):
                _check_below(full, os.path.realpath(self._root), link=place)
                break
        return full

    def _proved(self, path: str) -> str:
        """The place of a file to be changed, once it is proved that no link is on the way to it from the outermost root."""
        full = join_inside(self._root, path)
        # Looked at anew each time, since a directory may be replaced by a link at any moment.
        above = os.path.dirname(full)
        while above != self._anchor:
            if _is_link(above):
                raise _is_linked(full, above)
            above = os.path.dirname(above)
        return full

    def _filled_temporary(self, directory: str, data: bytes, *, durable: bool = True) -> str:
        """A new file with ``data``, under a temporary name in ``directory``."""
        temporary = f"{directory}/{TEMPORARY_PREFIX}{self._ids.uuid()}"
        descriptor = self._begun(temporary, data)
        try:
            if durable:
                os.fsync(descriptor)
        except OSError as error:
            with suppress(OSError):
                os.unlink(temporary)
            raise translated(error, verb="write", where=temporary) from error
        finally:
            os.close(descriptor)
        return temporary

    def _begun(self, full: str, data: bytes) -> int:
        """The descriptor of a new file with ``data``, which is not durable yet; the caller closes it."""
        descriptor = self._create(full)
        try:
            _write_all(descriptor, data)
        except OSError as error:
            os.close(descriptor)
            with suppress(OSError):
                os.unlink(full)
            raise translated(error, verb="write", where=full) from error
        return descriptor

    def _create(self, full: str) -> int:
        """A descriptor of a new file, for writing; directories that are missing are made."""
        for _ in range(_ATTEMPTS):
            try:
                return os.open(full, _CREATE, 0o666)
            except FileNotFoundError:
                self._make_directory(os.path.dirname(full))
            except NotADirectoryError as error:
                raise _in_the_way(os.path.dirname(full)) from error
            except OSError as error:
                raise translated(error, verb="create", where=full) from error
        raise StorageError(f"cannot create {full}: its directory keeps disappearing; stop who removes it and repeat")

    def _make_directory(self, directory: str) -> None:
        # Names below the root are synced with the files in them; those from the root upwards only here.
        created = []
        upwards = self._anchor
        while not os.path.isdir(upwards):
            upwards = os.path.dirname(upwards)
            created.append(upwards)
        try:
            os.makedirs(directory, exist_ok=True)
            for parent in created:
                _sync_directory(parent)
        except (FileExistsError, NotADirectoryError) as error:
            raise _in_the_way(directory) from error
        except FileNotFoundError:
            return  # somebody removes directories while we make them; the caller tries again
        except OSError as error:
            raise translated(error, verb="make directory", where=directory) from error

    def _sync_upwards(self, directory: str) -> None:
        """fsync ``directory`` and all above it up to the outermost root.

        Another process may have made a directory and not synced it yet, while we already publish something in it. So one above
        is left out only if nothing was made in it since we synced it ourselves, which its change time tells.
        """
        _sync_directory(directory)
        now_ns = os.stat(directory).st_ctime_ns
        while directory != self._anchor and _is_below(directory, self._anchor):
            directory = os.path.dirname(directory)
            status = os.stat(directory)
            state = status.st_dev, status.st_ino, status.st_ctime_ns
            if self._synced.get(directory) == state:
                continue
            _sync_directory(directory)
            if now_ns - status.st_ctime_ns > _CLOCK_TICK_NS:
                # Any later change of it gets another time than this.
                if len(self._synced) >= _MOST_REMEMBERED:
                    self._synced.clear()
                self._synced[directory] = state


class _TypedFile(FileIO):
    """A file whose write errors are ours."""

    where = "a data file"

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise translated(error, verb="write", where=self.where) from error


def _open_regular(full: str) -> tuple[int, int]:
    """A descriptor of a file, and its size."""
    try:
        descriptor = os.open(full, _READ)
    except OSError as error:
        raise translated(error, verb="read", where=full) from error
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return descriptor, status.st_size
    os.close(descriptor)
    raise _not_a_file(full, status.st_mode)


def _read_all(descriptor: int, size: int, most_bytes: int) -> bytes:
    """The whole content of a file, which had ``size`` bytes, up to ``most_bytes``."""
    data = os.read(descriptor, min(size + 1, most_bytes))
    if len(data) == size:
        return data
    parts = [data]
    while data and (left := most_bytes - sum(map(len, parts))):
        data = os.read(descriptor, min(left, _BUFFER_BYTES))
        parts.append(data)
    return b"".join(parts)


def _stat_file(full: str) -> os.stat_result:
    try:
        status = os.stat(full)
    except OSError as error:
        raise translated(error, verb="look at", where=full) from error
    if not stat.S_ISREG(status.st_mode):
        raise _not_a_file(full, status.st_mode)
    return status


def _not_a_file(full: str, mode: int) -> Exception:
    if stat.S_ISDIR(mode):
        return NotFoundError(f"expected a file at {full}, found a directory; check the path")
    return StorageError(f"expected a file at {full}, found a pipe or device; remove it", kind="not-a-file")


def _file_info(entry: "os.DirEntry[str]") -> FileInfo | None:
    try:
        status = entry.stat()
    except OSError as error:
        if is_gone(error):  # removed since it was listed, or a link to nothing
            return None
        raise
    is_dir = stat.S_ISDIR(status.st_mode)
    return FileInfo(
        name=entry.name,
        size=0 if is_dir else status.st_size,
        modified_ms=status.st_mtime_ns // 1_000_000,
        is_dir=is_dir,
        is_link=entry.is_symlink(),
    )


def _write_all(descriptor: int, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def _start_writing_back(descriptor: int) -> None:
    # Only a hint, which not every system takes: the kernel begins to write what it will have to.
    if hasattr(os, "posix_fadvise"):
        with suppress(OSError):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _sync_file(descriptor: int, full: str) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise translated(error, verb="sync", where=full) from error


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root if root.endswith("/") else f"{root}/")


def _is_linked(full: str, link: str) -> InvalidInputError:
    return InvalidInputError(
        f"{full} is refused because {link} is a symbolic link, which may lead to another table or out of the warehouse; expected a "
        "plain directory, remove the link",
        kind="path",
    )


def _is_link(place: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(place).st_mode)
    except OSError:
        return False  # Whoever opens it is told what is wrong.


def _check_below(full: str, root: str, *, link: str) -> None:
    place = os.path.realpath(full)
    if not _is_below(place, root):
        raise InvalidInputError(
            f"{full} is refused because the symbolic link {link} leads out of the table, to {place}; expected a plain file or "
            "directory: remove the link, or mount what it leads to in its place",
            kind="path",
        )


def _exists(final: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"cannot write {final}: it exists, and files are written once; use another name")


def _in_the_way(directory: str) -> StorageError:
    return StorageError(
        f"cannot write at {directory}: expected a directory all the way, found a file (or the reverse); move it away",
        kind="not-a-directory",
    )
