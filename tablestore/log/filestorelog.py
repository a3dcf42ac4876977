"""The change log of a table without a log system: every snapshot holds its changes in the file store, and nothing is sent."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NoReturn

import pyarrow as pa

from tablestore.errors import UnsupportedError
from tablestore.log.alterlog import alter_table
from tablestore.log.follow.consumption import ChangeBatch, FileStoreConsumption
from tablestore.log.follow.request import Consumption
from tablestore.log.port import ChangeLog, RowsAhead
from tablestore.log.publish.publisher import PublishReport
from tablestore.log.publish.publishers import Publishers
from tablestore.log.settings import LogSettings
from tablestore.store.context import TableContext
from tablestore.types.evolution.schemachanges import SchemaChange
from tablestore.types.schema import TableSchema


class FileStoreLog:
    """Implements :class:`~tablestore.log.port.ChangeLog`. ``publishers`` are for an alteration that begins a log elsewhere."""

    slots = 0

    def __init__(self, context: TableContext, settings: LogSettings, publishers: Publishers) -> None:
        self._context, self.settings, self._publishers = context, settings, publishers

    def begin(self, *, ignore_if_exists: bool) -> None:
        """Makes nothing: the snapshots are the log."""

    def is_there(self) -> bool:
        """False: nothing has to be made."""
        return False

    def alter(self, changes: Sequence[SchemaChange] | SchemaChange) -> TableSchema:
        """Alter the table; options may begin a log elsewhere."""
        return alter_table(self._context, self._publishers, changes)

    def check_rescale(self) -> None:
        """The file store takes any number of buckets."""

    def drop(self, *, is_new: bool = False) -> None:
        """Has nothing to do: the log goes with the table."""

    def properties(self) -> Mapping[str, str]:
        """No notes: the snapshots are the log."""
        return {}

    def check_sizes(self, rows: pa.Table, kinds: pa.Array | pa.ChunkedArray | None) -> None:
        """Rows may be of any size."""

    def ahead(self) -> RowsAhead | None:
        """Rows come with their snapshot."""
        return None

    def after_commit(self) -> None:
        """Has nothing to do: the changes that have landed are in the log."""

    def publishing(self, publish: Callable[[], object]) -> ChangeLog:
        """Nothing is published."""
        return self

    def publish(self, *, slots: Sequence[int] | None = None, look: bool = False) -> tuple[PublishReport, ...]:
        """Nothing is published."""
        return ()

    def unpublished(self) -> int | None:
        """Nothing is published."""
        return None

    def follow(self, request: Consumption) -> Iterator[ChangeBatch]:
        """The rows and changes of snapshots."""
        return FileStoreConsumption(self._context, request).batches()

    def status(self, *, count_records: bool = True) -> NoReturn:
        """Raises UnsupportedError."""
        self._refuse_comparison()

    def verify(self) -> NoReturn:
        """Raises UnsupportedError."""
        self._refuse_comparison()

    def rebuild(self) -> NoReturn:
        """Raises UnsupportedError."""
        raise UnsupportedError(f"the log of {self._context.files.root_uri} is the file store itself: there is nothing to rebuild")

    def adopt(self) -> NoReturn:
        """Raises UnsupportedError."""
        raise UnsupportedError(
            f"the log of {self._context.files.root_uri} is the file store itself: there is nothing to adopt", kind="no-log"
        )

    def close(self) -> None:
        """Nothing is open."""

    def _refuse_comparison(self) -> NoReturn:
        raise UnsupportedError(
            f"the log of table {self._context.files.root_uri} is the file store itself: there is nothing to compare; set "
            "log.kafka.bootstrap.servers when a table is created to give it a topic",
            kind="no-log",
        )
