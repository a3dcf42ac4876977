"""Runs an application with uvicorn, and ends it gracefully.

    SIGTERM, Ctrl-C ── new requests get 503 with Retry-After ── those that run end ── the process ends

The second signal does not wait.
"""

import asyncio
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from tablestore.errors import InvalidInputError
from tablestore.server.application import Liveness

_BACKLOG = 2048
_KEEP_ALIVE_S = 30
# What remains for connections once no request runs: their clients have the last answers by then.
_LINGER_S = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """The address of a service. ``port`` 0 picks a free one. ``grace_s``: how long requests that run may take when it ends."""

    host: str = "127.0.0.1"
    port: int = 8181
    grace_s: float = 60.0
    certificate: str | None = None
    private_key: str | None = None
    proxies: tuple[str, ...] = ()

    @property
    def scheme(self) -> str:
        """http or https."""
        return "http" if self.certificate is None else "https"


@dataclass(slots=True, kw_only=True)
class Serving:
    """One running service. ``begun`` is called with its address once it listens."""

    app: ASGIApp
    liveness: Liveness
    listening: Listening
    begun: Callable[[str], None]
    _tasks: list["asyncio.Task[None]"] = field(default_factory=list)

    def run(self) -> None:
        """Serves until a signal. Raises InvalidInputError for an address that it cannot have."""
        listener = bound(self.listening)
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        config = uvicorn.Config(
            self.app,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_LINGER_S,
            ssl_certfile=self.listening.certificate,
            ssl_keyfile=self.listening.private_key,
            # By itself uvicorn believes every process of this machine that it is a proxy.
            proxy_headers=bool(self.listening.proxies),
            forwarded_allow_ips=list(self.listening.proxies),
        )
        try:
            server = _Server(config, self, f"{self.listening.scheme}://{shown}:{port}")
            asyncio.run(server.serve([listener]))
        finally:
            listener.close()

    def end(self, server: uvicorn.Server) -> None:
        """Begins to end; a second call ends at once."""
        if self.liveness.is_ending:
            server.should_exit = server.force_exit = True
            return
        self._tasks.append(asyncio.get_running_loop().create_task(self._drain(server)))

    async def _drain(self, server: uvicorn.Server) -> None:
        await self.liveness.drained(self.listening.grace_s)
        server.should_exit = True


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, serving: Serving, address: str) -> None:
        super().__init__(config)
        self._serving, self._address = serving, address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        loop = asyncio.get_running_loop()
        # Where the loop takes no signals (on a thread that is not the main one) who started it ends it.
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(number, self._serving.end, self)
            except (NotImplementedError, RuntimeError, ValueError):
                break
        if self.started:
            self._serving.begun(self._address)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Signals that came before the loop took them."""
        self.should_exit = True


def bound(listening: Listening) -> socket.socket:
    """A socket that listens there. Raises InvalidInputError."""
    try:
        family, _, _, _, address = socket.getaddrinfo(listening.host, listening.port, type=socket.SOCK_STREAM)[0]
        # With its protocol named: the event loop sends small answers at once (TCP_NODELAY) on such sockets alone.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise InvalidInputError(
            f"cannot listen at {listening.host!r}: {error.strerror}; pass --host with an address of this machine"
        ) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise InvalidInputError(
            f"cannot listen at {listening.host}:{listening.port}: {error.strerror}; pass --port 0 for a free one", kind="address"
        ) from error
    return listener
