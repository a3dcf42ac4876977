"""Blocks of a manifest are read and checked without the rest of it, and what is not what was sealed is not read."""

import base64
import random

import numpy as np
import pytest

from tablestore.errors import FormatError
from tablestore.format.manifest.avro import block_places
from tablestore.format.manifest.blockdigests import BlockDigests, ReadRange
from tablestore.format.manifest.entrycolumns import RecordPlaces, decode_with_records, entries_at, places_of_records
from tablestore.format.manifest.manifestfile import encode_manifest
from tests.format.manifest.test_entrycolumns import _entry

ENTRIES = [_entry(number) for number in range(700)]
DATA = encode_manifest(ENTRIES, b"n" * 16)
STARTS = block_places(DATA)[1]
DIGESTS = BlockDigests.of(DATA, STARTS)


def reading(data: bytes, read: list[tuple[int, int]] | None = None) -> ReadRange:
    def ranged(start: int, end: int) -> bytes:
        if read is not None:
            read.append((start, end))
        return data[start:end]

    return ranged


def test_entries_of_some_blocks_are_those_of_the_manifest_and_nothing_else_is_read() -> None:
    places = places_of_records(DATA, decode_with_records("m", DATA)[1])
    assert places.digests is not None and places.digests.encode() == DIGESTS.encode()
    rng = random.Random(1)
    for wanted in ([0], [699], [64, 65, 3], sorted(rng.sample(range(700), 40)), rng.sample(range(700), 40)):
        read = list[tuple[int, int]]()
        few = DIGESTS.read(reading(DATA, read), places.blocks[wanted])
        assert few is not None
        data, starts = few
        entries = entries_at(data, RecordPlaces(starts, places.offsets[wanted]), "m")
        assert entries == tuple(ENTRIES[place] for place in wanted)
        blocks = {int(start) for start in places.blocks[wanted]}
        assert {start for start, _ in read} == {0, *blocks} and len(read) == len(blocks) + 1


def test_a_damaged_header_or_block_is_not_read_and_damage_elsewhere_does_not_matter() -> None:
    blocks = np.array([STARTS[2], STARTS[5]], np.int64)
    sealed = [(0, STARTS[0]), (STARTS[2], STARTS[3]), (STARTS[5], STARTS[6])]
    for place in range(0, len(DATA), 7):
        damaged = bytearray(DATA)
        damaged[place] ^= 4
        is_read = any(start <= place < end for start, end in sealed)
        assert (DIGESTS.read(reading(bytes(damaged)), blocks) is None) == is_read
    assert DIGESTS.read(reading(DATA[: STARTS[5] + 9]), blocks) is None, "cut"


@pytest.mark.parametrize("block", [0, STARTS[1] + 1, len(DATA), len(DATA) + 5])
def test_a_place_where_no_block_begins_is_not_read(block: int) -> None:
    assert DIGESTS.read(reading(DATA), np.array([block], np.int64)) is None


def test_they_are_stored_and_other_bytes_are_refused() -> None:
    again = BlockDigests.decode(DIGESTS.encode())
    assert again.ends.tolist() == DIGESTS.ends.tolist() == [*STARTS, len(DATA)] and again.digests == DIGESTS.digests
    assert again.size_bytes == 12 * (8 + 16)
    stored = base64.b64decode(DIGESTS.encode())
    backwards = stored[4:8] + stored[:4] + stored[8:]
    for other in (b"", b"?", base64.b64encode(stored[:-1]), base64.b64encode(backwards), base64.b64encode(bytes(20))):
        with pytest.raises(FormatError, match="digests of the blocks of a manifest"):
            BlockDigests.decode(other)
