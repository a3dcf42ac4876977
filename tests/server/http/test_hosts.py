"""Names and origins: a browser that a foreign page sends here is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tablestore as ts
from tablestore.server.http.hosts import HostCheck, host_rules
from tests.support.asgi import plain, request

LOCAL = host_rules("127.0.0.1")
TEAM = host_rules("0.0.0.0", ["Tables.Example.com"], ["https://board.example.com"])


def status(*headers: tuple[bytes, bytes], rules: object = LOCAL) -> int:
    return request(HostCheck(plain, rules), headers=headers).status  # type: ignore[arg-type]


@pytest.mark.parametrize("host", [b"localhost", b"LOCALHOST:8181", b"127.0.0.1:1", b"[::1]:80", b"[::1]"])
def test_the_machine_has_three_names(host: bytes) -> None:
    assert status((b"host", host)) == 200


@pytest.mark.parametrize(
    "host",
    [
        b"evil.example",
        b"evil.example:8181",
        b"localhost.evil.example",
        b"127.0.0.1.evil.example",
        b"localhost.",
        b"127.0.0.2",
        b"[::2]",
    ],
)
def test_another_name_is_misdirected(host: bytes) -> None:
    assert status((b"host", host)) == 421


@pytest.mark.parametrize(
    "host",
    [
        *(
            b"",
            b" localhost",
            b"localhost:",
            b"localhost:x",
            b"localhost:999999",
            b"user@localhost",
            b"localhost/x",
            b"a,localhost",
        ),
        *(b"[::1", b"::1", b"local\xc3\xb6", b"localhost\x00", b"." * 300, b"a" * 300),
    ],
)
def test_a_malformed_name_is_a_bad_request(host: bytes) -> None:
    assert status((b"host", host)) == 400


def test_one_name_is_needed() -> None:
    assert status() == 400
    assert status((b"host", b"localhost"), (b"host", b"localhost")) == 400
    assert status((b"host", b"localhost"), (b"Host", b"evil.example")) == 400


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (b"http://localhost:8181", 200),
        (b"https://LOCALHOST:8181", 200),
        (b"http://localhost", 403),
        (b"http://localhost:8182", 403),
        (b"http://evil.example", 403),
        (b"null", 403),
        (b"", 403),
        (b"file://", 403),
        (b"http://localhost:8181@evil.example", 403),
        (b"http://localhost:8181/", 403),
        (b"http://localhost:8181 http://evil.example", 403),
    ],
)
def test_a_page_of_another_origin_sends_nothing(origin: bytes, expected: int) -> None:
    assert status((b"host", b"localhost:8181"), (b"origin", origin)) == expected


def test_two_origins_are_none() -> None:
    host = (b"host", b"localhost:8181")
    assert status(host, (b"origin", b"http://localhost:8181"), (b"origin", b"http://localhost:8181")) == 403


def test_a_service_has_the_names_that_it_is_given() -> None:
    host = (b"host", b"tables.example.com")
    assert status(host, rules=TEAM) == 200
    assert status(host, (b"origin", b"https://board.example.com"), rules=TEAM) == 200
    assert status(host, (b"origin", b"https://other.example.com"), rules=TEAM) == 403
    assert status((b"host", b"localhost"), rules=TEAM) == 421
    named = host_rules("10.0.0.7")
    assert [status((b"host", name), rules=named) for name in (b"10.0.0.7:8181", b"10.0.0.8")] == [200, 421]
    assert status((b"host", b"[2001:db8::1]"), rules=host_rules("2001:DB8::1")) == 200


@pytest.mark.parametrize("name", ["", "*", "https://a.example", "a.example:80", "a b", "*.example.com"])
def test_a_name_is_no_pattern_and_no_address_of_a_page(name: str) -> None:
    with pytest.raises(ts.InvalidInputError, match="--allowed-host"):
        host_rules("127.0.0.1", [name])


@pytest.mark.parametrize("origin", ["*", "null", "a.example", "https://", "https://a.example/x"])
def test_an_origin_is_no_pattern(origin: str) -> None:
    with pytest.raises(ts.InvalidInputError, match="--allowed-origin"):
        host_rules("127.0.0.1", [], [origin])


def test_a_service_at_all_addresses_has_to_know_its_name() -> None:
    with pytest.raises(ts.InvalidInputError, match="--allowed-host"):
        host_rules("0.0.0.0")


@given(st.binary(max_size=60))
def test_no_other_bytes_are_a_name_of_the_machine(host: bytes) -> None:
    if status((b"host", host)) == 200:
        assert host.lower().partition(b"]")[0] == b"[::1" or host.lower().partition(b":")[0] in (b"localhost", b"127.0.0.1")


def test_refusals_are_counted_by_a_word() -> None:
    reasons: list[str] = []
    app = HostCheck(plain, LOCAL, reasons.append)
    for headers in ([(b"host", b"evil.example")], [(b"host", b"localhost"), (b"origin", b"null")], [(b"host", b"localhost")]):
        request(app, headers=headers)
    assert reasons == ["host", "origin"]
