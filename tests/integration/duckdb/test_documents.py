"""XML by paths, points in space, codes of messages and shapes of VARIANT on DuckDB: they are those that Spark 4.3 gives."""

from collections.abc import Iterator

import pytest

import tablestore as ts

_NESTED = "'<a><b>p<b>q</b>r</b><c x=\"1\">2</c></a>'"
_POINT = "X'0101000000000000000000F03F0000000000000040'"


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path_factory.mktemp("warehouse"), engine="duckdb") as env:
        yield env


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (f"xpath({_NESTED}, '//b/text()')", ["p", "q", "r"]),
        (f"xpath({_NESTED}, 'a/c/@x')", ["1"]),
        (f"xpath({_NESTED}, 'a/*')", [None, None]),
        (f"xpath_string({_NESTED}, 'a/b')", "pqr"),
        (f"xpath_string({_NESTED}, 'a/d')", ""),
        (f"xpath_boolean({_NESTED}, 'a/c')", True),
        (f"xpath_int({_NESTED}, 'count(a/*)')", 2),
        (f"xpath_int({_NESTED}, 'a/b')", 0),
        ("xpath_string('<a>&lt;<![CDATA[x<y]]><!-- c --> z</a>', 'a')", "<x<y z"),
        ("xpath_short('<a>70000</a>', 'a')", 4464),
        ("xpath_short('<a>99999999999</a>', 'a')", -1),
        ("xpath_long('<a>-3.7</a>', 'a')", -3),
        ("xpath_string('', 'a')", None),
        (f"hex(st_asbinary(st_geomfromwkb({_POINT}), 'xdr'))", "00000000013FF00000000000004000000000000000"),
        (f"st_srid(st_setsrid(st_geomfromwkb({_POINT}), 3857))", 3857),
        ("st_srid(st_geomfromwkb(NULL))", None),
        ("hex(hmac(X'01', X'02', 'sha-256'))", "6C34E84F57D4A9940C962B152ACFBD28FB6F78F2090CA1DCE041C36A07CD57EE"),
        ("schema_of_variant_agg(parse_json(j)) FROM VALUES (NULL), ('1'), ('1.5') AS t (j)", "DECIMAL(21,1)"),
    ],
)
def test_a_value_is_sparks(expression: str, value: object, env: ts.TableEnvironment) -> None:
    assert env.execute_sql(f"SELECT {expression}").to_arrow().column(0).to_pylist() == [value]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("xpath_string('<!DOCTYPE a [<!ENTITY e \"x\">]><a>&e;</a>', 'a')", "a document type"),
        ("xpath('<a>x<!-- c -->y</a>', 'a/text()')", "comments"),
        ("xpath_string('<a/>', 'a[b=1]')", "by the path"),
        (f"st_geomfromwkb({_POINT})", "as a column"),
        ("st_srid(st_geomfromwkb(X'010200000000000000'))", "other than points"),
    ],
)
def test_what_may_differ_is_refused(expression: str, message: str, env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.UnsupportedError, match=message):
        env.execute_sql(f"SELECT {expression}").to_arrow()


@pytest.mark.parametrize(
    "expression",
    [
        "xpath_string('<a>', 'a')",
        "xpath('<a/>', 'sum(a)')",
        "st_srid(st_geomfromwkb(X'0101'))",
        "st_srid(st_geogfromwkb(X'010100000000000000007087400000000000000040'))",
        "hmac('', 'x')",
    ],
)
def test_what_is_an_error_in_spark_is_one(expression: str, env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.InvalidInputError, match="expected"):
        env.execute_sql(f"SELECT {expression}").to_arrow()
