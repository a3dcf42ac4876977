"""Gives each request an id, which its answer, its line in the audit log and its errors carry.

The id is the service's own: what a caller sends under that name is not believed.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tablestore.ids import Ids

HEADER = b"x-request-id"
_STATE = "request_id"


class RequestIds:
    """Middleware: puts an id into the state of a request and on its answer."""

    def __init__(self, app: ASGIApp, ids: Ids) -> None:
        self._app, self._ids = app, ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = self._ids.uuid()
        scope.setdefault("state", {})[_STATE] = request_id

        async def named_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name, value) for name, value in message.get("headers", ()) if name.lower() != HEADER]
                message = {**message, "headers": [*own, (HEADER, request_id.encode())]}
            await send(message)

        await self._app(scope, receive, named_send)


def request_id_of(scope: Scope) -> str:
    """The id of a request that came through :class:`RequestIds`; else the empty text."""
    return str(scope.get("state", {}).get(_STATE, ""))
