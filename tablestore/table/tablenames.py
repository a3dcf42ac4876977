"""Parses table names with ``$``: system tables and branches.

orders                      the table
orders$files                one of its system tables
orders$branch_b1            one of its branches, a table like any other
orders$branch_b1$files      a system table of the branch
"""

from tablestore.errors import InvalidInputError
from tablestore.table.system.systemkinds import BRANCH_PREFIX, SEPARATOR
from tablestore.table.system.systemtable import SystemTable
from tablestore.table.table import Table


def named_part(table: Table, suffix: str) -> Table | SystemTable:
    """The table or system table that ``table$suffix`` names. Raises InvalidInputError, NotFoundError."""
    first, *rest = suffix.split(SEPARATOR)
    if first.startswith(BRANCH_PREFIX):
        table = table.branch(first.removeprefix(BRANCH_PREFIX))
        if not rest:
            return table
        first, *rest = rest
    if rest or not first:
        raise InvalidInputError(
            f"{table.name}{SEPARATOR}{suffix} names no table: expected table{SEPARATOR}files (a system table) or "
            f"table{SEPARATOR}{BRANCH_PREFIX}name (a branch), or a system table of a branch",
            kind="invalid-name",
        )
    return table.system(first)
