"""A statement about versions dies, or another one comes first, at any call of the store: readers see one version or the other."""

import re
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts
from tablestore.catalog.filesystem import FileSystemCatalog
from tablestore.catalog.settings import CatalogSettings
from tablestore.environment.materialized.materializedtable import definition_of
from tablestore.io.filestore import FileStore
from tablestore.io.local import LocalFileStore
from tablestore.io.wrapped import WrappedFileStore
from tablestore.store.history.holds import Holds
from tablestore.table.catalog import Catalog
from tablestore.testing.deterministic import ManualClock, SeededIds
from tablestore.testing.files import Call, Faults, FaultyFileStore, SimulatedCrash
from tests.table.creation.places import RenamingFaultyStore

BLUE, GREEN = (
    "SELECT id % 2 AS k, count(*) AS n FROM shop.src GROUP BY 1",
    "SELECT max(id) AS most, id % 2 AS k FROM shop.src GROUP BY 2",
)
KEYED = f"CREATE MATERIALIZED TABLE shop.t (PRIMARY KEY (k) NOT ENFORCED) FRESHNESS = INTERVAL '1' DAY AS {BLUE}"
# The same layout, or another one: then the two tables change places.
STAGES = {"in place": f"STAGE AS {GREEN}", "exchanged": f"STAGE WITH ('bucket' = '3') AS {GREEN}"}
ROWS = {"blue": [{"k": 0, "n": 2}, {"k": 1, "n": 2}], "green": [{"most": 4, "k": 0}, {"most": 3, "k": 1}]}
_seeds = count()


def opened(files: FileStore, clock: ManualClock) -> Catalog:
    ids = SeededIds(next(_seeds))
    return Catalog(FileSystemCatalog(files, ids), clock, ids, CatalogSettings(warehouse=files.root_uri))


def run(catalog: Catalog, action: str) -> Any:
    with ts.TableEnvironment.create(catalog, engine="duckdb") as env:
        return env.execute_sql(f"ALTER MATERIALIZED TABLE shop.t {action}")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """A folder with the table before an action, made once for each."""
    made: dict[tuple[str, str], Path] = {}

    def prepare(layout: str, action: str) -> Path:
        if (layout, action) not in made:
            folder = tmp_path_factory.mktemp("prepared")
            catalog = opened(LocalFileStore(folder), ManualClock())
            with ts.TableEnvironment.create(catalog, engine="duckdb") as env:
                env.execute_sql("CREATE DATABASE shop")
                env.execute_sql("CREATE TABLE shop.src (id BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
                env.execute_sql("INSERT INTO shop.src VALUES (1), (2), (3)")
                env.execute_sql(KEYED)
                env.execute_sql("ALTER MATERIALIZED TABLE shop.t REFRESH")
                for before in {"PROMOTE": [STAGES[layout]], "ROLLBACK": [STAGES[layout], "PROMOTE"]}[action]:
                    env.execute_sql(f"ALTER MATERIALIZED TABLE shop.t {before}")
                env.execute_sql("INSERT INTO shop.src VALUES (4)")
                env.execute_sql("ALTER MATERIALIZED TABLE shop.t REFRESH")
            made[layout, action] = folder
        return made[layout, action]

    return prepare


def state(catalog: Catalog) -> str:
    """Which version readers see, whole; or (never) something else."""
    table = catalog.table("shop.t")
    assert isinstance(table, ts.Table)
    rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: int(row["k"]))
    name = "blue" if "count" in definition_of(table.table_schema).original_query else "green"
    return name if rows == ROWS[name] else f"{name} with {rows}"


def uuid_of(files: FileStore, clock: ManualClock, name: str) -> str:
    found = opened(files, clock).table(f"shop.{name}")
    assert isinstance(found, ts.Table) and found.context.table_uuid is not None
    return found.context.table_uuid.replace("-", "")


def held(files: FileStore, clock: ManualClock, *, only_here: bool = False) -> set[str]:
    """The tables that the source keeps snapshots for; ``only_here``: those that lay in this warehouse then."""
    holds = Holds(opened(files, clock).table("shop.src").context.files).all()
    return {str(one.target_uuid) for one in holds if not only_here or (one.target or "").startswith(files.root_uri)}


def living(files: FileStore, clock: ManualClock) -> set[str]:
    names = set(opened(files, clock).list_tables("shop")) - {"src"}
    return {uuid_of(files, clock, name) for name in names}


def copies(source: Path, folder: Path, *, renames: bool) -> Iterator[tuple[FileStore, FileStore, Faults]]:
    """Copies of a warehouse: its files, and the same as a store with faults."""
    for number in count():
        shutil.copytree(source, folder / str(number))
        files: FileStore = LocalFileStore(folder / str(number))
        faults = Faults()
        if renames:
            yield files, RenamingFaultyStore(files, faults), faults
        else:
            yield WrappedFileStore(files), FaultyFileStore(files, faults), faults


@pytest.fixture(params=["some", pytest.param("many", marks=pytest.mark.slow)])
def stride(request: pytest.FixtureRequest) -> int:
    return 11 if request.param == "many" else 0


@pytest.mark.parametrize(
    ("action", "layout", "renames", "some"),
    [
        ("PROMOTE", "in place", True, 201),
        ("PROMOTE", "in place", False, 203),
        ("PROMOTE", "exchanged", True, 169),
        ("ROLLBACK", "in place", True, 251),
        ("ROLLBACK", "exchanged", True, 251),
    ],
)
def test_a_promotion_or_rollback_that_dies_anywhere_leaves_one_version_whole_and_can_be_repeated(
    prepared: Callable[[str, str], Path], tmp_path: Path, action: str, layout: str, renames: bool, some: int, stride: int
) -> None:
    before, after = ("blue", "green") if action == "PROMOTE" else ("green", "blue")
    back = "ROLLBACK" if action == "PROMOTE" else "PROMOTE"
    step = stride or some
    seen = set()
    nths = count(1 + step // 2, step)
    for nth, (files, faulty, faults) in zip(nths, copies(prepared(layout, action), tmp_path, renames=renames), strict=False):
        clock = ManualClock()
        clock.advance(7200)
        states: list[str] = []

        def poll(call: Call, files: FileStore = files, clock: ManualClock = clock, states: list[str] = states) -> None:
            if call.op in ("publish_if_absent", "rename_directory", "exchange_directories"):
                states.append(state(opened(files, clock)))

        faults.after(poll)
        faults.crash_nth(nth, when=("before", "after")[nth % 2])
        try:
            run(opened(faulty, clock), action)
        except SimulatedCrash:
            pass
        else:
            break
        clock.advance(7200)
        catalog = opened(files, clock)
        assert all(one.outcome in ("removed", "finished") for one in catalog.sweep_creations().creations)
        states.append(state(catalog))
        turned = states.index(after) if after in states else len(states)
        assert set(states[:turned]) <= {before} and set(states[turned:]) <= {after}, (nth, faults.calls[-1], states)
        seen.add(states[-1])
        if states[-1] == before:
            run(catalog, action)
        else:
            with pytest.raises(ts.NotFoundError, match=r"has no (staged|previous) version"):
                run(catalog, action)
        assert state(opened(files, clock)) == after
        (report,) = run(opened(files, clock), "REFRESH VERIFY").to_arrow().to_pylist()
        assert (report["missing"], report["extra"]) == (0, 0)
        run(opened(files, clock), back)
        assert state(opened(files, clock)) == before
        beside = "t__staged" if back == "ROLLBACK" else "t__previous"
        assert set(opened(files, clock).list_tables("shop")) == {"src", "t", beside}, (nth, faults.calls[-1])
        opened(files, clock).release_dead_holds()
        # Of a hold that was taken before the warehouse was copied nobody knows whether its target is there.
        assert held(files, clock, only_here=True) <= living(files, clock), (nth, faults.calls[-1])
        assert not files.list("_ctas"), (nth, faults.calls[-1])
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
    assert seen == {before, after} or not stride


@pytest.mark.parametrize("layout", STAGES)
@pytest.mark.parametrize("other", ["PROMOTE", "SUSPEND", "SET FRESHNESS = INTERVAL '1' HOUR"])
def test_of_two_statements_at_one_time_one_wins_and_the_other_changes_nothing(
    prepared: Callable[[str, str], Path], tmp_path: Path, layout: str, other: str
) -> None:
    files, faulty, faults = next(copies(prepared(layout, "PROMOTE"), tmp_path, renames=True))
    clock = ManualClock()
    staged = []

    def come_first(call: Call) -> None:
        # The version that takes the place of the table is staged: now the other one does all of its work.
        if call.path.endswith("intent.json"):
            staged.append(call)
            if len(staged) == 2:
                run(opened(files, clock), other)

    faults.after(come_first, op="publish_if_absent")
    with pytest.raises(ts.ConflictError) as error:
        run(opened(faulty, clock), "PROMOTE")
    assert error.value.kind == "materialized-changed"
    assert state(opened(files, clock)) == ("green" if other == "PROMOTE" else "blue")
    run(opened(files, clock), "ROLLBACK" if other == "PROMOTE" else "PROMOTE")
    assert state(opened(files, clock)) == ("blue" if other == "PROMOTE" else "green")


@pytest.mark.parametrize(
    ("action", "op", "path", "lost"),
    [
        # Staged, refreshed, and not named yet.
        ("STAGE", "publish_if_absent", r"publishing\.json$", True),
        # Whole under its name; the record is there still.
        ("STAGE", "rename_directory", r"_ctas/[^/]+/t__staged$", False),
        ("PROMOTE", "publish_if_absent", r"publishing\.json$", True),
        # The table that was replaced is gone with the record, what it held is not.
        ("PROMOTE", "delete", r"_ctas/[^/]+/intent\.json$", True),
    ],
)
def test_what_dies_while_it_builds_a_version_keeps_no_snapshots_of_the_sources_for_ever(
    prepared: Callable[[str, str], Path], tmp_path: Path, action: str, op: str, path: str, lost: bool
) -> None:
    files, faulty, faults = next(copies(prepared("exchanged", "PROMOTE"), tmp_path, renames=True))
    clock = ManualClock()
    if action == "STAGE":
        run(opened(files, clock), "DISCARD")

    def die(call: Call) -> None:
        # A promotion first makes the previous version, which has no hold yet.
        if re.search(path, call.path) and (not lost or held(files, clock) - living(files, clock)):
            faults.crashed = True
            raise SimulatedCrash

    faults.after(die, op=op)
    with pytest.raises(SimulatedCrash):
        run(opened(faulty, clock), STAGES["exchanged"] if action == "STAGE" else action)
    left = held(files, clock)
    assert (left - living(files, clock) != set()) == lost
    # A build that may be alive loses nothing. Where its record is gone, it is over.
    if op != "delete":
        assert opened(files, clock).list_creations() and opened(files, clock).release_dead_holds() == ()
        assert held(files, clock) == left
    clock.advance(7200)
    opened(files, clock).sweep_creations()
    planned = opened(files, clock).release_dead_holds(dry_run=True)
    assert [one.table for one in planned] == ["shop.src"] * lost and held(files, clock) == left
    assert opened(files, clock).release_dead_holds() == planned
    assert held(files, clock) == left & living(files, clock) != set()
    assert opened(files, clock).release_dead_holds() == ()


def test_a_promotion_in_place_that_dies_keeps_no_snapshots_of_what_only_the_new_version_reads(
    prepared: Callable[[str, str], Path], tmp_path: Path
) -> None:
    files, faulty, faults = next(copies(prepared("in place", "PROMOTE"), tmp_path, renames=True))
    clock = ManualClock()
    run(opened(files, clock), "DISCARD")
    with ts.TableEnvironment.create(opened(files, clock), engine="duckdb") as env:
        env.execute_sql("CREATE TABLE shop.src2 (id BIGINT)")
        env.execute_sql("INSERT INTO shop.src2 SELECT id FROM shop.src")
    run(opened(files, clock), STAGES["in place"].replace("shop.src", "shop.src2"))
    uuid = uuid_of(files, clock, "t")

    def die(call: Call) -> None:
        if re.search(rf"src2/tablestore-holds/materialized-{uuid}", call.path):
            faults.crashed = True
            raise SimulatedCrash

    faults.after(die, op="publish_if_absent")
    with pytest.raises(SimulatedCrash):
        run(opened(faulty, clock), "PROMOTE")
    there = Holds(opened(files, clock).table("shop.src2").context.files)
    assert uuid in {one.target_uuid for one in there.all()} and opened(files, clock).release_dead_holds() == ()
    clock.advance(7200)
    opened(files, clock).sweep_creations()
    assert [one.table for one in opened(files, clock).release_dead_holds()] == ["shop.src2"]
    assert {one.target_uuid for one in there.all()} == {uuid_of(files, clock, "t__staged")}
    assert state(opened(files, clock)) == "blue"
    run(opened(files, clock), "PROMOTE")
    assert state(opened(files, clock)) == "green" and opened(files, clock).release_dead_holds() == ()
    assert {one.target_uuid for one in there.all()} == {uuid}
