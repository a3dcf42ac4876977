"""Takes addresses apart as Java's ``URI`` does, and decodes what is written in them."""

import ipaddress
import re
from dataclasses import dataclass

from tablestore.errors import InvalidInputError
from tablestore.sql.duckdb.calls import refusal

_UNRESERVED = r"A-Za-z0-9_\-!.~'()*"
_ESCAPED = "%[0-9A-Fa-f]{2}"
# Letters beyond ASCII that are neither spaces nor controls.
_OTHER = r"\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff\u3001-\U0010ffff"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+\-.]*")
_PATH = re.compile(rf"(?:[{_UNRESERVED}:@&=+$,;/{_OTHER}]|{_ESCAPED})*")
_QUERY = re.compile(rf"(?:[{_UNRESERVED}:@&=+$,;/?\[\]{_OTHER}]|{_ESCAPED})*")
_REGISTRY = re.compile(rf"(?:[{_UNRESERVED}$,;:@&=+]|{_ESCAPED})+")
_USER = re.compile(rf"(?:[{_UNRESERVED};:&=+$,]|{_ESCAPED})*")
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}|(?:{_LABEL}\.)+[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?)\.?")
_SERVER = re.compile(r"(?:(?P<user>.*?)@)?(?P<host>\[.*\]|[^:\[\]@]*)(?::(?P<port>[0-9]*))?")
_KEY = re.compile(r"[\w.\-]*", re.ASCII)
_MOST_PORT_DIGITS = 9
_ESCAPES = re.compile("((?:%(?:[0-9A-Fa-f]{2}|\\+[0-9A-Fa-f]))+)")


@dataclass(frozen=True, slots=True)
class _Address:
    scheme: str | None = None
    authority: str | None = None
    user: str | None = None
    host: str | None = None
    path: str | None = None
    query: str | None = None
    fragment: str | None = None


def parse_url(url: str, part: str) -> str | None:
    """A part of an address by its name; None where it has none. Raises InvalidInputError for a text that is no address."""
    address = _parsed(url)
    if address is None:
        raise InvalidInputError(f"the function `parse_url`: expected an address, found {url!r:.120}", kind="query")
    return _part(address, part)


def try_parse_url(url: str, part: str) -> str | None:
    """A part of an address by its name; None where it has none, and for a text that is no address."""
    address = _parsed(url)
    return None if address is None else _part(address, part)


def parse_url_key(url: str, part: str, key: str) -> str | None:
    """The value of a key in the query of an address."""
    return _value_of_key(parse_url(url, part), part, key)


def try_parse_url_key(url: str, part: str, key: str) -> str | None:
    """The value of a key in the query of an address; None for a text that is no address."""
    return _value_of_key(try_parse_url(url, part), part, key)


def _value_of_key(query: str | None, part: str, key: str) -> str | None:
    if part != "QUERY" or query is None:
        return None
    if not _KEY.fullmatch(key):
        raise refusal("parse_url with a key of other letters than A to Z, digits, '.', '_' and '-'")
    # Spark takes the key for a part of a regular expression.
    match = re.search(f"(?:&|^){key}=([^&]*)", query)
    return None if match is None else match[1]


def _part(address: _Address, part: str) -> str | None:
    match part:
        case "HOST":
            return address.host
        case "PATH":
            return address.path
        case "QUERY":
            return address.query
        case "REF":
            return address.fragment
        case "PROTOCOL":
            return address.scheme
        case "FILE":
            return address.path if address.query is None else f"{address.path}?{address.query}"
        case "AUTHORITY":
            return address.authority
        case "USERINFO":
            return address.user
        case _:
            return None


def _parsed(url: str) -> _Address | None:
    """The parts of an address; None for a text that is none."""
    if "\n" in url:
        return None
    rest, has_fragment, fragment = url.partition("#")
    if not _QUERY.fullmatch(fragment):
        return None
    scheme: str | None = None
    ahead = re.match("[^/?#:]*:", rest)
    if ahead is not None:
        scheme, rest = ahead[0][:-1], rest[ahead.end() :]
        if not _SCHEME.fullmatch(scheme) or not rest:
            return None
        if not rest.startswith("/"):
            is_opaque = _QUERY.fullmatch(rest)
            return _Address(scheme=scheme, fragment=fragment if has_fragment else None) if is_opaque else None
    rest, has_query, query = rest.partition("?")
    authority: str | None = None
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        if not authority:
            if not rest:
                return None
            authority = None
    if not _PATH.fullmatch(rest) or not _QUERY.fullmatch(query):
        return None
    user, host = None, None
    if authority is not None:
        server = _server(authority)
        if server is not None:
            user, host = server
        elif not _REGISTRY.fullmatch(authority):
            if not authority.isascii() or "[" in authority:
                raise refusal("parse_url of an address whose host has letters beyond ASCII or brackets")
            return None
    return _Address(scheme, authority, user, host, rest, query if has_query else None, fragment if has_fragment else None)


def _server(authority: str) -> tuple[str | None, str] | None:
    """The user and the host of an authority that names a server."""
    match = _SERVER.fullmatch(authority)
    if match is None or not _USER.fullmatch(match["user"] or ""):
        return None
    host, port = match["host"], match["port"] or ""
    if len(port) > _MOST_PORT_DIGITS:
        raise refusal("parse_url of an address with a port of more than 9 digits")
    if host.startswith("["):
        try:
            ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            return None
        return match["user"], host
    return (match["user"], host) if _HOST.fullmatch(host) or _is_ipv4(host) else None


def _is_ipv4(host: str) -> bool:
    numbers = host.split(".")
    return len(numbers) == 4 and all(re.fullmatch("[0-9]{1,3}", one) and int(one) < 256 for one in numbers)


def url_decode(text: str) -> str:
    """A text as it was before it was encoded. Raises InvalidInputError where a % stands before no hexadecimal digits."""
    decoded = try_url_decode(text)
    if decoded is None:
        raise InvalidInputError(
            f"the function `url_decode`: expected two hexadecimal digits behind %, found {text!r:.120}", kind="query"
        )
    return decoded


def try_url_decode(text: str) -> str | None:
    """A text as it was before it was encoded; None where a % stands before no hexadecimal digits."""
    parts = _ESCAPES.split(text)
    if any("%" in part for part in parts[::2]):
        return None
    return "".join(_unescaped(part) if place % 2 else part.replace("+", " ") for place, part in enumerate(parts))


def _unescaped(escapes: str) -> str:
    data = bytes(int(digits, 16) for digits in escapes[1:].split("%"))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if re.search(b"\xed[\xa0-\xbf]", data):
            raise refusal("url_decode of surrogates") from error
        return data.decode(errors="replace")
