"""Sidecars come, go, and are damaged along the lives of tables: the files of every snapshot stay those that plain Avro names."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tablestore.format.manifest import bucketsums
from tablestore.format.manifest.entrycolumns import ENTRY_SCHEMA, EntryColumns
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.format.manifest.sidecar import SIDECAR_PREFIX
from tablestore.format.snapshot import Snapshot
from tablestore.io.diskcache import CACHE_DIR_VARIABLE
from tablestore.io.memory import MemoryFileStore
from tablestore.store import manifests as manifests_module
from tablestore.store.commit import clustering
from tablestore.store.context import TableContext
from tablestore.store.history.references import own_branch
from tablestore.store.scan import filecounts
from tablestore.store.scan.scanplan import plan_scan
from tablestore.table.inspect.check import check_table
from tablestore.table.read.scan import Scan
from tablestore.table.table import Table
from tablestore.table.upkeep import aftercommit, manifestcompaction
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.holdings import Holdings
from tablestore.testing.lab import Lab
from tablestore.types.filter.filters import parse_filter
from tests.store.test_livewalks import COLUMNS, OPERATIONS, numbered, write

FEWEST = 3
STEPS = 16
FILTERS = ("day = 2", "id = 7", "day = 1 AND id > 9", "v > '0.5'", "day > 1 OR id IN (1, 2)", "v IS NULL")
FEW, DEEP, NIGHT = 4, 8, 300
SEEDS = [
    *range(FEW),
    *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(FEW, DEEP)),
    *(pytest.param(seed, marks=[pytest.mark.deep, pytest.mark.slow]) for seed in range(DEEP, NIGHT)),
]

# The files of one snapshot by the filter.
FileLists = dict[str | None, list[str]]


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (manifests_module, manifestcompaction):
        monkeypatch.setattr(module, "FEWEST_ENTRIES", FEWEST)
    monkeypatch.setattr(manifests_module, "_FEW_ENTRIES", FEWEST - 1)
    # Sums of each bucket, and of all of which they say too little.
    monkeypatch.setattr(bucketsums, "_FEWEST_FILES_OF_A_ROW", 1)
    monkeypatch.setattr(filecounts, "_MOST_DETAILS", 9)
    monkeypatch.setattr(clustering, "_FEWEST_ENTRIES", 6)
    # What operations commit is merged after them.
    monkeypatch.setattr(clustering, "_FEWEST_ENTRIES_OF_LATER", 6)
    monkeypatch.setattr(clustering, "_MOST_LATER_RUNS", 1)
    monkeypatch.setattr(clustering, "_MANIFEST_BYTES", 2_000)


class Life:
    """One table, a handle that stays open, and a cache on disk that outlives every other handle."""

    def __init__(self, seed: int, cache: Path) -> None:
        self.rng, self.cache = random.Random(seed), cache / "tablestore-manifests"
        self.clock, self.names = ManualClock(), iter(range(1_000))
        keyed = self.rng.random() < 0.5
        self.lab = Lab(
            MemoryFileStore(f"sidecars-{cache.name}-{seed}", clock=self.clock),
            keyed=keyed,
            schema=COLUMNS,
            primary_key=("day", "id"),
            partition_by=("day",),
            options={
                "write-only": "true",
                "bucket": "2" if keyed else "-1",
                "manifest.merge-min-count": str(self.rng.choice([2, 3, 30])),
            },
            clock=self.clock,
        )
        write(self.lab.open(), self.rng, self.names)
        self.warm = self.lab.open()
        self.removed: dict[str, bytes] = {}

    def sidecars(self) -> list[str]:
        """The paths of all sidecars, some of which may be of manifests that are gone."""
        names = sorted(info.name for info in self.lab.files.list("manifest"))
        return [f"manifest/{name}" for name in names if name.startswith(SIDECAR_PREFIX)]


def operate(life: Life) -> None:
    life.rng.choice(OPERATIONS)(life.lab.open(), life.rng, life.names)


def write_all_days(life: Life) -> None:
    """So that manifests overlap, and commits merge them."""
    table = life.lab.open()
    for _ in range(3):
        rows = numbered(life.rng, range(4))
        table.upsert(rows) if table.primary_key else table.append(rows)


def compact_manifests(life: Life) -> None:
    life.lab.open().compact_manifests()


def expire_with_tags(life: Life) -> None:
    table = life.lab.open()
    for tag in table.tags():
        # That of a branch goes with it.
        if tag.name.startswith("t") and life.rng.random() < 0.5:
            table.delete_tag(tag.name)
    table.expire_snapshots(retain_min=1, retain_max=1)


def delete_branches(life: Life) -> None:
    table = life.lab.open()
    for branch in table.branches():
        if life.rng.random() < 0.5:
            table.delete_branch(branch.name)


def write_to_a_branch(life: Life) -> None:
    table = life.lab.open()
    if branches := table.branches():
        branch = table.branch(life.rng.choice(branches).name)
        write(branch, life.rng, life.names)
        branch.compact_manifests()


def remove_orphans(life: Life) -> None:
    life.clock.advance(10**9)
    life.lab.open().remove_orphan_files(dry_run=False)


def drop_partition(life: Life) -> None:
    life.lab.open().drop_partitions([{"day": life.rng.randrange(4)}])


def remove_sidecars(life: Life) -> None:
    for path in life.sidecars():
        if life.rng.random() < 0.6:
            life.removed[path] = life.lab.files.read(path)
            life.lab.files.delete(path)


def bring_back(life: Life) -> None:
    # Those of manifests that are gone by now too.
    for path, data in life.removed.items():
        life.lab.files.overwrite(path, data)
    life.removed.clear()


def cut(life: Life) -> None:
    for path in life.sidecars():
        data = life.lab.files.read(path)
        life.lab.files.overwrite(path, data[: life.rng.randrange(len(data) + 1)])


def flip(life: Life) -> None:
    for path in life.sidecars():
        if data := bytearray(life.lab.files.read(path)):
            data[life.rng.randrange(len(data))] ^= 1 << life.rng.randrange(8)
            life.lab.files.overwrite(path, bytes(data))


def swap(life: Life) -> None:
    paths = life.sidecars()
    contents = [life.lab.files.read(path) for path in paths]
    for path, data in zip(paths, contents[1:] + contents[:1], strict=True):
        life.lab.files.overwrite(path, data)


def damage_cache(life: Life) -> None:
    paths = sorted(life.cache.iterdir()) if life.cache.is_dir() else []
    contents = [path.read_bytes() for path in paths]
    if life.rng.random() < 0.5:
        contents = contents[1:] + contents[:1]
    else:
        contents = [data[: life.rng.randrange(len(data) + 1)] for data in contents]
    for path, data in zip(paths, contents, strict=True):
        path.write_bytes(data)


def keep(life: Life) -> None:
    """Nothing is damaged."""


CHANGES: tuple[Callable[[Life], None], ...] = (
    *(operate,) * 6,
    *(write_all_days, compact_manifests) * 2,
    *(expire_with_tags, delete_branches, write_to_a_branch, remove_orphans, drop_partition),
)
DAMAGES: tuple[Callable[[Life], None], ...] = (remove_sidecars, bring_back, cut, flip, swap, damage_cache, keep)


@pytest.mark.deep
@pytest.mark.parametrize("seed", SEEDS)
def test_the_files_of_every_snapshot_are_those_of_plain_avro(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_DIR_VARIABLE, str(tmp_path))
    life, steps = Life(seed, tmp_path), list[str]()
    for _ in range(STEPS):
        change = life.rng.choice(CHANGES)
        change(life)
        damage = life.rng.choice(DAMAGES)
        damage(life)
        steps.append(f"{change.__name__}, {damage.__name__}")
        check(life, monkeypatch, steps)
    assert check_table(life.lab.open().context) == ()
    remove_orphans(life)
    gone = {path.replace(SIDECAR_PREFIX, "") for path in life.sidecars()} - {
        f"manifest/{i.name}" for i in life.lab.files.list("manifest")
    }
    assert gone == set() and Holdings(life.lab.files).missing() == {}
    check(life, monkeypatch)
    check_that_each_file_is_missed(life)


@pytest.mark.deep
@pytest.mark.parametrize("seed", [2])
def test_the_lives_read_and_refuse_sidecars(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else they would say nothing."""
    outcomes = {True: 0, False: 0}
    opens = manifests_module.open_sidecar

    def noted(*arguments: object) -> object:
        outcomes[False] += 1
        opened = opens(*arguments)  # type: ignore[arg-type]
        outcomes[False] -= 1
        outcomes[True] += 1
        return opened

    monkeypatch.setattr(manifests_module, "open_sidecar", noted)
    test_the_files_of_every_snapshot_are_those_of_plain_avro(seed, tmp_path, monkeypatch)
    assert min(outcomes.values()) > 5, outcomes


@pytest.mark.deep
@pytest.mark.parametrize("seed", [2])
def test_the_lives_merge_what_commits_leave(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else they would say nothing."""
    merged = []
    merge = aftercommit.merge_later_runs

    def noted(context: TableContext) -> Snapshot | None:
        if (snapshot := merge(context)) is not None:
            merged.append(snapshot.id)
        return snapshot

    monkeypatch.setattr(aftercommit, "merge_later_runs", noted)
    test_the_files_of_every_snapshot_are_those_of_plain_avro(seed, tmp_path, monkeypatch)
    assert len(merged) > 1, merged


@pytest.mark.deep
@pytest.mark.parametrize("seed", [2])
def test_the_lives_count_from_sums_and_from_entries(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else they would say nothing."""
    outcomes = Counter[tuple[bool, bool]]()
    of_manifest = filecounts._Counting.of_manifest

    def noted(counting: filecounts._Counting, entries: EntryColumns) -> object:
        outcomes[entries.sums() is not None, bool((entries.numbers("kind") == EntryKind.DELETE).any())] += 1
        return of_manifest(counting, entries)

    monkeypatch.setattr(filecounts._Counting, "of_manifest", noted)
    test_the_files_of_every_snapshot_are_those_of_plain_avro(seed, tmp_path, monkeypatch)
    assert min(outcomes[True, False], outcomes[False, False], outcomes[False, True]) > 5, outcomes


@contextmanager
def plain_avro(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Inside, every manifest is read as objects, by handles that are opened there."""
    with monkeypatch.context() as patch:
        patch.setattr(manifests_module, "_FEW_ENTRIES", 10**9)
        patch.setenv(CACHE_DIR_VARIABLE, "off")
        yield


def check(life: Life, monkeypatch: pytest.MonkeyPatch, steps: Sequence[str] = ()) -> None:
    """``steps``: what was done before, for messages."""
    life.warm = life.warm.refresh()
    branch = life.rng.choice([None, *(branch.name for branch in life.lab.open().branches())])

    def context_of(table: Table) -> TableContext:
        return (table if branch is None else table.branch(branch)).context

    with plain_avro(monkeypatch):
        plain = context_of(life.lab.open())
        *older, newest = retained(plain)
        snapshots = [newest, *life.rng.sample(older, min(len(older), 2))]
        filters = [None, *life.rng.sample(FILTERS, 3)]
        expected = [(snapshot, file_lists(plain, snapshot, filters), plain.manifests.live(snapshot)) for snapshot in snapshots]
        counts = [count_of(plain, snapshot) for snapshot in snapshots]
    for context in (context_of(life.lab.open()), context_of(life.warm)):
        assert [count_of(context, snapshot) for snapshot in snapshots] == counts, steps
        for snapshot, files, live in expected:
            entries, manifests = sorted(map(repr, live)), context.manifests
            assert file_lists(context, snapshot, filters) == files, steps
            assert sorted(map(repr, manifests.live_columns(snapshot, ENTRY_SCHEMA.names).entries())) == entries
            assert sorted(manifests.live_columns(snapshot, ("bucket", "file_name")).column("file_name").to_pylist()) == files[None]
            assert sorted(map(repr, manifests.live_in(snapshot, lambda _: True))) == entries
            assert sorted(map(repr, manifests.live_named(snapshot, files[None]))) == entries
            listed = manifests.all_manifests(snapshot)
            groups = list(manifests.matching(listed, lambda columns: columns.numbers("bucket") >= -2))
            kinds = [[entry.kind for entry in group] for group in groups]
            assert [(k.count(EntryKind.ADD), k.count(EntryKind.DELETE)) for k in kinds] == [
                (manifest.num_added, manifest.num_deleted) for manifest in listed
            ]


def check_that_each_file_is_missed(life: Life) -> None:
    """Verify looks for all files of rows that something leads to, and for no others."""
    holdings, files = Holdings(life.lab.files), life.lab.files
    held = {path for reference in holdings.references() for path in holdings.held(reference) if path.endswith(".parquet")}
    for path in held:
        files.delete(path)
    findings = check_table(life.lab.open().context)
    # Of a branch the subject begins with its name.
    assert {finding.subject.rpartition(" ")[2] for finding in findings if finding.kind == "file-missing"} == held


def count_of(context: TableContext, snapshot: Snapshot) -> int:
    return Scan(context, snapshot, context.schema.field_names, None).count()


def retained(context: TableContext) -> list[Snapshot]:
    """The snapshots of tags and of the history, the newest last."""
    tags = own_branch(context).tags
    tagged = [tags.get(name).snapshot for name in tags.names()]
    return tagged + [context.snapshots.read(snapshot_id) for snapshot_id in context.snapshots.live_ids()]


def file_lists(context: TableContext, snapshot: Snapshot, filters: Sequence[str | None]) -> FileLists:
    fields = context.schema.fields
    plans = {text: plan_scan(context, snapshot, None if text is None else parse_filter(text, fields)) for text in filters}
    return {text: sorted(file.file_name for file in plan.files) for text, plan in plans.items()}
