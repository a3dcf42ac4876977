"""What does a name behind ``$`` mean?

orders                      the table
orders$files                one of its system tables
orders$branch_b1            one of its branches, a table like any other
orders$branch_b1$files      a system table of the branch
"""

from typing import cast

from tablestore.catalog.identifier import check_reference
from tablestore.errors import InvalidInputError, NotFoundError
from tablestore.store.branchfiles import MAIN_BRANCH, branch_files
from tablestore.store.context import open_context
from tablestore.store.references import branch_directories
from tablestore.store.schemas import Schemas
from tablestore.table.system import SEPARATOR
from tablestore.table.table import Table

BRANCH_PREFIX = "branch_"


def named_part(table: Table, suffix: str) -> Table:
    """What ``table$suffix`` names. Raises InvalidInputError, NotFoundError.

    A system table is a :class:`~tablestore.table.system.SystemTable`, which can be read as a table is and no more: callers who
    want that from the type checker ask for ``table.system(name)``.
    """
    first, *rest = suffix.split(SEPARATOR)
    if first.startswith(BRANCH_PREFIX):
        table = branch_table(table, first.removeprefix(BRANCH_PREFIX))
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


def branch_table(table: Table, branch: str) -> Table:
    """The table as its branch has it. Raises NotFoundError."""
    check_reference(branch, "branch")
    context = table.context
    files = context.files if branch == MAIN_BRANCH else branch_files(context.files, branch)
    if not Schemas(files).ids():
        there = ", ".join(sorted(branch_directories(context.files))) or "none"
        raise NotFoundError(f"table {table.name} has no branch {branch!r}; there are: {there}", kind="no-such-branch")
    name = f"{table.name}{SEPARATOR}{BRANCH_PREFIX}{branch}"
    return Table(open_context(files, clock=context.clock, ids=context.ids), name)
