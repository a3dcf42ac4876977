"""Holds the streams of events that pages of jobs listen to: one look at the warehouse for all of them.

    streams  ── wait ──┐
    the watcher        └ every few seconds, while there is a stream: who may still listen ── what they see ── an event for each
                                                                     no longer: its stream ends

Streams of one caller get the same bytes, and only when these have changed; else a comment shows now and then that it is alive. A
stream is one task of the event loop and holds no thread. They are bounded, and end when the service does.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tablestore.errors import TablestoreError
from tablestore.server.protocol.errorresponse import RequestRefused, unavailable

LOG = logging.getLogger(__name__)

MOST_STREAMS = 2_000
EVERY_S = 3.0
# A heartbeat comes with every so many looks: proxies close what is silent for a minute.
SILENT_LOOKS = 5
# It rests so many times as long as a look takes: a large warehouse takes longer.
_REST = 4.0
_HEARTBEAT = b": alive\n\n"

Look = Callable[[Iterable[str | None]], Mapping[str | None, bytes | None]]
"""The event of each Authorization header, None for one that opens nothing any more. Blocks."""


@dataclass(slots=True, kw_only=True)
class EventStreams:
    """All streams. ``in_thread`` runs what blocks. Used by the thread of the event loop alone."""

    look: Look
    in_thread: Callable[[Callable[[], Mapping[str | None, bytes | None]]], Awaitable[Mapping[str | None, bytes | None]]]
    most: int = MOST_STREAMS
    every_s: float = EVERY_S
    looks: int = 0
    _headers: Counter[str | None] = field(default_factory=Counter)
    _events: Mapping[str | None, bytes | None] = field(default_factory=dict)
    _has_looked: asyncio.Event = field(default_factory=asyncio.Event)
    _is_wanted: asyncio.Event = field(default_factory=asyncio.Event)
    _watcher: "asyncio.Task[None] | None" = None
    _is_over: bool = False

    @property
    def open(self) -> int:
        """The number of streams."""
        return self._headers.total()

    def check_room(self) -> None:
        """Raises RequestRefused where there are too many streams, or the service ends."""
        if self._is_over or self.open >= self.most:
            raise unavailable("there are too many streams of events" if not self._is_over else "the service is ending")

    def end(self) -> None:
        """Ends all streams."""
        self._is_over = True
        self._announce()

    async def listen(self, header: str | None) -> AsyncGenerator[bytes, None]:
        """The events for the caller that an Authorization header names, until it may listen no more. Raises RequestRefused."""
        self.check_room()
        self._headers[header] += 1
        try:
            if self._watcher is None or self._watcher.done():
                self._watcher = asyncio.get_running_loop().create_task(self._watch())
            last, silent = b"", 0
            has_looked = self._has_looked
            if header not in self._events:
                self._is_wanted.set()
                await has_looked.wait()
            while not self._is_over:
                has_looked, event = self._has_looked, self._events.get(header, last)
                if event is None:
                    return
                silent = 0 if event != last else silent + 1
                if event != last:
                    last = event
                    yield event
                elif silent % SILENT_LOOKS == 0:
                    yield _HEARTBEAT
                await has_looked.wait()
        finally:
            self._headers[header] -= 1
            if not self._headers[header]:
                del self._headers[header]

    async def _watch(self) -> None:
        """Looks while there is a stream."""
        while self._headers and not self._is_over:
            self._is_wanted.clear()
            headers, began_s = tuple(self._headers), asyncio.get_running_loop().time()
            try:
                self._events = await self.in_thread(lambda headers=headers: self.look(headers))  # type: ignore[misc]
                self.looks += 1
            except (TablestoreError, RequestRefused) as error:
                # What was seen last stays.
                LOG.warning("jobs cannot be looked at: %s", error)
            except Exception:  # A fault: it may be gone with the next look, and the streams wait for that.
                LOG.exception("jobs cannot be looked at")
            self._announce()
            try:
                took_s = asyncio.get_running_loop().time() - began_s
                await asyncio.wait_for(self._is_wanted.wait(), max(self.every_s, took_s * _REST))
            except TimeoutError:
                continue
        self._events = {}

    def _announce(self) -> None:
        announced, self._has_looked = self._has_looked, asyncio.Event()
        announced.set()
