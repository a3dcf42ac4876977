"""Views a query: the form, and what came of it: rows as a table or a chart, a plan as a picture, or an error."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from math import isfinite

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from tablestore.errors import TablestoreError, UnsupportedError
from tablestore.server.page.chartdrawing import ChartPoint
from tablestore.server.page.pagecontext import PageContext
from tablestore.server.page.plandrawing import PlanStep, plan_steps
from tablestore.server.page.queryrunner import QueryRunner, unshown
from tablestore.server.page.tableview import RowsPart, rows_part
from tablestore.table.inspect.cells import cell_texts, is_number_column

SHOWN_ROWS = 200
MOST_BARS = 40
MOST_NAMES = 500
MOST_TABLES = 50
"""Tables whose columns are completed."""
FORMATS = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
}
_SHOWS = ("table", "chart", "plan")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryView:
    """The page of a query. ``rows`` is None before one was run; ``row_count``: of the whole result. ``names``: for completion."""

    text: str
    database: str
    databases: tuple[str, ...]
    show: str
    names: tuple[str, ...]
    limits: str
    error: str | None = None
    rows: RowsPart | None = None
    row_count: int = 0
    points: tuple[ChartPoint, ...] | None = None
    x: str = ""
    y: str = ""
    x_names: tuple[str, ...] = ()
    y_names: tuple[str, ...] = ()
    steps: tuple[PlanStep, ...] = ()
    plan: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """A result as a file."""

    content_type: str
    file_name: str
    body: bytes


def view_query(context: PageContext) -> QueryView:
    """The page of a query; the query of the request has ``sql``, ``database``, ``show`` and, of a chart, ``x`` and ``y``. Raises
    UnsupportedError of kind ``no-query`` where the caller may run none."""
    runner = _runner(context)
    text, show = context.query.get("sql", "").strip(), context.choice("show", _SHOWS)
    databases = context.databases()
    database = context.query.get("database", "")
    view = QueryView(
        text=text,
        database=database if database in databases else "",
        databases=databases,
        show=show,
        names=tuple(islice(_names(context), MOST_NAMES)),
        limits=runner.limits_text,
    )
    if not text:
        return view
    try:
        if show == "plan":
            plan = runner.explain(context.principal, text, view.database)
            return replace(view, plan=plan, steps=plan_steps(plan))
        rows = runner.run(context.principal, text, view.database)
    except TablestoreError as error:
        return replace(view, error=error.message)
    view = replace(view, rows=rows_part(rows.slice(0, SHOWN_ROWS)), row_count=rows.num_rows)
    return _with_chart(context, view, rows) if show == "chart" else view


def download_query(context: PageContext) -> Download:
    """The result of a query as a file of the format ``format``. Raises what running it raises."""
    runner = _runner(context)
    name = context.choice("format", tuple(FORMATS))
    database = context.query.get("database", "")
    rows = runner.run(context.principal, context.query.get("sql", ""), database if database in context.databases() else "")
    sink = io.BytesIO()
    match name:
        case "csv":
            _write_csv(rows, sink)
        case "parquet":
            try:
                pa.parquet.write_table(rows, sink)
            except pa.ArrowException as error:
                raise unshown(error) from error
        case _:
            with pa.ipc.new_stream(sink, rows.schema) as writer:
                writer.write_table(rows)
    return Download(content_type=FORMATS[name], file_name=f"result.{name}", body=sink.getvalue())


def _write_csv(rows: pa.Table, sink: io.BytesIO) -> None:
    try:
        pyarrow.csv.write_csv(rows, sink)
    except pa.ArrowException:
        # Lists, maps and rows: their values as texts.
        sink.seek(0)
        sink.truncate()
        columns = [cell_texts(column) for column in rows.columns]
        text = io.TextIOWrapper(sink, encoding="utf-8", newline="")
        writer = csv.writer(text)
        writer.writerow(rows.column_names)
        writer.writerows(zip(*columns, strict=True))
        text.flush()
        text.detach()


def _runner(context: PageContext) -> QueryRunner:
    if context.runner is None or not context.may_query():
        raise UnsupportedError(
            f"queries are not run here for {context.principal.name:.80}: the service allows them to a role, or to nobody",
            kind="no-query",
        )
    return context.runner


def _names(context: PageContext) -> Iterator[str]:
    """The names for completion: tables and views, then their columns."""
    tables = [(database, name) for database in context.databases() for name in context.tables(database)]
    yield from (f"{database}.{name}" for database, name in tables)
    for database in context.databases():
        yield from (f"{database}.{name}" for name in context.kept(database))
    columns: dict[str, None] = {}
    for database, name in tables[:MOST_TABLES]:
        try:
            columns |= dict.fromkeys(context.catalog.table(f"{database}.{name}").schema.names)
        except TablestoreError:
            # Another page says what is wrong with it.
            continue
    yield from columns


def _with_chart(context: PageContext, view: QueryView, rows: pa.Table) -> QueryView:
    numbers = tuple(field.name for field in rows.schema if is_number_column(field.type))
    if not numbers:
        return replace(view, error="a chart needs a column of numbers: the result has none, so its rows are shown", show="table")
    names = tuple(rows.column_names)
    labels = [name for name in names if name not in numbers] or [names[0]]
    x = context.query.get("x", "") if context.query.get("x", "") in names else labels[0]
    others = [name for name in numbers if name != x] or list(numbers)
    y = context.query.get("y", "") if context.query.get("y", "") in numbers else others[0]
    shown = rows.slice(0, MOST_BARS)
    column = shown.column(names.index(y))
    values = column.cast(pa.float64(), safe=False).to_pylist()
    texts, label_texts = cell_texts(column), cell_texts(shown.column(names.index(x)))
    points = tuple(
        ChartPoint(label or "null", value if value is not None and isfinite(value) else None, text or "null")
        for label, value, text in zip(label_texts, values, texts, strict=True)
    )
    return replace(view, points=points, x=x, y=y, x_names=names, y_names=numbers)
