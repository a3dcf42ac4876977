"""Finds the engine that runs the queries, which an installed package offers under the entry point group
``tablestore.query_engines``.

An entry point gives ``open_engine(session)``: the engine over a session or connection that the user handed in, or over one of its
own (None). ``spark`` and ``duckdb`` come with tablestore, their packages as extras.
"""

from importlib.metadata import entry_points
from typing import Any

from tablestore.environment.engine import QueryEngine
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.names import did_you_mean

GROUP = "tablestore.query_engines"
# Engines that were tried, and why they are none of ours.
_REFUSED = {
    "sail": "Sail gives other values than Spark without an error (sums and products that overflow among them), and a query there "
    "cannot always be cancelled; use engine='duckdb', which needs no Java either, or engine='spark'",
}


def open_engine(name: str, session: Any = None) -> QueryEngine:
    """The engine of a name. Raises InvalidInputError for a name that nobody offers, UnsupportedError for a missing package."""
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points and name in _REFUSED:
        raise UnsupportedError(f"no query engine {name!r}: {_REFUSED[name]}", kind="engine")
    if name not in points:
        offered = ", ".join(sorted(points)) or "none; install tablestore again, so that its entry points are known"
        raise InvalidInputError(
            f"no query engine {name!r:.80}{did_you_mean(name, points)} (installed: {offered})", kind="unknown-engine"
        )
    try:
        open_it = points[name].load()
    except ImportError as error:
        raise UnsupportedError(
            f"the query engine {name} does not load ({error}); pip install 'managed-tablestore[{name}]'", kind="no-engine"
        ) from error
    engine: QueryEngine = open_it(session)
    return engine


def no_engine(what: str) -> UnsupportedError:
    """The error of a statement that an environment without an engine cannot run."""
    return UnsupportedError(
        f"{what} needs a query engine, and this environment has none: "
        "TableEnvironment.create(…, engine=\"duckdb\") needs pip install 'managed-tablestore[duckdb]', "
        "TableEnvironment.create(…, spark=session) needs pip install 'managed-tablestore[spark]'",
        kind="no-engine",
    )
