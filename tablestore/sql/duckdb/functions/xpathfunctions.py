"""Writes functions of XML by a path with Spark's meaning: names, ``*``, ``//`` and places, an attribute or ``text()`` at the end.

Documents of one shape are read at once (:mod:`xmlshapes`), others one by one by the standard library's parser. One that declares a
type, and so entities, is refused, as is one with a namespace. Other paths of XPath are refused.
"""

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, reduce
from operator import add
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.sql.binding.signatures import always
from tablestore.sql.binding.sqltypes import BIGINT, BOOLEAN, DOUBLE, FLOAT, INT, SMALLINT, STRING, VOID, SqlType, array
from tablestore.sql.duckdb.calls import refusal
from tablestore.sql.duckdb.functions.argumenttypes import text, written_text
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall
from tablestore.sql.duckdb.functions.rowchunks import Chunk, put_together
from tablestore.sql.duckdb.functions.xmlshapes import XmlShape, xml_shapes_of

_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"
_STEP = re.compile(rf"(//?|^)(?:text\(\)|({_NAME}|\*)(?:\[([1-9]\d{{0,5}})\])?|@({_NAME}))")
_CALLED = re.compile(r"(sum|count)\((.*)\)")
_SPACES = " \t\r\n"
_DIGITS = r"-?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_NUMBER = re.compile(rf"[{_SPACES}]*({_DIGITS})[{_SPACES}]*")
_MARKUP = re.compile(r"<!DOCTYPE|xmlns|<\?(?!xml[ \t])|\r|&#13;|&#x0*[dD];", re.IGNORECASE)
_SPLIT = re.compile("<!--|<!\\[CDATA")
_F64: TypeAlias = "npt.NDArray[np.float64]"
_NUMBERS = (DOUBLE, FLOAT, SMALLINT, INT, BIGINT)
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
    is_flat = True
    for step in path.steps:
        is_flat = is_flat and not step.is_deep
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
        # Elements of one depth come in their order.
        nodes = reached if is_flat else _in_order(above, reached)
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
        # One after the other, as Java adds them; Python's sum is a nearer one.
        return reduce(add, (_as_number(value) for value, _ in values), 0.0)
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


def _column_of_numbers(shape: XmlShape, path: str) -> _F64:
    parsed = parse_path(path)
    values = _values_by(parsed, shape.document)
    count = len(shape.rows)
    if parsed.function == "count":
        return np.full(count, float(len(values)))
    if parsed.function == "sum":
        return reduce(np.add, (_as_numbers(shape.column_of(value)) for value, _ in values), np.zeros(count))
    return _as_numbers(shape.column_of(values[0][0])) if values else np.full(count, np.nan)


def _as_numbers(values: pa.Array) -> _F64:
    trimmed = pc.ascii_trim(values, _SPACES)
    numbers = pc.if_else(pc.match_substring_regex(trimmed, f"^({_DIGITS})$"), trimmed, "nan").cast(pa.float64())
    return np.asarray(numbers)


def _column_of_doubles(shape: XmlShape, path: str) -> pa.Array:
    return pa.array(_column_of_numbers(shape, path))


def _column_of_floats(shape: XmlShape, path: str) -> pa.Array:
    return pa.array(_column_of_numbers(shape, path)).cast(pa.float32(), safe=False)


def _column_of_wholes(kind: SqlType, arrow: pa.DataType) -> "Callable[[XmlShape, str], pa.Array]":
    end = 1 << _BITS[kind] - 1

    def wholes(shape: XmlShape, path: str) -> pa.Array:
        numbers = _column_of_numbers(shape, path)
        is_inside = np.abs(numbers) < end
        values = np.where(is_inside, numbers, 0.0).astype(np.int64)
        values[numbers >= end] = end - 1
        values[numbers <= -end] = -end
        return pa.array(values.astype(np.int16) if kind == SMALLINT else values).cast(arrow)

    return wholes


def _column_of_first(shape: XmlShape, path: str) -> pa.Array:
    parsed = parse_path(path)
    values = [] if parsed.function else _values_by(parsed, shape.document)
    return shape.column_of(values[0][0] if values else "")


def _column_of_lists(shape: XmlShape, path: str) -> pa.Array:
    values = _values_by(parse_path(path), shape.document)
    many, count = len(values), len(shape.rows)
    columns = [pa.nulls(count, pa.string()) if is_element else shape.column_of(value) for value, is_element in values]
    # The first texts of all rows, then the second ones: they are put together by rows.
    order = np.arange(many * count).reshape(many, count).T.reshape(-1)
    texts = pa.concat_arrays(columns or [pa.array([], pa.string())]).take(pa.array(order))
    return pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32) * many), texts)


def _column_of_booleans(shape: XmlShape, path: str) -> pa.Array:
    return pa.repeat(pa.scalar(bool(_values_by(parse_path(path), shape.document))), len(shape.rows))


def _function(
    name: str,
    result: SqlType,
    arrow: pa.DataType,
    call: Callable[[str, str], Any],
    by_shape: Callable[[XmlShape, str], pa.Array],
) -> ArrowFunction:
    def chunks(documents: pa.Array, path: str) -> Iterator[Chunk]:
        for shape in xml_shapes_of(documents):
            # What is wrong with a document, or refused, is said of itself.
            with suppress(InvalidInputError, UnsupportedError):
                yield shape.rows, by_shape(shape, path)

    def one_by_one(documents: pa.Array, path: str) -> pa.Array:
        return pa.array([call(document, path) if document else None for document in documents.to_pylist()], arrow)

    def over_columns(documents: pa.Array, paths: pa.Array) -> pa.Array:
        # A path is a constant.
        path = paths[0].as_py() if len(paths) else None
        if not path:
            return pa.nulls(len(documents), arrow)
        takes_shapes = not parse_path(path).function or result in _NUMBERS
        parts = chunks(documents, path) if takes_shapes else ()
        return put_together(len(documents), arrow, parts, lambda rows: one_by_one(documents.take(rows), path))

    return ArrowFunction(name=name, arguments=(STRING, STRING), result=result, call=over_columns)


_FUNCTIONS = (
    _function("xpath", array(STRING), pa.list_(pa.string()), _texts, _column_of_lists),
    _function("xpath_string", STRING, pa.string(), _text, _column_of_first),
    _function("xpath_boolean", BOOLEAN, pa.bool_(), _boolean, _column_of_booleans),
    _function("xpath_double", DOUBLE, pa.float64(), _number, _column_of_doubles),
    _function("xpath_float", FLOAT, pa.float32(), _number, _column_of_floats),
    _function("xpath_short", SMALLINT, pa.int16(), _whole(SMALLINT), _column_of_wholes(SMALLINT, pa.int16())),
    _function("xpath_int", INT, pa.int32(), _whole(INT), _column_of_wholes(INT, pa.int32())),
    _function("xpath_long", BIGINT, pa.int64(), _whole(BIGINT), _column_of_wholes(BIGINT, pa.int64())),
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
