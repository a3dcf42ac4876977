"""Tables that we alter are read and written by the other implementations, and tables that they alter by us.

All of them follow added, dropped, renamed, moved and widened columns, and a renamed primary key. Nested fields and default values
are compared with the Java core.
"""

from pathlib import Path
from typing import Any

import pytest
from canonical import comparable
from oracles import JavaOracle, OracleError, PypaimonOracle
from ours import Ours
from random_tables import number_fields

import tablestore as ts
from tablestore.types.typestring import type_to_json

pytestmark = pytest.mark.interop

COLUMNS = number_fields(
    [
        {"name": "k", "type": "BIGINT NOT NULL"},
        {"name": "a", "type": "INT"},
        {"name": "b", "type": "STRING"},
        {"name": "c", "type": "DECIMAL(6, 2)"},
        {"name": "d", "type": "FLOAT"},
    ]
)
# One chain of alterations, with rows written in between: (changes, rows under the new names).
CHAIN: list[tuple[list[Any], list[dict[str, Any]]]] = [
    ([], [{"k": i, "a": i, "b": f"b{i}", "c": "1.25", "d": 0.5} for i in range(6)]),
    (
        [ts.AddColumn("e", "STRING", after="k"), ts.RenameColumn("a", to="x")],
        [
            {"k": 1, "e": "e1", "x": -1, "b": None, "c": None, "d": 1.5},
            {"k": 10, "e": None, "x": 10, "b": "b", "c": "0.01", "d": None},
        ],
    ),
    (
        [ts.ChangeType("x", "BIGINT"), ts.ChangeType("c", "DECIMAL(10, 3)"), ts.ChangeType("d", "DOUBLE"), ts.DropColumn("b")],
        [{"k": 2, "e": "e2", "x": 2**40, "c": "9999.999", "d": 1e300}],
    ),
    (
        [
            ts.AddColumn("b", "INT", first=True),
            ts.MoveColumn("k", last=True),
            ts.ChangeComment("e", "text"),
            ts.SetTableComment("t"),
        ],
        [{"b": 7, "e": "e3", "x": 3, "c": "0.001", "d": -1.0, "k": 3}],
    ),
]
AT_THE_END = {
    0: {"b": None, "e": None, "x": 0, "c": "1.250", "d": 0.5, "k": 0},
    1: {"b": None, "e": "e1", "x": -1, "c": None, "d": 1.5, "k": 1},
    2: {"b": None, "e": "e2", "x": 2**40, "c": "9999.999", "d": 1e300, "k": 2},
    3: {"b": 7, "e": "e3", "x": 3, "c": "0.001", "d": -1.0, "k": 3},
    4: {"b": None, "e": None, "x": 4, "c": "1.250", "d": 0.5, "k": 4},
    5: {"b": None, "e": None, "x": 5, "c": "1.250", "d": 0.5, "k": 5},
    10: {"b": None, "e": None, "x": 10, "c": "0.010", "d": None, "k": 10},
}


@pytest.fixture
def everyone(java: JavaOracle, pypaimon_pure: PypaimonOracle, pypaimon_native: PypaimonOracle) -> list[Any]:
    """All implementations, us first."""
    return [Ours(), java, pypaimon_pure, pypaimon_native]


def evolved(path: Path, *, keyed: bool, thin: bool = True) -> dict[int, list[dict[str, Any]]]:
    """The chain, written and altered by us; what each snapshot held."""
    options = {"bucket": "2", "data-file.thin-mode": str(thin).lower()} if keyed else {"bucket": "2", "bucket-key": "k"}
    Ours().create(path, COLUMNS, primary_key=["k"] if keyed else [], options=options)
    content: list[dict[str, Any]] = []
    at = {}
    for changes, rows in CHAIN:
        if changes:
            table = ts.open_table(str(path)).alter(changes)
            content = Ours().read(path)
            assert {tuple(row) for row in content} == {tuple(table.schema.names)}
        snapshot = Ours().write(path, rows)
        keys = {row["k"] for row in rows} if keyed else set()
        content = [row for row in content if row["k"] not in keys] + rows
        at[snapshot] = content
    return at


@pytest.mark.deep
@pytest.mark.parametrize("thin", [True, False])
def test_all_read_our_evolved_keyed_table_at_every_snapshot(everyone: list[Any], warehouse: Path, thin: bool) -> None:
    path = warehouse / "db.db" / "t"
    at = evolved(path, keyed=True, thin=thin)
    for reader in everyone:
        assert comparable(reader.read(path)) == comparable(AT_THE_END.values()), reader.name
        for snapshot, rows in at.items():
            decimals = {"c"} if snapshot == 3 else set()
            got = reader.read(path, snapshot=snapshot)
            assert comparable(map(_short(decimals), got)) == comparable(map(_short(decimals), rows)), (reader.name, snapshot)


def _short(names: set[str]) -> Any:
    """Decimals without the zeros that a wider type adds."""
    return lambda row: {k: v.rstrip("0").rstrip(".") if k in names and v is not None else v for k, v in row.items()}


def test_all_read_our_evolved_append_table(everyone: list[Any], warehouse: Path) -> None:
    path = warehouse / "db.db" / "t"
    evolved(path, keyed=False)
    expected = comparable(Ours().read(path))
    assert len(expected) == 10
    for reader in everyone:
        assert comparable(reader.read(path)) == expected, reader.name


def test_all_find_rows_of_before_by_renamed_and_widened_columns(everyone: list[Any], warehouse: Path) -> None:
    path = warehouse / "db.db" / "t"
    evolved(path, keyed=True)
    for reader in everyone:
        for wanted in ({"x": 4}, {"x": 2**40}, {"k": 10}, {"e": "e1"}):
            (name, value), *_ = wanted.items()
            expected = comparable(row for row in AT_THE_END.values() if row[name] == value)
            assert comparable(reader.read(path, equals=wanted)) == expected, (reader.name, wanted)


def test_others_commit_on_top_of_our_evolved_table(everyone: list[Any], warehouse: Path) -> None:
    path = warehouse / "db.db" / "t"
    evolved(path, keyed=True)
    expected = {key: dict(row) for key, row in AT_THE_END.items()}
    for number, writer in enumerate(everyone):
        rows = [
            {"b": number, "e": writer.name, "x": 2**33, "c": "5.500", "d": 0.25, "k": 0},
            {"b": None, "e": None, "x": None, "c": None, "d": None, "k": 100 + number},
        ]
        writer.write(path, rows)
        expected |= {row["k"]: row for row in rows}
        for reader in everyone:
            assert comparable(reader.read(path)) == comparable(expected.values()), (writer.name, reader.name)
    everyone[1].compact(path)
    for reader in everyone:
        assert comparable(reader.read(path)) == comparable(expected.values()), reader.name


def test_java_alters_what_we_altered_and_we_alter_that(java: JavaOracle, warehouse: Path) -> None:
    path = warehouse / "db.db" / "t"
    evolved(path, keyed=True)
    java.alter(path, {"action": "add", "column": "j", "type": "INT"}, {"action": "rename", "column": "x", "to": "y"})
    table = ts.open_table(str(path))
    assert (table.table_schema.id, table.schema.names) == (4, ["b", "e", "y", "c", "d", "k", "j"])
    table = table.alter([ts.DropColumn("j"), ts.AddColumn("j", "STRING"), ts.ChangeType("y", "DECIMAL(20, 0)")])
    assert table.comment == "t"
    Ours().write(path, [{"b": 1, "e": "e", "y": "5", "c": None, "d": None, "k": 0, "j": "text"}])
    java.write(path, [{"b": 2, "e": "e", "y": "6", "c": None, "d": None, "k": 1, "j": "java"}])
    assert comparable(java.read(path)) == comparable(Ours().read(path))
    ids = [field.id for field in table.table_schema.fields]
    assert len(set(ids)) == len(ids)
    assert max(ids) == table.table_schema.highest_field_id


def test_nested_fields_that_we_altered_read_alike(java: JavaOracle, warehouse: Path) -> None:
    path = warehouse / "db.db" / "t"
    inner = {"type": "ROW", "fields": [{"name": "a", "type": "INT"}, {"name": "b", "type": "STRING"}]}
    columns = number_fields(
        [
            {"name": "k", "type": "INT NOT NULL"},
            {"name": "r", "type": inner},
            {"name": "l", "type": {"type": "ARRAY", "element": inner}},
            {"name": "m", "type": {"type": "MAP", "key": "STRING NOT NULL", "value": inner}},
        ]
    )
    Ours().create(path, columns, primary_key=["k"], options={"bucket": "1"})
    value = {"a": 1, "b": "x"}
    Ours().write(path, [{"k": 1, "r": value, "l": [value, None], "m": [["q", value]]}, {"k": 2, "r": None, "l": None, "m": []}])
    changes: list[Any] = []
    for part in ("r", "l.element", "m.value"):
        changes += [
            ts.AddColumn(f"{part}.n", "INT", first=True),
            ts.RenameColumn(f"{part}.a", to="c"),
            ts.ChangeType(f"{part}.c", "BIGINT"),
            ts.DropColumn(f"{part}.b"),
        ]
    ts.open_table(str(path)).alter(changes)
    new = {"n": 5, "c": 2**40}
    row = {"k": 3, "r": new, "l": [new], "m": [["q", new]]}
    Ours().write(path, [row])
    java.write(path, [{**row, "k": 4}])
    old = {"n": None, "c": 1}
    expected = [
        {"k": 1, "r": old, "l": [old, None], "m": [["q", old]]},
        {"k": 2, "r": None, "l": None, "m": []},
        row,
        {**row, "k": 4},
    ]
    assert comparable(Ours().read(path)) == comparable(expected)
    assert comparable(java.read(path)) == comparable(expected)


@pytest.mark.parametrize("thin", [True, False])
def test_a_primary_key_that_we_renamed_is_read_updated_and_compacted(everyone: list[Any], warehouse: Path, thin: bool) -> None:
    _us, java, _pure, _native = everyone
    path = warehouse / "db.db" / "t"
    Ours().create(path, COLUMNS, primary_key=["k"], options={"bucket": "2", "data-file.thin-mode": str(thin).lower()})
    first = [{"k": i, "a": i, "b": f"b{i}", "c": None, "d": None} for i in range(6)]
    Ours().write(path, first)
    ts.open_table(str(path)).alter(ts.RenameColumn("k", to="key"))
    java.write(path, [{"key": 1, "a": 100, "b": "java", "c": None, "d": None}])
    Ours().write(path, [{"key": 2, "a": 200, "b": "us", "c": None, "d": None}])
    expected = {row["k"]: {"key": row["k"], **{name: row[name] for name in "abcd"}} for row in first}
    expected[1] |= {"a": 100, "b": "java"}
    expected[2] |= {"a": 200, "b": "us"}
    for reader in everyone:
        assert comparable(reader.read(path)) == comparable(expected.values()), reader.name
        assert comparable(reader.read(path, equals={"key": 2})) == comparable([expected[2]]), reader.name
    java.compact(path)
    for reader in everyone:
        assert comparable(reader.read(path)) == comparable(expected.values()), reader.name


def test_java_writes_the_defaults_that_we_set(java: JavaOracle, warehouse: Path) -> None:
    path = warehouse / "db.db" / "t"
    Ours().create(path, COLUMNS, primary_key=["k"], options={"bucket": "1"})
    ts.open_table(str(path)).alter(
        [ts.ChangeDefault("a", "5"), ts.ChangeDefault("b", "none"), ts.ChangeDefault("c", "1.5"), ts.ChangeDefault("d", "0.25")]
    )
    empty = {"a": None, "b": None, "c": None, "d": None}
    java.write(path, [{"k": 1, **empty}])
    Ours().write(path, [{"k": 2, **empty}])
    filled = {"a": 5, "b": "none", "c": "1.50", "d": 0.25}
    for reader in (Ours(), java):
        assert comparable(reader.read(path)) == comparable([{"k": 1, **filled}, {"k": 2, **filled}]), reader.name


@pytest.mark.parametrize("alterer", ["java", "pypaimon"])
def test_we_read_and_go_on_with_what_they_altered(
    java: JavaOracle, pypaimon_pure: PypaimonOracle, everyone: list[Any], warehouse: Path, alterer: str
) -> None:
    path = warehouse / "db.db" / "t"
    other: Any = java if alterer == "java" else pypaimon_pure
    other.create(path, COLUMNS, primary_key=["k"], options={"bucket": "2"})
    other.write(path, [{"k": 1, "a": 1, "b": "b", "c": "1.00", "d": 0.5}])
    other.alter(path, {"action": "add", "column": "n", "type": "INT"}, {"action": "rename", "column": "a", "to": "x"})
    other.alter(path, {"action": "drop", "column": "d"}, {"action": "widen", "column": "x", "type": "BIGINT"})
    other.alter(path, {"action": "set", "key": "snapshot.num-retained.max", "value": "100"})
    table = ts.open_table(str(path))
    assert table.options()["snapshot.num-retained.max"] == "100"
    table.alter([ts.AddColumn("d", "DATE"), ts.RemoveOption("snapshot.num-retained.max")])
    Ours().write(path, [{"k": 2, "x": 2**40, "b": None, "c": None, "n": 2, "d": "2024-01-31"}])
    other.write(path, [{"k": 3, "x": 3, "b": None, "c": None, "n": 3, "d": "2024-02-01"}])
    expected = [
        {"k": 1, "x": 1, "b": "b", "c": "1.00", "n": None, "d": None},
        {"k": 2, "x": 2**40, "b": None, "c": None, "n": 2, "d": "2024-01-31"},
        {"k": 3, "x": 3, "b": None, "c": None, "n": 3, "d": "2024-02-01"},
    ]
    for reader in everyone:
        assert comparable(reader.read(path)) == comparable(expected), reader.name
    assert Ours().read(path, snapshot=1) == [{"k": 1, "a": 1, "b": "b", "c": "1.00", "d": 0.5}]


@pytest.mark.parametrize(
    ("change", "action"),
    [
        (ts.DropColumn("k"), {"action": "drop", "column": "k"}),
        (ts.DropColumn("p"), {"action": "drop", "column": "p"}),
        (ts.RenameColumn("p", to="q"), {"action": "rename", "column": "p", "to": "q"}),
        (ts.ChangeType("k", "STRING"), {"action": "widen", "column": "k", "type": "STRING"}),
        (ts.ChangeType("p", "BIGINT"), {"action": "widen", "column": "p", "type": "BIGINT"}),
        (ts.AddColumn("v", "INT"), {"action": "add", "column": "v", "type": "INT"}),
        (ts.DropColumn("nope"), {"action": "drop", "column": "nope"}),
        (ts.SetOption("bucket-key", "k"), {"action": "set", "key": "bucket-key", "value": "p"}),
    ],
)
def test_what_we_refuse_java_refuses_too(java: JavaOracle, warehouse: Path, change: Any, action: dict[str, str]) -> None:
    path = warehouse / "db.db" / "t"
    columns = number_fields(
        [{"name": "p", "type": "INT NOT NULL"}, {"name": "k", "type": "INT NOT NULL"}, {"name": "v", "type": "STRING"}]
    )
    options = {"bucket": "1", "bucket-key": "k"} if isinstance(change, ts.SetOption) else {"bucket": "1"}
    Ours().create(path, columns, primary_key=["p", "k"], partition_by=["p"], options=options)
    Ours().write(path, [{"p": 1, "k": 1, "v": "a"}])
    with pytest.raises(OracleError):
        java.alter(path, action)
    if isinstance(change, ts.SetOption):
        change = ts.SetOption("bucket-key", "p")
    table = ts.open_table(str(path))
    before = table.table_schema
    with pytest.raises(ts.TablestoreError):
        table.alter(change)
    assert table.refresh().table_schema == before
    assert [type_to_json(field.type) for field in table.table_schema.fields] == ["INT NOT NULL", "INT NOT NULL", "STRING"]


def test_all_follow_a_table_that_was_altered_while_empty_and_rescaled_later(everyone: list[Any], warehouse: Path) -> None:
    path = warehouse / "db.db" / "t"
    _us, java, _pure, native = everyone
    columns = number_fields([{"name": "p", "type": "INT NOT NULL"}, *COLUMNS[:3]])
    Ours().create(path, columns, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "1"})
    table = ts.open_table(str(path)).alter([ts.SetOption("bucket", "3"), ts.ChangeNullability("b", nullable=False)])
    assert len(table.snapshots()) == 1
    rows = [{"p": k % 2, "k": k, "a": k, "b": f"b{k}"} for k in range(12)]
    java.write(path, rows[:6])
    Ours().write(path, rows[6:])
    for reader in everyone:
        assert comparable(reader.read(path)) == comparable(rows), reader.name
    ts.open_table(str(path)).rescale(2)
    for writer in (java, native, Ours()):
        rows = [*(row for row in rows if row["k"] != 3), {"p": 1, "k": 3, "a": -3, "b": writer.name}]
        writer.write(path, rows[-1:])
    for reader in everyone:
        assert comparable(reader.read(path)) == comparable(rows), reader.name
        assert comparable(reader.read(path, equals={"p": 1, "k": 3})) == comparable(rows[-1:]), reader.name
    java.compact(path)
    for reader in everyone:
        assert comparable(reader.read(path)) == comparable(rows), reader.name
