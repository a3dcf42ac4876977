"""A statement that makes or replaces a table dies at every call of the store: readers see the old state or the new one, no part."""

from itertools import count
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.testing.files import Faults, FaultyFileStore, FileCall, SimulatedCrash, When
from tests.table.creation.places import Place, RenamingFaultyStore

WHENS: tuple[When, ...] = ("before", "after")
READING = ("read", "size", "exists", "list", "open_input", "input.read")
NEW, OLD = "CREATE OR REPLACE TABLE shop.t AS SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS r (id, v)", [{"id": 7, "v": "old"}]
ROWS = [{"id": 1, "v": "a"}, {"id": 2, "v": None}]
# Which calls of the store fail: a few, or all of them.
STRIDES = {"local": 17, "memory": 11, "copying": 19}


@pytest.fixture(params=list(STRIDES))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["some", pytest.param("all", marks=pytest.mark.slow)])
def stride(request: pytest.FixtureRequest, kind: str) -> int:
    return STRIDES[kind] if request.param == "some" else 1


def state(place: Place) -> str:
    """What a reader sees: nothing, the old table, the new one, or (never) something else."""
    catalog = place.open()
    if not catalog.table_exists("shop.t"):
        return "nothing"
    found = catalog.table("shop.t").scan().to_arrow().to_pylist()
    return "new" if found == ROWS else "old" if found == OLD else f"a part: {found}"


def dies(place: Place, faults: Faults) -> bool:
    """Run the statement over a store that dies; whether it did."""
    files = (RenamingFaultyStore if place.renames else FaultyFileStore)(place.files, faults)
    with ts.TableEnvironment.create(place.open(files), engine="duckdb") as environment:
        try:
            environment.execute_sql(NEW)
        except SimulatedCrash:
            return True
    return False


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("before", ["nothing", "old"])
def test_a_statement_that_dies_anywhere_leaves_the_old_state_or_the_new_one(
    kind: str, stride: int, before: str, tmp_path: Path
) -> None:
    seen = set()
    for nth in count(1 + stride // 2, stride):
        place, faults = Place(kind, tmp_path), Faults()
        if before == "old":
            with ts.TableEnvironment.create(place.open(), engine="duckdb") as environment:
                environment.execute_sql("CREATE TABLE shop.t AS SELECT 7 AS id, 'old' AS v")
        states = [state(place)]
        faults.after(lambda call, place=place, states=states: _poll(call, place, states))
        faults.crash_nth(nth, when=WHENS[nth % 2])
        if not dies(place, faults):
            break
        place.clock.advance(4000)
        report = place.open().sweep_creations()
        assert all(one.outcome in ("removed", "finished") for one in report.creations), report
        states.append(state(place))
        turned = states.index("new") if "new" in states else len(states)
        assert set(states[:turned]) <= {before} and set(states[turned:]) <= {"new"}, (nth, faults.calls[-1], states)
        assert not [path for path in place.rest() if path.startswith("_ctas/")], (nth, faults.calls[-1])
        assert states[-1] != "nothing" or place.rest() == set(), (nth, faults.calls[-1])
        seen.add(states[-1])
    assert before in seen


def _poll(call: FileCall, place: Place, states: list[str]) -> None:
    if call.op not in READING:
        states.append(state(place))
