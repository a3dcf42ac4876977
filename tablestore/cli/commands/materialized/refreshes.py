"""``tablestore mt list|history|refresh|suspend|resume``: how fresh materialized tables are, and refreshing them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

import tablestore as ts
from tablestore.cli import wordcompletion
from tablestore.cli.command import FAILED, CommandRun, command, complete_table
from tablestore.cli.commands.sql import EngineOption, open_environment
from tablestore.cli.text.render import OutputColumn
from tablestore.cli.text.units import human_duration
from tablestore.sql.parse.statement import parse_path
from tablestore.types.typestring import quote_identifier

if TYPE_CHECKING:
    from tablestore.materialized.due import DueRefresh
    from tablestore.materialized.figures.freshnessfigures import FreshnessFigures, PastRefresh

app = typer.Typer()

Name = Annotated[str, typer.Argument(metavar="TABLE", help="database.table of the warehouse.", autocompletion=complete_table)]

_FIGURES = (
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
_REFRESHES = (
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
    session.out.listing("materialized_tables", _FIGURES, records, empty="No materialized tables.")


@command(app, "history", "tablestore mt history shop.totals")
def history(session: CommandRun, name: Name) -> None:
    """List the refreshes of a table whose snapshots are still there, newest first."""
    with ts.TableEnvironment.create(session.catalog()) as environment:
        past = environment.refresh_history(name)
    records = [_past_record(past_refresh, as_json=session.out.as_json) for past_refresh in past]
    session.out.listing("refreshes", _REFRESHES, records, empty=f"{name} was not refreshed yet.")


@command(
    app,
    "refresh",
    "tablestore mt refresh shop.totals",
    "tablestore mt refresh shop.totals --partition day=2026-03-01",
    "tablestore mt refresh shop.totals --with-upstream",
    "tablestore mt refresh --due",
)
def refresh(
    session: CommandRun,
    name: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="database.table of the warehouse.", autocompletion=complete_table)
    ] = None,
    partition: Annotated[
        list[str] | None, typer.Option("--partition", "-p", metavar="COLUMN=VALUE", help="Only this partition. May be repeated.")
    ] = None,
    due: Annotated[bool, typer.Option("--due", help="All tables whose refresh is due: for cron, Airflow and the like.")] = False,
    upstream: Annotated[
        bool,
        typer.Option("--with-upstream", help="First the materialized tables that it is made from, all from one set of snapshots."),
    ] = False,
    engine: EngineOption = None,
) -> None:
    """Refresh a table, or with --due all that are due now, sources before what is made from them.

    Several may do this at one time: each refresh happens once. With --due the exit code is 1 if one of them failed; the others
    are refreshed all the same. With --with-upstream what is made from one that failed is not refreshed.
    """
    if due == (name is not None):
        raise typer.BadParameter("name a table, or pass --due", param_hint="'TABLE'")
    if upstream and (due or partition):
        raise typer.BadParameter("takes a table, and all of it", param_hint="'--with-upstream'")
    session.says_itself = due or upstream
    if name is not None:
        session.table(name)
    with open_environment(session, engine) as environment:
        if name is None or upstream:
            due_refreshes = environment.refresh_due() if name is None else environment.refresh_chain(name)
            for due_refresh in due_refreshes:
                say_refresh(session, due_refresh)
            if not due_refreshes and not session.out.as_json:
                session.out.say("Nothing is due.")
            if any(due_refresh.error is not None for due_refresh in due_refreshes):
                raise typer.Exit(FAILED)
            return
        spec = f" PARTITION ({', '.join(map(_as_spec, partition))})" if partition else ""
        result = environment.execute_sql(f"ALTER MATERIALIZED TABLE {_quoted(name)} REFRESH{spec}")
        (report,) = result.to_arrow().to_pylist()
    counts = [
        f"{report[key]} rows {direction}" for key, direction in (("rows_in", "in"), ("rows_out", "out")) if report[key] is not None
    ]
    parts = [f"{report['mode']} refresh" if report["mode"] != "none" else "nothing to refresh", *counts, report["reason"]]
    session.out.done({"table": name, **report}, f"{name}: {'; '.join(part for part in parts if part)}.")


@command(app, "suspend", "tablestore mt suspend shop.totals")
def suspend(session: CommandRun, name: Name, engine: EngineOption = None) -> None:
    """Stop refreshing a table until it is resumed. Its rows stay."""
    with open_environment(session, engine) as environment:
        environment.execute_sql(f"ALTER MATERIALIZED TABLE {_quoted(name)} SUSPEND")
    session.out.done({"suspended": name}, f"{name} is not refreshed until it is resumed.")


@command(app, "resume", "tablestore mt resume shop.totals")
def resume(session: CommandRun, name: Name, engine: EngineOption = None) -> None:
    """Refresh a suspended table again: whoever runs mt serve or mt refresh --due does so from now on."""
    with open_environment(session, engine) as environment:
        environment.execute_sql(f"ALTER MATERIALIZED TABLE {_quoted(name)} RESUME")
    session.out.done({"resumed": name}, f"{name} is refreshed again.")


def say_refresh(session: CommandRun, due_refresh: "DueRefresh") -> None:
    """One line about a refresh that was due: what it did, or why it failed."""
    if session.out.as_json:
        session.out.line(due_record(due_refresh))
    elif due_refresh.error is not None:
        session.out.note(f"{due_refresh.table}: {due_refresh.error}")
    else:
        session.out.say(f"{due_refresh.table}: {due_refresh.report}.")
    session.out.flush()


def due_record(due_refresh: "DueRefresh") -> dict[str, Any]:
    """A refresh that was due, as JSON shows it."""
    report = due_refresh.report
    return {
        "table": str(due_refresh.table),
        "mode": report.mode if report else None,
        "reason": report.reason if report else None,
        "rows_in": report.rows_in if report else None,
        "rows_out": report.rows_out if report else None,
        "snapshot_id": report.snapshot_id if report else None,
        "error": str(due_refresh.error) if due_refresh.error is not None else None,
    }


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


def _quoted(name: str) -> str:
    return ".".join(map(quote_identifier, parse_path(name).parts))


def _as_spec(pair: str) -> str:
    column, separator, value = pair.partition("=")
    if not separator:
        raise typer.BadParameter(f"expected COLUMN=VALUE, found {pair!r:.80}", param_hint="'--partition'")
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"{quote_identifier(column)} = '{escaped}'"
