"""Files of a table without a key get numbers above all that has landed, without a look at what that was."""

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.store.sequence import SequenceNumbers
from tablestore.table.write.committing import Effect, Origin, commit_message

SCHEMA = pa.schema([("id", pa.int64())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)}, schema=SCHEMA)


def test_the_loser_of_a_race_gets_numbers_above_all_others_and_reads_none_of_their_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", SCHEMA, options={"write-only": "true"})
    table.append(rows(1))

    def refused(*arguments: object) -> None:
        raise AssertionError("nobody asks what has landed")

    monkeypatch.setattr(SequenceNumbers, "landed_since", refused)
    with table.new_writer() as writer:
        writer.write(rows(2, 3))
        first = writer.prepare()
    for number in range(4, 8):
        ts.open_table(table.location).append(rows(number))
    commit_message(table.context, table.change_log, first, Effect(), Origin(user="slow"))
    files = sorted(ts.open_table(table.location).files().to_pylist(), key=lambda one: one["min_sequence_number"])
    for one, following in pairwise(files):
        assert one["max_sequence_number"] < following["min_sequence_number"]
    assert files[-1]["row_count"] == 2
    assert sorted(ts.open_table(table.location).to_arrow().column("id").to_pylist()) == list(range(1, 8))
