"""Keeps Spark from moving the projections of some queries into the union that a table is.

Spark 4.3 pushes the SELECT list of a query into the branches of a union below it. It breaks on a list with a correlated subquery
(``key not found``, ``Could not find``): it looks the subquery's own columns up in the branches. A coalesce to more partitions than
there can be stays where it is, and lets conditions and the choice of columns through. It costs a copy of each row, so only
queries that need it have it.
"""

from pyspark.sql import DataFrame

from tablestore.sql.query.tokenstream import Tokens

# Rows stay in the partitions in which they are read.
_MORE_THAN_THERE_ARE = 1 << 20

_LISTS = frozenset({"SELECT", "EXTEND", "SET"})
_CLAUSES = _LISTS | {"WITH", "FROM", "JOIN", "ON", "WHERE", "GROUP", "HAVING", "QUALIFY", "ORDER", "LIMIT"}
_QUERIES = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE"})


def lists_subqueries(text: str) -> bool:
    """True if a subquery stands in the SELECT list of a query, here or in one of its parts."""
    tokens = Tokens(text)
    clauses = [""]
    for at in range(len(tokens)):
        key = tokens.key(at)
        if key == "(":
            if tokens.key(at + 1) in _QUERIES and clauses[-1] in _LISTS:
                return True
            # Until it has clauses of its own, what is inside belongs to the clause outside.
            clauses.append(clauses[-1])
        elif key == ")" and len(clauses) > 1:
            clauses.pop()
        elif key in _CLAUSES and tokens.key(at - 1) != ".":
            clauses[-1] = key
    return False


def sealed(rows: DataFrame) -> DataFrame:
    """The rows, behind what no projection passes."""
    return rows.coalesce(_MORE_THAN_THERE_ARE)
