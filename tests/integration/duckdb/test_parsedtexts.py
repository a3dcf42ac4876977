"""JSON and CSV read and written on DuckDB: the values are those that Spark 4.3 gives."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from sqlglot import exp

import tablestore as ts
from tablestore.sql.binding.sqltypes import engine_words
from tablestore.sql.duckdb.functions import parsedtexts
from tablestore.sql.duckdb.functions.functionrule import from_text


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path_factory.mktemp("warehouse"), engine="duckdb") as env:
        yield env


_NONE: dict[str, Any] = {"a": None}


@pytest.mark.deep_after(21)
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("""from_json('{"a":1, "b":0.8}', 'a INT, b DOUBLE')""", {"a": 1, "b": 0.8}),
        ("""from_json('{"a":"1", "b":"x"}', 'a INT, b DOUBLE')""", {"a": None, "b": None}),
        ("""from_json('{"a":1.5,"b":1}', 'a INT, b DOUBLE')""", {"a": None, "b": 1.0}),
        ("from_json('', 'a INT')", None),
        ("from_json('[1]', 'a INT')", _NONE),
        ("from_json(' null', 'a INT')", _NONE),
        ("""from_json('{"A":1}', 'a INT')""", _NONE),
        ("""from_json('{"a":99999999999}', 'a INT')""", _NONE),
        ("""from_json(' {"a":true}', 'a INT')""", _NONE),
        ("""from_json('{"s":true}', 's STRING')""", {"s": "true"}),
        ("from_json('[1,2,\"x\"]', 'ARRAY<INT>')", None),
        ("from_json('[1,null]', 'ARRAY<INT>')", [1, None]),
        (
            """from_json('{"a":[1,"q"],"b":{"c":"z"}}', 'a ARRAY<BIGINT>, b STRUCT<c: INT>')""",
            {"a": None, "b": {"c": None}},
        ),
        ("""from_json('[{"a":1},{"a":2}]', 'ARRAY<STRUCT<a:INT>>')""", [{"a": 1}, {"a": 2}]),
        (
            """schema_of_json('{"b":1.5,"a":[1,2.5],"c":null,"e":{},"f":[]}')""",
            "STRUCT<a: ARRAY<DOUBLE>, b: DOUBLE, c: STRING, f: ARRAY<STRING>>",
        ),
        ("schema_of_json('[1,\"a\"]')", "ARRAY<STRING>"),
        ("from_csv('1, 0.8', 'a INT, b DOUBLE')", {"a": 1, "b": 0.8}),
        ("from_csv('1,x', 'a INT, b DOUBLE')", {"a": 1, "b": None}),
        ("from_csv('1,2,3', 'a INT, b DOUBLE')", {"a": 1, "b": 2.0}),
        ("from_csv('', 'a INT')", _NONE),
        ("from_csv(NULL, 'a INT')", None),
        ("from_csv('a, b ', 'a STRING, b STRING')", {"a": "a", "b": " b "}),
        ("from_csv('1.5', 'a INT')", _NONE),
        ("to_csv(named_struct('a', 1, 'b', CAST(NULL AS INT), 'c', true, 'd', 'x'))", "1,,true,x"),
        ("schema_of_csv('1,abc')", "STRUCT<_c0: INT, _c1: STRING>"),
        (
            "schema_of_csv('1,2.5,true,2024-02-29,99999999999,')",
            "STRUCT<_c0: INT, _c1: DOUBLE, _c2: BOOLEAN, _c3: DATE, _c4: BIGINT, _c5: STRING>",
        ),
        ("schema_of_csv('1|abc', map('sep', '|'))", "STRUCT<_c0: INT, _c1: STRING>"),
        ("schema_of_csv('2024-02-30')", "STRUCT<_c0: STRING>"),
        ("schema_of_csv('a b,26/08/2015')", "STRUCT<_c0: STRING, _c1: STRING>"),
        ("from_csv('1;x', 'a INT, b STRING', map('sep', ';'))", {"a": 1, "b": "x"}),
        ("from_csv('1|x', 'a INT, b STRING', map('delimiter', '|'))", {"a": 1, "b": "x"}),
        ("from_csv('1,x', 'a INT, b STRING', map('mode', 'PERMISSIVE'))", {"a": 1, "b": "x"}),
        ("from_csv('26/08/2015', 'time STRING', map('sep', '|'))", {"time": "26/08/2015"}),
        ("from_csv(concat('1', chr(9), '2'), 'a INT, b INT', map('sep', '\\t'))", {"a": 1, "b": 2}),
        ("to_csv(named_struct('a', 1, 'b', 'x'), map('sep', ';'))", "1;x"),
        ("to_csv(named_struct('a', 1, 'b', 'x', 'c', CAST(NULL AS STRING)), map('quoteAll', 'true'))", '"1","x",""'),
        ("to_csv(named_struct('a', CAST(NULL AS INT)), map('quoteAll', 'true'))", '""'),
        ("from_json('{\"a\":1}', 'a INT', map('mode', 'PERMISSIVE'))", {"a": 1}),
        ("schema_of_json('{\"a\":1,\"b\":[true]}', map('primitivesAsString', 'true'))", "STRUCT<a: STRING, b: ARRAY<STRING>>"),
        ("schema_of_json('{\"a\":1}', map('allowComments', 'true'))", "STRUCT<a: BIGINT>"),
        ("INTERVAL '12:34.123456789' MINUTE TO SECOND", dt.timedelta(seconds=754, microseconds=123456)),
        ("INTERVAL '1 00:00:00.999999999' DAY TO SECOND", dt.timedelta(days=1, microseconds=999999)),
        ("INTERVAL '-0.0000019' SECOND", dt.timedelta(days=-1, seconds=86399, microseconds=999999)),
    ],
)
def test_a_value_is_sparks(expression: str, value: object, env: ts.TableEnvironment) -> None:
    assert env.execute_sql(f"SELECT {expression}").to_arrow().column(0).to_pylist() == [value]


@pytest.mark.deep_after(12)
@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("from_json('{x', 'a INT')", "not well-formed"),
        ("""from_json('{"a":1,"a":2}', 'a INT')""", "has a name twice"),
        ("""from_json('{"s":1.50}', 's STRING')""", "a number in this form"),
        ("""from_json('{"a":3}', 'ARRAY<STRUCT<a:INT>>')""", "an object as an array of rows"),
        ("""from_json('{"d":"NaN"}', 'd DOUBLE')""", "name no number"),
        ("from_json('{}', 'd TIME')", "with the schema"),
        ("""from_json('{"d":"2024-2-3"}', 'd DATE')""", "of '2024-2-3' as DATE"),
        ("""from_json('{"t":"2024-02-03T10:00:00Z"}', 't TIMESTAMP_NTZ')""", "as TIMESTAMP_NTZ"),
        ("""from_json('{"t":1}', 't TIMESTAMP')""", "of numbers as timestamps"),
        ("""from_json('{"n":"1_0"}', 'n DECIMAL(4,1)')""", "as DECIMAL"),
        ("""from_json('{"a":"x"}', 'MAP<STRING, INT>')""", "a map whose values do not fit"),
        ("from_csv('\"a,b\",c', 'a STRING, b STRING')", "with quotes"),
        ("from_csv(' 1', 'a INT')", "as INT"),
        ("to_csv(named_struct('a', 'x,y'))", "to_csv of texts"),
        ("to_csv(named_struct('a', CAST(NULL AS INT)))", "of one NULL"),
        ("schema_of_csv('-5,Nan')", "function\\ schema_of_csv\\ of\\ the\\ cell\\ 'Nan'"),
        ("from_csv('1,x', 'a INT, b STRING', map('mode', 'FAILFAST'))", "function\\ from_csv\\ with\\ the\\ mode\\ FAILFAST"),
        ("from_csv('1,x', 'a INT, b STRING', map('nullValue', 'x'))", "function\\ from_csv\\ with\\ the\\ option\\ nullvalue"),
        ("to_csv(named_struct('a', 1), map('sep', 'ab'))", "function\\ to_csv\\ with\\ the\\ separator\\ 'ab'"),
        ("schema_of_csv('a\"b')", "of\\ a\\ text\\ with\\ quotes,\\ comments\\ or\\ ends\\ of\\ lines"),
        (
            "schema_of_json('{\"a\":1}', map('prefersDecimal', 'true'))",
            "function\\ schema_of_json\\ with\\ the\\ option\\ prefersdecimal",
        ),
        (
            "to_csv(named_struct('a', 'x;y'), map('sep', ';'))",
            "of\\ texts\\ that\\ are\\ empty,\\ or\\ have\\ quotes,\\ signs\\ or\\ space\\ around\\ them",
        ),
    ],
)
def test_what_may_differ_is_refused(expression: str, message: str, env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.UnsupportedError, match=message):
        env.execute_sql(f"SELECT {expression}").to_arrow()


_EDGES_OF_JSON = (
    '{"i":1,"s":"a","d":1.5,"b":true,"t":["x"],"n":[1]}',
    ' {"i":1}',
    "{}",
    "{ }",
    "null",
    "[]",
    "1",
    '"a"',
    "{",
    '{"i":1}x',
    '{"i":1} ',
    '{"i":1,}',
    '{"t":["x",]}',
    '{"d":NaN}',
    '{"d":[-Inf]}',
    '{"d":-Infinity}',
    '{"i":null,"s":null,"d":null,"b":null,"t":null,"n":null}',
    '{"t":[null,"x"],"n":[null]}',
    '{"t":["x",1]}',
    '{"t":"x"}',
    '{"t":{"x":1}}',
    '{"t":[["x"]]}',
    '{"n":[1.5]}',
    '{"n":[9223372036854775807]}',
    '{"n":[9223372036854775808]}',
    '{"i":2147483647}',
    '{"i":2147483648}',
    '{"i":-2147483648}',
    '{"i":1.0}',
    '{"i":1e2}',
    '{"i":"1"}',
    '{"i":true}',
    '{"i":-0}',
    '{"i":01}',
    '{"i":9223372036854775808}',
    '{"i":123456789012345678901234567890}',
    '{"d":1}',
    '{"d":-0.0}',
    '{"d":1e308}',
    '{"d":1e400}',
    '{"d":0.1}',
    '{"d":123456789012345678}',
    '{"d":1234567890123456789012}',
    '{"d":"1"}',
    '{"s":1}',
    '{"s":1.5}',
    '{"s":{"a":1}}',
    '{"s":""}',
    '{"s":"é😀"}',
    r'{"s":"\u00e9"}',
    r'{"s":"\ud800"}',
    r'{"s":"\n\"\\"}',
    '{"s":"-0, nan"}',
    '{"S":"a"}',
    '{"s":"a","S":"b"}',
    '{"s":"a","s":"b"}',
    '{"s":"a","x":1}',
    '{"s":"a","x":1,"x":2}',
    '{"b":"true"}',
    '{"b":1}',
    "{'s':'a'}",
    "nan",
    "x",
    "",
    " ",
)
_EDGES_OF_CSV = (
    "1,a,1.5,true",
    "1,a,1.5,true,more",
    "1,a,1.5",
    "1",
    "",
    ",,,",
    "2147483648,,,",
    "999999999,,,",
    "-5,-,-1.5,false",
    "+1,,,",
    "01,,01.50,",
    " 1,,,",
    "1 ,a , 1,",
    ',"a",,',
    ",a\\b,,",
    "#1,,,",
    ",é😀,,",
    ",,NaN,",
    ",,1e5,",
    ",,-0,",
    ",,-0.0,",
    ",,.5,",
    ",,5.,",
    ",,,TRUE",
    "x,x,x,x",
    '1,a,1,true,"',
    "-0,,,",
    "\n1,,,",
)


@pytest.mark.parametrize(
    ("schema", "texts", "is_flat"),
    [
        ("i INT, s STRING, d DOUBLE, b BOOLEAN, t ARRAY<STRING>, n ARRAY<BIGINT>", _EDGES_OF_JSON, False),
        ("i INT, s STRING, d DOUBLE, b BOOLEAN", _EDGES_OF_CSV, True),
    ],
)
def test_what_duckdb_reads_itself_is_what_is_read_with_care(schema: str, texts: tuple[str, ...], is_flat: bool) -> None:
    kind = parsedtexts.schema_type(schema)
    assert kind is not None
    plain = parsedtexts._plain_csv(kind, ",") if is_flat else parsedtexts._plain_json(kind)
    assert plain is not None
    words = engine_words(kind).sql("duckdb")
    is_plain, value = (from_text(one, exp.column("s")).sql("duckdb") for one in plain)
    with duckdb.connect() as connection:
        query = (
            f"SELECT s, CAST({value} AS {words}) FROM (SELECT unnest($1) AS s) WHERE CASE WHEN {is_plain} THEN TRUE ELSE FALSE END"
        )
        read = dict(connection.execute(query, [list(texts)]).fetchall())

        def with_care(text: str) -> object:
            careful = parsedtexts._read_csv(text, kind, ",") if is_flat else parsedtexts._read_json(text, kind)
            row = connection.execute(f"SELECT CAST(CAST($1 AS JSON) AS {words})", [careful]).fetchone()
            return row and row[0]

        assert {text: repr(value) for text, value in read.items()} == {text: repr(with_care(text)) for text in read}
    assert len(read) >= len(texts) // 5
