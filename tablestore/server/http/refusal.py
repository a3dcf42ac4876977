"""Answers a request that goes no further, in the form of the protocol's errors.

A refusal says what is wrong with the request and nothing else; it repeats no part of it.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

OnRefusal = Callable[[str], None]
"""Is told the reason of each refusal, a word of a small set: for counting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An answer of an error. ``reason`` is a word for counting; ``retry_after_s`` becomes the header of that name."""

    status: int
    reason: str
    message: str
    retry_after_s: int | None = None
    closes: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers, as an ASGI application."""
        body = json.dumps({"message": self.message, "resourceType": "", "resourceName": "", "code": self.status}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if self.retry_after_s is not None:
            headers.append((b"retry-after", str(self.retry_after_s).encode()))
        if self.closes:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope.get("method") == "HEAD" else body})


def header_values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    """The values of all headers of a name, which is in small letters."""
    return [value.decode("latin-1") for key, value in headers if key.lower() == name]


def ignore_refusals(reason: str) -> None:
    """Counts nothing."""
