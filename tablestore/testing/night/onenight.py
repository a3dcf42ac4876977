"""Runs the scenarios of a night, each for its share of the time, and keeps what was counted and found."""

import gc
import logging
import os
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from tablestore.clock import Clock
from tablestore.testing.night.counts import Finding, NightCounts, Tally
from tablestore.testing.night.life import LifeFailed
from tablestore.testing.night.lifeplan import LifePlan
from tablestore.testing.night.scenarios import Scenario, tally_of
from tablestore.testing.night.shrinking import shrunk, write_seed_test, write_test

SAVE_EVERY_S = 60
MOST_FINDINGS = 50
Show = Callable[[NightCounts], None]


class Night:
    """One night. ``findings``: the folder for tests of what was found."""

    def __init__(self, counts: NightCounts, *, clock: Clock, scenarios: Mapping[str, Scenario], findings: Path) -> None:
        self.counts, self._clock, self._scenarios, self._findings = counts, clock, scenarios, findings
        counts.scenarios.update({name: Tally() for name in scenarios})

    def run(self, *, seconds: float, save: Path | None, show: Show) -> None:
        """Go on for so long, or until Ctrl-C; ``save`` is written now and then, and at the end."""
        began, saved = self._clock.steady_s(), 0.0
        # What the engine reports of injected faults would fill the screen.
        logging.getLogger("tablestore").setLevel(logging.CRITICAL)
        try:
            while (passed := self._clock.steady_s() - began) < seconds and len(self.counts.findings) < MOST_FINDINGS:
                name = min(self._scenarios, key=lambda one: self.counts.scenarios[one].seconds / self._scenarios[one].share)
                self._one(name)
                self.counts.seconds = self._clock.steady_s() - began
                show(self.counts)
                if save is not None and passed - saved > SAVE_EVERY_S:
                    self.counts.save(save)
                    saved = passed
            self.counts.finished = True
        except KeyboardInterrupt:
            pass
        finally:
            self.counts.seconds = self._clock.steady_s() - began
            if save is not None:
                self.counts.save(save)
            show(self.counts)

    def _one(self, name: str) -> None:
        """One life of a scenario."""
        tally, scenario = self.counts.scenarios[name], self._scenarios[name]
        seed = self.counts.seed * 10_000_000 + tally.lives
        begun, processor = self._clock.steady_s(), processor_s()
        try:
            lived = scenario.live(seed)
        except KeyboardInterrupt:
            raise
        except LifeFailed as failure:
            lived = tally_of(failure.report)
            self._found(name, seed, failure, replace(failure.report.plan, strikes=failure.report.struck))
        except BaseException as error:
            lived = Tally(lives=1)
            self._found(name, seed, error, None)
        lived.seconds, lived.cpu_seconds = self._clock.steady_s() - begun, processor_s() - processor
        tally.add(lived)
        if tally.lives % 50 == 0:
            gc.collect()

    def _found(self, name: str, seed: int, error: BaseException, plan: LifePlan | None) -> None:
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, LifeFailed):
            text = f"{type(error.error).__name__}: {error.error}"
        known = {finding.error.split("\n")[0][:60] for finding in self.counts.findings}
        if plan is not None and self._scenarios[name].plan is not None:
            # Of what was seen already the drawn life is enough.
            small = plan if text[:60] in known else shrunk(plan, text)
            path = write_test(self._findings, small, text)
        else:
            path = write_seed_test(self._findings, name, seed, text)
        trace = path.with_suffix(".txt")
        trace.write_text("".join(traceback.format_exception(error)))
        self.counts.findings.append(Finding(scenario=name, seed=seed, error=text[:2000], test=str(path)))


def processor_s() -> float:
    """Seconds of the processor, of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
