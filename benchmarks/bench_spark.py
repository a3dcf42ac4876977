"""What does a table cost in Spark, next to Spark's own Parquet?

    read        a table without overlap, through the data source and through ``pyspark_tablestore.read``; and the same rows through
                a data source that does no work at all, which is the most that any could give; on one core and on two
    bulk load   from a cached DataFrame into 4 buckets
    upserted    10 M rows in 4 buckets, compacted and then upserted into 5 times, 1 % of the rows at random: three aggregates over
                all rows, and one row by its key; in a table whose writers compact small runs, as they do unless they are told
                not to, and in one whose writers never do; beside the same rows compacted, and beside Spark's Parquet where the
                query reads the key as well, as everybody has to who tells old rows from new ones
    upsert      100,000 rows into 10 M, 40 times in a row

Java compiles what plans and runs a query over many queries. So each of these has a Java machine of its own, and what reads after
upserts runs thirty times before it is measured, Spark's Parquet too. A quick run has one machine, a fifth of the rows of other
quick runs and no such warm-up: its figures say only that all is in order.

One task at a time (``local[1]``), the JVM and its Python worker on one core, warm. A second core lets the worker read while the JVM
takes what was read before, as on an executor that is not full. Rows are counted and summed by Spark and by the engine.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import tablestore as ts
from benchmarks import ours
from benchmarks.measure import Case, Sample, WrongRows, second_core, take_turns, tree_stopwatch
from benchmarks.report import Bar, Result
from benchmarks.setting import Setting
from benchmarks.sparksession import spark_session, why_no_spark
from benchmarks.workloads import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUCKETS = 4
UPSERTS = 40
SMALL_UPSERTS = 5
WARM_UPS = 30
# Of a quick run, whose figures nobody compares: its sessions, rows and rounds are as few as say that everything is in order.
QUICK_UPSERTS, QUICK_WARM_UPS, QUICK_FEWER = 3, 0, 5
# Medians of queries of a second that spread over 20 % and more.
MORE_ROUNDS = 3
UPSERTED, WRITE_ONLY, COMPACTED = "after 5 upserts of 1 %", "after 5 upserts of 1 %, write-only", "compacted"
PARQUET, SOURCE, FUNCTION = "Spark's Parquet", 'format("tablestore")', "pyspark_tablestore"
WITH_KEY = "Spark's Parquet, the key too"
IDLE = "a data source without work"
_AGGREGATES = ("count(*)", "sum(quantity)", "max(code)")
_SUMS = ("count(*)", "sum(id)", "sum(quantity)", "sum(cast(round(price * 100) as bigint))", "sum(cast(code as bigint) % 1000003)")


def run(setting: Setting) -> None:
    """All questions of this module, if there is a Spark."""
    if (why := why_no_spark()) is not None:
        setting.report.skipped.append(f"Spark: {why}")
        return
    steps = (_read_and_load, _read_upserted, _upsert)
    if setting.quick:
        setting = replace(setting, rows=max(setting.rows // QUICK_FEWER, 1))
        setting.say(f"a quick run: {setting.rows:,} rows, and one Java machine for all parts")
        with setting.workspace("spark") as space, spark_session(space) as spark:
            for number, ask in enumerate(steps, 1):
                setting.say(_begins(number, ask, steps))
                with setting.workspace("part") as part:
                    ask(setting, spark, part)
        return
    for number, ask in enumerate(steps, 1):
        setting.say(_begins(number, ask, steps))
        with setting.workspace("spark") as space, spark_session(space) as spark:
            ask(setting, spark, space)


def _begins(number: int, ask: Callable[..., None], steps: Sequence[Callable[..., None]]) -> str:
    return f"Spark, part {number} of {len(steps)}: {ask.__name__.strip('_').replace('_', ' ')}; tables are made first"


def _read_and_load(setting: Setting, spark: "SparkSession", space: Path) -> None:
    import pyspark_tablestore

    from benchmarks import idle_source

    workload = Workload("bigint", setting.scaled(5_000_000), setting.seed)
    table = ours.create(space, "loaded", workload, buckets=BUCKETS)
    ours.load(table, workload.base())
    parquet = str(space / "rows.parquet")
    rows = spark.read.format("tablestore").load(table.location).coalesce(BUCKETS).cache()
    expected = _sums(rows)
    if expected[0] != workload.rows:
        raise WrongRows(f"Spark counts {expected[0]} rows of {workload.rows}")
    rows.write.mode("overwrite").parquet(parquet)

    prebuilt = idle_source.build(table.scan().to_batches(), space)
    spark.dataSource.register(idle_source.IdleSource)
    sources: dict[str, Callable[[], DataFrame]] = {
        PARQUET: lambda: spark.read.parquet(parquet),
        SOURCE: lambda: spark.read.format("tablestore").load(table.location),
        FUNCTION: lambda: pyspark_tablestore.read(spark, table.location),
        IDLE: lambda: spark.read.format(idle_source.IdleSource.name()).load(str(prebuilt)),
    }
    _read(setting, workload.rows, sources)
    with second_core() as there_is_one:
        if there_is_one:
            _read(setting, workload.rows, sources, ", a second core for Python")
        else:
            setting.report.skipped.append("Spark's reads on two cores: there is but one")
    for name, make in sources.items():
        if (found := _sums(make())) != expected:
            raise WrongRows(f"{name}: expected the sums {expected}, found {found}")

    timings = setting.take_turns(
        [
            Case(PARQUET, lambda: _parquet(setting, rows)),
            Case(SOURCE, lambda: _load(setting, workload, _by_source(rows))),
            Case(FUNCTION, lambda: _load(setting, workload, lambda path: pyspark_tablestore.write(rows, path))),
        ]
    )
    rows.unpersist(True)
    result = Result(
        name="Spark: bulk load",
        question=f"How fast does Spark load cached rows into an empty keyed table of {BUCKETS} buckets?",
        rows=workload.rows,
        base=PARQUET,
        timings=timings,
    )
    setting.add(result)
    for name in (SOURCE, FUNCTION):
        setting.add_bar(result.bar(f"Spark bulk load of {workload.rows:,} rows by {name} / Parquet", name, PARQUET, 2.5))


def _read(setting: Setting, rows: int, sources: "dict[str, Callable[[], DataFrame]]", cores: str = "") -> None:
    timings = setting.take_turns([Case(name, _read_all(make)) for name, make in sources.items()])
    result = Result(
        name=f"Spark: read without overlap{cores}",
        question="How fast does Spark read a table that needs no merge, all columns into nothing?",
        rows=rows,
        base=PARQUET,
        timings=timings,
        notes=f"{IDLE.capitalize()} hands over what lies in memory: the rest is Spark's own way from Python to its rows.",
    )
    setting.add(result)
    for name in (SOURCE, FUNCTION):
        setting.add_bar(result.bar(f"Spark's Parquet read / read by {name}{cores}", PARQUET, name, 0.75, at_least=True))
    setting.add_bar(result.bar(f"read by {IDLE} / read by {SOURCE}{cores}", IDLE, SOURCE, 0.9, at_least=True))


def _read_upserted(setting: Setting, spark: "SparkSession", space: Path) -> None:
    import pyspark_tablestore

    workload = Workload("bigint", setting.scaled(10_000_000), setting.seed)
    tables = {}
    for number, name in enumerate((UPSERTED, WRITE_ONLY, COMPACTED)):
        extra = {"write-only": "false"} if name == UPSERTED else {}
        tables[name] = table = ours.create(space, f"upserted{number}", workload, buckets=BUCKETS, extra=extra)
        ours.load(table, workload.base())
        table.compact(full=True)
        for version in range(1, SMALL_UPSERTS + 1):
            draw = np.random.default_rng([setting.seed, version])
            numbers = draw.choice(workload.rows, workload.rows // 100, replace=False)
            table.upsert(workload.table(numbers.astype(np.uint64), version))
    tables[COMPACTED].compact(full=True)
    parquet = str(space / "same_rows.parquet")
    pyspark_tablestore.read(spark, tables[COMPACTED].location).coalesce(BUCKETS).write.parquet(parquet)

    def frame(name: str, filter: str | None = None) -> "DataFrame":
        if name in (PARQUET, WITH_KEY):
            return spark.read.parquet(parquet).where(filter or "true")
        return pyspark_tablestore.read(spark, tables[name].location, filter=filter)

    def aggregated(name: str) -> "DataFrame":
        return frame(name).selectExpr(*_AGGREGATES, *(("max(id)",) if name == WITH_KEY else ()))

    tables_and_files = (PARQUET, COMPACTED, UPSERTED, WRITE_ONLY)
    one = f"id = {workload.rows // 3}"
    for what, question, asked, names in (
        (
            "scan",
            f"What do {', '.join(_AGGREGATES)} cost after small upserts?",
            aggregated,
            (*tables_and_files, WITH_KEY),
        ),
        ("row by its key", f"What does WHERE {one} cost?", lambda name: frame(name, one), tables_and_files),
    ):
        found = {name: asked(name).collect() for name in tables_and_files}
        if any(rows != found[PARQUET] for rows in found.values()):
            raise WrongRows(f"{what}: expected what Spark finds in its Parquet files, found {found}")
        for turn in range(0 if not setting.warm_up else QUICK_WARM_UPS if setting.quick else WARM_UPS):
            setting.say(f"{what}: warm-up {turn + 1}")
            for name in names:
                asked(name).collect()
        rounds = setting.repeats if setting.quick else MORE_ROUNDS * setting.repeats
        timings = take_turns([Case(name, _collected(asked, name)) for name in names], rounds, each=setting.say)
        result = Result(name=f"Spark: {what}, {UPSERTED}", question=question, rows=workload.rows, base=PARQUET, timings=timings)
        setting.add(result)
        for name in (UPSERTED, WRITE_ONLY):
            base, bound = (PARQUET, 1.3) if what == "scan" else (COMPACTED, 2.0)
            setting.add_bar(result.bar(f"Spark's {what} {name} / {base}", name, base, bound))
        if what != "scan":
            setting.add_bar(result.bar(f"Spark's {what} {COMPACTED} / Parquet", COMPACTED, PARQUET, 1.2))


def _collected(asked: "Callable[[str], DataFrame]", name: str) -> Callable[[], Sample]:
    return lambda: tree_stopwatch(lambda: asked(name).collect())[0]


def _upsert(setting: Setting, spark: "SparkSession", space: Path) -> None:
    import pyspark_tablestore

    workload = Workload("bigint", setting.scaled(10_000_000), setting.seed)
    count = setting.scaled(100_000)
    changes = workload.table(workload.shuffled()[:count], 1)
    rows = spark.createDataFrame(changes).coalesce(1).cache()
    rows.count()
    cases = [Case(PARQUET, lambda: _parquet(setting, rows))]
    ways = {SOURCE: _by_source(rows), FUNCTION: lambda path: pyspark_tablestore.write(rows, path)}
    tables = {}
    for number, (name, write) in enumerate(ways.items()):
        tables[name] = ours.create(space, f"upserted{number}", workload, buckets=BUCKETS)
        ours.load(tables[name], workload.base())
        cases.append(Case(name, _into(tables[name].location, write)))
    upserts = QUICK_UPSERTS if setting.quick else UPSERTS
    timings = take_turns(cases, upserts, warm_up=True, each=setting.say)
    for name, table in tables.items():
        if (found := table.scan().count()) != workload.rows:
            raise WrongRows(f"{name}: expected {workload.rows} rows, found {found}")
        ids = changes.column("id").to_pylist()[:100]
        kept = table.scan(filter=f"id IN ({', '.join(map(str, ids))})").to_arrow().sort_by("id")
        if not kept.equals(changes.slice(0, 100).sort_by("id").cast(kept.schema)):
            raise WrongRows(f"{name}: the rows that were upserted are not those that are read")
    result = Result(
        name=f"Spark: upsert of {count:,} rows into {workload.rows:,}",
        question=f"What does a small upsert cost, warm, {upserts} times in a row?",
        rows=count,
        base=PARQUET,
        timings=timings,
        notes="No state is reset: the table takes one upsert after the other.",
    )
    setting.add(result)
    for name in ways:
        setting.add_bar(result.bar(f"Spark upsert of {count:,} rows by {name} / Parquet", name, PARQUET, 3.0))
        slowest = max(timings[name].seconds) / timings[name].median
        setting.add_bar(Bar(name=f"slowest of {upserts} Spark upserts by {name} / their median", measured=slowest, bound=3.0))


def _by_source(rows: "DataFrame") -> Callable[[str], None]:
    return lambda path: rows.write.format("tablestore").mode("append").save(path)


def _into(location: str, write: Callable[[str], Any]) -> Callable[[], Sample]:
    return lambda: tree_stopwatch(lambda: write(location))[0]


def _read_all(make: "Callable[[], DataFrame]") -> Callable[[], Sample]:
    return lambda: tree_stopwatch(lambda: make().write.format("noop").mode("overwrite").save())[0]


def _parquet(setting: Setting, rows: "DataFrame") -> Sample:
    with setting.workspace("fresh") as space:
        return tree_stopwatch(lambda: rows.write.parquet(str(space / "rows")))[0]


def _load(setting: Setting, workload: Workload, write: Callable[[str], Any]) -> Sample:
    with setting.workspace("fresh") as space:
        table = ours.create(space, "loaded", workload, buckets=BUCKETS)
        sample, _ = tree_stopwatch(lambda: write(table.location))
        if (found := ts.open_table(table.location).scan().count()) != workload.rows:
            raise WrongRows(f"expected {workload.rows} rows in the table, found {found}")
    return sample


def _sums(rows: "DataFrame") -> tuple[int, ...]:
    return tuple(rows.selectExpr(*_SUMS).collect()[0])
