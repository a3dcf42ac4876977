"""Checks that a bound query reads nothing but the relations that it was bound to, and calls nothing that reaches further.

The text was resolved by a walk over its tokens, which leaves what it does not know to the engine. So the tree of the whole text is
looked at once more, as an engine gets it: a table that is no relation, a function that Spark is not known to have, and a form that
is no query are refused.
"""

import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError

from tablestore.environment.engine import BoundQuery, ManagedRelation, QueryRelation, Relation, SelectList
from tablestore.environment.restricted.querylengths import HostWord, QueryLengths
from tablestore.errors import TablestoreError, UnsupportedError
from tablestore.sql.binding.binder import tables_of_others
from tablestore.sql.depth import deep
from tablestore.sql.query.dialect import CALL, Call, Spark4
from tablestore.sql.query.functions import FUNCTION_PREFIX, function_edits, is_spark_function
from tablestore.sql.query.parsedquery import ParsedQuery, Trees
from tablestore.sql.source import Path
from tablestore.sql.stored.sparkreach import HOST_FUNCTIONS, REACHING_FUNCTIONS, reaches
from tablestore.sql.stored.valuelengths import TooLong

_NO_QUERIES = (
    *(exp.DML, exp.Command, exp.Create, exp.Drop, exp.Alter, exp.Describe, exp.Into, exp.MultitableInserts, exp.Set, exp.Use),
    *(exp.QueryTransform, exp.Cache, exp.Uncache, exp.Refresh, exp.LoadData, exp.Pragma, exp.Parameter, exp.SessionParameter),
)


def check_contained(query: BoundQuery) -> None:
    """Raises UnsupportedError of kind ``restricted`` for a query that reaches out of its relations, or may make long values.

    Pure.
    """
    if query.engine_tables:
        raise _refused(f"the table {'.'.join(query.engine_tables[0])} of the engine's own")
    named = query.named()
    for reach in reaches(named.tokens):
        raise _refused(reach.what)
    for _ in function_edits(named.tokens, _check_place):
        pass
    with deep():
        trees = _parsed(named)
        tree = _checked(trees[0], named.prefix)
        _check_lengths(tree, query, named.prefix)
        named.put_back(trees)


def _check_place(path: Path) -> None:
    """A function is called by its name alone: others are those of a catalog of the engine's."""
    if len(path.parts) > 1:
        raise _refused(f"the function {path}")


def _parsed(query: ParsedQuery) -> Trees:
    try:
        return query.take()
    except TablestoreError:
        raise
    except (SqlglotError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UnsupportedError(
            "the query has a form that a restricted environment does not know; write it in another way", kind="restricted"
        ) from error


def _checked(tree: exp.Expr | None, prefix: str) -> exp.Expr:
    """The tree of a query that reads nothing but relations, and calls what Spark has."""
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
        if name in REACHING_FUNCTIONS or name in HOST_FUNCTIONS or not is_spark_function(name):
            raise _refused(f"the function {name}")
    return tree


def _check_lengths(tree: exp.Expr, query: BoundQuery, prefix: str) -> None:
    """Refuses what may make long values, and words that tell of the host: limits do not end one call."""
    columns = {f"{prefix}{number}": _columns(relation) for number, relation in enumerate(query.relations)}
    try:
        QueryLengths(columns).check(tree)
    except TooLong as error:
        raise UnsupportedError(f"a restricted environment bounds how long one value is: {error}", kind="restricted") from error
    except HostWord as error:
        raise _refused(f"the function {error}; a column of this name has its table in front: t.{error}") from error


def _columns(relation: Relation) -> Sequence[str]:
    """The names of the columns of a relation, as far as they are known."""
    match relation:
        case ManagedRelation():
            return relation.columns or [field.name for field in relation.schema.fields]
        case QueryRelation(selected=SelectList() as selected):
            return tuple(selected.columns)
    return ()


def _called(node: exp.Expr) -> str | None:
    """The function that a node calls by its name, in small letters."""
    call = node.meta.get(CALL)
    if isinstance(call, Call):
        return call.name.lower()
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else None


def _refused(description: str) -> UnsupportedError:
    return UnsupportedError(
        f"a query of a restricted environment reads the tables of its catalogs and nothing else, found {description}",
        kind="restricted",
    )
