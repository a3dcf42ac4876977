"""Spark streams a table: its rows, then every change, once each, whatever happens to the query."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.store.history.consumers import Consumers
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table
from tablestore.testing.kafka import KafkaBroker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.since(4, 2)]

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string(), nullable=False)])


class Sink:
    """Runs a stream until it has all there is, and keeps each batch."""

    def __init__(self, table: Table, checkpoint: Path) -> None:
        self.table, self.checkpoint = table, checkpoint
        self.batches: dict[int, list[tuple[Any, ...]]] = {}
        self.progress: list[Any] = []

    def frame(self, spark: "SparkSession", **options: Any) -> "DataFrame":
        texts = {key.replace("_", "-").replace("log-scan", "log.scan"): str(value) for key, value in options.items()}
        return spark.readStream.format("tablestore").options(**texts).load(self.table.location)

    def run(
        self,
        spark: "SparkSession",
        *,
        each: Callable[[int], None] = lambda _: None,
        frame: "DataFrame | None" = None,
        **options: Any,
    ) -> list[list[tuple[Any, ...]]]:
        """The batches of one run."""
        stream = self.frame(spark, **options) if frame is None else frame
        found: dict[int, list[tuple[Any, ...]]] = {}

        def keep(rows: "DataFrame", number: int) -> None:
            found[number] = [tuple(row) for row in rows.collect()]
            each(number)

        writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(self.checkpoint))
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            self.progress = list(query.recentProgress)
            self.batches |= found
        return list(found.values())

    def folded(self) -> dict[int, str]:
        state: dict[int, str] = {}
        for number in sorted(self.batches):
            for kind, key, value in self.batches[number]:
                if kind in ("+I", "+U"):
                    state[key] = value
                else:
                    state.pop(key, None)
        return state


@pytest.fixture
def stock(catalog: Catalog) -> Table:
    options = {"bucket": "2", "write-only": "true"}
    return catalog.create_table("shop.stock", schema=SCHEMA, primary_key=["id"], options=options)


@pytest.fixture
def sink(stock: Table, tmp_path: Path) -> Sink:
    return Sink(stock, tmp_path / "checkpoint")


def rows(ids: range | list[int], text: str) -> pa.Table:
    return pa.table({"id": list(ids), "v": [f"{text}{i}" for i in ids]}, schema=SCHEMA)


def content(table: Table) -> dict[int, str]:
    return {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}


@pytest.mark.deep
def test_rows_then_changes_in_batches_of_at_most_so_many_rows(spark: "SparkSession", stock: Table, sink: Sink) -> None:
    for step in range(4):
        stock.upsert(rows(range(step * 10, step * 10 + 10), "a"))
    frame = sink.frame(spark, row_kinds=True)
    assert frame.schema.simpleString() == "struct<_row_kind:string,id:bigint,v:string>"
    assert [field.nullable for field in frame.schema] == [False, False, True], "a delete has nothing but its key"
    full = sink.run(spark, row_kinds=True, max_rows_per_trigger=10)
    assert len(full) > 2 and all(0 < len(batch) <= 10 for batch in full)
    stock.upsert(rows([3, 99], "b"))
    stock.delete([{"id": 4}])
    (changes,) = sink.run(spark, row_kinds=True)
    assert sorted(row[:2] for row in changes) == [("+I", 3), ("+I", 99), ("-D", 4)]
    assert sink.folded() == content(stock)
    assert sink.run(spark, row_kinds=True) == []
    source = next(one["sources"][0] for one in reversed(sink.progress))
    assert json.loads(source["latestOffset"]) == {"snapshot": 6, "behind-snapshots": 0, "behind-millis": 0}


@pytest.mark.slow
def test_new_rows_alone_with_columns_and_a_filter(spark: "SparkSession", stock: Table, sink: Sink, tmp_path: Path) -> None:
    assert sink.run(spark, log_scan="latest", columns="v", filter="id < 50") == [[]]
    stock.upsert(rows([1, 60], "a"))
    stock.delete("id = 1")
    assert sink.run(spark, log_scan="latest", columns="v", filter="id < 50") == [[("a1",)]]
    pruned = spark.readStream.format("tablestore").schema("v string").option("from-snapshot", "0").load(stock.location)
    (batch,) = Sink(stock, tmp_path / "other").run(spark, frame=pruned)
    assert sorted(batch) == [("a1",), ("a60",)]


@pytest.mark.deep
def test_a_batch_that_failed_is_the_same_when_it_is_run_again(spark: "SparkSession", stock: Table, sink: Sink) -> None:
    from pyspark.errors import StreamingQueryException

    def fail(number: int) -> None:
        if number == 2:
            raise RuntimeError("the sink is full")

    stock.upsert(rows(range(10), "a"))
    sink.run(spark, row_kinds=True)
    for step in range(3):
        stock.upsert(rows([step, 50 + step], "b"))
    with pytest.raises(StreamingQueryException, match="the sink is full"):
        sink.run(spark, row_kinds=True, max_files_per_trigger=1, each=fail)
    failed = sink.batches[2]
    stock.compact(full=True)
    stock.upsert(rows([70], "c"))
    stock.expire_snapshots(retain_min=1, retain_max=1)
    again = sink.run(spark, row_kinds=True)
    assert again[0] == failed, "the log of offsets says what was in it, though the limits are others now"
    assert sink.folded() == content(stock)
    stock.expire_snapshots(retain_min=1, retain_max=1)
    (consumer,) = Consumers(stock.context.files).all()
    assert consumer.id.startswith("stream-")


@pytest.mark.slow
def test_a_stream_that_goes_on_stops_at_new_columns_and_reads_them_when_it_is_loaded_again(
    spark: "SparkSession", stock: Table, sink: Sink
) -> None:
    from pyspark.errors import StreamingQueryException

    stock.upsert(rows([1], "a"))
    old = sink.frame(spark, row_kinds=True)
    sink.run(spark, frame=old)
    wide = stock.alter(ts.AddColumn("n", "INT"))
    wide.upsert(pa.table({"id": [2], "v": ["b"], "n": pa.array([5], pa.int32())}))
    with pytest.raises(StreamingQueryException, match=r"column n came.*load the stream again"):
        sink.run(spark, frame=old)
    assert sink.run(spark, row_kinds=True) == [[("+I", 2, "b", 5)]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"log.scan": "fully"}, "expected scan to be one of"),
        ({"log.scan": "from-timestamp"}, "Must specify a timestamp"),
        (
            {"log.scan": "from-timestamp", "log.scan.timestamp-mills": "1", "log.scan.timestamp-millis": "2"},
            "log.scan.timestamp-mills and log.scan.timestamp-millis are one option",
        ),
        ({"row-kinds": "yes"}, "option row-kinds: expected true or false"),
        ({"max-rows-per-trigger": "0"}, "a whole number from 1"),
        ({"maxRowsPerTrigger": "5"}, "max-rows-per-trigger"),
        ({"pairs": "true"}, "row-kinds"),
        ({"log.scan": "latest", "snapshot-id": "1"}, "from-snapshot = <id>"),
        ({"from-snapshot": "1", "filter": "nope = 1"}, "nope"),
        ({"on-discontinuity": "ignore"}, "expected on_discontinuity"),
    ],
)
def test_bad_options_are_refused_when_the_stream_is_loaded(stock: Table, options: dict[str, str], message: str) -> None:
    from pyspark_tablestore import DefaultSource

    stock.upsert(rows([1], "a"))
    with pytest.raises(InvalidInputError, match=message):
        DefaultSource({"path": stock.location, **options}).schema()


def test_what_is_no_stream_and_what_is_for_streams_only(stock: Table) -> None:
    from pyspark_tablestore import DefaultSource

    once = DefaultSource({"path": stock.location, "row-kinds": "true"})
    with pytest.raises(InvalidInputError, match="are of streams"):
        once.reader(once.schema())
    snapshots = DefaultSource({"path": f"{stock.location}$snapshots"})
    with pytest.raises(UnsupportedError, match="are no streams"):
        snapshots.streamReader(snapshots.schema())


@pytest.mark.slow
def test_a_checkpoint_of_another_source_or_table_is_refused_with_the_way_out(
    spark: "SparkSession", stock: Table, sink: Sink, catalog: Catalog, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    other = Sink(stock, tmp_path / "rate")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("x\n")
    other.run(spark, frame=spark.readStream.text(str(tmp_path / "in")))
    stock.upsert(rows([1], "a"))
    with pytest.raises(StreamingQueryException, match="the checkpoint is of another source"):
        other.run(spark)
    sink.run(spark)
    catalog.drop_table("shop.stock")
    again = catalog.create_table("shop.stock", schema=SCHEMA, primary_key=["id"], options={"bucket": "2"})
    again.upsert(rows([2], "b"))
    with pytest.raises(StreamingQueryException, match="dropped and made again"):
        sink.run(spark)


@pytest.mark.slow
def test_a_hundred_restarts_of_the_query_lose_and_double_nothing(spark: "SparkSession", stock: Table, sink: Sink) -> None:
    """The query fails in a batch drawn at random and is started again, while others write, compact and expire."""
    from pyspark.errors import StreamingQueryException

    rng, restarts = random.Random(11), 0
    while restarts < 100:
        for _ in range(rng.randrange(1, 4)):
            ids = rng.sample(range(40), rng.randrange(1, 8))
            stock.upsert(rows(ids, f"{restarts}-"))
            stock.delete([{"id": ids[0]}])
        if rng.random() < 0.4:
            stock.compact(full=rng.random() < 0.5)
        if rng.random() < 0.4:
            stock.expire_snapshots(retain_min=1, retain_max=1)
        seen, left = dict(sink.batches), rng.randrange(4)

        def fail(number: int) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise RuntimeError("the sink is full")

        try:
            sink.run(spark, row_kinds=True, max_rows_per_trigger=rng.choice([1, 5, 1000]), each=fail)
        except StreamingQueryException as error:
            if "the sink is full" not in str(error):
                raise
            restarts += 1
        again = seen.keys() & sink.batches.keys()
        assert all(sorted(sink.batches[number], key=str) == sorted(seen[number], key=str) for number in again)
    sink.run(spark, row_kinds=True)
    assert sink.folded() == content(stock)


@pytest.mark.slow
@pytest.mark.kafka
def test_changes_of_a_table_with_a_topic_are_read_from_it_by_executors(
    spark: "SparkSession", catalog: Catalog, broker: KafkaBroker, tmp_path: Path
) -> None:
    options = {"bucket": "2", "write-only": "true", "log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": "streamed"}
    table = catalog.create_table("shop.logged", schema=SCHEMA, primary_key=["id"], options=options)
    sink = Sink(table, tmp_path / "checkpoint")
    for step in range(4):
        table.upsert(rows(range(step * 5, step * 5 + 10), f"s{step}-"))
        table.delete([{"id": step}])
        assert sink.run(spark, row_kinds=True)
        assert sink.folded() == content(table)
    offset = max((sink.checkpoint / "offsets").glob("[0-9]*")).read_text()
    assert '"log":' in offset and '"offsets":{"0":' in offset.replace(" ", "")
