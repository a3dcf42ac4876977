"""Deletion vectors: every container kind, and damage."""

import random
import zlib

import numpy as np
import pytest
from pyroaring import BitMap

from tablestore.errors import FormatError, UnsupportedError
from tablestore.format.index.deletionvector import (
    VECTOR_MAGIC,
    byte_range,
    check_file_version,
    decode_deletion_vector,
    encode_deletion_vector,
    encode_vector_file,
)

CASES = {
    "empty": [],
    "one": [7],
    "array": list(range(0, 9000, 3)),
    "bits": list(range(0, 65536, 2)),
    "run": list(range(100, 60_000)),
    "whole container": list(range(65536)),
    "many containers": [*range(0, 700_000, 101), *range(800_000, 900_000), 2**32 - 1],
    "few run containers": [*range(10, 500), *range(70_000, 80_000)],
}


def _framed(payload):
    return len(payload).to_bytes(4, "big") + payload + zlib.crc32(payload).to_bytes(4, "big")


def _vector(bitmap):
    return _framed(VECTOR_MAGIC.to_bytes(4, "big") + bitmap)


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("runs", [False, True])
def test_positions_of_each_container_kind(name, runs):
    bitmap = BitMap(CASES[name])
    if runs:
        bitmap.run_optimize()
    found = decode_deletion_vector(_vector(bitmap.serialize()), "index-1")
    assert found.dtype == np.uint32
    assert found.tolist() == CASES[name]
    encoded = encode_deletion_vector(np.array(CASES[name][::-1], np.int64))
    assert decode_deletion_vector(encoded, "index-1").tolist() == CASES[name]


def test_golden_bytes_both_ways():
    golden = bytes.fromhex("000000165e43f2d03a300000010000000000000010000000" + "0700ac71f614")
    assert encode_deletion_vector(np.array([7])) == golden
    assert decode_deletion_vector(golden, "index-1").tolist() == [7]


def test_a_file_of_several_vectors_has_golden_bytes_and_says_where_each_lies():
    one, two = encode_deletion_vector(np.array([7])), encode_deletion_vector(np.array([1, 2]))
    data, ranges = encode_vector_file({"f1": (one, 1), "f2": (two, 2)})
    first = "000000165e43f2d03a3000000100000000000000100000000700ac71f614"
    second = "000000185e43f2d03a30000001000000000001001000000001000200c3366892"
    assert data.hex() == "01" + first + second
    assert [(r.data_file, r.offset, r.length, r.cardinality) for r in ranges] == [("f1", 1, 22, 1), ("f2", 31, 24, 2)]
    check_file_version(data, "index-1")
    for vector, expected in zip(ranges, ([7], [1, 2]), strict=True):
        offset, size = byte_range(vector)
        assert decode_deletion_vector(data[offset : offset + size], "index-1").tolist() == expected
    assert encode_vector_file({}) == (b"\1", ())


def test_every_flipped_bit_and_truncation_is_refused():
    data = encode_deletion_vector(np.array([1, 2, 3, 70_000]))
    for position in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[position // 8] ^= 1 << position % 8
        with pytest.raises(FormatError, match="index-1"):
            decode_deletion_vector(bytes(damaged), "index-1")
    for size in range(len(data)):
        with pytest.raises(FormatError, match="index-1"):
            decode_deletion_vector(data[:size], "index-1")


def test_bitmap_that_contradicts_itself_is_refused_even_with_a_right_checksum():
    seed = random.Random(3)
    refused = 0
    for name in CASES:
        bitmap = BitMap(CASES[name])
        bitmap.run_optimize()
        original = bitmap.serialize()
        for _ in range(200):
            damaged = bytearray(original)
            damaged[seed.randrange(min(len(damaged), 60))] = seed.randrange(256)
            try:
                found = decode_deletion_vector(_vector(bytes(damaged)), "index-1")
            except FormatError:
                refused += 1
            else:
                assert np.all(found[1:] > found[:-1])
    assert refused > 300


def test_position_beyond_the_file_is_refused():
    data = encode_deletion_vector(np.array([1, 8]))
    assert decode_deletion_vector(data, "index-1", row_count=9).tolist() == [1, 8]
    with pytest.raises(FormatError, match="8 rows, found 8"):
        decode_deletion_vector(data, "index-1", row_count=8)


def test_64_bit_vectors_are_refused_by_name():
    payload = (1581511377).to_bytes(4, "little") + bytes(20)
    with pytest.raises(UnsupportedError, match="bitmap64"):
        decode_deletion_vector(_framed(payload), "index-1")


def test_file_version_is_checked():
    check_file_version(b"\1rest", "index-1")
    for data, kind in ((b"\2", "too-new"), (b"\0", "corrupt"), (b"", "corrupt")):
        with pytest.raises(FormatError) as caught:
            check_file_version(data, "index-1")
        assert caught.value.kind == kind
