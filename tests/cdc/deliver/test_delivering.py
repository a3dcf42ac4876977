"""Changes of a table are in another one, or in files, once, whenever the delivery dies."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tablestore as ts
from tablestore.cdc.deliver.filesink import FileSink
from tablestore.cdc.deliver.tablesink import TableSink
from tablestore.io.local import LocalFileStore
from tests.support.commandline import run_command

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


class Died(Exception):
    """The process ends here."""


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    made = ts.open_catalog(str(tmp_path / "wh"))
    made.create_database("shop")
    return made


def keyed(catalog: ts.Catalog, name: str, **options: str) -> ts.Table:
    return catalog.create_table(name, schema=SCHEMA, primary_key=["id"], options={"bucket": "2", **options})


def rows(*ids: int, v: str = "a") -> list[dict[str, Any]]:
    return [{"id": id, "v": v} for id in ids]


def content(table: ts.Table) -> list[tuple[int, str]]:
    return sorted((row["id"], row["v"]) for row in table.refresh().scan().to_arrow().to_pylist())


def fold(changes: list[dict[str, Any]]) -> list[tuple[int, str]]:
    """The rows that changes add up to; each must fit what is there."""
    state: dict[int, str] = {}
    for change in changes:
        if change["_row_kind"] in ("+I", "+U"):
            assert change["id"] not in state, "a row came twice"
            state[change["id"]] = change["v"]
        else:
            assert state.pop(change["id"]) == change["v"]
    return sorted(state.items())


def test_another_table_follows_also_when_its_snapshots_have_expired(catalog: ts.Catalog) -> None:
    source, target = keyed(catalog, "shop.s"), keyed(catalog, "shop.t", **{"changelog-producer": "input"})
    source.upsert(rows(1, 2, 3))
    first = ts.deliver(source, target)
    assert (first.rows, first.commits) == (3, 1) and content(target) == content(source)
    for step in range(4):
        source.upsert(rows(2, 10 + step, v=f"s{step}"))
        source.delete("id = 1")
        ts.deliver(source, target)
        target.upsert(rows(99))
        target.expire_snapshots(retain_max=1, retain_min=1, older_than=None)
    assert content(target) == sorted([*content(source), (99, "a")])
    assert ts.deliver(source, target) == ts.DeliveryReport(snapshot_id=None)


@pytest.mark.parametrize("die_at", range(1, 6))
def test_a_delivery_that_dies_between_two_commits_goes_on_where_it_was(
    die_at: int, catalog: ts.Catalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source, folder = keyed(catalog, "shop.s"), tmp_path / "out"
    target = catalog.create_table("shop.t", schema=SCHEMA, options={"bucket": "-1"})
    for step in range(5):
        source.upsert(rows(10 * step, 10 * step + 1))
    for to in (target, str(folder)):
        seen: list[int] = []

        def die(report: ts.DeliveryReport, seen: list[int] = seen) -> None:
            seen.append(report.rows)
            if len(seen) == die_at:
                raise Died

        with pytest.raises(Died):
            ts.deliver(source, to, commit_rows=2, on_commit=die)
        ts.deliver(source, to, commit_rows=3)
    assert content(target) == content(source)
    written = [json.loads(line) for part in sorted(folder.glob("part-*")) for line in part.read_text().splitlines()]
    assert fold(written) == content(source)


def test_a_file_whose_position_was_written_and_that_was_not_is_written_again(
    catalog: ts.Catalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source, folder = keyed(catalog, "shop.s"), tmp_path / "out"
    source.upsert(rows(1))
    ts.deliver(source, str(folder), format="parquet")
    source.upsert(rows(1, 2, v="b"))
    publish = LocalFileStore.publish_if_absent

    def die(self: LocalFileStore, path: str, data: bytes) -> bool:
        if path.startswith("part-"):
            raise Died
        return publish(self, path, data)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileStore, "publish_if_absent", die)
        with pytest.raises(Died):
            ts.deliver(source, str(folder), format="parquet")
    source.delete("id = 1")
    ts.deliver(source, str(folder), format="parquet")
    ts.deliver(source, str(folder), format="parquet")
    parts = sorted(folder.glob("part-*.parquet"))
    assert len(parts) == 2
    assert fold([row for part in parts for row in pq.read_table(part).to_pylist()]) == [(2, "b")]


def test_of_two_deliveries_of_one_name_the_slower_is_fenced(catalog: ts.Catalog, tmp_path: Path) -> None:
    source, target = keyed(catalog, "shop.s"), keyed(catalog, "shop.t")
    source.upsert(rows(1))
    batch = next(iter(source.consume(follow=False)))
    ids = source.context.ids
    for make in (lambda: TableSink(target, "n"), lambda: FileSink(LocalFileStore(str(tmp_path / "out")), "json", ids)):
        one, other = make(), make()
        for sink in (one, other):
            assert sink.position() is None
            sink.write(batch.rows)
        one.commit("here")
        with pytest.raises(ts.ConflictError) as error:
            other.commit("here")
        assert error.value.kind == "fenced"
        other.close()
        assert make().position() == "here"


def test_a_table_is_not_delivered_to_itself_but_its_branches_are(catalog: ts.Catalog) -> None:
    table = catalog.create_table("shop.p", schema=SCHEMA)
    table.append(rows(1, 2))
    with pytest.raises(ts.InvalidInputError, match="cannot go into itself"):
        ts.deliver(table, catalog.table("shop.p"))
    assert content(table) == [(1, "a"), (2, "a")]
    table.create_branch("b")
    branch = catalog.table("shop.p$branch_b")
    branch.append(rows(3))
    assert ts.deliver(branch, table, scan="latest").rows == 0


def test_the_latest_is_where_the_first_delivery_began(catalog: ts.Catalog, tmp_path: Path) -> None:
    source, target = keyed(catalog, "shop.s"), keyed(catalog, "shop.t")
    source.upsert(rows(1))
    for to in (target, str(tmp_path / "out")):
        assert ts.deliver(source, to, scan="latest").rows == 0
    source.upsert(rows(2))
    for to in (target, str(tmp_path / "out")):
        assert ts.deliver(source, to, scan="latest", consumer_id="out").rows == 1
    assert content(target) == [(2, "a")]
    source.upsert(rows(3))
    source.expire_snapshots(retain_max=1, retain_min=1)
    assert ts.deliver(source, target, consumer_id="out").rows == 1


def test_the_command_line_delivers(catalog: ts.Catalog, tmp_path: Path) -> None:
    source, target = keyed(catalog, "shop.s"), keyed(catalog, "shop.t")
    append = catalog.create_table("shop.a", schema=SCHEMA, options={"bucket": "-1"})
    source.upsert(rows(1, 2))
    ran = run_command("consume", "shop.s", "--to", "shop.t", "-w", tmp_path / "wh", "--json")
    assert ran.rows[-1]["rows"] == 2 and content(target) == content(source)
    run_command("consume", source.location, "--to-files", tmp_path / "out", "--filter", "id = 1")
    assert [json.loads(line)["id"] for part in (tmp_path / "out").glob("part*") for line in part.read_text().splitlines()] == [1]
    twice = ("consume", "shop.s", "--to", "shop.t", "--name", "again", "-w", tmp_path / "wh", "--json")
    assert [run_command(*twice).rows[-1]["rows"] for _ in range(2)] == [2, 0]
    run_command("consume", "shop.s", "--name", "again", "-w", tmp_path / "wh", code=2)
    run_command("consume", "shop.s", "--to", "shop.t", "--from-snapshot", "1", "-w", tmp_path / "wh", code=2)
    run_command("consume", "shop.s", "--to", "shop.t", "--format", "csv", "-w", tmp_path / "wh", code=2)
    ts.deliver(source, append)
    source.upsert(rows(1, v="b"))
    with pytest.raises(ts.InvalidInputError, match="primary key"):
        ts.deliver(source, append)
