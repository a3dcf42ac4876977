"""Edits the text of a query so that an engine reads relations instead of tables.

Only at the places of references and of column names that begin with a table's path; everything else stays as written.

    SELECT shop.orders.id FROM shop.orders VERSION AS OF 3          SELECT orders.id FROM {m0} AS `orders`
"""

from collections.abc import Iterator, Sequence

from tablestore.sql.query.tablereferences import Reference
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.source import Edit, Span
from tablestore.sql.sqldialect import SqlDialect


def relation_edits(reference: Reference, relation: int, dialect: SqlDialect = SqlDialect.SPARK) -> Iterator[Edit]:
    """The edits that put the name of a relation in the place of a table."""
    quoted = quote_name if dialect is SqlDialect.SPARK else _quote_name_duckdb
    alias = "" if reference.alias_at is None else f" AS {quoted(reference.path.parts[-1])}"
    end = reference.span.end if reference.cut is None else reference.cut.end
    is_alias_last = reference.alias_at == end
    yield Edit(span=Span(reference.span.start, end), relation=relation, text=alias if is_alias_last else "")
    if reference.alias_at is not None and not is_alias_last:
        yield Edit(span=Span(reference.alias_at, reference.alias_at), text=alias)


def prefix_edits(
    tokens: Tokens, references: Sequence[Reference], replaced: Sequence[tuple[Reference, Sequence[str]]]
) -> Iterator[Edit]:
    """The edits that shorten ``db.t.c`` and ``db.t.*`` to ``t.c`` and ``t.*`` where ``t`` is now the alias of a relation.

    ``replaced``: references with the whole path of their tables.
    """
    named = [(reference, path) for reference, path in replaced if reference.alias_at is not None]
    reference_starts = {reference.span.start for reference in references}
    behind = 0
    for dot in tokens.places((".",)) if named else ():
        at = dot - 1
        # Shorter chains have no path in them.
        if at < behind or tokens.key(dot + 2) != "." or not tokens.is_name(at):
            continue
        behind = tokens.after_chain(at)
        parts = [tokens.name(i) for i in range(at, behind, 2)]
        columns = 0 if (tokens.key(behind), tokens.key(behind + 1)) == (".", "*") else 1
        if len(parts) > columns + 1 and tokens.key(behind) != "(" and tokens[at].start not in reference_starts:
            scoped = [item for item in named if item[0].scope.start <= tokens[at].start < item[0].scope.end]
            cut = max((_prefix(parts, len(parts) - columns, item) for item in scoped), default=0)
            if cut > 1:
                yield Edit(span=Span(tokens[at].start, tokens[at + 2 * (cut - 1)].start))


def quote_name(name: str) -> str:
    """A name between backticks."""
    return "`" + name.replace("`", "``") + "`"


def _quote_name_duckdb(name: str) -> str:
    """A name between quotes."""
    return '"' + name.replace('"', '""') + '"'


def _prefix(parts: Sequence[str], most: int, named: tuple[Reference, Sequence[str]]) -> int:
    """The number of first parts that are the path of a table, or the end of its whole path."""
    reference, path = named
    for count in range(min(most, 3), 1, -1):
        prefix = [part.casefold() for part in parts[:count]]
        for table_path in (reference.path.parts, path):
            if prefix == [part.casefold() for part in table_path[-count:]]:
                return count
    return 0
