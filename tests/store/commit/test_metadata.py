"""What merging manifests promises: the live files stay, manifests stay few, an entry is rewritten a logarithmic number of times."""

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore.format.binaryrow import EMPTY_ROW
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.liveset import live_entries
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.manifest.manifestlist import ManifestFile
from tablestore.format.stats import EMPTY_STATS
from tablestore.store.commit.metadata import cancel_pairs, merged_base, pick_merge
from tablestore.store.manifests import WrittenMetadata
from tablestore.store.settings import MergePolicy

HEADER_BYTES, ENTRY_BYTES = 2_500, 200


def entry(kind: EntryKind, name: str, level: int = 0) -> ManifestEntry:
    meta = DataFileMeta(
        file_name=name,
        file_size=1,
        row_count=1,
        min_key=EMPTY_ROW,
        max_key=EMPTY_ROW,
        key_stats=EMPTY_STATS,
        value_stats=EMPTY_STATS,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
        level=level,
        creation_time_millis=0,
        delete_row_count=0,
        file_source=0,
    )
    return ManifestEntry(kind=kind, partition=EMPTY_ROW, bucket=0, total_buckets=1, file=meta)


def add(name: str, level: int = 0) -> ManifestEntry:
    return entry(EntryKind.ADD, name, level)


def delete(name: str, level: int = 0) -> ManifestEntry:
    return entry(EntryKind.DELETE, name, level)


@dataclass
class FakeManifests:
    """Manifests that are only entries; counts how often entries were written again."""

    kept: dict[str, tuple[ManifestEntry, ...]] = field(default_factory=dict)
    written: int = 0

    def write_manifests(self, entries: Sequence[ManifestEntry], _: WrittenMetadata) -> tuple[ManifestFile, ...]:
        if not entries:
            return ()
        name = f"manifest-{len(self.kept)}"
        self.kept[name] = tuple(entries)
        self.written += len(entries)
        added = sum(e.kind is EntryKind.ADD for e in entries)
        size = HEADER_BYTES + ENTRY_BYTES * len(entries)
        return (
            ManifestFile(
                file_name=name,
                file_size=size,
                num_added=added,
                num_deleted=len(entries) - added,
                partition_stats=EMPTY_STATS,
                schema_id=0,
            ),
        )

    def is_full(self, _: ManifestFile) -> bool:
        return False

    def entries(self, manifests: Iterable[ManifestFile]) -> list[ManifestEntry]:
        return [e for manifest in manifests for e in self.kept[manifest.file_name]]


@dataclass
class History:
    """A table's manifests through many commits, next to the plain set of its live files."""

    policy: MergePolicy
    store: FakeManifests = field(default_factory=FakeManifests)
    manifests: tuple[ManifestFile, ...] = ()
    live: dict[tuple[str, int], None] = field(default_factory=dict)

    def commit(self, delta: Sequence[ManifestEntry]) -> None:
        base = merged_base(self.manifests, self.policy, self.store, WrittenMetadata())  # type: ignore[arg-type]
        self.manifests = (*base, *self.store.write_manifests(delta, WrittenMetadata()))
        for e in delta:
            if e.kind is EntryKind.ADD:
                self.live[e.file.file_name, e.file.level] = None
            else:
                del self.live[e.file.file_name, e.file.level]

    def found(self) -> list[tuple[str, int]]:
        groups = (self.store.kept[manifest.file_name] for manifest in self.manifests)
        return [(e.file.file_name, e.file.level) for e in live_entries(groups).values()]


@pytest.mark.deep
@given(seed=st.integers(0, 2**32), min_count=st.integers(2, 8), target=st.sampled_from([4_000, 20_000, 10**7]))
def test_merging_never_changes_the_live_files(seed: int, min_count: int, target: int) -> None:
    chance = random.Random(seed)
    history = History(MergePolicy(min_count=min_count, target_bytes=target))
    for commit in range(60):
        delta: list[ManifestEntry] = []
        live = list(history.live)
        for name, level in chance.sample(live, chance.randrange(min(len(live), 6) + 1)):
            delta.append(delete(name, level))
            if level < 5 and chance.random() < 0.5:
                delta.append(add(name, level + 1))  # moved to another level: the same name again
        delta += [add(f"f{commit}-{i}") for i in range(chance.choice((0, 1, 1, 2, 20)))]
        history.commit(delta)
        assert sorted(history.found()) == sorted(history.live), f"seed {seed}"


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("seed", range(6))
def test_manifests_stay_few_and_rewriting_logarithmic(seed: int) -> None:
    chance = random.Random(seed)
    policy = MergePolicy()
    history = History(policy)
    commits, entries, most = 2_000, 0, 0
    for commit in range(commits):
        count = 1 if seed < 2 else chance.choice((1, 1, 1, 4, 30 if seed < 4 else 2))
        history.commit([add(f"f{commit}-{i}") for i in range(count)])
        entries += count
        most = max(most, len(history.manifests))
    assert sorted(history.found()) == sorted(history.live)
    tiers = math.log2(entries)
    assert most <= policy.min_count * tiers, f"seed {seed}: {most} manifests after {commits} commits"
    # Written once when added; each time again its manifest grows by half or more.
    assert history.store.written <= entries * (1 + math.log(entries, 1.5)), f"seed {seed}: {history.store.written} for {entries}"


def test_the_common_case_rewrites_an_entry_a_few_times_only() -> None:
    history = History(MergePolicy())
    for commit in range(3_000):
        history.commit([add(f"f{commit}")])
    assert history.store.written <= 3_000 * 8
    assert len(history.manifests) <= 100


def test_a_large_manifest_is_left_alone() -> None:
    policy = MergePolicy(min_count=3, target_bytes=50_000)
    history = History(policy)
    history.commit([add(f"big-{i}") for i in range(400)])
    large = history.manifests[0]
    for commit in range(40):
        history.commit([add(f"f{commit}")])
    assert large in history.manifests


def test_deletes_shrink_the_base_again() -> None:
    history = History(MergePolicy(min_count=5))
    for commit in range(100):
        history.commit([add(f"f{commit}-{i}") for i in range(50)])
    for commit in range(100):
        history.commit([delete(f"f{commit}-{i}") for i in range(50) if commit + i])
    history.commit([add("last")])
    assert sorted(history.found()) == sorted(history.live) == [("f0-0", 0), ("last", 0)]
    assert len(history.store.entries(history.manifests)) < 2_500


def test_deletes_are_taken_out_once_the_manifests_that_hold_them_reach_the_size_asked_for() -> None:
    history = History(MergePolicy(min_count=1_000, rewrite_bytes=20_000))
    history.commit([add(f"f{i}") for i in range(1_000)])
    held = []
    for i in range(200):
        history.commit([delete(f"f{i}")])
        held.append(sum(manifest.file_size for manifest in history.manifests if manifest.num_deleted))
    assert sorted(history.found()) == sorted(history.live)
    one = HEADER_BYTES + ENTRY_BYTES
    assert max(held) == 20_000 + -20_000 % one, "each commit adds one manifest"
    assert held.count(one) == 200 // (max(held) // one)


def test_nothing_is_merged_below_the_least_number() -> None:
    policy = MergePolicy(min_count=30)
    store = FakeManifests()
    manifests = [store.write_manifests([add(f"f{i}")], WrittenMetadata())[0] for i in range(29)]
    assert pick_merge(manifests, policy) is None
    assert pick_merge([], policy) is None


def test_pairs_cancel_and_deletes_of_older_files_stay_in_front() -> None:
    entries = [add("a"), delete("old"), add("b"), delete("a"), delete("moved"), add("moved", 3)]
    assert cancel_pairs(entries, keep_deletes=True) == [delete("old"), delete("moved"), add("b"), add("moved", 3)]
    assert cancel_pairs(entries, keep_deletes=False) == [add("b"), add("moved", 3)]


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=30), st.integers(0, 30))
def test_merging_any_tail_is_the_same_as_merging_nothing(steps: list[tuple[int, bool]], cut: int) -> None:
    entries, live, gone = [], set(), set()
    for number, grow in steps:
        name = f"f{number}"
        if grow and name not in live and name not in gone:
            live.add(name)
            entries.append(add(name))
        elif not grow and name in live:
            live.discard(name)
            gone.add(name)
            entries.append(delete(name))
    cut = min(cut, len(entries))
    merged = [*entries[:cut], *cancel_pairs(entries[cut:], keep_deletes=True)]
    assert set(live_entries([merged])) == set(live_entries([entries]))
    assert rows_of(merged) == rows_of(entries) == len(live)


def rows_of(entries: list[ManifestEntry]) -> int:
    return sum(entry.file.row_count if entry.kind is EntryKind.ADD else -entry.file.row_count for entry in entries)
