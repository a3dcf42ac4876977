"""Creates a table that is visible from its creation on, and is taken back if its job fails.

    intend      record, with the identity that the table will have
    create      the table, if there is none of that name
    finished    record gone                      undo    log and table gone, if it is the one that was made here ── record gone

The identity is on record before the table is made, and made from the record, so whoever undoes it, in whatever process, never
drops a table that the job did not make. The handle is found again by the job's id.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager

import pyarrow as pa

from tablestore.catalog.creations import CreationRecord
from tablestore.names import Names
from tablestore.table.creation.creationtools import CreationTools
from tablestore.table.creation.renewal import renewing
from tablestore.table.table import Table
from tablestore.types.datatypes import Field


class VisibleCreation:
    """The creation of one table by one job. Made by ``catalog.intend_creation``, found again by ``catalog.creation``."""

    def __init__(self, tools: CreationTools, record: CreationRecord) -> None:
        self._tools, self._record = tools, record

    @property
    def name(self) -> str:
        """``database.table``."""
        return self._record.table

    @property
    def job_id(self) -> str:
        """The job."""
        return self._record.job_id

    def create_table(
        self,
        schema: pa.Schema | tuple[Field, ...],
        primary_key: Names = (),
        partition_by: Names = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
        ignore_if_exists: bool = False,
    ) -> tuple[Table, bool]:
        """Creates as :meth:`Catalog.create_table`: the table, and whether this made it. One that was there is never taken
        back.

        Raises ConflictError of kind ``creation-swept`` besides.
        """
        tools, identifier = self._tools, self._record.identifier
        definition = tools.definition(
            identifier, schema, primary_key=primary_key, partition_by=partition_by, options=options, comment=comment
        )
        tools.creations.check_is_wanted(self._record)
        return tools.create(identifier, definition, ignore_if_exists=ignore_if_exists, table_uuid=self._record.table_uuid)

    @property
    def is_made(self) -> bool:
        """True if the table that has the name now is the one that was made here."""
        return is_made(self._tools, self._record)

    def renew(self) -> None:
        """Say that the job lives. Raises ConflictError of kind ``creation-swept`` if it was given up for dead."""
        self._tools.creations.renew(self._record, self._tools.clock.now_ms())

    def renewing(self) -> AbstractContextManager[None]:
        """Renews it every few minutes while the block runs, in a thread."""
        return renewing(self.renew)

    def finished(self) -> None:
        """The job has succeeded: the table stays."""
        self._tools.creations.end(self.job_id)

    def undo(self) -> bool:
        """Drop the table of a failed job, with whatever rows, if the job made it; returns whether it did. Raises StorageError."""
        dropped = drop_made(self._tools, self._record)
        self._tools.creations.end(self.job_id)
        return dropped


def drop_made(tools: CreationTools, record: CreationRecord) -> bool:
    """Drop the table that a job made, with its log; False if there is none with its mark under that name."""
    if not is_made(tools, record):
        return False
    table = tools.open(record.identifier)
    # Opened anew: it may be another one by now.
    if table.context.table_uuid != record.table_uuid:
        return False
    # An empty log without an owner is that of the table: its maker may have died before it left its mark.
    table.change_log.drop(is_new=True)
    tools.meta.drop_table(record.identifier, ignore_if_not_exists=True, table_uuid=record.table_uuid)
    return True


def is_made(tools: CreationTools, record: CreationRecord) -> bool:
    """True if the table that has the name now is the one that the job made, by its mark."""
    return record.marks_its_table and tools.uuid_of(record.identifier) == record.table_uuid


def is_whole(tools: CreationTools, record: CreationRecord) -> bool:
    """True if the table that a job made has the rows of the job, so that it died only after it had done its work."""
    retained = tools.open(record.identifier).context.snapshots.retained()
    if not retained or record.commit_user is None:
        return bool(retained)
    # One that has expired may have been the job's.
    return retained[0].id > 1 or any(snapshot.commit_user == record.commit_user for snapshot in retained)
