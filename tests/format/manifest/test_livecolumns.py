"""The live set of columns is that of objects: the same entries in the same order, or the same error."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.errors import FormatError
from tablestore.format.binaryrow import EMPTY_ROW
from tablestore.format.manifest import derivedcolumns
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.derivedcolumns import NAME_HASH, name_hashes
from tablestore.format.manifest.entrycolumns import ENTRY_SCHEMA, EntryColumns, Places
from tablestore.format.manifest.livecolumns import IDENTITY_COLUMNS, absent_places, live_parts, live_places
from tablestore.format.manifest.liveset import live_entries
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.stats import EMPTY_STATS

FILE = DataFileMeta(
    file_name="a.parquet",
    file_size=10,
    row_count=1,
    min_key=EMPTY_ROW,
    max_key=EMPTY_ROW,
    key_stats=EMPTY_STATS,
    value_stats=EMPTY_STATS,
    min_sequence_number=0,
    max_sequence_number=0,
    schema_id=0,
    level=0,
)
KNOWN_HASHES = [0, -8034309580187452162, 5270805021252594365, 5831463469232258474]
PARTITIONS = (EMPTY_ROW, EMPTY_ROW + bytes(8))


def entry(kind: EntryKind, partition: int, bucket: int, **file: object) -> ManifestEntry:
    return ManifestEntry(
        kind=kind,
        partition=PARTITIONS[partition],
        bucket=bucket,
        total_buckets=2,
        file=replace(FILE, **file),  # type: ignore[arg-type]
    )


entries = st.builds(
    entry,
    st.sampled_from(EntryKind),
    st.integers(0, 1),
    st.integers(-2, 1),
    file_name=st.sampled_from(["a.parquet", "b.parquet", "c.parquet", "d.parquet"]),
    level=st.integers(0, 1),
    extra_files=st.sampled_from([(), ("a.index",), ("a.index", "b.index")]),
    embedded_index=st.sampled_from([None, b"", b"x"]),
    external_path=st.sampled_from([None, "", "s3://elsewhere/a"]),
)


def assert_same(parts: Sequence[Sequence[ManifestEntry]], *, whole: bool) -> None:
    columns = EntryColumns.concat([EntryColumns.of(part, IDENTITY_COLUMNS) for part in parts])
    together = [entry for part in parts for entry in part]

    def at(places: Places) -> list[ManifestEntry]:
        return [together[place] for place in places]

    expected = outcome(lambda: list(live_entries(parts, whole=whole).values()))
    assert outcome(lambda: [together[place] for place in live_places(columns, at, whole=whole)]) == expected
    if whole:
        deletes = any(entry.kind is EntryKind.DELETE for entry in together)
        assert outcome(lambda: walked(parts, may_delete=deletes)) == expected
        assert outcome(lambda: walked(parts, may_delete=True)) == expected


def walked(parts: Sequence[Sequence[ManifestEntry]], *, may_delete: bool) -> list[ManifestEntry]:
    """The live entries that a walk from manifest to manifest comes by, in order."""

    def read(names: Callable[[EntryColumns], Sequence[str]]) -> Iterator[EntryColumns]:
        return (EntryColumns.of(part, names(EntryColumns.of(()))) for part in parts)

    names = ENTRY_SCHEMA.names
    pieces = live_parts(read, lambda _: names, lambda part: part.select(names).entries(), may_delete=may_delete)
    entries = {place: entry for places, part in pieces for place, entry in zip(places.tolist(), part, strict=True)}
    return [entries[place] for place in sorted(entries)]


def outcome(fold: Callable[[], list[ManifestEntry]]) -> list[ManifestEntry] | str:
    """The live entries, or the kind of the error."""
    try:
        return fold()
    except FormatError as error:
        return error.kind


@pytest.mark.deep
@settings(max_examples=300)
@given(st.lists(st.lists(entries, max_size=12), min_size=1, max_size=4), st.booleans())
def test_any_entries(parts: list[list[ManifestEntry]], whole: bool) -> None:
    assert_same(parts, whole=whole)


@pytest.mark.deep
@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(EntryKind), st.integers(0, 1), st.integers(0, 1)), max_size=12), st.booleans())
def test_few_identities(steps: list[tuple[EntryKind, int, int]], whole: bool) -> None:
    """Files that are added and deleted again and again, over some manifests."""
    together = [entry(kind, 0, 0, level=level, file_name=f"{name}.parquet") for kind, level, name in steps]
    assert_same([together[:3], together[3:]], whole=whole)


@pytest.mark.deep
@settings(max_examples=100)
@given(st.lists(st.lists(entries, max_size=8), min_size=1, max_size=3))
def test_names_of_one_hash_are_told_apart(parts: list[list[ManifestEntry]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        constant = replace(derivedcolumns.DERIVED_COLUMNS[NAME_HASH], compute=lambda names: pa.array([7] * len(names), pa.int64()))
        patch.setitem(derivedcolumns.DERIVED_COLUMNS, NAME_HASH, constant)
        assert_same(parts, whole=True)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=40), max_size=20))
def test_a_hash_is_that_of_the_name(names: list[str]) -> None:
    """Wherever it lies in a column, and for ever: sidecars have them."""
    hashes = name_hashes(pa.array(names, pa.string())).to_pylist()
    assert hashes == [name_hashes(pa.array([name], pa.string()))[0].as_py() for name in names]
    assert name_hashes(pa.array(["x", *names], pa.string()).slice(1)).to_pylist() == hashes
    assert len(set(hashes)) == len(set(names))
    assert name_hashes(pa.array(["", "a", "ab", "data-1.parquet"])).to_pylist() == KNOWN_HASHES


def test_entries_of_partitions_and_buckets() -> None:
    together = [entry(EntryKind.ADD, n % 2, n % 3 - 1, file_name=f"{n}.parquet") for n in range(12)]
    columns = EntryColumns.concat([EntryColumns.of(together[:5]), EntryColumns.of(together[5:])])
    groups, which = columns.groups("partition", "bucket")
    assert groups == sorted({(one.partition, one.bucket) for one in together})
    assert [groups[place] for place in which] == [(one.partition, one.bucket) for one in together]
    mask = columns.in_places(lambda place: place[0] == PARTITIONS[1] and place[1] >= 0)
    assert [bool(one) for one in mask] == [one.partition == PARTITIONS[1] and one.bucket >= 0 for one in together]
    assert EntryColumns.of(()).groups("partition", "bucket")[0] == []
    assert len(EntryColumns.of(()).in_places(lambda place: True)) == 0


@pytest.mark.deep
@settings(max_examples=300)
@given(st.lists(entries, max_size=8), st.lists(entries, max_size=8))
def test_absent_are_the_entries_whose_identity_the_others_do_not_have(
    these: list[ManifestEntry], others: list[ManifestEntry]
) -> None:
    identities = {other.identity for other in others}
    places = absent_places(EntryColumns.of(these, IDENTITY_COLUMNS), EntryColumns.of(others, IDENTITY_COLUMNS))
    # An embedded index of no bytes, and a path of no letters, are not none.
    assert places.tolist() == [place for place, one in enumerate(these) if one.identity not in identities]
