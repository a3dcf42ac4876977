"""Tables that nobody sees before they are whole: what every kind of catalog promises."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.errors import AlreadyExistsError, ConflictError, InvalidInputError, NotFoundError
from tablestore.table.catalog import Catalog
from tests.table.creation.places import COLUMNS, NAME, ROWS, Place, broker_of


@pytest.fixture(params=["memory", "copying", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path)


@pytest.fixture
def catalog(place: Place) -> Catalog:
    return place.open()


def test_a_staged_table_is_seen_by_nobody_and_then_whole(place: Place, catalog: Catalog) -> None:
    with catalog.stage_table(NAME, COLUMNS, ["id"], options={"bucket": "2"}, comment="all of them") as staged:
        staged.table.upsert(ROWS)
        staged.table.delete("id = 2")
        other = place.open()
        assert other.list_tables("shop") == () and not other.table_exists(NAME) and other.list_databases() == ("shop",)
        table = staged.publish()
        assert staged.publish() is table and staged.published
    assert table.scan().to_arrow().to_pylist() == ROWS[:1] and (table.name, table.comment) == (NAME, "all of them")
    again = place.open().table(NAME)
    assert [snapshot.id for snapshot in again.snapshots()][-1] >= 2 and again.location.endswith("/shop.db/orders")
    again.upsert([{"id": 3, "v": "c"}])
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3]
    assert again.remove_orphan_files(timedelta(0), dry_run=True).orphans == ()
    assert not {path for path in place.rest() if not path.startswith("shop.db/orders/")}
    assert not any("/.tmp-" in path for path in place.rest())


def test_a_staged_table_without_rows_becomes_an_empty_table(catalog: Catalog) -> None:
    assert catalog.stage_table(NAME, COLUMNS).publish().scan().count() == 0


def test_what_is_discarded_leaves_nothing(place: Place, catalog: Catalog) -> None:
    with pytest.raises(KeyError), catalog.stage_table(NAME, COLUMNS) as staged:
        staged.table.append(ROWS)
        raise KeyError("the query failed")
    staged.discard()
    with catalog.stage_table(NAME, COLUMNS) as forgotten:
        forgotten.table.append(ROWS)
    assert place.rest() == set() and catalog.list_tables("shop") == ()
    for over in (staged, forgotten):
        with pytest.raises(InvalidInputError, match="is over"):
            over.publish()


def test_what_create_table_refuses_is_refused_before_anything_is_written(place: Place, catalog: Catalog) -> None:
    with pytest.raises(NotFoundError, match="no database 'nowhere'"):
        catalog.stage_table("nowhere.t", COLUMNS)
    with pytest.raises(InvalidInputError, match="does not exist"):
        catalog.stage_table(NAME, COLUMNS, ["key"])
    for job_id in ("..", "a/b", "", "-x", "a.b"):
        with pytest.raises(InvalidInputError, match="not a valid job name"):
            catalog.stage_table(NAME, COLUMNS, job_id=job_id)
    assert place.rest() == set()
    catalog.create_table(NAME, COLUMNS)
    there = place.rest()
    with pytest.raises(AlreadyExistsError, match="already exists in"):
        catalog.stage_table(NAME, COLUMNS)
    assert place.rest() == there


def test_two_creations_of_one_job_are_refused_and_the_first_goes_on(catalog: Catalog, place: Place) -> None:
    staged = catalog.stage_table(NAME, COLUMNS, job_id="nightly")
    staged.table.append(ROWS)
    with pytest.raises(AlreadyExistsError) as refused:
        place.open().stage_table("shop.others", COLUMNS, job_id="nightly")
    assert refused.value.kind == "job-exists"
    assert staged.publish().scan().count() == 2


@pytest.mark.parametrize("ignore", [False, True])
def test_a_table_that_came_meanwhile_stays_and_the_staged_one_goes(place: Place, catalog: Catalog, ignore: bool) -> None:
    staged = catalog.stage_table(NAME, COLUMNS, ignore_if_exists=ignore)
    staged.table.append(ROWS)
    place.open().create_table(NAME, COLUMNS).append(ROWS[:1])
    if ignore:
        assert staged.publish().scan().count() == 1
    else:
        with pytest.raises(AlreadyExistsError) as refused:
            staged.publish()
        assert refused.value.kind == "table-exists"
    assert not staged.published and place.open().table(NAME).scan().count() == 1
    assert not {path for path in place.rest() if path.startswith("_ctas/")}


def test_a_database_that_is_dropped_meanwhile_gets_no_table(place: Place, catalog: Catalog) -> None:
    staged = catalog.stage_table(NAME, COLUMNS)
    staged.table.append(ROWS)
    place.open().drop_database("shop")
    with pytest.raises(NotFoundError) as missing:
        staged.publish()
    assert missing.value.kind == "no-such-database" and catalog.list_databases() == () and place.rest() == set()


def test_the_rest_of_a_removal_that_died_is_no_table_and_not_in_the_way_for_ever(place: Place, catalog: Catalog) -> None:
    place.files.write("shop.db/orders/snapshot/snapshot-1", b"of a table without a schema")
    staged = catalog.stage_table(NAME, COLUMNS)
    staged.table.append(ROWS)
    if place.kind.startswith("sqlite"):
        assert staged.publish().scan().count() == 2  # whose row it has locked, it knows to be alone
        return
    with pytest.raises(AlreadyExistsError) as refused:
        staged.publish()
    assert refused.value.kind == "half-removed-table"
    catalog.drop_table(NAME)
    again = catalog.stage_table(NAME, COLUMNS)
    again.table.append(ROWS)
    assert again.publish().scan().count() == 2


def test_directories_that_a_creation_left_are_not_in_the_way(tmp_path: Path) -> None:
    place = Place("local", tmp_path)
    (tmp_path / place.files.root_uri / "shop.db/orders/schema").mkdir(parents=True)
    staged = place.open().stage_table(NAME, COLUMNS)
    staged.table.append(ROWS)
    assert staged.publish().scan().count() == 2
    assert not {path for path in place.rest() if "creation-" in path or path.startswith("_ctas")}


# ---- sweeping


def test_what_was_not_renewed_for_long_is_swept_and_its_job_makes_nothing_visible(place: Place, catalog: Catalog) -> None:
    staged = catalog.stage_table(NAME, COLUMNS, job_id="slow")
    staged.table.append(ROWS)
    place.clock.advance(3000)
    staged.renew()
    place.clock.advance(3000)
    assert place.open().sweep_creations().creations == ()
    place.clock.advance(600)
    plan = place.open().sweep_creations(dry_run=True)
    assert str(plan) == "would sweep 1 creation(s) that died\n  staged table shop.orders of job slow: removed"
    assert staged.table.scan().count() == 2
    report = place.open().sweep_creations()
    assert report.creations == plan.creations and place.rest() == set()
    for step in (staged.renew, staged.publish):
        with pytest.raises(ConflictError) as swept:
            step()
        assert swept.value.kind == "creation-swept"
    assert place.rest() == set() and catalog.list_tables("shop") == ()
    assert place.open().sweep_creations().creations == ()


def test_what_a_swept_job_writes_afterwards_goes_once_it_is_old(place: Place, catalog: Catalog) -> None:
    staged = catalog.stage_table(NAME, COLUMNS)
    place.clock.advance(4000)
    place.open().sweep_creations()
    job = f"_ctas/{staged.job_id}"
    place.files.write(f"{job}/orders/bucket-0/data-1.parquet", b"late")
    report = place.open().sweep_creations(timedelta(days=-20_000))
    assert [(one.table, one.outcome) for one in report.creations] == [(None, "removed")] and place.rest() == set()


def test_a_damaged_record_is_reported_and_does_not_keep_others(place: Place, catalog: Catalog) -> None:
    catalog.stage_table("shop.a", COLUMNS, job_id="a")
    catalog.stage_table("shop.b", COLUMNS, job_id="b")
    place.files.overwrite("_ctas/a/intent.json", b'{"jobId": "a"}')
    place.clock.advance(4000)
    report = place.open().sweep_creations()
    assert [(one.job_id, one.outcome) for one in report.creations] == [("a", "failed"), ("b", "removed")]
    assert "checksum" in str(report)


# ---- tables that are visible at once


def test_the_table_of_a_job_that_failed_is_dropped_and_that_of_others_never(place: Place, catalog: Catalog) -> None:
    creation = catalog.intend_creation("j1", NAME)
    table, created = creation.create_table(COLUMNS, ["id"])
    table.upsert(ROWS)
    assert created and place.open().table(NAME).scan().count() == 2
    found = place.open().creation("j1")
    assert found is not None and found.undo() and not catalog.table_exists(NAME) and place.rest() == set()
    assert catalog.creation("j1") is None and not found.undo()
    catalog.create_table(NAME, COLUMNS)
    there = place.rest()
    late = catalog.intend_creation("j2", NAME)
    with pytest.raises(AlreadyExistsError):
        late.create_table(COLUMNS)
    assert late.create_table(COLUMNS, ignore_if_exists=True)[1] is False
    assert not late.undo() and place.rest() == there
    place.open().intend_creation("j3", NAME)
    place.clock.advance(4000)
    place.open().sweep_creations()
    assert place.rest() == there


def test_the_table_of_a_job_that_succeeded_stays(place: Place, catalog: Catalog) -> None:
    creation = catalog.intend_creation("j1", NAME, "me")
    creation.create_table(COLUMNS)[0].append(ROWS)
    creation.finished()
    place.clock.advance(4000)
    assert place.open().sweep_creations().creations == () and catalog.table(NAME).scan().count() == 2


@pytest.mark.parametrize(
    ("commit_user", "writer", "outcome"),
    [("me", "me", "finished"), ("me", "you", "removed"), (None, "you", "finished"), (None, None, "removed")],
)
def test_the_table_of_a_job_that_died_is_dropped_unless_it_has_the_rows_of_the_job(
    place: Place, catalog: Catalog, commit_user: str | None, writer: str | None, outcome: str
) -> None:
    table, _ = catalog.intend_creation("j1", NAME, commit_user).create_table(COLUMNS)
    if writer is not None:
        with table.new_writer(commit_user=writer) as rows:
            rows.write(ROWS)
            rows.commit()
    place.clock.advance(4000)
    (swept,) = place.open().sweep_creations().creations
    assert (swept.kind, swept.outcome) == ("create", outcome)
    assert place.open().table_exists(NAME) == (outcome == "finished")
    assert not {path for path in place.rest() if path.startswith("_ctas/")}


def test_a_job_that_was_given_up_does_not_create_its_table_afterwards(place: Place, catalog: Catalog) -> None:
    creation = catalog.intend_creation("j1", NAME)
    place.clock.advance(4000)
    place.open().sweep_creations()
    with pytest.raises(ConflictError):
        creation.create_table(COLUMNS)
    assert place.rest() == set()


# ---- the log


def test_the_log_begins_with_the_table_and_has_its_rows(place: Place, catalog: Catalog) -> None:
    with broker_of(f"b-{place.files.root_uri}") as broker:
        options = {"log.kafka.bootstrap.servers": broker.address, "bucket": "1"}
        with catalog.stage_table(NAME, COLUMNS, ["id"], options=options) as staged:
            staged.table.upsert(ROWS)
            assert broker.topics == {}
            table = staged.publish()
        assert broker.rows(NAME) == ROWS
        table.upsert([{"id": 3, "v": "c"}])
        place.open().table(NAME).upsert([{"id": 4, "v": "d"}])
        assert [row["id"] for row in broker.rows(NAME)] == [1, 2, 3, 4]
        assert table.change_log.verify().problems == ()
        catalog.drop_table(NAME)
        assert broker.topics == {}


def test_a_silent_broker_refuses_the_creation_and_nothing_is_left(place: Place, catalog: Catalog) -> None:
    with broker_of(f"b-{place.files.root_uri}") as broker:
        staged = catalog.stage_table(NAME, COLUMNS, options={"log.kafka.bootstrap.servers": broker.address})
        staged.table.append(ROWS)
        broker.silent = True
        with pytest.raises(OSError, match="does not answer"):
            staged.publish()
        assert not catalog.table_exists(NAME) and place.rest() == set()


def test_a_topic_of_others_is_left_alone(place: Place, catalog: Catalog) -> None:
    with broker_of(f"b-{place.files.root_uri}") as broker:
        options = {"log.kafka.bootstrap.servers": broker.address, "log.kafka.topic": "theirs"}
        catalog.create_table("shop.theirs", COLUMNS, options=options).append(ROWS)
        staged = catalog.stage_table(NAME, COLUMNS, options=options)
        staged.table.append(ROWS)
        with pytest.raises(AlreadyExistsError, match="theirs"):
            staged.publish()
        assert broker.rows("theirs") == ROWS and catalog.list_tables("shop") == ("theirs",)


def test_a_creation_that_has_only_its_directory_yet_is_not_taken_for_dead(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path / "wh"))
    begun = tmp_path / "wh" / "_ctas" / "31fc5a87-3c0d-45e2-b52a-2732f67d591d"
    begun.mkdir(parents=True)
    catalog.sweep_creations()
    assert begun.is_dir()
    os.utime(begun, (1, 1))
    catalog.sweep_creations()
    assert not begun.exists()
