"""The check of a table: a whole one passes, and each kind of damage is found, named, and never raised."""

import os
import random
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.format import bucket, rowwords
from tablestore.format.rowwords import array_values
from tablestore.io.wrapped import WrappedFileStore
from tablestore.store.context import open_context
from tablestore.table.inspect.check import check_table
from tablestore.table.inspect.findings import Finding
from tablestore.table.upkeep.expiry import clean

GOLDEN = Path(__file__).parents[2] / "golden" / "paimon"


@pytest.fixture
def table(tmp_path: Path) -> ts.Table:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("d")
    schema = pa.schema([("k", pa.int64()), ("v", pa.string())])
    table = catalog.create_table("d.t", schema=schema, primary_key=["k"], options={"write-only": "true"})
    for start in (0, 5, 10):
        table.upsert(pa.table({"k": list(range(start, start + 10)), "v": ["x" * 50] * 10}))
    return table


def check(table: ts.Table, *, deep: bool = False) -> tuple[Finding, ...]:
    # A context of its own: one that has read a manifest does not read it again.
    return check_table(open_context(table.context.files, schema=table.table_schema), deep=deep)


def files(table: ts.Table, pattern: str) -> list[Path]:
    return sorted(Path(table.location).glob(pattern))


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("deep", [False, True])
def test_a_whole_table_has_no_findings(table: ts.Table, deep: bool) -> None:
    assert check(table, deep=deep) == ()


def test_an_empty_table_has_no_findings(table: ts.Table) -> None:
    empty = ts.open_catalog(str(Path(table.location).parent.parent)).create_table("d.e", schema=table.schema)
    assert check(empty) == ()


def test_a_missing_data_file_is_found_with_who_needs_it(table: ts.Table) -> None:
    gone = table.files()["file_path"].to_pylist()[0]
    Path(table.location, gone).unlink()
    (finding,) = check(table)
    assert (finding.severity, finding.kind, finding.subject) == ("problem", "file-missing", gone)
    assert "snapshot" in finding.message
    assert finding.fix


def test_a_shortened_data_file_is_found_by_its_size(table: ts.Table) -> None:
    path = files(table, "bucket-0/*.parquet")[0]
    path.write_bytes(path.read_bytes()[:-1])
    assert [finding.kind for finding in check(table)] == ["file-size"]


def test_a_flipped_bit_in_a_data_file_is_found_by_the_deep_check(table: ts.Table) -> None:
    damage(files(table, "bucket-0/*.parquet")[0])
    assert check(table) == ()
    (finding,) = check(table, deep=True)
    assert (finding.severity, finding.kind) == ("problem", "data")


def test_the_deep_check_reads_what_only_older_snapshots_and_changelogs_need(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("d")
    schema = pa.schema([("k", pa.int64()), ("v", pa.string())])
    table = catalog.create_table("d.t", schema=schema, primary_key=["k"], options={"changelog-producer": "input"})
    for value in ("a", "b"):
        table.upsert(pa.table({"k": list(range(100)), "v": [value * 100] * 100}))
    table.compact(full=True)
    live = {path.rpartition("/")[2] for path in table.files()["file_path"].to_pylist()}
    others = [path for path in files(table, "bucket-0/*.parquet") if path.name not in live]
    assert {path.name.split("-")[0] for path in others} == {"data", "changelog"}
    assert check(table, deep=True) == ()
    for path in others:
        damage(path)
    assert {finding.subject.rpartition("/")[2] for finding in check(table, deep=True)} == {path.name for path in others}


@pytest.mark.deep
def test_a_flipped_bit_of_data_and_changelog_files_is_found_by_the_deep_check_unless_no_reader_looks_at_it(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("d")
    options = {"changelog-producer": "input", "data-file.thin-mode": "false", "write-only": "true"}
    schema = pa.schema([("k", pa.int64()), ("v", pa.string()), ("n", pa.int32())])
    table = catalog.create_table("d.t", schema=schema, primary_key=["k"], options=options)
    for start in (0, 150):
        rows = range(start, start + 300)
        table.upsert(pa.table({"k": rows, "v": [f"v{i}" for i in rows], "n": [i if i % 3 else None for i in rows]}, schema=schema))
    sound, changes = table.scan().to_arrow(), table.changes(0).to_arrow()
    chance = random.Random(20269)
    paths = files(table, "bucket-0/*.parquet")
    assert {path.name.split("-")[0] for path in paths} == {"data", "changelog"}
    found = 0
    for number in range(120):
        path = paths[number % len(paths)]
        data = path.read_bytes()
        bit = chance.randrange(len(data) * 8)
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(damaged))
        findings = check(table, deep=True)
        if findings:
            assert [(one.kind, one.subject.rpartition("/")[2]) for one in findings] == [("data", path.name)]
            found += 1
        else:
            other = ts.open_table(table.location)
            assert (other.scan().to_arrow(), other.changes(0).to_arrow()) == (sound, changes), f"bit {bit} of {path.name}"
        path.write_bytes(data)
    assert found > 100, "what is not found lies in the statistics of page headers"
    assert check(table, deep=True) == ()


@pytest.mark.parametrize(
    ("pattern", "kind"),
    [
        ("manifest/manifest-[0-9a-f]*", "metadata"),
        ("manifest/manifest-list-*", "metadata"),
        ("snapshot/snapshot-2", "snapshot"),
        ("schema/schema-0", "schema"),
    ],
)
@pytest.mark.parametrize("gone", [False, True], ids=["damaged", "gone"])
def test_damage_to_metadata_is_found_once_per_file(table: ts.Table, pattern: str, kind: str, gone: bool) -> None:
    path = files(table, pattern)[0]
    damage(path) if not gone else path.unlink()
    findings = check(table)
    assert findings
    if gone and kind == "snapshot":
        assert [(finding.kind, finding.severity) for finding in findings] == [("snapshot-missing", "problem")]
        return
    assert kind in {finding.kind for finding in findings}
    assert len({(finding.kind, finding.subject) for finding in findings}) == len(findings)


@pytest.mark.parametrize(
    ("lost", "subject"), [((1,), "snapshot 1"), ((2,), "snapshot 2"), ((3,), "snapshot 3"), ((2, 3), "s 2 to 3")]
)
def test_a_lost_snapshot_is_a_problem_that_no_repair_hides(table: ts.Table, lost: tuple[int, ...], subject: str) -> None:
    kept = {number: Path(table.location, "snapshot", f"snapshot-{number}").read_bytes() for number in lost}
    for number in lost:
        Path(table.location, "snapshot", f"snapshot-{number}").unlink()
    (finding,) = check(table)
    assert (finding.severity, finding.kind, finding.repair) == ("problem", "snapshot-missing", None)
    assert finding.subject.endswith(subject)
    for path in files(table, "*/*"):
        os.utime(path, (0, 0))
    assert not [one for one in clean(table.context, dry_run=True).orphans if one.kind == "snapshot"], "what is retained stays"
    if 3 not in lost:
        for number, content in kept.items():
            Path(table.location, "snapshot", f"snapshot-{number}").write_bytes(content)
        assert check(table, deep=True) == ()


def test_an_expiry_past_a_lost_snapshot_ends_the_gap(table: ts.Table) -> None:
    Path(table.location, "snapshot", "snapshot-1").unlink()
    table.refresh().expire_snapshots(retain_min=1, retain_max=1)
    assert check(table) == ()


def test_what_a_sleeping_committer_published_below_the_earliest_snapshot_is_a_warning(table: ts.Table) -> None:
    late = Path(table.location, "snapshot", "snapshot-1")
    content = late.read_bytes()
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1)
    late.write_bytes(content)
    (finding,) = check(table)
    assert (finding.severity, finding.kind) == ("warning", "dead-snapshots")
    Path(table.location, "snapshot", "EARLIEST").unlink()
    (finding,) = check(table)
    assert (finding.severity, finding.kind) == ("warning", "dead-snapshots") and "restore them" in finding.fix


def test_a_commit_that_lands_while_the_hints_are_read_is_not_a_lost_snapshot(table: ts.Table) -> None:
    class EarlierCommit(WrappedFileStore):
        landed = False

        def names(self, directory: str, prefix: str = "") -> Sequence[str]:
            found = self.inner.names(directory, prefix)
            if directory == "snapshot" and not self.landed:
                self.landed = True
                table.upsert(pa.table({"k": [77], "v": ["late"]}))
            return found

    context = open_context(EarlierCommit(table.context.files), schema=table.table_schema)
    assert check_table(context) == ()


def test_a_hint_that_leads_nowhere_is_a_warning(table: ts.Table) -> None:
    Path(table.location, "snapshot", "LATEST").write_text("junk")
    (finding,) = check(table)
    assert (finding.severity, finding.kind) == ("warning", "hint")


@pytest.mark.deep_after(15)
@pytest.mark.parametrize("name", sorted(path.parent.name for path in GOLDEN.glob("*/expected.json")))
def test_tables_of_other_engines_are_whole(name: str) -> None:
    assert check_table(ts.open_table(str(GOLDEN / name)).context, deep=True) == ()


def test_what_expires_while_it_is_looked_for_is_not_missing(table: ts.Table) -> None:
    told: list[str] = []

    def progress(what: str, done: int, total: int) -> None:
        if not told:
            table.compact(full=True)
            table.expire_snapshots(retain_max=1, retain_min=1)
        told.append(what)

    context = open_context(table.context.files, schema=table.table_schema)
    assert check_table(context, deep=True, progress=progress) == ()
    assert [snapshot.id for snapshot in table.refresh().snapshots()] == [4]


def test_branches_and_tags_are_looked_at_too(table: ts.Table) -> None:
    table.create_tag("keep", 1)
    table.create_branch("trial")
    branch = table.branch("trial")
    branch.upsert(pa.table({"k": [99], "v": ["y"]}))
    assert check(table, deep=True) == ()
    Path(table.location, "tag", "tag-keep").write_text("{}")
    only_there = set(branch.files()["file_path"].to_pylist()) - set(table.files()["file_path"].to_pylist())
    Path(table.location, only_there.pop()).unlink()
    assert sorted((finding.kind, finding.subject.split(":")[0]) for finding in check(table)) == [
        ("file-missing", "branch trial"),
        ("tag", "tag keep"),
    ]


def test_kept_changelogs_statistics_consumers_and_holds_are_looked_at(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("d")
    kept = {"changelog.time-retained": "30 d", "write-only": "true"}
    table = catalog.create_table("d.t", schema=pa.schema([("k", pa.int64())]), primary_key=["k"], options=kept)
    for key in range(4):
        table.upsert(pa.table({"k": [key]}))
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=1)
    live = {path.rpartition("/")[2] for path in table.files()["file_path"].to_pylist()}
    only_changes = [path for path in files(table, "bucket-0/data-*") if path.name not in live]
    assert len(files(table, "changelog/changelog-*")) == 4 and len(only_changes) == 4
    assert check(table, deep=True) == ()
    for path in only_changes:
        path.unlink()
    files(table, "changelog/changelog-*")[3].write_text("{}")
    table_path = Path(table.location)
    for name in ("consumer/consumer-x", f"tablestore-holds/log-{1:020d}"):
        (table_path / name).parent.mkdir(exist_ok=True)
        (table_path / name).write_text("not a number")
    found = sorted((one.kind, one.severity) for one in check(table))
    kinds = ["changelog", "consumer", *["file-missing"] * 3, "hold"]
    assert found == [(kind, "problem") for kind in kinds], "a changelog that cannot be read names no file"


@pytest.mark.parametrize("key", [["x"], ["x", "id"], ["id"]])
def test_rows_whose_nan_lies_in_a_bucket_of_older_versions_are_found_by_the_deep_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: list[str]
) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("d")
    schema = pa.schema([pa.field("x", pa.float32(), False), pa.field("id", pa.int64(), False), ("v", pa.string())])
    table = catalog.create_table("d.t", schema=schema, primary_key=key, options={"bucket": "16", "write-only": "true"})
    nan, minus_nan = (struct.unpack("<f", bytes.fromhex(bits))[0] for bits in ("0000c07f", "0000c0ff"))
    values = [nan, minus_nan, 0.0, -0.0, 1.5, float("inf")]
    rows = pa.table([pa.array(values, pa.float32()), pa.array(range(6)), pa.array(["old"] * 6)], schema=schema)
    with monkeypatch.context() as older:
        older.setattr(rowwords, "float_bits", lambda array: array_values(array, np.uint32))
        older.setattr(bucket, "float_bits", lambda array: array_values(array, np.uint32))
        table.upsert(rows)
    found = check(table, deep=True)
    assert check(table) == ()
    if key == ["id"]:
        assert found == ()
        return
    (finding,) = found
    assert (finding.severity, finding.kind, finding.subject, finding.repair) == ("warning", "nan-buckets", "1 row(s)", None)
    table.overwrite(table.scan().to_arrow())
    assert check(table, deep=True) == (), "files of older snapshots are left as they are"


def test_progress_is_told(table: ts.Table) -> None:
    told: list[tuple[str, int, int]] = []
    check_table(table.context, deep=True, progress=lambda what, done, total: told.append((what, done, total)))
    assert {what.split(" ")[0] for what, _, _ in told} == {"metadata", "files", "rows"}
    assert all(0 <= done < total for _, done, total in told)
