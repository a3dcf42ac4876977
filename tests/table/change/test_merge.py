"""table.merge does what SQL's MERGE does: to twins of one table, with random clauses and values at the edges of their types."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError

FIELDS = [
    ("id", pa.int64()),
    ("day", pa.string()),
    ("i", pa.int32()),
    ("x", pa.float64()),
    ("m", pa.decimal128(38, 6)),
    ("s", pa.string()),
    ("odd `name", pa.int32()),
]
SCHEMA = pa.schema(FIELDS)
IDS = [0, 1, 2, 3, 4, 5, -(2**63), 2**63 - 1]
EDGES: dict[str, list[Any]] = {
    "day": ["a", "b", "", "ä"],
    "i": [None, 0, 1, -5, 2**31 - 1, -(2**31)],
    "x": [None, float("nan"), 0.0, -0.0, float("inf"), float("-inf"), 1.5],
    "m": [None, "0.000000", "-0.000001", "99999999999999999999999999999999.999999", "1.500000"],
    "s": [None, "", "ink", "it's", "a\nb%_"],
    "odd `name": [None, 1, 2],
}
SHAPES: dict[str, dict[str, Any]] = {
    "keyed": {"primary_key": ["id"]},
    "buckets": {"primary_key": ["id", "day"], "partition_by": ["day"], "options": {"bucket": "2"}},
    "input": {"primary_key": ["id"], "options": {"changelog-producer": "input"}},
    "append": {},
    "marked": {"options": {"deletion-vectors.enabled": "true"}},
}
CONDITIONS = {
    "both": ["target.i > source.i", "s.x = t.x", "t.i IS NULL", "s.i >= 0 AND t.s <> s.s", "NULL", "upper(s.s) = 'INK'"],
    "source": ["i > 0", "source.x IS NOT NULL", "s.s LIKE 'i%'", "i IS NULL"],
    "target": ["i > 0", "target.x = 0", "t.s IS NULL", "length(s) > 2"],
}
VALUES = {
    "both": {
        "i": ["s.i", "coalesce(t.i, s.i)", "1"],
        "x": ["s.x", "t.x", "nullif(s.x, t.x)"],
        "s": ["concat(t.s, s.s)", "source.s", "NULL"],
    },
    "source": {"i": ["s.i", "7"], "x": ["source.x", "NULL"], "s": ["upper(s.s)", "'new'"]},
    "target": {"i": ["NULL", "coalesce(t.i, 1)"], "s": ["'gone'", "lower(t.s)"]},
}


def rows(draw: random.Random, ids: list[int]) -> pa.Table:
    columns: dict[str, Any] = {"id": ids} | {name: [draw.choice(values) for _ in ids] for name, values in EDGES.items()}
    arrays = [pa.array(columns[name]).cast(kind) if name == "m" else pa.array(columns[name], kind) for name, kind in FIELDS]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


@pytest.fixture(scope="module")
def sql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path_factory.mktemp("wh"), engine="duckdb") as env:
        env.catalog().create_database("default", ignore_if_exists=True)
        yield env


def twins(sql: ts.TableEnvironment, shape: str, content: pa.Table) -> tuple[ts.Table, ts.Table]:
    found = []
    for name in ("py", "tosql"):
        sql.catalog().drop_table(f"default.{name}", ignore_if_not_exists=True)
        table = sql.catalog().create_table(f"default.{name}", SCHEMA, **SHAPES[shape])
        half = content.num_rows // 2
        for part in (content.slice(0, half), content.slice(half)):
            table.upsert(part) if table.primary_key else table.append(part)
        found.append(table)
    return found[0], found[1]


def rows_of(table: ts.Table) -> list[str]:
    return sorted(map(str, table.to_arrow().to_pylist()))


def in_sql(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def drawn_clauses(draw: random.Random) -> tuple[Callable[[Any], Any], str]:
    """Clauses as calls, and as SQL."""
    calls: list[tuple[str, list[Any], str | None]] = []
    text = ""
    for match in draw.sample(["MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"], draw.randint(1, 3)):
        side = {"MATCHED": "both", "NOT MATCHED": "source"}.get(match, "target")
        for last in [False] * draw.randint(0, 2) + [True]:
            condition = None if last and draw.random() < 0.6 else draw.choice(CONDITIONS[side])
            sets = {name: draw.choice(values) for name, values in VALUES[side].items() if draw.random() < 0.7}
            word = "when_" + match.lower().replace(" ", "_")
            condition_text = f" AND {condition}" if condition else ""
            text += f" WHEN {match}{condition_text} THEN "
            if match == "NOT MATCHED":
                if draw.random() < 0.5:
                    calls.append((f"{word}_insert_all", [], condition))
                    text += "INSERT *"
                else:
                    sets = {"id": "s.id", "day": "s.day", **sets}
                    calls.append((f"{word}_insert", [sets], condition))
                    text += f"INSERT ({', '.join(map(in_sql, sets))}) VALUES ({', '.join(sets.values())})"
            elif draw.random() < 0.3 or not sets:
                calls.append((f"{word}_delete", [], condition))
                text += "DELETE"
            elif match == "MATCHED" and draw.random() < 0.3:
                calls.append((f"{word}_update_all", [], condition))
                text += "UPDATE SET *"
            else:
                calls.append((f"{word}_update", [sets], condition))
                text += "UPDATE SET " + ", ".join(f"{in_sql(name)} = {value}" for name, value in sets.items())

    def with_clauses(merge: Any) -> Any:
        for name, arguments, condition in calls:
            merge = getattr(merge, name)(*arguments, predicate=condition)
        return merge

    return with_clauses, text


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("seed", range(12))
def test_a_merge_does_what_the_same_merge_in_sql_does(sql: ts.TableEnvironment, seed: int) -> None:
    check_twins(sql, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 200))
def test_many_merges_do_what_the_same_merges_in_sql_do(sql: ts.TableEnvironment, seed: int) -> None:
    check_twins(sql, seed)


def check_twins(sql: ts.TableEnvironment, seed: int) -> None:
    draw = random.Random(seed)
    shape = list(SHAPES)[seed % len(SHAPES)]
    mine, other = twins(sql, shape, rows(draw, IDS[:6] + IDS[-1:] if draw.random() < 0.7 else []))
    # Some rows of the source twice: of a row that both change, both refuse a second change.
    ids = draw.sample([*IDS, 10, 11], draw.randint(0, 8)) + ([3, 3] if draw.random() < 0.3 else [])
    source = rows(draw, ids)
    sql.create_temporary_view(f"src{seed}", source)
    clauses, text = drawn_clauses(draw)
    keys = list(mine.primary_key) or draw.choice([["id"], ["x"], ["id", "day"], ["s"]])
    if "DELETE" not in text and shape == "keyed" and draw.random() < 0.2:
        keys = ["x"]
    extra = draw.choice(["", "", "coalesce(t.i, 0) >= coalesce(s.i, 0)", "t.day = s.day"])
    condition = " AND ".join([*(f"t.{in_sql(name)} = s.{in_sql(name)}" for name in keys), *([extra] if extra else [])])
    on = condition if extra or draw.random() < 0.5 else keys
    text = text.replace("target.", "t.").replace("source.", "s.")
    outcomes = []
    for run in (
        lambda: clauses(mine.merge(source, on)).execute(),
        lambda: sql.execute_sql(f"MERGE INTO tosql AS t USING src{seed} AS s ON {condition} {text}"),
    ):
        try:
            run()
            outcomes.append("landed")
        except TablestoreError as error:
            outcomes.append(error.kind)
    assert outcomes[0] == outcomes[1], (condition, text)
    assert rows_of(mine) == rows_of(other), (condition, text)
    if shape == "input":
        changes = [sorted(map(str, table.changes(0).to_arrow().to_pylist())) for table in (mine, other)]
        assert changes[0] == changes[1], (condition, text)


@pytest.fixture
def table(sql: ts.TableEnvironment) -> ts.Table:
    return twins(sql, "keyed", rows(random.Random(1), [1, 2, 3]))[0]


TWICE = [{"id": 1, "i": 5}, {"id": 1, "i": 6}]
TWO_NAMED_I = pa.table([[1], [2], [3]], ["id", "i", "i"])
ONE = pa.table({"id": [1], "i": pa.array([5], pa.int32()), "who": ["x"]})


@pytest.mark.deep_after(9)
@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda t: t.merge(ONE, "id").execute(), "expected a clause"),
        (lambda t: t.merge(ONE, "id").when_matched_update_all().execute(), "lack the columns day, x, m, s"),
        (lambda t: t.merge(ONE, "nope").when_matched_delete().execute(), "'nope', which does not exist"),
        (lambda t: t.merge(ONE, ["day"]).when_matched_delete().execute(), "'day', which the rows do not have"),
        (lambda t: t.merge(ONE, {"s": "id"}).when_matched_delete().execute(), "do not go together"),
        (lambda t: t.merge(ONE, "target.id > source.id").when_matched_delete().execute(), "SQL's MERGE"),
        (lambda t: t.merge(ONE, "t.id = s.id OR t.i = 1").when_matched_delete().execute(), "SQL's MERGE"),
        (lambda t: t.merge(ONE, "id").when_matched_update({"i": "i + 1"}).execute(), "could be target.i or source.i"),
        (lambda t: t.merge(ONE, "id").when_matched_update({"id": "source.i"}).execute(), "identifies a row"),
        (lambda t: t.merge(ONE, "id").when_matched_update({"i": "s.who"}).execute(), "takes no STRING"),
        (lambda t: t.merge(ONE, "id").when_not_matched_insert({"i": "target.i"}).execute(), "the table 'target'"),
        (lambda t: t.merge(ONE, "id").when_matched_delete().when_matched_update({"i": "1"}), "no row reaches"),
        (lambda t: t.merge(ONE, "id").when_matched_delete(predicate="s.who").execute(), "expected a condition"),
        (lambda t: t.merge(ONE, "id").when_matched_delete(predicate="s.who =").execute(), "such as"),
        (lambda t: t.merge(TWICE, "id").when_matched_update({"i": "s.i"}).execute(), "second"),
        (lambda t: t.merge("x.csv", "id"), "a file is read first"),
        (lambda t: t.merge(TWO_NAMED_I, "id").when_matched_delete().execute(), "two columns of one"),
    ],
)  # fmt: skip
def test_a_merge_that_cannot_be_is_refused_and_changes_nothing(
    table: ts.Table, build: Callable[[ts.Table], Any], message: str
) -> None:
    before = len(table.snapshots())
    with pytest.raises((InvalidInputError, UnsupportedError), match=message):
        build(table)
    assert len(table.snapshots()) == before


def test_rows_come_in_every_form_and_names_regardless_of_case(table: ts.Table) -> None:
    table.merge([{"ID": 1, "n": 7}, {"ID": None, "n": 8}], {"id": "ID"}).when_matched_update({"I": "n"}).execute()
    assert table.scan(["i"], "id = 1").to_arrow().column("i").to_pylist() == [7]
    assert table.merge([], "id").when_matched_delete().execute() is None
    assert table.merge([{"id": 99}], "id").when_matched_delete().execute() is None
    assert table.merge([{"id": None}], "id").when_matched_delete().execute() is None


def test_nested_values_of_python_rows_are_taken_as_the_columns_have_them(sql: ts.TableEnvironment) -> None:
    """Their types say less, or other things, than those of the table: whole numbers are BIGINT, an empty list is one of nothing."""
    schema = pa.schema({"id": pa.int64(), "l": pa.list_(pa.int32()), "s": pa.struct({"a": pa.int32(), "b": pa.string()})})
    table = sql.catalog().create_table("default.nested", schema, primary_key=["id"])
    for rows in (
        [{"id": 1, "l": [1], "s": {"a": 1, "b": None}}, {"id": 2, "l": None, "s": None}],
        [{"id": 1, "l": [], "s": {"a": 2, "b": "x"}}, {"id": 3, "l": [], "s": None}],
    ):
        table.merge(rows, "id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "l": [], "s": {"a": 2, "b": "x"}},
        {"id": 2, "l": None, "s": None},
        {"id": 3, "l": [], "s": None},
    ]
    with pytest.raises(UnsupportedError, match="the merge is by 's'"):
        table.merge(pa.table({"s": pa.array([None], schema.field("s").type)}), "s").when_matched_delete().execute()
    with pytest.raises(InvalidInputError, match="does not fit"):
        table.merge([{"id": 1, "l": [2**40], "s": None}], "id").when_matched_update_all().execute()


def test_a_merge_sees_the_rows_that_others_wrote_before_it_landed(table: ts.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablestore.table.change import merging

    once, apply = [table], merging.run_changes

    def after_another(*given: Any) -> Any:
        if once:
            once.pop().upsert([{"id": 1, "day": "new", "i": 41}], missing_columns="null")
        return apply(*given)

    monkeypatch.setattr(merging, "run_changes", after_another)
    table.merge([{"id": 1}], "id").when_matched_update({"i": "t.i + 1"}).execute()
    assert table.scan(["day", "i"], "id = 1").to_arrow().to_pylist() == [{"day": "new", "i": 42}]


@pytest.mark.deep_after(3)
@pytest.mark.parametrize(
    ("shape", "foreign", "plans"),
    [
        ("keyed", [3, 1000], 1),
        ("keyed", [50], 2),
        ("buckets", [3, 1000], 1),
        ("buckets", [50], 2),
        ("append", [3, 1000], 2),
        ("append", [1000], 1),
        ("append", [50], 2),
    ],
)
def test_a_merge_is_planned_again_for_what_others_wrote_among_its_keys(
    sql: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch, shape: str, foreign: list[int], plans: int
) -> None:
    from tablestore.table.change import merging

    one, twin = twins(sql, shape, rows(random.Random(1), [1, 50, 500]))
    other = rows(random.Random(2), foreign)
    calls, apply = 0, merging.run_changes

    def write(table: ts.Table) -> None:
        if not table.primary_key:
            table.append(other)
        else:
            for place in range(other.num_rows):
                table.upsert(other.slice(place, 1))

    def after_another(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            write(one)
        return apply(*given)

    def merge(table: ts.Table) -> None:
        source = [{"id": n, "k": n, "n": 5} for n in (1, 50, 70)] + [{"id": None, "k": 0, "n": 1}]
        clauses = table.merge(source, "id").when_matched_update({"i": "coalesce(t.i, 0) + s.n"})
        clauses.when_not_matched_insert({"id": "s.k", "day": "'new'"}).execute()

    write(twin)
    merge(twin)
    monkeypatch.setattr(merging, "run_changes", after_another)
    merge(one)
    assert (calls, rows_of(one)) == (plans, rows_of(twin))


def test_a_merge_that_writes_its_rows_lands_beside_any_others(table: ts.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablestore.table.change import merging

    calls, apply = 0, merging.run_changes

    def after_another(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        table.upsert(rows(random.Random(calls), [1, 2]))
        return apply(*given)

    monkeypatch.setattr(merging, "run_changes", after_another)
    given = rows(random.Random(9), [1, 3])
    table.merge(given, "id").when_matched_update_all().when_not_matched_insert_all().execute()
    found = {row["id"]: str(row) for row in table.to_arrow().to_pylist()}
    assert calls == 1
    assert [found[1], found[3]] == [str(row) for row in given.to_pylist()]
