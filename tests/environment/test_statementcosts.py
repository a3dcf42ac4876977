"""What one statement of one row on DuckDB touches, warm: functions of ours, looks at the table. Counted, not timed.

The bounds are what there is, and a little room. They only go down.
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.io.local import LocalFileStore
from tablestore.sql.query.dialect import Spark4

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


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("statement", "most_functions", "looks"),
    [
        ("UPDATE t SET price = price + 2 WHERE id = {n}", 808, 2),
        ("DELETE FROM t WHERE id = {n}", 783, 2),
        ("INSERT INTO t VALUES ({n}, 2.5, 'y')", 650, 2),
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
    # What its key leaves out costs no look at the other columns; what has columns is computed once, for the rows.
    assert times(found, "FilePruning._value_ranges") <= 1
    assert times(found, "evaluate_expression") <= 1
    # Nothing became bytes that did not leave the process.
    assert times(found, "CommitMessage.to_bytes") == times(found, "encode_task") == 0


def test_an_update_of_python_touches_no_more_functions(env: ts.TableEnvironment) -> None:
    table = env.catalog().table("default.t")
    found = called(lambda number: table.update({"price": "price + 2"}, f"id = {number}"))
    assert len(found) <= 705
    assert times(found, "Snapshots.latest") <= 2


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("statement", "texts", "tokenisations"),
    [
        ("SELECT id, price * {n} AS x FROM t WHERE id = {n}", 1, 3),
        ("INSERT INTO u SELECT id, price + {n}, item FROM t WHERE id = {n}", 2, 6),
        # The values, for their types, and the changed rows.
        ("UPDATE t SET price = price + {n} WHERE id = {n}", 2, 7),
        ("DELETE FROM t WHERE id = {n}", 1, 4),
        ("ALTER MATERIALIZED TABLE m REFRESH", 0, 2),
    ],
    ids=["SELECT", "INSERT SELECT", "UPDATE", "DELETE", "REFRESH"],
)
def test_each_text_of_a_query_is_parsed_once(
    env: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch, statement: str, texts: int, tokenisations: int
) -> None:
    env.execute_sql("CREATE TABLE u (id BIGINT PRIMARY KEY NOT ENFORCED, price DOUBLE, item STRING) WITH ('bucket' = '1')")
    env.execute_sql("CREATE MATERIALIZED TABLE m AS SELECT item, count(*) AS n, sum(price) AS s FROM t GROUP BY item")
    table, parse = env.catalog().table("default.t"), Spark4.Parser.parse
    parsed: list[int] = []

    def counted(self: Spark4.Parser, *arguments: Any) -> Any:
        parsed[-1] += 1
        return parse(self, *arguments)

    monkeypatch.setattr(Spark4.Parser, "parse", counted)

    def run(number: int) -> None:
        table.upsert(pa.table({"id": [number], "price": [number + 0.5], "item": ["a"]}, schema=SCHEMA))
        parsed.append(0)
        result = env.execute_sql(statement.replace("{n}", str(number)))
        if statement.startswith("SELECT"):
            result.to_arrow()

    found = called(run)
    assert min(parsed) <= texts
    assert times(found, "tokenize") <= tokenisations


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    "definition",
    [
        "(PRIMARY KEY (id) NOT ENFORCED) AS SELECT id, price * 2 AS p, item FROM t WHERE price > 0",
        "AS SELECT price * 2 AS p, item FROM t WHERE price > 0",
        "AS SELECT item, count(*) AS n FROM t GROUP BY item",
    ],
    ids=["keyed", "without a key", "groups"],
)
def test_a_refresh_reads_each_snapshot_of_its_source_once_and_its_target_as_often_as_a_commit_must(
    env: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch, definition: str
) -> None:
    env.execute_sql(f"CREATE MATERIALIZED TABLE m {definition}")
    table, read = env.catalog().table("default.t"), LocalFileStore.read
    rounds: list[list[str]] = []

    def counted(self: LocalFileStore, path: str, *arguments: Any, **options: Any) -> bytes:
        rounds[-1].append(f"{self.root_uri}/{path}".partition("default.db/")[2])
        return read(self, path, *arguments, **options)

    def run(number: int) -> None:
        table.upsert(pa.table({"id": [number], "price": [number + 0.5], "item": ["a"]}, schema=SCHEMA))
        rounds.append([])
        monkeypatch.setattr(LocalFileStore, "read", counted)
        env.execute_sql("ALTER MATERIALIZED TABLE m REFRESH")
        monkeypatch.setattr(LocalFileStore, "read", read)

    found = called(run)
    if "GROUP" not in definition:
        # What only chooses and computes rows asks no engine; of the source's files one is new.
        assert times(found, "DirectPlan.change") == 1
        assert times(found, "_read_small_file") == 1
    fewest = min(rounds, key=len)
    assert len(fewest) <= 11, fewest
    # Beside those of the upsert, which are two: of the source one, of the target when the refresh begins and when it commits.
    assert times(found, "Snapshots.latest") <= 2 + 3
    for paths in rounds:
        of_source = [path for path in paths if path.startswith("t/snapshot/snapshot-")]
        assert len(set(of_source)) == len(of_source), paths


def test_a_refresh_of_what_another_process_wrote_reads_what_is_new_of_its_source(
    env: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    env.execute_sql(
        "CREATE MATERIALIZED TABLE m (PRIMARY KEY (id) NOT ENFORCED) AS SELECT id, price * 2 AS p FROM t WHERE price > 0"
    )
    warehouse = Path(env.catalog().table("default.t").location).parents[1]
    other, read = ts.open_catalog(str(warehouse)).table("default.t"), LocalFileStore.read
    rounds: list[list[str]] = []

    def counted(self: LocalFileStore, path: str, *arguments: Any, **options: Any) -> bytes:
        rounds[-1].append(f"{self.root_uri}/{path}".partition("default.db/")[2])
        return read(self, path, *arguments, **options)

    for number in range(WARM_UP + ROUNDS):
        other.upsert(pa.table({"id": [number], "price": [number + 0.5], "item": ["a"]}, schema=SCHEMA))
        rounds.append([])
        monkeypatch.setattr(LocalFileStore, "read", counted)
        env.execute_sql("ALTER MATERIALIZED TABLE m REFRESH")
        monkeypatch.setattr(LocalFileStore, "read", read)
        assert env.execute_sql(f"SELECT p FROM m WHERE id = {number}").to_arrow()["p"].to_pylist() == [2 * number + 1.0]
    fewest = min(rounds[WARM_UP:], key=len)
    # Of the source a list and a manifest, both of the new snapshot.
    assert sum(path.startswith("t/manifest/") for path in fewest) == 2
    assert len(fewest) <= 14, fewest
