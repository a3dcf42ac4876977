"""Detects a MERGE that writes the same rows whatever the target holds; its rows are read from the source alone.

It does if it gives all columns of the source to rows that match and to rows that do not, and a new row takes the place of the one
of its key: such a MERGE is an upsert of its source.
"""

from collections.abc import Mapping, Sequence

from tablestore.sql.query.edits import quote_name
from tablestore.sql.query.querytext import RowText
from tablestore.sql.query.rowlevel import ROW_KIND, RowQuery
from tablestore.sql.query.sparktypes import stays_equal
from tablestore.sql.statements.rows import Match, MergeAction
from tablestore.sql.writing.columnvalues import GivenTypes, Value, cast_value
from tablestore.sql.writing.mergesides import MergeSides
from tablestore.types.datatypes import Field

_UPSERT = {(Match.MATCHED, MergeAction.UPDATE), (Match.NOT_MATCHED, MergeAction.INSERT)}


def upsert_query(statement: str, sides: MergeSides, values: Sequence[Mapping[str, Value]], types: GivenTypes) -> RowQuery | None:
    """The rows without a look at the target, None if that has a say in them. ``values``: what each clause gives to the columns."""
    target, clauses = sides.target, sides.merge.clauses
    kinds = [(clause.match, clause.action) for clause in clauses if clause.condition is None]
    if len(kinds) != len(clauses) or set(kinds) != _UPSERT or len(clauses) != len(_UPSERT):
        return None
    # In new rows a NULL becomes the default, in others it does not.
    if not target.replaces or target.before or any(field.default_value is not None for field in target.fields):
        return None
    insert = kinds.index((Match.NOT_MATCHED, MergeAction.INSERT))
    inserted, updated = values[insert], values[1 - insert]
    if not is_by_key(sides, inserted, types, insert) or not _gives_the_same(sides, inserted, updated):
        return None
    text = RowText(statement, ())
    text.add(f"SELECT '+I' AS {quote_name(ROW_KIND)}")
    for field in target.fields:
        value = cast_value(inserted[field.name], "", field, types, (insert, (field.name,)))
        text.add(", ", *value, f" AS {quote_name(field.name)}")
    text.add(f" FROM {sides.source_table()}")
    sets = tuple(field.name for field in target.fields if field.name in updated)
    return RowQuery(text=text.text, pieces=text.pieces, sets=sets, inserts=True, source=sides.source_query(statement))


def is_by_key(sides: MergeSides, inserted: Mapping[str, Value], types: GivenTypes, clause: int) -> bool:
    """True if the condition compares the keys alone, and an inserted row has the key by which its source looks for a match.

    ``clause``: the number of the one that inserts it, whose values have these ``types``.
    """

    def finds(key: Field) -> bool:
        place = (clause, (key.name,))
        return sides.is_equal(key.name, inserted.get(key.name)) and place in types and stays_equal(types[place], key.type)

    target = sides.target
    return sides.compares_keys and all(finds(field) for field in target.fields if field.name in target.keys)


def _gives_the_same(sides: MergeSides, inserted: Mapping[str, Value], updated: Mapping[str, Value]) -> bool:
    """True if each column is given a column of the source, and all but the keys the same one in both clauses."""
    for field in sides.target.fields:
        column = sides.source_column(field.name, inserted.get(field.name))
        if column is None:
            return False
        if field.name not in sides.target.keys and column != sides.source_column(field.name, updated.get(field.name)):
            return False
    return True
