"""Groups that are added up without a query: the new values are those of all rows, or None where they do not follow."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from tablestore.sql.incremental.shapes import WEIGHT
from tablestore.sql.incremental.tally import THERE, Tally

TALLY = Tally(
    keys={"G": "g", "t": "t"},
    counts={"n": None, "c c": "x"},
    sums={"s": ("x", False), "u": ("y", False), "r": ("r", True)},
)
TYPES = {"g": pa.int32(), "t": pa.string(), "x": pa.int16(), "Y": pa.int64(), "r": pa.int64()}
TARGET = pa.schema([("u", pa.int64()), ("t", pa.string()), ("n", pa.int64()), ("G", pa.int32()), ("s", pa.int64())])
TARGET = TARGET.append(pa.field("c c", pa.int64())).append(pa.field("r", pa.int64()))

Row = tuple[int | None, str | None, int | None, int | None, int]


def changes_of(rows: Sequence[tuple[Row, int]]) -> pa.Table:
    columns = {name: pa.array([row[n] for row, _ in rows], kind) for n, (name, kind) in enumerate(TYPES.items())}
    return pa.table({**columns, WEIGHT: pa.array([weight for _, weight in rows], pa.int32())})


def groups_of(rows: Sequence[Row]) -> dict[tuple[int | None, str | None], dict[str, int | None]]:
    """What SQL gives."""
    found = {}
    for key in {row[:2] for row in rows}:
        own = [row for row in rows if row[:2] == key]
        xs, ys = ([row[place] for row in own if row[place] is not None] for place in (2, 3))
        sums = {"s": sum(xs) if xs else None, "u": sum(ys) if ys else None, "r": sum(row[4] for row in own)}
        found[key] = {"n": len(own), "c c": len(xs), **sums}
    return found


def target_of(groups: Mapping[tuple[int | None, str | None], Mapping[str, int | None]]) -> pa.Table:
    return pa.Table.from_pylist([{"G": g, "t": t, **values} for (g, t), values in groups.items()], TARGET)


@pytest.mark.parametrize("seed", range(30))
def test_new_values_are_those_of_all_rows_whatever_comes_and_goes(seed: int) -> None:
    rng = random.Random(seed)

    def row() -> Row:
        numbers = (None, 0, 7, -(2**15), 2**15 - 1)
        key = rng.choice((None, 0, 1)), rng.choice((None, "", "a", "ä"))
        return *key, rng.choice(numbers), rng.choice((None, -(2**40), 3)), rng.choice((0, 2**50))

    old = [row() for _ in range(rng.randint(0, 20))]
    go, come = rng.sample(old, rng.randint(0, len(old))), [row() for _ in range(rng.randint(0, 5))]
    new = list(old)
    for one in go:
        new.remove(one)
    before, after = groups_of(old), groups_of([*new, *come])
    found = TALLY.of(changes_of([*((one, -1) for one in go), *((one, 1) for one in come)]), target_of(before))
    if found is None:
        lost = {key for key in before if sum(one[:2] == key and one[3] is not None for one in go)}
        assert lost, "sum(y) without count(y) is the only value that may not follow"
        return
    assert {(one["key_0"], one["key_1"]) for one in found.to_pylist()} == {one[:2] for one in (*go, *come)}
    for one in found.to_pylist():
        key = one["key_0"], one["key_1"]
        assert one[THERE] is (key in before) and one["left_over"] == after.get(key, {"n": 0})["n"]
        assert one["same"] is (key in after and before.get(key) == after[key])
        if key in before:
            assert {name: one[f"old_{name}"] for name in before[key]} == before[key]
        if key in after:
            assert {name: one[f"new_{name}"] for name in after[key]} == after[key]


@pytest.mark.parametrize(
    ("row", "weight", "old"),
    [
        ((1, "a", 1, 1, 1), -1, {}),
        ((1, "a", 1, 2**62, 1), 1, {}),
        ((1, "a", 1, -(2**63), 1), 1, {}),
        ((1, "a", 1, 2, 1), 1, {"u": 2**63 - 2}),
        ((1, "a", 1, -2, 1), 1, {"u": -(2**63) + 1}),
        ((1, "a", 1, 3, 1), -1, {"u": 3}),
    ],
)
def test_what_does_not_follow_is_left_to_the_engine(row: Any, weight: int, old: dict[str, int]) -> None:
    group = {"n": 2, "c c": 2, "s": 2, "r": 2, "u": 2, **old}
    assert TALLY.of(changes_of([(row, weight)]), target_of({(1, "a"): group} if old else {})) is None


def test_keys_of_another_type_in_the_target_are_left_to_the_engine() -> None:
    target = target_of({}).cast(pa.schema([field.with_type(pa.int64()) if field.name == "G" else field for field in TARGET]))
    assert TALLY.of(changes_of([((1, "a", 1, 1, 1), 1)]), target) is None


def test_names_that_are_equal_but_for_their_case_are_left_to_the_engine() -> None:
    changes = changes_of([((1, "a", 1, 1, 1), 1)]).append_column("y", pa.array([1]))
    assert TALLY.of(changes, target_of({})) is None
