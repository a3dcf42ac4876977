"""A stream of a table in a process that kills itself, and its JVM, at some time. Run again, it goes on.

    SEED=NUMBER python sourcecrash.py FOLDER      dies behind a batch that the seed chooses, after a part of a second
    SEED=0      python sourcecrash.py FOLDER      ends with what is there

A batch is a file, ``batches/<number>.json``. Ends with an error if a batch that is repeated has other rows than before.
"""

import json
import os
import random
import signal
import sys
from pathlib import Path
from threading import Timer

from pyspark.sql import DataFrame, SparkSession


def main() -> None:
    folder, seed = Path(sys.argv[1]), int(os.environ["SEED"])
    chance = random.Random(seed)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]

    def die() -> None:
        os.kill(java, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    left = chance.randrange(1, 4)

    def keep(frame: DataFrame, number: int) -> None:
        nonlocal left
        found = [list(row) for row in frame.collect()]
        file = folder / "batches" / f"{number:06d}.json"
        if file.exists():
            assert sorted(json.loads(file.read_text()), key=str) == sorted(found, key=str), f"batch {number} has other rows now"
        else:
            whole = file.with_suffix(".new")
            whole.write_text(json.dumps(found))
            whole.rename(file)
        left -= 1
        if seed and left == 0:
            Timer(0.4 * chance.random(), die).start()

    options = {"row-kinds": "true", "max-rows-per-trigger": str(chance.choice([20, 100, 1000])), "log.scan": "full"}
    rows = spark.readStream.format("tablestore").options(**options).load(str(folder / "warehouse" / "d.db" / "t"))
    sink = rows.writeStream.foreachBatch(keep).option("checkpointLocation", str(folder / "checkpoint"))
    if seed:
        sink.start().awaitTermination()
    sink.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


main()
