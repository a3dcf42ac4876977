"""Describes functions that DuckDB calls back with whole columns of Arrow data, for what its own SQL cannot say.

A query names them by :data:`ARROW_PREFIX`; whoever runs the query registers those that it names (``tablestore_duckdb.arrowcalls``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from tablestore.sql.binding.sqltypes import SqlType

ARROW_PREFIX = "__TABLESTORE_ARROW_"
"""The beginning of their names, in capitals as sqlglot writes the name of a function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowFunction:
    """A function over columns. ``call`` takes Arrow arrays of ``arguments`` with NULLs and gives one of ``result``, as long.

    An error of tablestore's that it raises is that of the query. ``is_volatile``: it gives another value each time.
    """

    name: str
    arguments: tuple[SqlType, ...]
    result: SqlType
    call: Callable[..., Any]
    is_volatile: bool = False

    @property
    def engine_name(self) -> str:
        """The name of the function in DuckDB's SQL."""
        return f"{ARROW_PREFIX}{self.name.upper()}"

    def of(self, *values: exp.Expr) -> exp.Expr:
        """A call of the function in DuckDB's SQL; the values have the types of its arguments."""
        return exp.Anonymous(this=self.engine_name, expressions=list(values))
