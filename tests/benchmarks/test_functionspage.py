"""The page of the costs of functions: later reports take the place of what an earlier one measured, and its reasons stay."""

import json
from pathlib import Path

from benchmarks.functionspage import page


def _report(path: Path, ratios: dict[str, float], sections: list[str]) -> Path:
    bars = [{"name": f"`{name}`", "measured": ratio, "bound": 5.0, "note": "1 s, base f(x)"} for name, ratio in ratios.items()]
    content = {"settings": {"repeats": "2"}, "workloads": [{"rows": 1_000_000}], "bars": bars, "sections": sections}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_what_was_measured_anew_counts(tmp_path: Path) -> None:
    lines = ["## Calls", "| `c(x)` | no cipher | `md5(x)` | 1.25 | 6.0 |", "| `c(x)` | no cipher | `md5(x)` | 1.50 | 7.0 |"]
    ratios = {"slow(x)": 9.0, "slow(x) of 1,000 values": 4.0, "changed(x)": 6.0, "near(x)": 4.8, "cheap(x)": 1.0}
    first = _report(tmp_path / "first.json", ratios, lines)
    later = _report(tmp_path / "later.json", {"changed(x)": 2.0}, [])
    text = page([first, later], "## Why\n\nReasons.\n")
    assert "1 of the 4 calls" in text
    assert "| `slow(x)` | `f(x)` | 9.0 | 4.0 |" in text
    assert "`near(x)` (4.8)" in text
    assert "after functions of their kind had changed: `changed(x)`." in text
    assert "| `c(x)` | no cipher | 1.25 | 1.50 |" in text
    assert "`cheap(x)`" not in text
    assert text.endswith("## Why\n\nReasons.\n")
