"""``make demo-kafka``: the program runs on a broker of its own, and its checks can fail."""

import sys
from pathlib import Path

import pytest
from rich.console import Console

from examples.flights import kafka
from examples.flights.report import Report
from tablestore.clock import SystemClock
from tablestore.testing.kafka import KafkaBroker
from tablestore.testing.kafka.__main__ import main


@pytest.mark.deep
def test_the_demo_passes_its_checks(broker: KafkaBroker, tmp_path: Path) -> None:
    report = Report(Console(quiet=True), SystemClock())
    kafka.run(str(tmp_path), broker.servers, report, changes=5)
    # All but one do not depend on how busy the machine is.
    assert report.passed >= 4


@pytest.mark.deep
def test_a_reader_that_misses_a_change_is_noticed(broker: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apply = kafka.Reader._apply
    monkeypatch.setattr(
        kafka.Reader,
        "_apply",
        lambda self, row, now, *, in_frame: None if row["change"] == 2 else apply(self, row, now, in_frame=in_frame),
    )
    monkeypatch.setattr(kafka, "WAIT_S", 3.0)
    report = Report(Console(quiet=True), SystemClock())
    kafka.run(str(tmp_path), broker.servers, report, changes=3)
    assert report.failed >= 2


def test_without_a_broker_it_says_what_to_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv(kafka.SERVERS_VARIABLE, raising=False)
    assert kafka.main() == 2
    assert "make demo-kafka" in capsys.readouterr().out


@pytest.mark.deep
def test_a_command_finds_its_broker_in_the_environment(jars: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    program = "import os, socket; h, p = os.environ['KAFKA_SERVERS'].split(':'); socket.create_connection((h, int(p)), 5)"
    assert main([sys.executable, "-c", program]) == 0
    assert main([sys.executable, "-c", "raise SystemExit(7)"]) == 7
