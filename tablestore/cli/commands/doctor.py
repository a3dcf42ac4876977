"""``tablestore doctor``: are this machine and this warehouse in order, and what to do where they are not."""

from collections.abc import Sequence
from dataclasses import asdict

import typer

from tablestore.catalog.settings import WAREHOUSE, parse_catalog_settings
from tablestore.cli.command import CommandRun, FoundProblems, command
from tablestore.cli.doctorchecks import Check, check_catalog, check_machine
from tablestore.cli.text.render import STATUS_STYLES

app = typer.Typer()


@command(app, "doctor", "tablestore doctor", "tablestore doctor --warehouse s3://bucket/warehouse --json")
def doctor(session: CommandRun) -> None:
    """Check Python, Java, libraries and the warehouse; `tablestore verify` checks a table.

    Returns 3 if something has to be done.
    """
    looks = list(check_machine())
    if session.warehouse:
        looks += check_catalog(parse_catalog_settings({**session.storage, WAREHOUSE.key: session.warehouse}))
    problems = [look for look in looks if look.status == "problem"]
    if session.out.as_json:
        session.out.document({"healthy": not problems, "checks": [asdict(look) for look in looks]})
    else:
        _show_looks(session, looks)
        if not session.warehouse:
            session.out.say("No warehouse is named; --warehouse checks one.")
    if problems:
        raise FoundProblems


def _show_looks(session: CommandRun, looks: Sequence[Check]) -> None:
    from rich.text import Text

    width = max(len(look.name) for look in looks)
    for look in looks:
        line = Text.assemble((f"{look.status:8}", STATUS_STYLES[look.status]), f" {look.name:{width}}  {look.detail}")
        session.out.show_line(line)
        if look.fix and look.status != "ok":
            session.out.say(f"{'':{width + 11}}{look.fix}")
