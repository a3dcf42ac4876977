"""What does each function of Spark's cost on the engine DuckDB, next to what DuckDB has built in of the same kind?

Over 10 M rows of all different values, in a table in DuckDB's memory, each call in one query; the calls of a kind take turns with
its base. What is computed by an Arrow function is measured over 1,000 different values too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import duckdb
from tablestore_duckdb import open_engine

import tablestore as ts
from benchmarks.functioncalls import COLUMNS, KINDS, SKETCHED_ROWS, SKETCHES, STATES, Kind, called_functions
from benchmarks.measure import Case, Sample, WrongRows, stopwatch
from benchmarks.report import Bar, Result
from benchmarks.setting import Setting
from tablestore.sql.duckdb.functions.arrowfunction import ARROW_PREFIX
from tablestore.sql.duckdb.functions.functiontable import RULES

BOUND = 5.0
ROWS = 10_000_000
FEW_VALUES = 1_000
_LEAST_ROWS = 200
_ARROW_FUNCTIONS = f"SELECT count(*) FROM duckdb_functions() WHERE function_name ILIKE '{ARROW_PREFIX}%'"
INPUT, SKETCHES_TABLE = "input", "sketches"
"""The tables that the calls read."""


def run(setting: Setting, only: str | None = None) -> None:
    """The question, kind by kind. ``only``: a part of a kind's or a function's name, to ask of those alone."""
    ratios: dict[str, tuple[float, str]] = {}
    without_builtin: list[str] = []
    for kind in KINDS:
        some = chosen(kind, only)
        if not some.calls:
            continue
        for values in (None, FEW_VALUES):
            result = _measured(setting, some, values)
            if result is not None:
                setting.add(result)
                if not kind.has_builtin:
                    without_builtin += _lines(result, kind)
                    continue
                for name, timing in result.timings.items():
                    ratio = result.cpu_ratio(name, result.base)
                    if name != result.base and ratio is not None:
                        shown = f"{name}{'' if values is None else f' of {FEW_VALUES:,} values'}"
                        ratios[shown] = (ratio, f"{timing.median:.2f} s, base {result.base}")
    for name, (ratio, note) in sorted(ratios.items(), key=lambda one: -one[1][0]):
        setting.add_bar(Bar(name=f"`{name}`", measured=ratio, bound=BOUND, note=note))

    if without_builtin:
        setting.report.sections += ["## Calls that DuckDB has no built-in of", "", *_HEADS, *without_builtin, ""]


_HEADS = ("| call | why | floor | µs a row | x the floor |", "|---|---|---|---:|---:|")


def _lines(result: Result, kind: Kind) -> Iterator[str]:
    for name, timing in result.timings.items():
        if name != result.base:
            ratio = result.cpu_ratio(name, result.base)
            shown = "" if ratio is None else f"{ratio:.1f}"
            yield f"| `{name}` | {kind.why_no_builtin} | `{result.base}` | {timing.cpu_median / result.rows * 1e6:.2f} | {shown} |"


def chosen(kind: Kind, only: str | None) -> Kind:
    """A kind with those of its calls that are asked for."""
    if only is None or only in kind.name:
        return kind
    return replace(kind, calls=tuple(call for call in kind.calls if any(only in name for name in called_functions(call, RULES))))


def _measured(setting: Setting, kind: Kind, values: int | None) -> Result | None:
    """The times of a kind. ``values``: how many different ones there are (None: all), which counts for Arrow functions alone."""
    rows = setting.scaled(ROWS)
    calls = kind.calls if values is None else tuple(call for call in kind.calls if _calls_arrow(setting, kind, call))
    if not calls:
        return None
    with opened(setting, kind, rows, values) as (connection, env):
        table = SKETCHES_TABLE if kind.is_of_sketches else INPUT
        setting.say(f"{kind.name}{'' if values is None else f', {values:,} different values'}: {len(calls)} calls")
        base = Case(kind.base, lambda: _built_in(connection, query_of(kind, kind.base, table, is_base=True)))
        cases = [Case(call, lambda call=call: _called(env, query_of(kind, call, table))) for call in calls]
        timings = setting.take_turns([base, *cases])
    slowest_first = sorted(timings.values(), key=lambda timing: -timing.median)
    return Result(
        name=f"functions: {kind.name}{'' if values is None else f', {values:,} different values'}",
        question="What does a function of Spark's cost next to what DuckDB has built in?",
        rows=rows // SKETCHED_ROWS if kind.is_of_sketches else rows,
        base=kind.base,
        timings={kind.base: timings[kind.base]} | {timing.name: timing for timing in slowest_first if timing.name != kind.base},
    )


def query_of(kind: Kind, call: str, table: str, *, is_base: bool = False) -> str:
    """The query that a call is measured in."""
    query = kind.base_query or kind.query if is_base else kind.query
    return query.replace("{}", call).replace("{input}", table)


@contextmanager
def opened(
    setting: Setting, kind: Kind, rows: int, values: int | None
) -> "Iterator[tuple[duckdb.DuckDBPyConnection, ts.TableEnvironment]]":
    """A database with the rows of a kind, and an environment over it."""
    with setting.workspace("functions") as space, duckdb.connect() as connection:
        connection.execute("SET timezone = 'UTC'")
        with ts.TableEnvironment.create(warehouse=str(space / "warehouse"), engine=open_engine(connection)) as env:
            fill(connection, env, kind, rows=rows, values=values or rows)
            yield connection, env


def fill(connection: duckdb.DuckDBPyConnection, env: ts.TableEnvironment, kind: Kind, *, rows: int, values: int) -> None:
    """Makes the table that the calls of a kind read, with so many different values. One row of a hundred is NULL in each column."""
    columns = ", ".join(_column(name) for name in (*kind.columns, *(() if "g" in kind.columns else ("g",))))
    numbers = f"SELECT i, i % {values} AS k FROM range({rows}) AS numbers (i)"
    connection.execute(f"CREATE TABLE {INPUT} AS SELECT i, {columns} FROM ({numbers})")
    if kind.is_of_sketches:
        sketches = ", ".join(f"{call} AS {name}" for name, call in SKETCHES.items())
        made = env.execute_sql(
            f"SELECT min(i) AS i, min(i) DIV 200 AS small, {sketches} FROM {INPUT} GROUP BY i DIV {SKETCHED_ROWS}"
        ).to_arrow()
        connection.register("made", made)
        states = ", ".join(f"{call} AS {name}" for name, call in STATES.items())
        grouped = f"SELECT min(i) AS i, {states} FROM {INPUT} GROUP BY i // {SKETCHED_ROWS}"
        connection.execute(f"CREATE TABLE {SKETCHES_TABLE} AS SELECT * FROM made JOIN ({grouped}) USING (i)")
        connection.unregister("made")


def _column(name: str) -> str:
    expression = COLUMNS[name]
    return (
        f"CASE WHEN i % 100 <> 51 THEN {expression} END AS {name}"
        if name not in ("g", "small", "rows")
        else f"{expression} AS {name}"
    )


def _calls_arrow(setting: Setting, kind: Kind, call: str) -> bool:
    """True if a call makes DuckDB call an Arrow function: over a small table, one is registered for it."""
    table = SKETCHES_TABLE if kind.is_of_sketches else INPUT
    with opened(setting, kind, _LEAST_ROWS, None) as (connection, env):
        before = connection.execute(_ARROW_FUNCTIONS).fetchall()
        env.execute_sql(query_of(kind, call, table)).to_arrow()
        return before != connection.execute(_ARROW_FUNCTIONS).fetchall()


def _built_in(connection: duckdb.DuckDBPyConnection, query: str) -> Sample:
    return _checked(query, *stopwatch(lambda: len(connection.execute(query).fetchall())))


def _called(env: ts.TableEnvironment, query: str) -> Sample:
    result = env.execute_sql(query)
    return _checked(query, *stopwatch(lambda: result.to_arrow().num_rows))


def _checked(query: str, sample: Sample, rows: int) -> Sample:
    if rows != 1:
        raise WrongRows(f"{query}: expected 1 row, found {rows}")
    return sample
