"""Opens the file store that serves a path or URL.

/data/wh, ~/wh, file:///data/wh    LocalFileStore
memory://name                      MemoryFileStore
s3://bucket/path (s3a too)         S3FileStore
<protocol>://…                     FsspecFileStore, for whatever fsspec knows (gs and abfs publish without a lock)
"""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from tablestore.clock import Clock
from tablestore.errors import InvalidInputError
from tablestore.ids import Ids
from tablestore.io.filestore import FileStore
from tablestore.io.local import LocalFileStore
from tablestore.io.lock import lockoptions
from tablestore.io.lock.lockedstore import LockedFileStore
from tablestore.io.lock.lockoptions import parse_lock
from tablestore.io.service.serviceoptions import parse_service
from tablestore.lazy import missing_package
from tablestore.names import did_you_mean

if TYPE_CHECKING:
    from tablestore.io.service.serviceclient import ServiceClient

_S3 = ("s3://", "s3a://")


def open_store(
    uri: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
) -> FileStore:
    """The file store rooted at ``uri``; nothing is created, and for remote stores nothing is asked yet.

    ``options`` are those of the client: for S3 those of s3fs, else those of the fsspec file system, and for every store
    ``catalog.lock.*`` (:mod:`tablestore.io.lock.lockoptions`), which make one without conditional writes writable, and
    ``catalog.service.*`` (:mod:`tablestore.io.service.serviceoptions`), which name a service that publishes its snapshots.
    InvalidInputError if ``uri`` is a file, or names a protocol that nobody knows.
    """
    service, hands_out_keys, other_options = parse_service(options or {}, clock, ids)
    if service is not None:
        return open_served(uri, other_options, service, hands_out_keys, clock=clock, ids=ids)
    lock, other_options = parse_lock(other_options, clock)
    store = _store(os.fspath(uri), other_options, clock, ids)
    return store if lock is None else LockedFileStore(store, lock)


def open_served(
    uri: str | os.PathLike[str],
    options: Mapping[str, Any],
    service: "ServiceClient",
    hands_out_keys: bool,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
) -> FileStore:
    """The file store at ``uri``, of which ``service`` publishes the snapshots. ``hands_out_keys``: and gives the keys to S3."""
    from tablestore.io.service.servicestore import ServiceFileStore  # they load what most processes have no use for
    from tablestore.io.service.tablekeys import TableKeys

    text = os.fspath(uri)
    keys = TableKeys(service, text).fetch if hands_out_keys and text.startswith(_S3) else None
    lock, other_options = parse_lock(options, clock)
    store = _store(text, other_options, clock, ids, keys)
    return ServiceFileStore(store if lock is None else LockedFileStore(store, lock), service)


def same_place(first: str, second: str) -> bool:
    """True if two ``root_uri`` name one directory, also through links of this host's file system."""
    if first == second:
        return True
    return "://" not in first and "://" not in second and os.path.realpath(first) == os.path.realpath(second)


def _store(
    text: str,
    options: Mapping[str, Any],
    clock: Clock | None,
    ids: Ids | None,
    keys: Callable[[], Mapping[str, Any]] | None = None,
) -> FileStore:
    protocol, separator, place = text.partition("://")
    if not separator or protocol in ("file", "local", "memory"):
        _refuse_options(options)
    if not separator:
        return _local(os.path.expanduser(text), ids)
    if protocol in ("file", "local"):
        return _local(_path_of_file_url(text), ids)
    if protocol == "memory":
        from tablestore.io.memory import MemoryFileStore

        name, _, path = place.strip("/").partition("/")
        store = MemoryFileStore(name, clock=clock)
        return store.at(path) if path else store
    if text.startswith(_S3):
        try:
            from tablestore.io.s3 import S3FileStore  # botocore takes a while to import
        except ImportError as error:
            raise missing_package("files in S3 need the package botocore", "'managed-tablestore[s3]'", error) from error

        return S3FileStore(text, options, clock=clock, ids=ids, keys=keys)
    from tablestore.io.fsspec_store import FsspecFileStore

    return FsspecFileStore(text, options, clock=clock, ids=ids)


def _refuse_options(options: Mapping[str, Any]) -> None:
    for name in options:
        raise InvalidInputError(
            f"local files and memory take no option {name!r}{did_you_mean(name, lockoptions.OPTIONS)}; leave it out, "
            "or name the place that it is for by its URL, like s3://bucket/path",
            kind="unknown-option",
        )


def _local(path: str, ids: Ids | None) -> LocalFileStore:
    store = LocalFileStore(path, ids=ids)
    if os.path.lexists(store.root_uri) and not os.path.isdir(store.root_uri):
        raise InvalidInputError(
            f"expected a directory at {store.root_uri}, found a file; name the directory that holds the tables",
            kind="path",
        )
    return store


def _path_of_file_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise InvalidInputError(
            f"expected a file URL with an absolute path, like file:///data/warehouse, found {url!r}", kind="path"
        )
    # No query or fragment in a file URL: "?" and "#" belong to the path.
    return unquote(url.partition("://")[2].removeprefix(parts.netloc))
