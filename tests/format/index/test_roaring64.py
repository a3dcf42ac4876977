"""64-bit Roaring bitmaps in the bytes of the Java library."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.errors import FormatError
from tablestore.format.index.roaring64 import decode_bitmap64, encode_bitmap64, union_bitmap64

# {1, 2, 70000, 5000000000, -1} by Paimon's RoaringBitmap64 (Java core 1.4.2).
GOLDEN = bytes.fromhex(
    "010400000000000000000200000000ff000002000200000000010000020001000000010004000000000000000000000000000000000004000000"
    "000000000001010000000000000004000000000000012a05020000000000000004000000ffffffffffff03000000000000000100000"
    "0fe0400000001020200000001000200010201000000701101020100000000f2010201000000ffff04000000000000000000000003000000"
)
VALUES = [1, 2, 70_000, 5_000_000_000, 2**64 - 1]


def array(values) -> np.ndarray:
    return np.array(sorted(set(values)), dtype=np.uint64)


def test_golden_bytes_both_ways() -> None:
    assert decode_bitmap64(GOLDEN).tolist() == VALUES
    assert encode_bitmap64(array(VALUES)) == GOLDEN
    assert encode_bitmap64(array([])) == b"\x00"
    assert decode_bitmap64(b"\x00").tolist() == []


spread = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 300).map(lambda n: n << 16) | st.integers(0, 200), max_size=40)
runs = st.tuples(st.integers(0, 2**63), st.integers(1, 9000), st.sampled_from([1, 2, 3])).map(
    lambda found: range(found[0], found[0] + found[1] * found[2], found[2])
)


@settings(max_examples=60)
@given(sets=st.lists(spread | runs, max_size=4))
def test_sets_come_back_and_unite(sets) -> None:
    encoded = [encode_bitmap64(array(values)) for values in sets]
    for values, data in zip(sets, encoded, strict=True):
        assert decode_bitmap64(data).tolist() == sorted(set(values))
    united = sorted({value for values in sets for value in values})
    assert decode_bitmap64(union_bitmap64(encoded)).tolist() == united
    assert union_bitmap64(encoded) == encode_bitmap64(array(united))


@pytest.mark.parametrize("children", [4, 5, 16, 17, 48, 49, 256])
def test_branches_of_every_size(children: int) -> None:
    values = [n << 40 for n in range(children)]
    assert decode_bitmap64(encode_bitmap64(array(values))).tolist() == values


@pytest.mark.parametrize("data", [b"", b"\x01", GOLDEN[:-30], b"\x01" + b"\xff" * 40, b"\x02abc"], ids=range(5))
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="not a 64-bit Roaring bitmap"):
        decode_bitmap64(data)
