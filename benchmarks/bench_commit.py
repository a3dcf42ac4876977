"""Does a commit get slower as the table gets more files?

Measured is one upsert of a few rows, data file and all, by a handle that has just been opened (nothing cached) and by one that
stays open. The many live files are real to the metadata only: their entries are copies of one entry, since a commit reads no
data file of others.
"""

from collections.abc import Callable
from dataclasses import replace

import tablestore as ts
from benchmarks import ours
from benchmarks.measure import Case, Sample, stopwatch, take_turns
from benchmarks.report import Result
from benchmarks.setting import Setting
from benchmarks.workloads import Workload
from tablestore.table.write.committing import Effect, Origin, commit_message

COMMITS = 25
ROWS = 10


def run(setting: Setting) -> None:
    """All questions of this module."""
    few, many = 10, max(setting.scaled(10_000), 100)
    workload = Workload("bigint", 1000, setting.seed)
    with setting.workspace("commit") as space:
        cases = []
        for files in (few, many):
            table = ours.create(space, f"files{files}", workload, buckets=1)
            _fill(table, workload, files)
            cases.append(Case(f"{files:,} files, opened anew", _commit_cold(table.location, workload)))
            warm = ours.create(space, f"warm{files}", workload, buckets=1)
            _fill(warm, workload, files)
            cases.append(Case(f"{files:,} files, kept open", _commit_warm(warm, workload)))
        # Commits are short: more of them cost little, and show the ones that merge manifests.
        timings = take_turns(cases, 4 * setting.repeats, warm_up=setting.warm_up)
    result = Result(
        name=f"commit of {ROWS} rows by number of live files",
        question="Does the number of live files matter to a commit?",
        rows=ROWS,
        base=f"{few:,} files, opened anew",
        timings=timings,
        notes=f"The files came with up to {COMMITS} commits; some of those measured merge manifests. No state is reset.",
    )
    slowest = {name: max(timing.seconds) * 1000 for name, timing in timings.items()}
    result = replace(result, notes=f"{result.notes} Slowest: {', '.join(f'{name} {ms:.0f} ms' for name, ms in slowest.items())}.")
    setting.add(result)
    for how in ("opened anew", "kept open"):
        setting.add_bar(
            result.bar(
                f"commit on {many:,} live files / on {few:,}, handle {how}", f"{many:,} files, {how}", f"{few:,} files, {how}", 3.0
            )
        )


def _fill(table: ts.Table, workload: Workload, files: int) -> None:
    """Commit ``files`` live files in a few commits, as copies of the entry of a real one."""
    numbers = workload.shuffled()[:ROWS]
    commits = min(files, COMMITS)
    for commit in range(commits):
        with table.new_writer() as writer:
            writer.write(workload.table(numbers))
            message = writer.prepare()
        (entry,) = message.entries
        copies = [
            replace(entry, file=replace(entry.file, file_name=entry.file.file_name.replace(".parquet", f"-{copy}.parquet")))
            for copy in range(files // commits - 1)
        ]
        message = replace(message, entries=(entry, *copies))
        commit_message(table.context, table.change_log, message, Effect(), Origin(user=f"fill-{commit}"))


def _commit_cold(location: str, workload: Workload) -> Callable[[], Sample]:
    def attempt() -> Sample:
        rows = workload.table(workload.shuffled()[:ROWS])
        return stopwatch(lambda: ts.open_table(location).upsert(rows))[0]

    return attempt


def _commit_warm(table: ts.Table, workload: Workload) -> Callable[[], Sample]:
    rows = workload.table(workload.shuffled()[:ROWS])
    return lambda: stopwatch(lambda: table.upsert(rows))[0]
