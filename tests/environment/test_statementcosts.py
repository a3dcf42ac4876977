"""What one statement of one row on DuckDB touches, warm: functions of ours, looks at the table. Counted, not timed.

The bounds are what there is, and a little room. They only go down.
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("price", pa.float64()), ("item", pa.string())])
OURS = (Path(ts.__file__).parent, Path(__file__).parents[2] / "connectors")
WARM_UP, ROUNDS = 5, 6
Called = Counter[str]


@pytest.fixture
def env(duck: ts.TableEnvironment) -> ts.TableEnvironment:
    duck.execute_sql("CREATE TABLE t (id BIGINT PRIMARY KEY NOT ENFORCED, price DOUBLE, item STRING) WITH ('bucket' = '1')")
    table = duck.catalog().table("default.t")
    table.upsert(pa.table({"id": range(100), "price": [0.5] * 100, "item": ["a"] * 100}, schema=SCHEMA))
    return duck


def called(run: Callable[[int], object]) -> Called:
    """How often a call calls each function of ours, in all threads; of some rounds, the one with the fewest: others compact."""
    prefixes = tuple(f"{place}/" for place in OURS)
    counted: Called = Counter()

    def count(frame: object, event: str, _argument: object) -> None:
        code = frame.f_code  # type: ignore[attr-defined]
        if event == "call" and code.co_filename.startswith(prefixes):
            counted[f"{code.co_filename}:{code.co_qualname}"] += 1

    for number in range(WARM_UP):
        run(number)
    rounds: list[Called] = []
    before = sys.getprofile()
    for number in range(WARM_UP, WARM_UP + ROUNDS):
        counted = Counter()
        threading.setprofile(count)
        sys.setprofile(count)
        try:
            run(number)
        finally:
            sys.setprofile(before)
            threading.setprofile(None)
        rounds.append(counted)
    return min(rounds, key=len)


def times(found: Called, name: str) -> int:
    return sum(count for function, count in found.items() if function.endswith(f":{name}"))


@pytest.mark.parametrize(
    ("statement", "most_functions", "looks"),
    [
        ("UPDATE t SET price = price + 2 WHERE id = {n}", 800, 2),
        ("DELETE FROM t WHERE id = {n}", 780, 2),
        ("INSERT INTO t VALUES ({n}, 2.5, 'y')", 640, 2),
    ],
    ids=["UPDATE", "DELETE", "INSERT"],
)
def test_a_statement_of_one_row_touches_no_more_functions_and_looks_at_its_table_once(
    env: ts.TableEnvironment, statement: str, most_functions: int, looks: int
) -> None:
    found = called(lambda number: env.execute_sql(statement.replace("{n}", str(number))))
    assert len(found) <= most_functions
    # Its name is looked up once, and no task opens it again.
    assert times(found, "Session.find") == 1
    assert times(found, "open_context") == 0
    # When it begins, and when it commits.
    assert times(found, "Snapshots.latest") <= looks
    # Nothing became bytes that did not leave the process.
    assert times(found, "CommitMessage.to_bytes") == times(found, "encode_task") == 0


def test_an_update_of_python_touches_no_more_functions(env: ts.TableEnvironment) -> None:
    table = env.catalog().table("default.t")
    found = called(lambda number: table.update({"price": "price + 2"}, f"id = {number}"))
    assert len(found) <= 700
    assert times(found, "Snapshots.latest") <= 2
