"""``python -m tablestore.testing.night --hours 8``: try to break the store for so long, and say what was tried.

It ends with 1 if something was found. Ctrl-C ends it early; what was counted is kept.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from tablestore.clock import SystemClock
from tablestore.testing.night.counts import NightCounts
from tablestore.testing.night.running import Night
from tablestore.testing.night.scenarios import SCENARIOS
from tablestore.testing.night.showing import progress_to

app = typer.Typer(add_completion=False)


@app.command()
def night(
    hours: Annotated[float, typer.Option(help="how long; 0.01 for a first look")] = 8.0,
    seed: Annotated[int, typer.Option(help="another night; the same seed tries the same")] = 1,
    json: Annotated[Path | None, typer.Option(help="file for the counts, written every minute")] = None,
    scenario: Annotated[list[str] | None, typer.Option(help=f"only these: {', '.join(SCENARIOS)}")] = None,
    findings: Annotated[Path, typer.Option(help="folder for a test of each finding")] = Path("night-findings"),
) -> None:
    """Try to break the store for hours, with counts."""
    unknown = [name for name in scenario or () if name not in SCENARIOS]
    if unknown:
        raise typer.BadParameter(f"there is no scenario {unknown[0]!r}; there are {', '.join(SCENARIOS)}")
    import tablestore

    clock = SystemClock()
    began = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).isoformat(timespec="seconds")
    counts = NightCounts(version=tablestore.__version__, seed=seed, began=began, store="built in")
    with progress_to(sys.stderr, hours=hours) as show:
        tonight = Night(counts, clock=clock, scenarios={name: SCENARIOS[name] for name in scenario or SCENARIOS}, findings=findings)
        tonight.run(seconds=hours * 3600, save=json, show=show)
    raise typer.Exit(1 if counts.findings else 0)


if __name__ == "__main__":
    app()
