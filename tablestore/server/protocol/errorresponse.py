"""Translates errors into the error responses of the protocol: ``message``, ``resourceType``, ``resourceName``, ``code``.

    400  the request is wrong                      404  there is no such object, or the caller may not know of it
    401  no token, or one that is not valid        409  the name is taken
    403  the caller may not do that                501  the table or the request needs something that tablestore does not do
    413  the body is too large                     503  the store gave no answer, or others were faster: repeat the request
    500  anything else: logged here, and said without a trace

Clients decide by ``resourceType`` which object is missing, so it is never guessed: an error that names none gets that of its
endpoint.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tablestore.errors import (
    AlreadyExistsError,
    CommitOutcomeUnknown,
    ConflictError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    TablestoreError,
    UnsupportedError,
)
from tablestore.io.service.serviceclient import ERROR_HEADER, KIND_HEADER, UNDONE_HEADER

RETRY_AFTER_S = 1


class ResourceType(StrEnum):
    """The kinds of objects that an error is about, as clients know them. Stored in clients, never renamed."""

    DATABASE = "DATABASE"
    TABLE = "TABLE"
    PARTITION = "PARTITION"
    COLUMN = "COLUMN"
    SNAPSHOT = "SNAPSHOT"
    BRANCH = "BRANCH"
    TAG = "TAG"
    VIEW = "VIEW"
    DIALECT = "DIALECT"
    FUNCTION = "FUNCTION"
    DEFINITION = "DEFINITION"
    CONSUMER = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorResponse:
    """One error response. ``retry_after_s``: after which time the same request may succeed. ``error``: what it is the response
    to."""

    code: int
    message: str
    resource_type: ResourceType | None = None
    resource_name: str | None = None
    retry_after_s: int | None = None
    is_undone: bool = False
    error: TablestoreError | None = field(default=None, compare=False)

    def content(self) -> dict[str, object]:
        """The body."""
        return {
            "message": self.message,
            "resourceType": None if self.resource_type is None else self.resource_type.value,
            "resourceName": self.resource_name,
            "code": self.code,
        }

    def headers(self) -> dict[str, str]:
        """The headers that the code needs, and those by which tablestore's client raises the same error again."""
        headers = {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}
        if self.is_undone:
            headers[UNDONE_HEADER] = "true"
        if self.error is not None:
            headers |= {ERROR_HEADER: type(self.error).__name__, KIND_HEADER: self.error.kind}
        return headers


class RequestRefused(Exception):
    """A request that ends with an error response."""

    def __init__(self, response: ErrorResponse) -> None:
        super().__init__(response.message)
        self.response = response


def bad_request(message: str) -> RequestRefused:
    """The refusal of a request that is wrong."""
    return RequestRefused(ErrorResponse(code=400, message=message))


def missing(resource_type: ResourceType, name: str, message: str) -> RequestRefused:
    """The refusal of a request for something that is not there."""
    return RequestRefused(ErrorResponse(code=404, message=message, resource_type=resource_type, resource_name=name))


def name_conflict(resource_type: ResourceType, name: str, message: str) -> RequestRefused:
    """The refusal of a request for a name that is taken."""
    return RequestRefused(ErrorResponse(code=409, message=message, resource_type=resource_type, resource_name=name))


def unavailable(message: str) -> RequestRefused:
    """The refusal of a request that was not begun, and may be repeated as it is."""
    return RequestRefused(ErrorResponse(code=503, message=message, retry_after_s=RETRY_AFTER_S, is_undone=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestObjects:
    """The names in the path of a request, by the kind of object. ``about``: the kind that its endpoint is about."""

    about: ResourceType | None = None
    names: Mapping[ResourceType, str] = field(default_factory=dict)


_KINDS_404: Mapping[str, ResourceType] = {
    "no-such-database": ResourceType.DATABASE,
    "no-such-table": ResourceType.TABLE,
    "table-replaced": ResourceType.TABLE,
    "no-such-snapshot": ResourceType.SNAPSHOT,
    "snapshot-expired": ResourceType.SNAPSHOT,
    "no-such-tag": ResourceType.TAG,
    "no-such-branch": ResourceType.BRANCH,
    "no-such-partition": ResourceType.PARTITION,
    "unknown-column": ResourceType.COLUMN,
}
_KINDS_409: Mapping[str, ResourceType] = {
    "database-exists": ResourceType.DATABASE,
    "table-exists": ResourceType.TABLE,
    "directory-exists": ResourceType.TABLE,
    "half-removed-table": ResourceType.TABLE,
    "tag-exists": ResourceType.TAG,
    "branch-exists": ResourceType.BRANCH,
    "duplicate-column": ResourceType.COLUMN,
}
# Conflicts that the same request meets again.
_LASTING_CONFLICTS = frozenset({"not-a-fast-forward", "schema-changed", "moved-on", "too-old"})


def error_response(error: TablestoreError, objects: RequestObjects) -> ErrorResponse | None:
    """The response to one of our errors; None for one that is no answer to a request, but a fault of the service."""
    response = _response(error, objects)
    return None if response is None else replace(response, error=error)


def _response(error: TablestoreError, objects: RequestObjects) -> ErrorResponse | None:
    kind, message = error.kind, error.message
    if isinstance(error, NotFoundError) or kind == "table-replaced":
        return _about(404, message, _KINDS_404.get(kind, objects.about), objects)
    if isinstance(error, AlreadyExistsError) or kind == "duplicate-column":
        return _about(409, message, _KINDS_409.get(kind, objects.about), objects)
    if isinstance(error, ConflictError) and kind in _LASTING_CONFLICTS:
        return _about(409, message, objects.about, objects)
    if isinstance(error, StorageError | CommitOutcomeUnknown | ConflictError):
        return ErrorResponse(code=503, message=message, retry_after_s=RETRY_AFTER_S)
    if isinstance(error, InvalidInputError):
        return ErrorResponse(code=400, message=message)
    if isinstance(error, UnsupportedError):
        return ErrorResponse(code=501, message=message)
    if isinstance(error, FormatError):
        # A file of the warehouse; what is wrong in a body was refused where it was parsed.
        return ErrorResponse(code=500, message=message)
    return None


def _about(code: int, message: str, resource_type: ResourceType | None, objects: RequestObjects) -> ErrorResponse:
    name = None if resource_type is None else objects.names.get(resource_type)
    return ErrorResponse(code=code, message=message, resource_type=resource_type, resource_name=name)
