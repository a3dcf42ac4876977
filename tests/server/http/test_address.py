"""Where the service may listen: the whole matrix, and what a refusal says to do."""

import datetime
import itertools
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

import tablestore as ts
from tablestore.server.http.address import Bind, check_tls_files, decide_bind, is_anywhere, is_loopback, parse_proxies

LOOPBACK = ["127.0.0.1", "127.8.9.10", "localhost", "LOCALHOST", "::1", "[::1]", "::ffff:127.0.0.1"]
PUBLIC = ["", "0.0.0.0", "::", "[::]", "10.0.0.1", "192.168.1.4", "8.8.8.8", "fe80::1", "2001:db8::1", "::ffff:8.8.8.8"]
PUBLIC += [
    "tables.example.com",
    "localhost.example.com",
    "127.0.0.1.example.com",
    "localhost.",
    "0",
    "127.1",
    "2130706433",
    "x" * 300,
]


def is_accepted(host: str, *, tls: bool, tokens: bool, proxy: bool) -> bool:
    files = ("c.pem", "k.pem") if tls else (None, None)
    try:
        decide_bind(host, 8181, certificate=files[0], key=files[1], has_tokens=tokens, proxies=["10.0.0.5"] if proxy else [])
    except ts.InvalidInputError as error:
        return error.kind != "unsafe-address"
    return True


@pytest.mark.parametrize(("tls", "tokens", "proxy"), list(itertools.product([False, True], repeat=3)))
def test_a_public_address_needs_tokens_and_tls_and_a_proxy_needs_tokens(tls: bool, tokens: bool, proxy: bool) -> None:
    for host in PUBLIC:
        assert is_accepted(host, tls=tls, tokens=tokens, proxy=proxy) is (tokens and (tls or proxy)), host
    for host in LOOPBACK:
        assert is_accepted(host, tls=tls, tokens=tokens, proxy=proxy) is (tokens or not proxy), host


def test_a_refusal_says_what_to_do() -> None:
    with pytest.raises(ts.InvalidInputError, match=r"token create.*127\.0\.0\.1"):
        decide_bind("0.0.0.0", 1, has_tokens=False)
    with pytest.raises(ts.InvalidInputError, match=r"--tls-certificate and --tls-key, or --behind-proxy"):
        decide_bind("0.0.0.0", 1, has_tokens=True)
    with pytest.raises(ts.InvalidInputError, match="a proxy brings callers"):
        decide_bind("127.0.0.1", 1, has_tokens=False, proxies=["10.0.0.5"])
    for files in ({"certificate": "c"}, {"key": "k"}):
        with pytest.raises(ts.InvalidInputError, match="together"):
            decide_bind("127.0.0.1", 1, has_tokens=True, **files)


def test_in_a_container_that_this_machine_alone_reaches_tokens_are_enough_and_names_of_others_are_refused() -> None:
    local = {"published_locally": True, "names": ["127.0.0.1", "localhost", "[::1]", "catalog"]}
    assert decide_bind("0.0.0.0", 8181, has_tokens=True, **local) == Bind(host="0.0.0.0", port=8181)
    with pytest.raises(ts.InvalidInputError, match="token create"):
        decide_bind("0.0.0.0", 8181, has_tokens=False, **local)
    for name in ("lake.example", "10.0.0.1", "localhost.example.com"):
        with pytest.raises(ts.InvalidInputError, match=f"--allowed-host '{name}' is a name for others") as raised:
            decide_bind("0.0.0.0", 8181, has_tokens=True, published_locally=True, names=["localhost", name])
        assert raised.value.kind == "unsafe-address"


@given(st.ip_addresses())
def test_every_address_is_of_this_machine_or_public(address: object) -> None:
    text = str(address)
    assert is_loopback(text) is (text == "::1" or text.startswith(("127.", "::ffff:127.", "::ffff:7f")))


@given(st.text())
def test_no_other_text_is_of_this_machine(text: str) -> None:
    assert not is_loopback(text) or text.strip().lower().strip("[]").startswith(("127.", "localhost", "::"))


def test_all_addresses_are_told_from_one() -> None:
    assert all(map(is_anywhere, ["", "0.0.0.0", "::", "[::]"]))
    assert not any(map(is_anywhere, ["127.0.0.1", "10.0.0.1", "::1", "x"]))


def test_proxies_are_addresses_and_small_networks() -> None:
    assert parse_proxies(["10.0.0.5", " 10.1.2.3/24", "::1", "2001:db8::/48", "10.0.0.5/32"]) == (
        *("10.0.0.5", "10.1.2.0/24", "::1", "2001:db8::/48"),
    )


@pytest.mark.parametrize(
    "text", ["*", "", "proxy.example.com", "0.0.0.0/0", "::/0", "10.0.0.0/4", "2000::/3", "10.0.0.5:80", "10.0.0"]
)
def test_nearly_everybody_is_no_proxy(text: str) -> None:
    with pytest.raises(ts.InvalidInputError, match="--behind-proxy"):
        parse_proxies([text])


def test_headers_of_proxies_are_believed_of_named_ones_alone() -> None:
    plain = decide_bind("127.0.0.1", 8181, has_tokens=False)
    assert (plain.uvicorn_options()["proxy_headers"], plain.uvicorn_options()["forwarded_allow_ips"]) == (False, [])
    behind = decide_bind("0.0.0.0", 8181, has_tokens=True, proxies=["10.0.0.5"])
    assert (behind.uvicorn_options()["proxy_headers"], behind.uvicorn_options()["forwarded_allow_ips"]) == (True, ["10.0.0.5"])
    assert behind.uvicorn_options()["server_header"] is False
    assert [one.is_secure for one in (plain, behind, Bind(host="x", port=1, certificate="c", key="k"))] == [False, True, True]


@pytest.fixture(scope="module")
def tls_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    key, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    begins = datetime.datetime(2026, 1, 1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begins)
        .not_valid_after(begins + datetime.timedelta(days=3650))
        .sign(key, SHA256())
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    keys = {"key": (key, NoEncryption()), "other": (other, NoEncryption()), "locked": (key, BestAvailableEncryption(b"x"))}
    for file, (private, how) in keys.items():
        (folder / f"{file}.pem").write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how))
    return folder


def test_a_certificate_and_its_key_are_taken(tls_files: Path) -> None:
    check_tls_files(str(tls_files / "certificate.pem"), str(tls_files / "key.pem"))


@pytest.mark.parametrize("pair", [("certificate", "other"), ("certificate", "locked"), ("certificate", "none"), ("key", "key")])
def test_files_that_do_not_belong_together_are_refused_before_anything_listens(tls_files: Path, pair: tuple[str, str]) -> None:
    with pytest.raises(ts.InvalidInputError, match="--tls-certificate"):
        check_tls_files(str(tls_files / f"{pair[0]}.pem"), str(tls_files / f"{pair[1]}.pem"))
