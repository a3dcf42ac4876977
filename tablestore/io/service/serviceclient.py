"""Sends requests to a catalog service, in JSON over HTTP, by the REST protocol of Apache Paimon (rest-catalog-open-api.yaml).

    answered 2xx            the body
    answered 4xx, 501       a typed error: what was asked for is wrong, missing, there already, or not allowed
    answered 429            asked again, when the service says so; 503 too, for a question, and where nothing was begun
    answered 5xx, no answer StorageError; of kind ``unknown-outcome`` where the request may have been carried out

A service of tablestore also names the class and the kind of its errors, so that they are the same as without it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from tablestore import errors
from tablestore.clock import Clock, SystemClock
from tablestore.errors import (
    AlreadyExistsError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    TablestoreError,
    UnsupportedError,
)
from tablestore.ids import Ids, SystemIds
from tablestore.io.retry import retried
from tablestore.lazy import lazy, missing_package
from tablestore.redaction import HIDDEN, is_reference
from tablestore.secretnames import resolved

ERROR_HEADER, KIND_HEADER = "x-tablestore-error", "x-tablestore-kind"
"""Headers of an answer: the name of the error's class, and its kind."""
UNDONE_HEADER = "x-tablestore-undone"
"""The header of a 503 by which a service says that it has not begun with the request. Any other may have been carried out."""

_ATTEMPTS = 5
_CONNECT_S, _READ_S = 10.0, 60.0
_MOST_BYTES = 256 << 20
_MOST_WAIT_S = 30.0
_AGAIN = (429, 503)
# Errors of a service of tablestore that the same request meets again, or that only who asked can settle.
_DECIDED = ("ConflictError", "CommitOutcomeUnknown")
_BY_STATUS: Mapping[int, type[TablestoreError]] = {
    400: InvalidInputError,
    404: NotFoundError,
    405: UnsupportedError,
    409: AlreadyExistsError,
    501: UnsupportedError,
}


class _Unavailable(Exception):
    """The service did nothing with a request, and takes it later."""

    def __init__(self, why: str, wait_s: float) -> None:
        super().__init__(why)
        self.why, self.wait_s = why, wait_s


@dataclass(frozen=True, kw_only=True)
class ServiceClient:
    """The client of the service at ``uri``. ``token``: the bearer token, or its name (``env:NAME``, ``file:PATH``).

    ``has_rules``: it has rules for queries of any table, not only of those with ``query-auth.enabled``. ``crowded``: the addresses
    of tables to which others commit as well. ``entered``: those of tables where a turn was waited for.

    It pickles; a token in plain text stays behind. May be used from several threads. Memory: one answer, at most 256 MiB.
    """

    uri: str
    token: str | None = field(default=None, repr=False)
    prefix: str = ""
    has_rules: bool = True
    clock: Clock = field(default_factory=SystemClock, repr=False, compare=False)
    ids: Ids = field(default_factory=SystemIds, repr=False, compare=False)
    crowded: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    entered: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[object, ...]:
        token = self.token if self.token is None or is_reference(self.token) else HIDDEN
        return _unpickled, (self.uri, token, self.prefix, self.has_rules, self.clock, self.ids)

    def path(self, *parts: str) -> str:
        """The path of an object of the catalog; the parts may hold any character."""
        prefix = [quote(part, safe="") for part in self.prefix.split("/") if part]
        return "/".join(["/v1", *prefix, *(quote(part, safe="") for part in parts)])

    def get(self, path: str, query: Mapping[str, str | int | None] | None = None) -> Any:
        """The answer to a question. Raises what the answer says, StorageError where there is none."""
        return self._asked("GET", path, query=query, is_question=True)

    def ask(self, path: str, body: object) -> Any:
        """The answer to a question that is sent as a document. Raises as :meth:`get`."""
        return self._asked("POST", path, body=body, is_question=True)

    def send(self, method: str, path: str, body: object | None = None, query: Mapping[str, str | int | None] | None = None) -> Any:
        """Asks for a change, once. StorageError of kind ``unknown-outcome``: it may have been made, look or repeat it."""
        return self._asked(method, path, body=body, query=query, is_question=False)

    def _asked(
        self,
        method: str,
        path: str,
        *,
        is_question: bool,
        body: object | None = None,
        query: Mapping[str, str | int | None] | None = None,
    ) -> Any:
        parameters = {key: value for key, value in (query or {}).items() if value is not None}
        url = f"{self.uri}{path}" + (f"?{urlencode(parameters)}" if parameters else "")
        data = None if body is None else json.dumps(body).encode()
        wait_s = 0.0

        def attempt() -> Any:
            nonlocal wait_s
            if wait_s:
                self.clock.sleep(wait_s)
                wait_s = 0.0
            try:
                return self._answer(method, url, data, is_question=is_question)
            except _Unavailable as error:
                wait_s = error.wait_s
                raise

        def is_transient(error: BaseException) -> bool:
            return isinstance(error, _Unavailable) or (is_question and isinstance(error, StorageError) and error.kind == "storage")

        try:
            return retried(attempt, is_transient=is_transient, clock=self.clock, ids=self.ids, attempts=_ATTEMPTS)
        except _Unavailable as error:
            raise StorageError(f"{method} {url}: {error.why}, {_ATTEMPTS} times; repeat it later", kind="unavailable") from None

    def _answer(self, method: str, url: str, data: bytes | None, *, is_question: bool) -> Any:
        import urllib3  # part of an extra

        headers = {"accept": "application/json"}
        if data is not None:
            headers["content-type"] = "application/json"
        if self.token is not None:
            headers["authorization"] = f"Bearer {_checked(resolved(self.token, 'the token of the catalog service'))}"
        unknown = "storage" if is_question else "unknown-outcome"
        try:
            response = self._pool.request(
                method, url, body=data, headers=headers, preload_content=False, redirect=False, retries=False
            )
        except (urllib3.exceptions.NewConnectionError, urllib3.exceptions.NameResolutionError) as error:
            # Nothing was sent.
            raise _Unavailable(f"nothing answers there ({_reason(error)})", 0.0) from error
        except urllib3.exceptions.HTTPError as error:
            raise StorageError(f"{method} {url}: no answer came ({_reason(error)})", kind=unknown) from error
        try:
            content = response.read(_MOST_BYTES + 1)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise StorageError(f"{method} {url}: the answer was cut off ({_reason(error)})", kind=unknown) from error
        finally:
            response.release_conn()
        if len(content) > _MOST_BYTES:
            raise FormatError(f"{method} {url}: the answer is longer than {_MOST_BYTES:,} bytes", kind="too-large")
        is_undone = is_question or response.status == 429 or response.headers.get(UNDONE_HEADER) is not None
        if response.status in _AGAIN and is_undone and response.headers.get(ERROR_HEADER) not in _DECIDED:
            raise _Unavailable(f"the service answered {response.status}", _wait_s(response.headers.get("retry-after")))
        if 200 <= response.status < 300:
            return _parsed(content, f"{method} {url}")
        raise _error(response.status, response.headers, content, f"{method} {url}", unknown)

    @lazy
    def _pool(self) -> Any:
        try:
            import urllib3
        except ImportError as error:
            raise missing_package("a catalog service needs the package urllib3", "'managed-tablestore[rest]'", error) from error
        return urllib3.PoolManager(maxsize=8, timeout=urllib3.Timeout(connect=_CONNECT_S, read=_READ_S))


def _unpickled(uri: str, token: str | None, prefix: str, has_rules: bool, clock: Clock, ids: Ids) -> ServiceClient:
    return ServiceClient(uri=uri, token=token, prefix=prefix, has_rules=has_rules, clock=clock, ids=ids)


def _checked(token: object) -> str:
    """The token. Raises InvalidInputError, which does not repeat it, for one that no header can hold."""
    if not isinstance(token, str) or not token or not all("!" <= character <= "~" for character in token):
        raise InvalidInputError(
            "the token of the catalog service: expected letters, digits and signs of ASCII on one line, found something else; give "
            "it as tablestore token create has printed it",
            kind="secret",
        )
    return token


def _reason(error: BaseException) -> str:
    return str(error).rpartition(": ")[2] or type(error).__name__


def _wait_s(header: str | None) -> float:
    return min(float(header), _MOST_WAIT_S) if header is not None and header.isascii() and header.isdigit() else 0.0


def _parsed(content: bytes, where: str) -> Any:
    if not content.strip():
        return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"{where}: expected JSON, found {content[:80]!r}; is it the address of a catalog service?", kind="json"
        ) from error


def _error(status: int, headers: Mapping[str, str], content: bytes, where: str, unknown: str) -> TablestoreError:
    body: Any = None
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    message = str(body.get("message") or "") if isinstance(body, Mapping) else ""
    resource = str(body.get("resourceType") or "").lower() if isinstance(body, Mapping) else ""
    named = getattr(errors, headers.get(ERROR_HEADER, ""), None)
    if isinstance(named, type) and issubclass(named, TablestoreError) and 400 <= status < 600:
        kind = unknown if issubclass(named, StorageError) and status >= 500 else headers.get(KIND_HEADER)
        return named(message or f"{where}: {status}", kind=kind)
    text = f"{where}: the service answered {status}" + (f", {message}" if message else "")
    if status == 401:
        return StorageError(f"{text}; is the token right, and not expired?", kind="denied")
    if status == 403:
        return StorageError(f"{text}; ask its owner for a role there", kind="denied")
    if (error := _BY_STATUS.get(status)) is not None:
        return error(text, kind=_kind(status, resource))
    return StorageError(text, kind=unknown)


def _kind(status: int, resource: str) -> str | None:
    if not resource:
        return None
    return {404: f"no-such-{resource}", 409: f"{resource}-exists"}.get(status)
