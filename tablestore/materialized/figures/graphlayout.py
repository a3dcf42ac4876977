"""Lays out a graph that has no circle in columns, from what is read to what is made of it. Pure.

orders ──┐                    a node stands right of all that it is made from;
         ├── totals ── top    in its column near the middle of what it is made from
prices ──┘
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_SWEEPS = 4


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a node: its column and its row, both from 0."""

    column: int
    row: int


def lay_out(nodes: Sequence[str], edges: Iterable[tuple[str, str]]) -> Mapping[str, Place]:
    """The place of each node; an edge is from a source to what is made of it. Edges that close a circle are left out."""
    sources: dict[str, list[str]] = {node: [] for node in nodes}
    readers: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in dict.fromkeys(edges):
        if source in sources and target in sources and source != target:
            sources[target].append(source)
            readers[source].append(target)
    columns = _columns(nodes, sources)
    rows: list[list[str]] = [[] for _ in range(max(columns.values(), default=-1) + 1)]
    for node in nodes:
        rows[columns[node]].append(node)
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        for column in rows if forward else reversed(rows):
            places = {node: row for line in rows for row, node in enumerate(line)}
            near = sources if forward else readers
            column.sort(key=lambda node: (_middle([places[other] for other in near[node]], places[node]), places[node]))
    return {node: Place(number, row) for number, column in enumerate(rows) for row, node in enumerate(column)}


def _columns(nodes: Sequence[str], sources: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The longest way from a node without sources; of a circle the nodes stay where they were reached first."""
    columns = dict.fromkeys(nodes, 0)
    # A way without a circle has at most as many steps as there are nodes.
    for _ in range(len(nodes)):
        moved = False
        for node in nodes:
            column = max((columns[source] + 1 for source in sources[node]), default=0)
            if column != columns[node] and column < len(nodes):
                columns[node], moved = column, True
        if not moved:
            break
    used = {column: place for place, column in enumerate(sorted(set(columns.values())))}
    return {node: used[column] for node, column in columns.items()}


def _middle(rows: Sequence[int], default: int) -> float:
    return sum(rows) / len(rows) if rows else float(default)
