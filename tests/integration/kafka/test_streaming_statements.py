"""Statements in streaming mode over tables whose changes are in a topic: each change lands once, on a real broker."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.environment.jobs import Job
from tablestore.testing.kafka import KafkaBroker

KEY = ", PRIMARY KEY (id) NOT ENFORCED"


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return "streamed-" + "".join(c if c.isalnum() else "-" for c in request.node.name)


@pytest.fixture
def env(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as env:
        yield env


def make(env: ts.TableEnvironment, name: str, key: str, topic: str, broker: KafkaBroker, **options: str) -> ts.Table:
    """A table with a topic. Options are written with _ for their dots and dashes."""
    named = {
        "bucket": "2" if key else "-1",
        "log.system": "kafka",
        "log.kafka.bootstrap.servers": broker.servers,
        "log.kafka.topic": topic,
        **options,
    }
    listed = ", ".join(f"'{option}' = '{value}'" for option, value in named.items())
    env.execute_sql(f"CREATE TABLE {name} (id BIGINT, v STRING{key}) WITH ({listed})")
    return table(env, name)


def table(env: ts.TableEnvironment, name: str) -> ts.Table:
    found = env.catalog().table(f"default.{name}")
    assert isinstance(found, ts.Table)
    return found


def pairs(env: ts.TableEnvironment, name: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table(env, name).to_arrow().to_pylist())


def changes(kinds: str, ids: list[int], text: str) -> pa.Table:
    return pa.table({"_row_kind": kinds.split(), "id": ids, "v": [f"{text}{number}" for number in ids]})


@contextmanager
def streaming(env: ts.TableEnvironment, statement: str) -> Iterator[Callable[[Callable[[], bool]], None]]:
    """Runs a statement in streaming mode; what is given waits until something holds."""
    env.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
    try:
        job: Job[ts.Result] | None = env.execute_sql(statement).job
    finally:
        env.execute_sql("RESET 'execution.runtime-mode'")
    assert job is not None

    def until(holds: Callable[[], bool]) -> None:
        while not holds():
            assert not job.wait(0.02), job.result()

    yield until
    job.cancel()
    job.wait()


def unpublished(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is committed from now on, nobody publishes."""
    monkeypatch.setattr("tablestore.log.publishedlog.PublishedLog.after_commit", lambda *_: None)


CASES = [
    pytest.param("", {}, id="append"),
    pytest.param("", {"log.format": "json"}, id="append-json", marks=pytest.mark.slow),
    pytest.param("", {"log.format": "avro"}, id="append-avro", marks=pytest.mark.slow),
    pytest.param(KEY, {}, id="keyed", marks=pytest.mark.slow),
    pytest.param(KEY, {"log.format": "json"}, id="keyed-json", marks=pytest.mark.slow),
    pytest.param(KEY, {"log.format": "avro"}, id="keyed-avro"),
    pytest.param(KEY, {"log.changelog-mode": "all", "changelog-producer": "lookup"}, id="keyed-all"),
    pytest.param(KEY, {"log.consistency": "eventual"}, id="keyed-eventual"),
]
QUERY = "SELECT id, upper(v) AS v FROM s WHERE id % 5 <> 0"


@pytest.mark.deep
@pytest.mark.parametrize(("key", "options"), CASES)
def test_an_insert_follows_a_topic_and_goes_on_where_it_was(
    env: ts.TableEnvironment, broker: KafkaBroker, topic: str, monkeypatch: pytest.MonkeyPatch, key: str, options: dict[str, str]
) -> None:
    source = make(env, "s", key, topic, broker, **options)
    make(env, "k", key, f"{topic}-target", broker)
    chance, counter = random.Random(3), iter(range(10**6))

    def write() -> None:
        for _ in range(2):
            ids = [next(counter) % 40 if key else next(counter) for _ in range(chance.randrange(1, 12))]
            kinds = " ".join("-D" if key and chance.random() < 0.3 else "+I" for _ in ids)
            source.write_changes(changes(kinds, ids, f"v{chance.random():.3f}-"))

    def same() -> bool:
        expected = sorted(tuple(row.values()) for row in env.execute_sql(QUERY).to_arrow().to_pylist())
        return pairs(env, "k") == expected

    write()
    for _ in range(2):
        with streaming(env, f"INSERT INTO k {QUERY}") as until:
            write()
            until(same)
            with monkeypatch.context() as m:
                # A publisher that is dead, and comes back.
                unpublished(m)
                write()
                until(same)
            write()
            until(same)
        write()
        source.compact(full=True)
        source.expire_snapshots(retain_max=1, retain_min=1)
        assert not same()
    check_target(env, key)


def check_target(env: ts.TableEnvironment, key: str) -> None:
    """The commits of the stream follow each other, and the topic of the target says what the table holds."""
    target = table(env, "k")
    numbers = [one.commit_identifier for one in target.snapshots() if (one.commit_user or "").startswith("stream:")]
    assert numbers == list(range(len(numbers)))
    said = [row for batch in target.consume("from-timestamp", timestamp=0, follow=False) for row in batch.rows.to_pylist()]
    state = {row["id"]: None if row["_row_kind"] == "-D" else row["v"] for row in said}
    assert sorted((number, v) for number, v in state.items() if v is not None) == pairs(env, "k")
    assert key or len(said) == len(pairs(env, "k"))


@pytest.mark.deep
@pytest.mark.parametrize("mode", ["all", "upsert"])
def test_a_target_of_another_key_takes_whole_snapshots(
    env: ts.TableEnvironment, broker: KafkaBroker, topic: str, mode: str
) -> None:
    producer = {"changelog-producer": "lookup"} if mode == "all" else {}
    source = make(env, "s", KEY, topic, broker, **{"log.changelog-mode": mode, **producer})
    env.execute_sql("CREATE TABLE by_v (v STRING, id BIGINT, PRIMARY KEY (v) NOT ENFORCED)")
    source.upsert([{"id": number, "v": f"v{number}"} for number in range(8)])
    query = "SELECT v, id FROM s"

    def same() -> bool:
        return pairs(env, "by_v") == sorted(tuple(row.values()) for row in env.execute_sql(query).to_arrow().to_pylist())

    with streaming(env, f"INSERT INTO by_v {query}") as until:
        until(same)
    # Rows that swap what is their key there, several times over, in both buckets, before the stream sees any of it.
    for step in range(4):
        source.upsert([{"id": number, "v": f"v{(number + 3 * step) % 8}"} for number in range(8)])
    source.delete("id = 3")
    with streaming(env, f"INSERT INTO by_v {query}") as until:
        until(same)


@pytest.mark.deep
def test_the_beginning_is_that_of_a_hint_or_of_a_consumer(env: ts.TableEnvironment, broker: KafkaBroker, topic: str) -> None:
    source = make(env, "s", KEY, topic, broker)
    env.execute_sql(f"CREATE TABLE u (id BIGINT, v STRING{KEY})")
    source.upsert([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    insert = "INSERT INTO u SELECT id, concat('{}', v) FROM s /*+ OPTIONS({}) */"
    with streaming(env, insert.format("latest-", "'log.scan' = 'latest'")) as until:
        source.upsert([{"id": 3, "v": "c"}])
        until(lambda: pairs(env, "u") == [(3, "latest-c")])
    since = source.refresh().snapshots()[-1].time_millis
    source.upsert([{"id": 4, "v": "d"}])
    # What the table's snapshots no longer reach, the topic still has.
    source.change_log.publish(look=True)
    (ended,) = [one.id for one in source.consumers() if one.id.startswith("stream-")]
    source.delete_consumer(ended)
    source.expire_snapshots(retain_min=1, retain_max=1)
    assert len(source.refresh().snapshots()) == 1
    hint = f"'log.scan' = 'from-timestamp', 'log.scan.timestamp-mills' = '{since}'"
    with streaming(env, insert.format("since-", hint)) as until:
        until(lambda: pairs(env, "u") == [(3, "since-c"), (4, "since-d")])
    for batch in source.consume("full", consumer_id="me", follow=False):
        batch.commit()
    source.upsert([{"id": 5, "v": "e"}])
    with streaming(env, insert.format("me-", "'consumer-id' = 'me'")) as until:
        until(lambda: pairs(env, "u") == [(3, "since-c"), (4, "since-d"), (5, "me-e")])


@pytest.mark.deep
@pytest.mark.parametrize("consistency", ["transactional", "eventual"])
def test_a_select_gives_each_change_that_landed_once(
    env: ts.TableEnvironment, broker: KafkaBroker, topic: str, consistency: str
) -> None:
    source = make(env, "s", KEY, topic, broker, **{"log.consistency": consistency})
    source.upsert([{"id": number, "v": "a"} for number in range(6)])
    env.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
    query = "SELECT id, v FROM s /*+ OPTIONS('consumer-id' = 'me') */"
    seen: list[tuple[object, ...]] = []
    for step in range(3):
        result, wanted = env.execute_sql(query), 6 + 7 * step
        batches = result.to_reader()
        while len(seen) < wanted:
            seen += [tuple(row.values()) for row in batches.read_next_batch().to_pylist()]
        result.cancel()
        # The last batch counts as done when the next one is asked for.
        assert list(batches) == []
        with source.new_writer() as writer:
            # Of an eventual table it is in the topic, and taken back by the next publisher.
            writer.write(pa.table({"id": [99], "v": ["never"]}))
        source.upsert([{"id": number, "v": f"s{step}"} for number in range(6)])
        source.delete("id = 5")
    kept = [(number, v) for kind, number, v in seen if kind != "-D"]
    assert sorted(kept) == sorted(
        [*((number, "a") for number in range(6)), *((n, f"s{step}") for n in range(6) for step in range(2))]
    )
    assert [number for kind, number, _ in seen if kind == "-D"] == [5, 5]


@pytest.mark.deep
@pytest.mark.slow
def test_a_statement_set_over_topics_goes_on_while_the_broker_is_down(
    env: ts.TableEnvironment, own_broker: KafkaBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tablestore_kafka.slot._COMMIT_TRY_S", 1.0)
    monkeypatch.setattr("tablestore_kafka.logstore.CALL_TIMEOUT_S", 1.0)
    source = make(env, "s", KEY, topic, own_broker, **{"log.kafka.socket.timeout.ms": "2000"})
    added = make(env, "a", "", f"{topic}-a", own_broker, **{"log.kafka.socket.timeout.ms": "2000"})
    env.execute_sql(f"CREATE TABLE k (id BIGINT, v STRING{KEY})")
    env.execute_sql("CREATE TABLE u (id BIGINT, v STRING)")

    def write(number: int) -> None:
        source.upsert([{"id": number % 3, "v": f"v{number}"}])
        added.append([{"id": number, "v": "x"}])

    def same() -> bool:
        return all(pairs(env, target) == pairs(env, origin) for target, origin in (("k", "s"), ("u", "a")))

    write(0)
    statement = "EXECUTE STATEMENT SET BEGIN INSERT INTO k SELECT * FROM s; INSERT INTO u SELECT * FROM a; END"
    with streaming(env, statement) as until:
        write(1)
        until(same)
        own_broker.kill()
        for number in range(2, 5):
            write(number)
        until(same)
        own_broker.start()
        write(5)
        until(same)
