"""Runs work as the tasks of a Spark job, and tells what became of them.

    done, error = run_tasks(frame, partial(work, job))

What a task gives is bytes that say what they mean (JSON): nothing that comes back from it is unpickled.
Errors of ours travel so too. Left to Spark, an error becomes text, in which its kind is lost, and a task that has no hope is
run again. So a task of ours ends well in any case, and the process that began the job raises. The errors of others, such as those
of the user's own code, and workers that die stay Spark's.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StructField, StructType

from pyspark_tablestore.native import column
from pyspark_tablestore.sparkversion import arrow_udf, places_by_number
from tablestore.distributed.taskjson import decode_error, encode_error
from tablestore.errors import TablestoreError

Batches = Iterator[pa.RecordBatch]
_NUMBER = "__tablestore_task"
_KIND = re.compile(r"\n\(kind ([\w-]+)\)\s*\Z")


def usable_cores() -> int:
    """The number of cores that this process may use, which is what Spark counts too: a machine may have more of them."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def run_tasks(rows: DataFrame, work: Callable[[Batches], Iterator[bytes]]) -> tuple[list[bytes], TablestoreError | None]:
    """Gives each task's rows to ``work``. Returns what the tasks yielded, in task order, and the first error of ours.

    A task whose ``work`` raises ends there, and the others go on. Raises Spark's errors where Spark gave the job up.
    """
    ended = map_batches(rows, partial(_outcome, work), "done array<binary>, error binary").collect()
    errors = (decode_error(bytes(row["error"])) for row in ended if row["error"] is not None)
    return [bytes(output) for row in ended for output in row["done"]], next(errors, None)


def map_batches(rows: DataFrame, work: Callable[[Batches], Batches], schema: str | StructType) -> DataFrame:
    """Runs ``mapInArrow`` for any names of columns: Spark's own takes none that come twice, or have a dot or backtick in them."""
    names = rows.columns
    return rows.toDF(*map(str, range(len(names)))).mapInArrow(partial(_named, work, names), schema)


def placed_by(rows: DataFrame, tasks: int, compute: Callable[..., pa.Array], names: Sequence[str]) -> DataFrame:
    """The rows in so many partitions, those of one number in one. ``compute`` makes the numbers, from 0, of Arrow columns."""
    if places_by_number:
        # Its annotations demand an argument that is deprecated, because the type hints say the same.
        number = cast(Column, arrow_udf(compute, returnType=IntegerType())(*map(column, names)))
        return rows.repartitionById(tasks, number)
    schema, places = rows.schema, [rows.columns.index(name) for name in names]
    numbered = map_batches(rows, partial(_numbered, compute, places), StructType([*schema, StructField(_NUMBER, IntegerType())]))
    return numbered.repartition(tasks, _NUMBER).drop(_NUMBER)


def run_each(
    spark: SparkSession, tasks: Sequence[bytes], work: Callable[[bytes], bytes | None]
) -> tuple[list[bytes], TablestoreError | None]:
    """Runs each of these (at least one) as a task of its own, as :func:`run_tasks` does. None is left out."""
    frame = spark.createDataFrame(list(enumerate(tasks)), "number int, task binary")
    spread = frame.repartitionById(len(tasks), "number") if places_by_number else frame.repartition(len(tasks), "number")
    return run_tasks(spread, partial(_each, work))


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raises errors of ours without the frames and causes behind them, and says their kind: Spark makes text of them."""
    try:
        yield
    except TablestoreError as error:
        # A new object: a context manager gives the frames back to the old one.
        plain = portable(error)
        plain.add_note(f"(kind {error.kind})")
        raise plain from None


def split_kind(text: str) -> tuple[str, str | None]:
    """The message and the kind of an error of :func:`plain_errors`, from its text."""
    match = _KIND.search(text)
    return (text[: match.start()], match[1]) if match else (text, None)


def portable(error: TablestoreError) -> TablestoreError:
    """The error without the frames and causes behind it."""
    return type(error)(error.message, kind=error.kind)


def _named(work: Callable[[Batches], Batches], names: Sequence[str], batches: Batches) -> Batches:
    return work(batch.rename_columns(list(names)) for batch in batches)


def _numbered(compute: Callable[..., pa.Array], places: Sequence[int], batches: Batches) -> Batches:
    for batch in batches:
        yield batch.append_column(_NUMBER, compute(*(batch.column(place) for place in places)))


def _outcome(work: Callable[[Batches], Iterator[bytes]], batches: Batches) -> Batches:
    outputs: list[bytes] = []
    error: bytes | None = None
    try:
        # One by one: what came before an error counts.
        outputs.extend(work(batches))
    except TablestoreError as raised:
        error = encode_error(raised)
    yield pa.record_batch({"done": pa.array([outputs], pa.list_(pa.binary())), "error": pa.array([error], pa.binary())})


def _each(work: Callable[[bytes], bytes | None], batches: Batches) -> Iterator[bytes]:
    for batch in batches:
        for task in batch.column("task").to_pylist():
            if (value := work(task)) is not None:
                yield value
