"""The live board: the day that is replayed, the fold of its changes, the picture, and the whole with two streams of Spark."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from examples.flights import dataset as data
from examples.flights import stream
from examples.flights.board import Board, line, picture
from examples.flights.replay import CHANGES_SCHEMA, KEY, SCHEMA, Replay, replay, to_rows


@pytest.fixture(scope="module")
def day() -> Replay:
    return replay(data.archive_path(), slices=6)


def shown(board: Board) -> str:
    console = Console(width=110, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    with console.file:
        console.print(picture(board.moment(snapshot=7, behind=2, batches=3, of_batches=6, seconds=1.25)))
        return console.export_text()


def test_slices_lead_from_the_plan_to_what_is_known_in_the_end(day: Replay) -> None:
    assert (len(day.plan), len(day.last), len(day.slices)) == (979, 799, 6)
    assert [one.until for one in day.slices] == sorted(one.until for one in day.slices)
    board = Board(day.carriers).after(day.plan.assign(_row_kind="+I"))
    for one in day.slices:
        assert not one.changes.duplicated(KEY).any()
        assert to_rows(one.changes, CHANGES_SCHEMA, sent=1).schema == CHANGES_SCHEMA
        board = board.after(one.changes)
    assert board.rows is not None
    order = [to_rows(side.sort_values(KEY), SCHEMA, sent=None) for side in (board.rows, day.last)]
    assert order[0].equals(order[1])
    assert board.cancelled.sum() == 979 - 799


def test_board_counts_flights_and_means_the_delays_of_those_that_left(day: Replay) -> None:
    board = Board({"UA": "United Air Lines Inc.", "HA": "Hawaiian Airlines Inc."})
    assert "--:--" in line(board.moment(batches=0, of_batches=1)) and "United" in shown(board)
    at = pd.Timestamp(2013, 3, 9, 0, 30)
    rows = [
        ("+I", "UA", 1, "left", 200),
        ("+U", "UA", 2, "arrived", 240),
        ("+I", "HA", 1, "left", -9),
        ("+I", "UA", 3, "scheduled", None),
    ]
    changes = pd.DataFrame(
        [(*row, "JFK", at) for row in rows], columns=["_row_kind", "carrier", "flight", "status", "dep_delay", "origin", "at"]
    )
    board = board.after(changes).after(changes.tail(1).assign(_row_kind="-D"))
    united, hawaiian = board.moment(batches=0, of_batches=1).carriers
    assert (united.due, united.left, united.arrived, united.cancelled, united.delay) == (0, 2, 1, 1, 220.0)
    assert (hawaiian.left, hawaiian.delay) == (1, -9.0)
    text = shown(board)
    # What is more than there is room for ends in an arrow; what is early lies left of the axis.
    assert "▶" in text and "█┊" in text and "00:30 +1" in text and "2 behind, sent to shown 1.2 s" in text
    assert max(map(len, text.splitlines())) <= 100
    assert "worst UA +220" in line(board.moment(batches=0, of_batches=1))


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv(stream.SERVERS_VARIABLE, raising=False)
    assert stream.main(["--kafka"]) == 2
    assert "run: make demo-stream ARGS=--kafka" in capsys.readouterr().out
    monkeypatch.setattr(stream, "find_spec", lambda name: None)
    assert stream.main([]) == 2
    assert "pip install 'managed-tablestore[demo]'" in capsys.readouterr().out


def test_comparison_sees_a_missing_row_and_a_changed_value(day: Replay) -> None:
    assert stream.difference(day.last, day.last.iloc[::-1], "pandas") is None
    assert stream.difference(day.last.iloc[1:], day.last, "pandas") == "798 rows, pandas has 799"
    assert stream.difference(day.last.assign(dep_delay=1), day.last, "pandas") == "column dep_delay is not what pandas has"


@pytest.mark.deep
@pytest.mark.spark
def test_the_board_of_two_streams_is_the_table_and_the_table_is_the_day(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.flights.stream", "--batches", "3"],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert "4 checks passed, 0 failed" in done.stdout
    assert "cancelled  180  mean delay +84 min" in done.stdout
    assert list(tmp_path.iterdir()) == []
