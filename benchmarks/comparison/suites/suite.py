"""Defines a suite."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.comparison.session import Session
from benchmarks.comparison.systems import Family


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """``axis``: what ``at`` of its measurements counts. ``metric`` is what is compared, in ``unit``; ``is_rate``: more is better.
    ``weight``: its share of a run's time, beside the other suites'."""

    name: str
    title: str
    question: str
    run: Callable[[Session], None]
    families: Sequence[Family] = ("python",)
    axis: str | None = None
    metric: str = "seconds"
    unit: str = "s"
    is_rate: bool = False
    weight: float = 1.0
