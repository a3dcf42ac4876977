"""Defines a request as handlers see it: names from the path, values from the query, a JSON body, and who asks.

A body is parsed within limits, and everything that is wrong in it is refused with 400.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from tablestore.errors import FormatError, UnsupportedError
from tablestore.format.limits import DEFAULT_LIMITS, parse_json_bounded
from tablestore.format.sealed import JsonObject
from tablestore.server.access.roles import Principal, Resource, Role
from tablestore.server.protocol.errorresponse import ErrorResponse, RequestRefused, ResourceType, bad_request, missing

T = TypeVar("T")

MOST_BODY_BYTES = 16 << 20
_LIMITS = replace(DEFAULT_LIMITS, max_json_bytes=MOST_BODY_BYTES, max_json_text_bytes=MOST_BODY_BYTES, max_json_depth=64)
_BODY = "the body of the request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request. ``names``: the parameters of its path, decoded. ``query``: the last value of each key."""

    principal: Principal
    names: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes = b""

    def json(self) -> JsonObject:
        """The JSON object of the body. Raises RequestRefused."""
        return understood(lambda: JsonObject(parse_json_bounded(self.body, _BODY, _LIMITS), _BODY))

    def check_may(self, role: Role, resource: Resource, about: ResourceType) -> None:
        """Raises RequestRefused if the caller has not this role: 404 where he may not even know the name."""
        if self.principal.may(role, resource):
            return
        if not self.principal.sees(resource):
            name = resource.name if resource.name is not None else resource.database
            raise missing(about, name or "", f"there is no {about.value.lower()} {resource}")
        raise RequestRefused(
            ErrorResponse(
                code=403,
                message=f"{self.principal.name} has not the role {role.value} on {resource}; ask its owner or an admin for it",
                resource_type=about,
                resource_name=resource.name if resource.name is not None else resource.database,
            )
        )


def understood(parse: Callable[[], T]) -> T:
    """The result of parsing a part of a request. Raises RequestRefused for what is wrong in it."""
    try:
        return parse()
    except FormatError as error:
        raise bad_request(error.message) from error
    except UnsupportedError as error:
        raise RequestRefused(ErrorResponse(code=501, message=error.message)) from error


def json_items(source: JsonObject, key: str) -> tuple[JsonObject, ...]:
    """The objects of a list; none if the key is absent. Raises RequestRefused."""
    items = source.content.get(key)
    if items is None:
        return ()
    if not isinstance(items, list):
        raise bad_request(f"{source.name}: expected a list under {key!r}, found {str(items)[:80]!r}")
    return understood(lambda: tuple(JsonObject(item, f"{source.name}, {key}[{number}]") for number, item in enumerate(items)))


def json_inside(source: JsonObject, key: str) -> JsonObject:
    """The object under a key. Raises RequestRefused."""
    return understood(lambda: JsonObject(source.content.get(key), f"{source.name}, {key}"))


def json_flag(source: JsonObject, key: str, *, default: bool) -> bool:
    """A boolean. Raises RequestRefused."""
    value = source.content.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise bad_request(f"{source.name}: expected true or false under {key!r}, found {str(value)[:80]!r}")
    return value
