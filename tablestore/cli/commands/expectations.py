"""``tablestore check``: do the rows of a table hold its constraints, and what a file expects of them."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from tablestore.cli.command import CommandRun, FoundProblems, TableName, command
from tablestore.cli.text.render import STATUS_STYLES, json_text

if TYPE_CHECKING:
    from tablestore.table.inspect.expectations import Expectation

app = typer.Typer()


@command(
    app,
    "check",
    "tablestore check shop.orders --rules orders.toml",
    "tablestore check shop.orders --rules orders.toml --json | jq '.expectations[] | select(.violations > 0)'",
)
def check(
    session: CommandRun,
    name: TableName,
    rules: Annotated[
        Path | None,
        typer.Option("--rules", metavar="FILE", help="A file of rules (TOML); left out: only the constraints of the table."),
    ] = None,
    samples: Annotated[int, typer.Option("--samples", min=0, help="So many rows that violate a rule are shown at most.")] = 5,
) -> None:
    """Compare the rows of a table with its constraints and with the rules of a file. Exit code 3 if a row violates one."""
    from tablestore.table.inspect.expectationrules import parse_rules
    from tablestore.table.inspect.expectations import check_expectations

    parsed = () if rules is None else parse_rules(_read(rules), str(rules))
    table = session.table(name)
    with session.out.progress("checking", None):
        results = check_expectations(table.context, parsed, lambda other: session.table(other).context, samples=samples)
    violated = [result for result in results if not result.holds]
    if session.out.as_json:
        session.out.document(
            {"table": name, "holds": not violated, "expectations": [{**asdict(one), "holds": one.holds} for one in results]}
        )
    else:
        for result in results:
            _show(session, result)
        session.out.say(f"{name}: {len(results)} expectation(s), {len(violated)} violated.")
    if violated:
        raise FoundProblems


def _show(session: CommandRun, result: "Expectation") -> None:
    status = "ok" if result.holds else "problem"
    counts = f"{result.violations:,} of {result.rows:,} row(s)" if result.violations else f"{result.rows:,} row(s)"
    line = f"  {result.name}" if result.kind != "constraint" else f"  constraint {result.name}"
    session.out.show_line(Text.assemble((status, STATUS_STYLES[status]), f"{line}: {counts}"))
    for row in result.samples:
        session.out.say(f"         {json_text(row):.300}")


def _read(path: Path) -> str:
    from tablestore.errors import InvalidInputError

    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"expected a file of rules (TOML) at {path}, and it cannot be read: {error}", kind="rules"
        ) from error
