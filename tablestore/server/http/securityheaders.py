"""Adds the headers by which browsers protect those who look at the service's pages. An application cannot weaken them.

Scripts, styles, pictures and data come from the service itself; no script stands inside of a page, so that a name which is markup
runs nothing; no other page may show this one in a frame, or have its forms sent elsewhere. Nothing is kept by caches unless its
handler says so.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    b"content-security-policy": CONTENT_SECURITY_POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_STAY_ON_TLS = b"max-age=31536000"
_CACHE = (b"cache-control", b"no-store")
_TELLING = frozenset({b"server", b"x-powered-by"})


class SecurityHeaders:
    """Middleware: puts the headers on each answer. ``is_secure``: callers come over TLS, and are told to stay there."""

    def __init__(self, app: ASGIApp, *, is_secure: bool) -> None:
        self._app = app
        self._headers = [*HEADERS.items(), *([(b"strict-transport-security", _STAY_ON_TLS)] if is_secure else ())]
        self._replaced = {name for name, _ in self._headers} | _TELLING

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def protected_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name, value) for name, value in message.get("headers", ()) if name.lower() not in self._replaced]
                has_cache = any(name.lower() == _CACHE[0] for name, _ in own)
                message = {**message, "headers": [*own, *self._headers, *(() if has_cache else (_CACHE,))]}
            await send(message)

        await self._app(scope, receive, protected_send if scope["type"] == "http" else send)
