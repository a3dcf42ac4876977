"""``tablestore page``: writes the pages of a warehouse as files."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import tablestore as ts
from tablestore.cli.command import CommandRun, command

app = typer.Typer()


@command(app, "page", "tablestore page /data/warehouse -o site/", "tablestore page -o site/ --json | jq .pages")
def page(
    session: CommandRun,
    source: Annotated[
        str | None, typer.Argument(metavar="[WAREHOUSE]", help="The warehouse, in place of --warehouse.", show_default=False)
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="The folder that the pages are written to.")
    ] = Path("site"),
) -> None:
    """Write the pages of a warehouse as files: tables, history, storage, the graph of materialized tables; open index.html."""
    try:
        from tablestore.cli.warehousecheck import check_is_warehouse  # the command's help needs no tables
        from tablestore.server.page.siteexport import write_site
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "markupsafe"):
            raise
        raise ts.UnsupportedError("pages need Jinja: pip install 'managed-tablestore[server]'", kind="missing-library") from error
    session.warehouse = source or session.warehouse
    catalog = session.catalog()
    check_is_warehouse(catalog, may_be_empty=False)
    report = write_site(catalog, output)
    shown = f"{report.pages:,} pages are in {report.folder}: open {Path(report.folder) / 'index.html'}"
    session.out.done(asdict(report), shown)
    if report.left_out:
        session.out.note(f"{report.left_out:,} more tables and views were left out")
    for path in report.unreadable:
        session.out.note(f"{path} says why it shows nothing")
