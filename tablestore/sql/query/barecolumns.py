"""Finds columns that an expression names without their table.

    CASE WHEN x > 1 THEN `end` ELSE s.y END        x, `end`

sqlglot reads the text: a word may be a column in one place and a word of SQL's in another (END, NULL, INTERVAL '1' DAY).
"""

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tablestore.sql.depth import deep
from tablestore.sql.query.dialect import Spark4


def bare_columns(text: str, names: frozenset[str], tables: frozenset[str]) -> list[int]:
    """The places in the text where columns of these names begin, with none of the tables before them; in order.

    Names are in lower case. Those in subqueries are left out, and so are all of a text that sqlglot cannot read. Raises
    InvalidInputError for one that is nested too deep.
    """
    try:
        with deep():
            tree = sqlglot.parse_one(text, read=Spark4)
    except SqlglotError:
        return []
    places = []
    for column in tree.find_all(exp.Column):
        first = column.parts[0]
        of_table = len(column.parts) > 1 and first.name.casefold() in tables
        if first.name.casefold() in names and not of_table and column.find_ancestor(exp.Query) is None:
            places.append(first.meta["start"])
    return sorted(places)
