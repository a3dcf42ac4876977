"""Tags, branches and expiry between implementations: what one keeps or lets go, the other reads, or does not miss."""

import json
from pathlib import Path
from typing import Any

import canonical
import pyarrow as pa
import pytest
from canonical import Row, comparable
from oracles import JavaOracle, PypaimonOracle
from ours import Ours

import tablestore as ts
from tablestore.io.local import LocalFileStore
from tablestore.table.upkeep.analysis import analyze
from tablestore.testing.holdings import Holdings

pytestmark = pytest.mark.interop

COLUMNS = [{"name": "id", "type": "BIGINT NOT NULL"}, {"name": "v", "type": "STRING"}]
ALL: dict[str, Any] = {"retain_min": 1, "retain_max": 1}


def branch_path(path: Path, branch: str) -> Path:
    """How others name a branch."""
    return path.with_name(f"{path.name}$branch_{branch}")


def rows(*pairs: tuple[int, str]) -> list[Row]:
    return canonical.encode_rows(pa.table({"id": [i for i, _ in pairs], "v": [v for _, v in pairs]}))


def read(table: ts.Table, **options: Any) -> list[Row]:
    return canonical.encode_rows(table.scan(**options).to_arrow())


def same(found: list[Row], *pairs: tuple[int, str]) -> bool:
    return bool(comparable(found) == comparable(rows(*pairs)))


def missing(path: Path) -> dict[str, set[str]]:
    return Holdings(LocalFileStore(str(path))).missing()


@pytest.fixture(params=["keyed", "append"])
def path(request: pytest.FixtureRequest, warehouse: Path) -> Path:
    """A table of ours that is compacted and expired only when asked."""
    where = warehouse / "db.db" / "t"
    options = {"write-only": "true"}
    if request.param == "keyed":
        Ours().create(where, COLUMNS, primary_key=["id"], options={"bucket": "2", **options})
    else:
        Ours().create(where, COLUMNS, options=options)
    return where


def write(path: Path, *pairs: tuple[int, str]) -> None:
    Ours().write(path, rows(*pairs))


def test_others_read_our_tags_after_expiry(
    path: Path, java: JavaOracle, pypaimon_pure: PypaimonOracle, pypaimon_native: PypaimonOracle
) -> None:
    write(path, (1, "a"), (2, "b"))
    table = ts.open_table(str(path))
    table.create_tag("first", retain=86_400_000)
    table.overwrite(pa.table({"id": [3], "v": ["c"]}), {})
    table.create_tag("second")
    table.overwrite(pa.table({"id": [4], "v": ["d"]}), {})
    table.expire_snapshots(**ALL)
    for reader in (java, pypaimon_pure, pypaimon_native):
        assert same(reader.read(path, tag="first"), (1, "a"), (2, "b")), reader.name
        assert same(reader.read(path, tag="second"), (3, "c")), reader.name
        assert same(reader.read(path), (4, "d")), reader.name
    # They see when it was made and for how long it is kept, and may delete it: with the files that only it kept.
    java.call("delete_tag", path, name="first")
    assert missing(path) == {}
    assert [tag.name for tag in ts.open_table(str(path)).tags()] == ["second"]
    assert same(read(ts.open_table(str(path)), tag="second"), (3, "c"))


def test_we_read_expire_and_delete_tags_of_others(path: Path, java: JavaOracle, pypaimon_pure: PypaimonOracle) -> None:
    write(path, (1, "a"))
    java.call("tag", path, name="by-java", snapshot=1)
    pypaimon_pure.call("tag", path, name="by-python", snapshot=1)
    table = ts.open_table(str(path))
    table.overwrite(pa.table({"id": [2], "v": ["b"]}), {})
    table.expire_snapshots(**ALL)
    assert {tag.name for tag in table.tags()} == {"by-java", "by-python"}
    for name in ("by-java", "by-python"):
        assert same(read(table, tag=name), (1, "a"))
    table.delete_tag("by-java")
    assert same(read(table, tag="by-python"), (1, "a")) and same(java.read(path, tag="by-python"), (1, "a"))
    table.rollback_to(tag="by-python")
    table.delete_tag("by-python")
    assert same(java.read(path), (1, "a")) and same(read(table), (1, "a"))


def test_java_reads_the_statistics_of_analyze_and_goes_on_after_its_commit(
    path: Path, java: JavaOracle, pypaimon_pure: PypaimonOracle, pypaimon_native: PypaimonOracle
) -> None:
    write(path, (1, "a"), (2, "bb"), (3, "bb"))
    context = ts.open_table(str(path)).context
    snapshot = analyze(context, context.schema.field_names)
    assert snapshot is not None
    for reader in (java, pypaimon_pure, pypaimon_native):
        assert same(reader.read(path), (1, "a"), (2, "bb"), (3, "bb")), reader.name
    (row,) = java.system(path, "statistics")["rows"]
    told = json.dumps(row)
    assert "3" in told and "bb" in told
    java.write(path, [{"id": 4, "v": "java"}])
    table = ts.open_table(str(path))
    assert same(read(table), (1, "a"), (2, "bb"), (3, "bb"), (4, "java"))
    assert table.snapshots()[-1].statistics == snapshot.statistics
    assert missing(path) == {}


def test_java_reads_and_writes_our_branches(path: Path, java: JavaOracle) -> None:
    write(path, (1, "a"))
    table = ts.open_table(str(path))
    table.create_branch("ours")
    write(path, (2, "main"))
    branch = branch_path(path, "ours")
    assert same(java.read(branch), (1, "a"))
    java.write(branch, rows((3, "java")))
    mine = table.branch("ours")
    assert same(read(mine), (1, "a"), (3, "java"))
    (mine.upsert if table.primary_key else mine.append)(pa.table({"id": [4], "v": ["ours"]}))
    assert same(java.read(branch), (1, "a"), (3, "java"), (4, "ours"))
    assert same(java.read(path), (1, "a"), (2, "main")) and same(read(table), (1, "a"), (2, "main"))
    # Expiry by Java on either side leaves the other whole: both have the tag where the branch began.
    ts.open_table(str(path)).overwrite(pa.table({"id": [5], "v": ["e"]}), {})
    java.expire(path, retain=1)
    java.expire(branch, retain=1)
    assert same(read(mine), (1, "a"), (3, "java"), (4, "ours")) and same(read(table), (5, "e"))
    assert missing(path) == {}


def test_we_read_write_and_fast_forward_to_javas_branches(path: Path, java: JavaOracle) -> None:
    write(path, (1, "a"))
    java.call("tag", path, name="start", snapshot=1)
    java.call("branch", path, name="theirs", tag="start")
    table = ts.open_table(str(path))
    (described,) = table.branches()
    assert (described.name, described.created_from_tag, described.created_from_snapshot) == ("theirs", "start", 1)
    branch = table.branch("theirs")
    (branch.upsert if table.primary_key else branch.append)(pa.table({"id": [2], "v": ["b"]}))
    java.write(branch_path(path, "theirs"), rows((3, "c")))
    assert same(read(branch), (1, "a"), (2, "b"), (3, "c"))
    with pytest.raises(ts.InvalidInputError):
        table.delete_tag("start")
    table.fast_forward("theirs")
    assert same(read(table), (1, "a"), (2, "b"), (3, "c")) and same(java.read(path), (1, "a"), (2, "b"), (3, "c"))
    table.delete_branch("theirs")
    table.expire_snapshots(**ALL)
    assert same(java.read(path), (1, "a"), (2, "b"), (3, "c"))
    assert missing(path) == {}


def test_expiry_by_either_leaves_every_retained_snapshot_readable(path: Path, java: JavaOracle) -> None:
    expected: dict[int, list[tuple[int, str]]] = {}
    keyed = bool(ts.open_table(str(path)).primary_key)
    state: dict[int, str] = {}
    for number in range(12):
        writer: Any = java if number % 3 == 1 else Ours()
        state[number] = f"v{number}"
        if number % 5 == 4:
            # A compaction moves files between levels: what moved must not be taken for deleted.
            latest = (java if number % 2 else Ours()).compact(path)
            expected[latest] = sorted((i, v) for i, v in state.items() if i < number)
        latest = writer.write(path, rows((number, f"v{number}")))
        expected[latest] = sorted(state.items())
        if number % 4 == 3:
            if number % 8 == 3:
                java.expire(path, retain=4)
            else:
                ts.open_table(str(path)).expire_snapshots(retain_min=4, retain_max=4)
            assert missing(path) == {}
            for snapshot in ts.open_table(str(path)).snapshots():
                if snapshot.id in expected:
                    assert same(java.read(path, snapshot=snapshot.id), *expected[snapshot.id])
                    assert same(read(ts.open_table(str(path)), snapshot_id=snapshot.id), *expected[snapshot.id])
    assert len(ts.open_table(str(path)).snapshots()) == 4 and keyed in (True, False)
    assert same(java.read(path), *sorted(state.items()))


def test_java_goes_on_after_our_rollback_and_clean(path: Path, java: JavaOracle, pypaimon_native: PypaimonOracle) -> None:
    write(path, (1, "a"), (2, "b"))
    write(path, (3, "c"))
    table = ts.open_table(str(path))
    table.overwrite(pa.table({"id": [9], "v": ["z"]}), {})
    table.rollback_to(2)
    assert same(java.read(path), (1, "a"), (2, "b"), (3, "c"))
    assert same(pypaimon_native.read(path), (1, "a"), (2, "b"), (3, "c"))
    java.write(path, rows((4, "java")))
    java.compact(path)
    java.expire(path, retain=1)
    table.remove_orphan_files(0, dry_run=False)
    assert missing(path) == {} and Holdings(LocalFileStore(str(path))).unheld() == set()
    for found in (java.read(path), read(ts.open_table(str(path)))):
        assert same(found, (1, "a"), (2, "b"), (3, "c"), (4, "java"))


@pytest.mark.parametrize("tagger", ["java", "pypaimon"])
def test_branches_begin_at_each_others_tags(path: Path, java: JavaOracle, pypaimon_pure: PypaimonOracle, tagger: str) -> None:
    write(path, (1, "a"))
    (java if tagger == "java" else pypaimon_pure).call("tag", path, name="theirs", snapshot=1)
    table = ts.open_table(str(path))
    table.create_tag("ours")
    # The Java core (1.4.2) copies the snapshot file, so it cannot begin a branch at a tag whose snapshot has expired.
    java.call("branch", path, name="java-ours", tag="ours")
    java.call("branch", path, name="java-theirs", tag="theirs")
    table.overwrite(pa.table({"id": [2], "v": ["b"]}), {})
    table.expire_snapshots(**ALL)
    table.create_branch("we-theirs", tag="theirs")
    for name in ("java-ours", "we-theirs", "java-theirs"):
        assert same(read(table.branch(name)), (1, "a")), name
        java.write(branch_path(path, name), rows((3, name)))
        assert same(read(table.branch(name)), (1, "a"), (3, name)), name
        assert same(java.read(branch_path(path, name)), (1, "a"), (3, name)), name
    table.expire_snapshots(**ALL)
    assert missing(path) == {}
