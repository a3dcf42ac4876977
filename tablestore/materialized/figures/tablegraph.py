"""Lays out the graph of tables, views over them, and materialized tables that are made from them, with how fresh these are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tablestore.environment.session.session import Session
from tablestore.errors import TablestoreError
from tablestore.materialized.expansion import sources_of
from tablestore.materialized.figures.freshnessfigures import FreshnessFigures, figures_of
from tablestore.materialized.figures.graphlayout import Place, lay_out
from tablestore.materialized.storing import open_materialized


class Freshness(StrEnum):
    """The freshness of a node against its target, which it is coloured by."""

    SOURCE = "source"
    GOOD = "good"
    NEAR = "near"
    LATE = "late"
    FAILED = "failed"
    SUSPENDED = "suspended"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """One table or view of the graph. ``figures``: those of a materialized table; ``name`` is empty where the caller sees none."""

    key: str
    database: str
    name: str
    kind: str
    freshness: Freshness
    place: Place
    figures: FreshnessFigures | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableGraph:
    """The graph. ``left_out``: nodes that are not shown, since there are too many."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[tuple[str, str], ...]
    left_out: int


def freshness_of(figures: FreshnessFigures) -> Freshness:
    """The freshness of a materialized table against its target."""
    if figures.error is not None or figures.lag_ms is None:
        return Freshness.FAILED
    if figures.status == "SUSPENDED":
        return Freshness.SUSPENDED
    if figures.is_late:
        return Freshness.LATE
    return Freshness.NEAR if figures.lag_ms * 2 > figures.target_ms else Freshness.GOOD


def lay_out_graph(
    kinds: Mapping[str, str],
    edges: Iterable[tuple[str, str]],
    figures: Mapping[str, FreshnessFigures],
    *,
    most: int,
    hidden: str | None = None,
) -> TableGraph:
    """The graph of nodes by their keys, ``database.name``. Pure.

    ``kinds`` are those of nodes that are more than tables, ``edges`` lead from a source to what is made of it, ``most`` nodes are
    shown, and ``hidden`` is the key of what has no name.
    """
    edges = tuple(edges)
    keys = list(dict.fromkeys([*(source for source, _ in edges), *kinds]))
    shown = set(keys[:most])
    drawn = [edge for edge in dict.fromkeys(edges) if shown.issuperset(edge)]
    nodes = []
    for key, place in lay_out([key for key in keys if key in shown], drawn).items():
        database, _, name = key.partition(".")
        own = figures.get(key)
        nodes.append(
            GraphNode(
                key=key,
                database="" if key == hidden else database,
                name="" if key == hidden else name,
                kind=kinds.get(key, "table"),
                freshness=freshness_of(own) if own else Freshness.SOURCE,
                place=place,
                figures=own,
            )
        )
    return TableGraph(nodes=tuple(nodes), edges=tuple(drawn), left_out=len(keys) - len(shown))


def graph_of_database(session: Session, database: str, *, most: int) -> TableGraph:
    """The materialized tables of one database of the current catalog, and what they are made from. Raises NotFoundError."""
    figures = {f"{one.table.database}.{one.table.name}": one for one in figures_of(session, database)}
    edges: list[tuple[str, str]] = []
    for key, one in figures.items():
        try:
            stored = open_materialized(session, one.table)
            edges += [(f"{path.database}.{path.name}", key) for path in sources_of(stored.definition.query)]
        except TablestoreError:
            # It stands alone; its refresh says what is wrong with it.
            continue
    return lay_out_graph(dict.fromkeys(figures, "materialized"), edges, figures, most=most)
