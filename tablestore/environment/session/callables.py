"""Makes what a user gives as a function the value that an engine takes.

    a class                           an instance of it
    an object with ``eval``           that method
    an object with ``accumulate``     a function of groups (:mod:`tablestore.environment.folding`); or one of arrays, giving a value
    a generator                       a function that gives rows
    anything else that is callable    itself, also an object of the engine's own (a Spark UDF or UDTF)

Types come from what is said, else from type hints. Hints of pyarrow arrays mean: a column at a time.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

from tablestore.environment.engine import Function
from tablestore.environment.folding import Folded, accumulating
from tablestore.errors import InvalidInputError
from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.datatype import data_type
from tablestore.types.arrowtypes import to_arrow_type

TypeSource: TypeAlias = pa.DataType | str
_HINTED: Mapping[object, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    date: pa.date32(),
    datetime: pa.timestamp("us"),
}
_COLUMNS = (pa.Array, pa.ChunkedArray)


def function_of(
    name: str, function: Any, *, arguments: Sequence[TypeSource] | None = None, returns: TypeSource | None = None
) -> Function:
    """The function that is meant. Raises InvalidInputError for what cannot be called."""
    instance = function
    if inspect.isclass(function):
        try:
            instance = function()
        except TypeError as error:
            raise InvalidInputError(
                f"function {name}: the class {function.__qualname__} cannot be made without arguments ({error}); give an instance",
                kind="function",
            ) from error
    if hasattr(instance, "accumulate"):
        return _aggregate(name, instance, arguments, returns)
    call = getattr(instance, "eval", instance)
    if not callable(call):
        raise InvalidInputError(
            f"function {name}: expected a function, a class or an object that can be called, found {type(instance).__qualname__}",
            kind="function",
        )
    hints = _hints(call)
    hinted = [hints.get(parameter) for parameter in _parameters(call)]
    hinted_types = [_HINTED.get(hint) for hint in hinted]
    if arguments is not None:
        types: tuple[pa.DataType, ...] | None = tuple(_type(name, one) for one in arguments)
    else:
        types = tuple(one for one in hinted_types if one is not None) if None not in hinted_types else None
    returned = hints.get("return")
    result = _HINTED.get(returned) if returns is None else _type(name, returns)
    by_column = any(hint in _COLUMNS for hint in (*hinted, returned))
    if by_column and returned in _HINTED:
        # Arrays in, one value out: a function of a group.
        return Function(
            name=name, call=Folded(call, by_column=True), arguments=types, returns=result, by_column=True, kind="aggregate"
        )
    if inspect.isgeneratorfunction(call):
        if result is None or not pa.types.is_struct(result):
            raise InvalidInputError(
                f"function {name} gives rows: say their columns, returns='ROW<name TYPE, …>', and yield a tuple for each",
                kind="function",
            )
        return Function(name=name, call=call, arguments=types, returns=result, kind="table")
    return Function(name=name, call=call, arguments=types, returns=result, by_column=by_column)


def _aggregate(name: str, instance: Any, arguments: Sequence[TypeSource] | None, returns: TypeSource | None) -> Function:
    """An aggregate function with a state. Its types are those of ``accumulate``, behind the state, and of ``value``."""
    method = accumulating(name, instance)
    hints = _hints(method)
    hinted = [hints.get(parameter) for parameter in _parameters(method)[1:]]
    types = [_HINTED.get(hint) for hint in hinted] if arguments is None else [_type(name, one) for one in arguments]
    by_column = any(hint in _COLUMNS for hint in hinted)
    return Function(
        name=name,
        call=Folded(instance, by_column=by_column),
        arguments=None if None in types else tuple(one for one in types if one is not None),
        returns=_HINTED.get(_hints(instance.value).get("return")) if returns is None else _type(name, returns),
        by_column=by_column,
        kind="aggregate",
    )


def named_callable(name: str) -> Any:
    """The object that ``module.name`` stands for. Raises InvalidInputError."""
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInputError(
            f"{name!r:.200}: expected 'module.name' of a Python function or class that can be imported: {error}", kind="function"
        ) from error


def _type(name: str, type_source: TypeSource) -> pa.DataType:
    if isinstance(type_source, pa.DataType):
        return type_source
    if not isinstance(type_source, str):
        raise InvalidInputError(
            f"function {name}: expected a type as Arrow's or as SQL text, found {type_source!r:.80}", kind="function"
        )
    cursor = Cursor(type_source)
    parsed_type = data_type(cursor)
    cursor.expect_end()
    return to_arrow_type(parsed_type)


def _hints(call: Callable[..., Any]) -> dict[str, object]:
    routine = call if inspect.isroutine(call) else getattr(call, "__call__", call)  # noqa: B004
    try:
        return {name: _without_none(hint) for name, hint in get_type_hints(routine).items()}
    except (NameError, TypeError):
        return {}


def _without_none(hint: object) -> object:
    if get_origin(hint) in (Union, UnionType):
        alternatives = [one for one in get_args(hint) if one is not NoneType]
        return alternatives[0] if len(alternatives) == 1 else None
    return hint


def _parameters(call: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(call).parameters)
    except (TypeError, ValueError):
        return []
