"""Sidecars between implementations: others pass over ours, and whatever they do to a table, none of ours misleads us after it."""

import random
from pathlib import Path
from typing import Any

import canonical
import pyarrow as pa
import pytest
from canonical import Row, comparable
from oracles import JavaOracle, PypaimonOracle
from ours import Ours

import tablestore as ts
from tablestore.format.manifest.sidecar import SIDECAR_PREFIX
from tablestore.io.diskcache import CACHE_DIR_VARIABLE
from tablestore.io.local import LocalFileStore
from tablestore.store import manifests as manifests_module
from tablestore.store.commit import clustering
from tablestore.store.scan.scanplan import plan_scan
from tablestore.table.inspect.check import check_table
from tablestore.table.upkeep import manifestcompaction
from tablestore.testing.holdings import Holdings
from tablestore.types.filter.filters import parse_filter

pytestmark = pytest.mark.interop

COLUMNS = [
    {"name": "day", "type": "INT NOT NULL"},
    {"name": "id", "type": "BIGINT NOT NULL"},
    {"name": "v", "type": "STRING"},
]
DAYS = 12
FEWEST = 6
FILTERS = (None, "day = 3", "id = 7", "day > 8 AND id < 30", "v >= 'v5'", "day IN (1, 2) OR id = 11")

State = dict[tuple[int, int], str]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Manifests of a few entries have a sidecar."""
    for module in (manifests_module, manifestcompaction):
        monkeypatch.setattr(module, "FEWEST_ENTRIES", FEWEST)
    monkeypatch.setattr(manifests_module, "_FEW_ENTRIES", FEWEST - 1)
    for name in ("_FEWEST_ENTRIES", "_FEWEST_ENTRIES_OF_LATER"):
        monkeypatch.setattr(clustering, name, 12)
    monkeypatch.setattr(clustering, "_MANIFEST_BYTES", 10_000)


@pytest.fixture
def others(java: JavaOracle, pypaimon_pure: PypaimonOracle, pypaimon_native: PypaimonOracle) -> list[Any]:
    return [java, pypaimon_pure, pypaimon_native]


def new_rows(state: State, rng: random.Random, writer: Any) -> list[Row]:
    """A row of each day and some more, of which the later ones of a key win."""
    days = [*range(DAYS), *(rng.randrange(DAYS) for _ in range(10))]
    rows = {(day, rng.randrange(40)): f"v{rng.randrange(10)} {writer.name}" for day in days}
    state.update(rows)
    return encoded(rows)


def encoded(state: State) -> list[Row]:
    keys = list(state)
    columns = {
        "day": pa.array([day for day, _ in keys], pa.int32()),
        "id": pa.array([number for _, number in keys], pa.int64()),
        "v": list(state.values()),
    }
    return canonical.encode_rows(pa.table(columns))


def create(by: Any, path: Path) -> None:
    options = {"bucket": "1", "write-only": "true", "manifest.merge-min-count": "3"}
    by.create(path, COLUMNS, primary_key=["day", "id"], partition_by=["day"], options=options)


def sidecars(path: Path) -> list[Path]:
    return sorted(path.glob(f"manifest/{SIDECAR_PREFIX}*"))


def file_lists(path: Path) -> dict[str | None, list[str]]:
    context = ts.open_table(str(path)).context
    fields, latest = context.schema.fields, context.snapshots.latest()
    plans = {text: plan_scan(context, latest, None if text is None else parse_filter(text, fields)) for text in FILTERS}
    return {text: sorted(file.file_name for file in plan.files) for text, plan in plans.items()}


def check(path: Path, state: State, readers: list[Any]) -> None:
    """All read the same rows; our plans are those of plain Avro; nothing is missing."""
    for reader in (Ours(), *readers):
        assert comparable(reader.read(path)) == comparable(encoded(state)), reader.name
        here = {key: value for key, value in state.items() if key[0] == 3}
        assert comparable(reader.read(path, equals={"day": 3})) == comparable(encoded(here)), reader.name
    planned = file_lists(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifests_module, "_FEW_ENTRIES", 10**9)
        patch.setenv(CACHE_DIR_VARIABLE, "off")
        assert planned == file_lists(path)
    assert check_table(ts.open_table(str(path)).context) == ()
    assert Holdings(LocalFileStore(str(path))).missing() == {}


def remove(path: Path, rng: random.Random) -> None:
    for one in sidecars(path):
        if rng.random() < 0.7:
            one.unlink()


def exchange(path: Path, rng: random.Random) -> None:
    paths = sidecars(path)
    contents = [one.read_bytes() for one in paths]
    for one, content in zip(paths, contents[1:] + contents[:1], strict=True):
        one.write_bytes(content)


def damage(path: Path, rng: random.Random) -> None:
    for one in sidecars(path):
        # A part of nothing is nothing.
        if not (data := bytearray(one.read_bytes())):
            continue
        if rng.random() < 0.5:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            one.write_bytes(data)
        else:
            one.write_bytes(data[: rng.randrange(len(data))])


def keep(path: Path, rng: random.Random) -> None:
    """Nothing is damaged."""


@pytest.mark.slow_after(2)
@pytest.mark.deep
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("harm", [keep, remove, exchange, damage])
def test_a_table_with_sidecars_is_read_and_kept_up_by_all(others: list[Any], warehouse: Path, harm: Any) -> None:
    path, rng, us, java = warehouse / "db.db" / "t", random.Random(harm.__name__), Ours(), others[0]
    state: State = {}
    create(us, path)
    for _ in range(4):
        us.write(path, new_rows(state, rng, us))
    assert len(sidecars(path)) > 2
    check(path, state, others)
    for writer in (java, us, others[1], us, others[2], us):
        writer.write(path, new_rows(state, rng, writer))
        harm(path, rng)
        check(path, state, [java])
    java.compact(path)
    harm(path, rng)
    check(path, state, others)
    us.write(path, new_rows(state, rng, us))
    us.compact(path)
    ts.open_table(str(path)).compact_manifests()
    harm(path, rng)
    check(path, state, others)
    # Java knows none of ours: those of manifests that it lets go stay, until either side removes what nothing names.
    assert java.expire(path, retain=2) > 0
    check(path, state, others)
    ts.open_table(str(path)).expire_snapshots(retain_min=1, retain_max=1)
    harm(path, rng)
    check(path, state, others)
    ts.open_table(str(path)).remove_orphan_files(0, dry_run=False)
    manifests = {f"{SIDECAR_PREFIX}{one.name}" for one in path.glob("manifest/manifest-*")}
    assert all(one.name in manifests for one in sidecars(path))
    assert Holdings(LocalFileStore(str(path))).unheld() == {f"manifest/{one.name}" for one in sidecars(path)}
    us.write(path, new_rows(state, rng, us))
    check(path, state, others)


@pytest.mark.deep
@pytest.mark.usefixtures("few")
def test_java_removes_sidecars_as_orphans_and_we_go_on_and_write_new_ones(others: list[Any], warehouse: Path) -> None:
    path, rng, us, java = warehouse / "db.db" / "t", random.Random(5), Ours(), others[0]
    state: State = {}
    create(us, path)
    for _ in range(5):
        us.write(path, new_rows(state, rng, us))
    opened = ts.open_table(str(path))
    assert opened.scan(filter="day = 3").count() == sum(day == 3 for day, _ in state)
    count = len(sidecars(path))
    assert count > 2 and java.remove_orphans(path) >= count
    assert sidecars(path) == []
    check(path, state, others)
    assert opened.scan(filter="day = 4").count() == sum(day == 4 for day, _ in state), "a handle that has read them"
    assert ts.open_table(str(path)).compact_manifests() is not None and sidecars(path)
    check(path, state, others)
    for writer in (*others, us):
        writer.write(path, new_rows(state, rng, writer))
        check(path, state, others)


@pytest.mark.deep
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("writer", ["java", "pypaimon-pure", "pypaimon-native"])
def test_a_table_of_another_engine_gets_its_sidecars(others: list[Any], warehouse: Path, writer: str) -> None:
    path, rng, us, java = warehouse / "db.db" / "t", random.Random(writer), Ours(), others[0]
    by = next(one for one in others if one.name == writer)
    state: State = {}
    create(by if by is java else others[1], path)
    for _ in range(5):
        by.write(path, new_rows(state, rng, by))
    assert sidecars(path) == []
    check(path, state, others)
    assert ts.open_table(str(path)).compact_manifests() is not None
    assert sidecars(path)
    assert ts.open_table(str(path)).compact_manifests() is None, "nothing is left to do"
    check(path, state, others)
    for one in (by, java, us):
        one.write(path, new_rows(state, rng, one))
        check(path, state, others)
    java.compact(path)
    check(path, state, others)
    java.expire(path, retain=1)
    ts.open_table(str(path)).remove_orphan_files(0, dry_run=False)
    check(path, state, others)


@pytest.mark.slow
def test_thousands_of_entries(others: list[Any], warehouse: Path) -> None:
    """With the thresholds as they are."""
    path, us, java = warehouse / "db.db" / "t", Ours(), others[0]
    create(us, path)
    count = manifests_module.FEWEST_ENTRIES + 100
    state: State = {(day, day % 7): f"v{day % 10}" for day in range(count)}
    us.write(path, encoded(state))
    assert len(sidecars(path)) == 1
    for writer in (java, others[1], us):
        rows = {(3, 50): f"of {writer.name}", (count + 1, 1): f"of {writer.name}"}
        state |= rows
        writer.write(path, encoded(rows))
    check(path, state, others)
    ts.open_table(str(path)).compact_manifests()
    assert java.remove_orphans(path) > 0
    check(path, state, [java])
