"""The binary form of a VARIANT is read back as it was written, and damaged bytes end in an error, soon and in little memory."""

import random
from decimal import Decimal
from typing import Any

import pytest

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.sql.duckdb.functions.variantformat import decode, encode, json_of, parts_of

NO_NAMES = b"\1\0\0"


def value_of(rng: random.Random, depth: int) -> Any:
    plain = [None, True, -(2**63), 2**63 - 1, "", "ä" * rng.randrange(80), 1.5, Decimal("-1.23"), Decimal(10**37)]
    if not depth or rng.random() < 0.4:
        return rng.choice(plain)
    if rng.random() < 0.5:
        return [value_of(rng, depth - 1) for _ in range(rng.randrange(5))]
    return {f"k{place}": value_of(rng, depth - 1) for place in range(rng.randrange(5))}


def test_values_come_back_and_damaged_bytes_are_refused() -> None:
    rng = random.Random(1)
    refused = 0
    for _ in range(1_500):
        value = value_of(rng, 3)
        variant = encode(value)
        assert decode(variant) == value
        damaged = [bytearray(part) for part in variant]
        for _ in range(rng.randrange(1, 4)):
            part = damaged[rng.random() < 0.3]
            part[rng.randrange(len(part))] = rng.randrange(256)
        kept = bytes(damaged[0][: rng.randrange(len(damaged[0]) + 1)] if rng.random() < 0.3 else damaged[0])
        for read in (decode, parts_of):
            try:
                read((kept, bytes(damaged[1])))
            except (InvalidInputError, UnsupportedError):
                refused += 1
    assert refused > 500


def test_parts_that_claim_to_be_many_or_lie_in_one_place_are_refused() -> None:
    nested = b"\0"
    for _ in range(200):
        # Both elements begin where the array's only part does.
        nested = bytes([3 | 3 << 2, 2]) + bytes(8) + len(nested).to_bytes(4, "little") + nested
    deep = b"\0"
    for _ in range(3_000):
        deep = bytes([3 | 3 << 2, 1]) + bytes(4) + len(deep).to_bytes(4, "little") + deep
    for value in (b"", b"\x13\xff\xff\xff\x7f\0", nested, deep):
        with pytest.raises(InvalidInputError, match="expected the bytes of a VARIANT"):
            json_of((value, NO_NAMES))
    with pytest.raises(InvalidInputError, match="names"):
        decode((b"\0", b"\xc1\xff\xff\xff\x7f"))
