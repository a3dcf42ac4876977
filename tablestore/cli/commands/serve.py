"""``tablestore serve``: the catalog service of a warehouse, which speaks Paimon's REST protocol."""

import logging
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

import tablestore as ts
from tablestore.cli.command import CommandRun, command
from tablestore.cli.commands.sql import Engine, EngineOption, open_environment
from tablestore.cli.commands.token import TokensFile, token_store
from tablestore.clock import SystemClock
from tablestore.lazy import missing_package
from tablestore.server.access.roles import Role

if TYPE_CHECKING:
    from tablestore.server.access.accessstore import AccessStore

app = typer.Typer()

DEFAULT_PORT = 8181
# Between two looks at the materialized tables.
_LOOK_S = 5.0


@command(
    app,
    "serve",
    "tablestore serve /data/warehouse",
    "tablestore serve --warehouse /data/warehouse --port 0 --json",
    "tablestore serve s3://bucket/warehouse --host 0.0.0.0 --allowed-host lake.example --tls-certificate c.pem --tls-key k.pem",
)
def serve(
    session: CommandRun,
    place: Annotated[
        str | None, typer.Argument(metavar="[WAREHOUSE]", help="The warehouse, in place of --warehouse.", show_default=False)
    ] = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 picks a free one.")] = DEFAULT_PORT,
    name: Annotated[
        str | None, typer.Option("--name", help="What clients call the warehouse. Default: the last part of its address.")
    ] = None,
    tls_certificate: Annotated[
        str | None, typer.Option("--tls-certificate", metavar="FILE", help="The certificate of the service, in PEM.")
    ] = None,
    tls_key: Annotated[str | None, typer.Option("--tls-key", metavar="FILE", help="Its private key, in PEM.")] = None,
    behind_proxy: Annotated[
        list[str] | None,
        typer.Option("--behind-proxy", metavar="ADDRESS", help="A proxy with TLS that may say for whom it sends; repeatable."),
    ] = None,
    published_locally: Annotated[
        bool,
        typer.Option("--published-locally", help="In a container whose port is published at 127.0.0.1: tokens without TLS."),
    ] = False,
    allowed_host: Annotated[
        list[str] | None, typer.Option("--allowed-host", metavar="NAME", help="A name of the service; repeatable.")
    ] = None,
    allowed_origin: Annotated[
        list[str] | None,
        typer.Option("--allowed-origin", metavar="ORIGIN", help="A site whose pages may send requests; repeatable."),
    ] = None,
    tokens: TokensFile = None,
    require_tokens: Annotated[
        bool, typer.Option("--require-tokens", help="Refuse every request without a token, also while there is none.")
    ] = False,
    issuer: Annotated[
        str | None, typer.Option("--issuer", metavar="FILE", help="An OpenID Connect issuer whose tokens are taken (JSON).")
    ] = None,
    audit_log: Annotated[
        str | None, typer.Option("--audit-log", metavar="FILE", help="Where each decision is recorded, in JSON lines.")
    ] = None,
    rate: Annotated[
        float, typer.Option("--rate", min=1, metavar="REQUESTS", help="Requests a second of one token, or of one address.")
    ] = 2000.0,
    s3_role: Annotated[
        str | None,
        typer.Option("--s3-role", metavar="ARN", help="Hand out keys of this role, narrowed to one table, to clients of S3."),
    ] = None,
    query_role: Annotated[
        Role | None, typer.Option("--query-role", help="Who may run read-only queries on the page, and those above; else nobody.")
    ] = None,
    with_scheduler: Annotated[
        bool, typer.Option("--with-scheduler", help="Also keep the materialized tables fresh, as tablestore mt serve does.")
    ] = False,
    engine: EngineOption = None,
    threads: Annotated[int, typer.Option("--threads", min=1, max=512, help="Requests that are worked on at a time.")] = 16,
    grace: Annotated[
        float, typer.Option("--grace", min=0, metavar="SECONDS", help="How long running requests may take when the service ends.")
    ] = 60.0,
) -> None:
    """Serve the catalog of a warehouse over Paimon's REST protocol, until Ctrl-C or SIGTERM.

    Clients read and write the files themselves, and commit through the service: tablestore, pypaimon and Spark with metastore =
    rest, uri = the address that is printed, and warehouse = the name. From the first `tablestore token create` on every request
    needs a token; a public address needs tokens and TLS.
    """
    try:
        from tablestore.cli.warehousecheck import check_is_warehouse  # the command's help needs no tables
        from tablestore.server.serving import Listening, Serving  # Starlette and uvicorn are an extra
        from tablestore.server.teamservice import ServiceSettings, build_service
    except ImportError as error:
        raise missing_package(
            "the service needs the packages starlette and uvicorn", "'managed-tablestore[server]'", error
        ) from error

    if place is not None:
        session.warehouse = place
    catalog = session.catalog()
    # Clients may create the first database.
    check_is_warehouse(catalog, may_be_empty=True)
    served_name = _checked_name(name or _default_name(catalog.location))
    session.says_itself = True
    log_to_stderr()
    settings = ServiceSettings(
        name=served_name,
        host=host,
        port=port,
        threads=threads,
        certificate=tls_certificate,
        key=tls_key,
        proxies=tuple(behind_proxy or ()),
        published_locally=published_locally,
        allowed_hosts=tuple(allowed_host or ()),
        allowed_origins=tuple(allowed_origin or ()),
        tokens_required=require_tokens,
        issuer=issuer,
        audit_log=audit_log,
        requests_per_s=rate,
        s3_role=s3_role,
        query_role=query_role,
        storage=session.storage,
    )
    built = build_service(settings, catalog, _store_of_tokens(session, tokens), SystemClock(), session.ids)

    def begun(address: str) -> None:
        if session.out.as_json:
            document = {"address": address, "warehouse": served_name, "location": catalog.location, "tokens": built.has_tokens}
            session.out.line(document)
        else:
            session.out.say(f"Serving {catalog.location} as {served_name} at {address}")
            if not built.has_tokens:
                session.out.note("Whoever reaches it may do all, without a token; tablestore token create makes the first one.")
        session.out.flush()

    listening = Listening(
        host=host,
        port=port,
        grace_s=grace,
        certificate=built.bind.certificate,
        private_key=built.bind.key,
        proxies=built.bind.proxies,
    )
    with closing(built), _scheduler(session, engine) if with_scheduler else nullcontext():
        Serving(app=built.app, liveness=built.application.liveness, listening=listening, begun=begun).run()


@contextmanager
def _scheduler(session: CommandRun, engine: Engine | None) -> Iterator[None]:
    """Refreshes what is due in a thread of its own; at the end it lets the refresh that runs come to its end."""
    from tablestore.cli.commands.materialized.serve import Server

    ended = threading.Event()
    with open_environment(session, engine) as environment:
        server = Server(session, environment)
        thread = threading.Thread(target=server.run, args=(ended.wait, _LOOK_S), name="scheduler", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _store_of_tokens(session: CommandRun, path: str | None) -> "AccessStore | None":
    try:
        return token_store(session, path)
    except ts.InvalidInputError as error:
        if error.kind != "no-token-store":
            raise
        return None


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


def log_to_stderr() -> None:
    """Shows what is logged on standard error, unless somebody else has set up where it goes."""
    logger = logging.getLogger("tablestore")
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)
