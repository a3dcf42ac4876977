"""Spark 4's dialect for sqlglot, where sqlglot's own is that of an older Spark."""

from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

WRITTEN = "written"
"""Under this key the meta of a column of a result has where it begins and ends in the text."""


class Spark4(Spark):
    """In Spark 4 a quote inside of a text may be doubled, and in its ANSI mode a CAST that fails is an error."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar = ["\\", "'", '"']

    class Parser(SparkParser):
        STRICT_CAST = True

        def _parse_expression(self) -> exp.Expr | None:
            first = self._curr
            found = super()._parse_expression()
            if found is not None:
                found.meta[WRITTEN] = (first.start, self._prev.end + 1)
            return found


def is_spark_function(name: str) -> bool:
    """Whether Spark has a function of this name."""
    parser = Spark4.Parser
    return name.upper() in parser.FUNCTIONS or name.upper() in parser.FUNCTION_PARSERS
