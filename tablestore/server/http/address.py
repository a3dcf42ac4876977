"""Decides where the service may listen: at this machine as it is, elsewhere with TLS and tokens alone.

    loopback                      anything goes; behind a proxy it needs tokens, because the proxy brings callers from elsewhere
    any other address or name     tokens, and TLS: of its own, or of a proxy in front of it
    a container's, published at a loopback address alone    tokens: what is sent never leaves the machine

A name other than ``localhost`` counts as public, and so do all addresses of the machine (``0.0.0.0``, ``::``): what they lead to is
not known here. The proxies are named by address: only what comes from these may say for whom it was sent.
"""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network

from tablestore.errors import InvalidInputError

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_LEAST_PREFIX = {4: 8, 6: 32}
_ANYWHERE = frozenset({"", "0.0.0.0", "::"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """An address that the service may listen at. ``proxies``: addresses and networks that may say for whom they send."""

    host: str
    port: int
    certificate: str | None = None
    key: str | None = None
    proxies: tuple[str, ...] = ()

    @property
    def is_secure(self) -> bool:
        """True if callers come over TLS: cookies are for it alone, and browsers are told to stay there."""
        return self.certificate is not None or bool(self.proxies)

    def uvicorn_options(self) -> dict[str, object]:
        """The options of ``uvicorn.Config`` that follow. By itself uvicorn trusts every process of this machine as a proxy."""
        return {
            "host": self.host,
            "port": self.port,
            "ssl_certfile": self.certificate,
            "ssl_keyfile": self.key,
            "proxy_headers": bool(self.proxies),
            "forwarded_allow_ips": list(self.proxies),
            "server_header": False,
        }


def is_loopback(host: str) -> bool:
    """True for an address that only this machine reaches."""
    text = host.strip().lower().removeprefix("[").removesuffix("]")
    if text == "localhost":
        return True
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def is_anywhere(host: str) -> bool:
    """True for all addresses of the machine."""
    return host.strip("[]") in _ANYWHERE


def decide_bind(
    host: str,
    port: int,
    *,
    certificate: str | None = None,
    key: str | None = None,
    has_tokens: bool,
    proxies: Sequence[str] = (),
    published_locally: bool = False,
    names: Sequence[str] = (),
) -> Bind:
    """The address, if it is safe to listen there. InvalidInputError of kind "unsafe-address" says what is missing.

    ``published_locally``: whoever runs the service says that it is in a container whose port this machine alone reaches.
    ``names``: those that it is called by; with ``published_locally`` none may be one of the internet's.
    """
    if (certificate is None) != (key is None):
        raise InvalidInputError("TLS takes two files: pass --tls-certificate and --tls-key together", kind="tls")
    bind = Bind(host=host, port=port, certificate=certificate, key=key, proxies=parse_proxies(proxies))
    is_public = not is_loopback(host)
    if not has_tokens and (is_public or bind.proxies):
        what = f"{host or 'all addresses'} is reached from other machines" if is_public else "a proxy brings callers from elsewhere"
        raise _unsafe(
            f"{what}, and without tokens everybody may do anything; make one (tablestore token create --role admin), or listen at "
            "127.0.0.1 alone"
        )
    elsewhere = [name for name in names if not is_loopback(name) and "." in name.strip(".")]
    if published_locally and elsewhere:
        raise _unsafe(
            f"--published-locally says that this machine alone reaches the service, and --allowed-host {elsewhere[0]!r:.100} is a "
            "name for others; leave one of them out"
        )
    if is_public and not bind.is_secure and not published_locally:
        raise _unsafe(
            f"{host or 'all addresses'} is reached from other machines, and without TLS tokens and rows can be read on the way; "
            "pass --tls-certificate and --tls-key, or --behind-proxy ADDRESS of a proxy that has them, or listen at 127.0.0.1 "
            "alone; in a container whose port is published at 127.0.0.1, pass --published-locally"
        )
    return bind


def parse_proxies(texts: Sequence[str]) -> tuple[str, ...]:
    """Addresses and networks of proxies in canonical form. Raises InvalidInputError for a name, and for half of the internet."""
    networks = []
    for text in texts:
        try:
            network = ip_network(text.strip(), strict=False)
        except ValueError:
            raise InvalidInputError(
                f"--behind-proxy: expected the address or network of a proxy, such as 10.0.0.5 or 10.0.0.0/24, found {text!r:.100}",
                kind="proxy",
            ) from None
        if network.prefixlen < _LEAST_PREFIX[network.version]:
            raise InvalidInputError(
                f"--behind-proxy: {text!r:.100} is nearly everybody, who could then claim any address; name the proxies themselves",
                kind="proxy",
            )
        networks.append(str(network.network_address) if network.num_addresses == 1 else str(network))
    return tuple(dict.fromkeys(networks))


def check_tls_files(certificate: str, key: str) -> None:
    """Raise InvalidInputError for files that are no certificate with its key, before anything listens."""
    try:
        # A password would be asked for at the terminal, which a service has not.
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key, password=_refuse_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        why = error.strerror if isinstance(error, FileNotFoundError | PermissionError) else type(error).__name__
        raise InvalidInputError(
            f"--tls-certificate {certificate} and --tls-key {key} are no certificate with its key in PEM: {why}", kind="tls"
        ) from None


def _refuse_password() -> str:
    raise ValueError("the key has a password")


def _unsafe(message: str) -> InvalidInputError:
    return InvalidInputError(message, kind="unsafe-address")
