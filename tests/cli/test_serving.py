"""``tablestore mt serve`` as processes: killed at any moment and started again, and several on one warehouse."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts
from tablestore.materialized.refreshing import note_in
from tests.support.commandline import Ran

Run = Callable[..., Ran]
PROGRAM = Path(__file__).parent / "programs" / "dying.py"
TOTALS = (
    "CREATE MATERIALIZED TABLE shop.totals FRESHNESS = INTERVAL '1' SECOND REFRESH_MODE = FULL AS "
    "SELECT item, count(*) AS n, sum(price) AS total FROM shop.orders GROUP BY item"
)
SERVE = ("mt", "serve", "--interval", "50 ms", "--json")


@pytest.fixture
def totals(run: Run, orders: ts.Table) -> str:
    run("sql", "-e", TOTALS)
    return "shop.totals"


@contextmanager
def running(*args: str, dies_at: int | None = None, out: Any = subprocess.PIPE) -> Iterator["subprocess.Popen[bytes]"]:
    """The command in a process, which dies by SIGKILL at so many calls of the file system; ended by SIGTERM."""
    command = [sys.executable, "-m", "tablestore"] if dies_at is None else [sys.executable, str(PROGRAM), str(dies_at)]
    process = subprocess.Popen([*command, *args], stdout=out, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=300)


def change(orders: ts.Table, rng: random.Random) -> None:
    """Some orders come, some change, some go."""
    ids = rng.sample(range(10), 3)
    items, prices = [rng.choice(["pen", "ink", None]) for _ in ids], [float(rng.randrange(9)) for _ in ids]
    kinds = [rng.choice(["+I", "+I", "-D"]) for _ in ids]
    orders.write_changes({"id": ids, "item": items, "price": prices, "_row_kind": kinds})


def held(catalog: ts.Catalog) -> set[tuple[Any, ...]] | None:
    """The rows of the totals; None before their first refresh."""
    try:
        rows = [tuple(row.values()) for row in catalog.table("shop.totals").scan().to_arrow().to_pylist()]
    except ts.NotFoundError as error:
        if error.kind != "not-filled":
            raise
        return None
    assert len(set(rows)) == len(rows)
    return set(rows)


def wanted(orders: ts.Table) -> set[tuple[Any, ...]]:
    groups: dict[str | None, list[float]] = {}
    for row in orders.scan().to_arrow().to_pylist():
        groups.setdefault(row["item"], []).append(row["price"])
    return {(item, len(prices), sum(prices)) for item, prices in groups.items()}


def calls_of_a_refresh(table: str) -> int:
    """How many calls of the file system a refresh takes."""
    command = [sys.executable, str(PROGRAM), "0", "mt", "refresh", table]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stderr.splitlines()[-1])


@pytest.mark.slow
def test_a_scheduler_that_is_killed_and_started_again_loses_and_doubles_nothing(
    run: Run, totals: str, orders: ts.Table, catalog: ts.Catalog
) -> None:
    rng, landed = random.Random(30), 0
    most = calls_of_a_refresh(totals)
    assert held(catalog) == wanted(orders)
    for number in range(30):
        before = held(catalog)
        change(orders, rng)
        with running(*SERVE, dies_at=rng.randrange(most // 2, 3 * most // 2)) as dying:
            assert dying.wait(300) == -signal.SIGKILL
        found = held(catalog)
        assert found in (before, wanted(orders)), f"kill {number}: a part is visible"
        landed += found == wanted(orders) != before
        with running(*SERVE) as serving:
            assert serving.stdout is not None
            assert json.loads(serving.stdout.readline())["error"] is None
        assert held(catalog) == wanted(orders), f"kill {number}"
        (listed,) = run("mt", "list", "--json").json["materialized_tables"]
        assert listed["lag"] == 0
    assert 0 < landed < 30, "kills before and behind the commit"


@pytest.mark.deep
@pytest.mark.parametrize("changes", [1, pytest.param(15, marks=pytest.mark.slow)])
def test_of_several_schedulers_each_refresh_is_made_by_one(
    run: Run, totals: str, orders: ts.Table, catalog: ts.Catalog, changes: int
) -> None:
    rng, said = random.Random(4), []
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as lines:
        with running(*SERVE, out=writing), running(*SERVE, out=writing):
            for _ in range(changes):
                change(orders, rng)
                said += run("mt", "refresh", "--due", "--json").rows
                while held(catalog) != wanted(orders):
                    said.append(json.loads(lines.readline()))
        os.close(writing)
        said += [json.loads(line) for line in lines]
    assert [one["error"] for one in said if one["error"]] == []
    table = catalog.table(totals)
    assert isinstance(table, ts.Table)
    notes = {one.id: note_in(one) for one in table.snapshots() if one.commit_kind != "COMPACT"}
    assert sorted(one["snapshot_id"] for one in said if one["snapshot_id"]) == sorted(notes)
    times = [note.schedule_ms for _, note in sorted(notes.items()) if note is not None]
    assert len(times) == len(notes) and times == sorted(set(times)), "each time of the schedule has one refresh"
