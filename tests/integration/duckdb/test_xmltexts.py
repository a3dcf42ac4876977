"""XML that DuckDB writes: the texts are those that Spark 4.3 gives, and what may differ is refused."""

from collections.abc import Iterator

import pytest

import tablestore as ts


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path_factory.mktemp("warehouse"), engine="duckdb") as env:
        yield env


@pytest.mark.deep_after(5)
@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("to_xml(named_struct('a', 1, 'b', 'x'))", "<ROW>\n    <a>1</a>\n    <b>x</b>\n</ROW>"),
        ("to_xml(named_struct('a', CAST(NULL AS INT), 'b', ''))", "<ROW>\n    <b></b>\n</ROW>"),
        ("to_xml(named_struct('a', CAST(NULL AS INT)))", "<ROW/>"),
        ("to_xml(CAST(NULL AS STRUCT<a: INT>))", None),
        (
            "to_xml(named_struct('a', array(1, 2, NULL), 'm', map('k', 1.5D)))",
            "<ROW>\n    <a>1</a>\n    <a>2</a>\n    <m>\n        <k>1.5</k>\n    </m>\n</ROW>",
        ),
        (
            "to_xml(named_struct('a', array(named_struct('x', 1), named_struct('x', 2))))",
            "<ROW>\n    <a>\n        <x>1</x>\n    </a>\n    <a>\n        <x>2</x>\n    </a>\n</ROW>",
        ),
        (
            "to_xml(named_struct('a', array(array(1, 2), array(3))))",
            "<ROW>\n    <a>\n        <item>1</item>\n        <item>2</item>\n    </a>\n    <a>\n        <item>3"
            "</item>\n    </a>\n</ROW>",
        ),
        (
            "to_xml(named_struct('a', named_struct('b', named_struct('c', true))))",
            "<ROW>\n    <a>\n        <b>\n            <c>true</c>\n        </b>\n    </a>\n</ROW>",
        ),
        ("to_xml(named_struct('a', array()))", "<ROW/>"),
        ("to_xml(named_struct('s', '<a> & ]]> \"q\" ''x'''))", "<ROW>\n    <s>&lt;a> &amp; ]]&gt; \"q\" 'x'</s>\n</ROW>"),
        (
            "to_xml(named_struct('d', DATE '2024-02-29', 't', TIMESTAMP '2024-02-29 12:30:00.123', 'n', "
            "TIMESTAMP_NTZ '2024-02-29 12:30:00.123456'))",
            "<ROW>\n    <d>2024-02-29</d>\n    <t>2024-02-29T12:30:00.123Z</t>\n    <n>2024-02-29T12:30:00.123</n>\n</ROW>",
        ),
        (
            "to_xml(named_struct('d', DATE '2024-02-29'), map('dateFormat', 'dd/MM/yyyy', 'rowTag', 'line'))",
            "<line>\n    <d>29/02/2024</d>\n</line>",
        ),
        (
            "to_xml(named_struct('t', TIMESTAMP '2015-08-26 10:00:00'), map('timestampFormat', 'dd/MM/yyyy'))",
            "<ROW>\n    <t>26/08/2015</t>\n</ROW>",
        ),
        (
            "to_xml(named_struct('a', array(array('p'))), map('arrayElementName', 'el'))",
            "<ROW>\n    <a>\n        <el>p</el>\n    </a>\n</ROW>",
        ),
        (
            "to_xml(named_struct('d', CAST(0.05 AS DECIMAL(2,2)), 'e', CAST(-1.50 AS DECIMAL(10,2)), 'f', "
            "CAST(12 AS DECIMAL(38,0))))",
            "<ROW>\n    <d>0.05</d>\n    <e>-1.50</e>\n    <f>12</f>\n</ROW>",
        ),
        (
            "to_xml(named_struct('x', double('NaN'), 'y', double('-Infinity'), 'z', 0.0D, 'w', -0.0D, 'v', "
            "1234567.25D, 'u', 0.001D))",
            "<ROW>\n    <x>NaN</x>\n    <y>-Infinity</y>\n    <z>0.0</z>\n    <w>-0.0</w>\n    <v>1234567.25"
            "</v>\n    <u>0.001</u>\n</ROW>",
        ),
        (
            "to_xml(named_struct('x', CAST('9223372036854775807' AS BIGINT), 'y', CAST(-128 AS TINYINT)))",
            "<ROW>\n    <x>9223372036854775807</x>\n    <y>-128</y>\n</ROW>",
        ),
    ],
)
def test_a_text_is_sparks(expression: str, text: str | None, env: ts.TableEnvironment) -> None:
    assert env.execute_sql(f"SELECT {expression}").to_arrow().column(0).to_pylist() == [text]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("to_xml(named_struct('é', 1))", "function\\ to_xml\\ with\\ an\\ element\\ named\\ 'é'"),
        ("to_xml(named_struct('_a', 1))", "function\\ to_xml\\ with\\ an\\ element\\ named\\ '_a'"),
        ("to_xml(named_struct('a', 1), map('nullValue', 'x'))", "function\\ to_xml\\ with\\ the\\ option\\ nullvalue"),
        ("to_xml(named_struct('a', X'00'))", "function\\ to_xml\\ of\\ BINARY"),
        ("to_xml(named_struct('s', concat('a', chr(1))))", "characters of control"),
        ("to_xml(named_struct('s', repeat('a>', 60)))", "long ones with >"),
        ("to_xml(named_struct('d', 1.0E10D))", "Java may write in another way"),
        ("to_xml(named_struct('d', CAST('0.00000001' AS DECIMAL(10, 8))))", "an exponent"),
        ("to_xml(named_struct('m', map('a b', 1)))", "no names of elements"),
    ],
)
def test_what_may_differ_is_refused(expression: str, message: str, env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.UnsupportedError, match=message):
        env.execute_sql(f"SELECT {expression}").to_arrow()


def test_texts_are_escaped_beside_others_that_need_it_not(env: ts.TableEnvironment) -> None:
    texts = ["plain", "", "<", ">a", "a>", "a&amp;b", "]]>", "é日😀", "\t", None]
    escaped = ["plain", "", "&lt;", "&gt;a", "a>", "a&amp;amp;b", "]]&gt;", "é日😀", "\t", None]
    rows = ", ".join("(NULL)" if one is None else f"('{one}')" for one in texts)
    written = env.execute_sql(f"SELECT to_xml(struct(a)) AS x FROM VALUES {rows} AS t (a)").to_arrow()["x"].to_pylist()
    assert written == ["<ROW/>" if one is None else f"<ROW>\n    <a>{one}</a>\n</ROW>" for one in escaped]


def test_rows_of_a_table_are_written(env: ts.TableEnvironment) -> None:
    rows = env.execute_sql("SELECT to_xml(struct(a, b)) AS x FROM VALUES (1, 'p'), (2, NULL) AS t (a, b) ORDER BY a").to_arrow()
    assert rows["x"].to_pylist() == ["<ROW>\n    <a>1</a>\n    <b>p</b>\n</ROW>", "<ROW>\n    <a>2</a>\n</ROW>"]
