"""What does a name behind ``$`` mean?

orders                      the table
orders$files                one of its system tables
orders$branch_b1            one of its branches, a table like any other
orders$branch_b1$files      a system table of the branch
"""

from typing import cast

from tablestore.errors import InvalidInputError
from tablestore.table.system.systemtable import SEPARATOR
from tablestore.table.table import Table

BRANCH_PREFIX = "branch_"


def named_part(table: Table, suffix: str) -> Table:
    """What ``table$suffix`` names. Raises InvalidInputError, NotFoundError.

    A system table is a :class:`~tablestore.table.system.systemtable.SystemTable`, which can be read as a table is and no more:
    callers who want that from the type checker ask for ``table.system(name)``.
    """
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
    return cast(Table, table.system(first))
