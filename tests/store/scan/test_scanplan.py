"""The planner: whatever it leaves out, the splits that are left hold every row that a read has to give. Values only, no files."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.errors import FormatError, UnsupportedError
from tablestore.format.binaryrow import EMPTY_ROW, encode_row
from tablestore.format.bucket import bucket_of
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.entrycolumns import EntryColumns
from tablestore.format.manifest.indexmanifest import DELETION_VECTORS, HASH, DeletionVectorRange, IndexEntry
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.manifest.manifestlist import ManifestFile
from tablestore.format.stats import EMPTY_STATS, ColumnStats, SimpleStats, StatsCollector, encode_stats
from tablestore.store.scan.entrypruning import EntryPruning
from tablestore.store.scan.scanplan import plan_splits, prune_manifests
from tablestore.store.scan.splits import OPEN_COST_BYTES, Split
from tablestore.store.settings import table_settings
from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.filter.predicate import And, Comparison, IsIn, IsNull, Not, Or, Predicate, StartsWith, evaluate
from tablestore.types.newschema import new_schema
from tablestore.types.schema import POSTPONE_BUCKET, TableSchema

NAN, MIB = math.nan, 1024 * 1024
COLUMNS = pa.schema([("p", pa.string()), ("id", pa.int64()), ("x", pa.float64()), ("s", pa.string())])
Row = tuple[Any, ...]  # the values of COLUMNS
POOLS: dict[str, list[Any]] = {
    "p": ["a", "b", "ab"],
    "id": [-(2**63), -1, 0, 1, 2, 3, 4, 5, 2**63 - 1],
    "x": [-math.inf, -1.5, -0.0, 0.0, 2.5, math.inf, NAN, -NAN],
    "s": ["", "a", "ab", "abc", "b", "é", "\U0010ffff\U0010ffff\U0010ffff"],
}
STATISTICS = ("ours", "theirs", "some columns", "none")


def schema_of(*, keyed: bool, **options: str) -> TableSchema:
    given = {"bucket": "2", **({} if keyed else {"bucket-key": "id"}), **{k.replace("_", "-"): v for k, v in options.items()}}
    if given["bucket"] == "-1":
        given.pop("bucket-key", None)
    return new_schema(schema=COLUMNS, primary_key=["p", "id"] if keyed else (), partition_by=["p"], options=given)


def file_of(name: str, rows: Sequence[Row], schema: TableSchema, *, statistics: str = "ours", **given: Any) -> DataFileMeta:
    """What a writer says of a file with these rows."""
    table = pa.table([list(column) for column in zip(*rows, strict=True)], schema=COLUMNS)
    collector = StatsCollector(schema.fields, [2] * len(schema.fields))
    collector.add(table)
    columns = collector.result()
    if statistics == "theirs":  # they leave NaN out of the bounds
        numbers = [x for _, _, x, _ in rows if x is not None and not math.isnan(x)]
        columns[2] = ColumnStats(
            min=min(numbers, default=None), max=max(numbers, default=None), null_count=sum(row[2] is None for row in rows)
        )
    chosen = [2] if statistics == "some columns" else range(4)
    stats = encode_stats([columns[i] for i in chosen], [schema.fields[i].type for i in chosen])
    keys = [field.type for field in schema.key_fields]
    ids = sorted(row[1] for row in rows)
    made = DataFileMeta(
        file_name=f"{name}.parquet",
        file_size=1,
        row_count=len(rows),
        min_key=encode_row(ids[:1], keys) if keys else EMPTY_ROW,
        max_key=encode_row(ids[-1:], keys) if keys else EMPTY_ROW,
        key_stats=encode_stats([ColumnStats(min=ids[0], max=ids[-1], null_count=0)], keys) if keys else EMPTY_STATS,
        value_stats=EMPTY_STATS if statistics == "none" else stats,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
        level=0,
        value_stats_cols=("x",) if statistics == "some columns" else None,
        footer_digest=b"digest" if statistics == "ours" else None,
    )
    return replace(made, **given)


def entry(file: DataFileMeta, *, partition: str | None = "a", bucket: int = 0, total_buckets: int = 2) -> ManifestEntry:
    return ManifestEntry(kind=EntryKind.ADD, partition=row_of(partition), bucket=bucket, total_buckets=total_buckets, file=file)


def row_of(partition: str | None) -> bytes:
    return encode_row([partition], [schema_of(keyed=False).field("p").type])


def planned(
    live: Iterable[ManifestEntry],
    schema: TableSchema,
    predicate: Predicate | None = None,
    index: Sequence[IndexEntry] = (),
    **given: Any,
) -> tuple[Split, ...]:
    return plan_splits(live, index, schema, table_settings(schema), predicate, **{"file_fields": {}, **given})


def narrowed(live: Sequence[ManifestEntry], schema: TableSchema, predicate: Predicate) -> list[ManifestEntry]:
    """The entries of a large manifest that are looked at one by one."""
    stands_alone = not schema.is_keyed or table_settings(schema).deletion_vectors
    mask = EntryPruning(schema, predicate, stands_alone=stands_alone).keeps(EntryColumns.of(live))
    return [one for one, keep in zip(live, mask.tolist(), strict=True) if keep]


def names(splits: Iterable[Split]) -> list[str]:
    return [file.file_name.removesuffix(".parquet") for split in splits for file in split.files]


def kept(rows: Iterable[Row], predicate: Predicate) -> list[str]:
    """The rows that a filter keeps, in a form in which NaN and the zeros compare."""
    given = list(rows)
    table = pa.table([list(column) for column in zip(*given, strict=True)] or [[]] * 4, schema=COLUMNS)
    return sorted(repr(row) for row, keep in zip(given, evaluate(predicate, table).to_pylist(), strict=True) if keep)


def leaves() -> st.SearchStrategy[Predicate]:
    def of(name: str) -> st.SearchStrategy[Predicate]:
        value = st.sampled_from(POOLS[name])
        wanted = st.lists(st.one_of(value, st.none()), max_size=3).map(tuple)
        compared = st.builds(Comparison, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), st.just(name), value)
        return st.one_of(compared, st.builds(IsIn, st.just(name), wanted), st.just(IsNull(name)))

    return st.one_of(*map(of, POOLS), st.sampled_from(["", "a", "ab"]).map(lambda text: StartsWith("s", text)))


predicates = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda children: And(tuple(children))),
        st.lists(inner, max_size=3).map(lambda children: Or(tuple(children))),
        inner.map(Not),
    ),
    max_leaves=5,
)
xs, texts = st.sampled_from([*POOLS["x"], None]), st.sampled_from([*POOLS["s"], None])
statistics = st.sampled_from(STATISTICS)


# ---- nothing is lost


@st.composite
def flushes(draw: st.DrawFn) -> list[tuple[str, dict[int, tuple[Any, Any, bool]], str]]:
    """What was written one after the other: a partition, its rows by key (x, s, whether the row is a delete), its statistics."""
    rows = st.dictionaries(st.sampled_from(POOLS["id"]), st.tuples(xs, texts, st.booleans()), min_size=1, max_size=5)
    return draw(st.lists(st.tuples(st.sampled_from(["a", "b"]), rows, statistics), max_size=6))


@pytest.mark.deep
@settings(max_examples=150)
@given(flushes(), predicates, st.sampled_from([1, 2, 3, -1]), st.integers(1, 4 * MIB))
def test_a_keyed_table_merges_to_the_same_rows_without_what_is_left_out(written, predicate, total_buckets, split_bytes):
    schema = schema_of(keyed=True, bucket=str(total_buckets))
    stored: dict[str, list[tuple[int, int, Row | None]]] = {}  # file name -> key, order, row
    live: list[ManifestEntry] = []
    for order, (partition, rows, how) in enumerate(written):
        buckets: dict[int, list[int]] = defaultdict(list)
        for key in rows:
            # Of a table whose buckets are given as keys arrive, the bucket of a key says nothing about the key.
            bucket = (
                int(bucket_of([pa.array([key])], [schema.field("id").type], total_buckets)[0]) if total_buckets > 0 else key % 2
            )
            buckets[bucket].append(key)
        for bucket, keys in buckets.items():
            file = file_of(f"{order}-{bucket}", [(partition, k, *rows[k][:2]) for k in keys], schema, statistics=how)
            live.append(entry(file, partition=partition, bucket=bucket, total_buckets=total_buckets))
            stored[file.file_name] = [(k, order, None if rows[k][2] else (partition, k, *rows[k][:2])) for k in keys]

    def merged(files: Iterable[DataFileMeta]) -> list[Row]:
        newest: dict[int, tuple[int, Row | None]] = {}
        for key, order, row in (record for file in files for record in stored[file.file_name]):
            if key not in newest or newest[key][0] < order:
                newest[key] = order, row
        return [row for _, row in newest.values() if row is not None]

    buckets_of_all: dict[tuple[bytes, int], list[DataFileMeta]] = defaultdict(list)
    for one in live:
        buckets_of_all[one.partition, one.bucket].append(one.file)
    expected = kept([row for files in buckets_of_all.values() for row in merged(files)], predicate)
    for looked_at in (live, narrowed(live, schema, predicate)):
        splits = planned(looked_at, schema, predicate, split_bytes=split_bytes)
        read = [row for split in splits for section in split.sections for row in merged(section.files)]
        assert kept(read, predicate) == expected


append_rows = st.lists(st.tuples(st.sampled_from(POOLS["id"]), xs, texts), min_size=1, max_size=4)


@pytest.mark.deep
@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from(["a", "b", None]), append_rows, statistics), max_size=5), predicates)
def test_an_append_table_gives_the_same_rows_without_what_is_left_out(written, predicate):
    schema = schema_of(keyed=False, bucket="-1")
    stored = {f"{n}.parquet": [(partition, *row) for row in rows] for n, (partition, rows, _) in enumerate(written)}
    live = [
        entry(file_of(str(n), stored[f"{n}.parquet"], schema, statistics=how), partition=partition, total_buckets=-1)
        for n, (partition, _, how) in enumerate(written)
    ]
    for looked_at in (live, narrowed(live, schema, predicate)):
        splits = planned(looked_at, schema, predicate)
        assert not any(split.needs_merge for split in splits)
        read = [row for split in splits for file in split.files for row in stored[file.file_name]]
        assert kept(read, predicate) == kept([row for rows in stored.values() for row in rows], predicate)


@settings(max_examples=50)
@given(st.lists(st.tuples(append_rows, statistics, st.integers(0, 2), st.sets(st.integers(0, 3))), max_size=5), predicates)
def test_files_with_vectors_stand_alone_and_bring_their_vectors(written, predicate):
    schema = schema_of(keyed=True, **{"deletion_vectors.enabled": "true"})
    files = {
        n: file_of(str(n), [("a", *row) for row in rows], schema, statistics=how, level=level)
        for n, (rows, how, level, _) in enumerate(written)
    }
    index = [vectors(f"index-{n}", (f"{n}.parquet", 7 * n)) for n, (*_, deleted) in enumerate(written) if deleted]
    live = [entry(file, total_buckets=1) for file in files.values()]
    splits = planned(live, schema, predicate, index, split_bytes=1)
    assert not any(split.needs_merge for split in splits)
    found = {name: vector for split in splits for name, vector in split.deletions}
    assert set(found) == {f"{name}.parquet" for name in names(splits) if written[int(name)][3]}
    assert all((vector.index_file, vector.offset) == (f"index-{name[0]}", 7 * int(name[0])) for name, vector in found.items())

    def rows_of(numbers: Iterable[int]) -> list[Row]:
        return [("a", *row) for n in numbers for i, row in enumerate(written[n][0]) if i not in written[n][3]]

    visible = [n for n, (_, _, level, _) in enumerate(written) if level > 0]
    assert kept(rows_of(map(int, names(splits))), predicate) == kept(rows_of(visible), predicate)
    coarse = planned(narrowed(live, schema, predicate), schema, predicate, index, split_bytes=1)
    assert kept(rows_of(map(int, names(coarse))), predicate) == kept(rows_of(visible), predicate)


def vectors(name: str, *ranges: tuple[str, int], index_type: str = DELETION_VECTORS) -> IndexEntry:
    return IndexEntry(
        kind=EntryKind.ADD,
        partition=row_of("a"),
        bucket=0,
        index_type=index_type,
        file_name=name,
        file_size=1,
        row_count=len(ranges),
        deletion_vectors=tuple(DeletionVectorRange(data_file=file, offset=offset, length=3) for file, offset in ranges),
    )


def test_an_index_of_another_type_has_no_vectors_and_one_file_may_have_many() -> None:
    schema = schema_of(keyed=True, **{"deletion_vectors.enabled": "true"})
    live = [entry(file_of(name, [("a", n, 1.0, "")], schema, level=1)) for n, name in enumerate("klm")]
    index = [vectors("i", ("k.parquet", 1), ("m.parquet", 9)), vectors("h", ("l.parquet", 5), index_type=HASH)]
    (split,) = planned(live, schema, index=index)
    assert [(name, found.index_file, found.offset, found.length) for name, found in split.deletions] == [
        ("k.parquet", "i", 1, 3),
        ("m.parquet", "i", 9, 3),
    ]


# ---- how files become splits


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 8), st.integers(0, 6 * MIB)), max_size=12),
    st.integers(1, 8 * MIB),
    st.randoms(use_true_random=False),
)
def test_splits_are_as_large_as_they_may_be_and_never_cut_what_merges(ranges, split_bytes, random):
    schema = schema_of(keyed=True)
    files = [
        file_of(str(n), [("a", low, None, None), ("a", low + wide, None, None)], schema, file_size=size)
        for n, (low, wide, size) in enumerate(ranges)
    ]
    live = list(map(entry, files))
    splits = planned(live, schema, split_bytes=split_bytes)
    assert sorted(map(int, names(splits))) == list(range(len(ranges)))
    weights = [
        [sum(max(file.file_size, OPEN_COST_BYTES) for file in section.files) for section in split.sections] for split in splits
    ]
    assert all(sum(split) <= split_bytes or len(split) == 1 for split in weights)
    assert all(sum(one) + other[0] > split_bytes for one, other in pairwise(weights)), "neighbours would fit"
    reached = -1
    for section in (section for split in splits for section in split.sections):
        bounds = [ranges[int(name)][:2] for name in (file.file_name.removesuffix(".parquet") for file in section.files)]
        assert min(low for low, _ in bounds) > reached, "sections share no key and come in key order"
        reached = max(low + wide for low, wide in bounds)
    random.shuffle(live)
    assert [split.size_bytes for split in planned(live, schema, split_bytes=split_bytes)] == [split.size_bytes for split in splits]


def test_splits_come_by_partition_and_bucket_and_never_mix_them() -> None:
    schema = schema_of(keyed=True)
    places = [("b", 1), ("a", 1), ("b", 0), ("a", 0)]
    live = [entry(file_of(f"{p}{b}{n}", [(p, n, 0.0, "")], schema), partition=p, bucket=b) for n in range(2) for p, b in places]
    assert [names([split]) for split in planned(live, schema)] == [["a00", "a01"], ["a10", "a11"], ["b00", "b01"], ["b10", "b11"]]


def test_files_of_an_append_table_come_in_the_order_they_were_written_in() -> None:
    schema = schema_of(keyed=False)
    rows = [("a", 1, 0.0, "")]
    live = [
        entry(file_of(name, rows, schema, min_sequence_number=n, max_sequence_number=n))
        for name, n in [("c", 9), ("a", 10), ("b", 0)]
    ]
    assert names(planned(live, schema)) == ["b", "c", "a"]


def test_postponed_files_and_an_empty_table_give_no_split() -> None:
    schema = schema_of(keyed=True)
    waiting = entry(file_of("w", [("a", 1, 0.0, "")], schema), bucket=POSTPONE_BUCKET)
    assert planned([waiting], schema) == planned([], schema) == ()
    ready = entry(file_of("r", [("a", 1, 0.0, "")], schema))
    assert names(planned([waiting, ready], schema)) == ["r"]


@pytest.mark.parametrize(
    ("options", "seen"),
    [({}, ["zero", "one"]), ({"deletion_vectors.enabled": "true"}, ["one"]), ({"merge_engine": "first-row"}, ["one"])],
)
def test_level_zero_is_not_seen_where_it_has_yet_to_be_folded(options: dict[str, str], seen: list[str]) -> None:
    schema = schema_of(keyed=True, **options)
    live = [entry(file_of(name, [("a", 1, 0.0, "")], schema, level=level)) for level, name in enumerate(["zero", "one"])]
    assert sorted(names(planned(live, schema)), reverse=True) == seen


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"file_name": "f.csv"}, "file-format"),
        ({"write_cols": ("x",)}, "partial-columns"),
        ({"external_path": "s3://elsewhere/f.parquet"}, "external-path"),
    ],
)
def test_files_that_would_be_read_wrong_are_refused_by_name(given: dict[str, Any], kind: str) -> None:
    schema = schema_of(keyed=False)
    live = [entry(file_of("f", [("a", 1, 0.0, "")], schema, **given))]
    with pytest.raises(UnsupportedError, match=given.get("file_name", "f.parquet")) as refused:
        planned(live, schema)
    assert refused.value.kind == kind
    assert planned(live, schema, Comparison("=", "p", "z")) == (), "not in a partition that nobody asked for"


# ---- what can be left out


def test_a_file_that_hides_rows_of_others_stays_whatever_its_values_are() -> None:
    schema = schema_of(keyed=True)
    old = entry(file_of("old", [("a", 1, 5.0, ""), ("a", 2, 5.0, "")], schema))
    new = entry(file_of("new", [("a", 2, 1.0, ""), ("a", 3, 1.0, "")], schema))
    alone = entry(file_of("alone", [("a", 9, 1.0, "")], schema))
    high = Comparison(">", "x", 4.0)
    assert sorted(names(planned([old, new, alone], schema, high))) == ["new", "old"]
    # By key a file of a section may go: no row of the key is in it.
    assert names(planned([old, new, alone], schema, And((high, Comparison("=", "id", 1))))) == ["old"]


@pytest.mark.deep_after(4)
@pytest.mark.parametrize("total_buckets", [1, 2, 7, 1000])
@pytest.mark.parametrize("function", ["default", "mod"])
def test_equal_keys_are_looked_for_in_their_buckets_alone(total_buckets: int, function: str) -> None:
    schema = schema_of(keyed=False, **{"bucket_function.type": function})
    live = [
        entry(file_of(str(b), [("a", 0, 0.0, "")], schema, statistics="none"), bucket=b, total_buckets=total_buckets)
        for b in range(total_buckets)
    ]
    ids = [5, -(2**63), 2**63 - 1]
    wanted = {str(b) for b in bucket_of([pa.array(ids)], [schema.field("id").type], total_buckets, function).tolist()}
    assert set(names(planned(live, schema, IsIn("id", (*ids, None))))) == wanted
    assert names(planned(live, schema, Comparison("=", "id", 5))) == [
        str(bucket_of([pa.array([5])], [schema.field("id").type], total_buckets, function)[0])
    ]
    assert names(planned(live, schema, IsIn("id", (None,)))) == []
    assert len(names(planned(live, schema, Comparison(">", "id", 5)))) == total_buckets


def test_partitions_with_other_numbers_of_buckets_are_looked_up_by_their_own() -> None:
    schema = schema_of(keyed=False)
    live = [
        entry(file_of(f"{p}{b}", [(p, 0, 0.0, "")], schema, statistics="none"), partition=p, bucket=b, total_buckets=total)
        for p, total in (("a", 2), ("b", 5))
        for b in range(total)
    ]
    expected = [f"{p}{bucket_of([pa.array([4])], [schema.field('id').type], total)[0]}" for p, total in (("a", 2), ("b", 5))]
    assert names(planned(live, schema, Comparison("=", "id", 4))) == expected


@pytest.mark.parametrize("bucket", ["-1", "2"])
def test_files_whose_buckets_were_given_as_keys_arrived_are_all_looked_at(bucket: str) -> None:
    # Also where the table has a fixed number of buckets by now.
    schema = schema_of(keyed=True, bucket=bucket)
    live = [entry(file_of(str(b), [("a", 4, 0.0, "")], schema), bucket=b, total_buckets=-1) for b in range(3)]
    assert names(planned(live, schema, And((Comparison("=", "p", "a"), Comparison("=", "id", 4))))) == ["0", "1", "2"]


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_both_zeros_of_a_bucket_key_are_found_wherever_they_lie(zero: float) -> None:
    schema = schema_of(keyed=False, bucket_key="x")
    live = [entry(file_of(str(b), [("a", 0, value, "")], schema), bucket=b) for b, value in enumerate([0.0, -0.0])]
    assert names(planned(live, schema, Comparison("=", "x", zero))) == ["0", "1"]


@pytest.mark.parametrize(
    ("values", "predicate", "ours", "theirs"),
    [
        ([1.0, 2.0], Comparison(">", "x", 5.0), False, True),
        ([1.0, 2.0], Comparison("=", "x", NAN), True, True),  # it has no place among bounds
        ([1.0, 2.0], Comparison("<", "x", 0.0), False, False),
        ([1.0, NAN], Comparison(">", "x", 5.0), True, True),
        ([NAN, NAN], Comparison("=", "x", -NAN), True, True),
        ([-0.0], Comparison("=", "x", 0.0), True, True),
        ([0.0], Comparison("=", "x", -0.0), True, True),
        ([-0.0], Comparison("<", "x", 0.0), False, False),
        ([0.0], Comparison("<", "x", 0.0), False, False),
        ([-0.0, 0.0], Comparison("!=", "x", 0.0), False, True),
        ([-0.0], IsIn("x", (0.0,), by_bits=True), True, True),
        ([None, None], Comparison("=", "x", 1.0), False, False),
        ([None, None], IsNull("x"), True, True),
        ([1.0], IsNull("x"), False, False),
        ([None, 1.0], Not(IsNull("x")), True, True),
        ([math.inf], Comparison(">=", "x", math.inf), True, True),
    ],
)
def test_floats_are_left_out_only_when_no_number_no_zero_and_no_null_is_missed(
    values: list[float | None], predicate: Predicate, ours: bool, theirs: bool
) -> None:
    schema = schema_of(keyed=False)
    rows = [("a", 1, value, "") for value in values]
    for statistics, expected in (("ours", ours), ("theirs", theirs), ("some columns", theirs), ("none", True)):
        if statistics == "some columns" and NAN in values:
            continue
        live = [entry(file_of("f", rows, schema, statistics=statistics))]
        assert bool(planned(live, schema, predicate)) is expected, statistics


def test_bounds_without_null_counts_leave_nulls_possible() -> None:
    schema = schema_of(keyed=False)
    file = file_of("f", [("a", 1, 1.0, "m")], schema)
    counted = file.value_stats
    uncounted = replace(file, value_stats=replace(counted, null_counts=(None,) * 4))
    assert planned([entry(file)], schema, IsNull("s")) == ()
    assert names(planned([entry(uncounted)], schema, IsNull("s"))) == ["f"]
    assert names(planned([entry(replace(file, value_stats=replace(counted, null_counts=())))], schema, IsNull("s"))) == ["f"]
    assert planned([entry(uncounted)], schema, Comparison("=", "s", "z")) == ()


def test_the_first_key_column_is_bounded_by_the_keys_of_the_file_whatever_its_statistics() -> None:
    schema = schema_of(keyed=True)
    file = file_of("f", [("a", 10, 1.0, ""), ("a", 20, 1.0, "")], schema, statistics="none", key_stats=EMPTY_STATS)
    assert names(planned([entry(file)], schema, Comparison(">=", "id", 20))) == ["f"]
    assert planned([entry(file)], schema, Comparison(">", "id", 20)) == ()
    floats = new_schema(schema=pa.schema([("k", pa.float64()), ("v", pa.int64())]), primary_key=["k"])
    bounds = [encode_row([bound], [floats.field("k").type]) for bound in (1.0, 2.0)]
    keyed_by_floats = replace(file, min_key=bounds[0], max_key=bounds[1])
    live = [ManifestEntry(kind=EntryKind.ADD, partition=EMPTY_ROW, bucket=0, total_buckets=1, file=keyed_by_floats)]
    assert names(planned(live, floats, Comparison("=", "k", 7.0))) == ["f"], "NaN has no bound"


# ---- files of older schemas


def evolved(columns: Mapping[str, pa.DataType], ids: Mapping[str, int]) -> TableSchema:
    """Schema 1 of a table whose schema 0 had the columns ``id`` and ``v``; columns are the same by id."""
    made = new_schema(schema=pa.schema(list(columns.items())), options={"bucket": "-1"})
    return replace(made, id=1, fields=tuple(replace(field, id=ids[field.name]) for field in made.fields))


@pytest.mark.parametrize(
    ("columns", "ids", "predicate", "read"),
    [
        ({"id": pa.int64(), "w": pa.int32()}, {"id": 0, "w": 1}, Comparison("=", "w", 9), False),  # renamed
        (
            {"id": pa.int64(), "v": pa.int32()},
            {"id": 0, "v": 2},
            Comparison("=", "v", 9),
            False,
        ),  # made anew: all null
        ({"id": pa.int64(), "v": pa.int32()}, {"id": 0, "v": 2}, IsNull("v"), True),
        ({"id": pa.int64(), "v": pa.int64()}, {"id": 0, "v": 1}, Comparison("=", "v", 9), False),  # widened
        ({"id": pa.int64(), "v": pa.string()}, {"id": 0, "v": 1}, Comparison("=", "v", "9"), True),  # texts are ordered otherwise
        ({"id": pa.int64(), "v": pa.float64()}, {"id": 0, "v": 1}, Comparison("=", "v", 9.0), True),
    ],
)
def test_statistics_of_an_older_schema_count_where_they_still_bound_the_column(columns, ids, predicate, read):
    before, _ = fields_from_arrow(pa.schema([("id", pa.int64()), ("v", pa.int32())]))
    stats = encode_stats([ColumnStats(min=1, max=5, null_count=0)] * 2, [field.type for field in before])
    file = file_of("f", [("a", 1, 1.0, "")], schema_of(keyed=False), value_stats=stats)
    live = [ManifestEntry(kind=EntryKind.ADD, partition=EMPTY_ROW, bucket=0, total_buckets=-1, file=file)]
    schema = evolved(columns, ids)
    assert bool(planned(live, schema, predicate, file_fields={0: before})) is read
    assert planned(live, schema, predicate), "of a schema that is not known nothing is left out"


def test_statistics_of_a_column_that_the_files_schema_lacks_are_said() -> None:
    schema = schema_of(keyed=False)
    file = file_of("f", [("a", 1, 1.0, "")], schema, statistics="some columns", value_stats_cols=("nope",))
    with pytest.raises(FormatError, match=r"f\.parquet.*nope"):
        planned([entry(file)], schema, IsNull("x"))


# ---- manifests


def manifest(name: str, stats: SimpleStats, *, added: int = 1, deleted: int = 0) -> ManifestFile:
    return ManifestFile(file_name=name, file_size=1, num_added=added, num_deleted=deleted, partition_stats=stats, schema_id=0)


@settings(max_examples=100)
@given(st.lists(st.lists(st.sampled_from(["a", "ab", "b", None]), min_size=1, max_size=3), max_size=4), predicates, st.booleans())
def test_a_manifest_is_left_out_only_if_no_partition_in_it_can_match(partitions, predicate, counted):
    schema = schema_of(keyed=False)

    def stats(values: list[str | None]) -> SimpleStats:
        known = [value for value in values if value is not None]
        column = ColumnStats(min=min(known, default=None), max=max(known, default=None), null_count=values.count(None))
        return encode_stats([column if counted else replace(column, null_count=None)], [schema.field("p").type])

    listed = [manifest(str(n), stats(values), added=len(values)) for n, values in enumerate(partitions)]
    chosen = {int(one.file_name) for one in prune_manifests(listed, schema, predicate)}
    for number, values in enumerate(partitions):
        live = [entry(file_of(str(n), [(p, 1, 0.0, "")], schema, statistics="none"), partition=p) for n, p in enumerate(values)]
        assert number in chosen or not planned(live, schema, predicate)
    assert [one.file_name for one in listed] == [one.file_name for one in prune_manifests(listed, schema, None)]


def test_manifests_of_unknown_partitions_and_of_deletes_alone_are_read() -> None:
    schema = schema_of(keyed=False)
    exact = encode_stats([ColumnStats(min="a", max="a", null_count=0)], [schema.field("p").type])
    listed = [manifest("unknown", EMPTY_STATS), manifest("deletes", exact, added=0, deleted=2), manifest("adds", exact)]
    assert [one.file_name for one in prune_manifests(listed, schema, Comparison("=", "p", "a"))] == ["unknown", "deletes", "adds"]
    assert [one.file_name for one in prune_manifests(listed, schema, Comparison("=", "p", "z"))] == ["unknown"]
    assert len(prune_manifests(listed, schema, Comparison("=", "x", 1.0))) == 3, "no partition says anything of other columns"
