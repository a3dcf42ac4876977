"""The position of a job in its source survives as text, and whatever happens to snapshots."""

import pytest

import tablestore as ts
from tablestore.cdc.sourceposition import SourcePosition, parse_position

POSITION = SourcePosition(source="t", source_id="x1", offsets={10: 7, 2: 2**62}, run="r")


def test_a_position_is_read_as_it_was_written() -> None:
    assert POSITION.text() == '{"source":"t","id":"x1","offsets":{"2":4611686018427387904,"10":7},"run":"r"}'
    assert parse_position(POSITION.text(), where="here") == POSITION


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"source":"t","id":"x","offsets":[1],"run":"r"}', "[" * 9999])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ts.FormatError, match="here: expected the position"):
        parse_position(text, where="here")
