"""Writes columns of the target in a query of its changes."""

from tablestore.sql.query.edits import quote_name
from tablestore.sql.query.rowlevel import POSITIONS, TargetTable
from tablestore.types.datatypes import Field


def text_literal(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def qualified(alias: str, name: str) -> str:
    """A column of a table."""
    return f"{quote_name(alias)}.{quote_name(name)}"


def kept(alias: str, field: Field) -> str:
    """A column under its own name."""
    return f"{qualified(alias, field.name)} AS {quote_name(field.name)}"


def positions(alias: str, target: TargetTable) -> list[str]:
    """The columns of a row's place, if they are asked for."""
    return [f"{qualified(alias, name)} AS {quote_name(name)}" for name in POSITIONS] if target.positions else []


def old_row(alias: str, target: TargetTable) -> str:
    """The columns of the old row that are asked for, as a struct."""
    parts = [f"{text_literal(name)}, {qualified(alias, name)}" for name in target.before]
    return f"named_struct({', '.join(parts)})"
