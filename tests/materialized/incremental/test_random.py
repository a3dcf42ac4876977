"""Incremental = full: after each random batch of changes every target holds exactly the rows of its query.

Where the query fails so does the refresh, and the target keeps its rows; where it does not, no refresh fails either.
"""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tests.materialized.incremental.mayfail import MAY_FAIL, change_with_bad_rows, create_may_fail
from tests.materialized.incremental.shapes import SHAPES, change_sources, create, refreshed


def bag(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows by their values; NaN is itself, and the zeros are equal."""
    return Counter(tuple("nan" if value != value else value for value in row.values()) for row in rows.to_pylist())


def check(env: ts.TableEnvironment, seed: int, batches: int, names: list[str], *, at_once: int | None = None) -> Counter[str]:
    """Run batches; how often each mode was used.

    ``at_once``: so many targets are refreshed and compared after a batch, by default all. Each has its turn for as many batches in
    a row, and lags behind until its next one.
    """
    rng, modes = random.Random(seed), Counter[str]()
    create(env, names)
    for name in names:
        refreshed(env, name)
    turns = rng.sample(names, len(names))
    for batch in range(batches):
        change_sources(env, rng)
        for name in (turns[(batch + place) % len(turns)] for place in range(at_once or len(turns))):
            report = refreshed(env, name)
            modes[report.mode] += 1
            found = bag(env.catalog().table(f"default.mt_{name}").scan().to_arrow())
            wanted = bag(env.execute_sql(SHAPES[name].query).to_arrow())
            assert found == wanted, (
                f"seed {seed}, batch {batch}, {name}, {report}: {found - wanted} too many, {wanted - found} too few"
            )
            assert report.mode != "full", f"seed {seed}, batch {batch}, {name}: {report}"
    return modes


_WHY_FULL = ("it is the first refresh", "replaced rows without naming them")


def check_may_fail(env: ts.TableEnvironment, seed: int, batches: int) -> Counter[str]:
    """Run batches of rows that some queries fail on; how often each mode was used, and ``failed``."""
    rng, modes = random.Random(seed), Counter[str]()
    create_may_fail(env)
    for batch in range(batches):
        change_with_bad_rows(env, rng)
        for name, shape in MAY_FAIL.items():
            where, target = f"seed {seed}, batch {batch}, {name}", env.catalog().table(f"default.mt_{name}")
            before = bag(target.scan().to_arrow())
            try:
                rows = env.execute_sql(shape.query).to_arrow()
                wanted = bag(rows.rename_columns(target.schema.names).cast(target.schema))
            except ValueError:  # Also where a column of the target does not take a value.
                with pytest.raises(ts.InvalidInputError):
                    refreshed(env, name, shape.query)
                wanted = before
                modes["failed"] += 1
            else:
                report = refreshed(env, name, shape.query)
                modes[report.mode] += 1
                # Rows of one source meet those of another that they never were beside, but none that came and went.
                whys = (*_WHY_FULL, "the query over the changes failed")[: None if "JOIN" in shape.query else 2]
                assert report.mode != "full" or any(why in str(report.reason) for why in whys), f"{where}: {report}"
            found = bag(env.catalog().table(f"default.mt_{name}").scan().to_arrow())
            assert found == wanted, f"{where}: {found - wanted} too many, {wanted - found} too few"
    return modes


@pytest.mark.deep
@pytest.mark.parametrize("seed", [899])
def test_every_shape_equals_its_query_after_each_of_two_batches(seed: int, duck: ts.TableEnvironment) -> None:
    modes = check(duck, seed, 2, list(SHAPES))
    assert len(SHAPES) >= 20 and modes["incremental"] == 2 * len(SHAPES)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_every_shape_equals_its_query_after_each_of_fifty_batches(seed: int, tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as env:
        modes = check(env, 100 + seed, 50, list(SHAPES), at_once=8)
    assert modes.total() == 400 and modes["incremental"] > modes["none"]


@pytest.mark.deep
@pytest.mark.parametrize("seed", [17])
def test_only_what_the_whole_query_fails_on_fails_a_refresh(seed: int, duck: ts.TableEnvironment) -> None:
    modes = check_may_fail(duck, seed, 5)
    assert modes["incremental"] > modes["full"] and modes["failed"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_only_what_the_whole_query_fails_on_fails_any_of_forty_refreshes(seed: int, duck: ts.TableEnvironment) -> None:
    modes = check_may_fail(duck, 200 + seed, 40)
    assert modes["incremental"] > modes["full"] and modes["failed"]
