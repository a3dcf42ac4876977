"""Documents that are read by their shapes give what those give that are read one by one."""

import itertools

import pyarrow as pa
import pytest

from tablestore.sql.duckdb.functions.functiontable import ARROW_FUNCTIONS
from tablestore.sql.duckdb.functions.xmlshapes import xml_shapes_of

TEXTS = ("1", " -3.5\t", "x", "", "  ", "é", "5.", ".5", "1e5", "99999999999999999999", "2147483648", "-2147483649", "40000")
ODD = ("&amp;", "<!--c-->1", "<![CDATA[1]]>", "a\rb", "]]>")
TEMPLATES = (
    "<a><b>{}</b><b>{}</b></a>",
    '<?xml version="1.0"?>\n<a i="{}">{}<b k="v"> <c>1</c></b><c/></a>',
    '<a>x<b i="{}"/>{}</a>',
    "<a i='{}'>{}</a>",
    '<a i = "{}"><b>{}</b></a>',
)
PATHS = ("a/b", "a/b[2]", "//b/text()", "a/text()", "a/@i", "//@k", "a/*", "count(//b)", "sum(a/b)")
NAMES = ("xpath", "xpath_string", "xpath_boolean", "xpath_double", "xpath_float", "xpath_short", "xpath_int", "xpath_long")


def _documents() -> list[str]:
    return [one.format(*pair) for one in TEMPLATES for pair in itertools.product(TEXTS, TEXTS[:2])]


@pytest.mark.parametrize("name", NAMES)
def test_a_function_gives_the_same_by_shapes_as_one_by_one(name: str) -> None:
    function = ARROW_FUNCTIONS[name]
    documents = [None, *_documents(), ""]
    for path in PATHS:
        if "(" in path and "()" not in path and name in ("xpath", "xpath_string", "xpath_boolean"):
            continue
        paths = pa.array([path])
        # Few documents have no shape.
        few = (
            function.call(pa.array(documents[at : at + 11], pa.string()), paths).to_pylist() for at in range(0, len(documents), 11)
        )
        alone = list(itertools.chain(*few))
        together = function.call(pa.array(documents, pa.string()), paths)
        assert str(together.to_pylist()) == str(alone), path


def test_documents_have_shapes_that_differ_in_texts_and_attributes_alone() -> None:
    documents = _documents()
    shaped = sum(len(shape.rows) for shape in xml_shapes_of(pa.array(documents)))
    assert shaped > len(documents) / 2


def test_what_is_no_plain_text_is_in_no_shape() -> None:
    for text in ODD:
        assert not list(xml_shapes_of(pa.array([f"<a>{text}</a>"] * 40))), text
