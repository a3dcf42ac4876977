"""Hash index files: golden bytes both ways, and damage."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tablestore.errors import FormatError
from tablestore.format.bucket import hash_columns
from tablestore.format.index.hashindex import decode_hash_index, encode_hash_index
from tablestore.format.manifest.indexmanifest import HASH, decode_index_manifest
from tablestore.types.datatypes import AtomicType, TypeRoot

GOLDEN = Path(__file__).parents[2] / "golden" / "paimon" / "py_pk_dynamic"


def test_golden_bytes_both_ways() -> None:
    # INT 0 and 1, by table-format.md §7.1.
    hashes = np.array([1465514398, -300363099], np.int32)
    golden = bytes.fromhex("ee18d2a5" + "5759f99e")
    assert encode_hash_index(hashes) == golden
    assert decode_hash_index(golden, "index-1", row_count=2).tolist() == sorted(hashes.tolist())


def test_the_hash_index_of_another_engine_holds_the_hashes_of_its_keys() -> None:
    paths = list(GOLDEN.glob("manifest/index-manifest-*"))
    assert paths
    for path in paths:
        (entry,) = decode_index_manifest(path.read_bytes(), path.name)
        assert entry.index_type == HASH
        data = (GOLDEN / "index" / entry.file_name).read_bytes()
        found = decode_hash_index(data, entry.file_name, row_count=entry.row_count)
        keys = pa.array(range(entry.row_count), pa.int32())
        expected = hash_columns([keys], [AtomicType(root=TypeRoot.INT, nullable=False)])
        assert found.tolist() == sorted(expected.tolist())
        assert encode_hash_index(found) == b"".join(sorted((data[i : i + 4] for i in range(0, len(data), 4)), key=_signed))


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


@pytest.mark.parametrize(("data", "count"), [(b"\0\0\0", None), (b"\0" * 8, 1), (b"", 1)])
def test_a_file_of_another_size_is_refused_with_the_way_out(data: bytes, count: int | None) -> None:
    with pytest.raises(FormatError, match="overwrite the partition"):
        decode_hash_index(data, "index-1", row_count=count)
