"""``tablestore mt stage|compare|promote|rollback|discard``: another version of a materialized table, built beside it."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tablestore.cli import wordcompletion
from tablestore.cli.command import CommandRun, FoundProblems, command
from tablestore.cli.commands.materialized.refreshes import Name
from tablestore.cli.commands.sql import EngineOption, open_environment

if TYPE_CHECKING:
    import pyarrow as pa

    from tablestore.materialized.evolution.comparing import CompareReport

app = typer.Typer()


@command(
    app,
    "stage",
    'tablestore mt stage shop.totals "SELECT item, sum(price) AS total FROM shop.orders GROUP BY item"',
    'tablestore mt stage shop.totals "SELECT day, item FROM shop.orders" --primary-key day --primary-key item --option bucket=4',
)
def stage(
    session: CommandRun,
    name: Name,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The query of the new version.")],
    primary_key: Annotated[
        list[str] | None, typer.Option("--primary-key", metavar="COLUMN", help="A column of its key. May be repeated.")
    ] = None,
    partition_by: Annotated[
        list[str] | None, typer.Option("--partition-by", metavar="COLUMN", help="A partition column. May be repeated.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", metavar="KEY=VALUE", help="An option of the table. May be repeated.", autocompletion=wordcompletion.option
        ),
    ] = None,
    comment: Annotated[str | None, typer.Option("--comment", metavar="TEXT", help="What the table is.")] = None,
    engine: EngineOption = None,
) -> None:
    """Build another version of a table beside it, to compare and promote. What is left out stays as it is.

    Readers of the table see nothing of it. It lies beside the table, with __staged behind its name.
    """
    with open_environment(session, engine) as environment:
        environment.evolution(name).stage(
            query,
            primary_key=primary_key,
            partitioned_by=partition_by,
            options=dict(map(_as_option, option or ())),
            comment=comment,
        )
    session.out.done({"staged": name}, f"{name} has a staged version: compare it, then promote or discard it.")


@command(app, "compare", "tablestore mt compare shop.totals", "tablestore mt compare shop.totals --json")
def compare(session: CommandRun, name: Name, engine: EngineOption = None) -> None:
    """Compare a table with its staged version, or else with the previous one.

    The exit code is 0 if they are equal, and 3 if not. Nothing is changed.
    """
    with open_environment(session, engine) as environment:
        report = environment.evolution(name).compare()
    if session.out.as_json:
        session.out.document(_record(report))
    else:
        session.out.say(str(report))
        for kind, rows in _examples(report).items():
            for row in rows:
                session.out.say(f"{kind}: {row}")
    if not report.is_equal:
        raise FoundProblems


@command(app, "promote", "tablestore mt promote shop.totals")
def promote(session: CommandRun, name: Name, engine: EngineOption = None) -> None:
    """Put the staged version in the place of a table, in one step. The one that was there is kept for rollback."""
    with open_environment(session, engine) as environment:
        environment.evolution(name).promote()
    session.out.done({"promoted": name}, f"{name} is what was staged; its previous version is kept: roll back, or discard it.")


@command(app, "rollback", "tablestore mt rollback shop.totals")
def rollback(session: CommandRun, name: Name, engine: EngineOption = None) -> None:
    """Put the version before the last promotion back in its place, in one step. The one that was there is staged."""
    with open_environment(session, engine) as environment:
        environment.evolution(name).rollback()
    session.out.done({"rolled_back": name}, f"{name} is what it was before; the version after it is staged: promote or discard it.")


@command(app, "discard", "tablestore mt discard shop.totals")
def discard(session: CommandRun, name: Name, engine: EngineOption = None) -> None:
    """Drop the staged version of a table, or else the previous one."""
    with open_environment(session, engine) as environment:
        environment.evolution(name).discard()
    session.out.done({"discarded": name}, f"{name} has one version less.")


def _record(report: "CompareReport") -> dict[str, Any]:
    return {
        "version": report.role.value,
        "equal": report.is_equal,
        "columns_added": report.columns_added,
        "columns_removed": report.columns_removed,
        "columns_retyped": report.columns_retyped,
        "only_current": report.only_current,
        "only_other": report.only_other,
        "changed": report.changed,
        "sources_apart": report.apart,
        "examples": _examples(report),
    }


def _examples(report: "CompareReport") -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, pa.Table | None] = {
        "only_current": report.examples_only_current,
        "only_other": report.examples_only_other,
        "changed": report.examples_changed,
    }
    return {kind: rows.to_pylist() for kind, rows in tables.items() if rows is not None}


def _as_option(pair: str) -> tuple[str, str]:
    key, separator, value = pair.partition("=")
    if not separator:
        raise typer.BadParameter(f"expected KEY=VALUE, found {pair!r:.80}", param_hint="'--option'")
    return key, value
