"""``tablestore serve``: the catalog service of a warehouse, which speaks Paimon's REST protocol."""

import logging
import re
import sys
from ipaddress import ip_address
from typing import Annotated

import typer

import tablestore as ts
from tablestore.cli.command import CommandRun, command
from tablestore.clock import SystemClock
from tablestore.ids import SystemIds
from tablestore.lazy import missing_package

app = typer.Typer()

DEFAULT_PORT = 8181


@command(
    app,
    "serve",
    "tablestore serve --warehouse /data/warehouse",
    "tablestore serve --warehouse /data/warehouse --port 0 --json",
    "tablestore serve --warehouse s3://bucket/warehouse --name lake --port 9000",
)
def serve(
    session: CommandRun,
    host: Annotated[str, typer.Option("--host", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 picks a free one.")] = DEFAULT_PORT,
    name: Annotated[
        str | None, typer.Option("--name", help="What clients call the warehouse. Default: the last part of its address.")
    ] = None,
    threads: Annotated[int, typer.Option("--threads", min=1, max=512, help="Requests that are worked on at a time.")] = 16,
    grace: Annotated[
        float, typer.Option("--grace", min=0, metavar="SECONDS", help="How long running requests may take when the service ends.")
    ] = 60.0,
) -> None:
    """Serve the catalog of a warehouse over Paimon's REST protocol, until Ctrl-C or SIGTERM.

    Clients read and write the files themselves, and commit through the service: pypaimon and Spark with metastore = rest, uri = the
    address that is printed, and warehouse = the name.
    """
    try:
        from tablestore.server.application import Application  # Starlette and uvicorn are an extra
        from tablestore.server.protocol.restservice import RestService
        from tablestore.server.serving import Listening, Serving
    except ImportError as error:
        raise missing_package("the service needs the packages starlette and uvicorn", "'tablestore[server]'", error) from error

    _check_loopback(host)
    catalog = session.catalog()
    served_name = _checked_name(name or _default_name(catalog.location))
    session.says_itself = True
    _log_to_stderr()
    service = RestService(catalog=catalog, name=served_name, clock=SystemClock(), ids=SystemIds())
    application = Application(service=service, threads=threads)

    def begun(address: str) -> None:
        if session.out.as_json:
            session.out.line({"address": address, "warehouse": served_name, "location": catalog.location})
        else:
            session.out.say(f"Serving {catalog.location} as {served_name} at {address}")
        session.out.flush()

    listening = Listening(host=host, port=port, grace_s=grace)
    Serving(app=application.app(), liveness=application.liveness, listening=listening, begun=begun).run()


def _check_loopback(host: str) -> None:
    """Refuses addresses that other machines reach: whoever reaches the service may do anything."""
    try:
        is_loopback = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise ts.InvalidInputError(
            f"--host {host:.100}: expected an address of this machine alone, such as 127.0.0.1, ::1 or localhost: whoever reaches "
            "the service may do anything in the warehouse",
            kind="address",
        )


def _default_name(location: str) -> str:
    """The last part of an address, as far as a name may hold it."""
    last = location.rstrip("/").rpartition("/")[2]
    return re.sub(r"[^\w.-]+", "-", last, flags=re.ASCII).strip("-.") or "warehouse"


def _checked_name(name: str) -> str:
    if not re.fullmatch(r"\w[\w.-]{0,127}", name, re.ASCII):
        raise ts.InvalidInputError(
            f"expected a name of 1 to 128 letters, digits, '_', '-' or '.', found {name!r:.140}", kind="invalid-name"
        )
    return name


def _log_to_stderr() -> None:
    logger = logging.getLogger("tablestore")
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)
