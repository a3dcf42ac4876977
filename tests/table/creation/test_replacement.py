"""A table that is replaced with its rows: readable all the while, with its history where its layout stays."""

from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablestore.errors import AlreadyExistsError, ConflictError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.table.catalog import Catalog
from tablestore.table.creation.stagedtable import StagedTable
from tablestore.testing.files import Faults, FaultyFileStore, FileCall, SimulatedCrash, When
from tablestore.types.evolution.schemachanges import AddColumn
from tests.table.creation.places import COLUMNS, NAME, ROWS, Place, RenamingFaultyStore, broker_of

# Another type, one column less, one more.
NEW = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int32()), ("v", pa.list_(pa.string()))])
NEW_ROWS = [{"id": 2, "n": 7, "v": ["x"]}, {"id": 9, "n": None, "v": None}]


@pytest.fixture(params=["memory", "copying", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path)


@pytest.fixture
def catalog(place: Place) -> Catalog:
    catalog = place.open()
    catalog.create_table(NAME, COLUMNS, ["id"], options={"bucket": "2"}, comment="old").upsert(ROWS)
    return catalog


def staged_by(catalog: Catalog, **given: object) -> StagedTable:
    options = {"bucket": "2", "file.compression": "none"}
    staged = catalog.stage_replacement(NAME, NEW, ["id"], options=options, comment="new", **given)  # type: ignore[arg-type]
    staged.table.upsert(NEW_ROWS)
    staged.table.upsert(NEW_ROWS[:1])
    return staged


def rows_of(catalog: Catalog, **at: int) -> list[object]:
    return sorted(catalog.table(NAME).scan(**at).to_arrow().to_pylist(), key=lambda row: row["id"])  # type: ignore[arg-type]


def test_a_table_of_the_same_layout_keeps_its_identity_and_history(place: Place, catalog: Catalog) -> None:
    old = catalog.table(NAME)
    old.create_tag("before")
    staged = staged_by(catalog)
    assert rows_of(place.open()) == ROWS and place.open().table(NAME).schema == COLUMNS
    writer = old.new_writer()
    writer.write(ROWS)
    table = staged.publish()
    assert (table.comment, table.schema, table.options()["file.compression"]) == ("new", NEW, "none")
    assert table.options()["tablestore.table-uuid"] == old.options()["tablestore.table-uuid"]
    again = place.open()
    assert rows_of(again) == NEW_ROWS and rows_of(again, snapshot_id=1) == ROWS
    assert again.table(NAME).scan(tag="before").to_arrow().schema.names == ["id", "v"]
    newest = again.table(NAME).snapshots()[-1]
    assert newest.commit_kind == "OVERWRITE"
    # The id of a column that stays, and ids that were never used for those that come.
    ids = {field.name: field.id for field in again.table(NAME).table_schema.fields}
    assert ids["id"] == 0 and ids["n"] == 2 and ids["v"] == 3
    with pytest.raises(ConflictError, match="the table was replaced") as refused:
        writer.commit()
    assert refused.value.kind == "schema-changed"
    old.upsert([{"id": 2, "n": 8, "v": []}])
    assert table.scan(filter="id = 2").to_arrow()["n"].to_pylist() == [8]
    assert not {path for path in place.rest() if path.startswith("_ctas")}
    place.clock.advance(1)
    assert table.remove_orphan_files(0, dry_run=True).orphans == ()


def test_a_replaced_table_can_be_rolled_back_altered_and_replaced_again(catalog: Catalog) -> None:
    table = staged_by(catalog).publish()
    table.rollback_to(snapshot_id=1)
    found = rows_of(catalog)
    assert [(row["id"], row["n"]) for row in found] == [(1, None), (2, None)]  # type: ignore[index]
    table.upsert(NEW_ROWS[:1])
    catalog.alter_table(NAME, [AddColumn("w", "INT")])
    staged_by(catalog, job_id="again").publish()
    assert rows_of(catalog) == NEW_ROWS


def test_rows_that_others_wrote_meanwhile_are_replaced_and_an_alteration_is_a_conflict(place: Place, catalog: Catalog) -> None:
    staged, other = staged_by(catalog), place.open().table(NAME)
    other.upsert([{"id": 77, "v": "late"}])
    staged.publish()
    assert rows_of(catalog) == NEW_ROWS
    staged = staged_by(catalog, job_id="two")
    place.open().alter_table(NAME, [AddColumn("w", "INT")])
    before = place.rest()
    with pytest.raises(ConflictError) as refused:
        staged.publish()
    assert refused.value.kind == "schema-changed" and "w" in catalog.table(NAME).schema.names
    assert place.rest() == {path for path in before if not path.startswith("_ctas")}
    if place.renames:
        staged = catalog.stage_replacement(NAME, NEW, ["id"], options={"bucket": "3"}, job_id="three")
        place.open().alter_table(NAME, [AddColumn("x", "INT")])
        with pytest.raises(ConflictError) as refused:
            staged.publish()
        assert refused.value.kind == "schema-changed" and "x" in catalog.table(NAME).schema.names


def test_a_table_that_was_dropped_and_made_anew_is_not_replaced(place: Place, catalog: Catalog) -> None:
    for number, layout in enumerate([{}, {"bucket": "3"}]):
        if layout and not place.renames:
            return
        staged = catalog.stage_replacement(NAME, NEW, ["id"], options={"bucket": "2", **layout}, job_id=f"j{number}")
        staged.table.upsert(NEW_ROWS)
        other = place.open()
        other.drop_table(NAME)
        other.create_table(NAME, COLUMNS, ["id"], options={"bucket": "2"}).upsert(ROWS)
        with pytest.raises(ConflictError) as refused:
            staged.publish()
        assert refused.value.kind == "table-replaced" and rows_of(other) == ROWS
        gone = catalog.stage_replacement(NAME, NEW, ["id"], options={"bucket": "2", **layout}, job_id=f"k{number}")
        place.open().drop_table(NAME)
        with pytest.raises(NotFoundError):
            gone.publish()
        assert place.rest() == set()
        other.create_table(NAME, COLUMNS, ["id"], options={"bucket": "2"})


@pytest.mark.parametrize(
    ("key", "partition", "options"),
    [([], [], {}), (["id", "n"], [], {"bucket": "2"}), (["id"], [], {"bucket": "3"}), (["id", "n"], ["n"], {"bucket": "2"})],
)
def test_a_table_of_another_layout_becomes_another_one_where_the_store_can(
    place: Place, catalog: Catalog, key: list[str], partition: list[str], options: dict[str, str]
) -> None:
    old = catalog.table(NAME)
    if not place.renames:
        with pytest.raises(UnsupportedError) as refused:
            catalog.stage_replacement(NAME, NEW, key, partition, options=options)
        assert refused.value.kind == "cannot-exchange" and rows_of(catalog) == ROWS
        return
    with catalog.stage_replacement(NAME, NEW, key, partition, options=options) as staged:
        staged.table._write("append", pa.Table.from_pylist([{**row, "n": 1} for row in NEW_ROWS], schema=NEW))
        assert rows_of(place.open()) == ROWS
        table = staged.publish()
    assert (list(table.primary_key), list(table.partition_by)) == (key, partition)
    assert rows_of(place.open()) == [{**row, "n": 1} for row in NEW_ROWS]
    with pytest.raises(TablestoreError):
        old.upsert(ROWS)
    assert rows_of(place.open()) == [{**row, "n": 1} for row in NEW_ROWS]
    assert all(path.startswith("shop.db/orders/") for path in place.rest())
    assert len(table.snapshots()) == 1


def test_without_a_table_a_replacement_is_a_creation_unless_it_must_exist(place: Place) -> None:
    catalog = place.open()
    with pytest.raises(NotFoundError) as missing:
        catalog.stage_replacement(NAME, NEW, ["id"], must_exist=True)
    assert missing.value.kind == "no-such-table" and place.rest() == set()
    staged = catalog.stage_replacement(NAME, NEW, ["id"])
    staged.table.upsert(NEW_ROWS)
    assert not catalog.table_exists(NAME)
    staged.publish()
    assert rows_of(catalog) == NEW_ROWS


def test_a_replacement_without_rows_empties_the_table(catalog: Catalog) -> None:
    catalog.stage_replacement(NAME, NEW, ["id"], options={"bucket": "2"}).publish()
    assert rows_of(catalog) == [] and catalog.table(NAME).schema == NEW and rows_of(catalog, snapshot_id=1) == ROWS


@pytest.mark.deep_after(6)
@pytest.mark.parametrize(
    ("key", "options"),
    [
        (["id"], {"bucket": "-1"}),
        (["id"], {"bucket": "2", "deletion-vectors.enabled": "true"}),
        ([], {}),
        ([], {"deletion-vectors.enabled": "true"}),
    ],
)
def test_hash_indexes_and_deletion_vectors_come_along(place: Place, key: list[str], options: dict[str, str]) -> None:
    catalog = place.open()
    catalog.create_table(NAME, COLUMNS, key, options=options)._write("append", pa.Table.from_pylist(ROWS, schema=COLUMNS))
    staged = catalog.stage_replacement(NAME, NEW, key, options=options)
    for rows in ([{"id": 4, "n": 1, "v": None}, *NEW_ROWS], [{"id": 5, "n": 1, "v": None}]):
        staged.table._write("append", pa.Table.from_pylist(rows, schema=NEW))
    staged.table.delete("n = 1")
    table = staged.publish()
    assert rows_of(catalog) == NEW_ROWS
    table._write("append", pa.Table.from_pylist([{"id": 4, "n": 2, "v": None}], schema=NEW))
    table.compact(full=True)
    assert [row["id"] for row in rows_of(catalog)] == [2, 4, 9]  # type: ignore[index]
    place.clock.advance(1)
    assert table.remove_orphan_files(0, dry_run=True).orphans == ()


def test_the_log_stays_and_an_overwrite_is_not_sent(place: Place) -> None:
    with broker_of(f"r-{place.files.root_uri}") as broker:
        catalog = place.open()
        options = {"bucket": "1", "log.kafka.bootstrap.servers": broker.address}
        catalog.create_table(NAME, COLUMNS, ["id"], options=options).upsert(ROWS)
        staged = catalog.stage_replacement(NAME, NEW, ["id"], options={"bucket": "1"})
        staged.table.upsert(NEW_ROWS)
        table = staged.publish()
        assert broker.rows(NAME) == ROWS
        table.upsert([{"id": 10, "n": 1, "v": None}])
        assert broker.rows(NAME)[2:] == [{"id": 10, "n": 1, "v": None}]
        with pytest.raises(UnsupportedError, match=r"log\.\*"):
            catalog.stage_replacement(NAME, NEW, ["id"], options={"bucket": "1", "log.kafka.topic": "another"})
        if place.renames:
            with pytest.raises(UnsupportedError, match="topic cannot go over"):
                catalog.stage_replacement(NAME, NEW, ["id"], options={"bucket": "2"})


# ---- what dies


def state(place: Place) -> str:
    """What a reader sees: the old table, the new one, or (never) something of both."""
    table = place.open().table(NAME)
    found = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    known = {"old": (COLUMNS, ROWS), "renewed": (NEW, NEW_ROWS)}
    return next((name for name, whole in known.items() if whole == (table.schema, found)), f"a mixture: {table.schema} {found}")


def replace_by(options: dict[str, str], catalog: Catalog) -> object:
    with catalog.stage_replacement(NAME, NEW, ["id"], options={"write-only": "true", **options}) as staged:
        staged.table.upsert(NEW_ROWS)
        return staged.publish()


IN_PLACE, EXCHANGE = {"bucket": "2"}, {"bucket": "1"}
WHENS: tuple[When, ...] = ("before", "after")
READING = ("read", "size", "exists", "list", "open_input", "input.read")


@pytest.fixture(params=["some", pytest.param("all", marks=pytest.mark.slow)])
def stride(request: pytest.FixtureRequest) -> int:
    return 23 if request.param == "some" else 1


@pytest.mark.deep
@pytest.mark.parametrize("options", [IN_PLACE, EXCHANGE])
@pytest.mark.parametrize("kind", ["memory", "copying"])
@pytest.mark.parametrize("ending", ["crash", "error"])
def test_a_replacement_that_dies_or_fails_anywhere_leaves_the_old_table_or_the_new(
    kind: str, options: dict[str, str], ending: str, stride: int, tmp_path: Path
) -> None:
    if kind == "copying" and options == EXCHANGE:
        pytest.skip("refused at once")
    for when in WHENS:
        seen = []
        for nth in count(1 + WHENS.index(when), stride):
            place, faults = Place(kind, tmp_path), Faults()
            made = place.open().create_table(NAME, COLUMNS, ["id"], options={"bucket": "2"})
            made.upsert(ROWS)
            states = [state(place)]
            poll = partial(_poll, place, states)
            faults.after(poll)
            strike: Callable[..., None] = faults.crash_nth if ending == "crash" else faults.fail_nth
            strike(nth, when=when)
            store = (RenamingFaultyStore if place.renames else FaultyFileStore)(place.files, faults)
            try:
                replace_by(options, place.open(store))
            except (SimulatedCrash, TablestoreError):
                pass
            else:
                if not faults.injected_total:
                    break
            states.append(state(place))
            place.clock.advance(4000)
            report = place.open().sweep_creations()
            assert all(one.outcome in ("removed", "finished") for one in report.creations), (nth, report)
            states.append(state(place))
            assert set(states) <= {"old", "renewed"} and states == sorted(states), (nth, when, faults.calls[nth - 1], states)
            # Writable, clean, and what it was before is there to travel to.
            table = place.open().table(NAME)
            table.upsert([{"id": 50}], missing_columns="null")
            assert table.scan().count() == 3
            assert not {path for path in place.rest() if path.startswith("_ctas/") and ".tmp-" not in path}, (nth, when)
            place.clock.advance(1)
            orphans = [one.path for one in table.remove_orphan_files(0, dry_run=True).orphans if one.kind in ("data", "index")]
            assert orphans == [], (nth, when, faults.calls[nth - 1], states)
            if options == IN_PLACE:
                assert [row["id"] for row in rows_of(place.open(), snapshot_id=1)] == [1, 2]  # type: ignore[index]
            seen.append(states[-1])
        # Every thirteenth call may leave out the few that come after the step.
        assert "old" in seen and (stride > 1 or "renewed" in seen)


def _poll(place: Place, states: list[str], call: FileCall) -> None:
    if call.op not in READING and (call.op == "exchange_directories" or call.path.startswith("shop.db")):
        states.append(state(place))


def test_a_job_that_sleeps_before_its_snapshot_loses_to_the_sweeper(place: Place, catalog: Catalog) -> None:
    faults = Faults()
    store = (RenamingFaultyStore if place.renames else FaultyFileStore)(place.files, faults)
    woken = []

    def sleep(call: FileCall) -> None:
        if "snapshot/snapshot-2" in call.path and call.path.startswith("shop.db") and not woken:
            woken.append(call)
            place.clock.advance(4000)
            (swept,) = place.open().sweep_creations().creations
            assert swept.outcome == "removed"

    faults.before(sleep, op="publish_if_absent")
    with pytest.raises(ConflictError):
        staged_by(place.open(store)).publish()
    assert woken and rows_of(catalog) == ROWS and catalog.table(NAME).schema == COLUMNS
    catalog.table(NAME).upsert([{"id": 3, "v": "c"}])
    place.clock.advance(1)
    assert not [one for one in catalog.table(NAME).remove_orphan_files(0, dry_run=True).orphans if one.kind == "data"]


def test_writers_while_the_new_rows_have_not_landed_are_refused_and_lose_nothing(place: Place, catalog: Catalog) -> None:
    faults = Faults()
    store = (RenamingFaultyStore if place.renames else FaultyFileStore)(place.files, faults)

    def write(call: FileCall) -> None:
        if call.path == "shop.db/orders/schema/schema-1":
            assert state(place) == "old"
            for change in changes:
                with pytest.raises(ConflictError) as refused:
                    change(place.open().table(NAME))
                assert refused.value.kind == "being-replaced" and state(place) == "old"

    changes: list[Callable[[Any], object]] = [
        lambda table: table.upsert([{"id": 3, "v": "c"}]),
        lambda table: table.delete("id = 1"),
        lambda table: table.overwrite([{"id": 3, "v": "c"}]),
        lambda table: table.compact(full=True),
        lambda table: table.rollback_to(1),
        lambda table: table.alter([AddColumn("w", "INT")]),
    ]
    catalog.table(NAME).upsert([{"id": 2, "v": "d"}])
    catalog.table(NAME).rollback_to(1)
    faults.after(write, op="publish_if_absent")
    staged = place.open(store).stage_replacement(NAME, NEW, ["id"], options=IN_PLACE)
    staged.table.upsert(NEW_ROWS)
    staged.publish()
    assert state(place) == "renewed"


def test_a_commit_that_slips_in_under_the_old_definition_does_not_bring_the_new_one_into_force(
    place: Place, catalog: Catalog
) -> None:
    faults = Faults()
    store = (RenamingFaultyStore if place.renames else FaultyFileStore)(place.files, faults)
    catalog.table(NAME).upsert(ROWS[1:])
    own = Faults()
    slow = (RenamingFaultyStore if place.renames else FaultyFileStore)(place.files, own)

    # A compaction has looked for newer schemas; before it publishes its snapshot, a replacement publishes its schema and stops.
    def replace_meanwhile(call: FileCall) -> None:
        if call.path.endswith("snapshot/snapshot-3") and not began:
            began.append(call)
            staged = place.open(store).stage_replacement(NAME, NEW, ["id"], options=IN_PLACE)
            staged.table.upsert(NEW_ROWS)
            with pytest.raises(SimulatedCrash):
                staged.publish()

    def die(call: FileCall) -> None:
        if call.path == "shop.db/orders/schema/schema-1":
            raise SimulatedCrash

    began: list[FileCall] = []
    faults.after(die, op="publish_if_absent")
    own.before(replace_meanwhile, op="publish_if_absent")
    place.open(slow).table(NAME).compact(full=True)
    assert began and catalog.table(NAME).snapshots()[-1].id == 3 and state(place) == "old"
    with pytest.raises(ConflictError, match="is being replaced"):
        place.open().table(NAME).upsert([{"id": 3, "v": "c"}])
    place.clock.advance(4000)
    assert [one.outcome for one in place.open().sweep_creations().creations] == ["removed"]
    assert state(place) == "old"
    place.open().table(NAME).upsert([{"id": 3, "v": "c"}])
    assert rows_of(place.open()) == [*ROWS, {"id": 3, "v": "c"}]


def test_an_alteration_of_a_replaced_table_counts_at_once(place: Place, catalog: Catalog) -> None:
    staged_by(catalog).publish()
    catalog.alter_table(NAME, [AddColumn("w", "INT")])
    assert place.open().table(NAME).schema.names == ["id", "n", "v", "w"]
    staged_by(catalog, job_id="two").publish()
    assert state(place) == "renewed"


def test_what_lacks_a_column_that_is_not_null_now_is_not_rolled_back_to(catalog: Catalog) -> None:
    schema = NEW.append(pa.field("z", pa.int32(), nullable=False))
    staged = catalog.stage_replacement(NAME, schema, ["id"], options=IN_PLACE)
    staged.table.upsert([{**row, "z": 1} for row in NEW_ROWS])
    staged.publish()
    with pytest.raises(UnsupportedError, match="no column 'z'"):
        catalog.table(NAME).rollback_to(1)
    assert rows_of(catalog, snapshot_id=1) == ROWS


def test_two_replacements_of_one_table_the_second_is_told(place: Place, catalog: Catalog) -> None:
    first, second = staged_by(catalog, job_id="a"), staged_by(place.open(), job_id="b")
    first.publish()
    with pytest.raises(ConflictError, match="was altered"):
        second.publish()
    with pytest.raises(AlreadyExistsError):
        staged = catalog.stage_replacement("shop.new", NEW, ["id"])
        catalog.create_table("shop.new", NEW)
        staged.publish()
    assert rows_of(catalog) == NEW_ROWS
