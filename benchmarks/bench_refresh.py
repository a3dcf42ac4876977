"""What does it cost to refresh a materialized table from the changes of its sources, next to computing the whole again?

    groups    10 M rows, appended or updated, in 10,000 groups: count and sum of each
    join      10 M rows of facts with 1 M rows they refer to; rows of either side change

One row in a thousand changes before each refresh; the last two refreshes of a round, incremental and full, see the same change.
The sources are compacted; those that are updated keep their changes (``changelog-producer = lookup``). Those of groups take
four times as many rounds: they are short, and one refresh in five compacts the target.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import tablestore as ts
from benchmarks.measure import Case, Sample, WrongRows, stopwatch, take_turns
from benchmarks.report import Result
from benchmarks.setting import Setting
from tablestore.environment.session.session import spec_of
from tablestore.materialized.incremental.refresh import refresh

ROWS, PEOPLE, GROUPS, PART = 10_000_000, 1_000_000, 10_000, 1000
GROUP_ROUNDS = 4
INCREMENTAL, FULL = "from the changes", "the whole"
GROUPED = "SELECT g, count(*) AS n, sum(v) AS s FROM facts GROUP BY g"
JOINED = "SELECT f.id, f.g, f.v, p.name, p.level FROM facts f JOIN people p ON f.person = p.id"
COLUMNS = "id BIGINT NOT NULL, g INT, v BIGINT NOT NULL, person BIGINT"


def run(setting: Setting) -> None:
    """The questions, with DuckDB."""
    groups = "g INT NOT NULL, n BIGINT, s BIGINT, PRIMARY KEY (g) NOT ENFORCED"
    for name, keyed, query, target, bound in (
        ("groups of appended rows", False, GROUPED, groups, 10.0),
        ("groups of updated rows", True, GROUPED, groups, 10.0),
        (
            "a join of updated rows",
            True,
            JOINED,
            "id BIGINT NOT NULL, g INT, v BIGINT, name STRING, level INT, PRIMARY KEY (id) NOT ENFORCED",
            5.0,
        ),
    ):
        rounds = GROUP_ROUNDS if query is GROUPED else 1
        with setting.workspace("refresh") as space:
            scene = _Scene(setting, space, keyed=keyed, query=query, target=target)
            with scene.env:
                result = Result(
                    name=f"DuckDB: refresh of {name}",
                    question=f"{scene.rows:,} rows, one in {PART:,} changed: how long does a refresh take?",
                    rows=scene.rows,
                    base=FULL,
                    timings=take_turns(scene.cases(), rounds * setting.repeats, warm_up=setting.warm_up),
                )
        setting.add(result)
        setting.add_bar(result.bar(f"refresh of {name}: from the changes / the whole", INCREMENTAL, FULL, 1 / bound))


class _Scene:
    def __init__(self, setting: Setting, space: Path, *, keyed: bool, query: str, target: str) -> None:
        self.rows, self.people = setting.scaled(ROWS), setting.scaled(PEOPLE)
        self.rng, self.keyed, self.query = np.random.default_rng(setting.seed), keyed, query
        self.env = ts.TableEnvironment.create(space / "warehouse", engine="duckdb")
        key = ", PRIMARY KEY (id) NOT ENFORCED" if keyed else ""
        options = " WITH ('changelog-producer' = 'lookup', 'bucket' = '2')" if keyed else ""
        self.env.execute_sql(f"CREATE TABLE facts ({COLUMNS}{key}){options}")
        self.env.execute_sql("CREATE TABLE people (id BIGINT NOT NULL, name STRING, level INT, PRIMARY KEY (id) NOT ENFORCED)")
        for name in ("incremental", "whole"):
            self.env.execute_sql(f"CREATE TABLE `{name}` ({target})")
        self._write("facts", self._facts(np.arange(self.rows)))
        self._write("people", self._people(np.arange(self.people)))
        for name in ("facts", "people"):
            self._table(name).compact(full=True)
        self.next = self.rows
        for name in ("incremental", "whole"):
            self._refresh(name, full=True)

    def cases(self) -> list[Case]:
        """The change is made before the incremental refresh, and the whole is computed of the same."""
        return [Case(INCREMENTAL, self._incremental), Case(FULL, partial(self._timed, "whole", full=True))]

    def _incremental(self) -> Sample:
        part = max(self.rows // PART, 1)
        ids = self.rng.choice(self.rows, part, replace=False) if self.keyed else np.arange(self.next, self.next + part)
        self.next += 0 if self.keyed else part
        self._write("facts", self._facts(ids))
        if self.query is JOINED:
            self._write("people", self._people(self.rng.choice(self.people, max(self.people // PART, 1), replace=False)))
        sample = self._timed("incremental", full=False)
        return sample

    def _timed(self, name: str, *, full: bool) -> Sample:
        sample, mode = stopwatch(lambda: self._refresh(name, full=full))
        if mode != ("full" if full else "incremental"):
            raise WrongRows(f"expected a refresh of the {'whole' if full else 'changes'}, found {mode}")
        if full:
            self._check()
        return sample

    def _refresh(self, name: str, *, full: bool) -> str:
        target = self._table(name)
        return refresh(self.env._session, target, self.query, spec=spec_of(self.env.catalog(), target), full=full).mode

    def _check(self) -> None:
        """Both targets hold the same rows, by their number and a sum over all."""
        columns = [name for name in self._table("whole").schema.names if name not in ("name",)]
        sums = ", ".join(f"sum(CAST(`{name}` AS DECIMAL(38, 0)) % 1000003) AS `{name}`" for name in columns)
        found = [
            self.env.execute_sql(f"SELECT count(*) AS `rows`, {sums} FROM `{name}`").to_arrow() for name in ("incremental", "whole")
        ]
        if found[0] != found[1]:
            raise WrongRows(f"the tables differ: {found[0].to_pylist()} and {found[1].to_pylist()}")

    def _facts(self, ids: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> pa.Table:
        count = len(ids)
        columns: dict[str, Callable[[], pa.Array]] = {
            "id": lambda: pa.array(ids, pa.int64()),
            "g": lambda: pa.array(self.rng.integers(0, GROUPS, count), pa.int32()),
            "v": lambda: pa.array(self.rng.integers(0, 1_000_000, count), pa.int64()),
            "person": lambda: pa.array(self.rng.integers(0, self.people, count), pa.int64()),
        }
        return pa.table({name: make() for name, make in columns.items()}).cast(self._table("facts").schema)

    def _people(self, ids: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> pa.Table:
        names = pa.array([f"person {number}" for number in ids.tolist()])
        level = pa.array(self.rng.integers(0, 100, len(ids)), pa.int32())
        return pa.table({"id": pa.array(ids, pa.int64()), "name": names, "level": level}).cast(self._table("people").schema)

    def _table(self, name: str) -> ts.Table:
        return self.env.catalog().table(f"default.{name}")

    def _write(self, name: str, rows: pa.Table) -> None:
        table = self._table(name)
        (table.upsert if table.primary_key else table.append)(rows)
