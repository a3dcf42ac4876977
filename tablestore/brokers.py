"""Parses the addresses of Kafka brokers, so narrowly that no client reads them in another way: who is checked is who is asked.

    [protocol://]host[:port]        host: a name, an IPv4 address, or an IPv6 address in brackets
"""

import re
from dataclasses import dataclass

from tablestore.errors import InvalidInputError

DEFAULT_PORT = 9092
# librdkafka ends a host at the first `/` behind the first `://`, and fills in what is missing: nothing of that may be written.
_BROKER = re.compile(
    r"(?:(?P<protocol>plaintext|ssl|sasl_plaintext|sasl_ssl)://)?"
    r"(?P<host>[a-z0-9_][a-z0-9._-]{0,252}|\[[0-9a-f:.]{2,45}(?:%[a-z0-9._-]{1,30})?\])"
    r"(?::(?P<port>[0-9]{1,5}))?",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """One broker. ``host`` is in small letters, ``port`` None where none is written, ``text`` what is written."""

    host: str
    port: int | None
    text: str


def parse_brokers(text: str) -> tuple[Broker, ...]:
    """The brokers of a list with commas; none of a blank text. Raises InvalidInputError for what is no address of one."""
    return tuple(_broker(part.strip(" ")) for part in text.split(",") if part.strip(" "))


def _broker(text: str) -> Broker:
    match = _BROKER.fullmatch(text)
    port = int(match["port"]) if match is not None and match["port"] else None
    if match is None or (port is not None and not 0 < port < 1 << 16):
        raise InvalidInputError(
            f"expected brokers such as k1:9092,k2 or SASL_SSL://k1:9093 or [::1]:9092, found {text!r:.200}", kind="invalid-option"
        )
    return Broker(host=match["host"].lower(), port=port, text=text)
