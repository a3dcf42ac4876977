"""The change log protocol: what the rest of the engine asks of an open table's log, whichever log system the table has.

    CREATE   begin          the log is made
    commit   properties     the snapshot notes where records of later snapshots begin
             check_sizes, ahead      rows that the log would not take are refused; some logs show rows before they land
             after_commit   what has landed is sent
    read     follow         the table, and every change after it
    ALTER    alter          DROP   drop

The log is derived from the table's snapshots. A commit does not depend on it: what fails here after a commit is caught up
by the next publish.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from tablestore.log.follow.consumption import ChangeBatch
from tablestore.log.follow.request import Consumption
from tablestore.log.logcheck import LogCheck, LogStatus
from tablestore.log.publish.ownerfile import LogOwner
from tablestore.log.publish.publisher import PublishReport
from tablestore.log.settings import LogSettings
from tablestore.types.evolution.schemachanges import SchemaChange
from tablestore.types.schema import TableSchema


class RowsAhead(Protocol):
    """Rows of one write on their way to readers of the log before they land. One writer, one thread."""

    def send(self, rows: pa.Table, kinds: pa.Array | None) -> None:
        """Send rows that were written. ``kinds`` None: all are inserts. Raises nothing."""
        ...

    def ended(self, *, landed: bool) -> None:
        """The write is over."""
        ...

    def take_back(self) -> None:
        """Takes the rows of a failed write back, now if that can be done. Raises nothing."""
        ...


class ChangeLog(Protocol):
    """The change log of one table at one schema. Chosen when the table is opened."""

    @property
    def settings(self) -> LogSettings:
        """The log options of the table."""
        ...

    @property
    def slots(self) -> int:
        """The number of publishers that can work at once; 0 where nothing is published."""
        ...

    # -- with the table

    def begin(self, *, ignore_if_exists: bool) -> None:
        """Make the log of a new table. Raises AlreadyExistsError, StorageError, InvalidInputError; then there is no log."""
        ...

    def is_there(self) -> bool:
        """True if a log of that name is there, whoever made it; False where nothing has to be made. Raises StorageError."""
        ...

    def alter(self, changes: Sequence[SchemaChange] | SchemaChange) -> TableSchema:
        """Alter the table, and its log where options say so; returns the newest schema. All or nothing, see
        :mod:`tablestore.log.alterlog`."""
        ...

    def check_rescale(self) -> None:
        """Raise UnsupportedError if the log depends on the table's number of buckets."""
        ...

    def drop(self, *, is_new: bool = False) -> None:
        """Remove the log of a table that is dropped. ``is_new``: who drops it had noted that there was no such log before, so an
        empty one is what it has begun to make. Raises StorageError, InvalidInputError."""
        ...

    # -- with a commit

    def properties(self) -> Mapping[str, str]:
        """The notes about the log in a snapshot that is about to be committed."""
        ...

    def check_sizes(self, rows: pa.Table, kinds: pa.Array | pa.ChunkedArray | None) -> None:
        """Raise RecordTooLarge for a row that the log would not take, as far as that is known. Nobody is asked."""
        ...

    def ahead(self) -> RowsAhead | None:
        """The sender that shows the rows of one write to readers before they land; None where rows come with their snapshot."""
        ...

    def after_commit(self) -> None:
        """Publish the commits of this process that have landed. Raises Skipped while the log does not answer,
        TablestoreError."""
        ...

    def publishing(self, publish: Callable[[], object]) -> "ChangeLog":
        """The same log, whose :meth:`after_commit` publishes by other means (as tasks of an engine)."""
        ...

    def publish(self, *, slots: Sequence[int] | None = None, look: bool = False) -> tuple[PublishReport, ...]:
        """Send the changes that snapshots have and the log lacks, of all slots or some; a report per slot.

        ``look``: look at the log itself even if all is recorded as sent, and repair it.
        """
        ...

    def unpublished(self) -> int | None:
        """The number of snapshots that the log lacks, by the progress on record; None where nothing is published."""
        ...

    # -- reading

    def follow(self, request: Consumption) -> Iterator[ChangeBatch]:
        """The batches of a request to follow the table."""
        ...

    # -- looking after it; UnsupportedError where the log is the file store

    def status(self, *, count_records: bool = True) -> LogStatus:
        """The status of the log: how far it is."""
        ...

    def verify(self) -> LogCheck:
        """Compare the log with the table."""
        ...

    def rebuild(self) -> tuple[PublishReport, ...]:
        """Make the log anew and begin it with the earliest retained snapshot. Readers of the old one find out."""
        ...

    def adopt(self) -> LogOwner:
        """Make this place the owner of the log of a table that was moved here."""
        ...

    def close(self) -> None:
        """Give up open connections. They are opened again when they are needed."""
        ...
