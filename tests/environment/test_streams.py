"""Streaming mode on DuckDB: a managed table in FROM is a stream, in micro-batches, each once."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.cdc.deliver.tablesink import SinkNeeds
from tablestore.environment.jobs import Job, JobStatus
from tablestore.environment.streams.microbatches import needs_of_stream
from tablestore.format.snapshot import CommitKind

Rows = list[dict[str, object]]


@pytest.fixture
def env(duck: ts.TableEnvironment) -> Iterator[ts.TableEnvironment]:
    for name, key in (("t", ", PRIMARY KEY (id) NOT ENFORCED"), ("k", ", PRIMARY KEY (id) NOT ENFORCED"), ("a", ""), ("u", "")):
        duck.execute_sql(f"CREATE TABLE {name} (id BIGINT, v STRING{key})")
    duck.execute_sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    duck.execute_sql("INSERT INTO a VALUES (1, 'a'), (2, 'b')")
    duck.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
    yield duck
    duck.execute_sql("RESET 'execution.runtime-mode'")


def table(env: ts.TableEnvironment, name: str) -> ts.Table:
    found = env.catalog().table(f"default.{name}")
    assert isinstance(found, ts.Table)
    return found


def begin(env: ts.TableEnvironment, statement: str) -> Job[ts.Result]:
    job = env.execute_sql(statement).job
    assert job is not None
    return job


def until(job: Job[ts.Result], holds: Callable[[], bool]) -> None:
    """Wait until something holds; a job that ends before has failed."""
    while not holds():
        assert not job.wait(0.01), job.result()


def pairs(env: ts.TableEnvironment, name: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table(env, name).to_arrow().to_pylist())


def changes(env: ts.TableEnvironment, name: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in table(env, name).changes(0).to_arrow().to_pylist()]


def end(job: Job[ts.Result]) -> None:
    job.cancel()
    job.wait()
    assert job.status is JobStatus.CANCELED


def change(kind: str, number: int, value: str) -> pa.Table:
    return pa.table({"_row_kind": [kind], "id": [number], "v": [value]})


def test_an_insert_writes_rows_then_changes_and_goes_on_where_it_was(env: ts.TableEnvironment) -> None:
    statement = "INSERT INTO k SELECT id, upper(v) FROM t WHERE v <> 'gone'"
    job = begin(env, statement)
    until(job, lambda: pairs(env, "k") == [(1, "A"), (2, "B")])
    table(env, "t").upsert([{"id": 1, "v": "x"}])
    until(job, lambda: pairs(env, "k") == [(1, "X"), (2, "B")])
    end(job)
    table(env, "t").write_changes(change("-D", 2, "b"))
    table(env, "t").upsert([{"id": 3, "v": "c"}])
    # The same statement, though it is written in another way.
    again = begin(env, statement.replace(" FROM", "   FROM /* of t */"))
    until(again, lambda: pairs(env, "k") == [(1, "X"), (3, "C")])
    # A row that leaves the filter leaves the table.
    table(env, "t").upsert([{"id": 3, "v": "gone"}])
    until(again, lambda: pairs(env, "k") == [(1, "X")])
    end(again)
    # A compaction has a user of its own.
    snapshots = [one for one in table(env, "k").snapshots() if one.commit_kind is not CommitKind.COMPACT]
    assert len({one.commit_user for one in snapshots}) == 1
    assert [one.commit_identifier for one in snapshots] == list(range(len(snapshots)))


def test_kinds_are_kept(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE log (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('changelog-producer' = 'input')")
    job = begin(env, "INSERT INTO log SELECT id, v FROM t")
    until(job, lambda: len(changes(env, "log")) == 2)
    table(env, "t").upsert([{"id": 1, "v": "x"}])
    table(env, "t").write_changes(change("-D", 2, "b"))
    until(job, lambda: pairs(env, "log") == [(1, "x")])
    end(job)
    kinds = [(kind, number) for kind, number, _ in changes(env, "log")]
    assert kinds in (
        [("+I", 1), ("+I", 2), ("-U", 1), ("+U", 1), ("-D", 2)],
        [("+I", 1), ("+I", 2), ("+U", 1), ("-D", 2)],
    )


def test_a_target_of_another_key_follows_updates(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE by_v (v STRING, id BIGINT, PRIMARY KEY (v) NOT ENFORCED)")
    job = begin(env, "INSERT INTO by_v SELECT v, id FROM t")
    until(job, lambda: pairs(env, "by_v") == [("a", 1), ("b", 2)])
    # Two rows that swap their keys both stay.
    table(env, "t").upsert([{"id": 1, "v": "b"}, {"id": 2, "v": "a"}])
    until(job, lambda: pairs(env, "by_v") == [("a", 2), ("b", 1)])
    table(env, "t").upsert([{"id": 2, "v": "c"}])
    until(job, lambda: pairs(env, "by_v") == [("b", 1), ("c", 2)])
    end(job)


def test_the_beginning_is_that_of_the_table_of_a_hint_or_of_a_consumer(env: ts.TableEnvironment) -> None:
    job = begin(env, "INSERT INTO u SELECT id, 'latest' FROM a /*+ OPTIONS('log.scan' = 'latest') */")
    table(env, "a").append([{"id": 3, "v": "c"}])
    until(job, lambda: pairs(env, "u") == [(3, "latest")])
    end(job)
    since = table(env, "a").snapshots()[-1].time_millis
    hint = f"/*+ OPTIONS('log.scan' = 'from-timestamp', 'log.scan.timestamp-mills' = '{since}') */"
    job = begin(env, f"INSERT INTO u SELECT id, 'since' FROM a {hint}")
    until(job, lambda: (3, "since") in pairs(env, "u"))
    end(job)
    assert (1, "since") not in pairs(env, "u")
    table(env, "a").alter(ts.SetOption("log.scan", "latest"))
    # The consumer stands before the last snapshot.
    for batch in table(env, "a").consume("full", consumer_id="me", follow=False):
        batch.commit()
    table(env, "a").append([{"id": 4, "v": "d"}])
    job = begin(env, "INSERT INTO u SELECT id, 'consumer' FROM a /*+ OPTIONS('consumer-id' = 'me') */")
    until(job, lambda: (4, "consumer") in pairs(env, "u"))
    end(job)
    assert (3, "consumer") not in pairs(env, "u")
    with pytest.raises(ts.InvalidInputError, match="full, latest, from-timestamp"):
        env.execute_sql("INSERT INTO u SELECT id, v FROM a /*+ OPTIONS('log.scan' = 'soon') */")


def test_views_and_unions(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TEMPORARY VIEW w (number, text) AS SELECT id, concat(v, '!') FROM a WHERE id < 10")
    env.execute_sql("CREATE TABLE more (id BIGINT, v STRING)")
    job = begin(env, "INSERT INTO u SELECT * FROM w UNION ALL (SELECT id, n FROM (SELECT *, concat(v, '?') AS n FROM more) AS q)")
    until(job, lambda: pairs(env, "u") == [(1, "a!"), (2, "b!")])
    table(env, "more").append([{"id": 3, "v": "c"}])
    table(env, "a").append([{"id": 4, "v": "d"}, {"id": 40, "v": "d"}])
    until(job, lambda: pairs(env, "u") == [(1, "a!"), (2, "b!"), (3, "c?"), (4, "d!")])
    end(job)
    # It knows where it was in each of them.
    table(env, "more").append([{"id": 5, "v": "e"}])
    job = begin(env, "INSERT INTO u SELECT * FROM w UNION ALL (SELECT id, n FROM (SELECT *, concat(v, '?') AS n FROM more) AS q)")
    until(job, lambda: pairs(env, "u") == [(1, "a!"), (2, "b!"), (3, "c?"), (4, "d!"), (5, "e?")])
    end(job)


def test_rows_are_looked_up_as_of_each_batch(env: ts.TableEnvironment) -> None:
    job = begin(env, "INSERT INTO u SELECT a.id, t.v FROM a LEFT JOIN t FOR SYSTEM_TIME AS OF now() ON a.id = t.id")
    until(job, lambda: pairs(env, "u") == [(1, "a"), (2, "b")])
    table(env, "t").upsert([{"id": 3, "v": "new"}])
    table(env, "a").append([{"id": 3, "v": ""}, {"id": 1, "v": ""}])
    until(job, lambda: pairs(env, "u") == [(1, "a"), (1, "a"), (2, "b"), (3, "new")])
    end(job)


def test_a_statement_set_is_one_job(env: ts.TableEnvironment) -> None:
    job = begin(env, "EXECUTE STATEMENT SET BEGIN INSERT INTO u SELECT id, v FROM a; INSERT INTO k SELECT * FROM t; END")
    until(job, lambda: pairs(env, "u") == pairs(env, "k") == [(1, "a"), (2, "b")])
    end(job)
    env.execute_sql("SET 'pipeline.name' = 'nightly'")
    with pytest.raises(ts.InvalidInputError, match="go on by the same name"):
        env.execute_sql("EXECUTE STATEMENT SET BEGIN INSERT INTO u SELECT id, v FROM a; INSERT INTO u SELECT 1, v FROM a; END")
    job = begin(env, "INSERT INTO u SELECT id + 10, v FROM a")
    until(job, lambda: (12, "b") in pairs(env, "u"))
    assert table(env, "u").snapshots()[-1].commit_user == "stream:nightly"
    end(job)
    # Under the name another query goes on.
    table(env, "a").append([{"id": 3, "v": "c"}])
    job = begin(env, "INSERT INTO u SELECT id + 20, v FROM a")
    until(job, lambda: (23, "c") in pairs(env, "u"))
    assert (22, "b") not in pairs(env, "u")
    end(job)
    env.execute_sql("RESET 'pipeline.name'")


def test_create_table_as_makes_the_table_and_streams_into_it(env: ts.TableEnvironment) -> None:
    job = begin(env, "CREATE TABLE made (PRIMARY KEY (id) NOT ENFORCED) AS SELECT id, v FROM t")
    until(job, lambda: pairs(env, "made") == [(1, "a"), (2, "b")])
    end(job)
    table(env, "t").upsert([{"id": 1, "v": "x"}])
    # An INSERT of the same query goes on behind it.
    job = begin(env, "INSERT INTO made SELECT id, v FROM t")
    until(job, lambda: pairs(env, "made") == [(1, "x"), (2, "b")])
    end(job)
    assert len({one.commit_user for one in table(env, "made").snapshots()}) == 1


def test_a_source_that_was_overwritten_ends_the_job_with_the_way_out(env: ts.TableEnvironment) -> None:
    job = begin(env, "INSERT INTO u SELECT 7 AS id, 'x' AS v FROM a")
    until(job, lambda: pairs(env, "u") == [(7, "x"), (7, "x")])
    assert "a stream from snapshot 1 on, log.scan = full" in str(env.execute_sql("EXPLAIN INSERT INTO u SELECT * FROM a").text)
    table(env, "a").overwrite([{"id": 9, "v": "z"}])
    with pytest.raises(ts.NotFoundError, match="empty the target, and run the statement under another name") as ended:
        job.result(60)
    assert ended.value.kind == "discontinuity" and "on_discontinuity" not in str(ended.value)


def test_a_source_that_gets_a_column_is_followed(env: ts.TableEnvironment) -> None:
    job = begin(env, "INSERT INTO k SELECT * FROM t")
    until(job, lambda: len(pairs(env, "k")) == 2)
    table(env, "t").alter(ts.AddColumn("w", "INT"))
    table(env, "t").upsert([{"id": 3, "v": "c", "w": 7}])
    until(job, lambda: pairs(env, "k") == [(1, "a"), (2, "b"), (3, "c")])
    end(job)


@pytest.mark.deep_after(7)
@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT count(*), 'x' FROM a", r"it has an aggregate \(count\)"),
        ("SELECT id, v FROM a GROUP BY id, v", "it has a GROUP BY"),
        ("SELECT DISTINCT id, v FROM a", "it has a DISTINCT"),
        ("SELECT id, max(v) OVER (PARTITION BY id) FROM a", "it has a window function"),
        ("SELECT a.id, b.v FROM a JOIN a AS b ON a.id = b.id", "it joins two streams"),
        ("SELECT id, v FROM a ORDER BY id LIMIT 3", "it has a LIMIT"),
        ("SELECT id, v FROM a ORDER BY id", "it has an ORDER BY"),
        ("SELECT id, v FROM a UNION SELECT id, v FROM a", "UNION that compares rows"),
        ("SELECT id, v FROM a UNION ALL SELECT 1, 'x'", "a side of its UNION ALL reads no stream"),
        ("SELECT id, v FROM a WHERE id IN (SELECT id FROM t)", "a subquery of it"),
        ("SELECT id, v FROM t VERSION AS OF 1 WHERE id IN (SELECT id FROM a)", "a subquery of it"),
        ("SELECT t.id, a.v FROM t TIMESTAMP AS OF now() LEFT JOIN a ON t.id = a.id", "LEFT JOIN"),
    ],
)
def test_a_query_with_state_is_refused_by_name_with_what_to_do(env: ts.TableEnvironment, query: str, reason: str) -> None:
    for statement in (query, f"INSERT INTO u {query}"):
        with pytest.raises(ts.UnsupportedError, match=reason) as refused:
            env.execute_sql(statement)
        assert refused.value.kind == "streaming"
        assert "CREATE MATERIALIZED TABLE" in str(refused.value)
        assert "spark" in str(refused.value)


def test_other_refusals(env: ts.TableEnvironment) -> None:
    for statement, message in (
        ("SELECT 1", "reads no stream, so it would end"),
        ("INSERT INTO u VALUES (1, 'a')", "reads no stream, so it would end"),
        ("SELECT * FROM a VERSION AS OF 1", "reads no stream, so it would end"),
        ("INSERT INTO a SELECT * FROM a", "written with its own changes"),
        ("INSERT INTO u SELECT * FROM t", "write into a table WITH a PRIMARY KEY"),
        ("SELECT a.id FROM a UNION ALL SELECT id FROM a /*+ OPTIONS('log.scan' = 'latest') */", "from two places"),
    ):
        with pytest.raises(ts.UnsupportedError, match=message) as refused:
            env.execute_sql(statement)
        assert refused.value.kind == "streaming"


def test_streams_are_planned_in_sparks_words(env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.UnsupportedError, match=r"SET 'table\.sql-dialect' = 'spark'") as refused:
        env.execute_sql("FROM a", sql_dialect="duckdb")
    assert refused.value.kind == "streaming"


def test_a_select_gives_rows_and_then_changes_until_it_is_canceled(env: ts.TableEnvironment) -> None:
    result = env.execute_sql("SELECT id, upper(v) AS v FROM t WHERE id > 0")
    assert result.is_endless
    with pytest.raises(ts.InvalidInputError, match="has no last row"):
        result.to_arrow()
    batches = result.to_reader()
    assert batches.schema.names == ["_row_kind", "id", "v"]
    assert batches.read_next_batch().to_pylist() == [
        {"_row_kind": "+I", "id": 1, "v": "A"},
        {"_row_kind": "+I", "id": 2, "v": "B"},
    ]
    table(env, "t").upsert([{"id": 1, "v": "x"}])
    table(env, "t").write_changes(change("-D", 2, "b"))
    seen = [row for _ in range(2) for row in batches.read_next_batch().to_pylist()]
    assert [tuple(row.values()) for row in seen] == [("-U", 1, "A"), ("+U", 1, "X"), ("-D", 2, "B")]
    result.cancel()
    assert list(batches) == []


def test_a_select_under_a_consumer_goes_on_where_it_stands(env: ts.TableEnvironment) -> None:
    query = "SELECT id FROM a /*+ OPTIONS('consumer-id' = 'me') */"
    result = env.execute_sql(query)
    batches = result.to_reader()
    assert batches.read_next_batch().num_rows == 2
    table(env, "a").append([{"id": 3, "v": "c"}])
    assert batches.read_next_batch().column("id").to_pylist() == [3]
    result.cancel()
    # The last batch counts as done when the next one is asked for.
    assert list(batches) == []
    table(env, "a").append([{"id": 4, "v": "d"}])
    assert env.execute_sql(query).to_reader().read_next_batch().column("id").to_pylist() == [4]


@pytest.mark.deep
def test_a_select_holds_one_batch_at_a_time(env: ts.TableEnvironment) -> None:
    most = 0
    for place in range(20):
        table(env, "a").append(pa.table({"id": range(50_000), "v": [str(place)] * 50_000}))
    result = env.execute_sql("SELECT id, v FROM a WHERE id >= 0")
    before, rows = pa.total_allocated_bytes(), 0
    for batch in result.to_reader():
        rows += batch.num_rows
        most = max(most, pa.total_allocated_bytes() - before)
        if rows >= 1_000_000:
            result.cancel()
    assert rows == 1_000_002
    # All rows are some 30 MB.
    assert most < 15_000_000


def test_a_stream_into_a_table_of_the_same_key_needs_no_rows_before_updates(
    env: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs: list[SinkNeeds] = []

    def noted(*args: Any) -> SinkNeeds:
        needs.append(needs_of_stream(*args))
        return needs[-1]

    monkeypatch.setattr("tablestore.environment.streams.microbatches.needs_of_stream", noted)
    env.execute_sql("CREATE TABLE by_v (v STRING, id BIGINT, PRIMARY KEY (v) NOT ENFORCED)")
    for statement in ("INSERT INTO k SELECT id, upper(v) FROM t", "INSERT INTO by_v SELECT v, id FROM t"):
        end(begin(env, statement))
    assert needs == [SinkNeeds(), SinkNeeds(pairs=True, whole_snapshots=True)]
