"""``tablestore mt list|history``: lists how fresh materialized tables are, and their refreshes."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

import tablestore as ts
from tablestore.cli import wordcompletion
from tablestore.cli.command import CommandRun, command
from tablestore.cli.commands.materialized.refreshes import Name
from tablestore.cli.text.render import OutputColumn
from tablestore.units import human_duration

if TYPE_CHECKING:
    from tablestore.materialized.figures.freshnessfigures import FreshnessFigures, PastRefresh

app = typer.Typer()

_LIST_COLUMNS = (
    OutputColumn("table", "table"),
    OutputColumn("status", "status"),
    OutputColumn("mode", "mode"),
    OutputColumn("target", "target"),
    OutputColumn("lag", "lag"),
    OutputColumn("late", "late", "flag"),
    OutputColumn("last_refresh", "last refresh", "time"),
    OutputColumn("last_mode", "it was"),
    OutputColumn("reason", "because"),
    OutputColumn("error", "error"),
    OutputColumn("error_at", "failed", "time"),
)
_HISTORY_COLUMNS = (
    OutputColumn("snapshot_id", "snapshot", "count"),
    OutputColumn("at", "began", "time"),
    OutputColumn("took", "took"),
    OutputColumn("mode", "mode"),
    OutputColumn("rows_in", "rows in", "count"),
    OutputColumn("rows_out", "rows out", "count"),
    OutputColumn("rows_more", "more rows", "count"),
    OutputColumn("reason", "because"),
)


@command(app, "list", "tablestore mt list", "tablestore mt list shop --json")
def list_tables(
    session: CommandRun,
    database: Annotated[
        str | None,
        typer.Argument(metavar="[DATABASE]", help="Only the tables of this database.", autocompletion=wordcompletion.databases),
    ] = None,
) -> None:
    """List materialized tables: how fresh each is to be, how far it is behind, its last refresh, and what failed."""
    with ts.TableEnvironment.create(session.catalog()) as environment:
        figures = environment.freshness(database)
    records = [figures_record(table_figures, as_json=session.out.as_json) for table_figures in figures]
    session.out.listing("materialized_tables", _LIST_COLUMNS, records, empty="No materialized tables.")


@command(app, "history", "tablestore mt history shop.totals")
def history(session: CommandRun, name: Name) -> None:
    """List the refreshes of a table whose snapshots are still there, newest first."""
    with ts.TableEnvironment.create(session.catalog()) as environment:
        past = environment.refresh_history(name)
    records = [_past_record(past_refresh, as_json=session.out.as_json) for past_refresh in past]
    session.out.listing("refreshes", _HISTORY_COLUMNS, records, empty=f"{name} was not refreshed yet.")


def figures_record(figures: "FreshnessFigures", *, as_json: bool) -> dict[str, Any]:
    """The figures of a table as a listing shows them; durations in milliseconds for programs."""
    last = figures.last
    return {
        "table": f"{figures.table.database}.{figures.table.name}",
        "status": str(figures.status),
        "mode": str(figures.mode),
        "target": _duration(figures.target_ms, as_json=as_json),
        "lag": _duration(figures.lag_ms, as_json=as_json),
        "late": figures.is_late,
        "last_refresh": last.at_ms if last else None,
        "last_mode": last.mode if last else None,
        "reason": last.reason if last else None,
        "error": figures.error.message if figures.error else None,
        "error_at": figures.error.at_ms if figures.error else None,
    }


def _past_record(past_refresh: "PastRefresh", *, as_json: bool) -> dict[str, Any]:
    return {
        "snapshot_id": past_refresh.snapshot_id,
        "at": past_refresh.at_ms,
        "took": _duration(past_refresh.took_ms, as_json=as_json),
        "mode": past_refresh.mode,
        "rows_in": past_refresh.rows_in,
        "rows_out": past_refresh.rows_out,
        "rows_more": past_refresh.rows_more,
        "reason": past_refresh.reason,
    }


def _duration(millis: int | None, *, as_json: bool) -> int | str | None:
    return millis if as_json or millis is None else human_duration(millis)
