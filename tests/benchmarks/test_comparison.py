"""The comparison asks every system the same, checks each answer and keeps what it has. Its sizes are tiny; no time is looked at."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.comparison.charts import draw
from benchmarks.comparison.compare import compare
from benchmarks.comparison.page import finish, write_document
from benchmarks.comparison.process import Unanswered, WorkerProcess
from benchmarks.comparison.record import LINES, Measurement, ResultFolder, Results, read_results
from benchmarks.comparison.rows import Expected, RowSource
from benchmarks.comparison.running import SUITES, pick_suites, run_suites
from benchmarks.comparison.session import QUICK, Sizes, check
from benchmarks.comparison.suites import load, reads, upserts
from benchmarks.comparison.systems import FLOOR, OURS, SystemSpec, install, spec_list
from benchmarks.comparison.tables import losses, rank, suite_table, wins
from benchmarks.comparison.workers.sums import sums

SEED = 7
TINY = replace(
    QUICK,
    load_rows=400,
    table_rows=400,
    commit_rows=40,
    commits=2,
    rounds=1,
    read_after=(1, 2),
    lookups=1,
    processes=(1, 2),
    commit_s=0.2,
    plan_files=(20,),
    memory_rows=100,
    call_s=120.0,
    system_s=600.0,
    run_s=600.0,
    is_full=True,
)
IN_PYTHON = (FLOOR["python"], OURS["python"])


def specs(*names: str) -> list[SystemSpec]:
    return [spec for spec in spec_list() if spec.name in names]


def run(directory: Path, suites: str, sizes: Sizes = TINY, systems: tuple[str, ...] = IN_PYTHON) -> Results:
    folder = ResultFolder(directory / "results")
    work = directory / "work"
    work.mkdir()
    about = ({"cpu": "any"}, {"rows": "few"})
    run_suites(pick_suites(suites.split()), specs(*systems), sizes, folder=folder, work=work, seed=SEED, surroundings=about)
    return finish(folder.directory)


def measured(suite: str, system: str, seconds: float, **more: object) -> Measurement:
    values = {"seconds": seconds, "cpu": seconds}
    return Measurement(**{"suite": suite, "case": "c", "system": system, "family": "python", "values": values, **more})


# -- rows


def test_the_expected_sums_are_those_of_the_rows_that_are_left(tmp_path: Path) -> None:
    source, expected = RowSource(tmp_path, SEED), Expected()
    newest: dict[int, dict[str, object]] = {}
    tables = [source.base(300)[1]]
    tables += [source.commit(number, rows=50, live=300, keys=keys)[1] for number, keys in ((1, "uniform"), (2, "zipf"))]
    for version, rows in enumerate(tables):
        expected.put(rows, version)
        newest.update({row["id"]: row for row in rows.to_pylist()})
    merged = pa.Table.from_pylist(list(newest.values()))
    assert expected.sums() == sums(merged)
    assert expected.sums(("quantity", "code")) == sums(merged.select(["quantity", "code"]))
    assert sums(expected.table(SEED)) == sums(merged)
    few = [5, 7, 301]
    assert expected.sums(keys=few) == sums(pa.Table.from_pylist([newest[key] for key in few]))


def test_sums_change_when_two_cells_change_places() -> None:
    rows = pa.table({"id": [1, 2], "quantity": [3, 4], "price": [1.5, 2.25], "code": ["0000000000005", "0000000000006"]})
    swapped = rows.set_column(1, "quantity", pa.array([4, 3]))
    assert sums(rows) != sums(swapped)


def test_updates_and_deletes_touch_a_hundredth(tmp_path: Path) -> None:
    expected = Expected()
    expected.put(RowSource(tmp_path, SEED).base(300)[1])
    before = expected.sums()
    assert (expected.update(), expected.delete()) == (3, 3)
    after = expected.sums()
    assert after["rows"] == before["rows"] - 3
    with pytest.raises(Unanswered, match="wrong rows"):
        check({"sums": before}, after)


# -- a run


def test_a_run_of_two_systems_keeps_times_versions_charts_and_a_page(tmp_path: Path) -> None:
    results = run(tmp_path, "load")
    timed = [one for one in results.measurements if "seconds" in one.values]
    assert [one.system for one in timed] == list(IN_PYTHON)
    assert all(one.status == "ok" and one.values["seconds"] > 0 for one in timed)
    assert results.median("load", timed[0].case, OURS["python"], "bytes") is not None
    assert results.versions[OURS["python"]]["tablestore"]
    folder = tmp_path / "results"
    assert json.loads((folder / "results.json").read_text())["measurements"]
    text = (folder / "results.md").read_text()
    assert f"| **{OURS['python']}** |" in text and f"| {FLOOR['python']} |" in text


@pytest.mark.slow
def test_every_suite_of_python_runs_and_its_answers_are_right(tmp_path: Path) -> None:
    results = run(tmp_path, "")
    assert [one for one in results.measurements if one.status in ("failed", "stopped")] == []
    measured_suites = {one.suite for one in results.measurements if one.system == OURS["python"] and one.status == "ok"}
    assert measured_suites == {suite.name for suite in SUITES}
    said = {one.why for one in results.measurements if one.status == "cannot"}
    assert said == {"upserts: it has no key and no merge"}


def test_a_run_that_is_out_of_time_keeps_what_it_has_and_says_what_is_left_out(tmp_path: Path) -> None:
    results = run(tmp_path, "load upserts", sizes=replace(TINY, run_s=0.0))
    assert results.cut == "load (python), upserts (python)"
    assert "The run had no time for: load (python)" in (tmp_path / "results" / "results.md").read_text()


def test_measurements_of_a_run_that_was_killed_are_read_up_to_its_last_whole_line(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path)
    folder.begin(Results(machine={"cpu": "any"}, settings={}))
    kept = measured("load", OURS["python"], 1.0)
    folder.add(kept)
    with (tmp_path / LINES).open("a") as lines:
        lines.write('{"measurement": {"suite": "lo')
    results = read_results(tmp_path)
    assert results.measurements == [kept] and results.machine == {"cpu": "any"}


def test_a_system_that_answers_wrong_rows_has_no_time(tmp_path: Path) -> None:
    measurements = [
        measured("load", "a", 1.0),
        measured("load", "b", 2.0),
        measured("load", "a", 0.0, status="failed", values={}, why="wrong"),
    ]
    results = Results(machine={}, settings={}, measurements=measurements)
    assert [one.system for one in rank(results, load.SUITE, "python", "c")] == ["b"]
    assert "- a: failed: wrong" in suite_table(results, load.SUITE, "python")


def test_a_system_that_does_not_answer_in_time_is_stopped(tmp_path: Path) -> None:
    (spec,) = specs(OURS["python"])
    place = tmp_path / "place"
    place.mkdir()
    with WorkerProcess(install(spec), place) as worker, pytest.raises(Unanswered) as caught:
        worker.ask("hello", 0.0)
    assert caught.value.status == "stopped"


def test_unknown_suites_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no suite lod; expected load, upserts"):
        pick_suites(["lod"])


# -- pages


def test_losses_stand_beside_wins_and_the_floor_is_no_loss() -> None:
    ours, floor = OURS["python"], FLOOR["python"]
    times = {ours: 2.0, floor: 0.5, "faster": 1.0, "slower": 4.0}
    results = Results(machine={}, settings={}, measurements=[measured("load", name, value) for name, value in times.items()])
    assert wins(results, SUITES) == (1, 1)
    assert losses(results, SUITES) == [(2.0, f"Bulk load, c: faster is 2.0 x ahead of {ours}")]
    lines = suite_table(results, load.SUITE, "python")
    assert "| faster | 1.00 s | **2.00 x faster** |  | 1.00 s |" in lines
    assert "| slower | 4.00 s | 2.00 x slower |  | 4.00 s |" in lines


def test_what_is_ranked_of_reads_is_the_last_place_on_the_axis() -> None:
    measurements = [measured("reads", "a", 1.0, at=1.0), measured("reads", "a", 3.0, at=20.0)]
    ranks = rank(Results(machine={}, settings={}, measurements=measurements), reads.SUITE, "python", "c")
    assert [one.value for one in ranks] == [3.0]


@pytest.mark.parametrize("suite", [load.SUITE, upserts.SUITE])
def test_a_chart_says_in_words_what_it_shows(suite: object, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    measurements = [measured(suite.name, name, 1.0 + place, at=place) for name in ("a", OURS["python"]) for place in (1.0, 2.0)]
    path = tmp_path / "chart.svg"
    words = draw(Results(machine={}, settings={}, measurements=measurements), suite, "python", path)
    assert words is not None and "a 2.50 s" in words
    assert path.read_text().startswith("<?xml")


def test_the_page_of_the_documents_links_its_charts(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = ResultFolder(tmp_path / "results")
    folder.begin(Results(machine={"cpu": "any"}, settings={"size": "few"}))
    folder.add(measured("load", OURS["python"], 1.0))
    folder.missing("other", "it is not here")
    target = tmp_path / "docs" / "explanation" / "results.md"
    target.parent.mkdir(parents=True)
    write_document(folder.directory, target)
    text = target.read_text()
    assert "](../images/results-load-python.svg)" in text and "- other: not available: it is not here" in text
    assert (tmp_path / "docs" / "images" / "results-load-python.svg").exists()


def test_two_runs_are_compared_by_their_medians(tmp_path: Path) -> None:
    def results(*seconds: float) -> Results:
        return Results(machine={}, settings={}, measurements=[measured("load", "a", value) for value in seconds])

    lines = compare(results(1.0, 2.0, 30.0), results(3.0), SUITES)
    assert lines[2:] == ["| load | c | a | 2.00 s | 3.00 s | 1.50 |"]


@pytest.mark.parametrize("command", ["compare", "results"])
def test_commands_say_what_a_folder_has_to_be(command: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", command, str(tmp_path), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "no results.jsonl" in done.stderr
