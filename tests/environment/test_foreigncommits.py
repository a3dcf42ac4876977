"""A statement that changes rows, while others commit between its plan and its commit: what they write beside its rows is no matter,
and of what they write among them the outcome is that of one after the other."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

import tablestore as ts
from tablestore.table.write.changetasks import write_changes
from tablestore.types.filter.predicatetext import to_sql

HUNDRED = "(SELECT CAST(id AS INT) AS id, 7 AS v FROM range(100)) AS s"
SETS = "WHEN MATCHED THEN UPDATE SET v = t.v + s.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
MERGE = f"MERGE INTO {{table}} AS t USING {HUNDRED} ON t.id = s.id {SETS}"
TABLES = {
    "keyed": "(id INT, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1')",
    "buckets": "(id INT, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '4')",
    "dynamic": "(id INT, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '-1')",
    "append": "(id INT, v INT)",
}
Planned = Callable[..., int]


@pytest.fixture
def planned(duck: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> Planned:
    """Runs a statement on ``{table}``, with one of others' before each of its commits, while there are any (several, with
    semicolons between them). Gives how often it was planned; the outcome is that of those of others and then the statement."""

    def run(columns: str, others: Iterable[str], statement: str, **parameters: Any) -> int:
        for name in ("one", "twin"):
            duck.execute_sql(f"CREATE TABLE {name} {columns}")
            if "day" not in columns:
                duck.execute_sql(f"INSERT INTO {name} (id, v) VALUES (1, 10), (50, 20), (500, 30)")
        engine, left, calls = duck.engine, iter(others), 0
        assert engine is not None
        real = engine.change

        def commit(name: str, other: str) -> None:
            with monkeypatch.context() as patch:
                patch.setattr(engine, "change", real)
                patch.setattr("tablestore.environment.rows.direct.write_changes", write_changes)
                for one in other.split("; "):
                    duck.execute_sql(one.format(table=name))

        def overtaken(change: Callable[..., Any]) -> Callable[..., Any]:
            def run(*arguments: Any) -> Any:
                nonlocal calls
                calls += 1
                if (other := next(left, None)) is not None:
                    commit("one", other)
                    commit("twin", other)
                return change(*arguments)

            return run

        with monkeypatch.context() as patch:
            patch.setattr(engine, "change", overtaken(real))
            patch.setattr("tablestore.environment.rows.direct.write_changes", overtaken(write_changes))
            duck.execute_sql(statement.format(table="one"), **parameters)
        duck.execute_sql(statement.format(table="twin"), **parameters)
        one, twin = (
            sorted(map(repr, duck.execute_sql(f"SELECT * FROM {name}").to_arrow().to_pylist())) for name in ("one", "twin")
        )
        assert one == twin
        return calls

    return run


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("kind", TABLES)
def test_a_merge_lands_at_once_beside_a_writer_of_other_keys(planned: Planned, kind: str) -> None:
    others = (f"INSERT INTO {{table}} (id, v) VALUES ({n}, 1), ({n + 1}, 2)" for n in range(1000, 2000, 2))
    assert planned(TABLES[kind], others, MERGE) == 1
    assert next(others) == "INSERT INTO {table} (id, v) VALUES (1002, 1), (1003, 2)"


@pytest.mark.deep
@pytest.mark.parametrize("kind", TABLES)
def test_a_merge_is_planned_again_for_each_row_among_its_keys(planned: Planned, kind: str) -> None:
    rows = ["(50, 1)", "(1000, 1)", "(99, 5), (2000, 1)"]
    others = [f"INSERT INTO {{table}} (id, v) VALUES {row}" for row in rows]
    # The second plan lands beside the second commit, which has no key of its.
    assert planned(TABLES[kind], others, MERGE) == 2


@pytest.mark.deep
@pytest.mark.parametrize("kind", TABLES)
def test_of_few_keys_each_counts_and_not_what_lies_between(planned: Planned, kind: str) -> None:
    source = "(SELECT CAST(id AS INT) AS id, CAST(v AS INT) AS v FROM VALUES (1, 1), (NULL, 2), (900, 3) AS x (id, v)) AS s"
    merge = f"MERGE INTO {{table}} AS t USING {source} ON s.id = t.id AND t.v < 100 "
    merge += "WHEN MATCHED THEN UPDATE SET v = t.v + s.v WHEN NOT MATCHED AND s.id > 1 THEN INSERT (id, v) VALUES (s.id, 0)"
    others = ["INSERT INTO {table} (id, v) VALUES (400, 1)", "INSERT INTO {table} (id, v) VALUES (900, 1)"]
    assert planned(TABLES[kind], others, merge) == 1
    assert len(others) == 2


def test_a_key_that_is_looked_for_in_vain_counts_too(planned: Planned) -> None:
    matched = f"MERGE INTO {{table}} AS t USING {HUNDRED} ON t.id = s.id WHEN MATCHED THEN DELETE"
    assert planned(TABLES["keyed"], ["INSERT INTO {table} (id, v) VALUES (77, 1)"], matched) == 2


@pytest.mark.deep
@pytest.mark.parametrize("kind", TABLES)
def test_a_commit_that_removes_a_row_counts(planned: Planned, kind: str) -> None:
    assert planned(TABLES[kind], ["DELETE FROM {table} WHERE id = 50"], MERGE) == 2


@pytest.mark.parametrize(("kind", "plans"), [("keyed", 1), ("append", 2)])
def test_a_compaction_counts_where_it_moves_the_rows_that_change(planned: Planned, kind: str, plans: int) -> None:
    moved = "INSERT INTO {table} (id, v) VALUES (1000, 1); ALTER TABLE {table} COMPACT"
    assert planned(TABLES[kind], [moved], MERGE) == plans


# Type of the column, rows that the source has, a row beside them and one among them.
PLAIN = [
    ("BIGINT", "CAST({} AS INT)", ["1", "50"], "7", "50"),
    ("INT", "CAST({} AS BIGINT)", ["1", "3000000000"], "7", "1"),
    ("STRING", "CAST({} AS STRING)", ["'a'", "'ä'", "''"], "'A'", "'ä'"),
    ("DATE", "CAST({} AS DATE)", ["'2024-02-29'", "'0001-01-01'"], "DATE '2024-03-01'", "DATE '2024-02-29'"),
    ("DECIMAL(9, 2)", "CAST({} AS DECIMAL(9, 2))", ["1.50", "-0.01"], "1.51", "-0.01"),
    (
        "TIMESTAMP_LTZ(6)",
        "CAST({} AS TIMESTAMP_LTZ)",
        ["'2024-02-29 12:00:00.000001'"],
        "TIMESTAMP '2024-02-29 12:00:00'",
        "TIMESTAMP '2024-02-29 12:00:00.000001'",
    ),
]
# Of these nothing is known, and any commit counts.
OTHERS = [
    ("DOUBLE", "CAST({} AS DOUBLE)", ["1", "'NaN'"], "CAST(7 AS DOUBLE)", "CAST('NaN' AS DOUBLE)"),
    ("DOUBLE", "CAST({} AS DOUBLE)", ["0"], "CAST(7 AS DOUBLE)", "CAST('-0.0' AS DOUBLE)"),
    ("DOUBLE", "CAST({} AS INT)", ["1"], "CAST(7 AS DOUBLE)", "CAST(1 AS DOUBLE)"),
    ("INT", "CAST({} AS DOUBLE)", ["1"], "7", "1"),
    ("STRING", "CAST({} AS INT)", ["1"], "'7'", "'01'"),
    ("DECIMAL(9, 2)", "CAST({} AS DECIMAL(9, 3))", ["1.500"], "7.00", "1.50"),
    ("DECIMAL(9, 2)", "CAST({} AS INT)", ["1"], "7.00", "1.00"),
    ("DATE", "CAST({} AS TIMESTAMP)", ["'2024-02-29 00:00:00'"], "DATE '2024-03-01'", "DATE '2024-02-29'"),
]


@pytest.mark.slow_after(8)
@pytest.mark.deep
@pytest.mark.parametrize("key", [", PRIMARY KEY (day) NOT ENFORCED) WITH ('bucket' = '1')", ")"], ids=["keyed", "append"])
@pytest.mark.parametrize(
    ("case", "is_known"), [*((case, True) for case in PLAIN), *((case, False) for case in OTHERS)], ids=lambda one: str(one)[:40]
)
def test_values_count_as_they_are_equal(planned: Planned, duck: ts.TableEnvironment, case: Any, is_known: bool, key: str) -> None:
    kind, cast, values, beside, among = case
    rows = " UNION ALL ".join(f"SELECT {cast.format(value)} AS day, 3 AS v" for value in [*values, "NULL"])
    merge = f"MERGE INTO {{table}} AS t USING ({rows}) AS s ON t.day = s.day WHEN MATCHED THEN UPDATE SET v = t.v + s.v"
    columns = f"(day {kind}, v INT{key}"
    insert = "INSERT INTO {table} VALUES (%s, 1)"
    assert planned(columns, [insert % beside], merge) == (1 if is_known else 2)
    for name in ("one", "twin"):
        duck.execute_sql(f"DROP TABLE {name}")
    assert planned(columns, [insert % among], merge) == 2
    assert duck.execute_sql("SELECT v FROM one").to_arrow().column(0).to_pylist() == [4]


@pytest.mark.parametrize("given", ["CAST(NULL AS INT)", "NULL"])
def test_a_source_of_nulls_reads_nothing(planned: Planned, given: str) -> None:
    merge = f"MERGE INTO {{table}} AS t USING (SELECT {given} AS id, 3 AS v) AS s ON t.id = s.id WHEN MATCHED THEN DELETE"
    known = planned(TABLES["keyed"], ["INSERT INTO {table} (id, v) VALUES (1, 1)"], merge)
    assert known == (1 if "CAST" in given else 2)


def test_a_part_of_a_key_counts(planned: Planned) -> None:
    columns = "(id INT, day STRING, v INT, PRIMARY KEY (id, day) NOT ENFORCED) PARTITIONED BY (day) WITH ('bucket' = '2')"
    merge = f"MERGE INTO {{table}} AS t USING {HUNDRED} ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 0"
    others = ["INSERT INTO {table} VALUES (1000, 'a', 1)", "INSERT INTO {table} VALUES (50, 'new', 1)"]
    assert planned(columns, others[:1], merge) == 1


def test_a_row_of_a_part_of_a_key_counts(planned: Planned) -> None:
    columns = "(id INT, day STRING, v INT, PRIMARY KEY (id, day) NOT ENFORCED) PARTITIONED BY (day) WITH ('bucket' = '2')"
    merge = f"MERGE INTO {{table}} AS t USING {HUNDRED} ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 0"
    assert planned(columns, ["INSERT INTO {table} VALUES (50, 'new', 1)"], merge) == 2


def test_a_column_that_is_no_key_says_nothing_of_a_table_with_a_key(planned: Planned) -> None:
    # The row of key 500 is among those that match until it gets another value.
    merge = "MERGE INTO {table} AS t USING (SELECT 30 AS v) AS s ON t.v = s.v WHEN MATCHED THEN UPDATE SET v = 0"
    assert planned(TABLES["keyed"], ["INSERT INTO {table} (id, v) VALUES (500, 1)"], merge) == 2


@pytest.mark.deep
@pytest.mark.parametrize(
    "merge",
    [
        f"USING {HUNDRED} ON t.id = s.id {SETS} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = -1",
        f"USING {HUNDRED} ON t.id = s.id OR s.id = 0 AND t.v = 1 WHEN MATCHED THEN UPDATE SET v = 2",
        f"USING {HUNDRED} ON t.id <=> s.id {SETS}",
        f"USING {HUNDRED} ON t.id + 0 = s.id + 0 {SETS}",
        f"USING {HUNDRED} ON t.id = s.id WHEN MATCHED AND t.v < (SELECT max(id) FROM {{table}}) THEN DELETE",
        f"USING (SELECT id, 7 AS v FROM {{table}} WHERE id < 100) AS s ON t.id = s.id {SETS}",
    ],
)
def test_what_reads_more_than_equal_rows_is_planned_again(planned: Planned, merge: str) -> None:
    others = ["INSERT INTO {table} (id, v) VALUES (1000, 1)"]
    assert planned(TABLES["keyed"], others, f"MERGE INTO {{table}} AS t {merge}") == 2


def test_a_merge_that_writes_its_source_reads_nothing_of_the_table(planned: Planned) -> None:
    merge = f"MERGE INTO {{table}} AS t USING {HUNDRED} ON t.id = s.id "
    merge += "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    assert planned(TABLES["keyed"], ["INSERT INTO {table} (id, v) VALUES (50, 1), (1000, 1)"], merge) == 1


def test_a_table_with_computed_columns_is_known_by_its_stored_ones(planned: Planned) -> None:
    columns = "(id INT, v INT, twice AS id * 2, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1')"
    assert planned(columns, ["INSERT INTO {table} (id, v) VALUES (1000, 1)"], MERGE) == 1


def test_what_is_computed_says_nothing(planned: Planned) -> None:
    columns = "(id INT, v INT, twice AS id * 2, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1')"
    merge = "MERGE INTO {table} AS t USING (SELECT 100 AS n) AS s ON t.twice = s.n WHEN MATCHED THEN UPDATE SET v = 0"
    assert planned(columns, ["INSERT INTO {table} (id, v) VALUES (50, 1)"], merge) == 2


def test_parameters_of_the_source_are_its_values(planned: Planned) -> None:
    merge = f"MERGE INTO {{table}} AS t USING (SELECT :low AS id, :v AS v) AS s ON t.id = s.id AND t.v <> :v {SETS}"
    others = ["INSERT INTO {table} (id, v) VALUES (1000, 1)", "INSERT INTO {table} (id, v) VALUES (50, 1)"]
    assert planned(TABLES["keyed"], others, merge, low=50, v=3) == 1


def test_texts_that_a_collation_takes_for_equal_are_no_others(planned: Planned, duck: ts.TableEnvironment) -> None:
    columns = "(day STRING, v INT, PRIMARY KEY (day) NOT ENFORCED) WITH ('bucket' = '1')"
    merge = "MERGE INTO {table} AS t USING (SELECT 'b' AS day, 3 AS v) AS s ON t.day = s.day WHEN MATCHED THEN UPDATE SET v = 9"
    duck.execute_sql("SET 'default_collation' = 'nocase'")
    assert planned(columns, ["INSERT INTO {table} VALUES ('B', 1)"], merge) == 2
    assert duck.execute_sql("SELECT v FROM one").to_arrow().column(0).to_pylist() == [9]


def test_the_source_is_read_once(planned: Planned, duck: ts.TableEnvironment) -> None:
    seen: list[int] = []

    def next_key(number: int) -> int:
        seen.append(number)
        return len(seen)

    duck.create_temporary_system_function("next_key", next_key)
    duck.execute_sql("CREATE TABLE t (id BIGINT, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '1')")
    duck.execute_sql(
        "MERGE INTO t USING (SELECT next_key(CAST(id AS BIGINT)) AS id FROM range(100)) AS s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    assert len(seen) == 100
    assert sorted(duck.execute_sql("SELECT id FROM t").to_arrow().column(0).to_pylist()) == list(range(1, 101))


def test_a_source_that_fails_or_is_ended_leaves_nothing(duck: ts.TableEnvironment) -> None:
    duck.execute_sql(f"CREATE TABLE t {TABLES['keyed']}")
    with pytest.raises(ts.InvalidInputError, match="nope"):
        duck.execute_sql(
            "MERGE INTO t USING (SELECT CAST(CASE WHEN id > 5 THEN 'nope' ELSE '1' END AS INT) AS id FROM range(9)) AS s "
            "ON t.id = s.id WHEN MATCHED THEN DELETE"
        )
    duck.execute_sql("MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (1, 2)")
    engine: Any = duck.engine
    left = "SELECT table_name FROM duckdb_tables() UNION SELECT view_name FROM duckdb_views() WHERE NOT internal"
    assert engine.execute(left).to_reader().read_all().num_rows == 0


def test_the_target_is_scanned_where_the_source_has_keys(duck: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablestore_duckdb import prepared

    duck.execute_sql(f"CREATE TABLE t {TABLES['keyed']}")
    duck.execute_sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    duck.execute_sql("INSERT INTO t VALUES (1000, 1), (2000, 2)")
    real, filters = prepared.plan_managed, []

    def plan_managed(relation: Any) -> Any:
        planned = real(relation)
        filters.append((to_sql(relation.filter), len(planned.scan.plan.files)))
        return planned

    monkeypatch.setattr(prepared, "plan_managed", plan_managed)
    duck.execute_sql(MERGE.format(table="t"))
    assert filters[-1] == ("id >= 0 AND id <= 99", 1)


@pytest.mark.deep
@pytest.mark.parametrize(
    "statement", ["UPDATE {table} SET v = v + 1 WHERE id BETWEEN 0 AND 99", "DELETE FROM {table} WHERE id < 100 AND id >= 0"]
)
@pytest.mark.parametrize("kind", TABLES)
def test_an_update_and_a_delete_mind_what_is_in_their_range(
    planned: Planned, duck: ts.TableEnvironment, statement: str, kind: str
) -> None:
    others = iter([f"INSERT INTO {{table}} (id, v) VALUES ({n}, 1)" for n in (1000, 1001)])
    assert planned(TABLES[kind], others, statement) == 1
    for name in ("one", "twin"):
        duck.execute_sql(f"DROP TABLE {name}")
    assert planned(TABLES[kind], ["INSERT INTO {table} (id, v) VALUES (51, 1)"], statement) == 2
