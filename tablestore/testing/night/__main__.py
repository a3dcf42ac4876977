"""``python -m tablestore.testing.night --hours 8``: try to break the store for so long, and say what was tried.

It ends with 1 if something was found. Ctrl-C ends it early; what was counted is kept.
"""

import json as jsonlib
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from tablestore.clock import SystemClock
from tablestore.io.opening import open_store
from tablestore.testing.night.counts import NightCounts
from tablestore.testing.night.onenight import Night, processor_s
from tablestore.testing.night.planted.hunting import bugs, hunt
from tablestore.testing.night.scenarios import SCENARIOS, own_scenario
from tablestore.testing.night.showing import progress_to

app = typer.Typer(add_completion=False)


@app.command()
def night(
    hours: Annotated[float, typer.Option(help="how long; 0.01 for a first look")] = 8.0,
    seed: Annotated[int, typer.Option(help="another night; the same seed tries the same")] = 1,
    json: Annotated[Path | None, typer.Option(help="file for the counts, written every minute")] = None,
    scenario: Annotated[list[str] | None, typer.Option(help=f"only these: {', '.join(SCENARIOS)}")] = None,
    planted: Annotated[bool, typer.Option("--planted", help="plant bugs in the engine, and say when each was found")] = False,
    bug: Annotated[list[str] | None, typer.Option(help="only this planted bug")] = None,
    store: Annotated[str, typer.Option(help="URI of a store of your own, an empty place there: only lives on it")] = "",
    option: Annotated[list[str] | None, typer.Option(help="KEY=VALUE of that store, catalog.lock.* too")] = None,
    findings: Annotated[Path, typer.Option(help="folder for a test of each finding")] = Path("night-findings"),
) -> None:
    """Try to break the store for hours, with counts."""
    unknown = [name for name in scenario or () if name not in SCENARIOS]
    if unknown:
        raise typer.BadParameter(f"there is no scenario {unknown[0]!r}; there are {', '.join(SCENARIOS)}")
    import tablestore

    clock = SystemClock()
    if planted or bug:
        raise typer.Exit(_hunt(bug, seed=seed, most_s=hours * 3600, json=json))
    began = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).isoformat(timespec="seconds")
    counts = NightCounts(version=tablestore.__version__, seed=seed, began=began, store=store or "built in")
    chosen = {name: SCENARIOS[name] for name in scenario or SCENARIOS}
    if store:
        chosen = {"own": own_scenario(open_store(store, dict(text.split("=", 1) for text in option or ())))}
    with progress_to(sys.stderr, hours=hours) as show:
        tonight = Night(counts, clock=clock, scenarios=chosen, findings=findings)
        tonight.run(seconds=hours * 3600, save=json, show=show)
    raise typer.Exit(1 if counts.findings else 0)


def _hunt(names: list[str] | None, *, seed: int, most_s: float, json: Path | None) -> int:
    """Look for planted bugs; the number of those that were not found, at most 1."""
    hunts = []
    logging.getLogger("tablestore").setLevel(logging.CRITICAL)
    for one in hunt(names or bugs(), SCENARIOS, processor_s=processor_s, first_seed=seed * 10_000_000, most_s=most_s):
        hunts.append(one)
        seen = f"found by {one.scenario} after" if one.scenario else "NOT FOUND in"
        typer.echo(f"{one.bug}: {seen} {one.seconds:.1f} s, {one.lives} lives  {one.error[:120]}")
        if json is not None:
            json.parent.mkdir(parents=True, exist_ok=True)
            json.write_text(jsonlib.dumps([other.content() for other in hunts], indent=1) + "\n")
    missed = [one.bug for one in hunts if one.scenario is None]
    typer.echo(f"{len(hunts) - len(missed)} of {len(hunts)} planted bugs found; missed: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


if __name__ == "__main__":
    app()
