"""Requests to an ASGI application without a server: the bytes that it is sent, and those that it answers."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCALHOST = (b"host", b"localhost:8181")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an application has answered; status 0 if nothing."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The only value of a header."""
        values = [value.decode("latin-1") for key, value in self.headers if key.decode("latin-1").lower() == name]
        assert len(values) <= 1, f"{name} is sent {len(values)} times"
        return values[0] if values else None


async def plain(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that reads the whole body and answers with its length."""
    read, has_more = 0, True
    while has_more:
        message = await receive()
        read += len(message.get("body", b""))
        has_more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": str(read).encode()})


def request(
    app: ASGIApp,
    path: str = "/",
    *,
    method: str = "GET",
    headers: Iterable[tuple[bytes, bytes]] = (LOCALHOST,),
    body: Iterable[bytes] | None = (),
    client: tuple[str, int] | None = ("127.0.0.1", 50_000),
    query: bytes = b"",
    kind: str = "http",
) -> Answer:
    """Sends one request and collects the answer. ``body``: its parts; None: it never arrives."""
    scope: dict[str, Any] = {
        "type": kind,
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": list(headers),
        "client": client,
    }
    sent: list[Message] = []
    parts = list(body or ())
    messages = [{"type": "http.request", "body": part, "more_body": place + 1 < len(parts)} for place, part in enumerate(parts)]
    if body is not None and not parts:
        messages = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop(0)
        await asyncio.Event().wait()
        raise AssertionError("nothing more arrives")

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    starts = [message for message in sent if message["type"] == "http.response.start"]
    assert len(starts) <= 1, "an answer begins once"
    return Answer(
        status=starts[0]["status"] if starts else 0,
        headers=[(bytes(name), bytes(value)) for name, value in starts[0]["headers"]] if starts else (),
        body=b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body"),
    )
