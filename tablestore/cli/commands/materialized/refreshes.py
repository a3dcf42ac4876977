"""``tablestore mt refresh|suspend|resume``: refreshing materialized tables."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tablestore.cli.command import FAILED, CommandRun, command, complete_table
from tablestore.cli.commands.sql import EngineOption, open_environment
from tablestore.sql.parse.statement import parse_path
from tablestore.types.typestring import quote_identifier

if TYPE_CHECKING:
    from tablestore.materialized.due import DueRefresh

app = typer.Typer()

Name = Annotated[str, typer.Argument(metavar="TABLE", help="database.table of the warehouse.", autocompletion=complete_table)]


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


def _quoted(name: str) -> str:
    return ".".join(map(quote_identifier, parse_path(name).parts))


def _as_spec(pair: str) -> str:
    column, separator, value = pair.partition("=")
    if not separator:
        raise typer.BadParameter(f"expected COLUMN=VALUE, found {pair!r:.80}", param_hint="'--partition'")
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"{quote_identifier(column)} = '{escaped}'"
