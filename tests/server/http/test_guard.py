"""All checks together, the headers of every answer, request ids, and forms."""

import asyncio
import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send

from tablestore.ids import SystemIds
from tablestore.server.http.csrf import CsrfTokens
from tablestore.server.http.guard import GuardSettings, guarded
from tablestore.server.http.hosts import host_rules
from tablestore.server.http.requestids import request_id_of
from tablestore.server.http.requestrate import RequestLimiter, RequestRate
from tablestore.server.http.requestsize import RequestSizes
from tablestore.server.http.securityheaders import CONTENT_SECURITY_POLICY, HEADERS, SecurityHeaders
from tablestore.testing.deterministic import ManualClock, SeededIds
from tests.support.asgi import LOCALHOST, plain, request


def service(
    app: object = plain, *, is_secure: bool = False, burst: int = 1000, reasons: list[str] | None = None, limit_s: float = 60
):  # type: ignore[no-untyped-def]
    settings = GuardSettings(
        hosts=host_rules("127.0.0.1"),
        is_secure=is_secure,
        sizes=RequestSizes(body_bytes=100),
        time_limit_s=limit_s,
        endless=lambda path: path == "/events",
    )
    limiter = RequestLimiter(RequestRate(per_s=1, burst=burst), ManualClock())
    on_refusal = (reasons if reasons is not None else []).append
    return guarded(app, settings, limiter=limiter, ids=SeededIds(1), on_refusal=on_refusal)  # type: ignore[arg-type]


async def waiting(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.Event().wait()


def test_every_answer_has_the_headers_and_an_id_also_that_of_a_refusal() -> None:
    answers = [
        request(service()),
        request(service(), headers=[(b"host", b"evil.example")]),
        request(service(), headers=[]),
        request(service(), headers=[LOCALHOST, (b"origin", b"http://evil.example")]),
        request(service(), "/" * 10_000),
        request(service(), headers=[LOCALHOST] + [(b"a", b"b")] * 200),
        request(service(), headers=[LOCALHOST, (b"content-length", b"101")]),
        request(service(burst=0)),
        request(service(waiting, limit_s=0)),
    ]
    assert [answer.status for answer in answers] == [200, 421, 400, 403, 414, 431, 413, 429, 503]
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.header(name.decode()) == value.decode()
        assert answer.header("cache-control") == "no-store"
        assert re.fullmatch(r"[0-9a-f-]{36}", answer.header("x-request-id") or "")
        assert answer.header("server") is None
        assert answer.header("strict-transport-security") is None


def test_each_refusal_is_counted_once() -> None:
    reasons: list[str] = []
    request(service(reasons=reasons), headers=[(b"host", b"evil.example")])
    request(service(reasons=reasons), body=[b"x" * 101])
    request(service(waiting, limit_s=0, reasons=reasons))
    request(service(reasons=reasons))
    assert reasons == ["host", "body-size", "slow-answer"]


def test_a_refused_host_takes_no_permit_of_its_address() -> None:
    app = service(burst=1)
    assert [request(app, headers=[(b"host", b"evil.example")]).status for _ in range(3)] == [421] * 3
    assert request(app).status == 200


def test_a_browser_that_came_over_tls_stays_there() -> None:
    answer = request(service(is_secure=True))
    assert (answer.header("strict-transport-security") or "").startswith("max-age=")


def test_a_web_socket_is_closed_unopened() -> None:
    async def opened(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("nobody is here")

    assert request(service(opened), kind="websocket").status == 0


def test_starting_and_stopping_reaches_the_application() -> None:
    reached: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope["type"])

    request(service(app), kind="lifespan")
    assert reached == ["lifespan"]


def test_the_policy_lets_nothing_in_from_elsewhere_and_no_script_inside_of_a_page() -> None:
    policy = dict(part.split(" ", 1) for part in CONTENT_SECURITY_POLICY.split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert {source for sources in policy.values() for source in sources.split()} == {"'none'", "'self'", "data:"}
    assert policy["script-src"] == "'self'", "no inline script, no eval, no data:"


def test_an_application_cannot_weaken_the_headers_but_says_itself_what_caches_may_keep() -> None:
    async def lax(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [
            (b"Content-Security-Policy", b"default-src *"),
            (b"Server", b"x/1"),
            (b"cache-control", b"max-age=60"),
            (b"a", b"b"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    answer = request(SecurityHeaders(lax, is_secure=False))
    assert answer.header("content-security-policy") == CONTENT_SECURITY_POLICY
    assert (answer.header("server"), answer.header("cache-control"), answer.header("a")) == (None, "max-age=60", "b")


def test_a_request_has_one_id_which_is_the_services_own() -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(request_id_of(scope))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-request-id", b"forged")]})

    built = service(app)
    answers = [request(built, headers=[LOCALHOST, (b"x-request-id", b"mine\nforged: 1")]) for _ in range(2)]
    assert [answer.header("x-request-id") for answer in answers] == seen
    assert len(set(seen)) == 2
    assert request_id_of({}) == ""


@given(
    st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=40)), max_size=8),
    st.lists(st.binary(max_size=60), max_size=3),
    st.text(max_size=40),
)
def test_no_request_makes_an_error(headers: list[tuple[bytes, bytes]], body: list[bytes], path: str) -> None:
    path = path.encode("utf-8", "replace").decode()
    for sent in (headers, [LOCALHOST, *headers]):
        assert request(service(), path, headers=sent, body=body).status in (200, 400, 403, 413, 421)


# ---- forms


def test_a_form_of_a_page_of_ours_is_taken_from_the_caller_who_saw_it() -> None:
    tokens = CsrfTokens(SystemIds(), is_secure=True)
    token = tokens.issue("ada")
    assert tokens.holds("ada", token, token)
    assert not tokens.holds("eve", token, token)
    assert not tokens.holds("", token, token)
    assert tokens.issue("ada") != token


def test_both_copies_are_needed_and_one_of_another_process_is_none() -> None:
    tokens, others = (CsrfTokens(SystemIds(), is_secure=True) for _ in range(2))
    token, other, foreign = tokens.issue("ada"), tokens.issue("ada"), others.issue("ada")
    for cookie, field in [(None, token), (token, None), (token, ""), (token, other), (token, token + "A"), (foreign, foreign)]:
        assert not tokens.holds("ada", cookie, field)
    nonce, signature = token.split(".")
    for forged in (
        nonce,
        f"{nonce}.",
        f".{signature}",
        f"{signature}.{nonce}",
        f"{nonce[:-4]}.{signature}",
        f"{nonce}AA.{signature}",
    ):
        assert not tokens.holds("ada", forged, forged)


def test_no_name_of_a_caller_takes_over_a_part_of_the_nonce() -> None:
    tokens = CsrfTokens(SeededIds(1), is_secure=True)
    nonce, signature = tokens.issue("xada").split(".")
    longer = base64.urlsafe_b64encode(base64.urlsafe_b64decode(nonce + "==") + b"x").rstrip(b"=").decode()
    assert not tokens.holds("ada", f"{longer}.{signature}", f"{longer}.{signature}")


@given(st.text(), st.text())
def test_no_text_is_a_token_of_a_form(caller: str, text: str) -> None:
    assert not CsrfTokens(SeededIds(1), is_secure=False).holds(caller, text, text)


@pytest.mark.parametrize(
    ("is_secure", "expected"),
    [
        (True, "__Host-tablestore-csrf=T; Path=/; HttpOnly; SameSite=Strict; Secure"),
        (False, "tablestore-csrf=T; Path=/; HttpOnly; SameSite=Strict"),
    ],
)
def test_the_cookie_stays_with_this_host_and_away_from_scripts(is_secure: bool, expected: str) -> None:
    assert CsrfTokens(SeededIds(1), is_secure=is_secure).set_cookie("T") == expected
