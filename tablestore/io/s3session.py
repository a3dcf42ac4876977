"""One S3 client for a store and all that are rooted deeper: made when first needed, again after a fork, never pickled.

Also here: what an error of s3fs, botocore or aiohttp means.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tablestore.clock import Clock
from tablestore.errors import NotFoundError, StorageError, TablestoreError, UnsupportedError
from tablestore.ids import Ids
from tablestore.io.oserrors import translated
from tablestore.io.retry import retried

T = TypeVar("T")

_TRANSIENT = frozenset({408, 409, 429, 500, 502, 503, 504})
_TRANSIENT_CODES = frozenset({"RequestTimeout", "SlowDown", "Throttling", "InternalError", "ServiceUnavailable"})


class S3Session:
    """The client, the way its requests are repeated, and what is known of its buckets."""

    def __init__(self, options: Mapping[str, Any], *, clock: Clock, ids: Ids) -> None:
        self._options = dict(options)
        self.clock = clock
        self.ids = ids
        self._forget()

    def _forget(self) -> None:
        self._filesystem: Any = None
        self._pid = 0
        self.proved_buckets: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "clock": self.clock, "ids": self.ids}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def __repr__(self) -> str:
        return "S3Session()"  # the options hold secrets

    def filesystem(self) -> Any:
        """The s3fs file system of this process."""
        if self._pid != os.getpid():
            try:
                from s3fs import S3FileSystem
            except ImportError as error:
                raise UnsupportedError(
                    "files in S3 need the package s3fs; run: pip install 'tablestore[s3]'", kind="missing-package"
                ) from error
            options = dict(self._options)
            config = dict(options.get("config_kwargs") or {})
            # One layer repeats requests, and it is ours: three would multiply, and hide a lost answer.
            config.setdefault("retries", {"max_attempts": 0})
            options["config_kwargs"] = config
            # An instance of our own, because the number of tries belongs to it.
            filesystem = S3FileSystem(**options, use_listings_cache=False, skip_instance_cache=True)
            filesystem.retries = 1
            self._filesystem, self._pid = filesystem, os.getpid()
        return self._filesystem

    def retried(self, run: Callable[[], T], *, verb: str, where: str) -> T:
        """The result of ``run``, repeated while the error is transient; in the end our error."""
        try:
            return self.retried_raw(run)
        except remote_errors() as error:
            if isinstance(error, TablestoreError):
                raise
            raise translated_remote(error, verb=verb, where=where) from error

    def retried_raw(self, run: Callable[[], T]) -> T:
        """Like :meth:`retried`, with the error as it is."""
        return retried(run, is_transient=is_transient, clock=self.clock, ids=self.ids)


def remote_errors() -> tuple[type[BaseException], ...]:
    """What a request may raise that is not ours."""
    from aiohttp import ClientError as HttpError
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    return OSError, BotoCoreError, ClientError, HttpError, ResponseParserError


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed when it is repeated."""
    if isinstance(error, TablestoreError) or not isinstance(error, remote_errors()) or _is_about_credentials(error):
        return False
    status = status_of(error)
    if status is None:  # the request or its answer was lost on the way
        return not isinstance(error, PermissionError)
    return status in _TRANSIENT or code_of(error) in _TRANSIENT_CODES


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an error came from, or None if there was no answer."""
    cause: BaseException | None = error
    while cause is not None:
        response = getattr(cause, "response", None)
        if isinstance(response, Mapping):
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            return status if isinstance(status, int) else None
        cause = cause.__cause__
    return None


def code_of(error: BaseException) -> str:
    """The S3 error code of an error ("NoSuchBucket"), or ""."""
    cause: BaseException | None = error
    while cause is not None:
        response = getattr(cause, "response", None)
        if isinstance(response, Mapping):
            return str(response.get("Error", {}).get("Code", ""))
        cause = cause.__cause__
    return ""


def translated_remote(error: BaseException, *, verb: str, where: str) -> TablestoreError:
    """Our error for one of s3fs, botocore or aiohttp."""
    status = status_of(error)
    if code_of(error) == "NoSuchBucket":
        return NotFoundError(f"cannot {verb} {where}: there is no such bucket; create it first", kind="no-bucket")
    if status == 404:
        return NotFoundError(f"cannot {verb} {where}: there is no such file; check the path or whether it was expired or dropped")
    if status == 412:
        return StorageError(f"cannot {verb} {where}: it exists already; use another name", kind="occupied")
    if status in (401, 403) or _is_about_credentials(error):
        return StorageError(
            f"cannot {verb} {where}: access is denied ({error}); check the credentials and what they allow",
            kind="denied",
        )
    if isinstance(error, OSError) and status is None:
        return translated(error, verb=verb, where=where)
    answer = f"the store answered {status}" if status is not None else type(error).__name__
    return StorageError(f"cannot {verb} {where}: {answer} ({error}); repeat when the store is well")


def _is_about_credentials(error: BaseException) -> bool:
    return type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError", "TokenRetrievalError")
