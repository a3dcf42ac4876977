"""Records of creations that somebody else wrote: what is swept is what the job of the record made, and nothing else."""

import json
import os
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore.catalog.creations import CreationRecord, marked
from tablestore.errors import ConflictError, InvalidInputError, TablestoreError
from tablestore.format.paths import CREATIONS_DIR
from tablestore.format.schemafile import encode_schema
from tablestore.format.sealed import CHECKSUM_KEY, object_checksum
from tablestore.store.history.retentionleases import RetentionLeases
from tablestore.store.schemas import TABLE_UUID_OPTION, Schemas, table_uuid_of
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table
from tablestore.testing.files import SimulatedCrash
from tablestore.testing.memorylog import MemoryBroker
from tablestore.types.evolution.schemachanges import AddColumn
from tests.table.creation.places import COLUMNS, KINDS, NAME, ROWS, Place, broker_of

STRANGER = "stranger"


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path)


@pytest.fixture
def victim(place: Place) -> Table:
    table = place.open().create_table(NAME, COLUMNS, ["id"])
    table.upsert(ROWS)
    return table


def plant(place: Place, content: dict[str, object], *, folder: str = STRANGER, sealed: bool = True) -> None:
    """Write a record as a stranger would."""
    content = {key: value for key, value in content.items() if value is not None}
    if sealed:
        content = {**content, CHECKSUM_KEY: object_checksum(content)}
    place.files.overwrite(f"{CREATIONS_DIR}/{folder}/intent.json", json.dumps(content).encode())


def record_of(victim: Table | None, /, **more: object) -> dict[str, object]:
    """The record of a job that says that it makes the table."""
    uuid = "3f1d7c6e-9f5e-4d6f-a9b0-6a2f8f6f2a11" if victim is None else victim.context.table_uuid
    begun = {"jobId": STRANGER, "kind": "create", "table": NAME, "tableUuid": uuid, "begunMillis": 0, "commitUser": "nobody"}
    return {**begun, **more}


def swept(place: Place) -> list[tuple[str, str]]:
    place.clock.advance(7200)
    return [(one.job_id, one.outcome) for one in place.open().sweep_creations().creations]


def stays(place: Place, victim: Table) -> bool:
    """Whether the victim is what it was."""
    table = place.open().table(NAME)
    assert isinstance(table, Table)
    rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    return table.context.table_uuid == victim.context.table_uuid and rows == ROWS


# ---- a record that names another's table


@pytest.mark.deep_after(19)
@pytest.mark.parametrize("kind", ["create", "stage", "replace"])
@pytest.mark.parametrize("secret", [None, "a secret"])
def test_a_record_with_the_uuid_of_a_table_does_not_drop_it(place: Place, victim: Table, kind: str, secret: str | None) -> None:
    plant(place, record_of(victim, kind=kind, secret=secret, replacedUuid=victim.context.table_uuid, replacedSchemaId=0))
    outcomes = swept(place)
    assert stays(place, victim)
    assert [job for job, _ in outcomes] == [STRANGER] and outcomes[0][1] in ("left", "finished", "removed", "failed")
    if secret is not None:
        assert outcomes == [(STRANGER, "failed")]


def test_a_table_that_nobody_wrote_to_is_not_dropped_by_a_record_without_a_mark(place: Place) -> None:
    place.open().create_table(NAME, COLUMNS)
    plant(place, record_of(place.open().table(NAME), commitUser=None))  # type: ignore[arg-type]
    assert swept(place) == [(STRANGER, "left")] and place.open().table_exists(NAME)
    assert not place.files.list(f"{CREATIONS_DIR}/{STRANGER}")


def test_undoing_by_a_record_that_a_stranger_put_there_drops_no_table(place: Place, victim: Table) -> None:
    plant(place, record_of(victim))
    creation = place.open().creation(STRANGER)
    assert creation is not None and not creation.is_made and not creation.undo()
    assert stays(place, victim)


def test_a_record_that_was_changed_drops_nothing(place: Place) -> None:
    """Whoever saw the record of a living job has its secret, and cannot make another record of it."""
    catalog = place.open()
    catalog.intend_creation("j1", NAME, commit_user="me").create_table(COLUMNS)[0].append(ROWS)
    (record,) = catalog._tools.creations.all()
    path = f"{CREATIONS_DIR}/j1/intent.json"
    genuine = json.loads(place.files.read(path))
    for changed in ({"commitUser": "me"}, {"kind": "stage"}, {"begunMillis": 1}, {"commitUser": None}, {"secret": "other"}):
        if all(genuine.get(key) == value for key, value in changed.items()):
            continue
        plant(place, {**{k: v for k, v in genuine.items() if k != CHECKSUM_KEY}, **changed}, folder="j1")
        assert swept(place) == [("j1", "failed")]
    assert table_uuid_of(Schemas(place.files.at("shop.db/orders")).latest()) == record.table_uuid


# ---- another's job


def test_a_record_in_another_folder_does_not_end_a_living_job(place: Place) -> None:
    catalog = place.open()
    staged = catalog.stage_table(NAME, COLUMNS, ["id"], job_id="living")
    staged.table.upsert(ROWS)
    genuine = json.loads(place.files.read(f"{CREATIONS_DIR}/living/intent.json"))
    plant(place, {**genuine, "begunMillis": 0}, sealed=False)
    place.files.write(f"{CREATIONS_DIR}/copy/intent.json", place.files.read(f"{CREATIONS_DIR}/living/intent.json"))
    place.clock.advance(7200)
    staged.renew()
    report = place.open().sweep_creations()
    assert [(one.job_id, one.outcome) for one in report.creations] == [("copy", "failed"), (STRANGER, "failed")]
    assert "'living'" in str(report)
    staged.publish()
    assert place.open().table(NAME).scan().count() == len(ROWS)


def test_what_strangers_left_keeps_nobody_from_creating_sweeping_and_releasing_holds(place: Place, victim: Table) -> None:
    RetentionLeases(victim.context.files).take(
        "materialized-0123", 1, owner="gone", ids=victim.context.ids, target=f"{place.files.root_uri}/shop.db/gone"
    )
    plant(place, {"jobId": STRANGER}, sealed=False)
    plant(place, record_of(None, jobId="another"), folder="other")
    place.files.overwrite(f"{CREATIONS_DIR}/large/intent.json", b'{"x": "' + b"x" * 10_000_000 + b'"}')
    dead = place.open().stage_table("shop.dead", COLUMNS, job_id="dead")
    assert swept(place) == [("dead", "removed"), ("large", "failed"), ("other", "failed"), (STRANGER, "failed")]
    catalog = place.open()
    assert catalog.creation_of(dead.name) is None
    assert [one.owner for one in catalog.release_dead_holds()] == ["gone"]
    assert stays(place, victim)


FORGED: dict[str, dict[str, object]] = {
    "up": {"table": "../shop.db/orders"},
    "up in one name": {"table": "shop.../orders"},
    "absolute": {"table": "/etc.passwd"},
    "no database": {"table": "orders"},
    "job up": {"jobId": "../../shop.db/orders"},
    "job empty": {"jobId": ""},
    "uuid of another kind": {"tableUuid": 7},
    "huge": {"begunMillis": 10**400},
    "ahead": {"begunMillis": 2**62},
    "a list": {"replacedSchemaId": [0]},
    "below zero": {"replacedSchemaId": -1, "kind": "replace"},
    "no such schema": {"replacedSchemaId": 2**40, "kind": "replace"},
    "true": {"begunMillis": True},
    "kind": {"kind": "drop"},
    "null": {"kind": None},
}


@pytest.mark.deep_after(20)
@pytest.mark.parametrize("name", FORGED)
def test_a_record_that_makes_no_sense_changes_nothing(place: Place, victim: Table, name: str) -> None:
    uuid = victim.context.table_uuid
    plant(place, record_of(victim, replacedUuid=uuid, **FORGED[name]))
    before = place.rest()
    assert [job for job, _ in swept(place)] == [STRANGER]
    assert stays(place, victim) and {path for path in before if path.startswith("shop.db")} <= place.rest()


@pytest.mark.deep_after(13)
@pytest.mark.parametrize("name", ["a.b", "-a", "a b", "ä", "x" * 200])
def test_a_folder_that_no_job_has_is_reported_and_left(place: Place, victim: Table, name: str) -> None:
    place.files.write(f"{CREATIONS_DIR}/{name}/intent.json", b"{}")
    assert swept(place) == [(name, "failed")]
    assert place.files.exists(f"{CREATIONS_DIR}/{name}/intent.json") and stays(place, victim)


# ---- another's definition, rows and log


def staged_copy(place: Place, victim: Table, *, uuid: str | None, schema_id: int) -> None:
    """What a stranger stages to look like the job that made the newest schema of the victim."""
    schema = replace(victim.refresh().context.schemas.latest(), id=schema_id)
    if uuid is not None:
        schema = replace(schema, options={**schema.options, TABLE_UUID_OPTION: uuid})
    place.files.write(f"{CREATIONS_DIR}/{STRANGER}/orders/schema/schema-{schema_id}", encode_schema(schema))


@pytest.mark.parametrize("proven", [False, True])
def test_an_alteration_is_not_taken_back_for_a_stranger(place: Place, victim: Table, proven: bool) -> None:
    victim.alter(AddColumn("more", "INT"))
    uuid = victim.context.table_uuid
    record = CreationRecord(
        job_id=STRANGER, kind="replace", table=NAME, table_uuid="", begun_millis=0, replaced_uuid=uuid, replaced_schema_id=0
    )
    if proven:
        record = marked(replace(record, secret="mine"))
    plant(place, record_of(victim, kind="replace", commitUser=None, replacedUuid=uuid, replacedSchemaId=0) | _texts(record))
    staged_copy(place, victim, uuid=None, schema_id=1)
    outcomes = swept(place)
    assert outcomes == [(STRANGER, "removed")] and not place.files.list(f"{CREATIONS_DIR}/{STRANGER}")
    table = place.open().table(NAME)
    assert isinstance(table, Table) and table.table_schema.id == 1 and "more" in table.schema.names


def _texts(record: CreationRecord) -> dict[str, object]:
    return {"tableUuid": record.table_uuid, "secret": record.secret} if record.secret else {}


def test_a_replacement_at_work_is_not_taken_back_for_a_stranger(place: Place, victim: Table) -> None:
    catalog = place.open()
    staged = catalog.stage_replacement(NAME, COLUMNS, ["id"], job_id="living")
    staged.table.upsert([{"id": 5, "v": "new"}])
    uuid = victim.context.table_uuid
    plant(place, record_of(victim, kind="replace", commitUser=None, replacedUuid=uuid, replacedSchemaId=0))
    real = staged._commit  # type: ignore[attr-defined]

    def commit(*arguments: object) -> object:
        staged_copy(place, victim, uuid=None, schema_id=1)
        place.clock.advance(7200)
        staged.renew()
        report = place.open().sweep_creations()
        assert [(one.job_id, one.outcome) for one in report.creations] == [(STRANGER, "removed")]
        return real(*arguments)

    staged._commit = commit  # type: ignore[attr-defined]
    staged.publish()
    assert place.open().table(NAME).scan().to_arrow().to_pylist() == [{"id": 5, "v": "new"}]


def test_files_of_another_table_are_not_removed_because_a_stranger_staged_their_names(place: Place, victim: Table) -> None:
    """Of a record with a mark of its own: the victim is not the table that it marks, and what is in use is never removed."""
    uuid = victim.context.table_uuid
    record = marked(
        CreationRecord(
            job_id=STRANGER,
            kind="replace",
            table=NAME,
            table_uuid="",
            begun_millis=0,
            replaced_uuid=uuid,
            replaced_schema_id=0,
            secret="mine",
        )
    )
    plant(place, record_of(victim, kind="replace", commitUser=None, replacedUuid=uuid, replacedSchemaId=0) | _texts(record))
    for path in place.rest():
        if path.startswith("shop.db/orders/"):
            copy = f"{CREATIONS_DIR}/{STRANGER}/orders/{path.removeprefix('shop.db/orders/')}"
            place.files.overwrite(copy, place.files.read(path))
    before = place.rest()
    assert swept(place) == [(STRANGER, "removed")]
    assert stays(place, victim) and place.rest() == {path for path in before if path.startswith("shop.db")}


@pytest.mark.parametrize("proven", [False, True])
def test_the_log_of_another_table_is_not_removed_for_a_stranger(place: Place, proven: bool) -> None:
    with broker_of(f"s-{place.files.root_uri}") as broker:
        catalog = place.open()
        victim = catalog.create_table(NAME, COLUMNS, ["id"], options={"bucket": "1", "log.kafka.bootstrap.servers": broker.address})
        victim.upsert(ROWS)
        uuid = victim.context.table_uuid
        record = CreationRecord(job_id=STRANGER, kind="stage", table="shop.free", table_uuid=str(uuid), begun_millis=0)
        if proven:
            record = marked(replace(record, secret="mine"))
        plant(place, record_of(None, kind="stage", table="shop.free", tableUuid=uuid, commitUser=None) | _texts(record))
        place.files.write(f"{CREATIONS_DIR}/{STRANGER}/publishing.json", b'{"log": "made"}')
        schema = victim.context.schemas.latest()
        place.files.write(f"{CREATIONS_DIR}/{STRANGER}/free/schema/schema-0", encode_schema(schema))
        root = place.files.root_uri
        owner = {"table": uuid, "location": f"{root}/shop.db/free", "log": "", "former": [f"{root}/shop.db/orders"]}
        place.files.write(f"{CREATIONS_DIR}/{STRANGER}/free/tablestore-log/owner.json", json.dumps(owner).encode())
        assert swept(place) == [(STRANGER, "removed")]
        assert broker.rows(NAME) == ROWS
        _check_goes_on(victim, broker)


def _check_goes_on(victim: Table, broker: MemoryBroker) -> None:
    victim.upsert([{"id": 9, "v": "more"}])
    assert broker.rows(NAME)[-1] == {"id": 9, "v": "more"}


# ---- links in a warehouse of this machine


def test_a_folder_of_a_job_that_is_a_link_does_not_lead_to_a_table(tmp_path: Path) -> None:
    place = Place("local", tmp_path)
    victim = place.open().create_table(NAME, COLUMNS, ["id"])
    victim.upsert(ROWS)
    root = Path(place.files.root_uri)
    (root / CREATIONS_DIR).mkdir()
    (root / CREATIONS_DIR / "link").symlink_to(root / "shop.db" / "orders")
    (root / CREATIONS_DIR / "relative").symlink_to("../shop.db/orders")
    plant(place, record_of(None, kind="stage", table="shop.staged", commitUser=None))
    (root / CREATIONS_DIR / STRANGER / "staged").symlink_to(root / "shop.db" / "orders")
    (root / CREATIONS_DIR / STRANGER / ".swept").symlink_to(root / "shop.db" / "orders")
    report = place.open().sweep_creations(timedelta(days=-20_000))
    assert {(one.job_id, one.outcome) for one in report.creations} >= {("link", "failed"), ("relative", "failed")}
    assert stays(place, victim)


def test_a_table_that_is_a_link_to_another_is_dropped_without_it(tmp_path: Path) -> None:
    place = Place("local", tmp_path)
    victim = place.open().create_table(NAME, COLUMNS, ["id"])
    victim.upsert(ROWS)
    os.symlink(f"{place.files.root_uri}/shop.db/orders", f"{place.files.root_uri}/shop.db/alias")
    with pytest.raises(InvalidInputError, match="symbolic link"):
        place.open().drop_table("shop.alias")
    assert stays(place, victim) and not place.open().table_exists("shop.alias")


# ---- earlier releases


def before_marks(catalog: Catalog, place: Place, job_id: str) -> CreationRecord:
    """Turn a record into what releases before marks wrote: its keys without the secret. The job is dead."""
    record = catalog._tools.creations.find(job_id)
    assert record is not None
    content = json.loads(place.files.read(f"{CREATIONS_DIR}/{job_id}/intent.json"))
    plant(place, {key: value for key, value in content.items() if key not in (CHECKSUM_KEY, "secret")}, folder=job_id)
    return record


def test_a_record_of_an_earlier_release_is_read_as_it_was_written(place: Place) -> None:
    """The bytes that 0.1 wrote."""
    data = (
        b'{"jobId":"6fa1","kind":"create","table":"shop.orders","tableUuid":"0b2e","begunMillis":1,"commitUser":"6fa1",'
        b'"tablestore.checksum":"%s"}'
    )
    named = {"jobId": "6fa1", "kind": "create", "table": "shop.orders", "tableUuid": "0b2e"}
    content = {**named, "begunMillis": 1, "commitUser": "6fa1"}
    place.files.write(f"{CREATIONS_DIR}/6fa1/intent.json", data % object_checksum(content).encode())
    assert swept(place) == [("6fa1", "removed")] and not place.files.list(CREATIONS_DIR)


@pytest.mark.parametrize("published", [False, True])
def test_a_staged_table_of_an_earlier_release_is_swept(place: Place, published: bool) -> None:
    catalog = place.open()
    staged = catalog.stage_table(NAME, COLUMNS, ["id"], job_id="old")
    staged.table.upsert(ROWS)
    before_marks(catalog, place, "old")
    if published:
        record = place.files.read(f"{CREATIONS_DIR}/old/intent.json")
        catalog._meta.publish_table(staged._record.identifier, staged._record.staged_directory)
        place.files.overwrite(f"{CREATIONS_DIR}/old/intent.json", record)
    assert swept(place) == [("old", "finished" if published else "removed")]
    assert place.open().table_exists(NAME) == published and not place.files.list(CREATIONS_DIR)


def test_a_visible_table_of_an_earlier_release_stays_and_is_named(place: Place) -> None:
    catalog = place.open()
    catalog.intend_creation("old", NAME, commit_user="old").create_table(COLUMNS)
    before_marks(catalog, place, "old")
    place.clock.advance(7200)
    report = place.open().sweep_creations()
    assert [one.outcome for one in report.creations] == ["left"] and NAME in str(report)
    assert place.open().table_exists(NAME) and not place.files.list(CREATIONS_DIR)


@pytest.mark.parametrize("at_work", ["staged", "published"])
def test_a_replacement_of_an_earlier_release_is_undone(place: Place, victim: Table, at_work: str) -> None:
    catalog = place.open()
    staged = catalog.stage_replacement(NAME, COLUMNS.append(pa.field("more", pa.int32())), ["id"], job_id="old")
    staged.table.upsert([{"id": 7, "v": "new", "more": 1}])
    if at_work == "published":

        def dies(*_: object) -> None:
            raise SimulatedCrash("before the snapshot")

        staged._commit = dies  # type: ignore[attr-defined]
        with pytest.raises(SimulatedCrash):
            staged._give_name()
        path = "shop.db/orders/schema/schema-1"
        schema = Schemas(place.files.at("shop.db/orders")).read(1)
        unmarked = {key: value for key, value in schema.options.items() if key != "tablestore.replaced-by"}
        place.files.overwrite(path, encode_schema(replace(schema, options=unmarked)))
    before_marks(catalog, place, "old")
    assert swept(place) == [("old", "removed")]
    assert stays(place, victim) and not place.files.list(CREATIONS_DIR)
    place.open().table(NAME).upsert([{"id": 8, "v": "x"}])  # type: ignore[union-attr]


def test_a_sweeper_does_not_go_on_where_the_record_is_exchanged_meanwhile(place: Place, victim: Table) -> None:
    """What was read is what counts: the record that comes between the look and the removal is another job's, or a later sweep's."""
    catalog = place.open()
    catalog.intend_creation("j1", "shop.mine", commit_user="me").create_table(COLUMNS)
    creations = catalog._tools.creations
    record = creations.find("j1")
    assert record is not None
    plant(place, record_of(victim, jobId="j1"), folder="j1")
    with pytest.raises(ConflictError):
        creations.check_is_wanted(record)
    assert swept(place) == [("j1", "left")]
    assert stays(place, victim) and catalog.table_exists("shop.mine")


# ---- paths in options


@pytest.mark.deep_after(8)
@pytest.mark.parametrize("key", ["path", "data-file.path-directory", "data-file.external-paths", "data-file.prefix"])
def test_a_table_whose_options_name_the_place_of_another_is_dropped_without_it(place: Place, victim: Table, key: str) -> None:
    catalog = place.open()
    catalog.create_table("shop.alias", COLUMNS, ["id"])
    schema = Schemas(place.files.at("shop.db/alias")).latest()
    for value in (victim.location, "../orders", "/", ".."):
        named = replace(schema, options={**schema.options, key: value})
        place.files.overwrite("shop.db/alias/schema/schema-0", encode_schema(named))
        with suppress(TablestoreError):
            table = place.open().table("shop.alias")
            assert isinstance(table, Table)
            table.upsert(ROWS)
            table.remove_orphan_files(0, dry_run=False)
        assert stays(place, victim)
    place.open().drop_table("shop.alias")
    assert stays(place, victim) and place.open().list_tables("shop") == ("orders",)
