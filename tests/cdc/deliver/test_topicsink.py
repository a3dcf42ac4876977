"""What the messages of changes are."""

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.cdc.deliver.topicsink import encode

CHANGES = pa.RecordBatch.from_pydict({"_row_kind": ["+I", "-U", "+U", "-D"], "id": [1, 2, 2, 3], "v": [None, "a", "b", "c"]})


def test_json_says_what_a_row_is_now_and_a_tombstone_that_it_is_gone() -> None:
    [(keys, values)] = encode(CHANGES, ["id"], "json")
    assert keys == [b'{"id":1}', b'{"id":2}', b'{"id":3}']
    assert values == [b'{"id":1,"v":null}', b'{"id":2,"v":"b"}', None]
    assert list(encode(CHANGES.slice(1, 1), ["id"], "json")) == [([], [])]


def test_without_a_key_json_takes_new_rows_only() -> None:
    assert list(encode(CHANGES.slice(0, 1), [], "json")) == [([None], [b'{"id":1,"v":null}'])]
    with pytest.raises(ts.UnsupportedError, match="debezium-json"):
        list(encode(CHANGES.slice(3), [], "json"))
    [(keys, values)] = encode(CHANGES.slice(3), [], "debezium-json")
    assert keys == [None] and values == [b'{"before":{"id":3,"v":"c"},"after":null,"op":"d"}']
