"""Writes a DELETE or an UPDATE as one query for its changed rows, in which the condition and the values are the user's text.

UPDATE t SET x = x + 1 WHERE id = 7
SELECT '+U' AS `_row_kind`, `t`.`id` AS `id`, CAST(x + 1 AS INT) AS `x` FROM `_tablestore_target` AS `t` WHERE (id = 7)
"""

from tablestore.sql.query.edits import quote_name
from tablestore.sql.query.querytext import RowText
from tablestore.sql.query.rowlevel import BEFORE, ROW_KIND, TARGET, RowQuery, TargetTable
from tablestore.sql.statements.rows import Delete, Update
from tablestore.sql.writing.columntext import kept, old_row, positions, qualified
from tablestore.sql.writing.columnvalues import AssignedValues, GivenTypes, cast_value, column_values, leaves, values_query


def delete_query(statement: str, delete: Delete, target: TargetTable) -> RowQuery:
    """The rows that a DELETE removes. A place is enough to remove a row by; otherwise they have all columns."""
    alias = delete.alias or delete.target.parts[-1]
    text = RowText(statement, () if delete.alias else (delete.target,))
    row = [f"'-D' AS {quote_name(ROW_KIND)}"]
    if not target.positions:
        row += [kept(alias, field) for field in target.fields]
    text.add("SELECT ", ", ".join([*row, *positions(alias, target)]), f" FROM {TARGET} AS {quote_name(alias)}")
    if delete.where is not None:
        text.add(" WHERE (", delete.where, ")")
    return RowQuery(text=text.text, pieces=text.pieces, deletes=True)


def update_query(statement: str, update: Update, target: TargetTable, types: GivenTypes | None = None) -> RowQuery:
    """The new rows of an UPDATE. ``types``: those of its values, where they are known."""
    alias = update.alias or update.target.parts[-1]
    values = column_values(statement, update.assignments, target, (alias, update.target))
    text = RowText(statement, () if update.alias else (update.target,))
    text.add(f"SELECT '+U' AS {quote_name(ROW_KIND)}")
    for field in target.fields:
        text.add(", ")
        if field.name in values:
            value = cast_value(values[field.name], qualified(alias, field.name), field, types or {}, (0, (field.name,)))
            text.add(*value, f" AS {quote_name(field.name)}")
        else:
            text.add(kept(alias, field))
    for position in positions(alias, target):
        text.add(", ", position)
    if target.before:
        text.add(f", {old_row(alias, target)} AS {quote_name(BEFORE)}")
    text.add(f" FROM {TARGET} AS {quote_name(alias)}")
    if update.where is not None:
        text.add(" WHERE (", update.where, ")")
    return RowQuery(text=text.text, pieces=text.pieces, sets=tuple(values))


def updated_values(statement: str, update: Update, target: TargetTable) -> AssignedValues | None:
    """The values that an UPDATE assigns; None if there are none but defaults."""
    alias = update.alias or update.target.parts[-1]
    value_leaves = leaves(column_values(statement, update.assignments, target, (alias, update.target)), target.fields, (0, ()))
    text = RowText(statement, () if update.alias else (update.target,))
    return values_query(text, [(leaf, [value]) for leaf, value in value_leaves], [f"{TARGET} AS {quote_name(alias)}"])
