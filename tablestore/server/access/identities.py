"""Creates, revokes and recognizes tokens: who sends a request, and which roles that gives.

    tsk_<43 letters>      256 random bits in base64url; the first letters let scanners of secrets find a token that leaked

Stored is the SHA-256 of a token alone. A slow hash (bcrypt, argon2) protects secrets that can be guessed; of 2^256 equally likely
ones nobody guesses one, however fast the hash is, and a service checks thousands of them a second.

A token is looked up by its hash. The time that this takes depends on the hash, which a caller cannot steer towards another one, and
the whole is compared in constant time. Whatever is wrong with a token, the caller learns the same (:class:`Unauthenticated`).
"""

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tablestore.errors import InvalidInputError, NotFoundError
from tablestore.ids import Ids
from tablestore.names import did_you_mean
from tablestore.server.access.denials import Unauthenticated
from tablestore.server.access.roles import Grant, Principal

PREFIX = "tsk_"
MOST_NAME_CHARACTERS = 128
# Of a header `Authorization`, of any kind: tokens of an issuer have a few thousand characters.
MOST_HEADER_CHARACTERS = 16_384
_TEXT = re.compile(r"tsk_[A-Za-z0-9_-]{43}", re.ASCII)
_BEARER = re.compile(r"bearer +(?P<token>[!-~]+)", re.IGNORECASE | re.ASCII)
# Letters of any script, digits, and what e-mail addresses and names of services have; ":" is for callers of an issuer.
_NAME = re.compile(r"\w[\w.@+ -]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token as it is stored. Times are milliseconds since the epoch; None: it does not expire, is not revoked."""

    id: str
    name: str
    sha256: str
    grants: tuple[Grant, ...]
    created_ms: int
    expires_ms: int | None = None
    revoked_ms: int | None = None

    def is_live(self, now_ms: int) -> bool:
        """True if it opens the door now."""
        return self.revoked_ms is None and (self.expires_ms is None or now_ms < self.expires_ms)

    def state(self, now_ms: int) -> str:
        """``live``, ``expired`` or ``revoked``."""
        if self.revoked_ms is not None:
            return "revoked"
        return "live" if self.is_live(now_ms) else "expired"


def create_token(
    ids: Ids, *, name: str, grants: Sequence[Grant], now_ms: int, expires_in_ms: int | None = None
) -> tuple[Token, str]:
    """A new token as it is stored, and its text, which is shown once. Raises InvalidInputError for a name that is none."""
    check_principal_name(name)
    if not grants:
        raise InvalidInputError(f"a token for {name!r} needs a role; expected at least one, found none")
    if expires_in_ms is not None and expires_in_ms <= 0:
        raise InvalidInputError(f"expected a token for {name!r} that expires later than now, found {expires_in_ms} ms")
    text = PREFIX + urlsafe_b64encode(ids.nonce() + ids.nonce()).rstrip(b"=").decode()
    token = Token(
        id=ids.uuid().replace("-", "")[:12],
        name=name,
        sha256=hash_of(text),
        grants=tuple(dict.fromkeys(grants)),
        created_ms=now_ms,
        expires_ms=None if expires_in_ms is None else now_ms + expires_in_ms,
    )
    return token, text


def revoke_tokens(tokens: Sequence[Token], which: str, now_ms: int) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """All tokens, of which the one with the id ``which`` or else all with that name are revoked, and these alone.

    Raises NotFoundError if there is none; one that is revoked already keeps its time.
    """
    chosen = {token.id for token in tokens if token.id == which} or {token.id for token in tokens if token.name == which}
    if not chosen:
        known = dict.fromkeys([*(token.id for token in tokens), *(token.name for token in tokens)])
        raise NotFoundError(
            f"no token has the id or the name {which!r:.200}{did_you_mean(which, known)}; `tablestore token list` shows them",
            kind="unknown-token",
        )
    revoked = {
        token.id: token if token.revoked_ms is not None else replace(token, revoked_ms=now_ms)
        for token in tokens
        if token.id in chosen
    }
    return tuple(revoked.get(token.id, token) for token in tokens), tuple(revoked.values())


def check_principal_name(name: str) -> str:
    """``name`` itself if a token may have it. Raises InvalidInputError."""
    if len(name) > MOST_NAME_CHARACTERS or _NAME.fullmatch(name) is None:
        raise InvalidInputError(
            f"expected a name of at most {MOST_NAME_CHARACTERS} letters, digits, blanks and any of . _ @ + -, beginning with a "
            f"letter or digit, found {name!r:.200}",
            kind="invalid-name",
        )
    return name


def hash_of(text: str) -> str:
    """The hash of a token's text, as it is stored."""
    return hashlib.sha256(text.encode()).hexdigest()


def bearer_token(authorization: str | None) -> str:
    """The token of a header ``Authorization``. Raises Unauthenticated for any other."""
    if not authorization:
        raise Unauthenticated("no token")
    if len(authorization) > MOST_HEADER_CHARACTERS or (match := _BEARER.fullmatch(authorization.strip(" \t"))) is None:
        raise Unauthenticated("the header Authorization is malformed")
    return match["token"]


@dataclass(frozen=True, slots=True)
class TokenTable:
    """Tokens by their hashes, for looking up."""

    by_hash: Mapping[str, Token]

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> "TokenTable":
        return cls({token.sha256: token for token in tokens})

    def recognize(self, text: str, now_ms: int) -> Token:
        """The live token of this text. Raises Unauthenticated."""
        if _TEXT.fullmatch(text) is None:
            raise Unauthenticated("the token is malformed")
        sha256 = hash_of(text)
        token = self.by_hash.get(sha256)
        if not hmac.compare_digest(sha256, "0" * len(sha256) if token is None else token.sha256) or token is None:
            raise Unauthenticated("the token is not known")
        if not token.is_live(now_ms):
            raise Unauthenticated(f"the token {token.id} of {token.name} is {token.state(now_ms)}")
        return token


class IssuedTokens(Protocol):
    """Recognizes the tokens of an issuer (:mod:`tablestore.server.access.oidc`)."""

    def authenticate(self, token: str, now_ms: int) -> Principal:
        """The caller. Raises Unauthenticated."""
        ...


class Authenticator:
    """Recognizes callers by the header ``Authorization``.

    ``tokens`` returns the tokens as they are stored now, so that one that is revoked opens nothing from then on; ``issued``
    are those of an issuer, if the service trusts one.
    """

    def __init__(self, tokens: Callable[[], TokenTable], issued: IssuedTokens | None = None) -> None:
        self._tokens, self._issued = tokens, issued

    def authenticate(self, authorization: str | None, now_ms: int) -> Principal:
        """The caller. Raises Unauthenticated for a token that is missing, malformed, unknown, expired or revoked."""
        text = bearer_token(authorization)
        if self._issued is not None and not text.startswith(PREFIX):
            return self._issued.authenticate(text, now_ms)
        token = self._tokens().recognize(text, now_ms)
        return Principal(name=token.name, grants=token.grants)
