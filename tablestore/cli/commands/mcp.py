"""``tablestore mcp``: the tables of a warehouse as tools for agents, over the Model Context Protocol."""

from dataclasses import replace
from typing import Annotated

import typer

import tablestore as ts
from tablestore.cli.command import CommandRun, command
from tablestore.cli.commands.serve import log_to_stderr
from tablestore.cli.commands.sql import EngineOption, installed_engine
from tablestore.lazy import missing_package

app = typer.Typer()


@command(
    app,
    "mcp",
    "tablestore mcp /data/warehouse",
    "tablestore mcp --warehouse s3://bucket/warehouse --time-limit 60",
    "tablestore mcp /data/warehouse --allow-writes",
)
def mcp(
    session: CommandRun,
    place: Annotated[
        str | None, typer.Argument(metavar="[WAREHOUSE]", help="The warehouse, in place of --warehouse.", show_default=False)
    ] = None,
    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="Also offer tools that change rows and tables, and refresh materialized ones.")
    ] = False,
    time_limit: Annotated[
        float, typer.Option("--time-limit", min=0.1, max=3600, metavar="SECONDS", help="How long one query may take.")
    ] = 20.0,
    engine: EngineOption = None,
) -> None:
    """Offer a warehouse to an agent as tools of the Model Context Protocol, on standard input and output.

    The client of the protocol starts this command and ends it. The tools list and describe tables, return some of their rows, run
    queries read only and within limits, and tell of commits, changes and freshness. Without --allow-writes there is none that
    changes anything.
    """
    try:
        from tablestore.agents.mcpserver import build_server, serve  # the SDK is an extra
        from tablestore.agents.tools import QUERY_LIMITS, READING_TOOLS, AgentWarehouse
        from tablestore.agents.writingtools import WRITING_TOOLS
        from tablestore.cli.warehousecheck import check_is_warehouse  # the command's help needs no tables
    except ImportError as error:
        raise missing_package("tools for agents need the package mcp", "'managed-tablestore[mcp]'", error) from error

    if place is not None:
        session.warehouse = place
    catalog = session.catalog()
    check_is_warehouse(catalog, may_be_empty=allow_writes)
    session.says_itself = True
    log_to_stderr()
    warehouse = AgentWarehouse(
        catalog=catalog,
        engine=(engine or installed_engine()).value,
        query_limits=replace(QUERY_LIMITS, time_s=time_limit),
        clock=session.clock,
    )
    tools = (*READING_TOOLS, *WRITING_TOOLS) if allow_writes else READING_TOOLS
    serve(lambda: build_server(warehouse, tools, ts.__version__))
