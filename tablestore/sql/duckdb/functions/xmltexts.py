"""Writes ``to_xml`` with Spark's meaning: a row as an element whose parts stand a line each, indented by their depth.

A NULL has no element, an array one for each of its values. Fields that Spark makes attributes or the text of their element are
refused, and texts that are escaped in other ways than by ``&lt;``, ``&gt;`` and ``&amp;``.
"""

import re
from dataclasses import dataclass

from sqlglot import exp

from tablestore.sql.binding.signatures import always
from tablestore.sql.binding.sqltypes import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    SqlType,
    engine_words,
)
from tablestore.sql.duckdb.calls import refused_where
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall, from_text
from tablestore.sql.duckdb.functions.momentpatterns import has_zone, text_of
from tablestore.sql.duckdb.functions.writtenoptions import written_options
from tablestore.sql.duckdb.textforms import once

# Names of elements; those that begin with an underscore are attributes, or the text of their element.
_NAME = "[A-Za-z][A-Za-z0-9._-]*"
_INDENT = "    "
_OPTIONS = {
    "rowtag": "ROW", "arrayelementname": "item", "dateformat": "yyyy-MM-dd",
    "timestampformat": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "timestampntzformat": "yyyy-MM-dd'T'HH:mm:ss.SSS",
}  # fmt: skip
_CONTROLS = "\\x00-\\x08\\x0B-\\x1F\\x7F-\\x9F\\x{FFFE}\\x{FFFF}"
# The writer escapes a > at the begin of each of its buffers too.
_LEAST_BUFFER = 100
_ESCAPED = "REGEXP_REPLACE(REPLACE(REPLACE(REPLACE($0, '&', '&amp;'), '<', '&lt;'), ']]>', ']]&gt;'), '^>', '&gt;')"
# Few digits before and behind the point, which Java and DuckDB write alike; an empty text for others.
_DOUBLE = """CASE
    WHEN ISNAN($0) THEN 'NaN'
    WHEN ISINF($0) THEN CASE WHEN $0 > 0 THEN 'Infinity' ELSE '-Infinity' END
    WHEN ($0 = 0 OR ABS($0) >= 0.001) AND REGEXP_FULL_MATCH(CAST($0 AS TEXT), '-?[0-9]{1,7}\\.[0-9]{1,8}') THEN CAST($0 AS TEXT)
    WHEN $0 IS NOT NULL THEN ''
END"""
# Java writes decimals of as many digits behind the point without an exponent.
_MOST_PLAIN = 6


@dataclass(frozen=True, slots=True)
class _Element:
    """The writer of elements of one call."""

    call: RuleCall
    options: dict[str, str]

    def of(self, name: exp.Expr, value: exp.Expr, kind: SqlType, depth: int) -> exp.Expr:
        """An element as lines, each behind the end of the one before; NULL for a value without one."""
        line = "\n" + _INDENT * depth
        # The first line has none before it.
        start = _of_constants(line if depth else "", "<", name)
        end = _of_constants("</", name, ">")
        opened = _of_constants(start, ">")
        if not kind.is_nested:
            # CONCAT takes texts at once, a NULL as an empty one.
            return from_text(
                "CASE WHEN $0 IS NOT NULL THEN CONCAT($1, $2, $3) END", value.copy(), opened, self.text(value, kind), end
            )
        whole = once(
            self.parts(value.copy(), kind, depth + 1),
            lambda inner: from_text(
                "CASE WHEN $0 <> '' THEN CONCAT($1, $0, $2) ELSE $3 END",
                inner,
                opened,
                _of_constants(line, end),
                _of_constants(start, "/>"),
            ),
        )
        return from_text("CASE WHEN $0 IS NOT NULL THEN $1 END", value, whole)

    def child(self, name: exp.Expr, value: exp.Expr, kind: SqlType, depth: int) -> exp.Expr:
        """The element of a field; of an array those of its values."""
        return self.of_each(name, value, kind, depth) if kind.name == "array" else self.of(name, value, kind, depth)

    def of_each(self, name: exp.Expr, value: exp.Expr, kind: SqlType, depth: int) -> exp.Expr:
        (part,) = kind.parts
        assert part is not None, "the type of an argument is known"
        variable = f"_element{depth}"
        return _joined(value, variable, self.of(name, exp.column(variable), part, depth))

    def parts(self, value: exp.Expr, kind: SqlType, depth: int) -> exp.Expr:
        """The elements in that of a nested value."""
        if kind.name == "array":
            (part,) = kind.parts
            assert part is not None, "the type of an argument is known"
            variable, item = f"_item{depth}", exp.Literal.string(self.name(self.options["arrayelementname"]))
            return _joined(value, variable, self.child(item, exp.column(variable), part, depth))
        if kind.name == "map" and kind.parts[0] == STRING and kind.parts[1] is not None:
            variable = f"_entry{depth}"
            key, of_key = _field(exp.column(variable), "key"), _field(exp.column(variable), "value")
            is_odd = from_text(f"NOT REGEXP_FULL_MATCH($0, '{_NAME}')", key.copy())
            checked = refused_where(is_odd, "to_xml of a map with keys that are no names of elements", key)
            # A key that is refused is refused for a NULL too.
            element = from_text(
                "CASE WHEN $0 IS NOT NULL THEN $1 END", checked, self.child(key.copy(), of_key, kind.parts[1], depth)
            )
            return _joined(exp.Anonymous(this="MAP_ENTRIES", expressions=[value]), variable, element)
        if kind.name == "struct":
            fields = []
            for name, part in zip(kind.fields, kind.parts, strict=True):
                assert part is not None, "the type of an argument is known"
                fields.append(self.child(exp.Literal.string(self.name(name)), _field(value.copy(), name), part, depth))
            return exp.Anonymous(this="CONCAT", expressions=fields)
        raise self.call.refusal(f"of {kind}")

    def name(self, name: str) -> str:
        if not re.fullmatch(_NAME, name):
            raise self.call.refusal(f"with an element named {name[:40]!r}")
        return name

    def text(self, value: exp.Expr, kind: SqlType) -> exp.Expr:
        """A value that is not nested as a text: NULL for a NULL."""
        if kind in (TINYINT, SMALLINT, INT, BIGINT, BOOLEAN, VOID):
            return exp.cast(value, "TEXT")
        if kind == STRING:
            is_odd = from_text(
                f"REGEXP_MATCHES($0, '[{_CONTROLS}]') OR CONTAINS($0, '>') AND LENGTH($0) > {_LEAST_BUFFER}", value.copy()
            )
            escaped = refused_where(
                is_odd, "to_xml of texts with characters of control, or long ones with >", from_text(_ESCAPED, value.copy())
            )
            # Most texts have nothing of all that: one look at them says so.
            return from_text(f"CASE WHEN REGEXP_MATCHES($0, '[{_CONTROLS}&<>]') THEN $1 ELSE $0 END", value, escaped)
        if kind == DOUBLE:
            written = from_text(_DOUBLE, value)
            return refused_where(
                from_text("$0 = ''", written), "to_xml of doubles that Java may write in another way", written.copy()
            )
        if kind.is_decimal:
            # DuckDB writes no 0 before the point of a type that has no digits there.
            written = from_text(
                "REPLACE(CAST($0 AS TEXT), '.', '0.')" if kind.scale == kind.precision else "CAST($0 AS TEXT)", value
            )
            if kind.scale <= _MOST_PLAIN:
                return written
            is_small = from_text(f"ABS($0) < CAST('1e-{_MOST_PLAIN}' AS DECIMAL(38, {kind.scale}))", value.copy())
            return refused_where(is_small, "to_xml of decimals that Java writes with an exponent", written)
        if kind == DATE:
            return self.moment(exp.Cast(this=value, to=engine_words(TIMESTAMP_NTZ)), self.options["dateformat"])
        if kind == TIMESTAMP_NTZ:
            return self.moment(value, self.options["timestampntzformat"])
        if kind == TIMESTAMP:
            pattern = self.options["timestampformat"]
            return once(
                value,
                lambda at: text_of(
                    exp.Cast(this=at, to=engine_words(TIMESTAMP_NTZ)), pattern, at.copy() if has_zone(pattern) else None
                ),
            )
        raise self.call.refusal(f"of {kind}")

    def moment(self, value: exp.Expr, pattern: str) -> exp.Expr:
        if has_zone(pattern):
            raise self.call.refusal("of a date or a TIMESTAMP_NTZ by a pattern with a time zone")
        return once(value, lambda at: text_of(at, pattern))


def _of_constants(*texts: str | exp.Expr) -> exp.Expr:
    """Texts behind each other, as one constant if all are constants: each concatenation makes a text for each row."""
    parts = [exp.Literal.string(text) if isinstance(text, str) else text for text in texts]
    if all(isinstance(part, exp.Literal) for part in parts):
        return exp.Literal.string("".join(part.name for part in parts))
    return from_text(" || ".join(f"${place}" for place in range(len(parts))), *(part.copy() for part in parts))


def _joined(values: exp.Expr, variable: str, element: exp.Expr) -> exp.Expr:
    each = exp.Anonymous(
        this="LIST_TRANSFORM", expressions=[values, exp.Lambda(this=element, expressions=[exp.to_identifier(variable)])]
    )
    return exp.Anonymous(this="ARRAY_TO_STRING", expressions=[each, exp.Literal.string("")])


def _field(value: exp.Expr, name: str) -> exp.Expr:
    return exp.Anonymous(this="STRUCT_EXTRACT", expressions=[value, exp.Literal.string(name)])


def _to_xml(call: RuleCall) -> exp.Expr:
    kind, options = call.type(0), written_options(call, 1)
    if kind.name != "struct":
        raise call.mismatch(0, "a row")
    for name in options:
        if name not in _OPTIONS:
            raise call.refusal(f"with the option {name}")
    writer = _Element(call, {**_OPTIONS, **options})
    return writer.of(exp.Literal.string(writer.name(writer.options["rowtag"])), call.value(0), kind, 0)


RULES = (FunctionRule(name="to_xml", bounds=(1, 2), result=always(STRING), write=_to_xml),)
