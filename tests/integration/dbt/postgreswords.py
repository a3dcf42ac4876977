"""Says in tablestore's words what dbt's suites write straight into a database in those of Postgres."""

import re

import sqlglot
from sqlglot import exp

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?")
# Statements that begin so change rows or tables, or quote names by quotation marks: the others are the adapter's own, or need no
# other words.
_CHANGES = ("insert", "create table", "update", "alter table", 'select "')
_VIEW = "create materialized view"
# dbt puts names in their places afterwards.
_FILLED_IN = ("schema", "database")


def in_our_words(sql: str) -> str:
    """The statement as tablestore reads it; as it is where it needs nothing, or is no SQL of Postgres."""
    # The names come from the adapter, in backticks.
    text = re.sub(r"^(\s|--[^\n]*\n|/\*.*?\*/)*", "", sql, flags=re.DOTALL)
    if text.lower().startswith(_VIEW):
        return f"create materialized table{text[len(_VIEW) :]}"
    if not text.lower().startswith(_CHANGES):
        return sql
    for name in _FILLED_IN:
        text = text.replace(f"{{{name}}}", f"__{name}__")
    try:
        trees = sqlglot.parse(text.replace("`", '"'), read="postgres")
    except sqlglot.ParseError:
        return sql
    words = "; ".join(_in_our_words(tree) for tree in trees if tree is not None)
    for name in _FILLED_IN:
        words = words.replace(f"__{name}__", f"{{{name}}}")
    return words


def _in_our_words(tree: exp.Expr) -> str:
    if isinstance(tree, exp.Insert):
        # A text is no time for tablestore, as for Spark.
        for literal in list(tree.find_all(exp.Literal)):
            if literal.is_string and not isinstance(literal.parent, exp.Cast):
                for pattern, kind in ((_DAY, "DATE"), (_TIME, "TIMESTAMP")):
                    if pattern.fullmatch(literal.this):
                        literal.replace(exp.cast(literal.copy(), kind))
    for kind in list(tree.find_all(exp.DataType)):
        # A time with a zone, as the adapter declares those of seeds.
        if kind.this in (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPTZ):
            kind.replace(exp.DataType.build("TIMESTAMPLTZ"))
    return tree.sql(dialect="spark")
