"""Computes the checksums and hashes of Spark over columns: ``crc32``, ``hash`` (Murmur3, 32 bits) and ``xxhash64``.

A hash of several values goes from one to the next: each is hashed with the hash before it as a seed, and a NULL leaves it as it is.
So a call is a chain of Arrow functions, one an argument, by the type of the value.
"""

import hmac
import re
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.signatures import always
from tablestore.sql.binding.sqltypes import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, FLOAT, INT, STRING, VOID, SqlType, array
from tablestore.sql.duckdb.functions.argumenttypes import binary, text
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.functionrule import MANY, FunctionRule, RuleCall, as_type, from_text
from tablestore.sql.duckdb.functions.valuefunctions import by_value

_U32 = npt.NDArray[np.uint32]
_U64 = npt.NDArray[np.uint64]
_Words = npt.NDArray[Any]
_SEED = 42


def _mixed32(hashes: _U32, word: _U32) -> _U32:
    word = word * np.uint32(0xCC9E2D51)
    word = (word << np.uint32(15)) | (word >> np.uint32(17))
    hashes = hashes ^ (word * np.uint32(0x1B873593))
    hashes = (hashes << np.uint32(13)) | (hashes >> np.uint32(19))
    return hashes * np.uint32(5) + np.uint32(0xE6546B64)


def _ended32(hashes: _U32, length: "_U32 | np.uint32") -> _U32:
    hashes = hashes ^ length
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return hashes ^ (hashes >> np.uint32(16))


def _murmur_ints(seeds: _U32, values: _Words) -> _U32:
    return _ended32(_mixed32(seeds, values.astype(np.int32).view(np.uint32)), np.uint32(4))


def _murmur_longs(seeds: _U32, values: _Words) -> _U32:
    words = values.astype(np.int64).view(np.uint64)
    low, high = (words & np.uint64(0xFFFFFFFF)).astype(np.uint32), (words >> np.uint64(32)).astype(np.uint32)
    return _ended32(_mixed32(_mixed32(seeds, low), high), np.uint32(8))


def _murmur_bytes(seeds: _U32, data: npt.NDArray[np.uint8], starts: _Words, lengths: _Words) -> _U32:
    """Whole words first, then each byte that is left, with its sign."""
    hashes = seeds.copy()
    words = lengths // 4
    for at in range(int(words.max(initial=0))):
        rows = np.nonzero(words > at)[0]
        hashes[rows] = _mixed32(hashes[rows], _word(data, starts[rows] + at * 4, 4).astype(np.uint32))
    for at in range(3):
        rows = np.nonzero(lengths % 4 > at)[0]
        single = data[starts[rows] + words[rows] * 4 + at].view(np.int8).astype(np.int32).view(np.uint32)
        hashes[rows] = _mixed32(hashes[rows], single)
    return _ended32(hashes, lengths.astype(np.uint32))


def _word(data: npt.NDArray[np.uint8], starts: _Words, size: int) -> _U64:
    """The words of some bytes, the least byte first."""
    word = np.zeros(len(starts), np.uint64)
    for at in range(size):
        word |= data[starts + at].astype(np.uint64) << np.uint64(8 * at)
    return word


_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(one) for one in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)


def _turned(words: _U64, by: int) -> _U64:
    return (words << np.uint64(by)) | (words >> np.uint64(64 - by))


def _ended64(hashes: _U64) -> _U64:
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _P2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _P3
    return hashes ^ (hashes >> np.uint64(32))


def _mixed_long(hashes: _U64, word: _U64) -> _U64:
    return _turned(hashes ^ (_turned(word * _P2, 31) * _P1), 27) * _P1 + _P4


def _mixed_int(hashes: _U64, word: _U64) -> _U64:
    return _turned(hashes ^ (word * _P1), 23) * _P2 + _P3


def _xx_ints(seeds: _U64, values: _Words) -> _U64:
    words = values.astype(np.int32).view(np.uint32).astype(np.uint64)
    return _ended64(_mixed_int(seeds + _P5 + np.uint64(4), words))


def _xx_longs(seeds: _U64, values: _Words) -> _U64:
    return _ended64(_mixed_long(seeds + _P5 + np.uint64(8), values.astype(np.int64).view(np.uint64)))


def _xx_bytes(seeds: _U64, data: npt.NDArray[np.uint8], starts: _Words, lengths: _Words) -> _U64:
    hashes = seeds + _P5
    blocks = lengths // 32
    long_rows = np.nonzero(blocks > 0)[0]
    if len(long_rows):
        hashes[long_rows] = _xx_blocks(seeds[long_rows], data, starts[long_rows], blocks[long_rows])
    hashes = hashes + lengths.astype(np.uint64)
    done = blocks * 32
    words = (lengths - done) // 8
    for at in range(3):
        rows = np.nonzero(words > at)[0]
        hashes[rows] = _mixed_long(hashes[rows], _word(data, starts[rows] + done[rows] + at * 8, 8))
    done = done + words * 8
    rows = np.nonzero(lengths - done >= 4)[0]
    hashes[rows] = _mixed_int(hashes[rows], _word(data, starts[rows] + done[rows], 4))
    done[rows] += 4
    for at in range(3):
        rows = np.nonzero(lengths - done > at)[0]
        single = data[starts[rows] + done[rows] + at].astype(np.uint64)
        hashes[rows] = _turned(hashes[rows] ^ (single * _P5), 11) * _P1
    return _ended64(hashes)


def _xx_blocks(seeds: _U64, data: npt.NDArray[np.uint8], starts: _Words, blocks: _Words) -> _U64:
    lanes = [seeds + _P1 + _P2, seeds + _P2, seeds.copy(), seeds - _P1]
    for at in range(int(blocks.max())):
        rows = np.nonzero(blocks > at)[0]
        for place, lane in enumerate(lanes):
            word = _word(data, starts[rows] + at * 32 + place * 8, 8)
            lane[rows] = _turned(lane[rows] + word * _P2, 31) * _P1
    hashes = sum((_turned(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)), np.zeros_like(seeds))
    for lane in lanes:
        hashes = (hashes ^ (_turned(lane * _P2, 31) * _P1)) * _P1 + _P4
    return hashes


def _over_values(hash_values: Callable[[Any, _Words], Any], unsigned: type[np.generic], signed: pa.DataType) -> Callable[..., Any]:
    """A function over a column of seeds and one of whole numbers."""

    def call(seeds: pa.Array, values: pa.Array) -> pa.Array:
        before = np.asarray(seeds).view(unsigned)
        numbers = np.asarray(pc.fill_null(values, 0))
        with np.errstate(over="ignore"):
            hashes = hash_values(before, numbers)
        return pa.array(_kept(values, before, hashes).view(signed.to_pandas_dtype()), signed)

    return call


def _bits(numbers: _Words) -> _Words:
    """The bits of floats as whole numbers: 0.0 for -0.0, and one NaN."""
    kind = numbers.dtype.type
    plain = np.where(numbers == 0, kind(0), np.where(np.isnan(numbers), kind("nan"), numbers))
    return plain.astype(numbers.dtype).view(np.int32 if kind is np.float32 else np.int64)


def _over_lists(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function over a column of seeds and one of arrays, whose elements are hashed one behind the other."""

    def call_each(seeds: pa.Array, lists: pa.Array) -> pa.Array:
        hashes = np.array(seeds)
        starts = np.asarray(lists.offsets)[:-1]
        lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0))
        for at in range(int(lengths.max(initial=0))):
            rows = np.nonzero(lengths > at)[0]
            elements = lists.values.take(pa.array(starts[rows] + at))
            hashes[rows] = np.asarray(call(pa.array(hashes[rows], seeds.type), elements))
        return pa.array(hashes, seeds.type)

    return call_each


def _kept(values: pa.Array, before: _Words, hashes: _Words) -> _Words:
    return hashes if not values.null_count else np.where(np.asarray(values.is_valid()), hashes, before)


def _over_bytes(hash_bytes: Callable[..., Any], unsigned: type[np.generic], signed: pa.DataType) -> Callable[..., Any]:
    """A function over a column of seeds and one of texts or bytes."""

    def call(seeds: pa.Array, values: pa.Array) -> pa.Array:
        before = np.asarray(seeds).view(unsigned)
        whole = values.cast(pa.large_binary())
        offsets = np.frombuffer(whole.buffers()[1], np.int64, len(whole) + 1, whole.offset * 8)
        data = np.frombuffer(whole.buffers()[2] or b"", np.uint8)
        with np.errstate(over="ignore"):
            hashes = hash_bytes(before, data, offsets[:-1], np.diff(offsets))
        return pa.array(_kept(values, before, hashes).view(signed.to_pandas_dtype()), signed)

    return call


def _checksums(values: pa.Array) -> pa.Array:
    # zlib takes one value at a time, in less time than it takes to see which values are equal.
    return pa.array([None if value is None else zlib.crc32(value) for value in values.to_pylist()], pa.int64())


CRC32 = ArrowFunction(name="crc32", arguments=(BINARY,), result=BIGINT, call=_checksums)
_HASHES: dict[tuple[str, SqlType], ArrowFunction] = {
    (name, of): ArrowFunction(name=f"{name}_{of.name}", arguments=(result, of), result=result, call=call)
    for name, result, of, call in (
        ("hash", INT, INT, _over_values(_murmur_ints, np.uint32, pa.int32())),
        ("hash", INT, BIGINT, _over_values(_murmur_longs, np.uint32, pa.int32())),
        ("hash", INT, DOUBLE, _over_values(lambda seeds, values: _murmur_longs(seeds, _bits(values)), np.uint32, pa.int32())),
        ("hash", INT, FLOAT, _over_values(lambda seeds, values: _murmur_ints(seeds, _bits(values)), np.uint32, pa.int32())),
        ("xxhash64", BIGINT, DOUBLE, _over_values(lambda seeds, values: _xx_longs(seeds, _bits(values)), np.uint64, pa.int64())),
        ("xxhash64", BIGINT, FLOAT, _over_values(lambda seeds, values: _xx_ints(seeds, _bits(values)), np.uint64, pa.int64())),
        ("hash", INT, BINARY, _over_bytes(_murmur_bytes, np.uint32, pa.int32())),
        ("xxhash64", BIGINT, INT, _over_values(_xx_ints, np.uint64, pa.int64())),
        ("xxhash64", BIGINT, BIGINT, _over_values(_xx_longs, np.uint64, pa.int64())),
        ("xxhash64", BIGINT, BINARY, _over_bytes(_xx_bytes, np.uint64, pa.int64())),
    )
}
_LISTS = {
    (name, of): ArrowFunction(
        name=f"{function.name}_array",
        arguments=(function.result, array(of)),
        result=function.result,
        call=_over_lists(function.call),
    )
    for (name, of), function in _HASHES.items()
}


def _crc32(call: RuleCall) -> exp.Expr:
    if call.type(0) not in (STRING, BINARY, VOID):
        raise call.refusal(f"of {call.type(0)}")
    return CRC32.of(call.value(0, BINARY))


def _hashed(call: RuleCall) -> exp.Expr:
    seed: exp.Expr = exp.Literal.number(_SEED)
    result = INT if call.name == "hash" else BIGINT
    hashes: exp.Expr = exp.cast(seed, result.name)
    for place, value in enumerate(call.values):
        hashes = _next(call, result, hashes, value.copy(), call.type(place))
    return hashes


def _next(call: RuleCall, result: SqlType, seed: exp.Expr, value: exp.Expr, kind: SqlType) -> exp.Expr:
    """The hash of a value, with a hash before it."""
    if kind == VOID:
        return seed
    if kind.name == "struct":
        for name, part in zip(kind.fields, kind.parts, strict=True):
            assert part is not None, "the type of an argument is known"
            inner = exp.Anonymous(this="STRUCT_EXTRACT", expressions=[value.copy(), exp.Literal.string(name)])
            seed = _next(call, result, seed, inner, part)
        return seed
    if kind.name == "array" and kind.parts[0] is not None:
        family, plain = _plain_value(call, exp.column("_value"), kind.parts[0])
        each = exp.Lambda(this=as_type(plain, family), expressions=[exp.to_identifier("_value")])
        return _LISTS[call.name, family].of(seed, exp.Anonymous(this="LIST_TRANSFORM", expressions=[value, each]))
    family, plain = _plain_value(call, value, kind)
    return _HASHES[call.name, family].of(seed, plain)


def _plain_value(call: RuleCall, value: exp.Expr, kind: SqlType) -> tuple[SqlType, exp.Expr]:
    """The type as which a value is hashed, and the value as one of it."""
    if kind.is_integer:
        return (BIGINT, value) if kind == BIGINT else (INT, exp.cast(value, "INT"))
    if kind.is_float:
        return kind, value
    if kind == BOOLEAN:
        return INT, exp.cast(value, "INT")
    if kind == DATE:
        return INT, from_text("CAST($0 - DATE '1970-01-01' AS INTEGER)", value)
    if kind in (STRING, BINARY):
        return BINARY, exp.Anonymous(this="ENCODE", expressions=[value]) if kind == STRING else value
    if kind.name == "timestamp":
        return BIGINT, from_text("EPOCH_US($0)", value)
    if kind.is_decimal and kind.precision <= 18:
        return BIGINT, from_text(f"CAST($0 * {10**kind.scale} AS BIGINT)", exp.cast(value, f"DECIMAL(38, {kind.scale})"))
    raise call.refusal(f"of {kind}")


_ALGORITHMS = {
    **{f"SHA{sign}{bits}": f"sha{bits}" for bits in (1, 224, 256, 384, 512) for sign in ("", "-")},
    "MD5": "md5",
}  # fmt: skip


def _authenticated(key: bytes, message: bytes, algorithm: str) -> bytes:
    name = _ALGORITHMS.get(algorithm.upper())
    if name is None:
        raise InvalidInputError(
            f"the function `hmac`: expected an algorithm out of {', '.join(_ALGORITHMS)}, found {algorithm!r:.80}", kind="query"
        )
    if not key:
        raise InvalidInputError("the function `hmac`: expected a key, found an empty one", kind="query")
    return hmac.digest(key, message, name)


_HMAC = by_value("hmac", (BINARY, BINARY, STRING), BINARY, _authenticated)


# Algorithms of DuckDB's own; a key that is longer than a block is hashed first.
_IN_SQL = {"md5": "MD5", "sha1": "SHA1", "sha256": "SHA256"}
_BLOCK_BYTES = 64


def _written_bytes(value: exp.Expr) -> bytes:
    """The bytes that stand in the query as a text or as hexadecimal digits; none for others."""
    if isinstance(value, exp.Literal) and value.is_string:
        return str(value.this).encode()
    digits = value.name if isinstance(value, exp.HexString) else ""
    return bytes.fromhex(digits) if re.fullmatch("(?:[0-9A-Fa-f]{2})*", digits) else b""


def _hmac(call: RuleCall) -> exp.Expr:
    algorithm = text(call, 2) if len(call.values) > 2 else exp.Literal.string("SHA-256")
    key = _written_bytes(call.values[0])
    function = _IN_SQL.get(_ALGORITHMS.get(algorithm.name.upper(), "")) if isinstance(algorithm, exp.Literal) else None
    if key and len(key) <= _BLOCK_BYTES and function is not None:
        inner, outer = (bytes(byte ^ pad for byte in key.ljust(_BLOCK_BYTES, b"\0")).hex() for pad in (0x36, 0x5C))
        digest = f"UNHEX({function}(UNHEX('{outer}') || UNHEX({function}(UNHEX('{inner}') || $0))))"
        return call.text(digest, binary(call, 1))
    return _HMAC.of(binary(call, 0), binary(call, 1), algorithm)


RULES = (
    FunctionRule(name="crc32", bounds=(1, 1), result=always(BIGINT), write=_crc32),
    FunctionRule(name="hash", bounds=(1, MANY), result=always(INT), write=_hashed),
    FunctionRule(name="xxhash64", bounds=(1, MANY), result=always(BIGINT), write=_hashed),
    FunctionRule(name="hmac", bounds=(2, 3), result=always(BINARY), write=_hmac),
)
ARROW = (CRC32, _HMAC, *_HASHES.values(), *_LISTS.values())
