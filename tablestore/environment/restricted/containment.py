"""Checks that a bound query reads nothing but the relations that it was bound to, and calls nothing that reaches further.

The text was resolved by a walk over its tokens, which leaves what it does not know to the engine. So the tree of the whole text is
looked at once more, as an engine gets it: a table that is no relation, a function that Spark is not known to have, and a form that
is no query are refused.
"""

import re
from datetime import date

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tablestore.environment.engine import BoundQuery
from tablestore.errors import TablestoreError, UnsupportedError
from tablestore.sql.binding.binder import tables_of_others
from tablestore.sql.depth import deep
from tablestore.sql.freshnames import fresh_name
from tablestore.sql.query.dialect import CALL, Call, Spark4
from tablestore.sql.query.extent import Tokens
from tablestore.sql.query.functions import FUNCTION_PREFIX, function_edits, is_spark_function
from tablestore.sql.source import Path
from tablestore.sql.stored.sparkreach import REACHING_FUNCTIONS, reaches

# Functions whose result is as long as a number says, and where that stands. No engine stops inside of one call.
_COUNTED = {"repeat": 1, "array_repeat": 1, "lpad": 1, "rpad": 1, "space": 0, "randstr": 0}
MOST_COUNTED = 10_000_000
"""The product of the counts of a query that such functions may name."""
_FORMATS = ("format_string", "printf")
_WIDE = re.compile(r"[0-9]{5,}")
_NO_QUERIES = (
    *(exp.DML, exp.Command, exp.Create, exp.Drop, exp.Alter, exp.Describe, exp.Into, exp.MultitableInserts, exp.Set, exp.Use),
    *(exp.QueryTransform, exp.Cache, exp.Uncache, exp.Refresh, exp.LoadData, exp.Pragma, exp.Parameter, exp.SessionParameter),
)


def check_contained(query: BoundQuery) -> None:
    """Raises UnsupportedError of kind ``restricted`` for a query that reaches out of its relations. Pure."""
    if query.engine_tables:
        raise _refused(f"the table {'.'.join(query.engine_tables[0])} of the engine's own")
    prefix = fresh_name("__relation_", query.text)
    text = query.edited(lambda number: f"{prefix}{number}")
    tokens = Tokens(text)
    for reach in reaches(tokens):
        raise _refused(reach.what)
    for _ in function_edits(tokens, _check_place):
        pass
    with deep():
        _check_tree(_parsed(text), prefix)


def _check_place(path: Path) -> None:
    """A function is called by its name alone: others are those of a catalog of the engine's."""
    if len(path.parts) > 1:
        raise _refused(f"the function {path}")


def _parsed(text: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(text, read=Spark4)
    except TablestoreError:
        raise
    except (SqlglotError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UnsupportedError(
            "the query has a form that a restricted environment does not know; write it in another way", kind="restricted"
        ) from error


def _check_tree(tree: exp.Expr, prefix: str) -> None:
    if not isinstance(tree, (exp.Query, exp.Values)):
        raise _refused(f"what is no query ({type(tree).__name__})")
    for node in tree.find_all(*_NO_QUERIES):
        raise _refused(f"what is no query ({type(node).__name__}) in one")
    for hint in list(tree.find_all(exp.Hint)):
        hint.pop()
    for table in tables_of_others(tree, {}):
        if len(table.parts) != 1 or not re.fullmatch(rf"{prefix}\d+", table.name):
            raise _refused(f"{table.sql(dialect=Spark4)[:80]}, which is no table of a catalog")
    for node in tree.walk():
        name = _called(node)
        if name is None or name.startswith(FUNCTION_PREFIX):
            continue
        if name in REACHING_FUNCTIONS or not is_spark_function(name):
            raise _refused(f"the function {name}")
    _check_lengths(tree)


def _check_lengths(tree: exp.Expr) -> None:
    """Refuses what makes one value as long as a number says, unless that is written and small: limits do not end one call."""
    product = 1
    for node in tree.walk():
        name = _called(node) or ""
        arguments = list(node.expressions) if isinstance(node, exp.Anonymous) else list(node.iter_expressions())
        if name in _COUNTED:
            count = _written(arguments[_COUNTED[name]]) if len(arguments) > _COUNTED[name] else 1
            wanted = f"a count of {name} that is written, or least(…, a written number)"
        elif name == "sequence":
            first, last = (_written(one) for one in arguments[:2]) if len(arguments) > 1 else (None, None)
            count = None if first is None or last is None else abs(last - first) + 1
            wanted = "the ends of sequence as written whole numbers or dates; the table function range takes any"
        elif name in _FORMATS and arguments:
            is_narrow = isinstance(arguments[0], exp.Literal) and not _WIDE.search(arguments[0].name)
            count, wanted = (1 if is_narrow else None), f"a written format of {name}, whose widths have at most four digits"
        else:
            continue
        product *= max(count or 0, 1)
        if count is None or product > MOST_COUNTED:
            raise UnsupportedError(
                f"a restricted environment bounds how long one value is: expected {wanted}, and all such counts of a query "
                f"multiplied at most {MOST_COUNTED:,}, found {node.sql(dialect=Spark4)[:80]}",
                kind="restricted",
            )


def _written(number: exp.Expr) -> int | None:
    """A whole number, or the day of a date, that is written, or the least of such a number and others."""
    plain = number.unnest()
    if isinstance(plain, exp.Neg):
        inner = _written(plain.this)
        return None if inner is None else -inner
    if isinstance(plain, exp.Least):
        known = [one for one in map(_written, (plain.this, *plain.expressions)) if one is not None]
        return min(known, default=None)
    if isinstance(plain, exp.Literal) and not plain.is_string and plain.name.isdecimal():
        return int(plain.name)
    is_date = isinstance(plain, exp.Cast) and plain.to.is_type("date") and isinstance(plain.this, exp.Literal)
    try:
        return date.fromisoformat(plain.this.name).toordinal() if is_date else None
    except ValueError:
        return None


def _called(node: exp.Expr) -> str | None:
    """The function that a node calls by its name, in small letters."""
    call = node.meta.get(CALL)
    if isinstance(call, Call):
        return call.name.lower()
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else None


def _refused(what: str) -> UnsupportedError:
    return UnsupportedError(
        f"a query of a restricted environment reads the tables of its catalogs and nothing else, found {what}", kind="restricted"
    )
