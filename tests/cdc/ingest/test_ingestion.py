"""A topic goes into a table once, whatever happens to the table, the topic and the process in between."""

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.cdc.ingest.ingesting import run_ingest
from tablestore.cdc.ingest.ingestion import Ingestion
from tablestore.cdc.ingest.ingestrequest import IngestRequest
from tests.support.changelogs.memorytopic import MemoryTopic, Record

SCHEMA = pa.schema([pa.field("id", pa.int32(), nullable=False), ("n", pa.int16()), ("s", pa.string())])


class Died(Exception):
    """The process ends here."""


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    made = ts.open_catalog(str(tmp_path / "wh"))
    made.create_database("shop")
    return made


@pytest.fixture
def table(catalog: ts.Catalog) -> ts.Table:
    return catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options={"bucket": "1"})


def row(**values: Any) -> Record:
    return None, json.dumps(values).encode()


def request(**given: Any) -> IngestRequest:
    return IngestRequest(**{"name": "job", "format": "json", **given})


def ids(table: ts.Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow().column("id").to_pylist())


def test_positions_survive_snapshots_that_expire_and_commits_of_others(table: ts.Table) -> None:
    topic = MemoryTopic(partitions=2)
    for step in range(5):
        topic.partitions[step % 2].append(row(id=step))
        assert run_ingest(table, topic, request()).records == 1
        for _ in range(3):
            table.upsert([{"id": 100, "n": step, "s": None}])
        table.expire_snapshots(retain_max=1, retain_min=1)
    assert run_ingest(table, topic, request()) == ts.IngestReport()
    assert ids(table) == [0, 1, 2, 3, 4, 100]


@pytest.mark.deep_after(3)
@pytest.mark.parametrize("die_at", range(1, 7))
def test_a_run_that_dies_behind_any_commit_is_continued(die_at: int, catalog: ts.Catalog) -> None:
    table = catalog.create_table("shop.a", schema=SCHEMA, options={"bucket": "-1"})
    letters, topic = ts.dead_letter_table(catalog, "shop.dead"), MemoryTopic(partitions=3)
    for number in range(30):
        topic.partitions[number % 3].append(row(id=number) if number % 7 else (None, b"bad%d" % number))
    seen: list[int] = []

    def die(commit: ts.IngestCommit) -> None:
        seen.append(commit.records)
        if len(seen) == die_at:
            raise Died

    small = request(commit_records=4, on_error="dead-letter")
    with pytest.raises(Died):
        run_ingest(table, topic, small, letters, on_commit=die)
    run_ingest(table, topic, small, letters)
    assert ids(table) == [number for number in range(30) if number % 7]
    dead = letters.refresh().scan().to_arrow().to_pylist()
    assert sorted(int(one["value"][3:]) for one in dead) == [0, 7, 14, 21, 28]


def test_dead_letters_of_a_commit_that_failed_are_not_doubled(
    catalog: ts.Catalog, table: ts.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters, topic = ts.dead_letter_table(catalog, "shop.dead"), MemoryTopic()
    topic.partitions[0] += [row(id=1), (b"k", b""), row(id=2)]

    def die(*_: Any) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(Ingestion, "_commit", die)
        with pytest.raises(Died):
            run_ingest(table, topic, request(on_error="dead-letter"), letters)
    assert letters.refresh().scan().count() == 1 and ids(table) == []
    assert run_ingest(table, topic, request(on_error="dead-letter"), letters).bad_records == 1
    assert [(one["offset"], one["key"], one["value"]) for one in letters.refresh().scan().to_arrow().to_pylist()] == [
        (1, b"k", b"")
    ]
    with pytest.raises(ts.InvalidInputError, match="takes no dead letters"):
        run_ingest(table, topic, request(on_error="dead-letter"), table)
    with pytest.raises(ts.InvalidInputError, match="needs a table"):
        run_ingest(table, topic, request(on_error="dead-letter"))


def test_a_table_that_is_altered_between_commits_gets_the_new_columns(table: ts.Table) -> None:
    topic = MemoryTopic()
    topic.partitions[0] += [row(id=number, extra=str(number)) for number in range(9)]

    def alter(commit: ts.IngestCommit) -> None:
        if commit.offsets[0] == 3:
            ts.open_table(table.location).alter(ts.AddColumn("extra", "STRING"))

    run_ingest(table, topic, request(commit_records=3), on_commit=alter)
    found = {one["id"]: one["extra"] for one in table.refresh().scan().to_arrow().to_pylist()}
    assert found == {number: str(number) if number >= 3 else None for number in range(9)}


def test_a_table_follows_the_columns_of_its_records_if_asked_to(table: ts.Table) -> None:
    topic = MemoryTopic()
    topic.partitions[0] += [
        row(id=1, n=7, s="a"),
        row(id=2, n=70_000, paid=True, at="2024-01-01 00:00:00", nothing=None),
        row(id=3, n=1, price=1.5, more={"x": [1]}),
        row(id=2**40, n=1),
        row(id=4, n="x", price=2),
        row(id=5, price="cheap"),
    ]
    plain = run_ingest(table, topic, request(on_error="skip", name="plain"))
    assert (plain.rows, plain.bad_records) == (3, 3) and table.refresh().schema.names == SCHEMA.names
    report = run_ingest(table, topic, request(on_error="skip", evolve=True))
    assert (report.records, report.bad_records) == (6, 3)
    types = {field.name: str(field.type) for field in table.refresh().schema}
    assert types == {
        "id": "int32",
        "n": "int64",
        "s": "string",
        "at": "string",
        "more": "string",
        "paid": "bool",
        "price": "double",
    }
    found = {one["id"]: one for one in table.scan().to_arrow().to_pylist()}
    assert (found[2]["n"], found[2]["at"], found[1]["paid"]) == (70_000, "2024-01-01 00:00:00", None)
    assert (found[3]["price"], found[3]["more"]) == (1.5, '{"x":[1]}')


@pytest.mark.parametrize("rest", [[], [b"no JSON"]], ids=["together", "one by one"])
@pytest.mark.parametrize(
    ("numbers", "kind", "stored"),
    [
        (["9007199254740993", "7"], "int64", [2**53 + 1, 7]),
        (["9007199254740992", "1.5"], "double", [2.0**53, 1.5]),
        (["9007199254740993", "1.5"], "string", ["9007199254740993", "1.5"]),
        (["1.50", "12345678901234567890", "null"], "string", ["1.50", "12345678901234567890", None]),
        (["12345678901234567890", "7"], "decimal128(38, 0)", [Decimal(12345678901234567890), Decimal(7)]),
        (["-12345678901234567890"], "decimal128(38, 0)", [Decimal(-12345678901234567890)]),
        (["1" * 39, "7"], "string", ["1" * 39, "7"]),
    ],
)
def test_a_new_column_holds_every_whole_number_as_it_is(
    table: ts.Table, numbers: list[str], kind: str, stored: list[Any], rest: list[bytes]
) -> None:
    topic = MemoryTopic()
    topic.partitions[0] += [(None, f'{{"id":{number},"new":{text}}}'.encode()) for number, text in enumerate(numbers)]
    topic.partitions[0] += [(None, text) for text in rest]
    run_ingest(table, topic, request(on_error="skip", evolve=True))
    found = table.refresh().scan(columns=["id", "new"]).to_arrow().sort_by("id")
    assert (str(found.schema.field("new").type), found["new"].to_pylist()) == (kind, stored)


def test_a_whole_number_that_a_column_would_change_widens_it_or_is_a_dead_letter(catalog: ts.Catalog) -> None:
    table, letters = catalog.create_table("shop.n", "id INT, b BIGINT, d DOUBLE"), ts.dead_letter_table(catalog, "shop.dead")
    topic = MemoryTopic()
    topic.partitions[0] += [row(id=1, b=7, d=1.5), row(id=2, b=12345678901234567890), row(id=3, d=2**53 + 1)]
    assert run_ingest(table, topic, request(on_error="dead-letter", evolve=True), letters).bad_records == 1
    rows = table.refresh().scan().to_arrow().sort_by("id").to_pylist()
    assert [(one["b"], one["d"]) for one in rows] == [(Decimal(7), 1.5), (Decimal(12345678901234567890), None)]
    (letter,) = letters.refresh().scan().to_arrow().to_pylist()
    assert "9007199254740993 would become 9007199254740992.0" in letter["reason"]


def test_a_record_that_goes_to_the_dead_letters_changes_no_table(catalog: ts.Catalog, table: ts.Table) -> None:
    topic, letters = MemoryTopic(), ts.dead_letter_table(catalog, "shop.dead")
    topic.partitions[0] += [
        row(id="x", lost=1),
        row(id=1, n="x", lost=1),
        row(lost=1),
        row(id=2**40, n=70_000, lost=1),
        (b"no key", b"no JSON"),
        row(id=2, n=3),
    ]
    report = run_ingest(table, topic, request(on_error="dead-letter", evolve=True), letters)
    assert (report.rows, report.bad_records) == (1, 5)
    assert table.refresh().schema.equals(SCHEMA)
    topic.partitions[0] += [row(id=3, n=70_000, kept=1), row(id=2**40, kept=2, lost=3)]
    assert run_ingest(table, topic, request(on_error="dead-letter", evolve=True), letters).bad_records == 1
    assert {field.name: str(field.type) for field in table.refresh().schema} == {
        "id": "int32",
        "n": "int64",
        "s": "string",
        "kept": "int64",
    }


@pytest.mark.parametrize("name", ["_KEY_id", "_row_kind", "_VALUE_KIND", "", " "])
def test_a_field_that_no_column_can_hold_is_a_dead_letter_and_not_dropped(name: str, catalog: ts.Catalog, table: ts.Table) -> None:
    topic, letters = MemoryTopic(), ts.dead_letter_table(catalog, "shop.dead")
    topic.partitions[0] += [row(**{"id": 1, name: 7}), row(**{"id": 2, name: None}), row(id=3)]
    report = run_ingest(table, topic, request(on_error="dead-letter", evolve=True), letters)
    assert (report.bad_records, ids(table)) == (1, [2, 3])
    (letter,) = letters.refresh().scan().to_arrow().to_pylist()
    assert f"field {name!r} cannot become a column" in letter["reason"]


@pytest.mark.parametrize("key", [["d"], None], ids=["key", "partition"])
def test_a_row_at_a_date_that_metadata_cannot_hold_is_a_dead_letter(key: list[str] | None, catalog: ts.Catalog) -> None:
    schema = pa.schema([pa.field("d", pa.date32(), nullable=False), ("at", pa.timestamp("us"))])
    how: dict[str, Any] = {"primary_key": key} if key else {"partition_by": ["d"]}
    table = catalog.create_table("shop.days", schema=schema, options={"bucket": "1" if key else "-1"}, **how)
    topic, letters = MemoryTopic(), ts.dead_letter_table(catalog, "shop.dead")
    far = 9 * 10**18
    topic.partitions[0] += [row(d=day, at=far) for day in (-719_163, -719_162, 0, 2_932_896, 2_932_897, 2**31 - 1)]
    report = run_ingest(table, topic, request(on_error="dead-letter"), letters)
    assert report.bad_records == 3
    found = table.refresh().scan().to_arrow()
    assert sorted(found.column("d").cast(pa.int32()).to_pylist()) == [-719_162, 0, 2_932_896]
    assert found.column("at").cast(pa.int64()).to_pylist() == [far] * 3


def test_other_topics_and_lost_offsets_are_refused_until_a_reset(table: ts.Table) -> None:
    topic = MemoryTopic()
    topic.partitions[0] += [row(id=1), row(id=2)]
    run_ingest(table, topic, request())
    again = MemoryTopic(id="id-2")
    again.partitions[0] += [row(id=7), row(id=8), row(id=9)]
    with pytest.raises(ts.InvalidInputError, match="another topic of that name"):
        run_ingest(table, again, request())
    topic.partitions[0] += [row(id=3), row(id=4)]
    topic.first = [3]
    with pytest.raises(ts.NotFoundError, match="offset 2 of partition 0, and the topic has 3 to 4") as error:
        run_ingest(table, topic, request())
    assert error.value.kind == "position-lost"
    assert run_ingest(table, topic, request(reset=True)).rows == 1
    assert run_ingest(table, again, request(reset=True, start="latest")).records == 0
    again.partitions[0].append(row(id=10))
    # A partition that was added is read from its beginning.
    again.partitions.append([row(id=11)])
    again.first.append(0)
    assert run_ingest(table, again, request()).records == 2
    assert ids(table) == [1, 2, 4, 10, 11]


def test_a_topic_that_gives_nothing_more_ends_the_ingest_with_an_error(table: ts.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = MemoryTopic()
    topic.partitions[0] += [row(id=1)]
    bounds = topic.bounds()
    monkeypatch.setattr("tablestore.cdc.ingest.ingestion._IDLE_S", 0.0)

    class Stuck(MemoryTopic):
        def bounds(self) -> Mapping[int, tuple[int, int]]:
            if run_over:
                raise ts.StorageError("no answer")
            return {0: (0, bounds[0][1] + 1)}

    stuck, run_over = Stuck(), list[int]()
    stuck.partitions = topic.partitions
    with pytest.raises(ts.StorageError, match="offset, 0: 1 of 2") as error:
        run_ingest(table, stuck, request(commit_every_s=0.01), on_commit=lambda commit: run_over.append(commit.records))
    assert error.value.kind == "topic-stuck" and ids(table) == [1] and run_over == [1]


@pytest.mark.parametrize(
    "given", [{"format": "xml"}, {"start": "now"}, {"on_error": "cry"}, {"name": ""}, {"commit_records": 0}, {"commit_every_s": 0}]
)
def test_wrong_requests_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ts.InvalidInputError, match="expected"):
        request(**given)


def test_a_time_between_commits_that_is_no_time_is_refused(table: ts.Table) -> None:
    seconds: Any = 0.3
    with pytest.raises(ts.InvalidInputError, match=r"expected commit_every as a timedelta or in milliseconds from 0, found 0\.3"):
        ts.ingest(table, "topic", servers="nowhere:1", commit_every=seconds)


def test_a_table_with_kinds_of_its_own_takes_no_changes(catalog: ts.Catalog) -> None:
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), pa.field("k", pa.string(), nullable=False)])
    table = catalog.create_table("shop.k", schema=schema, primary_key=["id"], options={"bucket": "1", "rowkind.field": "k"})
    with pytest.raises(ts.InvalidInputError, match="takes the kind of a row"):
        run_ingest(table, MemoryTopic(), request(format="debezium-json"))
