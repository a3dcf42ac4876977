"""Makes Arrow functions of functions over the values of one row, for algorithms that no column of Arrow has an operation for.

Columns repeat their values: each distinct row is computed once, and the results are spread over the rows.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.sql.binding.sqltypes import BIGINT, BINARY, BOOLEAN, DOUBLE, INT, STRING, SqlType, array
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction

_ARROW = {
    STRING: pa.string(), BINARY: pa.binary(), INT: pa.int32(), BIGINT: pa.int64(), DOUBLE: pa.float64(), BOOLEAN: pa.bool_(),
    array(STRING): pa.list_(pa.string()),
}  # fmt: skip


def by_value(
    name: str, arguments: tuple[SqlType, ...], result: SqlType, call: Callable[..., Any], *, takes_nulls: bool = False
) -> ArrowFunction:
    """An Arrow function of a function over values, which is NULL where one of them is, unless ``takes_nulls``.

    No argument is a DOUBLE: 0.0 and -0.0 would be one value.
    """
    assert DOUBLE not in arguments, "values are told apart by their equality"
    kind = pa.decimal128(result.precision, result.scale) if result.is_decimal else _ARROW[result]

    def of_row(row: tuple[Any, ...]) -> Any:
        return None if None in row and not takes_nulls else call(*row)

    def over(*columns: pa.Array) -> pa.Array:
        if len(columns) == 1:
            encoded = columns[0].dictionary_encode(null_encoding="encode")
            rows = [(value,) for value in encoded.dictionary.to_pylist()]
            return pc.take(pa.array(map(of_row, rows), kind), encoded.indices)
        places: dict[tuple[Any, ...], int] = {}
        # A loop over rows in Python: what is equal in all columns is computed once.
        indices = [places.setdefault(row, len(places)) for row in zip(*(one.to_pylist() for one in columns), strict=True)]
        return pc.take(pa.array(map(of_row, places), kind), pa.array(indices, pa.int32()))

    return ArrowFunction(name=name, arguments=arguments, result=result, call=over)


def over_texts(function: ArrowFunction, of_texts: Callable[[pa.Array], pa.Array]) -> ArrowFunction:
    """The same function of one column of bytes, which ``of_texts`` computes for columns whose bytes are all texts in UTF-8."""

    def over(column: pa.Array) -> pa.Array:
        try:
            texts = column.cast(pa.string())
        except pa.ArrowInvalid:
            return function.call(column)
        return of_texts(texts)

    return replace(function, call=over)
