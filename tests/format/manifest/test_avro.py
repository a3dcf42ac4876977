"""Avro containers: what is accepted, what is bounded, and that no damage escapes as anything but FormatError."""

import io
import json
import random
import tracemalloc
import zlib

import fastavro
import pyarrow as pa
import pytest

from tablestore.errors import FormatError
from tablestore.format.limits import Limits
from tablestore.format.manifest.avro import AVRO_MAGIC, read_container, write_container

NONCE = b"0123456789abcdef"
SCHEMA = {
    "type": "record",
    "name": "org.example.record",
    "fields": [
        {"name": "a", "type": "long"},
        {"name": "b", "type": ["null", "string"], "default": None},
        {"name": "c", "type": {"type": "array", "items": ["null", "int"]}},
    ],
}
RECORDS = [{"a": number, "b": None if number % 2 else f"b{number}", "c": [number, None]} for number in range(10_000)]


def _long(value):
    value = value << 1 ^ value >> 63
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _container(schema, payload, *, count=1, codec="null", sync=NONCE):
    out = AVRO_MAGIC + _long(2)
    for key, value in (("avro.schema", json.dumps(schema).encode()), ("avro.codec", codec.encode())):
        out += _long(len(key)) + key.encode() + _long(len(value)) + value
    return out + b"\0" + sync + _long(count) + _long(len(payload)) + payload + sync


def _deflate(data):
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    return compressor.compress(data) + compressor.flush()


CODECS = {
    "null": lambda data: data,
    "deflate": _deflate,
    "zstandard": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
    "snappy": lambda data: pa.Codec("snappy").compress(data, asbytes=True) + zlib.crc32(data).to_bytes(4, "big"),
}


def test_golden_bytes_of_an_empty_file():
    assert write_container([], {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}, nonce=NONCE) == (
        b"Obj\x01\x04\x16avro.schema\x82\x01"
        b'{"type":"record","name":"r","fields":[{"name":"a","type":"int"}]}'
        b"\x14avro.codec\x12zstandard\x00" + NONCE
    )


def test_round_trip_over_several_blocks_and_fastavro_agrees():
    data = write_container(RECORDS, SCHEMA, nonce=NONCE)
    assert read_container(data, name="f") == RECORDS
    assert list(fastavro.reader(io.BytesIO(data))) == RECORDS
    assert write_container(RECORDS, SCHEMA, nonce=NONCE) == data
    assert write_container(RECORDS, SCHEMA, nonce=b"fedcba9876543210") != data


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("codec", list(CODECS))
def test_written_files_have_the_codec_that_was_asked_for_and_equal_input_gives_equal_bytes(codec):
    data = write_container(RECORDS, SCHEMA, nonce=NONCE, codec=codec)
    assert b"avro.codec" + _long(len(codec)) + codec.encode() in data[:400]
    assert read_container(data, name="f") == RECORDS
    assert write_container(RECORDS, SCHEMA, nonce=NONCE, codec=codec) == data
    if codec != "snappy":  # fastavro has it from a package of its own
        assert list(fastavro.reader(io.BytesIO(data))) == RECORDS
    assert read_container(write_container([], SCHEMA, nonce=NONCE, codec=codec), name="f") == []


@pytest.mark.parametrize("nonce", [bytes(16), b"short", b""])
def test_zero_or_short_sync_marker_is_never_written(nonce):
    with pytest.raises(ValueError, match="nonce"):
        write_container([], SCHEMA, nonce=nonce)


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard"])
def test_files_of_fastavro_are_read_in_each_codec(codec):
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, RECORDS[:100], codec=codec)
    assert read_container(out.getvalue(), name="f") == RECORDS[:100]


@pytest.mark.parametrize("codec", list(CODECS))
def test_block_is_read_in_each_codec(codec):
    payload = CODECS[codec](_long(7) + b"\0" + b"\0")
    assert read_container(_container(SCHEMA, payload, codec=codec), name="f") == [{"a": 7, "b": None, "c": []}]


def test_unknown_codec_is_named():
    with pytest.raises(FormatError, match="xz") as caught:
        read_container(_container(SCHEMA, b"x", codec="xz"), name="manifest-1")
    assert caught.value.kind == "unsupported-codec"


def test_record_wrapped_in_a_union_is_unwrapped_and_null_records_are_refused():
    data = _container(["null", SCHEMA], _long(1) + _long(7) + b"\0" + b"\0")
    assert read_container(data, name="f", expected=SCHEMA) == [{"a": 7, "b": None, "c": []}]
    with pytest.raises(FormatError, match="null"):
        read_container(_container(["null", SCHEMA], b"\0"), name="f")


def test_logical_types_are_plain_numbers():
    schema = {"type": "record", "name": "r", "fields": [{"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}}]}
    assert read_container(_container(schema, _long(2**62)), name="f") == [{"t": 2**62}]


def test_expected_fields_may_be_missing_only_if_nullable():
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, {"name": "zzz", "type": "string"}]}
    data = _container(schema, _long(5) + b"\x02x")
    without_c = {**SCHEMA, "fields": SCHEMA["fields"][:2]}
    assert read_container(data, name="f", expected=without_c) == [{"a": 5, "zzz": "x"}]
    with pytest.raises(FormatError, match="expected a field c"):
        read_container(data, name="f", expected=SCHEMA)


@pytest.mark.parametrize("found", ["string", "bytes", {"type": "array", "items": "long"}, ["int", "string"]])
def test_field_of_another_type_is_refused(found):
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": found}]}
    expected = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}
    with pytest.raises(FormatError, match="expected a to be long"):
        read_container(_container(schema, b"\0"), name="f", expected=expected)


@pytest.mark.deep
@pytest.mark.parametrize("codec", ["deflate", "zstandard"])
def test_small_file_that_expands_enormously_is_refused_before_the_memory_is_taken(codec):
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "bytes"}]}
    size = 300 << 20
    data = _container(schema, CODECS[codec](_long(size) + bytes(size)), codec=codec)
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="decompressed size") as caught:
            read_container(data, name="manifest-1")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.kind == "limit"
    assert peak < 160 << 20


def test_snappy_block_that_claims_too_much_is_refused():
    payload = bytes([0x80, 0x80, 0x80, 0x80, 0x02]) + b"\0" * 20  # 512 MiB
    with pytest.raises(FormatError) as caught:
        read_container(_container(SCHEMA, payload, codec="snappy"), name="f")
    assert caught.value.kind == "limit"


def test_limits_on_bytes_and_records_are_kept():
    data = write_container(RECORDS[:100], SCHEMA, nonce=NONCE)
    for limits in (Limits(max_bytes=len(data) - 1), Limits(max_records=99)):
        with pytest.raises(FormatError) as caught:
            read_container(data, name="f", limits=limits)
        assert caught.value.kind == "limit"
    assert len(read_container(data, name="f", limits=Limits(max_bytes=len(data), max_records=100))) == 100


def _nested(depth):
    schema = "int"
    for level in range(depth):
        schema = {"type": "record", "name": f"r{level}", "fields": [{"name": "a", "type": schema}]}
    return schema


def _doubling(levels):
    schema = {"type": "record", "name": "r0", "fields": [{"name": "a", "type": "int"}]}
    for level in range(1, levels):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": schema["name"]}]
        schema = {"type": "record", "name": f"r{level}", "fields": fields}
    return schema


RECURSIVE = {"type": "record", "name": "r", "fields": [{"name": "next", "type": ["null", "r"]}, {"name": "a", "type": "int"}]}


@pytest.mark.parametrize(
    "schema",
    [
        RECURSIVE,
        _nested(40),
        _nested(300),
        _doubling(14),
        {"type": "record", "name": "r", "fields": []},
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": "null"}]},
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}]},
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]},
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": "fixed", "name": "f", "size": 0}}]},
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": "nobody"}]},
        {"type": "record", "name": "r", "fields": [{"type": "int"}]},
        {"type": "record", "fields": [{"name": "a", "type": "int"}]},
        {"type": "record", "name": "r"},
        ["null", "null"],
        ["null", SCHEMA, {**SCHEMA, "name": "other"}],
        [["null", SCHEMA]],
        "int",
        "null",
        7,
        None,
        [],
        {},
    ],
)
def test_schema_that_could_cost_or_mean_anything_is_refused(schema):
    with pytest.raises(FormatError, match="manifest-7"):
        read_container(_container(schema, b"\0" * 40, count=40), name="manifest-7")


def test_named_type_used_twice_is_read():
    inner = {"type": "record", "name": "inner", "fields": [{"name": "x", "type": "int"}]}
    schema = {
        "type": "record",
        "name": "ns.r",
        "fields": [{"name": "a", "type": inner}, {"name": "b", "type": "inner"}, {"name": "c", "type": ["null", "ns.inner"]}],
    }
    data = _container(schema, _long(1) + _long(2) + _long(1) + _long(3))
    assert read_container(data, name="f") == [{"a": {"x": 1}, "b": {"x": 2}, "c": {"x": 3}}]


@pytest.mark.parametrize(
    ("count", "payload"),
    [
        (2, _long(7) + b"\0\0"),
        (1, (_long(7) + b"\0\0") * 2),
        (0, _long(7) + b"\0\0"),
        (-1, b""),
        (10**15, b""),
        (1, b""),
        (1, _long(7) + _long(5) + b"\0"),
        (1, _long(7) + _long(1) + _long(-40) + b"abc\0"),
        (1, _long(7) + _long(1) + _long(2**62) + b"abc\0"),
        (1, _long(7) + b"\0" + _long(2**61)),
        (1, b"\xff" * 30),
    ],
)
def test_block_that_does_not_hold_what_it_claims_is_refused(count, payload):
    with pytest.raises(FormatError):
        read_container(_container(SCHEMA, payload, count=count), name="f")


def test_every_truncation_is_refused():
    data = write_container(RECORDS[:10], SCHEMA, nonce=NONCE)
    whole = [read_container(data, name="f"), read_container(data[: data.index(b"zstandard") + 10 + 16], name="f")]
    assert whole == [RECORDS[:10], []]
    for size in range(len(data)):
        try:
            found = read_container(data[:size], name="f")
        except FormatError:
            continue
        assert found == []


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("codec", list(CODECS))
def test_random_damage_raises_nothing_but_format_errors(codec):
    seed = random.Random(20_240_101)
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, RECORDS[:5], codec="null")
    body = _long(3) + _long(1) + _long(2) + b"xy" + _long(2) + _long(1) + _long(9) + b"\0" + b"\0"
    sources = [out.getvalue(), _container(SCHEMA, CODECS[codec](body), codec=codec)]
    outcomes = {True: 0, False: 0}
    for _ in range(3000):
        data = bytearray(seed.choice(sources))
        for _ in range(seed.randint(1, 4)):
            data[seed.randrange(len(data))] = seed.randrange(256)
        if seed.random() < 0.2:
            del data[seed.randrange(len(data)) :]
        try:
            records = read_container(bytes(data), name="f", expected=SCHEMA)
        except FormatError as error:
            outcomes[False] += error.message.startswith("f:")
        else:
            assert isinstance(records, list)
            outcomes[True] += 1
    assert outcomes[True] + outcomes[False] == 3000
    assert outcomes[False] > 1000
