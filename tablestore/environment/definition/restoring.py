"""Runs RESTORE TABLE: gives a table the rows that it had, by a new commit.

It is a rollback that nothing is lost by: snapshots, tags and consumers stay, and so does the newest schema. Readers of changes are
told of a discontinuity, as after any rollback.
"""

from tablestore.environment.result import Result, landed
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.environment.timetravel import time_argument, version_argument
from tablestore.sql.statements.alter import RestoreTable


def restore_table(session: Session, statement: RestoreTable, source: Source) -> Result:
    """Restores a snapshot or a tag; its own snapshot is None where the table has these rows already.

    Raises NotFoundError for one that is not there or has expired, InvalidInputError, UnsupportedError, ConflictError.
    """
    table = session.table(statement.path, "RESTORE TABLE", source)
    with placing(source, statement.span):
        if statement.kind == "version":
            return landed(table.rollback_to(**version_argument(table, statement.value)))
        snapshots = table.context.still_there().snapshots
        return landed(table.rollback_to(snapshots.at_time(time_argument(statement.value)).id))
