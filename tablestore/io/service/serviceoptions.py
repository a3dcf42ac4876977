"""Parses the options ``catalog.service.*``: the address of a catalog service through which snapshots are published.

They stand among the options of the file system, as those of the lock do, and so reach every process that opens the store: tables,
Spark's drivers, sinks. A catalog of metastore = rest sets them for its tables. The client is imported only where there is a
service.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tablestore.clock import Clock, SystemClock
from tablestore.errors import InvalidInputError
from tablestore.ids import Ids, SystemIds
from tablestore.names import did_you_mean
from tablestore.options import Option

if TYPE_CHECKING:
    from tablestore.io.service.serviceclient import ServiceClient

PREFIX = "catalog.service."
SERVICE_URI = Option(
    key="catalog.service.uri",
    kind="text",
    default=None,
    sentence="The catalog service that publishes snapshots: tablestore serve, or another one of Paimon's REST protocol.",
)
SERVICE_TOKEN = Option(
    key="catalog.service.token",
    kind="text",
    default=None,
    sentence="The bearer token for it, best named as env:NAME or file:PATH: a token in plain text stays in this process.",
)
SERVICE_PREFIX = Option(
    key="catalog.service.prefix", kind="text", default="", sentence="The part of its paths that its configuration names."
)
SERVICE_KEYS = Option(
    key="catalog.service.data-token",
    kind="bool",
    default=False,
    sentence="Open files with temporary keys that the service hands out for each table (S3).",
)
SERVICE_RULES = Option(
    key="catalog.service.query-rules",
    kind="choice",
    default="always",
    choices=("always", "by-table"),
    sentence="Of which tables it has rules for queries: of any, or as services of others of those with query-auth.enabled.",
)
OPTIONS = {option.key: option for option in (SERVICE_URI, SERVICE_TOKEN, SERVICE_PREFIX, SERVICE_KEYS, SERVICE_RULES)}


def parse_service(
    options: Mapping[str, Any], clock: Clock | None = None, ids: Ids | None = None
) -> "tuple[ServiceClient | None, bool, dict[str, Any]]":
    """The client of the service that ``options`` name, if any, whether it hands out keys, and the options that are left.

    Raises InvalidInputError.
    """
    other_options = {key: value for key, value in options.items() if not key.startswith(PREFIX)}
    if unknown := sorted(set(options) - set(other_options) - set(OPTIONS)):
        raise InvalidInputError(
            f"there is no option {unknown[0]!r}{did_you_mean(unknown[0], OPTIONS)}; options of a service are {', '.join(OPTIONS)}",
            kind="unknown-option",
        )
    service_options = {key: str(options[key]) for key in OPTIONS if options.get(key) is not None}
    if not service_options:
        return None, False, other_options
    if SERVICE_URI.key not in service_options:
        raise InvalidInputError(
            f"{', '.join(service_options)} without {SERVICE_URI.key}: name the service, like https://catalog.example:8743",
            kind="invalid-option",
        )
    from tablestore.io.service.serviceclient import ServiceClient

    client = ServiceClient(
        uri=checked_uri(service_options[SERVICE_URI.key], SERVICE_URI.key),
        token=service_options.get(SERVICE_TOKEN.key),
        prefix=service_options.get(SERVICE_PREFIX.key, ""),
        has_rules=SERVICE_RULES.parse(service_options.get(SERVICE_RULES.key, "always")) == "always",
        clock=clock or SystemClock(),
        ids=ids or SystemIds(),
    )
    return client, SERVICE_KEYS.parse(service_options.get(SERVICE_KEYS.key, "false")) is True, other_options


def checked_uri(uri: str, key: str) -> str:
    """The address without a slash at its end. Raises InvalidInputError where it is none, or holds a user or password."""
    try:
        parts = urlsplit(uri)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query and not parts.fragment
    except ValueError:
        is_address = False
    if not is_address:
        # It is not repeated: what stands in it may be a password.
        raise InvalidInputError(
            f"option {key}: expected the address of a catalog service, like https://catalog.example:8743, found something else",
            kind="invalid-option",
        )
    if parts.username or parts.password:
        raise InvalidInputError(
            f"option {key}: an address is shown, so it must hold no user and password; give a token instead", kind="invalid-option"
        )
    return uri.rstrip("/")
