"""Bounds how long a request takes: its caller, who sends it too slowly, and the service, which answers too late.

    the body is not there yet    408    it is given up: whoever sends a byte a minute holds no place for ever
    it is                        503    with Retry-After; what was begun goes on to its end, since a commit is never half of one;
                                        repeated under its own identifier it is seen to have landed

A path that answers for as long as its caller listens (events) has no limit.
"""

import asyncio
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tablestore.server.http.refusal import OnRefusal, Refusal, ignore_refusals

LIMIT_S = 60.0
_RETRY_AFTER_S = 5
_SLOW_CALLER = Refusal(status=408, reason="slow-request", message="the request did not arrive in time", closes=True)
_LATE_ANSWER = Refusal(
    status=503,
    reason="slow-answer",
    message="the answer took too long; repeat the request, a commit with the same identifier",
    retry_after_s=_RETRY_AFTER_S,
)


class RequestTimeLimit:
    """Middleware: answers requests itself after ``limit_s`` seconds, but for paths that are ``endless``."""

    def __init__(
        self,
        app: ASGIApp,
        limit_s: float = LIMIT_S,
        endless: Callable[[str], bool] = lambda path: False,
        on_refusal: OnRefusal = ignore_refusals,
    ) -> None:
        self._app, self._limit_s, self._endless, self._on_refusal = app, limit_s, endless, on_refusal
        # Requests that go on after their answer: the event loop alone would forget them.
        self._late: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._endless(scope["path"]):
            await self._app(scope, receive, send)
            return
        # A request without a body is there from the start: its application may never look.
        has_arrived, is_started, is_over = not _has_body(scope), False, False

        async def noted_receive() -> Message:
            nonlocal has_arrived
            message = await receive()
            has_arrived = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        async def noted_send(message: Message) -> None:
            nonlocal is_started
            if not is_over:
                is_started = is_started or message["type"] == "http.response.start"
                await send(message)

        async def answer() -> None:
            await self._app(scope, noted_receive, noted_send)

        task = asyncio.create_task(answer())
        try:
            await asyncio.wait({task}, timeout=self._limit_s)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.done():
            await task
            return
        is_over = True
        if has_arrived:
            self._late.add(task)
            task.add_done_callback(self._end)
        else:
            task.cancel()
        refusal = _LATE_ANSWER if has_arrived else _SLOW_CALLER
        self._on_refusal(refusal.reason)
        if not is_started:
            await refusal(scope, receive, send)
        # Else the server sees that the answer has no end, and hangs up.

    def _end(self, task: "asyncio.Task[None]") -> None:
        self._late.discard(task)
        if not task.cancelled():
            task.exception()  # the application has logged it; nobody else waits for it


def _has_body(scope: Scope) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") and value != b"0" for name, value in scope["headers"])
