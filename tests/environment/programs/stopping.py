"""CREATE TABLE … AS in a process that stops at a named step, says so, and waits to be killed.

python stopping.py WAREHOUSE ENGINE STEP
"""

import sys
from collections.abc import Iterator
from typing import Any, NoReturn

import pyarrow as pa

import tablestore as ts
from tablestore.table.catalog import Catalog
from tablestore.table.creation.stagedtable import StagedTable
from tablestore.table.read.scan import ArrowSource

WAREHOUSE, ENGINE, STEP = sys.argv[1:]


def stop() -> NoReturn:
    sys.stdout.write("here\n")
    sys.stdout.flush()
    sys.stdin.read()
    raise SystemExit("nobody killed it")


class Created:
    def on_created(self, job_id: str) -> None:
        stop()

    def on_finished(self, job_id: str) -> None: ...

    def on_failed(self, job_id: str, error: BaseException) -> None: ...

    def on_canceled(self, job_id: str) -> None: ...


class Rows(ArrowSource):
    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("id", pa.int64())])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        for start in range(0, 400_000, 100_000):
            if STEP == "writing" and start == 200_000:
                stop()
            yield pa.record_batch({"id": range(start, start + 100_000)}, schema=self.schema)


def stopping(method: Any, *, after: bool) -> Any:
    def called(*args: Any, **options: Any) -> Any:
        if not after:
            stop()
        method(*args, **options)
        stop()

    return called


if STEP == "staged":
    Catalog.stage_table = stopping(Catalog.stage_table, after=True)  # type: ignore[method-assign]
elif STEP == "written":
    StagedTable.publish = stopping(StagedTable.publish, after=False)  # type: ignore[method-assign]
elif STEP == "published":
    StagedTable.publish = stopping(StagedTable.publish, after=True)  # type: ignore[method-assign]

with ts.TableEnvironment.create(WAREHOUSE, engine=ENGINE, config={"table.ctas.atomicity-enabled": "true"}) as environment:
    environment.create_temporary_view("rows", Rows())
    pipeline = environment.from_path("rows").save_as("t").option("bucket", -1).create()
    if STEP == "created":
        pipeline.register_job_status_hook(Created())
    pipeline.execute()
