"""Proves that a form was sent from a page of this service: a signed token, once in a cookie and once in the form.

    token = nonce . HMAC-SHA256(key of the process, caller, nonce)

A page of another origin can make a browser send the cookie (older browsers; new ones keep to ``SameSite=Strict``), but reads
neither copy, and can sign none. A token is of one caller: who logs in as another one needs another. It ends with the process.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error

from tablestore.ids import Ids

FIELD = "csrf_token"
_NONCE_BYTES, _MOST_CHARACTERS = 16, 128


class CsrfTokens:
    """Issues and checks tokens by a key that only this process has. ``is_secure``: the cookie is for TLS alone."""

    def __init__(self, ids: Ids, *, is_secure: bool) -> None:
        self._ids, self._key, self._is_secure = ids, ids.nonce() + ids.nonce(), is_secure

    @property
    def cookie_name(self) -> str:
        """The name of the cookie. A browser takes one called ``__Host-`` from this very host over TLS alone."""
        return "__Host-tablestore-csrf" if self._is_secure else "tablestore-csrf"

    def issue(self, caller: str) -> str:
        """A new token for a form that ``caller`` is shown."""
        nonce = self._ids.nonce()
        return f"{_text(nonce)}.{_text(self._signature(caller, nonce))}"

    def set_cookie(self, token: str) -> str:
        """The value of the header ``Set-Cookie`` that goes with the form."""
        return f"{self.cookie_name}={token}; Path=/; HttpOnly; SameSite=Strict{'; Secure' if self._is_secure else ''}"

    def holds(self, caller: str, cookie: str | None, field: str | None) -> bool:
        """True if the form comes from a page that ``caller`` was shown."""
        if not cookie or not field or len(cookie) > _MOST_CHARACTERS or not (cookie.isascii() and field.isascii()):
            return False
        if not hmac.compare_digest(cookie, field):
            return False
        nonce_text, _, signature_text = field.partition(".")
        nonce, signature = _bytes(nonce_text), _bytes(signature_text)
        if nonce is None or signature is None or len(nonce) != _NONCE_BYTES:
            return False
        return hmac.compare_digest(signature, self._signature(caller, nonce))

    def _signature(self, caller: str, nonce: bytes) -> bytes:
        # The nonce has one length: no caller's name can take over a part of it.
        return hmac.digest(self._key, nonce + caller.encode("utf-8", "surrogatepass"), "sha256")


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes | None:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (Error, ValueError):
        return None
