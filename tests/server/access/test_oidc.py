"""Tokens of an issuer: a server of this test publishes the keys, and everything that is not quite right is refused."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

import tablestore as ts
from tablestore.server.access.denials import Unauthenticated
from tablestore.server.access.oidc import (
    DISCOVERY,
    KEYS_GRACE_S,
    KEYS_LIFE_S,
    KEYS_PAUSE_S,
    LEEWAY_MS,
    MOST_ANSWER_BYTES,
    IssuerKeys,
    IssuerSettings,
    IssuerTokens,
    fetch_over_http,
    load_issuer,
    parse_issuer,
)
from tablestore.server.access.roles import Grant, Principal, Resource, Role
from tablestore.testing.deterministic import ManualClock

RSA, OTHER_RSA = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
EC = ec.generate_private_key(ec.SECP256R1())
NOW_S = 1_772_352_000
NOW = NOW_S * 1000
ADDRESS = "https://login.example.com/realm"
READER, ADMIN = Grant(Role.READER, Resource("shop")), Grant(Role.ADMIN)
SETTINGS = IssuerSettings(
    issuer=ADDRESS, audience="tablestore", name_claim="email", grants={"analysts": (READER,), "platform": (ADMIN, READER)}
)
CLAIMS = {"iss": ADDRESS, "aud": "tablestore", "exp": NOW_S + 600, "email": "ada@example.com", "groups": ["analysts", "unknown"]}


def public(key: Any, key_id: str, **more: str) -> dict[str, Any]:
    algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": key_id, **more}


KEYS = [public(RSA, "r", use="sig", alg="RS256"), public(EC, "e"), public(OTHER_RSA, "enc", use="enc")]


def signed(claims: Mapping[str, Any], key: Any = RSA, algorithm: str = "RS256", key_id: str | None = "r") -> str:
    return jwt.encode(dict(claims), key, algorithm=algorithm, headers={} if key_id is None else {"kid": key_id})


class Answers:
    """An issuer in memory, which counts what it is asked."""

    def __init__(self, keys: list[dict[str, Any]] = KEYS, issuer: str = ADDRESS) -> None:
        self.keys, self.issuer, self.asked, self.is_down = keys, issuer, list[str](), False
        self.address = "https://login.example.com/keys"

    def __call__(self, address: str) -> bytes:
        self.asked.append(address)
        if self.is_down:
            raise ts.StorageError("down")
        if address.endswith(DISCOVERY):
            return json.dumps({"issuer": self.issuer, "jwks_uri": self.address}).encode()
        return json.dumps({"keys": self.keys}).encode()


def door(answers: Answers | None = None, clock: ManualClock | None = None) -> IssuerTokens:
    return IssuerTokens(SETTINGS, IssuerKeys(ADDRESS, clock or ManualClock(), answers or Answers()))


def changed(**claims: Any) -> dict[str, Any]:
    return {key: value for key, value in {**CLAIMS, **claims}.items() if value is not ...}


@pytest.mark.parametrize(
    "token",
    [
        signed(CLAIMS),
        signed(CLAIMS, EC, "ES256", "e"),
        signed(changed(aud=["other", "tablestore"])),
        signed(changed(nbf=NOW_S, iat=NOW_S)),
        signed(changed(groups="analysts")),
    ],
    ids=["RS256", "ES256", "one of several audiences", "from now on", "one group"],
)
def test_a_token_of_the_issuer_names_its_caller_with_the_grants_of_its_groups(token: str) -> None:
    assert door().authenticate(token, NOW) == Principal(name="oidc:ada@example.com", grants=(READER,))


@pytest.mark.parametrize(
    ("groups", "grants"),
    [
        (["platform", "analysts"], (ADMIN, READER)),
        ([], ()),
        (..., ()),
        (None, ()),
        ({"platform": True}, ()),
        (["Platform", 7, None, ["platform"]], ()),
        (["unknown"] * 2000 + ["platform"], ()),
    ],
)
def test_what_is_no_group_that_the_service_knows_gives_nothing(groups: Any, grants: tuple[Grant, ...]) -> None:
    assert door().authenticate(signed(changed(groups=groups)), NOW).grants == grants


def unsigned(claims: Mapping[str, Any], **header: Any) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, claims)]
    return ".".join([*parts, ""])


def by_public_key(claims: Mapping[str, Any]) -> str:
    """A token signed by HMAC with the issuer's public key, as if that were a shared secret."""
    head = unsigned(claims, alg="HS256", kid="r")[:-1]
    secret = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    mac = hmac.new(secret, head.encode(), hashlib.sha256).digest()
    return f"{head}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


@pytest.mark.parametrize(
    "token",
    [
        signed(changed(iss="https://login.example.com/other")),
        signed(changed(iss=ADDRESS + "/")),
        signed(changed(iss=...)),
        signed(changed(aud="other")),
        signed(changed(aud=...)),
        signed(changed(aud=[])),
        signed(changed(exp=...)),
        signed(changed(exp=NOW_S - LEEWAY_MS // 1000)),
        signed(changed(exp="never")),
        signed(changed(nbf=NOW_S + LEEWAY_MS // 1000 + 1)),
        signed(changed(nbf="soon")),
        signed(changed(iat=NOW_S + LEEWAY_MS // 1000 + 1)),
        signed(changed(email=...)),
        signed(changed(email="")),
        signed(changed(email=7)),
        signed(changed(email="a\nb")),
        signed(changed(email="a" * 129)),
        signed(CLAIMS, OTHER_RSA),
        signed(CLAIMS, OTHER_RSA, key_id="enc"),
        signed(CLAIMS, key_id="gone"),
        signed(CLAIMS, key_id=None),
        signed(CLAIMS, key_id="e"),
        signed(CLAIMS, algorithm="RS512"),
        signed(CLAIMS, algorithm="PS256"),
        signed(CLAIMS, EC, "ES256", "r"),
        unsigned(CLAIMS, alg="none"),
        unsigned(CLAIMS, alg="none", kid="r"),
        unsigned(CLAIMS, alg="RS256", kid="r"),
        unsigned(CLAIMS, alg="RS256", kid=["r"]),
        unsigned(CLAIMS, alg=None, kid="r"),
        by_public_key(CLAIMS),
        signed(CLAIMS)[:-4] + "AAAA",
        signed(CLAIMS).replace(".", "..", 1),
        "",
        "a.b.c",
        "e30.e30.",
        "." * 10_000,
    ],
)
def test_a_token_that_is_not_quite_right_is_refused_like_any_other(token: str) -> None:
    with pytest.raises(Unauthenticated) as refused:
        door().authenticate(token, NOW)
    assert str(refused.value) == str(Unauthenticated(""))
    assert not token or token not in refused.value.reason


def test_clocks_may_differ_a_little() -> None:
    last = NOW_S - LEEWAY_MS // 1000 + 1
    first = NOW_S + LEEWAY_MS // 1000
    assert door().authenticate(signed(changed(exp=last)), NOW).name
    assert door().authenticate(signed(changed(nbf=first, iat=first)), NOW).name


def test_keys_are_kept_and_fetched_again_when_they_are_old() -> None:
    answers, clock = Answers(), ManualClock()
    service = door(answers, clock)
    for _ in range(5):
        service.authenticate(signed(CLAIMS), NOW)
    assert len(answers.asked) == 2, "the configuration, and the keys"
    clock.advance(KEYS_LIFE_S)
    answers.keys = [public(RSA, "new")]
    with pytest.raises(Unauthenticated):
        service.authenticate(signed(CLAIMS), NOW)
    assert service.authenticate(signed(CLAIMS, key_id="new"), NOW).name


def test_a_new_key_is_fetched_when_it_is_first_named_but_strangers_cause_no_flood() -> None:
    answers, clock = Answers(), ManualClock()
    service = door(answers, clock)
    service.authenticate(signed(CLAIMS), NOW)
    answers.keys = [*KEYS, public(OTHER_RSA, "next")]
    for number in range(100):
        with pytest.raises(Unauthenticated):
            service.authenticate(signed(CLAIMS, OTHER_RSA, key_id=f"guess-{number}"), NOW)
    assert len(answers.asked) == 2
    clock.advance(KEYS_PAUSE_S)
    assert service.authenticate(signed(CLAIMS, OTHER_RSA, key_id="next"), NOW).name
    assert len(answers.asked) == 4


def test_an_issuer_that_is_down_is_not_asked_at_each_request_and_its_keys_serve_for_a_while() -> None:
    answers, clock = Answers(), ManualClock()
    answers.is_down = True
    service = door(answers, clock)
    for _ in range(10):
        with pytest.raises(Unauthenticated):
            service.authenticate(signed(CLAIMS), NOW)
    assert len(answers.asked) == 1
    answers.is_down = False
    clock.advance(KEYS_PAUSE_S)
    assert service.authenticate(signed(CLAIMS), NOW).name
    answers.is_down = True
    clock.advance(KEYS_LIFE_S + KEYS_GRACE_S - 1)
    assert service.authenticate(signed(CLAIMS), NOW).name
    clock.advance(1)
    with pytest.raises(Unauthenticated):
        service.authenticate(signed(CLAIMS), NOW)


@pytest.mark.parametrize("change", ["issuer", "address", "key", "keys"])
def test_keys_of_another_issuer_or_over_plain_http_are_not_taken(change: str) -> None:
    answers = Answers()
    match change:
        case "issuer":
            answers.issuer = "https://evil.example.com"
        case "address":
            answers.address = "http://login.example.com/keys"
        case "key":
            answers.keys = [{"kty": "oct", "kid": "r", "k": "AAAA"}]
        case "keys":
            answers.keys = 7  # type: ignore[assignment]
    with pytest.raises(Unauthenticated):
        door(answers).authenticate(signed(CLAIMS), NOW)


def test_the_only_key_needs_no_name() -> None:
    assert door(Answers([public(RSA, "r")])).authenticate(signed(CLAIMS, key_id=None), NOW).name


@given(st.one_of(st.text(), st.from_regex(r"[A-Za-z0-9_-]{0,40}\.[A-Za-z0-9_-]{0,80}\.[A-Za-z0-9_-]{0,80}", fullmatch=True)))
def test_no_text_is_a_token_by_accident(text: str) -> None:
    with pytest.raises(Unauthenticated):
        door().authenticate(text, NOW)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner), max_leaves=5
)


@given(st.dictionaries(st.sampled_from([*CLAIMS, "nbf", "iat", "sub"]), JSON))
def test_claims_of_any_kind_are_refused_or_hold(claims: dict[str, Any]) -> None:
    signature = jwt.api_jws.PyJWS().encode(json.dumps({**CLAIMS, **claims}).encode(), RSA, "RS256", headers={"kid": "r"})
    try:
        caller = door().authenticate(signature, NOW)
    except Unauthenticated:
        return
    assert caller.name.startswith("oidc:")
    assert set(caller.grants) <= {READER, ADMIN}


# ---- over HTTP


@contextmanager
def issuer_server(answer: Callable[[str, int], tuple[int, dict[str, str], bytes]]) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = answer(self.path, self.server.server_address[1])  # type: ignore[misc]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_discovery_and_keys_are_fetched_over_http() -> None:
    def answer(path: str, port: int) -> tuple[int, dict[str, str], bytes]:
        here = f"http://127.0.0.1:{port}"
        value = {"issuer": here, "jwks_uri": f"{here}/keys"} if path == f"/{DISCOVERY}" else {"keys": KEYS}
        return 200, {}, json.dumps(value).encode()

    with issuer_server(answer) as port:
        here = f"http://127.0.0.1:{port}"
        settings = parse_issuer(
            json.dumps(
                {"issuer": here, "audience": "tablestore", "name_claim": "email", "grants": {"analysts": [{"role": "writer"}]}}
            ),
            "issuer.json",
        )
        service = IssuerTokens(settings, IssuerKeys(here, ManualClock(), fetch_over_http))
        assert service.authenticate(signed(changed(iss=here)), NOW).grants == (Grant(Role.WRITER),)


@pytest.mark.parametrize(
    "reply",
    [(302, {"Location": "/other"}, b""), (500, {}, b"{}"), (200, {}, b" " * (MOST_ANSWER_BYTES + 1))],
    ids=["elsewhere", "500", "long"],
)
def test_an_answer_from_elsewhere_an_error_and_an_endless_one_are_no_answer(reply: tuple[int, dict[str, str], bytes]) -> None:
    with issuer_server(lambda path, _: (200, {}, b"other") if path == "/other" else reply) as port, pytest.raises(ts.StorageError):
        fetch_over_http(f"http://127.0.0.1:{port}/")


def test_an_address_where_nobody_answers_is_an_error_of_ours() -> None:
    with issuer_server(lambda _, __: (200, {}, b"")) as port:
        pass
    with pytest.raises(ts.StorageError):
        fetch_over_http(f"http://127.0.0.1:{port}/")


# ---- the file

FILE = {"issuer": ADDRESS, "audience": "tablestore", "grants": {"analysts": [{"role": "reader", "database": "shop"}]}}


def test_a_file_names_the_issuer(tmp_path: Path) -> None:
    (tmp_path / "issuer.json").write_text(json.dumps(FILE))
    settings = load_issuer(str(tmp_path / "issuer.json"))
    assert (settings.issuer, settings.audience, settings.groups_claim, settings.name_claim) == (
        ADDRESS,
        "tablestore",
        "groups",
        "sub",
    )
    assert settings.grants == {"analysts": (READER,)}
    with pytest.raises(ts.InvalidInputError, match=r"none\.json"):
        load_issuer(str(tmp_path / "none.json"))
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ts.InvalidInputError, match="UTF-8"):
        load_issuer(str(tmp_path / "bytes.json"))


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "http://login.example.com"},
        {"issuer": "file:///etc/passwd"},
        {"issuer": ""},
        {"issuer": None},
        {"issuer": "https://[bad"},
        {"audience": ""},
        {"audience": ["a"]},
        {"grants": {}},
        {"grants": {"a": "admin"}},
        {"grants": {"a": [{"role": "root"}]}},
        {"grants": {"a": [{"role": "reader", "table": "t"}]}},
        {"name_claim": 7},
        {"algorithms": ["none"]},
    ],
)
def test_a_file_that_does_not_say_clearly_whom_to_trust_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises((ts.InvalidInputError, ts.FormatError), match=r"issuer\.json"):
        parse_issuer(json.dumps({**FILE, **change}), "issuer.json")


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000])
def test_a_file_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(ts.InvalidInputError, match=r"issuer\.json"):
        parse_issuer(text, "issuer.json")
