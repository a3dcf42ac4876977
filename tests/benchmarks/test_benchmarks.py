"""The benchmarks measure what they say they measure. Their sizes here are tiny, and no time is looked at."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tablestore as ts
from benchmarks import (
    bench_changelog,
    bench_commit,
    bench_engines,
    bench_scale,
    bench_scan,
    bench_small,
    bench_spark,
    bench_write,
    floors,
    millionfiles,
    ours,
)
from benchmarks.digest import digest
from benchmarks.measure import Case, Sample, Timing, WrongRows, stopwatch, take_turns
from benchmarks.peers import Mode
from benchmarks.report import Bar, Report, Result
from benchmarks.setting import Setting
from benchmarks.workloads import KEY_KINDS, KeyKind, Workload

SEED = 7
KINDS: tuple[KeyKind, ...] = ("bigint", "composite")


def small_setting(directory: Path) -> Setting:
    report = Report(settings={"rows": "200"}, machine={"cpu": "any"})
    return Setting(directory=directory, rows=200, repeats=1, seed=SEED, report=report, warm_up=False, kinds=KINDS)


# -- workloads


@pytest.mark.parametrize("kind", KEY_KINDS)
def test_rows_are_a_function_of_seed_number_and_version(kind: KeyKind) -> None:
    numbers = np.arange(100, dtype=np.uint64)
    rows = Workload(kind, 100, SEED).table(numbers, 1)
    assert rows.equals(Workload(kind, 100, SEED).table(numbers, 1))
    for other in (Workload(kind, 100, SEED).table(numbers, 2), Workload(kind, 100, SEED + 1).table(numbers, 1)):
        assert rows.column("id").equals(other.column("id"))
        assert not rows.column("quantity").equals(other.column("quantity"))


@pytest.mark.parametrize("kind", KEY_KINDS)
def test_every_number_has_its_own_key(kind: KeyKind) -> None:
    workload = Workload(kind, 5000, SEED)
    keys = workload.table(workload.shuffled()).select(workload.primary_key)
    assert keys.group_by(workload.primary_key).aggregate([]).num_rows == 5000


def test_codes_have_thirteen_digits() -> None:
    codes = Workload("bigint", 50, SEED).table(np.arange(50, dtype=np.uint64)).column("code").to_pylist()
    assert all(len(code) == 13 and code.isdigit() for code in codes)


@pytest.mark.parametrize("runs", [2, 5, 10])
def test_rewrites_hold_their_share_of_the_rows_once_each(runs: int) -> None:
    workload = Workload("bigint", 1000, SEED)
    parts = list(workload.rewrites(runs, 0.5))
    ids = pa.concat_tables(parts).column("id").to_pylist()
    assert len(parts) == runs - 1
    assert len(ids) == len(set(ids)) == 500


def test_merged_rows_are_the_newest_versions() -> None:
    workload = Workload("bigint", 300, SEED)
    newest = {}
    for part in (*workload.base(), *workload.rewrites(4, 0.5)):
        newest.update({row["id"]: row for row in part.to_pylist()})
    merged = {row["id"]: row for row in workload.merged(4, 0.5).to_pylist()}
    assert merged == newest
    assert workload.digest_of_merged(4, 0.5) == workload.digest(workload.merged(4, 0.5))


# -- digests


def test_digest_ignores_order_and_batches() -> None:
    workload = Workload("string", 200, SEED)
    rows = workload.table(workload.shuffled())
    turned = rows.take(pa.array(np.arange(199, -1, -1)))
    in_batches = pa.Table.from_batches(rows.to_batches(max_chunksize=7))
    assert digest(rows, "id") == digest(turned, "id") == digest(in_batches, "id")


@pytest.mark.parametrize("column", ["id", "quantity", "price", "code"])
def test_digest_changes_when_two_cells_change_places(column: str) -> None:
    workload = Workload("string", 50, SEED)
    rows = workload.table(workload.shuffled())
    order = [1, 0, *range(2, 50)]
    position = rows.schema.get_field_index(column)
    swapped = rows.set_column(position, rows.schema.field(position), rows.column(column).take(pa.array(order)))
    assert digest(rows, "id") != digest(swapped, "id")


def test_wrong_rows_fail_the_benchmark(tmp_path: Path) -> None:
    workload = Workload("bigint", 50, SEED)
    table = ours.create(tmp_path, "t", workload, buckets=2)
    ours.load(table, workload.base())
    rows = table.scan().to_arrow()
    ours.check(workload, rows, workload.digest(rows))
    with pytest.raises(WrongRows, match="expected rows and digest"):
        ours.check(workload, rows.slice(1), workload.digest(rows))
    with pytest.raises(WrongRows, match="not the 50"):
        ours.check_exactly(workload, rows, workload.table(workload.shuffled(), 3))


# -- floors


@pytest.mark.parametrize("kind", KEY_KINDS)
def test_floor_writes_the_rows_of_the_table_files(tmp_path: Path, kind: KeyKind) -> None:
    workload = Workload(kind, 400, SEED)
    rows = workload.table(workload.shuffled())
    table = ours.create(tmp_path, "t", workload, buckets=4)
    table.upsert(rows)
    parts = floors.sorted_buckets(rows, table, 4)
    ours.check_exactly(workload, pa.concat_tables(parts), rows)
    stored = [pq.read_table(path, columns=workload.schema.names) for path in floors.data_files(table)]
    assert {workload.digest(part) for part in parts} == {workload.digest(part) for part in stored}
    assert [part.column("id").to_pylist() for part in parts] == [part.column("id").to_pylist() for part in stored]


def test_floors_read_the_live_files(tmp_path: Path) -> None:
    workload = Workload("bigint", 300, SEED)
    table = ours.create(tmp_path, "t", workload, buckets=2)
    ours.load(table, workload.base())
    table.upsert(next(workload.rewrites(2, 0.5)))
    files = floors.data_files(table)
    assert len(files) == 4
    assert floors.read_files(files, workload.schema.names, verify=True) == 450
    out = tmp_path / "out"
    for write in (floors.write_plain, floors.write_alike):
        out.mkdir(exist_ok=True)
        write([workload.table(workload.shuffled())], out)
        assert floors.read_files([out / "0.parquet"], workload.schema.names, verify=False) == 300


# -- taking turns and reporting


def test_cases_take_turns_after_a_warm_up() -> None:
    turns: list[str] = []

    def case(name: str, runs: int | None = None) -> Case:
        def attempt() -> Sample:
            turns.append(name)
            return Sample(1.0, 1.0)

        return Case(name, attempt, runs)

    timings = take_turns([case("a"), case("b"), case("slow", runs=1)], 3)
    assert turns == ["a", "b", "a", "b", "slow", "a", "b", "a", "b"]
    assert {name: len(timing.seconds) for name, timing in timings.items()} == {"a": 3, "b": 3, "slow": 1}


def test_a_second_core_is_there_for_a_while_also_for_what_runs_already() -> None:
    pytest.importorskip("psutil")
    if not hasattr(os, "sched_setaffinity") or (os.cpu_count() or 1) < 2:
        pytest.skip("one core, or a system that does not pin")
    program = """
import os, subprocess, sys
from benchmarks.measure import pin_to_one_core, second_core
pin_to_one_core()
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
def seen():
    return [len(os.sched_getaffinity(process)) for process in (0, child.pid)]
before = seen()
with second_core() as there_is_one:
    print(there_is_one, before, seen())
print(seen())
child.communicate(b"\\n")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True [1, 1] [2, 2]", "[1, 1]"]


def test_ratios_are_those_of_medians() -> None:
    def timing(name: str, *walls: float) -> Timing:
        return Timing(name, tuple(Sample(wall, wall / 2) for wall in walls))

    timings = {"base": timing("base", 1.0, 2.0, 30.0), "ours": timing("ours", 3.0, 5.0, 4.0)}
    result = Result(name="w", question="?", rows=8, base="base", timings=timings)
    assert result.ratio("ours", "base") == 2.0
    assert timings["ours"].spread == 0.5
    assert result.ratio("ours", "absent") is None
    bar = result.bar("b", "ours", "base", 2.0)
    assert bar.passed is True
    assert replace(bar, bound=1.9).passed is False
    assert replace(bar, at_least=True, bound=2.1).passed is False
    assert result.bar("b", "ours", "absent", 2.0).passed is None


def test_report_has_every_bar_and_case_in_both_forms() -> None:
    timing = Timing("ours", (Sample(0.5, 0.25), Sample(1.5, 0.25)))
    report = Report(settings={"rows": "8"}, machine={"cpu": "any"})
    report.results.append(Result(name="w", question="Why?", rows=8, base="ours", timings={"ours": timing}))
    report.bars += [Bar(name="kept", measured=1.0, bound=2.0), Bar(name="missed", measured=3.0, bound=2.0)]
    report.bars.append(Bar(name="open", measured=None, bound=2.0, note="no peer here"))
    record = json.loads(report.to_json())
    assert [bar["passed"] for bar in record["bars"]] == [True, False, None]
    assert record["workloads"][0]["timings"][0]["seconds"] == [0.5, 1.5]
    assert record["workloads"][0]["timings"][0]["rows_per_s"] == 8.0
    text = report.to_markdown()
    assert "| kept | 1.00 x | <= 2 x | **pass** |" in text
    assert "| missed | 3.00 x | <= 2 x | **FAIL** |" in text
    assert "| open | not measured | <= 2 x | no peer here |" in text


# -- the questions


@pytest.mark.parametrize("quick", [True, False])
def test_a_quick_run_of_spark_starts_one_machine_for_all_parts_and_says_each(
    quick: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[Path] = []
    sizes: list[int] = []

    @contextmanager
    def session(space: Path) -> Iterator[None]:
        started.append(space)
        yield None

    def part(setting: Setting, spark: None, space: Path) -> None:
        assert space.is_dir()
        sizes.append(setting.rows)

    for name in ("_read_and_load", "_read_upserted", "_upsert"):
        monkeypatch.setattr(bench_spark, name, part)
    monkeypatch.setattr(bench_spark, "spark_session", session)
    monkeypatch.setattr(bench_spark, "why_no_spark", lambda: None)
    report = Report(settings={}, machine={})
    bench_spark.run(Setting(directory=tmp_path, rows=100_000, repeats=2, seed=7, report=report, quick=quick))
    assert len(started) == (1 if quick else 3)
    assert sizes == [100_000 // bench_spark.QUICK_FEWER if quick else 100_000] * 3
    said = capsys.readouterr().err
    assert all(f"part {number} of 3" in said for number in (1, 2, 3))


@pytest.mark.slow
@pytest.mark.spark
def test_spark_workloads_run_and_report_every_bar(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("no Java on this machine")
    # A process of its own: the benchmark makes and stops the one session that a process has.
    out = tmp_path / "report.json"
    command = [sys.executable, "-m", "benchmarks", "spark", "--rows", "1000", "--repeats", "1", "--json", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    report = json.loads(out.read_text())
    two_cores = [result for result in report["workloads"] if "second core" in result["name"]]
    # A machine of one core says that it has no other.
    assert bool(two_cores) != bool(report["skipped"])
    assert len(report["workloads"]) == 5 + len(two_cores)
    assert len(report["bars"]) == 14 + 3 * len(two_cores)
    assert all(bar["measured"] is not None for bar in report["bars"])


@pytest.mark.deep
def test_every_workload_runs_and_its_bars_are_reported(tmp_path: Path) -> None:
    setting = small_setting(tmp_path)
    for module in (bench_write, bench_scan, bench_commit):
        module.run(setting)
    report = setting.report
    names = [result.name for result in report.results]
    for kind in KINDS:
        assert f"upsert, {kind} key" in names
        assert {f"merge read of {runs} runs, {kind} key" for runs in (2, 5, 10)} <= set(names)
    assert "bulk load, append table" in names
    assert all(result.timings and result.base in result.timings for result in report.results)
    without_peer = [bar.name for bar in report.bars if bar.measured is None]
    assert all("pypaimon" in name for name in without_peer)
    assert len(report.bars) - len(without_peer) == 8
    assert json.loads(report.to_json())["bars"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.deep
def test_the_engines_are_measured_beside_each_other(tmp_path: Path) -> None:
    setting = small_setting(tmp_path)
    bench_engines.run(setting)
    reading, writing = setting.report.results
    assert set(reading.timings) == {"pyarrow", "deduplicate", "partial-update", "aggregation"}
    assert set(writing.timings) == {"deduplicate", "partial-update", "aggregation"}
    assert list(tmp_path.iterdir()) == []


class Stand:
    """Stands in for a process of pypaimon, and is tablestore."""

    def __init__(self, mode: Mode) -> None:
        self.mode: Mode = mode
        self.name = f"pypaimon {mode}"
        self._rows: dict[str, pa.Table] = {}

    def load(self, name: str, rows: pa.Table, directory: Path) -> None:
        self._rows[name] = rows

    def forget(self) -> None:
        self._rows.clear()

    def create(self, path: Path, name: str, *, primary_key: Sequence[str], options: Mapping[str, str]) -> None:
        catalog = ts.open_catalog(str(path.parent.parent))
        catalog.create_database(ours.DATABASE, ignore_if_exists=True)
        schema = self._rows[name].schema
        catalog.create_table(f"{ours.DATABASE}.{path.name}", schema=schema, primary_key=primary_key, options=options)

    def write(self, path: Path, name: str) -> Sample:
        table = ts.open_table(str(path))
        rows = self._rows[name]
        return stopwatch(lambda: table.upsert(rows) if table.primary_key else table.append(rows))[0]

    def read(self, path: Path, expected: tuple[int, int]) -> Sample:
        sample, rows = stopwatch(lambda: ts.open_table(str(path)).scan().to_arrow())
        ours.check(Workload("bigint", 0, SEED), rows, expected)
        return sample


@pytest.mark.slow
def test_every_write_and_read_has_both_peers_and_the_slow_one_takes_fewer_rows(tmp_path: Path) -> None:
    setting = small_setting(tmp_path)
    setting.peers = [Stand("native"), Stand("pure")]
    for module in (bench_write, bench_scan):
        module.run(setting)
    results = {result.name: result for result in setting.report.results}
    merging = [f"upsert, {kind} key" for kind in KINDS]
    merging += [f"merge read of {runs} runs, {kind} key" for runs in (2, 5, 10) for kind in KINDS]
    for name in merging:
        assert {"tablestore", "pypaimon native"} <= set(results[name].timings)
        assert "pypaimon pure" not in results[name].timings
        fewer = results[f"{name}, 20 rows"]
        assert fewer.rows == 20 and "20 rows where the other workloads have 200" in fewer.notes
        assert {fewer.base, "tablestore", "pypaimon native", "pypaimon pure"} <= set(fewer.timings)
    for name in ("bulk load, append table", *(f"read without overlap, {kind} key" for kind in KINDS)):
        assert {results[name].base, "tablestore", "pypaimon native", "pypaimon pure"} <= set(results[name].timings)
    assert all(bar.measured is not None for bar in setting.report.bars)
    assert len(setting.report.bars) == 8


# -- the changelog


@pytest.mark.deep
def test_the_changelog_benchmark_measures_exact_changes_and_takes_its_bars(tmp_path: Path) -> None:
    setting = small_setting(tmp_path)
    bench_changelog.run(setting)
    (result,) = setting.report.results
    kept, cold = {"none", "lookup", "lookup, keys in a row"}, {"lookup, first", "lookup, second", bench_changelog.FLOOR}
    assert set(result.timings) == {"scan of the key column"} | kept | cold
    assert len(result.timings["lookup"].samples) == bench_changelog.COMMITS_PER_REPEAT
    assert len(setting.report.bars) == 6 and all(bar.measured is not None for bar in setting.report.bars)


@pytest.mark.deep
def test_plans_and_commits_are_measured_by_the_number_of_files(tmp_path: Path) -> None:
    setting = replace(small_setting(tmp_path), rows=2_000)
    bench_scale.run(setting)
    results = {result.name: result for result in setting.report.results}
    plans = [f"cold plan of {name}" for name in bench_scale.FILTERS]
    assert list(results)[: len(plans)] == plans and {"count", "partitions", "files", "commit of one file"} <= results.keys()
    commits = results["commit of one file"]
    assert list(commits.timings) == ["100 files", "200 files"], "the smallest sizes are one"
    assert [bar.name for bar in setting.report.bars] == ["commit beside 200 files / 100"]


@pytest.mark.slow
def test_tables_of_many_files_are_measured_beside_bars_and_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(millionfiles, "RUNS", 1)
    setting = replace(small_setting(tmp_path), rows=3_000)
    few = {name: bars for name, bars in millionfiles.WRITES.items() if "100,000" not in name}
    monkeypatch.setattr(millionfiles, "WRITES", few)
    reads = {name: millionfiles.READS[name] for name in ("count", "one id", "tasks of all files")}
    monkeypatch.setattr(millionfiles, "READS", reads)
    for _ in range(2):
        millionfiles.run(setting)
    names = [bar.name for bar in setting.report.bars]
    count = len(names) // 2
    assert names[:count] == names[count:] and all(bar.measured is not None for bar in setting.report.bars)
    assert {"count, compacted, cold", "one id, as committed, memory", "merging of manifests / writing the same"} <= {*names}
    assert "| tasks of all files, compacted |" in setting.report.sections[0]
    made = ["1,000-files-1000", "as-committed-3000", "compacted-3000", "unmerged-3000"]
    assert sorted(path.name for path in tmp_path.iterdir()) == made


@pytest.mark.deep
def test_small_commits_are_measured_beside_files_of_the_same_number_and_size(tmp_path: Path) -> None:
    setting = small_setting(tmp_path)
    bench_small.run(setting)
    against, by_snapshots, statements, refreshes = setting.report.results
    assert set(against.timings) == {"upserts", "plain files", "plain files and directories"}
    # At least the data file, two lists, a manifest, the snapshot and LATEST of each commit.
    assert int(against.notes.rpartition("Files of the last run: ")[2].partition(",")[0]) >= 6 * bench_small.UPSERTS
    assert set(by_snapshots.timings) == {"10 snapshots", "100 snapshots"}
    assert set(statements.timings) == {"table.upsert", "INSERT", "UPDATE", "table.update"}
    assert set(refreshes.timings) == {"table.upsert", "REFRESH"}
    assert [bar.bound for bar in setting.report.bars] == [4.0, 1.2, 1.3, 1.8, 1.6]
