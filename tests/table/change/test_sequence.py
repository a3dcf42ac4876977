"""An update wins over the row that it replaces, or is refused: by ``sequence.field`` every reader would go on with that row."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.lsm.functions.survivors import comes_before

KINDS = {
    "deduplicate": "",
    "partial-update": "'merge-engine' = 'partial-update',",
    "descending": "'sequence.field.sort-order' = 'descending',",
    "input": "'changelog-producer' = 'input',",
    "vectors": "'deletion-vectors.enabled' = 'true',",
}
# What is set in the row (7, 50, 3, 'old'), and whether it wins there: where the greatest order does, and where the smallest.
UPDATES: list[tuple[dict[str, Any], bool, bool]] = [
    ({"ver": 51}, True, False),
    ({"ver": 49}, False, True),
    ({"ver": 50, "v": "same"}, True, True),
    ({"v": "other"}, True, True),
    ({"sub": 4}, True, False),
    ({"sub": 2}, False, True),
    ({"ver": 51, "sub": 1}, True, False),
    ({"ver": None}, False, False),
    ({"sub": None, "v": "null"}, False, False),
]


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(str(tmp_path_factory.mktemp("warehouse")), engine="duckdb") as env:
        env.execute_sql("CREATE DATABASE shop")
        yield env


def text(value: Any) -> str:
    return "NULL" if value is None else repr(value)


def by_sql(env: ts.TableEnvironment, sets: dict[str, Any]) -> None:
    env.execute_sql(f"UPDATE shop.t SET {', '.join(f'{name} = {text(value)}' for name, value in sets.items())} WHERE id >= 7")


def by_merge(env: ts.TableEnvironment, sets: dict[str, Any]) -> None:
    values = ", ".join(f"{name} = {text(value)}" for name, value in sets.items())
    env.execute_sql(f"MERGE INTO shop.t USING (SELECT 7L AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET {values}")


def by_python(env: ts.TableEnvironment, sets: dict[str, Any]) -> None:
    env.catalog().table("shop.t").update({name: text(value) for name, value in sets.items()}, filter="id >= 7")


def by_python_merge(env: ts.TableEnvironment, sets: dict[str, Any]) -> None:
    merge = env.catalog().table("shop.t").merge(pa.table({"id": [7]}), on="id")
    merge.when_matched_update({name: text(value) for name, value in sets.items()}).execute()


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", [by_sql, by_merge, by_python, by_python_merge])
def test_an_update_wins_or_is_refused(
    env: ts.TableEnvironment, kind: str, change: Callable[[ts.TableEnvironment, dict[str, Any]], None]
) -> None:
    for sets, ascending, descending in UPDATES:
        env.execute_sql("DROP TABLE IF EXISTS shop.t")
        env.execute_sql(
            "CREATE TABLE shop.t (id BIGINT, ver INT, sub INT, v STRING, PRIMARY KEY (id) NOT ENFORCED) "
            f"WITH ({KINDS[kind]} 'sequence.field' = 'ver, sub', 'bucket' = '1')"
        )
        env.execute_sql("INSERT INTO shop.t VALUES (1, 60, 3, 'else'), (7, 50, 3, 'old')")
        table = env.catalog().table("shop.t")
        before = table.scan().to_arrow().sort_by("id")
        snapshots = len(table.snapshots())
        if descending if kind == "descending" else ascending:
            change(env, sets)
            old = {"id": 7, "ver": 50, "sub": 3, "v": "old"}
            assert table.refresh().scan(filter="id = 7").to_arrow().to_pylist() == [{**old, **sets}], sets
            continue
        with pytest.raises(ts.InvalidInputError) as raised:
            change(env, sets)
        assert raised.value.kind == ("update-null" if kind == "partial-update" and None in sets.values() else "update-order")
        assert table.refresh().scan().to_arrow().sort_by("id") == before, sets
        assert len(table.snapshots()) == snapshots


def test_the_refusal_names_the_key_the_values_and_the_way_out(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE shop.named (id BIGINT, ver INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('sequence.field' = 'ver')")
    env.execute_sql("INSERT INTO shop.named VALUES (1, 5), (2, NULL)")
    with pytest.raises(ts.InvalidInputError, match=r"sets ver = 4 in the row with id = 1, which has ver = 5: .*INSERT OVERWRITE"):
        env.execute_sql("UPDATE shop.named SET ver = 4")
    # Nothing comes before NULL.
    env.execute_sql("UPDATE shop.named SET ver = 1 WHERE ver IS NULL")
    env.execute_sql("UPDATE shop.named SET ver = ver + 1")
    env.execute_sql("INSERT OVERWRITE shop.named VALUES (1, 0)")
    assert env.execute_sql("SELECT * FROM shop.named").to_arrow().to_pylist() == [{"id": 1, "ver": 0}]


def test_rows_come_before_others_column_by_column() -> None:
    ours = [pa.array([1, 2, None, 1, 1]), pa.array([None, 0, 9, 2, 3])]
    theirs = [pa.array([1, 1, 1, 1, 1]), pa.array([0, 9, 0, 2, 2])]
    assert comes_before(ours, theirs, [False, False]).tolist() == [True, False, True, False, False]
    assert comes_before(ours, theirs, [True, True]).tolist() == [True, True, True, False, True]
