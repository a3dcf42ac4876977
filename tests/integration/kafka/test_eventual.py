"""Tables with log.consistency = eventual: rows are seen while they are written, and everybody ends with what the table holds."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.early import (
    CLOCK,
    Follower,
    make,
    told,
    upsert_elsewhere,
    wait_for_commits,
    write_and_hang,
    write_at_random,
)
from tests.integration.kafka.endurance import PROCESSES, content, rows
from tests.support.commandline import run_command


@pytest.fixture
def table(tmp_path: Path, broker: KafkaBroker, request: pytest.FixtureRequest) -> ts.Table:
    topic = "".join(c if c.isalnum() else "-" for c in request.node.name)
    return make(tmp_path, broker, topic, **{"write-only": "true"})


def check(table: ts.Table, servers: str, *followers: Follower) -> None:
    """Plain consumers of either kind have what the table holds, and so has who follows it."""
    expected = content(table)
    assert told(table, servers) == expected
    assert told(table, servers, "read_committed") == expected
    for follower in followers:
        follower.sees(expected)


def check_all(table: ts.Table, servers: str, *followers: Follower) -> None:
    """The same, and whoever begins now; and the log is in order."""
    late = Follower(table)
    late.start()
    check(table, servers, *followers, late)
    assert table.change_log.verify().problems == ()


@pytest.mark.deep
def test_rows_are_seen_before_their_snapshot_and_only_once(table: ts.Table, broker: KafkaBroker) -> None:
    follower = Follower(table)
    follower.start()
    with table.new_writer() as writer:
        writer.write(rows([1, 2, 3], "a"))
        assert told(table, broker.servers) == {1: "a1", 2: "a2", 3: "a3"}
        assert table.snapshots() == ()
        writer.delete(pa.table({"id": [3]}))
        assert told(table, broker.servers) == {1: "a1", 2: "a2"}
        writer.commit()
    check(table, broker.servers, follower)
    assert sorted(seen for seen in follower.seen if seen[0] == "+I" and seen[1] < 3) == [("+I", 1, "a1"), ("+I", 2, "a2")]


def test_the_engines_reader_hands_out_early_rows_and_leaves_out_their_change(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    with table.new_writer() as writer:
        reading = table.consume(stop=lambda: False)
        assert next(reading).in_frame
        writer.write(rows([1], "b"))
        early = next(reading)
        assert (early.rows.to_pylist(), early.snapshot_id) == ([{"_row_kind": "+I", "id": 1, "v": "b1"}], 1)
        writer.commit()
        writer.write(rows([2], "c"))
        assert next(reading).rows.to_pylist() == [{"_row_kind": "+I", "id": 2, "v": "c2"}]
        writer.commit()


@pytest.mark.deep
def test_a_write_that_is_given_up_is_taken_back(table: ts.Table, broker: KafkaBroker) -> None:
    table.upsert(rows([1, 2], "a"))
    follower = Follower(table)
    follower.start()
    with table.new_writer() as writer:
        writer.write(rows([2, 3], "phantom"))
        writer.delete(pa.table({"id": [1]}))
        assert told(table, broker.servers) == {2: "phantom2", 3: "phantom3"}
    assert content(table) == {1: "a1", 2: "a2"}
    check_all(table, broker.servers, follower)


@pytest.mark.deep
def test_the_first_write_of_a_table_is_taken_back_too(table: ts.Table, broker: KafkaBroker) -> None:
    with table.new_writer() as writer:
        writer.write(rows([1], "phantom"))
    assert told(table, broker.servers) == {}
    table.close()
    assert [report.records for report in table.change_log.publish()] == [0], "what is taken back is taken back once"
    table.upsert(rows([2], "a"))
    check(table, broker.servers)


@pytest.mark.deep
def test_a_commit_that_is_refused_is_taken_back(table: ts.Table, broker: KafkaBroker) -> None:
    with table.new_writer("etl") as writer:
        writer.write(rows([1], "a"))
        writer.commit(identifier=1)
        writer.write(rows([1, 2], "refused"))
        with pytest.raises(ts.TablestoreError):
            writer.commit()
    assert content(table) == {1: "a1"}
    check(table, broker.servers)


@pytest.mark.deep
def test_a_replay_is_taken_back_where_the_table_has_moved_on(table: ts.Table, broker: KafkaBroker) -> None:
    with table.new_writer("etl") as writer:
        writer.write(rows([1, 2], "a"))
        writer.commit(identifier=1)
    table.upsert(rows([1], "b"))
    with table.new_writer("etl") as writer:
        writer.write(rows([1, 2], "a"))
        assert told(table, broker.servers) == {1: "a1", 2: "a2"}
        writer.commit(identifier=1)
    assert content(table) == {1: "b1", 2: "a2"}
    check(table, broker.servers)


@pytest.mark.deep
def test_rows_of_a_writer_that_was_killed_are_taken_back_by_the_next_publisher(table: ts.Table, broker: KafkaBroker) -> None:
    table.upsert(rows([1, 2], "a"))
    table.close()
    follower = Follower(table)
    follower.start()
    writer = PROCESSES.Process(target=write_and_hang, args=(table.location, [2, 3], "phantom"), daemon=True)
    writer.start()
    deadline_s = CLOCK.steady_s() + 60
    while told(table, broker.servers) != {1: "a1", 2: "phantom2", 3: "phantom3"}:
        assert CLOCK.steady_s() < deadline_s, "the writer does not get to work"
    table.change_log.publish()
    assert told(table, broker.servers)[2] == "phantom2", "a write that goes on is left alone"
    problems = table.change_log.verify().problems
    assert problems and "have not landed" in problems[0]
    writer.kill()
    writer.join()
    assert sum(report.records for report in table.change_log.publish()) == 2
    check(table, broker.servers, follower)


@pytest.mark.deep
def test_writers_of_two_hosts_in_turn(table: ts.Table, broker: KafkaBroker, tmp_path: Path) -> None:
    follower = Follower(table)
    follower.start()
    for turn in range(3):
        table.upsert(rows([turn, 10], f"here{turn}-"))
        other = PROCESSES.Process(
            target=upsert_elsewhere, args=(table.location, [turn, 11], f"there{turn}-", str(tmp_path / "elsewhere"))
        )
        other.start()
        other.join(120)
        assert other.exitcode == 0
    check(table, broker.servers, follower)


@pytest.mark.slow_after(1)
@pytest.mark.deep
@pytest.mark.parametrize("commits", [True, False])
def test_a_writer_that_was_overtaken_may_go_on(table: ts.Table, broker: KafkaBroker, tmp_path: Path, commits: bool) -> None:
    table.upsert(rows([1, 2], "a"))
    follower = Follower(table)
    follower.start()
    with table.new_writer() as zombie:
        zombie.write(rows([1, 3], "zombie"))
        other = PROCESSES.Process(target=upsert_elsewhere, args=(table.location, [2, 4], "other", str(tmp_path / "elsewhere")))
        other.start()
        other.join(120)
        assert other.exitcode == 0
        expected = {1: "a1", 2: "other2", 4: "other4"}
        assert told(table, broker.servers) == expected, "what it had sent is taken back"
        zombie.write(rows([5], "zombie"))
        assert told(table, broker.servers) == expected, "what it sends is refused"
        if commits:
            zombie.commit()
    assert (content(table).get(5) == "zombie5") is commits
    check(table, broker.servers, follower)


@pytest.mark.deep
def test_a_broker_that_goes_down_in_the_midst_of_a_write(own_broker: KafkaBroker, tmp_path: Path) -> None:
    table = make(tmp_path, own_broker, "down", **{"write-only": "true"})
    table.upsert(rows([1], "a"))
    with table.new_writer() as writer:
        writer.write(rows([2], "b"))
        own_broker.kill()
        own_broker.start()
        writer.write(rows([3], "b"))
        writer.commit()
    with table.new_writer() as writer:
        writer.write(rows([1, 4], "phantom"))
        own_broker.kill()
        own_broker.start()
    table.change_log.publish(look=True)
    check(table, own_broker.servers)


def test_pairs_on_request(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    table.upsert(rows([1], "b"))
    got = [
        (row["_row_kind"], row["v"])
        for batch in table.consume("from-timestamp", timestamp=0, pairs=True, follow=False)
        for row in batch.rows.to_pylist()
    ]
    assert got == [("+I", "a1"), ("-U", "a1"), ("+U", "b1")]


@pytest.mark.deep
def test_keys_of_several_columns_in_a_partitioned_table_that_was_altered(tmp_path: Path, broker: KafkaBroker) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    schema = pa.schema(
        [
            pa.field("day", pa.date32(), nullable=False),
            pa.field("price", pa.decimal128(12, 2), nullable=False),
            pa.field("code", pa.binary(), nullable=False),
            ("v", pa.string()),
        ]
    )
    table = catalog.create_table(
        "shop.t",
        schema=schema,
        primary_key=["day", "price", "code"],
        partition_by=["day"],
        options={"log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": "several", "log.consistency": "eventual"},
    )

    def some(numbers: list[int], text: str) -> pa.Table:
        days = pa.array([number % 3 for number in numbers], pa.int32()).cast(pa.date32())
        prices = pa.array([f"{number}.25" for number in numbers]).cast(pa.decimal128(12, 2))
        return pa.table([days, prices, [bytes([number]) for number in numbers], [text] * len(numbers)], schema=schema)

    table.upsert(some(list(range(8)), "a"))
    with table.new_writer() as writer:
        writer.write(some([2, 3, 9], "phantom"))
    with table.new_writer() as writer:
        writer.write(some([4, 10], "phantom"))
        table = table.alter(ts.AddColumn("n", pa.int64()))
    with table.new_writer() as writer:
        kinds = pa.array(["-D", "+U"])
        writer.write(some([5, 6], "b").append_column("_row_kind", kinds).append_column("n", pa.array([None, 7], pa.int64())))
        writer.commit()
    state = {}
    for batch in table.consume("from-timestamp", timestamp=0, follow=False):
        for row in batch.rows.to_pylist():
            kind, key = row.pop("_row_kind"), (row["day"], row["price"], row["code"])
            state.pop(key, None)
            if kind != "-D":
                state[key] = row
    held = table.scan().to_arrow().to_pylist()
    assert state == {(row["day"], row["price"], row["code"]): row for row in held} and len(held) == 7
    assert table.change_log.verify().problems == ()


@pytest.mark.parametrize(
    "options",
    [
        {"merge-engine": "partial-update"},
        {"sequence.field": "v"},
        {"ignore-delete": "true"},
        {"changelog-producer": "lookup"},
        {"change-tracking": "false"},
        {"tablestore.log.publisher-slots": "2"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_does_not_go_with_early_rows_is_refused_by_name(tmp_path: Path, broker: KafkaBroker, options: dict[str, str]) -> None:
    with pytest.raises(ts.errors.UnsupportedError, match=next(iter(options))) as caught:
        make(tmp_path, broker, "refused", **options)
    assert caught.value.kind == "log-consistency"


def test_a_table_with_early_rows_is_not_altered_into_one_that_cannot_have_them(table: ts.Table) -> None:
    for key, value in (("change-tracking", "false"), ("changelog-producer", "lookup")):
        with pytest.raises(ts.errors.UnsupportedError, match=key):
            table.alter(ts.SetOption(key, value))
    assert table.alter(ts.SetOption("snapshot.num-retained.min", "7")).options()["snapshot.num-retained.min"] == "7"


@pytest.mark.deep
def test_a_named_consumer_goes_on_where_it_stood(table: ts.Table) -> None:
    state: dict[int, str] = {}

    def read() -> None:
        for batch in table.consume(consumer_id="billing", follow=False):
            for row in batch.rows.to_pylist():
                state.pop(row["id"], None)
                if row["_row_kind"] != "-D":
                    state[row["id"]] = row["v"]
            batch.commit()

    table.upsert(rows([1, 2], "a"))
    read()
    with table.new_writer() as writer:
        writer.write(rows([2, 3], "b"))
        read()
        assert state == {1: "a1", 2: "b2", 3: "b3"}
        writer.commit()
    with table.new_writer() as writer:
        writer.write(rows([4], "phantom"))
        read()
        assert state[4] == "phantom4"
    read()
    assert state == content(table)


@pytest.mark.deep
def test_compaction_and_expiry_beside_it(tmp_path: Path, broker: KafkaBroker) -> None:
    table = make(
        tmp_path,
        broker,
        "beside",
        **{"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "3", "num-sorted-run.compaction-trigger": "2"},
    )
    follower = Follower(table)
    follower.start()
    for step in range(12):
        with table.new_writer() as writer:
            writer.write(rows([step, step % 5, 100], f"s{step}-"))
            if step % 4 != 3:
                writer.commit()
        if step % 5 == 4:
            table.compact(full=True)
    assert table.snapshots()[0].id > 1
    check(table, broker.servers, follower)


@pytest.mark.deep
def test_overwrites_are_told_and_what_follows_is_right(table: ts.Table, broker: KafkaBroker) -> None:
    table.upsert(rows([1, 2], "a"))
    table.overwrite(rows([3], "o"))
    with table.new_writer() as writer:
        writer.write(rows([2], "phantom"))
    with table.new_writer() as writer:
        writer.write(rows([4], "b"))
        writer.commit()
    late = Follower(table)
    late.start()
    late.sees({3: "o3", 4: "b4"})
    assert told(table, broker.servers)[4] == "b4" and 2 not in told(table, broker.servers)


@pytest.mark.deep
def test_a_log_that_was_made_anew_says_the_same(table: ts.Table, broker: KafkaBroker) -> None:
    table.upsert(rows([1], "a"))
    with table.new_writer() as writer:
        writer.write(rows([1, 2], "b"))
        table.change_log.rebuild()
        writer.commit()
    check(table, broker.servers)


@pytest.mark.deep
def test_the_command_line_tells_early_rows_from_what_has_landed(table: ts.Table) -> None:
    table.upsert(rows([1], "a"))
    with table.new_writer() as writer:
        writer.write(rows([1, 2], "b"))
        problems = run_command("log", "verify", table.location, "--json", code=3).json["problems"]
        assert sum("have not landed" in problem for problem in problems) == len(problems) > 0
        seen = run_command("consume", table.location, "--scan", "from-timestamp", "--timestamp", "0", "--after-only", "--json")
        assert {(row["id"], row["v"]) for row in seen.rows} >= {(1, "b1"), (2, "b2")}
    for bucket in run_command("log", "status", table.location, "--json").json["buckets"]:
        assert (bucket["published"], bucket["lag_snapshots"]) == (1, 0)
    assert run_command("log", "publish", table.location, "--json").json["slots"][0]["records"] == 0
    assert run_command("log", "verify", table.location, "--json").json["problems"] == []
    run_command("log", "rebuild", table.location, "--yes", "--json")
    assert run_command("log", "verify", table.location, "--json").json["problems"] == []


@pytest.mark.deep
@pytest.mark.parametrize("kills", [4, pytest.param(150, marks=pytest.mark.slow)])
def test_writers_that_are_killed_anywhere_leave_no_phantom(kills: int, tmp_path: Path, broker: KafkaBroker) -> None:
    table = make(tmp_path, broker, f"early-kills-{kills}", **{"write-only": "true", "snapshot.num-retained.min": "100000"})
    follower = Follower(table)
    follower.start()
    chance = random.Random(29)
    for kill in range(kills):
        writer = PROCESSES.Process(target=write_at_random, args=(table.location, kill), daemon=True)
        writer.start()
        wait_for_commits(table, 1)
        CLOCK.sleep(0.4 * chance.random())
        writer.kill()
        writer.join()
    table.change_log.publish()
    check_all(table, broker.servers, follower)


@pytest.mark.deep
@pytest.mark.parametrize("kills", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_writers_of_two_hosts_at_once_that_are_killed_leave_no_phantom(kills: int, tmp_path: Path, broker: KafkaBroker) -> None:
    table = make(tmp_path, broker, f"two-hosts-{kills}", **{"write-only": "true", "snapshot.num-retained.min": "100000"})
    follower = Follower(table)
    follower.start()
    chance = random.Random(31)
    hosts = [None, str(tmp_path / "elsewhere")]
    writers = {}
    for kill in range(kills):
        for host in (0, 1):
            if host not in writers:
                arguments = (table.location, 1000 * host + kill, hosts[host])
                writers[host] = PROCESSES.Process(target=write_at_random, args=arguments, daemon=True)
                writers[host].start()
        wait_for_commits(table, 3)
        CLOCK.sleep(0.4 * chance.random())
        dying = writers.pop(chance.randrange(2))
        dying.kill()
        dying.join()
    for writer in writers.values():
        writer.kill()
        writer.join()
    table.change_log.publish()
    check_all(table, broker.servers, follower)
