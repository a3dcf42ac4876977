"""Stores files in S3, or in what speaks its protocol (R2, MinIO, Ceph, …).

    publish_if_absent = PUT with "If-None-Match: *"
        200  made by us                                   409  a race on that key: repeated
        412  occupied: the caller reads it back           5xx, time-out  repeated; then "unknown-outcome"

A repeated PUT may meet its own first attempt and get 412; that is why "occupied" is always read back by the
caller. Some stores accept the header and ignore it, which would lose commits without a sound: before the first
publish a probe object finds out. Objects appear whole: large ones are multi-part uploads, which show nothing
until they are completed and are aborted on an error.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, BinaryIO, cast

from tablestore.clock import Clock, SystemClock
from tablestore.errors import InvalidInputError, NotFoundError, StorageError, TablestoreError, UnsupportedError
from tablestore.ids import Ids, SystemIds
from tablestore.io.filestore import (
    READ_LIMIT_BYTES,
    TEMPORARY_PREFIX,
    FileInfo,
    check_path,
    join_directory,
    join_inside,
)
from tablestore.io.oserrors import no_conditional_publish, occupied, too_large, unknown_outcome
from tablestore.io.ranged import RangedFile
from tablestore.io.s3requests import REMOTE_ERRORS, S3Session, is_transient, status_of, translated_remote
from tablestore.io.s3upload import MultipartWriter, write_together

# One request copies so much at most: a limit of the protocol.
_MOST_COPIED_BYTES = 5 * 1024**3


class S3FileStore:
    """A :class:`~tablestore.io.filestore.FileStore` below ``s3://bucket/prefix``.

    ``options`` have the names of s3fs (``key``, ``secret``, ``endpoint_url``, ``client_kwargs``, …). What they leave
    out is found as in any AWS tool: environment, profile, role. They appear in no message and no ``repr``. ``keys``: fetches
    temporary credentials in their place.
    """

    def __init__(
        self,
        url: str,
        options: Mapping[str, Any] | None = None,
        *,
        clock: Clock | None = None,
        ids: Ids | None = None,
        keys: Callable[[], Mapping[str, Any]] | None = None,
        _session: S3Session | None = None,
    ) -> None:
        scheme, separator, place = url.partition("://")
        bucket, _, prefix = place.rstrip("/").partition("/")
        if not separator or not bucket:
            raise InvalidInputError(f"expected s3://bucket/path as root of a file store, found {url!r}", kind="path")
        if prefix:
            check_path(prefix)
        self._scheme = scheme
        self._bucket = bucket
        self._prefix = prefix
        self._session = _session or S3Session(options or {}, clock=clock or SystemClock(), ids=ids or SystemIds(), keys=keys)

    can_publish = True

    @property
    def root_uri(self) -> str:
        return f"{self._scheme}://{self._bucket}/{self._prefix}".rstrip("/")

    def __repr__(self) -> str:
        return f"S3FileStore({self.root_uri!r})"

    def at(self, path: str) -> "S3FileStore":
        return S3FileStore(join_inside(self.root_uri, path), _session=self._session)

    # ---- reading

    def read(self, path: str, *, max_bytes: int = READ_LIMIT_BYTES) -> bytes:
        def receive(answer: Mapping[str, Any]) -> bytes:
            with answer["Body"] as body:
                if answer["ContentLength"] > max_bytes:
                    raise too_large(self._where(path), size=answer["ContentLength"], max_bytes=max_bytes)
                return cast(bytes, body.read())

        return cast(bytes, self._call("read", path, "get_object", receive))

    def size(self, path: str) -> int:
        return int(self._head(path)["ContentLength"])

    def exists(self, path: str) -> bool:
        try:
            self._head(path)
        except NotFoundError as error:
            if error.kind == "no-bucket":
                raise
            return False
        return True

    def open_input(self, path: str) -> BinaryIO:
        def receive(answer: Mapping[str, Any]) -> bytes:
            with answer["Body"] as body:
                return cast(bytes, body.read())

        def fetch(start: int, end: int) -> bytes:
            return cast(bytes, self._call("read", path, "get_object", receive, Range=f"bytes={start}-{end - 1}"))

        return cast(BinaryIO, RangedFile(size=self.size(path), fetch=fetch))

    def list(self, directory: str, prefix: str = "") -> Sequence[FileInfo]:
        below = join_directory(self._prefix, directory) if self._prefix else directory
        if directory:
            check_path(directory)
        below = f"{below}/" if below else ""
        infos = []
        for page in self._pages(below + prefix, Delimiter="/"):
            for entry in page.get("Contents", ()):
                if name := entry["Key"][len(below) :]:  # a "directory marker" has none
                    infos.append(FileInfo(name=name, size=entry["Size"], modified_ms=_millis(entry["LastModified"])))
            for entry in page.get("CommonPrefixes", ()):
                if name := entry["Prefix"][len(below) : -1]:
                    infos.append(FileInfo(name=name, size=0, modified_ms=0, is_dir=True))
        return sorted(infos, key=lambda info: info.name)

    def names(self, directory: str, prefix: str = "") -> Sequence[str]:
        return [info.name for info in self.list(directory, prefix)]

    # ---- writing

    def write(self, path: str, data: bytes) -> None:
        if not self._put_if_absent(path, data) and self.read(path) != data:
            # Equal bytes are our own: the answer to the first attempt was lost below us.
            raise occupied(self._where(path))

    def write_all(self, files: Mapping[str, bytes]) -> None:
        write_together(self.write, files)

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        check_path(path)
        self._prove_conditional()
        return self._put_if_absent(path, data)

    def publish_alone(self, path: str, data: bytes) -> bool:
        if self.exists(path):
            return False
        try:
            self.overwrite(path, data)
        except StorageError as error:
            if error.kind == "denied":
                raise
            raise unknown_outcome(self._where(path), error.message) from error
        return True

    def overwrite(self, path: str, data: bytes, *, lasting: bool = True) -> None:
        self._call("overwrite", path, "put_object", Body=data)

    def copy_file(self, old: str, new: str) -> None:
        if self.size(old) > _MOST_COPIED_BYTES:
            raise UnsupportedError(f"{self._where(old)} is too large to be copied by one request")
        self._call("copy", new, "copy_object", CopySource={"Bucket": self._bucket, "Key": self._key(old)})

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        if self.exists(path):
            raise occupied(self._where(path))
        writer = MultipartWriter(
            lambda method, **arguments: self._call("upload", path, method, **arguments),
            lambda data: self.write(path, data),
        )
        try:
            yield cast(BinaryIO, writer)
            if not writer.finish():
                raise occupied(self._where(path))
        except BaseException:
            with suppress(StorageError, NotFoundError):
                writer.abort()
            raise

    # ---- removing

    def delete(self, path: str) -> bool:
        if not self.exists(path):
            return False
        self._call("delete", path, "delete_object")
        return True

    def delete_directory(self, path: str) -> None:
        where = self._where(path)
        for page in self._pages(f"{self._key(path)}/"):  # of at most as many names as one request may delete
            batch = {"Objects": [{"Key": entry["Key"]} for entry in page.get("Contents", ())], "Quiet": True}
            answer = self._send("delete directory", where, "delete_objects", Delete=batch) if batch["Objects"] else {}
            if refused := answer.get("Errors"):
                first = refused[0]
                raise StorageError(
                    f"cannot delete {len(refused)} files below {where}, the first is {first.get('Key')}: "
                    f"{first.get('Code')} {first.get('Message')}; give this user access to them and repeat",
                    kind="denied" if first.get("Code") == "AccessDenied" else None,
                )

    def sync(self, directory: str) -> None:
        """Nothing to do: an object that was acknowledged is durable, and so is its name."""
        if directory:
            check_path(directory)

    # ---- helpers

    def _key(self, path: str) -> str:
        check_path(path)
        return join_inside(self._prefix, path) if self._prefix else path

    def _where(self, path: str) -> str:
        return join_inside(self.root_uri, path)

    def _call(self, verb: str, path: str, method: str, receive: Callable[[Mapping[str, Any]], Any] = dict, **arguments: Any) -> Any:
        """Sends a request about one object and returns what ``receive`` makes of the answer. Both are repeated after
        transient errors."""
        key = self._key(path)
        return self._send(verb, self._where(path), method, receive, Key=key, **arguments)

    def _send(
        self, verb: str, where: str, method: str, receive: Callable[[Mapping[str, Any]], Any] = dict, **arguments: Any
    ) -> Any:
        return self._session.retry(
            lambda: receive(self._session.send(method, Bucket=self._bucket, **arguments)),
            lambda error: translated_remote(error, verb=verb, where=where),
        )

    def _head(self, path: str) -> Mapping[str, Any]:
        return cast(Mapping[str, Any], self._call("look at", path, "head_object"))

    def _pages(self, prefix: str, **arguments: Any) -> Iterator[Mapping[str, Any]]:
        while True:
            page = self._send("list", f"s3://{self._bucket}/{prefix}", "list_objects_v2", Prefix=prefix, **arguments)
            yield page
            if not page.get("IsTruncated"):
                return
            arguments["ContinuationToken"] = page["NextContinuationToken"]

    def _put_if_absent(self, path: str, data: bytes) -> bool:
        key, where = self._key(path), self._where(path)
        ambiguous = False

        def put() -> bool:
            nonlocal ambiguous
            try:
                self._session.send("put_object", Bucket=self._bucket, Key=key, Body=data, IfNoneMatch="*")
            except REMOTE_ERRORS as error:
                status = status_of(error)
                if status == 412:
                    return False
                # 409 says that another request won the race for this key; anything else that is worth
                # repeating may have been applied, or still be.
                ambiguous = ambiguous or (is_transient(error) and status != 409)
                raise
            return True

        def meaning(error: BaseException) -> TablestoreError:
            status = status_of(error)
            if status == 501:
                return self._unconditional()
            if ambiguous or status == 409:
                return unknown_outcome(where, f"the store answered {status or type(error).__name__}")
            return translated_remote(error, verb="write", where=where)

        return self._session.retry(put, meaning)

    def _prove_conditional(self) -> None:
        """Find out, once for a bucket and process, whether the store honours If-None-Match."""
        if self._bucket in self._session.proved_buckets:
            return
        probe = f"{TEMPORARY_PREFIX}probe-{self._session.ids.uuid()}"
        self._put_if_absent(probe, b"first")
        try:
            if self._put_if_absent(probe, b"second"):
                raise self._unconditional()
        finally:
            with suppress(StorageError, NotFoundError):
                self._call("delete", probe, "delete_object")
        self._session.proved_buckets.add(self._bucket)

    def _unconditional(self) -> UnsupportedError:
        return no_conditional_publish(self.root_uri, "its store does not honour conditional writes (If-None-Match)")


def _millis(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
