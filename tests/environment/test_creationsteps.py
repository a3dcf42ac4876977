"""What makes a table dies, fails or is canceled at each of its steps: readers see nothing or the whole, and nothing is left."""

from collections.abc import Callable
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.environment.jobs import JobStatus
from tablestore.errors import StorageError
from tablestore.testing.files import Faults, FaultyFileStore, FileCall, SimulatedCrash
from tests.table.creation.creationsteps import Step, step_at, steps_of
from tests.table.creation.places import Place, RenamingFaultyStore

READING = ("read", "size", "exists", "list", "open_input", "input.read")
# What belongs to the step before it: parts of a file, hints, and a removal that its record outlives.
BESIDE = ("output.write", "sync", "delete_directory")
NEW, ROWS = "CREATE OR REPLACE TABLE shop.t AS SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS r (id, v)", 2
KINDS = ("local", "copying")


def over(place: Place, faults: Faults) -> ts.TableEnvironment:
    """An environment over a store with faults."""
    files = (RenamingFaultyStore if place.renames else FaultyFileStore)(place.files, faults)
    return ts.TableEnvironment.create(place.open(files), engine="duckdb")


def seen(place: Place) -> int:
    """How many rows a reader sees; -1: there is no table."""
    catalog = place.open()
    return catalog.table("shop.t").scan().count() if catalog.table_exists("shop.t") else -1


def come_to(faults: Faults, wanted: Step, act: Callable[[], object]) -> list[Step]:
    """Act when the step is first come to; the steps that are come to."""
    came: list[Step] = []

    def note(when: str, call: FileCall) -> None:
        step = step_at(when, call.op, call.path)
        if step is not None and step not in came:
            came.append(step)
            if step is wanted:
                act()

    faults.before(lambda call: note("before", call))
    faults.after(lambda call: note("after", call))
    return came


@pytest.mark.parametrize("kind", KINDS)
def test_the_steps_are_all_that_changes_the_store_in_their_order(kind: str, tmp_path: Path) -> None:
    place, faults = Place(kind, tmp_path), Faults()
    with over(place, faults) as environment:
        came = come_to(faults, Step.BEGUN, lambda: None)
        environment.execute_sql(NEW)
    assert came == steps_of(renames=place.renames)
    changes = [call for call in faults.calls if call.op not in READING + BESIDE]
    named = [{step_at(when, call.op, call.path) for when in ("before", "after")} - {None} for call in changes]
    unnamed = [call.path.rpartition("/")[2] for call, steps in zip(changes, named, strict=True) if not steps]
    # Files beside those of a step, which no reader looks for; what is copied file by file; the mark that copying leaves.
    beside = ("EARLIEST", "LATEST", "renewed.json", "publishing.json")
    assert all(name in beside or name.startswith(("manifest-", "data-", ".tmp-creation-")) for name in unnamed), unnamed


@pytest.mark.deep
@pytest.mark.parametrize("how", ["dies", "fails", "canceled"])
@pytest.mark.parametrize("kind", KINDS)
def test_readers_see_nothing_or_the_whole_whatever_happens_at_a_step(kind: str, how: str, tmp_path: Path) -> None:
    for step in steps_of(renames=kind == "local"):
        place = Place(kind, tmp_path)
        polled, status = made(place, step, how)
        place.clock.advance(4000)
        report = place.open().sweep_creations()
        assert all(one.outcome in ("removed", "finished") for one in report.creations), (step, report)
        polled.append(seen(place))
        turned = polled.index(ROWS) if ROWS in polled else len(polled)
        assert set(polled[:turned]) <= {-1} and set(polled[turned:]) <= {ROWS}, (step, polled)
        assert (polled[-1] == ROWS) == (status is JobStatus.FINISHED) or how == "dies", (step, status)
        assert polled[-1] == ROWS or not step.is_visible, step
        rest = place.rest()
        assert not [path for path in rest if path.startswith("_ctas/")] and (polled[-1] == ROWS or rest == set()), (step, rest)


def made(place: Place, step: Step, how: str) -> tuple[list[int], JobStatus]:
    """Run the statement, which does not go on at a step; what a reader sees after each call, and how the job ended."""
    faults, polled = Faults(), [seen(place)]
    with over(place, faults) as environment:
        environment.get_config().set("table.dml-sync", "false")

        def act() -> None:
            if how == "canceled":
                (job,) = environment._session.jobs.under_way()
                job.cancel()
            elif how == "dies":
                faults.crashed = True
                raise SimulatedCrash(f"at {step}")
            else:
                raise StorageError(f"the disk is full at {step}")

        faults.after(lambda call: polled.append(seen(place)) if call.op not in READING else None)
        come_to(faults, step, act)
        job = environment.execute_sql(NEW).job
        assert job is not None and job.wait(60)
    return polled, job.status
