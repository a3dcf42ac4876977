"""Bounds what a request may carry: its path, its headers, its body.

path and query    8 KiB     414
headers           100, 32 KiB together     431
body              by its Content-Length before a byte of it is read, else while it is read     413
"""

from collections.abc import Iterable
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tablestore.server.http.refusal import OnRefusal, Refusal, header_values, ignore_refusals


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSizes:
    """The most that a request may carry, in bytes and headers."""

    target_bytes: int = 8 << 10
    headers: int = 100
    header_bytes: int = 32 << 10
    body_bytes: int = 16 << 20

    def refusal(self, target_bytes: int, headers: Iterable[tuple[bytes, bytes]]) -> Refusal | None:
        """The answer to a request with such a path and query, if it goes no further."""
        headers = list(headers)
        if target_bytes > self.target_bytes:
            return Refusal(status=414, reason="target-size", message=f"expected a path of at most {self.target_bytes} bytes")
        if len(headers) > self.headers or sum(len(name) + len(value) for name, value in headers) > self.header_bytes:
            message = f"expected at most {self.headers} headers of {self.header_bytes} bytes together"
            return Refusal(status=431, reason="header-size", message=message)
        lengths = set(header_values(headers, b"content-length"))
        if len(lengths) > 1 or not all(length.isascii() and length.isdecimal() for length in lengths):
            return Refusal(status=400, reason="content-length", message="expected one length of the body", closes=True)
        if any(len(length) > 18 or int(length) > self.body_bytes for length in lengths):
            return self.body_refusal()
        return None

    def body_refusal(self) -> Refusal:
        """The answer to a request whose body is too long: the rest of it is not read."""
        message = f"expected a body of at most {self.body_bytes} bytes"
        return Refusal(status=413, reason="body-size", message=message, closes=True)


class _BodyTooLong(Exception):
    """Leaves the application; it reaches nobody else."""


class RequestSizeLimit:
    """Middleware: refuses what is larger than :class:`RequestSizes`."""

    def __init__(self, app: ASGIApp, sizes: RequestSizes, on_refusal: OnRefusal = ignore_refusals) -> None:
        self._app, self._sizes, self._on_refusal = app, sizes, on_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        target_bytes = len(scope.get("raw_path") or scope["path"].encode()) + len(scope.get("query_string", b""))
        if (refusal := self._sizes.refusal(target_bytes, scope["headers"])) is not None:
            self._on_refusal(refusal.reason)
            await refusal(scope, receive, send)
            return
        body_bytes, is_too_long, is_started = 0, False, False

        async def bounded_receive() -> Message:
            nonlocal body_bytes, is_too_long
            message = await receive()
            if message["type"] == "http.request":
                body_bytes += len(message.get("body", b""))
                if body_bytes > self._sizes.body_bytes:
                    is_too_long = True
                    raise _BodyTooLong
            return message

        async def noted_send(message: Message) -> None:
            nonlocal is_started
            if is_too_long and not is_started:
                raise _BodyTooLong  # whatever the application makes of it
            is_started = is_started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, bounded_receive, noted_send)
        except Exception:
            # An application may wrap it, in a group of errors for one.
            if not is_too_long:
                raise
        if is_too_long and not is_started:
            refusal = self._sizes.body_refusal()
            self._on_refusal(refusal.reason)
            await refusal(scope, receive, send)
