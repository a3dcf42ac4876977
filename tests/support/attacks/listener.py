"""Hosts of an attacker's, on loopback: they note whoever calls, and what is said to them."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SSL_OR_GSS = (80877103, 80877104)


class Listener:
    """A host that notes what it is sent; ``answer`` is all that it says."""

    def __init__(self, answer: bytes = b"") -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._answer = answer
        self.calls: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        host, port = self._server.getsockname()
        return f"{host}:{port}"

    @property
    def said(self) -> bytes:
        return b"".join(self.calls)

    def close(self) -> None:
        # Closing alone does not wake who waits for a caller.
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(5)

    def _serve(self) -> None:
        while True:
            try:
                caller, _ = self._server.accept()
            except OSError:
                return
            self.calls.append(b"")
            with caller:
                caller.settimeout(2)
                try:
                    self._talk(caller)
                except OSError:
                    continue

    def _talk(self, caller: socket.socket) -> None:
        self.calls[-1] += caller.recv(1 << 16)
        caller.sendall(self._answer)


class PasswordListener(Listener):
    """A host that says it is PostgreSQL, and asks for the password in clear text."""

    def _talk(self, caller: socket.socket) -> None:
        while (begun := caller.recv(1 << 16)) and int.from_bytes(begun[4:8]) in _SSL_OR_GSS:
            caller.sendall(b"N")
        caller.sendall(b"R" + (8).to_bytes(4) + (3).to_bytes(4))
        self.calls[-1] += begun + caller.recv(1 << 16)


@contextmanager
def listening(listener: Listener) -> Iterator[Listener]:
    try:
        yield listener
    finally:
        listener.close()
