"""Streams of events share one look at the warehouse, and end with the right to listen, or with the service."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.server.eventstreams import SILENT_LOOKS, EventStreams
from tablestore.server.protocol.errorresponse import RequestRefused
from tests.support.servers.catalogservice import CatalogService

Events = dict[str | None, bytes | None]


class World:
    """What is to be seen, and how often it was looked at for whom."""

    def __init__(self, **events: bytes | None) -> None:
        self.events: Events = {}
        self.events.update((header, event) for header, event in events.items())
        self.looks: list[tuple[str | None, ...]] = []

    def look(self, headers: Iterable[str | None]) -> Mapping[str | None, bytes | None]:
        self.looks.append(tuple(headers))
        return {header: self.events.get(header) for header in self.looks[-1]}


async def at_once(work: Callable[[], Mapping[str | None, bytes | None]]) -> Mapping[str | None, bytes | None]:
    return work()


def run(world: World, steps: Callable[[EventStreams], Awaitable[None]], *, every_s: float = 3_600.0, most: int = 10) -> None:
    async def all_steps() -> None:
        streams = EventStreams(look=world.look, in_thread=at_once, every_s=every_s, most=most)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait_for(steps(streams), 60)
        streams.end()

    asyncio.run(all_steps())


def test_one_look_serves_all_streams_of_all_callers() -> None:
    world = World(a=b"for a", b=b"for b")

    async def steps(streams: EventStreams) -> None:
        listeners = [streams.listen(header) for header in ("a", "b", "a", "b", "a")]
        firsts = await asyncio.gather(*(anext(one) for one in listeners))
        assert firsts == [b"for a", b"for b", b"for a", b"for b", b"for a"]
        assert streams.open == 5
        assert [sorted(map(str, one)) for one in world.looks[-1:]] == [["a", "b"]]
        # Who comes later sees what was seen, and nobody looks again for it.
        looks = len(world.looks)
        assert await anext(streams.listen("a")) == b"for a"
        assert len(world.looks) == looks
        for one in listeners:
            await one.aclose()

    run(world, steps)


def test_what_has_not_changed_is_not_sent_again_but_a_sign_of_life_is() -> None:
    world = World(a=b"one")

    async def steps(streams: EventStreams) -> None:
        listener = streams.listen("a")
        assert await anext(listener) == b"one"
        before = streams.looks
        assert await anext(listener) == b": alive\n\n"
        assert streams.looks - before >= SILENT_LOOKS
        world.events["a"] = b"two"
        assert [one async for one in _some(listener, b"two")][-1] == b"two"

    run(world, steps, every_s=0.0)


async def _some(listener: AsyncIterator[bytes], last: bytes) -> AsyncIterator[bytes]:
    async for one in listener:
        yield one
        if one == last:
            return


def test_a_stream_ends_when_its_token_opens_nothing_any_more() -> None:
    world = World(a=b"one", b=b"other")

    async def steps(streams: EventStreams) -> None:
        listener, other = streams.listen("a"), streams.listen("b")
        assert await anext(listener) == b"one"
        assert await anext(other) == b"other"
        world.events["a"] = None
        assert [one async for one in listener if not one.startswith(b":")] == []
        assert streams.open == 1
        world.events["b"] = b"still here"
        assert [one async for one in _some(other, b"still here")][-1] == b"still here"

    run(world, steps, every_s=0.0)


def test_streams_are_bounded_and_make_room_when_they_end() -> None:
    async def steps(streams: EventStreams) -> None:
        listeners = [streams.listen("a") for _ in range(2)]
        for one in listeners:
            await anext(one)
        with pytest.raises(RequestRefused) as refused:
            await anext(streams.listen("a"))
        assert refused.value.response.code == 503
        assert refused.value.response.retry_after_s
        await listeners[0].aclose()
        assert await anext(streams.listen("a")) == b"one"

    run(World(a=b"one"), steps, most=2)


def test_all_streams_end_with_the_service_and_no_other_begins() -> None:
    async def steps(streams: EventStreams) -> None:
        listener = streams.listen("a")
        assert await anext(listener) == b"one"
        streams.end()
        assert [one async for one in listener] == []
        assert streams.open == 0
        with pytest.raises(RequestRefused):
            streams.check_room()

    run(World(a=b"one"), steps)


def test_a_look_that_fails_ends_no_stream() -> None:
    world = World(a=b"one")
    look = world.look

    async def steps(streams: EventStreams) -> None:
        listener = streams.listen("a")
        assert await anext(listener) == b"one"

        def failing(headers: Iterable[str | None]) -> Mapping[str | None, bytes | None]:
            streams.look = look
            world.events["a"] = b"two"
            raise ts.StorageError("the store does not answer")

        streams.look = failing
        assert [one async for one in _some(listener, b"two")][-1] == b"two"

    run(world, steps, every_s=0.0)


def test_a_browser_keeps_its_stream_until_the_service_ends(tmp_path: Path) -> None:
    ts.open_catalog(str(tmp_path / "wh")).create_database("shop")
    with CatalogService(tmp_path / "wh") as service:
        host, port = service.address.removeprefix("http://").rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=60) as stream:
            stream.sendall(f"GET /page/jobs/events HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            received = b""
            while b"event: jobs" not in received:
                received += stream.recv(65_536)
            assert b"content-type: text/event-stream" in received.lower()
            assert b"content-security-policy" in received.lower()
            assert service.end() == 0
            while part := stream.recv(65_536):
                received += part
            # The last chunk: the answer is whole, the browser comes again by itself.
            assert received.endswith(b"0\r\n\r\n")
