"""Shares one S3 client among a store and all stores rooted deeper, and classifies botocore's errors.

The client is created when first needed, again after a fork, and never pickled. It sends a request once. Repeating it is ours (how
often says :mod:`tablestore.io.retry`), because a client that repeats by itself hides that an answer was lost.
"""

import builtins
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from weakref import finalize

from botocore import UNSIGNED
from botocore.config import Config
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
)
from botocore.parsers import ResponseParserError
from botocore.session import Session
from fsspec.config import conf as fsspec_config

from tablestore.clock import Clock
from tablestore.errors import InvalidInputError, NotFoundError, StorageError, TablestoreError
from tablestore.ids import Ids
from tablestore.io.retry import retried
from tablestore.io.s3options import CREDENTIALS, parse_options
from tablestore.secretnames import resolved

T = TypeVar("T")

S3_ATTEMPTS = 5
"""How often a request to S3, read or write, is sent at most."""
REMOTE_ERRORS = (BotoCoreError, ClientError, ResponseParserError, OSError)
"""Errors of other libraries that a request may raise."""
# The request or its answer was lost on the way.
_LOST = (
    builtins.ConnectionError,
    TimeoutError,
    ConnectionError,
    HTTPClientError,
    IncompleteReadError,
    FlexibleChecksumError,
    ResponseParserError,
)
_TRANSIENT = frozenset({408, 409, 429, 500, 502, 503, 504})
_TRANSIENT_CODES = frozenset({"RequestTimeout", "SlowDown", "Throttling", "InternalError", "ServiceUnavailable"})


class S3Session:
    """The client, the retry policy of its requests, and the buckets that were proved to publish conditionally.

    ``keys``: fetches temporary credentials; else they are those of the options, or found as in any AWS tool.
    """

    def __init__(
        self, options: Mapping[str, Any], *, clock: Clock, ids: Ids, keys: Callable[[], Mapping[str, Any]] | None = None
    ) -> None:
        self._options = parse_options({**fsspec_config.get("s3", {}), **options})
        self._keys = keys
        self.clock = clock
        self.ids = ids
        self._forget()

    def _forget(self) -> None:
        self._client: Any = None
        self._pid = 0
        self.proved_buckets: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_keys": self._keys, "clock": self.clock, "ids": self.ids}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def __repr__(self) -> str:
        return "S3Session()"  # the options hold secrets

    def send(self, method: str, **arguments: Any) -> Any:
        """One request, sent once. Raises one of :data:`REMOTE_ERRORS`."""
        if self._pid != os.getpid():
            self._client, self._pid = self._connect(), os.getpid()
        if extra := self._extra():
            operation = self._client.meta.service_model.operation_model(self._client.meta.method_to_api_mapping[method])
            arguments = {**{key: extra[key] for key in extra.keys() & operation.input_shape.members.keys()}, **arguments}
        return getattr(self._client, method)(**arguments)

    def retry(self, send: Callable[[], T], meaning: Callable[[BaseException], TablestoreError]) -> T:
        """The result of ``send``, tried :data:`S3_ATTEMPTS` times while the error is transient; in the end our error, which is its
        ``meaning``."""
        try:
            return retried(send, is_transient=is_transient, clock=self.clock, ids=self.ids, attempts=S3_ATTEMPTS)
        except REMOTE_ERRORS as error:
            raise meaning(error) from error

    def _extra(self) -> dict[str, Any]:
        """Arguments of every request that takes them."""
        payer = {"RequestPayer": "requester"} if self._options.get("requester_pays") else {}
        return {**(self._options.get("s3_additional_kwargs") or {}), **payer}

    def _connect(self) -> Any:
        client = service_client("s3", self._options, self._keys)
        if ".amazonaws." not in f"{client.meta.endpoint_url}/":
            client.meta.events.register("before-call.s3", _stay)
        finalize(self, client.close)
        return client


def service_client(service: str, storage: Mapping[str, Any], keys: Callable[[], Mapping[str, Any]] | None = None) -> Any:
    """The client of a service of AWS (``s3``, ``sts``), or of what speaks its protocol; the options are those of a store.

    Raises InvalidInputError for options that no client can be made of.
    """
    options: dict[str, Any] = {key: resolved(value, f"option {key}") for key, value in parse_options(storage).items()}
    settings = {"connect_timeout": 5, "read_timeout": 15, "retries": {"max_attempts": 0}, "max_pool_connections": 64}
    settings.update(options.get("config_kwargs", {}))
    arguments: dict[str, Any] = {key: options[key] for key in ("endpoint_url", "use_ssl") if key in options}
    arguments.update({name: options[key] for key, name in CREDENTIALS.items() if key in options})
    arguments.update(options.get("client_kwargs", {}))
    if options.get("anon"):
        settings["signature_version"] = UNSIGNED
        arguments = {key: value for key, value in arguments.items() if key not in CREDENTIALS.values()}
    session = Session(profile=options.get("profile"))
    if keys is not None:
        fetched = keys()
        # What this process was told itself goes before what the service says.
        arguments = {name: fetched[name] for name in ("endpoint_url", "region_name") if fetched.get(name)} | arguments
        arguments = {key: value for key, value in arguments.items() if key not in CREDENTIALS.values()}
        # botocore fetches them again before they expire; it has no public way to be given such credentials.
        session._credentials = RefreshableCredentials.create_from_metadata(fetched, refresh_using=keys, method="tablestore")
    try:
        return session.create_client(service, config=Config(**settings), **arguments)
    except (TypeError, ValueError, AttributeError, BotoCoreError) as error:
        raise InvalidInputError(f"S3 cannot be reached with these options: {error}; correct them", kind="option") from error


def _stay(params: dict[str, Any], **_: Any) -> None:
    """Has a client stay at the host that was named, when that sends it to another region, as AWS does.

    The client would ask the same host where the bucket lies, which may send it elsewhere again, without end.
    """
    params.setdefault("context", {}).setdefault("s3_redirect", {})["redirected"] = True


def is_transient(error: BaseException) -> bool:
    """True if the same request may succeed when it is repeated."""
    return isinstance(error, _LOST) or status_of(error) in _TRANSIENT or _code_of(error) in _TRANSIENT_CODES


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an error came from, or None if there was no answer."""
    return error.response["ResponseMetadata"].get("HTTPStatusCode") if isinstance(error, ClientError) else None


def _code_of(error: BaseException) -> str | None:
    """The S3 error code of an error ("NoSuchBucket")."""
    return error.response.get("Error", {}).get("Code") if isinstance(error, ClientError) else None


def translated_remote(error: BaseException, *, verb: str, where: str) -> TablestoreError:
    """Our error for one of :data:`REMOTE_ERRORS`."""
    status = status_of(error)
    if _code_of(error) == "NoSuchBucket":
        return NotFoundError(f"cannot {verb} {where}: there is no such bucket; create it first", kind="no-bucket")
    if status == 404:
        return NotFoundError(f"cannot {verb} {where}: there is no such file; check the path or whether it was expired or dropped")
    if status == 412:
        return StorageError(f"cannot {verb} {where}: it exists already; use another name", kind="occupied")
    if status in (401, 403):
        return StorageError(
            f"cannot {verb} {where}: access is denied ({error}); check the credentials and what they allow", kind="denied"
        )
    if status is not None:
        return StorageError(f"cannot {verb} {where}: the store answered {status} ({error}); repeat when the store is well")
    if isinstance(error, _LOST):
        return StorageError(f"cannot {verb} {where}: {error}; repeat when the store can be reached")
    # The client refused by itself. A missing file would be one of its own, never the one that was asked for.
    return StorageError(f"cannot {verb} {where}: {error}; check the credentials and options of the client", kind="denied")
