"""The walk through the code (docs/explanation/tour.md) names the functions that are called, in their order."""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import tablestore as ts

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "tour.md").read_text()
STEP = re.compile(r"^\| [^|]+ \| `([\w/]+\.py)` \| `([\w.]+)` \|$", re.MULTILINE)


def steps(heading: str) -> list[tuple[str, str]]:
    """The steps of one call, as files and functions."""
    (section,) = (part for part in PAGE.split("\n## ") if part.startswith(heading))
    return STEP.findall(section)


def called(run: Callable[[], object]) -> list[tuple[str, str]]:
    """The functions of ours that a call reaches in its thread, each where it is first called."""
    functions: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            file = Path(code.co_filename)
            if file.is_relative_to(ROOT):
                functions.setdefault((str(file.relative_to(ROOT)), code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return list(functions)


@pytest.fixture
def env(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    pytest.importorskip("duckdb")
    with ts.TableEnvironment.create(tmp_path, engine="duckdb") as env:
        env.execute_sql("CREATE TABLE t (id BIGINT, x BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1')")
        env.execute_sql("INSERT INTO t VALUES (1, 1), (2, 2)")
        # What is remembered of a table is looked up once.
        env.execute_sql("UPDATE t SET x = x + 1 WHERE id = 1")
        yield env


DIRECT, QUERIED = "UPDATE t SET x = x + 2 WHERE id = 2", "UPDATE t SET x = pmod(x, 3) WHERE id = 2"


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("call", ["`table.upsert(rows)`", f"`{DIRECT}`", f"`{QUERIED}`"])
def test_a_call_goes_the_way_that_the_tour_says(env: ts.TableEnvironment, call: str) -> None:
    table = env.catalog().table("default.t")
    table.upsert([{"id": 2, "x": 2}])
    runs: dict[str, Callable[[], object]] = {
        "`table.upsert(rows)`": lambda: table.upsert([{"id": 1, "x": 5}]),
        f"`{DIRECT}`": lambda: env.execute_sql(DIRECT),
        f"`{QUERIED}`": lambda: env.execute_sql(QUERIED),
    }
    named, order = steps(call), called(runs[call])
    assert len(named) > 10
    assert [step for step in named if step not in order] == [], "the tour names what is not called"
    assert named == sorted(named, key=order.index)
