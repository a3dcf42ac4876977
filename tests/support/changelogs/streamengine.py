"""An engine that streams a table as Spark does, in this process: offsets are texts in a log, which alone survives a restart."""

import json
from typing import Any

import tablestore as ts
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.stream.streamoffset import START, parse_offset
from tablestore.distributed.stream.streamplanner import StreamPlanner
from tablestore.distributed.stream.streamrequest import BatchLimits, StreamRequest
from tablestore.distributed.stream.streamtask import StreamTask, read_stream_task

Row = dict[str, Any]


class Engine:
    """Logs an offset before each batch, and repeats the batch that it logged last after a restart."""

    def __init__(self, table: ts.Table, **request: Any) -> None:
        self.spec = TableSpec(location=table.location, storage_options={}, files=table.context.files)
        self.request = {"row_kinds": True, **request}
        self.log: list[str] = [json.dumps(START.to_json())]
        self.committed = 0
        self.batches: list[list[Row]] = []
        self.restart()

    def restart(self) -> None:
        """A new process: nothing but the log of offsets is left."""
        self.planner = StreamPlanner(self.spec, StreamRequest(**self.request), look_s=0)

    def plan(self, limits: BatchLimits | None = None) -> bool:
        """Log the next offset; whether there is one."""
        start = json.loads(self.log[-1])
        text = json.dumps(self.planner.latest(start, limits))
        if text == self.log[-1]:
            return False
        self.log.append(text)
        return True

    def read(self, number: int) -> list[Row]:
        """The rows of a batch, counted from 1."""
        start, end = (json.loads(text) for text in self.log[number - 1 : number + 1])
        tasks = [StreamTask.from_bytes(task.to_bytes()) for task in self.planner.tasks(start, end)]
        return [row for task in tasks for batch in read_stream_task(self.spec, task) for row in batch.to_pylist()]

    def finish(self) -> None:
        """Run the batch that was logged last, if it was not run."""
        while self.committed < len(self.log) - 1:
            self.committed += 1
            self.batches.append(self.read(self.committed))

    def run(self, limits: BatchLimits | None = None) -> list[list[Row]]:
        """Batch after batch until nothing is left; those that were new."""
        first = len(self.batches)
        self.finish()
        while True:
            if self.committed:
                self.planner.commit(json.loads(self.log[self.committed]))
            if not self.plan(limits):
                return self.batches[first:]
            self.finish()

    @property
    def consumer(self) -> str:
        """The name of the stream in its table."""
        return parse_offset(json.loads(self.log[-1])).consumer


def folded(batches: list[list[Row]]) -> dict[int, str]:
    """What the changes of a table of ``id`` and ``v`` add up to."""
    state: dict[int, str] = {}
    for row in (row for batch in batches for row in batch):
        if row["_row_kind"] in ("+I", "+U"):
            state[row["id"]] = row["v"]
        else:
            state.pop(row["id"], None)
    return state
