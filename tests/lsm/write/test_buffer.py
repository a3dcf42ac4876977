"""A flush gives, per partition and bucket, what a dict of the newest versions would hold, in key order."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.errors import InvalidInputError
from tablestore.format.bucket import bucket_of
from tablestore.lsm.write.writebuffer import WriteBuffer
from tablestore.types.arrowtypes import to_arrow_field
from tablestore.types.datatypes import AtomicType, Field, TypeRoot
from tablestore.types.newschema import new_schema
from tablestore.types.schema import TableSchema
from tests.support.keycases import KEY_CASES, KeyCase, order_of

not_null_cases = [case for case in KEY_CASES if not any(field.type.nullable for field in case.fields)]
cases = pytest.mark.parametrize("case", not_null_cases, ids=str)

DAY = Field(id=10, name="day", type=AtomicType(root=TypeRoot.INT, nullable=False))
VERSION = Field(id=11, name="version", type=AtomicType(root=TypeRoot.INT))
NOTE = Field(id=12, name="note", type=AtomicType(root=TypeRoot.VARCHAR, length=20))


def _schema(case: KeyCase, *, partitioned: bool, buckets: int, options: dict[str, str]) -> TableSchema:
    columns = (*case.fields, *((DAY,) if partitioned else ()), VERSION, NOTE)
    keys = [field.name for field in case.fields]
    return new_schema(
        schema=pa.schema([to_arrow_field(field) for field in columns]),
        primary_key=[*(["day"] if partitioned else []), *keys],
        partition_by=["day"] if partitioned else [],
        options={"bucket": str(buckets), **options},
    )


def _same(a, b) -> bool:
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


def _bucket(case: KeyCase, key, buckets: int) -> int:
    return int(bucket_of(case.columns([key]), [field.type for field in case.fields], buckets)[0])


def _flush_and_compare(case: KeyCase, data, options: dict[str, str], rank) -> None:
    partitioned, buckets = data.draw(st.booleans()), data.draw(st.sampled_from([1, 3]))
    schema = _schema(case, partitioned=partitioned, buckets=buckets, options=options)
    buffer = WriteBuffer(schema, total_buckets=buckets, budget_bytes=1 << 20)
    newest: dict = {}
    arrival = 0
    for _ in range(data.draw(st.integers(1, 3))):
        keys = data.draw(st.lists(case.keys, max_size=14))
        count = len(keys)
        days = data.draw(st.lists(st.integers(1, 3), min_size=count, max_size=count))
        versions = data.draw(st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=count, max_size=count))
        kinds = data.draw(st.one_of(st.none(), st.lists(st.sampled_from([0, 2, 3]), min_size=count, max_size=count)))
        columns = [*case.columns(keys), *([pa.array(days, pa.int32())] if partitioned else [])]
        columns += [pa.array(versions, pa.int32()), pa.array([f"n{arrival + i}" for i in range(count)])]
        buffer.add(
            pa.Table.from_arrays(columns, schema=schema.arrow_schema),
            None if kinds is None else pa.array(kinds, pa.int8()),
        )
        for i, key in enumerate(keys):
            partition = (days[i],) if partitioned else ()
            place = (partition, _bucket(case, key, buckets))
            row = (rank(versions[i]), arrival, key, f"n{arrival}", 0 if kinds is None else kinds[i])
            slot = newest.setdefault(place, {})
            before = slot.get(order_of(key))
            if before is None or before[:2] < row[:2]:
                slot[order_of(key)] = row
            arrival += 1
    flushed = list(buffer.flush())
    found = {
        (run.partition, run.bucket): [
            (tuple(row[field.name] for field in case.fields), row["note"], kind)
            for row, kind in zip(run.rows.to_pylist(), run.kinds.tolist(), strict=True)
        ]
        for run in flushed
    }
    expected = {place: [row[2:] for _, row in sorted(slot.items())] for place, slot in newest.items()}
    assert len(flushed) == len(found)
    assert found.keys() == expected.keys()
    for place, rows in expected.items():
        assert [row[1:] for row in found[place]] == [row[1:] for row in rows]
        for (key, *_), (other, *_) in zip(found[place], rows, strict=True):
            assert all(_same(a, b) for a, b in zip(key, other, strict=True))
    for run in flushed:
        assert run.retractions == int(np.isin(run.kinds, [1, 3]).sum())
    assert buffer.nbytes == 0
    assert list(buffer.flush()) == []


@pytest.mark.deep_after(1)
@cases
@settings(max_examples=25)
@given(data=st.data())
def test_a_flush_keeps_the_last_arrival_of_each_key(case: KeyCase, data):
    _flush_and_compare(case, data, {}, rank=lambda version: 0)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("case", [c for c in not_null_cases if c.name in ("small int", "string")], ids=str)
@pytest.mark.parametrize("order", ["ascending", "descending"])
@settings(max_examples=40)
@given(data=st.data())
def test_sequence_fields_come_before_arrival_and_nulls_lose(case: KeyCase, order, data):
    def rank(version):
        return (0, 0) if version is None else (1, version if order == "ascending" else -version)

    options = {"sequence.field": "version", "sequence.field.sort-order": order}
    _flush_and_compare(case, data, options, rank)


def _int_schema(**options: str) -> TableSchema:
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("note", pa.string())])
    return new_schema(schema=columns, primary_key=["id"], options={"bucket": "1", **options})


def _rows(schema: TableSchema, ids, notes=None) -> pa.Table:
    notes = [f"n{i}" for i in range(len(ids))] if notes is None else notes
    return pa.table({"id": ids, "note": pa.array(notes, pa.string())}, schema=schema.arrow_schema)


def _buffer(schema: TableSchema, buckets: int = 1) -> WriteBuffer:
    return WriteBuffer(schema, total_buckets=buckets, budget_bytes=1000)


def test_first_row_keeps_the_first_arrival_and_refuses_retractions():
    schema = _int_schema(**{"merge-engine": "first-row"})
    buffer = _buffer(schema)
    buffer.add(_rows(schema, [2, 1, 2], ["a", "b", "c"]))
    assert next(buffer.flush()).rows.to_pydict() == {"id": [1, 2], "note": ["b", "a"]}
    with pytest.raises(InvalidInputError, match="first-row takes no retractions"):
        buffer.add(_rows(schema, [1]), pa.array([3], pa.int8()))


def test_ignore_delete_skips_retractions():
    schema = _int_schema(**{"ignore-delete": "true"})
    buffer = _buffer(schema)
    buffer.add(_rows(schema, [1, 2]))
    buffer.add(_rows(schema, [2, 3]), pa.array([3, 0], pa.int8()))
    (run,) = buffer.flush()
    assert run.rows["id"].to_pylist() == [1, 2, 3]
    assert run.retractions == 0


def test_rows_that_arrive_sorted_are_not_moved():
    schema = _int_schema()
    rows = _rows(schema, [1, 2, 3])
    buffer = _buffer(schema)
    buffer.add(rows)
    (run,) = buffer.flush()
    assert run.rows["id"].chunk(0).buffers()[1].address == rows["id"].chunk(0).buffers()[1].address


def test_the_buffer_is_full_at_its_budget():
    schema = _int_schema()
    buffer = _buffer(schema)
    buffer.add(_rows(schema, [1]))
    assert not buffer.full
    buffer.add(_rows(schema, list(range(100))))
    assert buffer.full


def test_kinds_must_match_the_rows():
    schema = _int_schema()
    with pytest.raises(InvalidInputError, match=r"row kind per row \(2\), found 1"):
        _buffer(schema).add(_rows(schema, [1, 2]), pa.array([0], pa.int8()))


def _append_schema(**options: str) -> TableSchema:
    columns = pa.schema([("id", pa.int64()), ("note", pa.string())])
    return new_schema(schema=columns, options=options)


def test_an_append_table_without_buckets_keeps_its_rows_as_they_are():
    schema = _append_schema(bucket="-1")
    rows = _rows(schema, [3, 1, 3, None])
    buffer = _buffer(schema, -1)
    buffer.add(rows)
    buffer.add(rows)
    (run,) = buffer.flush()
    assert (run.partition, run.bucket, run.retractions) == ((), 0, 0)
    assert run.rows.equals(pa.concat_tables([rows, rows]))
    assert run.kinds.tolist() == [0] * 8


def test_a_bucketed_append_table_keeps_arrival_order_within_a_bucket():
    schema = _append_schema(**{"bucket": "3", "bucket-key": "id"})
    ids = [5, 1, 5, 2, 9, 1, 7]
    buffer = _buffer(schema, 3)
    buffer.add(_rows(schema, ids))
    placed = bucket_of([pa.array(ids)], [schema.field("id").type], 3).tolist()
    expected = {b: [f"n{i}" for i, found in enumerate(placed) if found == b] for b in set(placed)}
    assert {run.bucket: run.rows["note"].to_pylist() for run in buffer.flush()} == expected


def test_append_tables_take_inserts_only():
    schema = _append_schema(bucket="-1")
    with pytest.raises(InvalidInputError, match="inserts"):
        _buffer(schema, -1).add(_rows(schema, [1]), pa.array([3], pa.int8()))


def test_partitions_with_nulls_nanoseconds_and_several_columns_are_kept_apart():
    moment = np.datetime64("2024-01-01T00:00:00.123456789", "ns")
    columns = pa.schema([("a", pa.string()), ("b", pa.timestamp("ns")), ("v", pa.int32())])
    # Nanosecond partition columns must be NOT NULL.
    columns = columns.set(1, pa.field("b", pa.timestamp("ns"), nullable=False))
    schema = new_schema(schema=columns, partition_by=["a", "b"], options={"bucket": "-1"})
    rows = pa.table(
        {"a": ["x", None, "x", None], "b": pa.array([moment] * 4, pa.timestamp("ns")), "v": [1, 2, 3, 4]},
        schema=schema.arrow_schema,
    )
    buffer = _buffer(schema, -1)
    buffer.add(rows)
    found = {run.partition: run.rows["v"].to_pylist() for run in buffer.flush()}
    assert found == {("x", moment): [1, 3], (None, moment): [2, 4]}


@pytest.mark.parametrize("width", [1, 5, 8, 13, 16, 40])
def test_strings_of_one_length_move_with_their_rows(width):
    rng = np.random.default_rng(width)
    ids = rng.permutation(500)
    schema = _int_schema()
    buffer = _buffer(schema)
    buffer.add(_rows(schema, ids, [f"{i:0{width}d}"[-width:] for i in ids]).slice(100))
    (run,) = buffer.flush()
    assert run.rows["note"].to_pylist() == [f"{i:0{width}d}"[-width:] for i in sorted(ids[100:])]
    run.rows.validate(full=True)
