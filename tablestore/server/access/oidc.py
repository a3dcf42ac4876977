"""Recognizes the tokens of an OpenID Connect issuer: signed JSON web tokens, and the roles of the groups in them.

A file says whom the service trusts, and what a group may do:

    {"issuer": "https://login.example.com/", "audience": "tablestore", "groups_claim": "groups", "name_claim": "email",
     "grants": {"analysts": [{"role": "reader", "database": "shop"}], "platform": [{"role": "admin"}]}}

    discovery   ISSUER/.well-known/openid-configuration names the keys; it has to name this very issuer
    signature   RS256 or ES256 by one of the issuer's keys; no other algorithm, whatever the token says of itself
    claims      iss, aud, exp and the name are there and hold, nbf and iat too if they are there; clocks may differ by a minute

Keys are fetched when they are first needed, when they are an hour old, and when a token names one that is not known: not more often
than every half minute, also if the issuer does not answer; then they serve for another hour. A caller of an issuer is called
``oidc:NAME``, so that none takes the name of a token.
"""

import json
import threading
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol, TypeGuard
from urllib.parse import urlsplit

from tablestore.clock import Clock
from tablestore.errors import InvalidInputError, StorageError
from tablestore.lazy import missing_package
from tablestore.names import did_you_mean
from tablestore.server.access.accessdocument import parse_grant
from tablestore.server.access.denials import Unauthenticated
from tablestore.server.access.identities import MOST_NAME_CHARACTERS
from tablestore.server.access.roles import Grant, Principal

try:
    import jwt
except ImportError as error:
    raise missing_package("tokens of an issuer need the package PyJWT", "'managed-tablestore[server]'", error) from error

ALGORITHMS = ("RS256", "ES256")
NAME_PREFIX = "oidc:"
DISCOVERY = ".well-known/openid-configuration"
LEEWAY_MS = 60_000
KEYS_LIFE_S, KEYS_GRACE_S, KEYS_PAUSE_S = 3600.0, 3600.0, 30.0
MOST_KEYS, MOST_ANSWER_BYTES, MOST_GROUPS = 64, 1 << 20, 1000
_KEYS = ("issuer", "audience", "groups_claim", "name_claim", "grants")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

Fetch = Callable[[str], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerSettings:
    """An issuer that the service trusts. ``grants``: by the names of groups."""

    issuer: str
    audience: str
    groups_claim: str = "groups"
    name_claim: str = "sub"
    grants: Mapping[str, tuple[Grant, ...]]


def parse_issuer(text: str, where: str) -> IssuerSettings:
    """The settings in a JSON text. Raises InvalidInputError, FormatError for a grant that is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{where}: expected JSON that names an issuer, found something else") from error
    if not isinstance(value, dict):
        raise InvalidInputError(f"{where}: expected a JSON object that names an issuer, found {type(value).__name__}")
    if unknown := [key for key in value if key not in _KEYS]:
        near = did_you_mean(unknown[0], _KEYS)
        raise InvalidInputError(f"{where}: no key is called {unknown[0]!r:.100}{near}; keys are {', '.join(_KEYS)}")
    grants = value.get("grants")
    texts = {"groups_claim": "groups", "name_claim": "sub"} | {key: value[key] for key in _KEYS[:-1] if key in value}
    for key in _KEYS[:-1]:
        if not isinstance(texts.get(key), str) or not texts[key]:
            raise InvalidInputError(f"{where}: expected text as {key}")
    if not isinstance(grants, dict) or not grants or not all(isinstance(one, list) for one in grants.values()):
        raise InvalidInputError(f"{where}: expected lists of grants by the names of groups as grants")
    _check_address(texts["issuer"], f"{where}: the issuer")
    by_group = {
        group: tuple(parse_grant(one, f"{where}, group {group!r:.100}") for one in listed) for group, listed in grants.items()
    }
    return IssuerSettings(
        issuer=texts["issuer"],
        audience=texts["audience"],
        groups_claim=texts["groups_claim"],
        name_claim=texts["name_claim"],
        grants=by_group,
    )


def load_issuer(path: str) -> IssuerSettings:
    """The settings in a file. Raises what :func:`parse_issuer` raises, InvalidInputError for one that cannot be read."""
    try:
        return parse_issuer(Path(path).expanduser().read_text(encoding="utf-8"), path)
    except OSError as error:
        raise InvalidInputError(f"{path}: expected a file that names an issuer, found none: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path}: expected a file of UTF-8 text") from error


class SigningKeys(Protocol):
    """The keys of an issuer."""

    def find(self, key_id: str | None) -> jwt.PyJWK | None:
        """The key of an id; without an id the only key. None if there is none, or the issuer does not answer."""
        ...


class IssuerKeys:
    """The keys that an issuer publishes, fetched by ``fetch``."""

    def __init__(self, issuer: str, clock: Clock, fetch: Fetch) -> None:
        self._issuer, self._clock, self._fetch = issuer, clock, fetch
        self._lock = threading.Lock()
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._fetched_s: float | None = None
        self._tried_s: float | None = None

    def find(self, key_id: str | None) -> jwt.PyJWK | None:
        with self._lock:
            now_s = self._clock.steady_s()
            is_old = self._fetched_s is None or now_s - self._fetched_s >= KEYS_LIFE_S
            may_fetch = self._tried_s is None or now_s - self._tried_s >= KEYS_PAUSE_S
            if (is_old or self._known(key_id) is None) and may_fetch:
                self._tried_s = now_s
                keys = self._published()
                if keys is not None:
                    self._keys, self._fetched_s = keys, now_s

            if self._fetched_s is not None and now_s - self._fetched_s >= KEYS_LIFE_S + KEYS_GRACE_S:
                self._keys = {}
            return self._known(key_id)

    def _known(self, key_id: str | None) -> jwt.PyJWK | None:
        if key_id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(key_id)

    def _published(self) -> dict[str | None, jwt.PyJWK] | None:
        """The keys by their ids, or None if there is no answer that can be trusted."""
        try:
            configuration = json.loads(self._fetch(f"{self._issuer.rstrip('/')}/{DISCOVERY}"))
            if not isinstance(configuration, dict) or configuration.get("issuer") != self._issuer:
                return None
            address = configuration.get("jwks_uri")
            if not isinstance(address, str):
                return None
            _check_address(address, "the keys of the issuer")
            published = json.loads(self._fetch(address))
            keys = published.get("keys") if isinstance(published, dict) else None
            if not isinstance(keys, list):
                return None
            signing = [one for one in keys[:MOST_KEYS] if isinstance(one, dict) and one.get("use", "sig") == "sig"]
            return {key.key_id: key for key in jwt.PyJWKSet(signing).keys}
        except (OSError, ValueError, RecursionError, InvalidInputError, jwt.PyJWTError):
            return None


class IssuerTokens:
    """Recognizes the tokens of one issuer."""

    def __init__(self, settings: IssuerSettings, keys: SigningKeys) -> None:
        self._settings, self._keys = settings, keys

    def authenticate(self, token: str, now_ms: int) -> Principal:
        """The caller, with the grants of all groups that the service knows; perhaps none. Raises Unauthenticated."""
        claims = self._claims(token)
        _check_times(claims, now_ms)
        name = claims.get(self._settings.name_claim)
        if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME_CHARACTERS or not name.isprintable():
            raise Unauthenticated("the token of the issuer names nobody")
        groups = claims.get(self._settings.groups_claim, ())
        groups = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else ()
        grants = [
            grant for group in groups[:MOST_GROUPS] if isinstance(group, str) for grant in self._settings.grants.get(group, ())
        ]
        return Principal(name=NAME_PREFIX + name, grants=tuple(dict.fromkeys(grants)))

    def _claims(self, token: str) -> Mapping[str, Any]:
        settings = self._settings
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS:
                raise Unauthenticated("the token of the issuer has another algorithm")
            key_id = header.get("kid")
            key = self._keys.find(key_id) if key_id is None or isinstance(key_id, str) else None
            if key is None:
                raise Unauthenticated("the key of the token is not known")
            # Times are checked by the clock of the service.
            return jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=settings.audience,
                issuer=settings.issuer,
                options={"require": ["iss", "aud", "exp"], "verify_exp": False, "verify_nbf": False, "verify_iat": False},
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise Unauthenticated(f"the token of the issuer does not hold: {type(error).__name__}") from error


def _check_times(claims: Mapping[str, Any], now_ms: int) -> None:
    expires, not_before, issued = (claims.get(name) for name in ("exp", "nbf", "iat"))
    if not _is_time(expires) or now_ms >= expires * 1000 + LEEWAY_MS:
        raise Unauthenticated("the token of the issuer is expired")
    for begins in (not_before, issued):
        if begins is not None and (not _is_time(begins) or now_ms < begins * 1000 - LEEWAY_MS):
            raise Unauthenticated("the token of the issuer does not hold yet")


def _is_time(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1 << 53


def fetch_over_http(address: str, *, timeout_s: float = 5.0) -> bytes:
    """The bytes at an address; it follows no other one. Raises StorageError."""
    opener = urllib.request.build_opener(_NoRedirects())
    try:
        with opener.open(address, timeout=timeout_s) as answer:
            data: bytes = answer.read(MOST_ANSWER_BYTES + 1)
    except (OSError, HTTPException) as error:
        if callable(close := getattr(error, "close", None)):
            close()
        raise StorageError(f"{address} does not answer: {type(error).__name__}", kind="issuer") from error
    if len(data) > MOST_ANSWER_BYTES:
        raise StorageError(f"{address} answers with more than {MOST_ANSWER_BYTES} bytes", kind="issuer")
    return data


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """An issuer is where it says it is."""


def _check_address(address: str, what: str) -> None:
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        host = None
    if host is None or not (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)):
        raise InvalidInputError(
            f"{what}: expected an address that begins with https:// (http:// of this machine alone), found {address!r:.200}"
        )
