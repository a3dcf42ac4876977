"""VARIANT columns of managed tables on DuckDB: what functions make is stored, and functions take what is stored."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import InvalidInputError, TablestoreError

DOCUMENTS = {
    1: '{"a":1,"b":[1,2.50,null,true],"c":{"d":"x"}}',
    2: "null",
    3: '"\\u0001\\"q\\" é\\n"',
    4: "-12345678901234567890.5",
    5: "[]",
}


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path_factory.mktemp("warehouse"), engine="duckdb") as env:
        env.execute_sql("CREATE TABLE v (id INT NOT NULL, v VARIANT, a ARRAY<VARIANT>, PRIMARY KEY (id) NOT ENFORCED)")
        rows = ", ".join(f"({id}, '{text.replace(chr(92), chr(92) * 2)}')" for id, text in DOCUMENTS.items())
        env.execute_sql(f"INSERT INTO v SELECT id, parse_json(j), array(parse_json(j)) FROM VALUES {rows} AS t (id, j)")
        env.execute_sql("INSERT INTO v VALUES (6, NULL, NULL)")
        yield env


def rows_of(env: ts.TableEnvironment, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in env.execute_sql(text).to_arrow().to_pylist()]


# The texts are those of Spark 4.3.
JSON = ['{"a":1,"b":[1,2.5,null,true],"c":{"d":"x"}}', "null", '"\\u0001\\"q\\" é\\n"', "-12345678901234567890.5", "[]", None]


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("to_json(v)", JSON),
        ("to_json(a[0])", JSON),
        ("variant_get(v, '$.a', 'int')", [1, *[None] * 5]),
        ("to_json(variant_get(v, '$.c'))", ['{"d":"x"}', *[None] * 5]),
        ("is_variant_null(v)", [False, True, False, False, False, False]),
        ("v IS NULL", [*[False] * 5, True]),
        ("CASE id WHEN 1 THEN to_json(variant_set(v, '$.a', 7)) END", ['{"a":7,"b":[1,2.5,null,true],"c":{"d":"x"}}', *[None] * 5]),
    ],
)
def test_functions_take_what_is_stored(env: ts.TableEnvironment, expression: str, values: list[Any]) -> None:
    assert [value for (value,) in rows_of(env, f"SELECT {expression} FROM v ORDER BY id")] == values


@pytest.mark.deep
def test_statements_keep_the_type_and_the_bytes(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE c AS SELECT id, v, a FROM v")
    described = {row["name"]: row["type"] for row in env.execute_sql("DESCRIBE c").to_arrow().to_pylist()}
    assert (described["v"], described["a"]) == ("VARIANT", "ARRAY<VARIANT>")
    assert rows_of(env, "SELECT * FROM c ORDER BY id") == rows_of(env, "SELECT * FROM v ORDER BY id")
    env.execute_sql("UPDATE v SET v = parse_json('[7]') WHERE id = 6")
    env.execute_sql(
        "MERGE INTO v USING (SELECT 5 AS id, parse_json('8') AS v) AS s ON v.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v"
    )
    env.execute_sql("ALTER TABLE v ADD COLUMN w VARIANT")
    env.execute_sql("ALTER TABLE v COMPACT")
    assert rows_of(env, "SELECT to_json(v), to_json(w) FROM v WHERE id >= 5 ORDER BY id") == [("8", None), ("[7]", None)]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("INSERT INTO v (id, v) VALUES (9, 'text')", "takes no STRING"),
        ("SELECT CAST(1 AS VARIANT)", "the cast to a VARIANT"),
        ("SELECT CAST(array(1) AS ARRAY<VARIANT>)", "the cast to a VARIANT"),
        ("SELECT to_json(parse_json('1e300'))", "a VARIANT with a double"),
        ("CREATE TABLE x (v VARIANT NOT NULL, PRIMARY KEY (v) NOT ENFORCED)", "primary key names 'v' of type VARIANT"),
        ("CREATE TABLE x (i INT, v VARIANT) PARTITIONED BY (v)", "partitioning names 'v' of type VARIANT"),
        ("CREATE TABLE x (i INT, v VARIANT) WITH ('clustering.columns' = 'v')", "clustering.columns"),
        ("CREATE TABLE x (i INT, v VARIANT) WITH ('file.format' = 'orc')", "'v' of type VARIANT"),
        ("CREATE TABLE x (i INT, v ARRAY<VARIANT>) WITH ('file.format' = 'avro')", "'v' is a VARIANT"),
        (
            "CREATE TABLE x (i INT NOT NULL, v VARIANT, PRIMARY KEY (i) NOT ENFORCED) WITH ('sequence.field' = 'v')",
            "cannot order rows",
        ),
        (
            "CREATE TABLE x (i INT NOT NULL, v VARIANT, PRIMARY KEY (i) NOT ENFORCED) WITH ('merge-engine' = 'aggregation', "
            "'fields.v.aggregate-function' = 'max')",
            "max of column 'v'",
        ),
        ("ALTER TABLE v MODIFY v STRING", "cannot become STRING, it is VARIANT"),
    ],
)
def test_what_a_variant_cannot_be_is_refused_by_name(env: ts.TableEnvironment, statement: str, words: str) -> None:
    with pytest.raises(ts.TablestoreError) as refused:
        env.execute_sql(statement).to_arrow()
    assert words in str(refused.value)


def test_a_variant_is_not_compared_wherever_it_stands(env: ts.TableEnvironment) -> None:
    statements = [
        *(f"SELECT {item} FROM v" for item in ("count(DISTINCT v)", "v <=> v", "nullif(v, v)", "map(v, 1)", "collect_set(v)")),
        *(
            f"SELECT {item} FROM v"
            for item in ("CASE v WHEN v THEN 1 END", "array_distinct(a)", "row_number() OVER (PARTITION BY v)")
        ),
        *(
            f"SELECT id FROM v WHERE {condition}"
            for condition in ("v = v", "a = a", "v IN (parse_json('1'))", "v IS DISTINCT FROM v")
        ),
        *("SELECT DISTINCT v FROM v", "SELECT 1 FROM v GROUP BY v", "SELECT 1 FROM v GROUP BY ROLLUP (id, v)"),
        *("SELECT v FROM v UNION SELECT v FROM v", "SELECT a FROM v EXCEPT SELECT a FROM v"),
        *("SELECT x.id FROM v x JOIN v y ON x.v = y.v", "DELETE FROM v WHERE v = parse_json('1')"),
        "MERGE INTO v USING (SELECT parse_json('8') AS q) AS s ON v.v = s.q WHEN MATCHED THEN DELETE",
    ]
    for statement in statements:
        with pytest.raises(InvalidInputError, match="a VARIANT cannot be compared"):
            env.execute_sql(statement)
    assert len(rows_of(env, "SELECT v FROM v UNION ALL SELECT v FROM v")) == 12


def test_bytes_of_others_that_are_no_variant_are_refused_and_found(tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path, engine="duckdb") as env:
        env.execute_sql("CREATE TABLE b (id INT NOT NULL, v VARIANT, PRIMARY KEY (id) NOT ENFORCED)")
        # An array of 2**31 - 1 elements, a decimal and an object that are cut, a text that is no UTF-8; 5 is whole.
        values = ["13ffffff7f00", "1c7b", "020100", "05ff", "00"]
        columns = [pa.array(map(bytes.fromhex, values), pa.binary()), pa.array([b"\1\0\0"] * 5, pa.binary())]
        rows = pa.table({"id": pa.array(range(1, 6), pa.int32()), "v": pa.StructArray.from_arrays(columns, ["value", "metadata"])})
        ts.open_table(str(tmp_path / "default.db" / "b")).upsert(rows)
        assert rows_of(env, "SELECT id FROM b WHERE is_valid_variant(v)") == [(5,)]
        for call in ("to_json(v)", "variant_get(v, '$.a', 'int')", "schema_of_variant(v)", "variant_delete(v, '$.a')"):
            for id in range(1, 5):
                with pytest.raises(TablestoreError, match="expected the bytes of a VARIANT, found others"):
                    env.execute_sql(f"SELECT {call} FROM b WHERE id = {id}").to_arrow()
