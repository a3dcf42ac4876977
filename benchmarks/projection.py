"""Fits what an operation costs by a size, and projects it to sizes that nobody measured.

    cost(n) = fixed + each · n        by least squares of the relative error, neither below zero

A cost that does not grow has ``each`` of zero. A projection is as good as its line: the plot shows how far the points lie off.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

_PLOT_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Line:
    """A cost as a line over the size."""

    fixed: float
    each: float

    def at(self, size: float) -> float:
        return self.fixed + self.each * size


def fit(points: Mapping[int, float]) -> Line:
    """The line through measured costs by size; at least one."""
    sizes, costs = np.array(list(points), np.float64), np.array(list(points.values()), np.float64)
    weights = 1 / np.maximum(costs, 1e-12)
    if len(points) > 1:
        terms = np.stack([np.ones_like(sizes), sizes], axis=1) * weights[:, None]
        fixed, each = np.linalg.lstsq(terms, costs * weights, rcond=None)[0].tolist()
        if fixed >= 0 and each >= 0:
            return Line(fixed, each)
        if fixed < 0:
            # Through the origin.
            shares = costs / sizes
            return Line(0.0, float(np.sum(1 / shares) / np.sum(1 / shares**2)))
    return Line(float(np.sum(weights * costs * weights) / np.sum(weights**2)), 0.0)


def plot(points: Mapping[int, float], line: Line, *, unit: str) -> list[str]:
    """Lines of text: a bar of the logarithm of each cost, and beside it what the line says."""
    costs = {size: max(cost, 1e-9) for size, cost in points.items()}
    low, high = min(map(math.log10, costs.values())) - 0.3, max(map(math.log10, costs.values()))
    width = {size: round((math.log10(cost) - low) / max(high - low, 1e-9) * _PLOT_CHARACTERS) for size, cost in costs.items()}
    return [
        f"{size:>9,} {'█' * width[size]:<{_PLOT_CHARACTERS}} {cost:10.3g} {unit} (line {line.at(size):.3g})"
        for size, cost in costs.items()
    ]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table, its first column to the left."""
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows)]
