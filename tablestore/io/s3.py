"""Files in S3, or in what speaks its protocol (R2, MinIO, Ceph, …).

    publish_if_absent = PUT with "If-None-Match: *"
        200  made by us                                   409  a race on that key: repeated
        412  occupied: the caller reads it back           5xx, time-out  repeated; then "unknown-outcome"

A repeated PUT may meet its own first attempt and get 412; that is why "occupied" is always read back by the
caller. Some stores accept the header and ignore it, which would lose commits without a sound: before the first
publish a probe object finds out. Objects appear whole: large ones are multi-part uploads, which show nothing
until they are completed and are aborted on an error.

s3fs gives sessions, credentials and an event loop; its listing caches, its own retries and its path syntax
(``?versionId=``) are not used.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, BinaryIO, TypeVar, cast

from fsspec.asyn import sync

from tablestore.clock import Clock, SystemClock
from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StorageError, UnsupportedError
from tablestore.ids import Ids, SystemIds
from tablestore.io.filestore import (
    READ_LIMIT_BYTES,
    TEMPORARY_PREFIX,
    FileInfo,
    check_path,
    join_directory,
    join_inside,
)
from tablestore.io.oserrors import too_large, unknown_outcome
from tablestore.io.ranged import RangedFile
from tablestore.io.s3session import S3Session, is_transient, remote_errors, status_of, translated_remote
from tablestore.io.s3upload import MultipartWriter
from tablestore.io.together import write_together

T = TypeVar("T")

_DELETE_BATCH = 1000


class S3FileStore:
    """A :class:`~tablestore.io.filestore.FileStore` below ``s3://bucket/prefix``.

    ``options`` are those of ``s3fs.S3FileSystem`` (``key``, ``secret``, ``endpoint_url``, …); they hold secrets
    and appear in no message and no ``repr``.
    """

    def __init__(
        self,
        url: str,
        options: Mapping[str, Any] | None = None,
        *,
        clock: Clock | None = None,
        ids: Ids | None = None,
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
        self._session = _session or S3Session(options or {}, clock=clock or SystemClock(), ids=ids or SystemIds())

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
        key = self._key(path)
        where = self._where(path)

        async def get(filesystem: Any) -> Any:
            response = await filesystem._call_s3("get_object", Bucket=self._bucket, Key=key)
            async with response["Body"] as body:
                if response["ContentLength"] > max_bytes:
                    raise too_large(where, size=response["ContentLength"], max_bytes=max_bytes)
                return await body.read()

        data: bytes = self._do("read", where, lambda: self._run(get))
        return data

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
        key = self._key(path)
        where = self._where(path)

        async def get(filesystem: Any, start: int, end: int) -> Any:
            response = await filesystem._call_s3("get_object", Bucket=self._bucket, Key=key, Range=f"bytes={start}-{end - 1}")
            async with response["Body"] as body:
                return await body.read()

        def fetch(start: int, end: int) -> bytes:
            data: bytes = self._do("read", where, lambda: self._run(get, start, end))
            return data

        return cast(BinaryIO, RangedFile(size=self.size(path), fetch=fetch))

    def list(self, directory: str, prefix: str = "") -> Sequence[FileInfo]:
        below = join_directory(self._prefix, directory) if self._prefix else directory
        if directory:
            check_path(directory)
        below = f"{below}/" if below else ""
        found = []
        for page in self._pages(below + prefix, Delimiter="/"):
            for entry in page.get("Contents", ()):
                if name := entry["Key"][len(below) :]:  # a "directory marker" has none
                    found.append(FileInfo(name=name, size=entry["Size"], modified_ms=_millis(entry["LastModified"])))
            for entry in page.get("CommonPrefixes", ()):
                if name := entry["Prefix"][len(below) : -1]:
                    found.append(FileInfo(name=name, size=0, modified_ms=0, is_dir=True))
        return sorted(found, key=lambda info: info.name)

    def names(self, directory: str, prefix: str = "") -> Sequence[str]:
        return [info.name for info in self.list(directory, prefix)]

    # ---- writing

    def write(self, path: str, data: bytes) -> None:
        if not self._put_if_absent(path, data) and self.read(path) != data:
            # Equal bytes are our own: the answer to the first attempt was lost below us.
            raise self._occupied(path)

    def write_all(self, files: Mapping[str, bytes]) -> None:
        write_together(self.write, files)

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        check_path(path)
        self._prove_conditional()
        return self._put_if_absent(path, data)

    def overwrite(self, path: str, data: bytes, *, lasting: bool = True) -> None:
        self._call("overwrite", path, "put_object", Body=data)

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        if self.exists(path):
            raise self._occupied(path)
        writer = MultipartWriter(
            lambda method, **arguments: self._call("upload", path, method, **arguments),
            lambda data: self.write(path, data),
        )
        try:
            yield cast(BinaryIO, writer)
            if not writer.finish():
                raise self._occupied(path)
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
        for page in self._pages(f"{self._key(path)}/"):
            keys = [{"Key": entry["Key"]} for entry in page.get("Contents", ())]
            for start in range(0, len(keys), _DELETE_BATCH):
                answer = self._delete_batch(where, keys[start : start + _DELETE_BATCH])
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

    def _delete_batch(self, where: str, keys: "Sequence[Mapping[str, str]]") -> Mapping[str, Any]:
        batch = {"Objects": keys, "Quiet": True}
        return self._do("delete directory", where, lambda: self._plain("delete_objects", Delete=batch))

    def _key(self, path: str) -> str:
        check_path(path)
        return join_inside(self._prefix, path) if self._prefix else path

    def _where(self, path: str) -> str:
        return join_inside(self.root_uri, path)

    def _run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        filesystem = self._session.filesystem()
        return sync(filesystem.loop, function, filesystem, *arguments)

    def _plain(self, method: str, **arguments: Any) -> Any:
        return self._session.filesystem().call_s3(method, Bucket=self._bucket, **arguments)

    def _do(self, verb: str, where: str, run: Callable[[], T]) -> T:
        return self._session.retried(run, verb=verb, where=where)

    def _call(self, verb: str, path: str, method: str, **arguments: Any) -> Any:
        key = self._key(path)
        return self._do(verb, self._where(path), lambda: self._plain(method, Key=key, **arguments))

    def _head(self, path: str) -> Mapping[str, Any]:
        return cast(Mapping[str, Any], self._call("look at", path, "head_object"))

    def _pages(self, prefix: str, **arguments: str) -> Iterator[Mapping[str, Any]]:
        where = f"s3://{self._bucket}/{prefix}"
        token: dict[str, str] = {}

        def get_page() -> Any:
            return self._plain("list_objects_v2", Prefix=prefix, **arguments, **token)

        while True:
            page = self._do("list", where, get_page)
            yield page
            if not page.get("IsTruncated"):
                return
            token = {"ContinuationToken": page["NextContinuationToken"]}

    def _put_if_absent(self, path: str, data: bytes) -> bool:
        key, where = self._key(path), self._where(path)
        ambiguous = False

        def put() -> bool:
            nonlocal ambiguous
            try:
                self._plain("put_object", Key=key, Body=data, IfNoneMatch="*")
            except remote_errors() as error:
                status = status_of(error)
                if status == 412:
                    return False
                # 409 says that another request won the race for this key; anything else that is worth
                # repeating may have been applied, or still be.
                ambiguous = ambiguous or (is_transient(error) and status != 409)
                raise
            return True

        try:
            return self._session.retried_raw(put)
        except remote_errors() as error:
            status = status_of(error)
            if status == 501:
                raise self._unconditional() from error
            if ambiguous or status == 409:
                raise unknown_outcome(where, f"the store answered {status or type(error).__name__}") from error
            raise translated_remote(error, verb="write", where=where) from error

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
        return UnsupportedError(
            f"the store of {self.root_uri} does not honour conditional writes (If-None-Match), so a commit could "
            "silently replace another one; open the catalog with a lock, or use a store that has them",
            kind="no-conditional-publish",
        )

    def _occupied(self, path: str) -> AlreadyExistsError:
        return AlreadyExistsError(f"cannot write {self._where(path)}: it exists, and files are written once; use another name")


def _millis(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
