"""``make demo-mt``: it passes its checks, which fail where a refresh does not happen."""

import os
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest
from rich.console import Console

import tablestore as ts
from examples.flights import dataset as data
from examples.flights import materialized
from examples.flights.report import Report
from tablestore.clock import SystemClock


def run_on_a_few_days(folder: Path) -> Report:
    report = Report(Console(width=120), SystemClock())
    with ts.TableEnvironment.create(folder / "warehouse", engine="duckdb") as env:
        materialized.run(env, report, data.archive_path(), folder, days=9)
    return report


@pytest.mark.deep
def test_board_and_carriers_are_refreshed_by_changes_and_go_on_with_a_new_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = run_on_a_few_days(tmp_path)
    shown = capsys.readouterr().out
    assert (report.passed, report.failed) == (13, 0), shown
    assert shown.count("incremental refresh") == 12
    assert "adds `worst` INT" in shown
    assert "the query is another one than before" in shown


@pytest.mark.deep
def test_a_refresh_that_does_not_happen_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refresh_due, calls = ts.TableEnvironment.refresh_due, count(1)
    monkeypatch.setattr(ts.TableEnvironment, "refresh_due", lambda self, now: refresh_due(self, now) if next(calls) == 1 else ())
    report = run_on_a_few_days(tmp_path)
    assert report.failed == 8
    assert "is not what its query gives" in " ".join(capsys.readouterr().out.split())


def test_a_table_that_is_never_refreshed_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ts.TableEnvironment, "refresh_due", lambda self, now: ())
    with pytest.raises(ts.NotFoundError, match=r"airport\.board was not filled yet"):
        run_on_a_few_days(tmp_path)


def test_a_failed_check_fails_the_program(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(materialized, "run", lambda env, report, archive, scratch: report.check("all is well", "nothing is"))
    assert materialized.main([]) == 1
    assert "0 checks passed, 1 failed" in capsys.readouterr().out


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(materialized, "find_spec", lambda name: None if name == "duckdb" else object())
    assert materialized.main([]) == 2
    assert "pip install 'managed-tablestore[duckdb]'" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.spark
def test_on_spark_it_passes_too(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.flights.materialized", "--spark"],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert "13 checks passed, 0 failed" in done.stdout
    assert list(tmp_path.iterdir()) == []
