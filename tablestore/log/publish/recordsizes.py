"""May these rows be written, or would the table's log not take them?

Asked while nothing has landed: behind the commit a row that is too large stops the log. Of ordinary rows only the lengths are
looked at. Rows that readers of changes do not see are of any size.

What is sent of some tables is not what is written: merged rows (aggregates, partial updates) may be larger, and are named by the
publisher then.
"""

import numpy as np
import pyarrow as pa

from tablestore.log.changelog import record_limit, settings_of
from tablestore.log.recordlimit import RecordTooLarge, large_rows
from tablestore.store.context import TableContext


def refuse_large_rows(context: TableContext, rows: pa.Table, kinds: pa.Array | pa.ChunkedArray | None) -> None:
    """Raise RecordTooLarge for the first row whose record would be over the limit of the table's log, where that is known."""
    limit = record_limit(context)
    if limit is None or not rows.num_rows:
        return
    schema, settings = context.schema, settings_of(context)
    codes = None if kinds is None else np.asarray(kinds.to_numpy(zero_copy_only=False), dtype=np.int8)
    for row in large_rows(rows, codes, key=schema.primary_keys, mode=settings.mode, limit=limit):
        # One row at a time: these are few, and mostly the first one ends it.
        partition = tuple(rows.column(name)[row.position].as_py() for name in schema.partition_keys)
        if context.settings.tracking.includes(partition):
            raise RecordTooLarge(
                f"table {context.files.root_uri}: {row} makes a record of {row.size:,} bytes, expected at most {limit:,} for its "
                f"log, topic {settings.topic}; the row is not written. Raise the limit: alter log.kafka.message.max.bytes of the "
                "table, which the topic follows (where the topic was altered by hand, `tablestore log publish` looks at it anew); "
                "or keep what is written from readers of changes (change-tracking = false), or end the log (log.system = filestore)"
            )
