"""Says whether conditions of a query may fail on a row, by its words alone: it errs on the side of yes. Pure.

    SELECT sum(x) FROM t                           no condition: nothing is computed before it is known which rows count
    … WHERE g = 5 AND name LIKE 'a%'               compares: that fails on no row, as DuckDB compares values of one type
    … WHERE CAST(v AS INT) > 2, … WHERE 10 / w > 1 computes: any value may be one that it fails on

DuckDB pushes conditions as far down as it can, so they may see rows that a scan is still to leave out.
"""

from dataclasses import dataclass

from tablestore.sql.parse.tokens import Kind, Token, tokenize

_CLAUSES = frozenset({"WHERE", "ON", "HAVING", "QUALIFY"})
_SIGNS = frozenset({"/", "%", "+", "-", "*", "::", "[", "~", "&", "^", "|>"})
# What stands before a parenthesis and computes nothing of one row that fails.
_PLAIN = frozenset({
    "ALL", "AND", "ANY", "AS", "AVG", "BETWEEN", "BY", "CASE", "COALESCE", "COUNT", "DISTINCT", "ELSE", "EXCEPT", "EXISTS",
    "FILTER", "FROM", "HAVING", "IF", "IN", "INTERSECT", "IS", "JOIN", "LATERAL", "LIKE", "MAX", "MIN", "NOT", "ON", "OR", "OVER",
    "QUALIFY", "SELECT", "SOME", "SUM", "TABLE", "THEN", "UNION", "USING", "VALUES", "WHEN", "WHERE",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RowConditions:
    """``filters``: there is a condition; ``computes``: it may be one of something that is computed."""

    filters: bool = False
    computes: bool = False

    def inside(self, outer: "RowConditions") -> "RowConditions":
        """Those of a query that another one reads."""
        return RowConditions(filters=self.filters or outer.filters, computes=self.computes or outer.computes)


def row_conditions(text: str) -> RowConditions:
    """What a query in Spark's dialect does with the rows of its tables. Raises InvalidInputError for what is not closed."""
    tokens = tokenize(text)
    return RowConditions(
        filters=any(token.key in _CLAUSES for token in tokens),
        computes=any(_computes(tokens, place) for place in range(len(tokens) - 1)),
    )


def _computes(tokens: list[Token], place: int) -> bool:
    token, behind = tokens[place], tokens[place + 1]
    before = tokens[place - 1] if place else None
    if token.kind in (Kind.WORD, Kind.NAME):
        return token.key == "DIV" or (behind.key == "(" and token.key not in _PLAIN)
    if token.key not in _SIGNS:
        return False
    if token.key == "*":
        return before is not None and before.key not in ("SELECT", "DISTINCT", "ALL", "(", ",", ".")
    # The sign of a number.
    is_sign = token.key in ("-", "+") and behind.kind is Kind.NUMBER
    return not (is_sign and before is not None and before.kind is Kind.SIGN and before.key not in (")", "]"))
