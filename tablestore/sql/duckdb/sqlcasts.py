"""Casts, and what DuckDB does in them in another way than Spark: it rounds, and takes parts of a row by their name."""

import re

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.duckdb.calls import call, refusal
from tablestore.sql.duckdb.kinds import Kind

_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")
_NESTED = {exp.DType.ARRAY, exp.DType.MAP, exp.DType.STRUCT}
_INTEGERS = {exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT}
_FLOATS = {exp.DType.FLOAT, exp.DType.DOUBLE}
_TEXTS = {exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR}


def cast(node: exp.Cast, kind: Kind | None) -> exp.Expr:
    """A cast that cuts fractions off. ``kind``: of what is cast."""
    inner = node.this
    if type(node) is exp.Cast and type(inner) is exp.Cast and {node.to.this, inner.to.this} & _NESTED:
        return _converted(inner, inner.to, node.to)
    if node.to.this in _INTEGERS and kind is not None and kind.name in ("decimal", "float", "fraction"):
        node.set("this", call("TRUNC", node.this))
    if node.to.this is exp.DType.DECIMAL and kind is not None and kind.name == "float":
        node.set("this", _written(node.this))
    if node.to.this in _INTEGERS and kind is not None and kind.name == "text":
        return _of_digits(node)
    if node.to.this in _INTEGERS and isinstance(inner, exp.Literal) and inner.is_string and not _WHOLE.fullmatch(inner.name):
        if isinstance(node, exp.TryCast):
            node.set("this", exp.null())
        else:
            raise InvalidInputError(
                f"CAST({inner.sql()} AS {node.to.sql()}): expected the digits of a whole number, found {inner.sql()}; cast it to a "
                "DECIMAL first",
                kind="query",
            )
    if node.to.this in _TEXTS and kind is not None and kind.name == "float":
        raise refusal("the cast of a float to a text")
    return node


def _written(number: exp.Expr) -> exp.Expr:
    """A float as the shortest decimal that stands for it, which Spark rounds: 1.005 and not 1.00499999999999989."""
    double = exp.Cast(this=number, to=exp.DataType.build("DOUBLE"))
    return exp.Cast(this=double, to=exp.DataType.build("TEXT"))


def _of_digits(node: exp.Cast) -> exp.Expr:
    """A cast of a text to a whole number. DuckDB would round ``12.7``; what it refuses, it refuses itself."""
    text = node.this
    no_digits = exp.Not(this=call("REGEXP_FULL_MATCH", text.copy(), exp.Literal.string(_WHOLE.pattern)))
    if isinstance(node, exp.TryCast):
        return exp.Case(ifs=[exp.If(this=no_digits, true=exp.null())], default=node)
    is_rounded = exp.Is(this=exp.TryCast(this=text.copy(), to=node.to.copy()), expression=exp.Not(this=exp.null()))
    found = [exp.Literal.string("expected the digits of a whole number, found '"), text.copy(), exp.Literal.string("'")]
    failed = exp.If(this=exp.And(this=no_digits, expression=is_rounded), true=call("ERROR", exp.Concat(expressions=found)))
    return exp.Case(ifs=[failed], default=node)


def part_by_part(node: exp.Cast) -> None:
    """A cast of a written array, map or row as casts of its parts, whose types are known better; those of a row by place."""
    value, wanted = node.this, node.to
    if type(node) is not exp.Cast or not wanted.expressions:
        return
    if wanted.this is exp.DType.ARRAY and isinstance(value, exp.Array):
        value.set("expressions", [_part(one, wanted.expressions[0]) for one in value.expressions])
    elif wanted.this is exp.DType.MAP and isinstance(value, (exp.Map, exp.VarMap)):
        for name, kind in zip(("keys", "values"), wanted.expressions, strict=True):
            if isinstance(parts := value.args.get(name), exp.Array):
                parts.set("expressions", [_part(one, kind) for one in parts.expressions])
    elif wanted.this is exp.DType.STRUCT and isinstance(value, exp.Struct) and len(value.expressions) == len(wanted.expressions):
        fields = [
            exp.PropertyEQ(
                this=exp.to_identifier(field.name, quoted=True),
                expression=_part(one.expression if isinstance(one, exp.PropertyEQ) else one.unalias(), field.kind),
            )
            for one, field in zip(value.expressions, wanted.expressions, strict=True)
        ]
        value.set("expressions", fields)


def _part(value: exp.Expr, wanted: exp.DataType) -> exp.Cast:
    made = exp.Cast(this=value, to=wanted.copy())
    part_by_part(made)
    return made


def _converted(value: exp.Expr, given: exp.DataType, wanted: exp.DataType, depth: int = 0) -> exp.Expr:
    """A value of a known type as another, part by part. DuckDB would round numbers, and take parts of a row by their name."""
    if given == wanted:
        return value
    name = f"_part{depth}"
    part = exp.column(name)
    if given.this != wanted.this or given.this not in _NESTED:
        if wanted.this in _TEXTS and given.this in _FLOATS:
            raise refusal("the cast of a float to a text")
        if wanted.this in _INTEGERS and given.this in (*_FLOATS, exp.DType.DECIMAL):
            value = call("TRUNC", value)
        if wanted.this is exp.DType.DECIMAL and given.this in _FLOATS:
            value = _written(value)
        return exp.Cast(this=value, to=wanted.copy())
    made: exp.Expr
    if given.this is exp.DType.ARRAY:
        inside = _converted(part, given.expressions[0], wanted.expressions[0], depth + 1)
        made = _each(value, inside, name)
    elif given.this is exp.DType.MAP:
        keys, values = (
            _each(call(parts, value.copy()), _converted(part.copy(), *types, depth + 1), name)
            for parts, types in zip(
                ("MAP_KEYS", "MAP_VALUES"), zip(given.expressions, wanted.expressions, strict=True), strict=True
            )
        )
        made = call("MAP", keys, values)
    else:
        fields = [
            exp.PropertyEQ(
                this=exp.to_identifier(right.name, quoted=True),
                expression=_converted(
                    call("STRUCT_EXTRACT", value.copy(), exp.Literal.string(left.name)), left.kind, right.kind, depth
                ),
            )
            for left, right in zip(given.expressions, wanted.expressions, strict=True)
        ]
        made = exp.Struct(expressions=fields)
    is_null = exp.Is(this=value.copy(), expression=exp.null())
    return exp.Cast(this=exp.Case(ifs=[exp.If(this=is_null, true=exp.null())], default=made), to=wanted.copy())


def _each(value: exp.Expr, inside: exp.Expr, name: str) -> exp.Expr:
    return exp.Transform(this=value, expression=exp.Lambda(this=inside, expressions=[exp.to_identifier(name)]))
