"""Changes that outlive their snapshots: as they were, or refused by name. A named consumer loses none, whatever they rest on."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts
from tablestore.errors import NotFoundError
from tablestore.testing.contracts.following import SCHEMA, all_of, folded, from_the_start, keys, once, rows, told

KEEPING = {"changelog.num-retained.min": "50", "changelog.num-retained.max": "100", "changelog.time-retained": "10 d"}
# What a table is, and whether its stored changes tell all of themselves (else only without -U, or not at all).
KINDS: dict[str, tuple[dict[str, str], str]] = {
    "append": ({"primary-key": ""}, "all"),
    "plain": ({}, "after"),
    "dynamic buckets": ({"bucket": "-1"}, "after"),
    "input": ({"changelog-producer": "input"}, "all"),
    "lookup": ({"changelog-producer": "lookup"}, "all"),
    "full compaction": ({"changelog-producer": "full-compaction"}, "all"),
    "vectors": ({"deletion-vectors.enabled": "true"}, "some"),
    "overwrites told": ({"streaming-read-overwrite": "true"}, "some"),
}
NewTable = Callable[..., ts.Table]


@pytest.fixture
def new_table(tmp_path: Path) -> NewTable:
    def make(options: dict[str, str]) -> ts.Table:
        catalog = ts.open_catalog(str(tmp_path))
        catalog.create_database("shop")
        keyed = "primary-key" not in options
        given = {"write-only": "true", **({"bucket": "1"} if keyed else {}), **options}
        given.pop("primary-key", None)
        return catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"] if keyed else (), options=given)

    return make


def write_history(table: ts.Table) -> None:
    keyed = bool(table.primary_key)
    write = table.upsert if keyed else table.append
    for ids, text in (([1, 2, 3], "a"), ([2, 3, 4], "b")):
        write(rows(ids, text))
        table.compact(full=True)
    if "streaming-read-overwrite" in table.options():
        table.overwrite(rows([2, 5], "o"), {})
    if keyed:
        table.delete(keys([3]))
    write(rows([1], "c"))
    table.compact(full=True)
    write(rows([7], "d"))


def expire(table: ts.Table, left: int) -> None:
    table.expire_snapshots(retain_min=left, retain_max=left, older_than=timedelta(0))


def changes_of(table: ts.Table, snapshot_id: int, *, pairs: bool) -> list[tuple[Any, ...]] | None:
    """The changes of one snapshot; None where that is refused by name."""
    try:
        found = table.changes(snapshot_id - 1, snapshot_id, pairs=pairs).to_arrow().to_pylist()
    except NotFoundError as error:
        if error.kind != "snapshot-expired" or f"snapshot {snapshot_id}" not in str(error):
            raise
        return None
    return sorted((row["_row_kind"], row["id"], row["v"] or "") for row in found)


@pytest.mark.deep_after(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_changes_of_expired_snapshots_are_what_they_were_or_refused(new_table: NewTable, kind: str, left: int) -> None:
    options, telling = KINDS[kind]
    table = new_table({**options, **KEEPING})
    write_history(table)
    ids = [snapshot.id for snapshot in table.snapshots()]
    before = {(i, pairs): changes_of(table, i, pairs=pairs) for i in ids for pairs in (True, False)}
    assert None not in before.values() and ids[0] == 1
    expire(table, left)
    assert len(table.snapshots()) == left
    for (snapshot_id, pairs), was in before.items():
        now = changes_of(table, snapshot_id, pairs=pairs)
        assert now == was or (now is None and telling != "all"), (snapshot_id, pairs)
        assert now == was or pairs or telling == "some", (snapshot_id, pairs)
    if telling != "some":
        count = sum(len(was or ()) for (_, pairs), was in before.items() if not pairs)
        got = told(from_the_start(table))
        assert len(got) == count and (once(got) or not table.primary_key), "readers begin with what is kept"


@pytest.mark.deep_after(4)
@pytest.mark.parametrize("kind", ["vectors", "overwrites told", "plain"])
@pytest.mark.parametrize("done", [pytest.param(1, marks=pytest.mark.slow), 2, 3, 4, pytest.param(5, marks=pytest.mark.slow)])
def test_expiry_keeps_the_state_that_the_next_changes_of_a_consumer_are_found_in(new_table: NewTable, kind: str, done: int) -> None:
    table = new_table(KINDS[kind][0])
    write_history(table)
    state = folded(told(all_of(table, scan="from-timestamp", timestamp=0, pairs=True)))
    seen = []
    for batch in table.consume(scan="from-timestamp", timestamp=0, consumer_id="c", pairs=True, follow=False):
        if batch.snapshot_id > done:
            break
        batch.commit()
        seen.append(batch)
    expire(table, 1)
    rest = all_of(table, consumer_id="c", pairs=True)
    assert folded(told([*seen, *rest])) == state
    for batch in table.consume(consumer_id="c", pairs=True, follow=False):
        batch.commit()
    expire(table, 1)
    assert len(table.snapshots()) <= 2


def test_a_reader_whose_next_changes_rest_on_what_has_expired_is_told_so(new_table: NewTable) -> None:
    table = new_table(KINDS["vectors"][0])
    write_history(table)
    (compacted,) = [s.id for s in table.snapshots()][-2:-1]
    expire(table, 2)
    with pytest.raises(NotFoundError, match=f"snapshot {compacted}") as caught:
        table.changes(compacted - 1).to_arrow()
    assert caught.value.kind == "snapshot-expired"
    assert told(from_the_start(table)) == []
