"""Rows whose records are too large are found exactly, and ordinary rows are not encoded for that."""

import numpy as np
import pyarrow as pa
import pytest

from tablestore.json.jsontext import rows_to_json, text_bounds
from tablestore.log import recordlimit
from tablestore.log.changemessages import encode_changes
from tablestore.log.record import sizes_of
from tablestore.log.recordlimit import large_rows
from tablestore.types.rowkind import RowKind
from tests.json.test_text_bytes import VALUES

EDGES = {
    **VALUES,
    "escapes": pa.array(["\x00\x01\x1f" * 50, None, '\\"' * 30]),
    "base64": pa.array([b"a", b"", None]),
    "null row": pa.array(
        [{"a": None, "b": None}, None, {"a": 1.5e-300, "b": "\n"}], pa.struct([("a", pa.float64()), ("b", pa.string())])
    ),
    "maps of lists": pa.array([[(1, ["\x00"] * 9), (2, None)], None, []], pa.map_(pa.int64(), pa.list_(pa.string()))),
    "longest decimal": pa.array([-(10**38 - 1), 0, None], pa.decimal128(38, 0)).cast(pa.decimal128(38, 0)),
}


@pytest.mark.parametrize("kind", EDGES)
def test_no_row_has_more_text_than_its_bound(kind: str) -> None:
    array = EDGES[kind]
    for part in (array, array.slice(1), array.slice(2), array.slice(0, 0)):
        rows = pa.table({'co"l': part})
        found = [len(text.encode()) for text in rows_to_json([part], ['co"l']).to_pylist()]
        bounds = text_bounds(rows)
        assert len(bounds) == len(part) and all(size <= bound for size, bound in zip(found, bounds.tolist(), strict=True))
    assert (
        text_bounds(pa.table({"c": pa.chunked_array([array, array])})).tolist() == text_bounds(pa.table({"c": array})).tolist() * 2
    )


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("mode", ["upsert", "all"])
def test_the_rows_over_the_limit_are_found_whatever_lies_around_them(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordlimit, "BATCH_ROWS", 7)
    monkeypatch.setattr(recordlimit, "TEXT_BYTES", 300)
    random = np.random.default_rng(5)
    count = 200
    texts = ["\n" * int(n) if n % 2 else "x" * int(n) for n in random.integers(0, 120, count)]
    kinds = random.integers(0, 4, count).astype(np.int8)
    rows = pa.table({"id": np.arange(count), "v": texts})
    messages = encode_changes(rows, kinds, key=["id"], mode=mode)  # type: ignore[arg-type]
    sizes = sizes_of(messages.keys, messages.values)
    for limit in (0, 12, 100, int(np.median(sizes)), int(sizes.max()) - 1, int(sizes.max())):
        found = list(large_rows(rows, kinds, key=["id"], mode=mode, limit=limit))  # type: ignore[arg-type]
        chosen = np.flatnonzero(sizes > limit)
        assert [row.position for row in found] == messages.places[chosen].tolist()
        assert [row.size for row in found] == sizes[chosen].tolist()
        assert [row.key for row in found] == [messages.keys[i] for i in chosen]


def test_rows_within_the_limit_are_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("encoded")

    monkeypatch.setattr(recordlimit, "encode_changes", fail)
    rows = pa.table({"id": [1, 2], "v": ["x" * 100_000, None], "w": [[1.5] * 1_000, []]})
    assert list(large_rows(rows, None, key=["id"], mode="upsert", limit=1_000_000)) == []


def test_a_delete_is_as_large_as_its_key() -> None:
    rows = pa.table({"id": ["k" * 90, "k"], "v": ["x" * 500] * 2})
    kinds = np.full(2, int(RowKind.DELETE), dtype=np.int8)
    (row,) = large_rows(rows, kinds, key=["id"], mode="upsert", limit=90)
    assert (row.position, row.size) == (0, 99)
