"""What DuckDB computes itself of texts and bytes of common forms is what the Arrow functions compute of them, value by value."""

import hmac
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablestore as ts
from tablestore.errors import TablestoreError
from tablestore.sql.duckdb.functions import mathfunctions, numberformats, textvalues, urlvalues

URLS = (
    "http://a.com",
    "http://a.com/",
    "https://u@x-y.b.org:80/p/q?a=1&b=2#f",
    "http://a.com?",
    "http://a.com#",
    "http://a.com/?#",
    "http://1.2.3.4/x",
    "http://a/b",
    "ftp://a.b/c?d?e",
    "http://a.com/%41",
    "HTTP://A.COM/x",
    "http://a_b.com/",
    "http://u:p@a.com/",
    "http://a.com:/x",
    "http://a.com/a b",
    "http://a.com/é",
    "http://a.com\n",
    "http://a.com/#a#b",
    "mailto:x@y.z",
    "http://-a.com/",
    "http://a.com/?q=?",
    "http://1a.2b.com/x;y=1,2",
    "http://a--b.com/",
    "http://a-.com/",
    "http://a.b-c/",
    "http://a.com//x/-&",
    "http://a..com/",
)
ESCAPED = (
    "a+b",
    "%41%zz",
    "%C3%A9",
    "%c3%a9x%20",
    "%C1%81",
    "%00",
    "a%",
    "é+%2B",
    "%DF%BF%7F",
    "%E2%82%AC",
    "%0A\n",
    "%C3%A9%C3",
    "%+1",
)
BASE64 = ("", "QQ==", "QR==", "QUI=", "QUJD", "QUJ D", "Q", "QQ=", "Q=Q=", "QUJDRA", "QUJD\n", "é", "QQ==QQ==", "****")
HEXADECIMAL = ("", "4", "41", "4a", "4G", "é", " 41", "414", "41\n")
NUMBERS = ("", "0", "007", "101", "9" * 18, "9" * 19, "f" * 15, "F" * 16, "1" * 62, "1" * 63, "-1", "+7", "12a", " 11 ", "1.5", "z")
TEXTS = ("", "a", "aXb1é", "a.b.c", "..", ".a.", "é.ü.ß", "aaa", "x--y--z", "ABC xyz 019")
WIDE_TEXTS = ("É٣ß😀a1", "a\u0301b", "🇧🇪🇳🇱x", "각 日本", "ǅ²½")
BYTES = (b"", b"a", b"abc", b"\xff\x00", b"abcdefgh", "é".encode())


def _overlaid(data: bytes, instead: bytes, start: int, length: int) -> bytes:
    count = len(instead) if length < 0 else length
    return textvalues.bytes_between(data, 1, start - 1) + instead + textvalues.bytes_between(data, start + count, 2**31)


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path_factory.mktemp("warehouse"), engine="duckdb") as env:
        yield env


def _written(value: Any) -> str:
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def _expected(call: Callable[[Any], Any], value: Any) -> Any:
    try:
        return call(value)
    except TablestoreError as error:
        return type(error)


def _compare(env: ts.TableEnvironment, expression: str, values: tuple[Any, ...], call: Callable[[Any], Any]) -> None:
    expected = {value: _expected(call, value) for value in values}
    computed = {value: result for value, result in expected.items() if not isinstance(result, type)}
    rows = ", ".join(f"({_written(value)})" for value in computed)
    result = env.execute_sql(f"SELECT x, {expression} AS y FROM VALUES {rows} AS t (x)").to_arrow()
    assert dict(zip(result["x"].to_pylist(), result["y"].to_pylist(), strict=True)) == computed
    for value in expected.keys() - computed.keys():
        with pytest.raises(TablestoreError):
            env.execute_sql(f"SELECT {expression} AS y FROM VALUES ({_written(value)}) AS t (x)").to_arrow()


@pytest.mark.deep_after(5)
@pytest.mark.parametrize("part", ["HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO", "other"])
def test_parts_of_addresses(part: str, env: ts.TableEnvironment) -> None:
    _compare(env, f"parse_url(x, '{part}')", URLS, lambda url: urlvalues.parse_url(url, part))
    _compare(env, f"try_parse_url(x, '{part}')", URLS, lambda url: urlvalues.try_parse_url(url, part))


@pytest.mark.deep_after(20)
@pytest.mark.parametrize(
    ("expression", "values", "call"),
    [
        ("url_decode(x)", ESCAPED, urlvalues.url_decode),
        ("try_url_decode(x)", ESCAPED, urlvalues.try_url_decode),
        ("unbase64(x)", BASE64, textvalues.unbase64),
        ("try_to_binary(x, 'base64')", BASE64, textvalues.strict_base64),
        ("unhex(x)", HEXADECIMAL, textvalues.hexadecimal),
        *(
            (
                f"substring_index(x, '{by}', {count})",
                TEXTS,
                lambda text, by=by, count=count: textvalues.substring_index(text, by, count),
            )
            for by in (".", "--", "aa", "")
            for count in (-3, -1, 0, 1, 2)
        ),
        *(
            (
                f"instr(x, '{part}', {at}, {number})",
                TEXTS,
                lambda text, part=part, at=at, number=number: textvalues.instr(text, part, at, number),
            )
            for part in ("a", "aa", ".", "")
            for at in (-1, 1, 2)
            for number in (1, 2, 3, 4)
        ),
        ("mask(x)", TEXTS, lambda text: textvalues.mask(text, "X", "x", "n", None)),
        ("mask(x, NULL, 'é', '#')", TEXTS, lambda text: textvalues.mask(text, None, "é", "#", None)),
        ("mask(x, 'X', 'x', 'n', '-')", TEXTS, lambda text: textvalues.mask(text, "X", "x", "n", "-")),
        *(
            (f"substring(x, {at}, {count})", BYTES, lambda data, at=at, count=count: textvalues.bytes_between(data, at, count))
            for at in (-9, -2, 0, 1, 2, 9, 2147483647)
            for count in (-1, 0, 1, 3, 2147483647)
        ),
        *(
            (
                f"{side}pad(x, {count}, X'{padding}')",
                BYTES,
                lambda data, pad=pad, count=count, padding=padding: pad(data, count, bytes.fromhex(padding)),
            )
            for side, pad in (("l", textvalues.padded_left), ("r", textvalues.padded_right))
            for count in (-1, 0, 2, 7)
            for padding in ("", "41", "ff0042")
        ),
        *(
            (
                f"overlay(x PLACING X'{instead}' FROM {start} FOR {length})",
                BYTES,
                lambda data, instead=instead, start=start, length=length: _overlaid(data, bytes.fromhex(instead), start, length),
            )
            for instead in ("", "4142")
            for start in (-2, 0, 1, 3, 9)
            for length in (-1, 0, 2, 9)
        ),
        *(
            (f"conv(x, {of}, {to})", NUMBERS, lambda text, of=of, to=to: mathfunctions.converted_base(text, of, to))
            for of in (2, 10, 16)
            for to in (2, 16, 36, -10)
        ),
        ("luhn_check(x)", ("", "0", "18", "4539578763621486", "4539578763621487", "12a", "é18", "-18"), textvalues.luhn_check),
        ("mask(x, 'X', 'x', 'n', 'é')", TEXTS, lambda text: textvalues.mask(text, "X", "x", "n", "é")),
        ("mask(x, 'q', 'Q', '7')", TEXTS, lambda text: textvalues.mask(text, "q", "Q", "7", None)),
        ("reverse(x)", BYTES, lambda data: data[::-1]),
        ("reverse(x)", (*TEXTS, *WIDE_TEXTS), lambda text: text[::-1]),
        ("mask(x)", WIDE_TEXTS, lambda text: textvalues.mask(text, "X", "x", "n", None)),
        ("mask(x, NULL, 'é', '9', '日')", WIDE_TEXTS, lambda text: textvalues.mask(text, None, "é", "9", "日")),
        ("try_to_binary(x, 'hex')", HEXADECIMAL, textvalues.hexadecimal),
        *((f"substring(x, {at})", BYTES, lambda data, at=at: textvalues.bytes_between(data, at, 2**31)) for at in (-2, 0, 1, 3, 9)),
        ("is_valid_utf8(x)", BYTES, textvalues.is_utf8),
        ("is_valid_utf8(x)", BYTES[:3], textvalues.is_utf8),
        ("make_valid_utf8(x)", BYTES, textvalues.made_utf8),
        ("try_validate_utf8(x)", BYTES[:3], textvalues.utf8_or_none),
        ("bitmap_count(x)", BYTES, lambda data: int.from_bytes(data, "big").bit_count()),
        *(
            (f"{name}(x, '{charset}')", values, lambda value, call=call, charset=charset: call(value, charset))
            for name, values, call in (
                ("decode", BYTES[:3], textvalues.decode),
                ("decode", BYTES, textvalues.decode),
                ("encode", TEXTS, textvalues.encode),
            )
            for charset in ("utf-8", "ISO-8859-1", "US-ASCII", "UTF-16")
        ),
        *(
            (f"hmac('key', x, '{name}')", BYTES, lambda data, name=name: hmac.digest(b"key", data, name.replace("-", "").lower()))
            for name in ("MD5", "SHA1", "SHA-256", "SHA-512")
        ),
        ("hmac(X'6b6579', x)", BYTES, lambda data: hmac.digest(b"key", data, "sha256")),
    ],
)
def test_values_of_common_forms(
    expression: str, values: tuple[Any, ...], call: Callable[[Any], Any], env: ts.TableEnvironment
) -> None:
    _compare(env, expression, values, call)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("transform(array(5, 6), (e, i) -> e * 10 + i)", [50, 61]),
        ("transform(array(5, 6), (e, i) -> 1 - i)", [1, 0]),
        ("filter(array(5, 6, 7), (e, i) -> i <> 1)", [5, 7]),
        ("zip_with(array(1, 2), array(3), (l, r) -> coalesce(r, l - 9))", [3, -7]),
        ("zip_with(array(1), array(3), (l, r) -> 2 * (l + r))", [8]),
        ("zip_with(array(named_struct('r', 1)), array(3), (l, r) -> l.r + r)", [4]),
        ("zip_with(array(1), array(3), (l, r) -> aggregate(array(l, r), 0, (r, l) -> r * 2 + l))", [5]),
        ("aggregate(array(1, 2), CAST(0 AS BIGINT), (sum, value) -> sum * 10 + value)", 12),
        ("format_number(-1234567, 2)", "-1,234,567.00"),
        ("format_number(0, 0)", "0"),
        ("bround(-2147483648, -9)", -2000000000),
        ("bround(25, -1)", 20),
        ("shiftleft(-5, 30)", -1073741824),
        ("shiftleft(1, 31)", -2147483648),
    ],
)
def test_expressions_that_are_written_in_place(expression: str, value: Any, env: ts.TableEnvironment) -> None:
    assert env.execute_sql(f"SELECT {expression} AS v").to_arrow()["v"].to_pylist() == [value]


@pytest.mark.deep
@given(st.lists(st.floats() | st.decimals(-99999, 99999, places=3).map(float), min_size=1), st.integers(0, 16))
@settings(max_examples=40)
def test_doubles_are_written_by_their_digits(env: ts.TableEnvironment, numbers: list[float], places: int) -> None:
    rows = ", ".join(f"(DOUBLE('{number!r}'))" for number in numbers)
    texts = env.execute_sql(f"SELECT x, format_number(x, {places}) AS y FROM VALUES {rows} AS t (x)").to_arrow()
    for number, text in zip(texts["x"].to_pylist(), texts["y"].to_pylist(), strict=True):
        assert text == numberformats.format_double(repr(number), places)
