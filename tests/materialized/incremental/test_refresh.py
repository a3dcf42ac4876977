"""What a refresh promises besides the right rows: when it computes the whole and why, what it commits, what it holds."""

import random
from datetime import timedelta

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.environment.session.session import spec_of
from tablestore.materialized.incremental.holding import release_sources
from tablestore.materialized.incremental.refresh import refresh
from tablestore.materialized.incremental.refreshcursor import CURSOR_PROPERTY
from tablestore.materialized.incremental.refreshreport import RefreshReport
from tablestore.materialized.incremental.sources import net_changes
from tablestore.materialized.incremental.verify import VerifyReport, verify
from tablestore.sql.incremental.shapes import WEIGHT
from tablestore.store.history.retentionleases import RetentionLeases
from tablestore.table.write.committing import CommitNote

QUERY = "SELECT g, count(*) AS n, sum(v) AS s FROM t GROUP BY g"


@pytest.fixture
def env(duck: ts.TableEnvironment) -> ts.TableEnvironment:
    duck.execute_sql("CREATE TABLE t (id BIGINT, g INT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    duck.execute_sql("CREATE TABLE keyed (g INT NOT NULL, n BIGINT, s BIGINT, PRIMARY KEY (g) NOT ENFORCED)")
    duck.execute_sql("CREATE TABLE bag (g INT, n BIGINT, s BIGINT)")
    duck.execute_sql("INSERT INTO t VALUES (1, 1, 10), (2, 1, 5), (3, 2, 7)")
    return duck


def run(env: ts.TableEnvironment, name: str = "keyed", query: str = QUERY, **options: bool) -> RefreshReport:
    target = env.catalog().table(f"default.{name}")
    return refresh(env._session, target, query, spec=spec_of(env.catalog(), target), **options)


def check(env: ts.TableEnvironment, name: str = "keyed", query: str = QUERY) -> VerifyReport:
    target = env.catalog().table(f"default.{name}")
    return verify(env._session, target, query, spec=spec_of(env.catalog(), target))


def rows(env: ts.TableEnvironment, name: str = "keyed") -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in env.catalog().table(f"default.{name}").scan().to_arrow().to_pylist())


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("name", ["keyed", "bag"])
def test_a_refresh_goes_on_from_the_last_one(env: ts.TableEnvironment, name: str) -> None:
    first = run(env, name)
    assert (first.mode, first.reason, first.snapshot_id) == ("full", "it is the first refresh", 1)
    assert run(env, name).mode == "none" and len(env.catalog().table(f"default.{name}").snapshots()) == 1
    env.execute_sql("INSERT INTO t VALUES (1, 2, 11), (9, 3, NULL)")
    env.execute_sql("DELETE FROM t WHERE id = 2")
    report = run(env, name)
    assert (report.mode, report.rows_in, str(report.sources[0])) == ("incremental", 4, "tablestore.default.t: 1 -> 3")
    assert rows(env, name) == [(2, 2, 18), (3, 1, None)]
    assert check(env, name).is_equal


def test_counts_and_sums_of_few_groups_need_no_query(env: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT g, count(*) AS n, sum(v) AS s FROM filled GROUP BY g"
    env.execute_sql("CREATE TABLE filled (g INT, v BIGINT)")
    env.execute_sql("INSERT INTO filled VALUES (1, 1), (2, NULL)")
    run(env, "bag", query)
    env.execute_sql("INSERT INTO filled VALUES (1, 5), (2, NULL), (3, 7), (NULL, 5)")
    engine = env._session.engine_for("a refresh")
    read = engine.read
    asked: list[str] = []
    monkeypatch.setattr(type(engine), "read", lambda self, bound: asked.append(bound.text) or read(bound))
    assert run(env, "bag", query).mode == "incremental" and len(asked) == 1, "where the rows that go lie, of a table without a key"
    assert check(env, "bag", query).is_equal
    asked.clear()
    env.execute_sql("INSERT INTO filled VALUES (1, 9223372036854775800)")
    assert run(env, "bag", query).mode == "incremental" and len(asked) > 1, "a large number is left to the engine"
    assert check(env, "bag", query).is_equal


def test_a_table_whose_rows_say_of_what_kind_they_are_is_refreshed_as_a_whole(env: ts.TableEnvironment) -> None:
    query = "SELECT id, kind, x FROM src"
    columns = "(id INT, kind STRING, x INT, PRIMARY KEY (id) NOT ENFORCED)"
    env.execute_sql(f"CREATE TABLE src {columns} WITH ('changelog-producer' = 'lookup')")
    env.execute_sql(f"CREATE TABLE chosen {columns} WITH ('rowkind.field' = 'kind')")
    env.execute_sql("INSERT INTO src VALUES (1, '+I', 1), (2, '+I', 0), (3, '-D', 3)")
    run(env, "chosen", query)
    assert rows(env, "chosen") == [(1, "+I", 1), (2, "+I", 0)]
    env.execute_sql("DELETE FROM src WHERE id = 2")
    env.execute_sql("UPDATE src SET x = 9 WHERE id = 1")
    report = run(env, "chosen", query)
    assert (report.mode, report.reason) == ("full", "a column of the table says of what kind its rows are (rowkind.field)")
    assert rows(env, "chosen") == [(1, "+I", 9)]


def test_a_compaction_of_a_source_is_no_change(env: ts.TableEnvironment) -> None:
    run(env)
    env.catalog().table("default.t").compact(full=True)
    assert run(env).mode == "none"


def test_rows_that_a_compaction_of_a_source_brings_out_are_a_change(env: ts.TableEnvironment) -> None:
    env.execute_sql(
        "CREATE TABLE late (id BIGINT, g INT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) "
        "WITH ('deletion-vectors.enabled' = 'true', 'write-only' = 'true')"
    )
    query, source = QUERY.replace("FROM t", "FROM late"), env.catalog().table("default.late")
    env.execute_sql("INSERT INTO late VALUES (1, 1, 10), (2, 2, 5)")
    source.compact(full=True)
    run(env, query=query)
    env.execute_sql("INSERT INTO late VALUES (1, 2, 10)")
    assert run(env, query=query).rows_out == 0 and rows(env) == [(1, 1, 10), (2, 1, 5)]
    source.compact(full=True)
    assert run(env, query=query).mode == "incremental" and rows(env) == [(2, 2, 15)]


def test_what_a_writer_says_of_its_changes_is_not_believed(env: ts.TableEnvironment) -> None:
    env.execute_sql(
        "CREATE TABLE said (id BIGINT, g INT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('changelog-producer' = 'input')"
    )
    source, query = env.catalog().table("default.said"), QUERY.replace("FROM t", "FROM said")
    schema = source.schema.append(pa.field("_row_kind", pa.string()))

    def write(*changes: tuple[int, int, int, str]) -> None:
        source.write_changes(pa.table([list(column) for column in zip(*changes, strict=True)], schema=schema))

    write((1, 1, 10, "+I"), (2, 1, 5, "+I"))
    run(env, query=query)
    # It leaves out what it replaced, or says that it was another row.
    write((1, 2, 10, "+U"), (3, 9, 99, "-D"))
    write((2, 7, 1, "-U"))
    report = run(env, query=query)
    assert (report.mode, rows(env)) == ("incremental", [(2, 1, 10)]) and check(env, query=query).is_equal


def test_a_change_that_adds_up_to_nothing_moves_the_cursor_only(env: ts.TableEnvironment) -> None:
    run(env)
    env.execute_sql("INSERT INTO t VALUES (1, 1, 11)")
    env.execute_sql("INSERT INTO t VALUES (1, 1, 10)")
    report = run(env)
    assert (report.mode, report.rows_out, report.snapshot_id) == ("incremental", 0, 2)
    assert run(env).mode == "none"


@pytest.mark.parametrize(
    ("producer", "kinds"), [("none", ["+I 3", "+U 2", "-D 1", "-U 2"]), ("input", ["+I 2", "+I 3", "-D 1", "-D 2"])]
)
def test_what_follows_the_target_sees_an_update_as_one_or_as_it_was_written(
    env: ts.TableEnvironment, producer: str, kinds: list[str]
) -> None:
    env.execute_sql(f"ALTER TABLE keyed SET ('changelog-producer' = '{producer}')")
    run(env)
    env.execute_sql("DELETE FROM t WHERE g = 1")
    env.execute_sql("INSERT INTO t VALUES (4, 2, 1), (5, 3, 1)")
    report = run(env)
    assert (report.mode, rows(env)) == ("incremental", [(2, 2, 8), (3, 1, 1)])
    assert report.snapshot_id is not None
    changes = env.catalog().table("default.keyed").changes(report.snapshot_id - 1, report.snapshot_id).to_arrow().to_pylist()
    assert sorted(f"{row['_row_kind']} {row['g']}" for row in changes) == kinds


def test_what_no_refresh_wrote_is_computed_anew(env: ts.TableEnvironment) -> None:
    run(env)
    env.execute_sql("INSERT INTO keyed VALUES (77, 1, 1)")
    assert run(env).reason == "the rows of the table are not those of a refresh"
    assert rows(env) == [(1, 2, 15), (2, 1, 7)]


def test_a_compaction_of_the_target_keeps_its_cursor(env: ts.TableEnvironment) -> None:
    run(env)
    env.catalog().table("default.keyed").compact(full=True)
    env.execute_sql("INSERT INTO t VALUES (4, 1, 1)")
    assert run(env).mode == "incremental" and rows(env) == [(1, 3, 16), (2, 1, 7)]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("INSERT OVERWRITE t VALUES (8, 8, 8)", "replaced rows without naming them"),
        ("ALTER TABLE t ADD COLUMNS (w INT)", "the columns of source tablestore.default.t were altered"),
    ],
)
def test_a_source_whose_changes_are_not_known_is_read_as_a_whole(env: ts.TableEnvironment, statement: str, reason: str) -> None:
    run(env)
    env.execute_sql(statement)
    report = run(env)
    assert report.mode == "full" and reason in str(report.reason)
    assert check(env).is_equal and run(env).mode == "none"


def test_a_source_that_was_rolled_back_or_made_anew_is_read_as_a_whole(env: ts.TableEnvironment) -> None:
    run(env)
    env.execute_sql("INSERT INTO t VALUES (5, 5, 5)")
    run(env)
    env.catalog().table("default.t").rollback_to(1)
    assert "replaced rows without naming them" in str(run(env).reason)
    assert rows(env) == [(1, 2, 15), (2, 1, 7)]
    env.execute_sql("DROP TABLE t")
    with pytest.raises(ts.NotFoundError, match="does not exist"):
        run(env)
    env.execute_sql("CREATE TABLE t (id BIGINT, g INT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    assert "is another table than before" in str(run(env).reason) and rows(env) == []


def test_another_query_and_a_query_without_a_rule_are_computed_as_a_whole(env: ts.TableEnvironment) -> None:
    run(env, "bag")
    other = "SELECT g, count(v) AS n, max(v) AS s FROM t GROUP BY g"
    assert run(env, "bag", other).reason == "the query is another one than before"
    limited = f"{QUERY} ORDER BY g LIMIT 1"
    assert run(env, "bag", limited).reason == "the query is another one than before"
    assert run(env, "bag", limited).mode == "none"
    env.execute_sql("INSERT INTO t VALUES (4, 0, 1)")
    assert run(env, "bag", limited).reason == "it has a LIMIT, which counts over all rows"
    assert rows(env, "bag") == [(0, 1, 1)]


def test_a_source_with_computed_columns_is_read_as_a_whole(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE computed (id BIGINT, v BIGINT, g AS CAST(id % 2 AS INT))")
    env.execute_sql("INSERT INTO computed (id, v) VALUES (1, 5), (3, 7)")
    query = QUERY.replace("FROM t", "FROM computed")
    assert "which has computed columns" in str(run(env, query=query).reason) and rows(env) == [(1, 2, 12)]


def test_a_query_that_is_not_deterministic_is_computed_each_time_and_named(env: ts.TableEnvironment) -> None:
    query = "SELECT g, count(*) AS n, sum(v) AS s FROM t WHERE current_date > DATE '2020-01-01' GROUP BY g"
    run(env, query=query)
    assert str(run(env, query=query).reason).startswith("it calls current_date()")


def test_one_row_of_each_group_is_there_although_equal_rows_have_no_order(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE firsts (id BIGINT, g INT, PRIMARY KEY (id) NOT ENFORCED)")
    numbers = range(20_000)
    table, groups = env.catalog().table("default.t"), [number * 7919 % 503 for number in numbers]
    kinds = pa.array([number % 3 for number in numbers], pa.int64())
    table.upsert(pa.table({"id": list(numbers), "g": pa.array(groups, pa.int32()), "v": kinds}))
    query = "SELECT id, g FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v) AS n FROM t) AS q WHERE n = 1"
    run(env, "firsts", query)
    env.execute_sql("DELETE FROM t WHERE id % 50 = 1")
    assert "orders rows by columns in which several may be equal" in str(run(env, "firsts", query).reason)
    assert len(rows(env, "firsts")) == 503


def test_the_slower_of_two_refreshes_lands_nothing(env: ts.TableEnvironment) -> None:
    run(env)
    env.execute_sql("INSERT INTO t VALUES (4, 1, 1)")
    seen: list[RefreshReport] = []

    def another_is_faster(latest: object) -> None:
        if not seen:
            seen.append(run(env))

    target = env.catalog().table("default.keyed")
    # The guard runs inside of the commit, after the first look at the newest snapshot.
    with pytest.raises(ts.ConflictError, match="was changed while it was refreshed") as caught:
        refresh(env._session, target, QUERY, spec=spec_of(env.catalog(), target), guard=another_is_faster)
    assert caught.value.kind == "refresh-conflict"
    assert seen[0].mode == "incremental" and rows(env) == [(1, 3, 16), (2, 1, 7)]
    assert run(env).mode == "none"


def test_a_compaction_during_a_refresh_is_no_conflict(env: ts.TableEnvironment) -> None:
    run(env, "bag")
    env.execute_sql("INSERT INTO t VALUES (1, 1, 1)")
    compacted: list[object] = []

    def compact(latest: object) -> None:
        if not compacted:
            compacted.append(env.catalog().table("default.bag").compact(full=True))

    target = env.catalog().table("default.bag")
    report = refresh(env._session, target, QUERY, spec=spec_of(env.catalog(), target), guard=compact)
    assert report.mode == "incremental" and compacted and rows(env, "bag") == [(1, 2, 6), (2, 1, 7)]


def test_snapshots_that_a_source_keeps_anyway_are_let_go_now_and_then(env: ts.TableEnvironment) -> None:
    source, held = env.catalog().table("default.t"), []
    for number in range(12):
        after = run(env).sources[0].after
        (hold,) = RetentionLeases(source.context.files).all()
        assert after is not None and after - 10 < hold.next_snapshot <= after
        held.append(hold.next_snapshot)
        env.execute_sql(f"INSERT INTO t VALUES (1, 1, {number})")
    assert len(set(held)) == 2, "it moved once"


def test_sources_keep_what_the_cursor_points_to_until_the_target_lets_go(env: ts.TableEnvironment) -> None:
    env.catalog().alter_table("default.t", [ts.SetOption("snapshot.num-retained.min", "1")])
    run(env)
    source = env.catalog().table("default.t")
    for number in range(4):
        env.execute_sql(f"INSERT INTO t VALUES (1, 1, {number})")
    source.expire_snapshots(retain_max=1, retain_min=1, older_than=timedelta(0))
    assert source.snapshots()[0].id == 1
    report = run(env)
    assert report.mode == "incremental"
    source.expire_snapshots(retain_max=1, retain_min=1, older_than=timedelta(0))
    assert source.snapshots()[0].id == report.sources[0].after
    env.execute_sql("INSERT INTO t VALUES (1, 1, 9)")
    release_sources(env._session, env.catalog().table("default.keyed"))
    assert RetentionLeases(source.context.files).all() == ()
    source.expire_snapshots(retain_max=1, retain_min=1, older_than=timedelta(0))
    assert "which was read last, has expired" in str(run(env).reason) and rows(env) == [(1, 2, 14), (2, 1, 7)]


def test_a_sum_past_the_end_of_its_type_fails_as_in_the_query_and_lands_nothing(env: ts.TableEnvironment) -> None:
    run(env)
    env.execute_sql("INSERT INTO t VALUES (4, 1, 9223372036854775807)")
    with pytest.raises(ts.InvalidInputError):
        env.execute_sql(QUERY).to_arrow()
    with pytest.raises(ts.InvalidInputError):
        run(env)
    assert rows(env) == [(1, 2, 15), (2, 1, 7)]
    env.execute_sql("INSERT INTO t VALUES (1, 1, -9223372036854775807)")
    assert run(env).mode == "incremental" and rows(env) == [(1, 3, 5), (2, 1, 7)]


def test_verify_shows_rows_that_differ(env: ts.TableEnvironment) -> None:
    run(env, "bag")
    with pytest.raises(ts.NotFoundError, match="does not say which snapshots"):
        check(env)
    target = env.catalog().table("default.bag")
    cursor = target.snapshots()[-1].properties[CURSOR_PROPERTY]
    with target.new_writer() as writer:
        writer.write(pa.table({"g": pa.array([5, 5], pa.int32()), "n": [1, 1], "s": [None, None]}).cast(target.schema))
        writer.commit(note=CommitNote(properties={CURSOR_PROPERTY: cursor}))
    env.execute_sql("INSERT INTO t VALUES (1, 1, 1)")
    report = check(env, "bag")
    assert (report.missing, report.extra, report.sources) == (0, 2, (("tablestore.default.t", 1),))
    assert "extra: {'g': 5, 'n': 1, 's': None}" in str(report)
    # The rows that are to go are there, and two more: the changes alone do not show these.
    assert run(env, "bag").mode == "incremental" and check(env, "bag").extra == 2
    assert run(env, "bag", full=True).reason == "it was asked for" and check(env, "bag").is_equal


def test_a_table_with_changes_from_its_compactions_is_read_where_both_agree(duck: ts.TableEnvironment) -> None:
    rng = random.Random(5)
    for producer in ("lookup", "full-compaction"):
        duck.execute_sql(
            f"CREATE TABLE `s_{producer}` (id BIGINT, g INT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) "
            f"WITH ('changelog-producer' = '{producer}')"
        )
        duck.execute_sql(f"CREATE TABLE `m_{producer}` (g INT, n BIGINT, s BIGINT)")
        query = f"SELECT g, count(*) AS n, sum(v) AS s FROM `s_{producer}` GROUP BY g"
        source = duck.catalog().table(f"default.s_{producer}")
        run(duck, f"m_{producer}", query)
        for _ in range(4):
            ids = rng.sample(range(9), 3)
            rows_now = pa.table({"id": ids, "g": [number % 3 for number in ids], "v": ids})
            source.upsert(rows_now.cast(source.schema))
            if rng.random() < 0.6:
                source.compact(full=True)
            run(duck, f"m_{producer}", query)
            assert check(duck, f"m_{producer}", query).is_equal
        source.compact(full=True)
        assert run(duck, f"m_{producer}", query).mode in ("incremental", "none")
        assert rows(duck, f"m_{producer}") == sorted(tuple(row.values()) for row in duck.execute_sql(query).to_arrow().to_pylist())


def test_a_sum_is_null_when_its_last_value_goes(env: ts.TableEnvironment) -> None:
    run(env)
    env.execute_sql("INSERT INTO t VALUES (1, 1, 11), (3, 2, 70), (4, 4, NULL)")
    report = run(env)
    assert (report.mode, report.rows_out) == ("incremental", 5)
    assert rows(env) == [(1, 2, 16), (2, 1, 70), (4, 1, None)]
    # The last value of a group goes: whether another one is left only its rows say.
    env.execute_sql("INSERT INTO t VALUES (5, 2, NULL)")
    env.execute_sql("DELETE FROM t WHERE id = 3")
    assert run(env).mode == "incremental" and rows(env) == [(1, 2, 16), (2, 1, None), (4, 1, None)]


def test_a_key_that_several_rows_have_keeps_one_of_them_as_long_as_one_is_there(env: ts.TableEnvironment) -> None:
    query = "SELECT g, v AS n, v AS s FROM t"
    run(env, query=query)
    env.execute_sql("INSERT INTO t VALUES (4, 3, 1)")
    assert run(env, query=query).mode == "incremental"
    env.execute_sql("DELETE FROM t WHERE id = 1")
    report = run(env, query=query)
    assert (report.mode, report.reason) == ("full", "rows go, and others of the query may have the same primary key")
    assert rows(env) == [(1, 5, 5), (2, 7, 7), (3, 1, 1)]


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("gone", ["INSERT INTO t VALUES (4, 1, 2)", "DELETE FROM t WHERE id = 4"])
@pytest.mark.parametrize(
    "query", ["SELECT id AS g, 10 DIV v AS n, v AS s FROM t", "SELECT id AS g, v AS n, sum(10 DIV v) AS s FROM t GROUP BY id, v"]
)
def test_a_row_that_the_query_fails_on_is_forgotten_once_it_is_gone(env: ts.TableEnvironment, query: str, gone: str) -> None:
    run(env, query=query)
    env.execute_sql("INSERT INTO t VALUES (4, 1, 0), (5, 1, 1)")
    with pytest.raises(ts.InvalidInputError, match="division by zero"):
        run(env, query=query)
    env.execute_sql(gone)
    assert run(env, query=query).mode == "incremental" and check(env, query=query).is_equal


JOINED = "SELECT t.id AS g, 10 DIV t.v AS n, u.x AS s FROM t JOIN u ON t.id = u.id"


@pytest.fixture
def met_by_changes_alone(env: ts.TableEnvironment) -> ts.TableEnvironment:
    """A row that the query fails on was joined to nothing, and is gone when there is something to join it to."""
    env.execute_sql("CREATE TABLE u (id BIGINT, x BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    env.execute_sql("INSERT INTO u VALUES (1, 1)")
    env.execute_sql("INSERT INTO t VALUES (4, 1, 0)")
    run(env, query=JOINED)
    env.execute_sql("INSERT INTO t VALUES (4, 1, 5)")
    env.execute_sql("INSERT INTO u VALUES (4, 40)")
    return env


def test_where_the_query_over_changes_fails_the_whole_query_decides(met_by_changes_alone: ts.TableEnvironment) -> None:
    report = run(met_by_changes_alone, query=JOINED)
    assert report.mode == "full" and str(report.reason).startswith("the query over the changes failed: ")
    assert "division by zero" in str(report) and rows(met_by_changes_alone) == [(1, 1, 1), (4, 2, 40)]
    met_by_changes_alone.execute_sql("INSERT INTO t VALUES (1, 1, 2)")
    assert run(met_by_changes_alone, query=JOINED).mode == "incremental"


def test_what_the_whole_query_fails_on_is_the_error(met_by_changes_alone: ts.TableEnvironment) -> None:
    met_by_changes_alone.execute_sql("INSERT INTO u VALUES (2, 20)")
    met_by_changes_alone.execute_sql("INSERT INTO t VALUES (2, 1, 0)")
    with pytest.raises(ts.InvalidInputError, match="division by zero"):
        run(met_by_changes_alone, query=JOINED)
    assert rows(met_by_changes_alone) == [(1, 1, 1)]


@pytest.mark.parametrize(
    "error",
    [
        ts.StorageError("the disk is full"),
        ts.ConflictError("another was faster"),
        ts.CommitOutcomeUnknown("nobody knows"),
        ts.UnsupportedError("the statement was cancelled", kind="cancelled"),
    ],
)
def test_what_no_query_is_to_blame_for_is_raised_as_it_is(
    env: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch, error: ts.TablestoreError
) -> None:
    run(env)
    env.execute_sql("INSERT INTO t VALUES (4, 1, 1)")

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr("tablestore.materialized.incremental.refresh.apply_change", fails)
    with pytest.raises(type(error)) as raised:
        run(env)
    assert raised.value is error and rows(env) == [(1, 2, 15), (2, 1, 7)]


def test_changes_are_netted_by_rows_that_no_expression_tells_apart() -> None:
    nan = float("nan")
    rows_and_weights = [
        (1, 0.0, [1, None], 1), (1, -0.0, [1, None], -1),  # The zeros are two rows.
        (2, nan, None, -1), (2, nan, None, 1),
        (3, None, [], 1), (3, None, None, -1),
        (4, 1.5, [4], 1), (4, 1.5, [4], 1), (4, 1.5, [4], -1), (4, 1.5, [4], 1),
        (5, 1.5, [4], -1), (5, 1.5, [4], -1), (5, 1.5, [4], 1),
    ]  # fmt: skip
    schema = pa.schema(
        [("id", pa.int32()), ("f", pa.float64()), ("a", pa.list_(pa.int32())), pa.field(WEIGHT, pa.int32(), nullable=False)]
    )
    changes = pa.table([list(column) for column in zip(*rows_and_weights, strict=True)], schema=schema)
    net = net_changes(changes)
    assert net.schema == schema
    assert sorted(map(repr, zip(*net.to_pydict().values(), strict=True))) == [
        "(1, -0.0, [1, None], -1)", "(1, 0.0, [1, None], 1)", "(3, None, None, -1)", "(3, None, [], 1)",
        "(4, 1.5, [4], 1)", "(4, 1.5, [4], 1)", "(5, 1.5, [4], -1)",
    ]  # fmt: skip
    assert net_changes(changes.slice(0, 0)).num_rows == 0
