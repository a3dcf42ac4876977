"""Size, time and rate of requests."""

import asyncio
import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from tablestore.server.http.requestrate import RequestLimiter, RequestRate, RequestRateLimit, address_key
from tablestore.server.http.requestsize import RequestSizeLimit, RequestSizes
from tablestore.server.http.requesttime import RequestTimeLimit
from tablestore.testing.deterministic import ManualClock
from tests.support.asgi import LOCALHOST, Answer, plain, request

SMALL = RequestSizes(target_bytes=20, headers=3, header_bytes=60, body_bytes=10)


def sized(path: str = "/", *headers: tuple[bytes, bytes], body: Iterable[bytes] = (), query: bytes = b"") -> Answer:
    return request(RequestSizeLimit(plain, SMALL), path, headers=headers, body=body, query=query)


# ---- size


def test_what_is_within_the_bounds_passes() -> None:
    assert sized("/" * 15, (b"a", b"b"), (b"content-length", b"10"), body=[b"12345", b"67890"], query=b"12345").body == b"10"


@pytest.mark.parametrize(("path", "query"), [("/" * 21, b""), ("/" * 10, b"x" * 11)])
def test_a_long_path_is_refused(path: str, query: bytes) -> None:
    assert sized(path, query=query).status == 414


@pytest.mark.parametrize("headers", [[(b"a", b"b")] * 4, [(b"a", b"b" * 60)], [(b"a" * 60, b"b")]])
def test_many_or_long_headers_are_refused(headers: list[tuple[bytes, bytes]]) -> None:
    assert sized("/", *headers).status == 431


def test_a_body_that_says_its_length_is_refused_before_it_is_read() -> None:
    async def unread(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("the application is not asked")

    answer = request(RequestSizeLimit(unread, SMALL), headers=[(b"content-length", b"11")], body=None)
    assert (answer.status, answer.header("connection")) == (413, "close")


@pytest.mark.parametrize("parts", [[b"12345678901"], [b"123456", b"78901"], [b"1"] * 11])
def test_a_body_that_hides_its_length_is_refused_while_it_is_read(parts: list[bytes]) -> None:
    answer = sized("/", (b"transfer-encoding", b"chunked"), body=parts)
    assert (answer.status, json.loads(answer.body)["code"]) == (413, 413)


def test_an_application_that_catches_everything_cannot_turn_a_long_body_into_success() -> None:
    async def stubborn(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await plain(scope, receive, send)
        except Exception as error:
            try:
                await send({"type": "http.response.start", "status": 200, "headers": []})
            except Exception:
                raise ExceptionGroup("two", [error]) from error

    assert request(RequestSizeLimit(stubborn, SMALL), body=[b"x" * 11]).status == 413


def test_a_long_body_is_refused_under_starlette_too() -> None:
    async def read(received: Request) -> PlainTextResponse:
        return PlainTextResponse(str(len(await received.body())))

    app = RequestSizeLimit(Starlette(routes=[Route("/", read, methods=["POST"])]), SMALL)
    assert [request(app, method="POST", body=[b"x" * length]).status for length in (10, 11)] == [200, 413]


@pytest.mark.parametrize("lengths", [["x"], ["-1"], ["1", "2"], ["0x5"], ["1_0"], ["\u0661"], [""], ["1, 1"], ["+1"]])
def test_a_length_that_is_no_number_is_a_bad_request(lengths: list[str]) -> None:
    assert sized("/", *[(b"content-length", length.encode()) for length in lengths]).status == 400


@given(
    st.lists(st.tuples(st.sampled_from([b"content-length", b"a"]), st.binary(max_size=30)), max_size=5),
    st.lists(st.binary(max_size=8)),
)
def test_no_headers_and_bodies_make_an_error(headers: list[tuple[bytes, bytes]], body: list[bytes]) -> None:
    answer = sized("/", *headers, body=body)
    assert answer.status in (200, 400, 413, 431)
    assert answer.status != 200 or sum(map(len, body)) <= 10


def test_an_error_of_the_application_is_its_own() -> None:
    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        request(RequestSizeLimit(failing, SMALL))
    with pytest.raises(KeyError):
        request(RequestTimeLimit(failing, 60))


# ---- time


async def late(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await asyncio.Event().wait()


def test_a_caller_who_does_not_send_is_refused_and_a_late_answer_says_when_to_come_again() -> None:
    slow = request(RequestTimeLimit(plain, 0), method="POST", headers=[(b"content-length", b"5")], body=None)
    assert (slow.status, slow.header("connection"), slow.header("retry-after")) == (408, "close", None)
    answered_late = request(RequestTimeLimit(late, 0), method="POST", headers=[(b"content-length", b"5")], body=[b"12345"])
    no_body = request(RequestTimeLimit(late, 0), headers=[(b"content-length", b"0")])
    for answer in (answered_late, no_body):
        assert answer.status == 503
        assert int(answer.header("retry-after") or 0) > 0


def test_a_body_of_which_a_part_never_arrives_is_a_slow_caller() -> None:
    async def first_part(scope: Scope, receive: Receive, send: Send) -> None:
        assert (await receive())["more_body"]
        await asyncio.Event().wait()

    answer = request(RequestTimeLimit(first_part, 0), headers=[(b"transfer-encoding", b"chunked")], body=[b"1", b"2"])
    assert answer.status == 408


def test_what_was_begun_goes_on_to_its_end_and_answers_nobody_twice() -> None:
    ends: list[str] = []

    async def run() -> list[int]:
        may_end, has_ended = asyncio.Event(), asyncio.Event()

        async def commit(scope: Scope, receive: Receive, send: Send) -> None:
            await may_end.wait()
            ends.append("landed")
            await send({"type": "http.response.start", "status": 200, "headers": []})
            has_ended.set()
            raise KeyError("nobody waits for this")

        statuses: list[int] = []

        async def send(message: Message) -> None:
            statuses.append(message.get("status", 0))

        async def receive() -> Message:
            raise AssertionError("a request without a body")

        await RequestTimeLimit(commit, 0)({"type": "http", "path": "/", "headers": []}, receive, send)
        assert ends == []
        may_end.set()
        await has_ended.wait()
        return statuses

    assert asyncio.run(run()) == [503, 0]
    assert ends == ["landed"]


def test_a_request_that_did_not_arrive_is_given_up() -> None:
    async def run() -> None:
        given_up = asyncio.Event()

        async def reading(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                given_up.set()

        async def receive() -> Message:
            raise AssertionError("nothing arrives")

        async def send(message: Message) -> None: ...

        started = [(b"content-length", b"5")]
        # A turn of the loop, in which the request begins.
        await RequestTimeLimit(reading, 0.001)({"type": "http", "path": "/", "headers": started}, receive, send)
        await asyncio.wait_for(given_up.wait(), 30)

    asyncio.run(run())


def test_a_length_of_thousands_of_digits_is_too_long() -> None:
    assert request(RequestSizeLimit(plain, RequestSizes()), headers=[(b"content-length", b"9" * 5000)]).status == 413


def test_an_answer_that_has_begun_is_not_begun_again() -> None:
    async def half(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.Event().wait()

    reasons: list[str] = []
    assert request(RequestTimeLimit(half, 0, on_refusal=reasons.append)).status == 200
    assert reasons == ["slow-answer"]


def test_events_are_sent_for_as_long_as_their_caller_listens() -> None:
    app = RequestTimeLimit(plain, -1, lambda path: path == "/events")
    assert request(app, "/events").status == 200
    assert request(RequestTimeLimit(late, -1, lambda path: path == "/events"), "/other").status == 503


def test_a_timeout_inside_of_the_application_is_its_own() -> None:
    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        raise TimeoutError("the store")

    with pytest.raises(TimeoutError, match="the store"):
        request(RequestTimeLimit(failing, 60))


# ---- rate


def test_a_burst_passes_and_then_the_rate() -> None:
    clock = ManualClock()
    limiter = RequestLimiter(RequestRate(per_s=2, burst=3), clock)
    assert [limiter.refusal("a") is None for _ in range(5)] == [True, True, True, False, False]
    clock.advance(0.5)
    assert [limiter.refusal("a") is None for _ in range(2)] == [True, False]
    clock.advance(3600)
    assert [limiter.refusal("a") is None for _ in range(4)] == [True, True, True, False]


def test_callers_have_buckets_of_their_own() -> None:
    limiter = RequestLimiter(RequestRate(per_s=1, burst=1), ManualClock())
    assert [limiter.refusal(key) is None for key in ("a", "b", "a", "b")] == [True, True, False, False]


def test_a_refusal_says_how_long_to_wait() -> None:
    clock = ManualClock()
    limiter = RequestLimiter(RequestRate(per_s=0.1, burst=1), clock)
    assert limiter.refusal("a") is None
    refusal = limiter.refusal("a")
    assert refusal is not None
    assert (refusal.status, refusal.retry_after_s) == (429, 10)
    clock.advance(10)
    assert limiter.refusal("a") is None


def test_refused_requests_cost_their_caller_nothing_more() -> None:
    clock = ManualClock()
    limiter = RequestLimiter(RequestRate(per_s=1, burst=1), clock)
    assert [limiter.refusal("a") is None for _ in range(100)].count(True) == 1
    clock.advance(1)
    assert limiter.refusal("a") is None


def test_the_callers_that_are_remembered_are_bounded_and_the_busy_ones_stay() -> None:
    limiter = RequestLimiter(RequestRate(per_s=0.001, burst=1), ManualClock(), most_keys=10)
    assert limiter.refusal("busy") is None
    for number in range(100):
        assert limiter.refusal(f"stranger {number}") is None
        assert limiter.refusal("busy") is not None
    assert len(limiter._buckets) == 10


def test_the_answer_names_no_caller_and_says_when_to_come_again() -> None:
    reasons: list[str] = []
    app = RequestRateLimit(plain, RequestLimiter(RequestRate(per_s=1, burst=1), ManualClock()), on_refusal=reasons.append)
    assert request(app).status == 200
    answer = request(app)
    assert (answer.status, answer.header("retry-after"), reasons) == (429, "1", ["rate"])
    assert b"127.0.0.1" not in answer.body
    assert request(app, client=("10.0.0.1", 1)).status == 200
    assert request(app, client=("10.0.0.1", 2)).status == 429, "a further port is no further caller"


def test_who_has_no_address_shares_one_bucket() -> None:
    assert address_key({"client": None}) == address_key({}) == "address unknown"


def test_a_head_request_is_answered_without_a_body() -> None:
    app = RequestSizeLimit(plain, SMALL)
    answer = request(app, "/" * 30, method="HEAD", headers=[LOCALHOST])
    assert (answer.status, answer.body) == (414, b"")
    assert int(answer.header("content-length") or 0) > 0
