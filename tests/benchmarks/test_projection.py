"""Lines through costs, and what they say of sizes that were not measured."""

import json
from pathlib import Path

import pytest

from benchmarks.projection import Line, fit, plot
from benchmarks.scalepage import page


@pytest.mark.parametrize("line", [Line(0.5, 0.0), Line(0.25, 1e-6), Line(0.0, 3e-5)])
def test_a_line_is_that_of_its_points(line: Line) -> None:
    fitted = fit({size: line.at(size) for size in (1_000, 10_000, 100_000)})
    assert fitted.at(10**7) == pytest.approx(line.at(10**7), rel=1e-6)


@pytest.mark.parametrize("points", [{10: 1.0}, {10: 2.0, 100: 1.0}, {10: 1e-3, 100: 1.0}, {10: 0.0, 100: 0.0}])
def test_no_cost_is_below_zero(points: dict[int, float]) -> None:
    line = fit(points)
    assert line.fixed >= 0 and line.each >= 0


def test_a_plot_has_a_line_for_each_size() -> None:
    points = {1_000: 0.01, 10_000: 0.1, 100_000: 1.0}
    bars = [text.count("█") for text in plot(points, fit(points), unit="s")]
    assert bars == sorted(bars) and len(bars) == 3 and bars[0] > 0


def test_the_page_has_the_sections_and_what_others_need(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    timings = [{"case": "tablestore", "median_s": 0.02}, {"case": "another", "median_s": 0.1}]
    name = "plan of one id beside others"
    workloads = [{"name": name, "question": "What?", "timings": timings}, {"name": "count", "question": "?", "timings": timings}]
    report.write_text(
        json.dumps(
            {"settings": {"repeats": "3"}, "workloads": workloads, "sections": ["## Memory\n\ntext"], "skipped": ["a system: why"]}
        )
    )
    million = tmp_path / "million.json"
    bars = [{"name": "count", "measured": 0.123, "bound": 0.4, "unit": "s", "passed": True}]
    million.write_text(json.dumps({"sections": ["## A table of many files\n"], "bars": bars}))
    assert "| count | 0.12 s | 0.4 s |  |" in page(report, million) and "## A table of many files" in page(report, million)
    text = page(report)
    assert "| another | 100 ms | 5.0 |" in text and "## Memory" in text and "a system: why" in text and "count" not in text
