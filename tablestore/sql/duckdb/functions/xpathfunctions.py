"""Writes functions of XML by a path with Spark's meaning: names, ``*``, ``//`` and places, an attribute or ``text()`` at the end.

Documents are read by the standard library's parser; one that declares a type, and so entities, is refused, as is one with a
namespace. Other paths of XPath are refused.
"""

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.signatures import always
from tablestore.sql.binding.sqltypes import BIGINT, BOOLEAN, DOUBLE, FLOAT, INT, SMALLINT, STRING, VOID, SqlType, array
from tablestore.sql.duckdb.calls import refusal
from tablestore.sql.duckdb.functions.argumenttypes import text, written_text
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall

_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"
_STEP = re.compile(rf"(//?|^)(?:text\(\)|({_NAME}|\*)(?:\[([1-9]\d{{0,5}})\])?|@({_NAME}))")
_CALLED = re.compile(r"(sum|count)\((.*)\)")
_NUMBER = re.compile(r"[ \t\r\n]*(-?(?:\d+(?:\.\d*)?|\.\d+))[ \t\r\n]*")
_MARKUP = re.compile(r"<!DOCTYPE|xmlns|<\?(?!xml[ \t])|\r|&#13;|&#x0*[dD];", re.IGNORECASE)
_SPLIT = re.compile("<!--|<!\\[CDATA")
_BITS = {SMALLINT: 32, INT: 32, BIGINT: 64}


@dataclass(frozen=True, slots=True)
class _Step:
    is_deep: bool
    name: str = ""
    place: int = 0
    attribute: str = ""

    @property
    def is_text(self) -> bool:
        return not self.name and not self.attribute


@dataclass(frozen=True, slots=True)
class _Path:
    steps: tuple[_Step, ...]
    function: str = ""


@cache
def parse_path(path: str) -> _Path:
    """The steps of a path. Raises UnsupportedError for one of another form."""
    called = _CALLED.fullmatch(path)
    inner = called[2] if called is not None else path
    steps: list[_Step] = []
    at = 0
    while (match := _STEP.match(inner, at)) is not None:
        if steps and not match[1]:
            break
        steps.append(_Step(match[1] == "//", match[2] or "", int(match[3] or 0), match[4] or ""))
        at = match.end()
    # Names that XPath has words for, and what follows an attribute or a text.
    is_odd = any(not step.name for step in steps[:-1]) or any(step.is_deep and step.place for step in steps)
    if at < len(inner) or not steps or is_odd:
        raise refusal(f"a function of XML by the path {path[:40]!r}")
    return _Path(tuple(steps), called[1] if called is not None else "")


def _values_by(path: _Path, document: str) -> list[tuple[str, bool]]:
    """The texts of what a path leads to, and for each whether it is an element."""
    if _MARKUP.search(document):
        raise refusal("a function of XML with a document type, a namespace or an instruction")
    try:
        root = ElementTree.fromstring(document)
    except (ElementTree.ParseError, ValueError) as error:
        raise InvalidInputError(f"expected an XML document, found {document[:40]!r}: {error}", kind="query") from error
    above = ElementTree.Element("")
    above.append(root)
    nodes = [above]
    for step in path.steps:
        if step.is_text:
            if _SPLIT.search(document):
                raise refusal("text() of XML with comments or CDATA")
            return [(one, False) for one in _texts_of(above, _starts(above, nodes, step))]
        if step.attribute:
            held = (node.get(step.attribute) for node in _starts(above, nodes, step))
            return [(one, False) for one in held if one is not None]
        reached: list[ElementTree.Element] = []
        for node in nodes:
            inner = node.iter() if step.is_deep else iter(node)
            kept = [one for one in inner if one is not node and step.name in ("*", one.tag)]
            reached += kept[step.place - 1 : step.place] if step.place else kept
        nodes = _in_order(above, reached)
    return [("".join(node.itertext()), True) for node in nodes]


def _in_order(above: ElementTree.Element, nodes: list[ElementTree.Element]) -> list[ElementTree.Element]:
    """Each of some elements once, as they stand in the document."""
    chosen = set(map(id, nodes))
    return [node for node in above.iter() if id(node) in chosen]


def _starts(above: ElementTree.Element, nodes: list[ElementTree.Element], step: _Step) -> list[ElementTree.Element]:
    """The elements whose attributes and texts a last step takes."""
    return _in_order(above, [one for node in nodes for one in node.iter()]) if step.is_deep else nodes


def _texts_of(above: ElementTree.Element, nodes: list[ElementTree.Element]) -> Iterator[str]:
    """The texts that stand in some elements themselves, as they stand in the document."""
    chosen = set(map(id, nodes))
    open_elements = [(above, iter(above))]
    while open_elements:
        node, rest = open_elements[-1]
        inner = next(rest, None)
        if inner is not None:
            if id(inner) in chosen and inner.text:
                yield inner.text
            open_elements.append((inner, iter(inner)))
            continue
        open_elements.pop()
        if open_elements and id(open_elements[-1][0]) in chosen and node.tail:
            yield node.tail


def _as_number(value: str) -> float:
    match = _NUMBER.fullmatch(value)
    return float(match[1]) if match is not None else math.nan


def _number(document: str, path: str) -> float:
    parsed = parse_path(path)
    values = _values_by(parsed, document)
    if parsed.function == "count":
        return float(len(values))
    if parsed.function == "sum":
        return sum((_as_number(value) for value, _ in values), 0.0)
    return _as_number(values[0][0]) if values else math.nan


def _whole(kind: SqlType) -> Callable[[str, str], int]:
    """A number as Java casts it: 0 for none, the nearest one that the type has; a SMALLINT is the end of an INT."""
    end = 1 << _BITS[kind] - 1

    def whole(document: str, path: str) -> int:
        number = _number(document, path)
        value = 0 if math.isnan(number) else end if number >= end else -end if number <= -end else int(number)
        value = min(value, end - 1)
        return (value + 2**15) % 2**16 - 2**15 if kind == SMALLINT else value

    return whole


def _text(document: str, path: str) -> str:
    parsed = parse_path(path)
    if parsed.function:
        raise refusal(f"xpath_string of {parsed.function}()")
    values = _values_by(parsed, document)
    return values[0][0] if values else ""


def _texts(document: str, path: str) -> list[str | None]:
    parsed = parse_path(path)
    if parsed.function:
        raise InvalidInputError(f"the function `xpath`: expected a path to nodes, found {path!r}", kind="query")
    return [None if is_element else value for value, is_element in _values_by(parsed, document)]


def _boolean(document: str, path: str) -> bool:
    parsed = parse_path(path)
    if parsed.function:
        raise refusal(f"xpath_boolean of {parsed.function}()")
    return bool(_values_by(parsed, document))


def _function(name: str, result: SqlType, arrow: pa.DataType, call: Callable[[str, str], Any]) -> ArrowFunction:
    def over_columns(documents: pa.Array, paths: pa.Array) -> pa.Array:
        # A document is read by itself: there is no other way than one at a time.
        rows = zip(documents.to_pylist(), paths.to_pylist(), strict=True)
        return pa.array([call(document, path) if document and path else None for document, path in rows], arrow)

    return ArrowFunction(name=name, arguments=(STRING, STRING), result=result, call=over_columns)


_FUNCTIONS = (
    _function("xpath", array(STRING), pa.list_(pa.string()), _texts),
    _function("xpath_string", STRING, pa.string(), _text),
    _function("xpath_boolean", BOOLEAN, pa.bool_(), _boolean),
    _function("xpath_double", DOUBLE, pa.float64(), _number),
    _function("xpath_float", FLOAT, pa.float32(), _number),
    _function("xpath_short", SMALLINT, pa.int16(), _whole(SMALLINT)),
    _function("xpath_int", INT, pa.int32(), _whole(INT)),
    _function("xpath_long", BIGINT, pa.int64(), _whole(BIGINT)),
)


def _reached(function: ArrowFunction) -> Callable[[RuleCall], exp.Expr]:
    def write(call: RuleCall) -> exp.Expr:
        if call.type(0) not in (STRING, VOID):
            raise call.mismatch(0, "a text")
        if isinstance(call.values[1], exp.Null):
            path: exp.Expr = call.value(1, STRING)
        else:
            parse_path(written_text(call, 1, "a path"))
            path = text(call, 1)
        return function.of(call.value(0, STRING), path)

    return write


RULES = tuple(
    FunctionRule(
        name=function.name,
        bounds=(2, 2),
        result=always(function.result),
        write=_reached(function),
        aliases=("xpath_number",) if function.name == "xpath_double" else (),
    )
    for function in _FUNCTIONS
)
ARROW = _FUNCTIONS
