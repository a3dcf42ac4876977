"""Functions of texts, as Spark has them."""

import re

from sqlglot import exp

from tablestore.sql.duckdb.calls import refusal

# Java's patterns that RE2 does not have: look-around, atomic groups, back references, possessive repetitions, sets of sets.
_NOT_RE2 = re.compile(r"\(\?(?:[=!>]|<[=!])|\\[1-9kGZ]|[*+?}]\+|&&")


def like(node: exp.Expr) -> exp.Expr:
    """``LIKE``, in which a backslash escapes; DuckDB's has no such sign unless it is named."""
    pattern = node.expression
    if isinstance(node.parent, exp.Escape) or (isinstance(pattern, exp.Literal) and "\\" not in pattern.name):
        return node
    if isinstance(pattern.unnest(), (exp.Any, exp.All, exp.Tuple)):
        if any("\\" in literal.name for literal in pattern.find_all(exp.Literal)):
            raise refusal("LIKE ANY or LIKE ALL with an escape character")
        return node
    return exp.Escape(this=node, expression=exp.Literal.string("\\"))


def substring(node: exp.Substring) -> exp.Expr:
    """``substring``, whose place 0 is place 1 in Spark."""
    start = node.args.get("start")
    if isinstance(start, exp.Literal):
        if start.name == "0":
            node.set("start", exp.Literal.number(1))
    elif start is not None and not isinstance(start.unnest(), exp.Neg):
        is_zero = exp.EQ(this=exp.paren(start.copy()), expression=exp.Literal.number(0))
        node.set("start", exp.Case(ifs=[exp.If(this=is_zero, true=exp.Literal.number(1))], default=start))
    return node


def checked_pattern(node: exp.Expr) -> exp.Expr:
    """A function with a regular expression that RE2 reads as Java does. Raises UnsupportedError for another one."""
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or _NOT_RE2.search(pattern.name):
        raise refusal("a regular expression that is computed, or has look-around, back references or possessive repetitions")
    return node


def replaced(node: exp.RegexpReplace) -> exp.Expr:
    """``regexp_replace``: a group is ``$1`` in Java's replacements, and ``\\1`` in RE2's."""
    checked_pattern(node)
    replacement = node.args.get("replacement")
    if not isinstance(replacement, exp.Literal) or "\\" in replacement.name:
        raise refusal("regexp_replace with a replacement that is computed or has a backslash")
    node.set("replacement", exp.Literal.string(re.sub(r"\$(\d)", r"\\\1", replacement.name)))
    return node


def short(node: exp.Expr) -> exp.Expr:
    """The name of a day or a month in three letters."""
    return exp.Left(this=node, expression=exp.Literal.number(3))
