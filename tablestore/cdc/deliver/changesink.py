"""Defines the protocol of sinks, which commit changes together with their position."""

from typing import Protocol

import pyarrow as pa


class ChangeSink(Protocol):
    """Takes the changes of one table, under one name. What was written and not committed is not there. Not thread-safe."""

    def position(self) -> str | None:
        """The position at which the last commit of this name ended, as :meth:`commit` got it; None if there was none."""
        ...

    def write(self, rows: pa.RecordBatch) -> None:
        """Adds rows with ``_row_kind``."""
        ...

    def commit(self, position: str) -> None:
        """Makes the rows since the last commit visible, and with them the position at which they end. Raises ConflictError of kind
        ``fenced`` if another process has gone on under this name."""
        ...

    def close(self) -> None:
        """Drops what was not committed."""
        ...
