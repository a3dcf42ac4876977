"""``tablestore token``: who may do what at the service of a warehouse.

They lie in the database of a SQL catalog, in the folder ``.tablestore`` of a local warehouse, or in the file of ``--tokens``.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import tablestore as ts
from tablestore.catalog.settings import WAREHOUSE
from tablestore.cli.command import WAREHOUSE_VARIABLE, CommandRun, Yes, command
from tablestore.cli.text.render import OutputColumn
from tablestore.clock import SystemClock
from tablestore.names import check_name
from tablestore.options import parse_duration
from tablestore.server.access.roles import Grant, Resource, Role

# The commands load what they need of the rest: documents, files, databases, the parser of SQL.
if TYPE_CHECKING:
    from tablestore.server.access.accessdocument import AccessDocument
    from tablestore.server.access.accessstore import AccessStore
    from tablestore.server.access.identities import Token

app = typer.Typer(no_args_is_help=True, help="Tokens: who may do what at the service of a warehouse.")

TOKENS_VARIABLE = "TABLESTORE_TOKENS"
NEVER = "never"
TokensFile = Annotated[
    str | None,
    typer.Option(
        "--tokens",
        metavar="FILE",
        envvar=TOKENS_VARIABLE,
        show_envvar=True,
        help="The file of the tokens; else the place that the catalog has for them.",
    ),
]
_TOKENS = (
    OutputColumn("id", "token"),
    OutputColumn("name", "name"),
    OutputColumn("roles", "may", "names"),
    OutputColumn("state", "state"),
    OutputColumn("created", "created", "time"),
    OutputColumn("expires", "expires", "time"),
    OutputColumn("revoked", "revoked", "time"),
)
_RULES = (
    OutputColumn("table", "table"),
    OutputColumn("principals", "of", "names"),
    OutputColumn("roles", "with role", "names"),
    OutputColumn("row_filter", "rows"),
    OutputColumn("masked", "masked columns", "names"),
)


@command(
    app,
    "create",
    "tablestore token create --role reader --database shop --expires '30 d' --name reports",
    "tablestore token create --role admin --name ada",
    "tablestore token create --role writer --database shop --table orders --json",
)
def create(
    session: CommandRun,
    role: Annotated[
        Role,
        typer.Option("--role", help="reader looks and reads, writer also commits, owner also creates and drops, admin may all."),
    ],
    database: Annotated[str | None, typer.Option("--database", help="The role is on this database alone.")] = None,
    table: Annotated[str | None, typer.Option("--table", help="The role is on this table of the database alone.")] = None,
    expires: Annotated[
        str, typer.Option("--expires", metavar="DURATION", help=f"The time after which it opens nothing; or {NEVER}.")
    ] = "90 d",
    name: Annotated[
        str | None, typer.Option("--name", help="Who uses it: so the audit log and rules for queries call them.")
    ] = None,
    tokens: TokensFile = None,
) -> None:
    """Create a token, and print it: this once, since only its hash is stored."""
    from tablestore.server.access.identities import create_token

    if table is not None and database is None:
        raise typer.BadParameter("a table is one of a database: pass --database too", param_hint="'--table'")
    resource = Resource(
        None if database is None else check_name(database, "database"), None if table is None else check_name(table, "table")
    )
    now_ms = SystemClock().now_ms()
    token, text = create_token(
        session.ids,
        name=name or f"{role}-{session.ids.uuid()[:8]}",
        grants=(Grant(role, resource),),
        now_ms=now_ms,
        expires_in_ms=None if expires.strip().lower() == NEVER else parse_duration(expires),
    )
    store = token_store(session, tokens)
    store.change(lambda document: replace(document, tokens=(*document.tokens, token)))
    if session.out.as_json:
        session.out.document({"token": text, **_record(token, now_ms)})
        return
    session.out.write(text)
    session.out.note(
        f"Token {token.id} of {token.name}: {role} on {resource}. It is shown this once; "
        f"`tablestore token revoke {token.id}` ends it."
    )


@command(app, "list", "tablestore token list", "tablestore token list --all --json")
def list_tokens(
    session: CommandRun,
    all_tokens: Annotated[bool, typer.Option("--all", help="Also those that are revoked or expired.")] = False,
    tokens: TokensFile = None,
) -> None:
    """List the tokens; none of them can be shown again."""
    now_ms = SystemClock().now_ms()
    shown = [token for token in token_store(session, tokens).read().tokens if all_tokens or token.is_live(now_ms)]
    session.out.listing("tokens", _TOKENS, [_record(token, now_ms) for token in shown], empty="No tokens.")


@command(app, "revoke", "tablestore token revoke 3f2a9c0d11ab", "tablestore token revoke reports")
def revoke(
    session: CommandRun,
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="The id of a token, or a name: all tokens of that name.")],
    tokens: TokensFile = None,
) -> None:
    """Revoke a token, or all of a name: a running service takes them no more."""
    from tablestore.server.access.identities import revoke_tokens

    now_ms = SystemClock().now_ms()
    revoked: tuple[Token, ...] = ()

    def change(document: "AccessDocument") -> "AccessDocument":
        nonlocal revoked
        remaining, revoked = revoke_tokens(document.tokens, token, now_ms)
        return replace(document, tokens=remaining)

    token_store(session, tokens).change(change)
    ids = [one.id for one in revoked]
    session.out.done({"revoked": ids}, f"Revoked {', '.join(ids)}.")


@command(
    app,
    "rules",
    "tablestore token rules",
    "tablestore token rules rules.json --yes",
)
def rules(
    session: CommandRun,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A JSON list of rules that takes the place of all that there are.")
    ] = None,
    tokens: TokensFile = None,
    yes: Yes = False,
) -> None:
    """List the row filters and column masks of queries, or replace them by those of a file."""
    from tablestore.server.access.accessdocument import parse_rules, rule_to_json
    from tablestore.server.access.queryrules import check_rule

    store = token_store(session, tokens)
    if file is None:
        records = [
            {**rule_to_json(rule), "table": str(rule.table), "masked": [name for name, _ in rule.column_masks]}
            for rule in store.read().rules
        ]
        if session.out.as_json:
            session.out.document({"rules": [rule_to_json(rule) for rule in store.read().rules]})
        else:
            session.out.listing("rules", _RULES, records, empty="No rules.")
        return
    new_rules = parse_rules(_json_list(file), str(file))
    for rule in new_rules:
        check_rule(rule, session.table(str(rule.table)).table_schema)
    plan = {"file": str(file), "rules": len(new_rules)}
    session.confirm(yes, f"Replaces all rules for queries by the {len(new_rules)} of {file}.", plan)
    store.change(lambda document: replace(document, rules=new_rules))
    session.out.done({"rules": len(new_rules)}, f"{len(new_rules)} rule(s) for queries are in force.")


def _json_list(file: Path) -> list[object]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ts.InvalidInputError(f"{file}: expected a JSON list of rules, found something else") from error
    if not isinstance(value, list):
        raise ts.InvalidInputError(f"{file}: expected a JSON list of rules, found {type(value).__name__}")
    return value


def token_store(session: CommandRun, path: str | None) -> "AccessStore":
    """The store of the tokens of a warehouse. Raises InvalidInputError of kind ``no-token-store`` where it has no place for one."""
    from tablestore.server.access.accessstore import open_access_store

    if path is None and not session.warehouse:
        raise typer.BadParameter(
            f"no place for tokens is named: pass --warehouse, set {WAREHOUSE_VARIABLE}, or pass --tokens",
            param_hint="'--warehouse'",
        )
    options = {**session.storage, **({WAREHOUSE.key: session.warehouse} if session.warehouse else {})}
    return open_access_store(options, session.ids, path=path)


def _record(token: "Token", now_ms: int) -> Mapping[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "roles": [f"{grant.role} on {grant.resource}" for grant in token.grants],
        "state": token.state(now_ms),
        "created": token.created_ms,
        "expires": token.expires_ms,
        "revoked": token.revoked_ms,
    }
