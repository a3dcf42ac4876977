"""A refresh dies at a call of the store, again and again: each change goes in exactly once."""

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.environment.session.session import spec_of
from tablestore.materialized.incremental.refresh import refresh
from tablestore.testing.files import Faults, FaultyFileStore, SimulatedCrash, When
from tests.table.creation.places import Place

WHENS: tuple[When, ...] = ("before", "after")
QUERIES = {
    "groups": (
        "g INT, n BIGINT, s BIGINT, PRIMARY KEY (g) NOT ENFORCED",
        "SELECT g, count(*) AS n, sum(v) AS s FROM shop.t GROUP BY g",
    ),
    "bag": ("g INT, v BIGINT", "SELECT g, v FROM shop.t WHERE v <> 3"),
    "whole": ("g INT, v BIGINT", "SELECT g, v FROM shop.t ORDER BY v, g LIMIT 4"),
}


class Scene:
    """A warehouse with a source and the targets of the queries; every process that opens it is another one."""

    def __init__(self, folder: Path) -> None:
        self.place, self.rng, self.calls = Place("memory", folder), random.Random(3), dict.fromkeys(QUERIES, 100)
        with ts.TableEnvironment.create(self.place.open(), engine="duckdb") as env:
            env.execute_sql("CREATE TABLE shop.t (id BIGINT, g INT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
            for name, (columns, _) in QUERIES.items():
                env.execute_sql(f"CREATE TABLE shop.{name} ({columns})")

    def change(self) -> None:
        """A batch of changes of the source."""
        ids = self.rng.sample(range(12), 4)
        rows = {"id": ids, "g": [self.rng.randrange(3) for _ in ids], "v": [self.rng.randrange(5) for _ in ids]}
        table = self.place.open().table("shop.t")
        changes = pa.table(rows).cast(table.schema)
        table.write_changes(changes.append_column("_row_kind", pa.array([self.rng.choice(["+I", "+I", "-D"]) for _ in ids])))

    def rows(self, name: str) -> Counter[tuple[object, ...]]:
        """What the target holds."""
        return Counter(tuple(row.values()) for row in self.place.open().table(f"shop.{name}").scan().to_arrow().to_pylist())

    def wanted(self, name: str) -> Counter[tuple[object, ...]]:
        """What its query gives."""
        with ts.TableEnvironment.create(self.place.open(), engine="duckdb") as env:
            return Counter(tuple(row.values()) for row in env.execute_sql(QUERIES[name][1]).to_arrow().to_pylist())

    def refresh(self, name: str, kill: bool = False, when: When = "before") -> bool:
        """Refresh a target in a process that may die, at any call or where a snapshot becomes visible; whether it did."""
        faults = Faults()
        if kill and self.rng.random() < 0.3:
            faults.crash_nth(1, when=when, op="publish_if_absent")
        elif kill:
            faults.crash_nth(self.rng.randrange(1, self.calls[name]), when=when)
        catalog = self.place.open(FaultyFileStore(self.place.files, faults))
        with ts.TableEnvironment.create(catalog, engine="duckdb") as env:
            try:
                target = catalog.table(f"shop.{name}")
                refresh(env._session, target, QUERIES[name][1], spec=spec_of(catalog, target))
            except (SimulatedCrash, ts.TablestoreError):
                # What dies while the engine reads comes out of it as an error of the query.
                assert faults.crashed
                return True
        self.calls[name] = len(faults.calls)
        return False


@pytest.mark.deep
@pytest.mark.parametrize("kills", [12, pytest.param(60, marks=pytest.mark.slow)])
def test_each_change_goes_in_once_however_often_a_refresh_dies(kills: int, tmp_path: Path) -> None:
    scene, died, landed = Scene(tmp_path), 0, 0
    for number in range(200):
        if died == kills:
            break
        name = list(QUERIES)[number % len(QUERIES)]
        before = scene.rows(name)
        scene.change()
        wanted = scene.wanted(name)
        if scene.refresh(name, True, WHENS[number % 2]):
            died += 1
            found = scene.rows(name)
            landed += found == wanted and found != before
            assert found in (before, wanted), f"kill {died}, {name}: a part is visible"
            scene.place.clock.advance(4000)
            assert not scene.refresh(name)
        assert scene.rows(name) == wanted, f"kill {died}, {name}"
    assert died == kills and landed
