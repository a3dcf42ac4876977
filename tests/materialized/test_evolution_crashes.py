"""A statement about versions dies, or another one comes first, at any call of the store: readers see one version or the other."""

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts
from tablestore.catalog.filesystem import FileSystemCatalog
from tablestore.catalog.settings import CatalogSettings
from tablestore.catalog.sqlcatalog import SqlCatalog
from tablestore.io.filestore import FileStore
from tablestore.io.local import LocalFileStore
from tablestore.io.wrapped import WrappedFileStore
from tablestore.materialized.materializedtable import definition_of
from tablestore.store.history.retentionleases import RetentionLeases
from tablestore.table.catalog import Catalog
from tablestore.testing.deterministic import ManualClock, SeededIds
from tablestore.testing.files import Faults, FaultyFileStore, FileCall, SimulatedCrash
from tablestore.testing.memorylog import MemoryBroker
from tests.table.creation.places import RenamingFaultyStore, broker_of

BLUE, GREEN = (
    "SELECT id % 2 AS k, count(*) AS n FROM shop.src GROUP BY 1",
    "SELECT max(id) AS most, id % 2 AS k FROM shop.src GROUP BY 2",
)
KEYED = f"CREATE MATERIALIZED TABLE shop.t (PRIMARY KEY (k) NOT ENFORCED) FRESHNESS = INTERVAL '1' DAY AS {BLUE}"
# The same layout, or another one: then the two tables change places.
STAGES = {"in place": f"STAGE AS {GREEN}", "exchanged": f"STAGE WITH ('bucket' = '3') AS {GREEN}"}
# What comes before an action that is to die.
BEFORE = {
    "STAGE": [],
    "STAGE again": ["STAGE AS SELECT id % 2 AS k, min(id) AS least FROM shop.src GROUP BY 1"],
    "PROMOTE": ["{}"],
    "ROLLBACK": ["{}", "PROMOTE"],
}
ROWS = {"blue": [{"k": 0, "n": 2}, {"k": 1, "n": 2}], "green": [{"most": 4, "k": 0}, {"most": 3, "k": 1}]}
LOGGED = "WITH ('log.system' = 'kafka', 'log.kafka.bootstrap.servers' = 'b1') "
_seeds = count()


def opened(files: FileStore, clock: ManualClock) -> Catalog:
    """The catalog as another process opens it: in a database where there is one beside the warehouse."""
    ids, names = SeededIds(next(_seeds)), Path(files.root_uri.removeprefix("file://")).parent / "names.db"
    meta = SqlCatalog(files, ids, url=f"sqlite:///{names}", key="jdbc") if names.exists() else FileSystemCatalog(files, ids)
    return Catalog(meta, clock, ids, CatalogSettings(warehouse=files.root_uri))


@dataclass(frozen=True, slots=True)
class Saved:
    """A warehouse as it was, which is restored to its own place: holds and logs know that."""

    place: Path
    broker: MemoryBroker
    topics: Mapping[str, Any]

    def restored(self) -> FileStore:
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.place.with_suffix(".saved"), self.place)
        self.broker.topics, self.broker.holders = deepcopy(dict(self.topics)), {}
        return LocalFileStore(self.place / "wh")


Prepare = Callable[..., Saved]


def run(catalog: Catalog, action: str) -> Any:
    with ts.TableEnvironment.create(catalog, engine="duckdb") as env:
        return env.execute_sql(f"ALTER MATERIALIZED TABLE shop.t {action}")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepare]:
    """A warehouse with the table before an action, made once for each."""
    made: dict[tuple[str, str, str], Saved] = {}

    def prepare(layout: str, action: str, where: str = "files") -> Saved:
        if (layout, action, where) not in made:
            place, log = tmp_path_factory.mktemp("place") / "now", LOGGED if where == "log" else ""
            (place / "wh").mkdir(parents=True)
            broker.topics, broker.holders = {}, {}
            if where == "catalog":
                (place / "names.db").touch()
            with ts.TableEnvironment.create(opened(LocalFileStore(place / "wh"), ManualClock()), engine="duckdb") as env:
                env.execute_sql("CREATE DATABASE shop")
                env.execute_sql(f"CREATE TABLE shop.src (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) {log}")
                env.execute_sql("INSERT INTO shop.src VALUES (1), (2), (3)")
                env.execute_sql(KEYED.replace("FRESHNESS", f"{log}FRESHNESS"))
                env.execute_sql("ALTER MATERIALIZED TABLE shop.t REFRESH")
                for before in BEFORE[action]:
                    env.execute_sql(f"ALTER MATERIALIZED TABLE shop.t {before.format(STAGES[layout])}")
                env.execute_sql("INSERT INTO shop.src VALUES (4)")
                env.execute_sql("ALTER MATERIALIZED TABLE shop.t REFRESH")
            shutil.copytree(place, place.with_suffix(".saved"))
            made[layout, action, where] = Saved(place, broker, deepcopy(broker.topics))
        return made[layout, action, where]

    with broker_of("b1") as broker:
        yield prepare


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


def held(files: FileStore, clock: ManualClock) -> set[str]:
    """The tables that the source keeps snapshots for."""
    holds = RetentionLeases(opened(files, clock).table("shop.src").context.files).all()
    return {one.target_uuid for one in holds if one.target_uuid is not None}


def living(files: FileStore, clock: ManualClock) -> set[str]:
    names = set(opened(files, clock).list_tables("shop")) - {"src"}
    return {uuid_of(files, clock, name) for name in names}


def copies(saved: Saved, *, renames: bool) -> Iterator[tuple[FileStore, FileStore, Faults]]:
    """A warehouse as it was, again and again: its files, and the same as a store with faults."""
    while True:
        files, faults = saved.restored(), Faults()
        if renames:
            yield files, RenamingFaultyStore(files, faults), faults
        else:
            yield WrappedFileStore(files), FaultyFileStore(files, faults), faults


def deaths(
    saved: Saved, action: str, *, renames: bool, nths: Iterable[int]
) -> Iterator[tuple[FileStore, ManualClock, list[str], tuple[int, FileCall]]]:
    """Let an action die at these calls of the store, until it does not: the files that it leaves, which versions readers saw
    meanwhile and see after a sweep, and where it died."""
    for nth, (files, faulty, faults) in zip(nths, copies(saved, renames=renames), strict=False):
        clock, states = ManualClock(), list[str]()
        clock.advance(7200)

        def poll(call: FileCall, files: FileStore = files, clock: ManualClock = clock, states: list[str] = states) -> None:
            if call.op in ("publish_if_absent", "rename_directory", "exchange_directories"):
                states.append(state(opened(files, clock)))

        faults.after(poll)
        faults.crash_nth(nth, when=("before", "after")[nth % 2])
        try:
            run(opened(faulty, clock), action)
        except SimulatedCrash:
            pass
        else:
            return
        clock.advance(7200)
        catalog = opened(files, clock)
        assert all(one.outcome in ("removed", "finished") for one in catalog.sweep_creations().creations)
        states.append(state(catalog))
        yield files, clock, states, (nth, faults.calls[-1])


def check_nothing_is_left(files: FileStore, clock: ManualClock, beside: str, died: object) -> None:
    assert set(opened(files, clock).list_tables("shop")) == {"src", "t", beside}, died
    opened(files, clock).release_dead_holds()
    assert held(files, clock) <= living(files, clock), died
    assert not files.list("_ctas"), died


def verified(catalog: Catalog) -> bool:
    (report,) = run(catalog, "REFRESH VERIFY").to_arrow().to_pylist()
    return (report["missing"], report["extra"]) == (0, 0)


def nths(some: int, stride: int | None) -> Iterator[int]:
    """One call of an action in the fast tests, every so many-th in the slow ones."""
    return count(1 + some // 2, some) if stride is None else count(1 + stride // 2, stride)


EACH = pytest.mark.parametrize("stride", [None, pytest.param(11, marks=pytest.mark.slow, id="many")])


@pytest.mark.deep
@EACH
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
    prepared: Prepare, action: str, layout: str, renames: bool, some: int, stride: int | None
) -> None:
    seen = swapped_in_spite_of_deaths(prepared(layout, action), action, renames=renames, nths=nths(some, stride))
    assert seen == {"blue", "green"} or stride is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "action", "layout"),
    [
        ("catalog", "PROMOTE", "in place"),
        ("catalog", "PROMOTE", "exchanged"),
        ("catalog", "ROLLBACK", "exchanged"),
        ("log", "PROMOTE", "in place"),
        ("log", "ROLLBACK", "in place"),
    ],
)
def test_the_same_with_names_in_a_database_and_with_a_log(prepared: Prepare, where: str, action: str, layout: str) -> None:
    saved = prepared(layout, action, where)
    assert swapped_in_spite_of_deaths(saved, action, renames=True, nths=count(8, 17)) == {"blue", "green"}


def swapped_in_spite_of_deaths(saved: Saved, action: str, *, renames: bool, nths: Iterable[int]) -> set[str]:
    """Which versions there were after the deaths."""
    before, after = ("blue", "green") if action == "PROMOTE" else ("green", "blue")
    back, beside = ("ROLLBACK", "t__staged") if action == "PROMOTE" else ("PROMOTE", "t__previous")
    seen = set()
    for files, clock, states, died in deaths(saved, action, renames=renames, nths=nths):
        turned = states.index(after) if after in states else len(states)
        assert set(states[:turned]) <= {before} and set(states[turned:]) <= {after}, (died, states)
        seen.add(states[-1])
        if states[-1] == before:
            run(opened(files, clock), action)
        else:
            with pytest.raises(ts.NotFoundError, match=r"has no (staged|previous) version"):
                run(opened(files, clock), action)
        assert state(opened(files, clock)) == after and verified(opened(files, clock))
        run(opened(files, clock), back)
        assert state(opened(files, clock)) == before
        check_nothing_is_left(files, clock, beside, died)
        assert set(saved.broker.topics) == set(saved.topics), died
    return seen


@pytest.mark.deep
@pytest.mark.parametrize(
    ("where", "action", "layout", "first", "step"),
    [
        # One call in the fast tests, each third in the slow ones.
        ("files", "STAGE", "exchanged", 66, 131),
        ("files", "STAGE again", "in place", 76, 151),
        *(
            pytest.param(*case, 2, 3, marks=pytest.mark.slow)
            for case in (
                ("files", "STAGE", "exchanged"),
                ("files", "STAGE again", "in place"),
                ("files", "STAGE again", "exchanged"),
                ("catalog", "STAGE", "exchanged"),
                ("log", "STAGE", "in place"),
            )
        ),
    ],
)
def test_a_staging_that_dies_anywhere_changes_nothing_for_readers_and_can_be_repeated(
    prepared: Prepare, where: str, action: str, layout: str, first: int, step: int
) -> None:
    saved, died = prepared(layout, action, where), None
    for files, clock, states, died in deaths(saved, STAGES[layout], renames=True, nths=count(first, step)):
        assert set(states) == {"blue"}, died
        run(opened(files, clock), STAGES[layout])
        assert state(opened(files, clock)) == "blue", died
        run(opened(files, clock), "PROMOTE")
        assert state(opened(files, clock)) == "green" and verified(opened(files, clock)), died
        run(opened(files, clock), "ROLLBACK")
        assert state(opened(files, clock)) == "blue", died
        check_nothing_is_left(files, clock, "t__staged", died)
        assert set(saved.broker.topics) == set(saved.topics), died
    assert died is not None


@pytest.mark.deep
@pytest.mark.parametrize("layout", STAGES)
@pytest.mark.parametrize("other", ["PROMOTE", "SUSPEND", "SET FRESHNESS = INTERVAL '1' HOUR"])
def test_of_two_statements_at_one_time_one_wins_and_the_other_changes_nothing(prepared: Prepare, layout: str, other: str) -> None:
    files, faulty, faults = next(copies(prepared(layout, "PROMOTE"), renames=True))
    clock = ManualClock()
    staged = []

    def come_first(call: FileCall) -> None:
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


@pytest.mark.deep_after(1)
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
    prepared: Prepare, action: str, op: str, path: str, lost: bool
) -> None:
    files, faulty, faults = next(copies(prepared("exchanged", "PROMOTE"), renames=True))
    clock = ManualClock()
    if action == "STAGE":
        run(opened(files, clock), "DISCARD")

    def die(call: FileCall) -> None:
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


def test_a_promotion_in_place_that_dies_keeps_no_snapshots_of_what_only_the_new_version_reads(prepared: Prepare) -> None:
    files, faulty, faults = next(copies(prepared("in place", "PROMOTE"), renames=True))
    clock = ManualClock()
    run(opened(files, clock), "DISCARD")
    with ts.TableEnvironment.create(opened(files, clock), engine="duckdb") as env:
        env.execute_sql("CREATE TABLE shop.src2 (id BIGINT)")
        env.execute_sql("INSERT INTO shop.src2 SELECT id FROM shop.src")
    run(opened(files, clock), STAGES["in place"].replace("shop.src", "shop.src2"))
    uuid = uuid_of(files, clock, "t")

    def die(call: FileCall) -> None:
        if re.search(rf"src2/tablestore-holds/materialized-{uuid}", call.path):
            faults.crashed = True
            raise SimulatedCrash

    faults.after(die, op="publish_if_absent")
    with pytest.raises(SimulatedCrash):
        run(opened(faulty, clock), "PROMOTE")
    there = RetentionLeases(opened(files, clock).table("shop.src2").context.files)
    assert uuid in {one.target_uuid for one in there.all()} and opened(files, clock).release_dead_holds() == ()
    clock.advance(7200)
    opened(files, clock).sweep_creations()
    assert [one.table for one in opened(files, clock).release_dead_holds()] == ["shop.src2"]
    assert {one.target_uuid for one in there.all()} == {uuid_of(files, clock, "t__staged")}
    assert state(opened(files, clock)) == "blue"
    run(opened(files, clock), "PROMOTE")
    assert state(opened(files, clock)) == "green" and opened(files, clock).release_dead_holds() == ()
    assert {one.target_uuid for one in there.all()} == {uuid}
