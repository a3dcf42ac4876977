"""No compaction changes an answer: whichever neighbouring runs it takes, under every engine, with rows that come late."""

import random
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from tablestore.format.snapshot import CommitKind
from tablestore.io.memory import MemoryFileStore
from tablestore.lsm.compaction.keyedcompaction import pick_range, sorted_runs
from tablestore.lsm.functions.mergefunction import MergeFunction
from tablestore.lsm.keyorder import KeyOrder
from tablestore.lsm.run import levels
from tablestore.store.commit.committer import CommitRequest
from tablestore.store.commit.committerfactory import committer
from tablestore.store.compact.bucketcompaction import run_compaction
from tablestore.table.upkeep.compactplan import TaskPicker, live_buckets
from tablestore.testing.lab import Lab

NAMES = count()
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("a", pa.int32()),
        ("b", pa.string()),
        ("c", pa.int64()),
        ("d", pa.string()),
        ("q", pa.int32()),
        ("r", pa.int32()),
    ]
)
PARTIAL = {"merge-engine": "partial-update"}
AGGREGATION = {"merge-engine": "aggregation"}
GROUPS = PARTIAL | {"fields.q.sequence-group": "a,b", "fields.r.sequence-group": "c"}
ADDITIONS, ALL = ("+I", "+U"), ("+I", "-U", "+U", "-D")
ENGINES: dict[str, tuple[Mapping[str, str], tuple[str, ...]]] = {
    "deduplicate": ({}, ALL),
    "first-row": ({"merge-engine": "first-row"}, ADDITIONS),
    "partial-update": (PARTIAL, ADDITIONS),
    "partial-update, removing": (PARTIAL | {"partial-update.remove-record-on-delete": "true"}, ALL),
    "groups": (GROUPS, ALL),
    "groups, functions": (
        GROUPS
        | {f"fields.{name}.aggregate-function": f for name, f in {"a": "sum", "b": "last_non_null_value", "c": "max"}.items()},
        ADDITIONS,
    ),
    "groups, lists": (GROUPS | {"fields.b.aggregate-function": "listagg"}, ADDITIONS),
    "groups, removing": (GROUPS | {"partial-update.remove-record-on-sequence-group": "q"}, ALL),
    "last_non_null_value": (AGGREGATION, ADDITIONS),
    "order does not matter": (
        AGGREGATION
        | {
            f"fields.{n}.aggregate-function": f
            for n, f in {"a": "sum", "b": "last_value", "c": "max", "d": "min", "r": "max"}.items()
        },
        ADDITIONS,
    ),
    "first and list": (
        AGGREGATION
        | {f"fields.{n}.aggregate-function": f for n, f in {"a": "first_value", "b": "listagg", "c": "product"}.items()},
        ADDITIONS,
    ),
    "removing": (AGGREGATION | {"aggregation.remove-record-on-delete": "true", "fields.a.aggregate-function": "sum"}, ("+I", "-D")),
}
SEQUENCES: dict[str, Mapping[str, str]] = {
    "arrival": {},
    "sequence": {"sequence.field": "q"},
    "two, descending": {"sequence.field": "q,r", "sequence.field.sort-order": "descending"},
}
CASES = [
    (engine, sequence)
    for engine in ENGINES
    for sequence in SEQUENCES
    if sequence == "arrival" or (engine != "first-row" and not engine.startswith("groups"))
    # A column that orders rows has no function.
    if (engine, sequence) != ("order does not matter", "two, descending")
]


def _rows(rng: random.Random, kinds: tuple[str, ...], clock: int) -> pa.Table:
    def late() -> int | None:
        return rng.choice([None, clock, clock + 1, clock - 3, rng.randrange(9), rng.randrange(9)])

    rows = [
        {
            "id": rng.randrange(4),
            "a": rng.choice([None, None, rng.randrange(5)]),
            "b": rng.choice([None, None, "x", "y", "z"]),
            "c": rng.choice([None, rng.randrange(1, 4)]),
            "d": rng.choice([None, "k", "l"]),
            "q": late(),
            "r": late(),
        }
        for _ in range(rng.choice([2, 4, 6]))
    ]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    return table.append_column("_row_kind", pa.array([rng.choice(kinds) for _ in rows]))


class Runs:
    """One bucket whose runs are compacted as a test says."""

    def __init__(self, options: Mapping[str, str]) -> None:
        store = MemoryFileStore(f"partial-{next(NAMES)}")
        self.lab = Lab(store, schema=SCHEMA, options={"bucket": "1", "write-only": "true", **options})
        self.table = self.lab.open()

    def rows(self) -> list[dict[str, Any]]:
        return sorted(self.table.refresh().scan().to_arrow().to_pylist(), key=lambda row: row["id"])

    def compact(self, rng: random.Random) -> bool:
        """Merge some neighbouring runs; False if that is not allowed."""
        context = self.table.refresh().context
        latest = context.snapshots.latest()
        if latest is None:
            return False
        bucket = next(iter(live_buckets(context, latest).values()), None)
        if bucket is None:
            return False
        order = KeyOrder.of(context.schema.key_fields)
        found = levels(bucket.files, order)
        runs = len(sorted_runs(found, order))
        if runs < 2:
            return False
        start = rng.choice([0, rng.randrange(runs - 1)])
        task = pick_range(found, TaskPicker(context).policy, key_of=order, start=start, stop=rng.randrange(start + 2, runs + 1))
        if task is None:
            return False
        message = run_compaction(context, latest, bucket, task)
        assert committer(context).commit(CommitRequest(user="test", kind=CommitKind.COMPACT, message=message)) is not None
        return True


@pytest.mark.deep
@pytest.mark.parametrize(("engine", "sequence"), CASES)
def test_a_compaction_of_any_neighbouring_runs_changes_no_answer(engine: str, sequence: str) -> None:
    _drive(engine, sequence, seeds=range(3))


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "sequence"), CASES)
def test_many_compactions_of_any_neighbouring_runs_change_no_answer(engine: str, sequence: str) -> None:
    _drive(engine, sequence, seeds=range(3, 20))


def _drive(engine: str, sequence: str, *, seeds: Iterable[int]) -> None:
    options, kinds = ENGINES[engine]
    by_sequence = SEQUENCES[sequence]
    for seed in seeds:
        rng = random.Random(f"{engine} {sequence} {seed}")
        runs = Runs({**options, **by_sequence})
        for clock in range(8):
            runs.table.write_changes(_rows(rng, kinds, clock))
            for _ in range(3 if clock in (4, 7) else 0):
                before = runs.rows()
                if runs.compact(rng) and engine != "first-row":
                    assert runs.rows() == before, f"seed {seed}, after {clock + 1} commits"
        before = runs.rows()
        runs.table.compact(full=True)
        if engine != "first-row":
            # Its level 0 is not seen before a compaction has taken it.
            assert runs.rows() == before, f"seed {seed}, at the end"


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("engine", "sequence"), [("partial-update", "sequence"), ("groups, lists", "arrival"), ("last_non_null_value", "sequence")]
)
def test_a_fold_of_some_versions_would_be_noticed(engine: str, sequence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MergeFunction, "folds_at_once", False)
    with pytest.raises(AssertionError, match="seed"):
        _drive(engine, sequence, seeds=range(40))


def test_no_row_that_comes_late_comes_back_while_deletes_are_kept() -> None:
    _come_late(seeds=range(4))


@pytest.mark.slow
def test_no_late_row_comes_back_in_many_tables() -> None:
    _come_late(seeds=range(4, 60))


def _come_late(*, seeds: Iterable[int]) -> None:
    """Whatever is compacted, the version of the greatest sequence counts, a delete as well as a row."""
    for seed in seeds:
        rng = random.Random(f"late {seed}")
        runs = Runs({"sequence.field": "q", "tablestore.tombstone-retention": "1 d"})
        newest: dict[int, tuple[int, str, dict[str, Any]]] = {}
        for clock in range(8):
            versions = _rows(rng, ALL, clock)
            runs.table.write_changes(versions)
            # A -U whose +U is the next row says that the row stays, whichever of the two counts.
            given = versions.to_pylist()
            following = [(row["id"], row["_row_kind"]) for row in given[1:]] + [(None, None)]
            for row, behind in zip(given, following, strict=True):
                if row["_row_kind"] == "-U" and behind == (row["id"], "+U"):
                    continue
                rank, kind = -10 if row["q"] is None else row["q"], row.pop("_row_kind")
                if row["q"] is None and kind not in ADDITIONS and row["id"] in newest:
                    # A retraction without an order is as new as what it takes back.
                    rank = newest[row["id"]][0]
                if row["id"] not in newest or rank >= newest[row["id"]][0]:
                    newest[row["id"]] = rank, kind, row
            if rng.random() < 0.3:
                runs.table.compact(full=True)
            elif rng.random() < 0.5:
                runs.compact(rng)
            alive = [row for _, (_, kind, row) in sorted(newest.items()) if kind in ADDITIONS]
            assert runs.rows() == alive, f"seed {seed}, after {clock + 1} commits"


def test_a_null_of_the_greatest_sequence_does_not_hide_what_lies_between() -> None:
    """The fold of two of the three rows would be a = 1 of sequence 3."""
    for engine in (PARTIAL, AGGREGATION):
        runs = Runs({**engine, "sequence.field": "q"})
        for a, q in ((1, 1), (None, 3), (2, 2)):
            runs.table.upsert(pa.Table.from_pylist([{"id": 1, "a": a, "q": q}], schema=SCHEMA))
        for seed in range(20):
            runs.compact(random.Random(seed))
            assert [(row["a"], row["q"]) for row in runs.rows()] == [(2, 3)]
