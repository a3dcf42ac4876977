"""``tablestore doctor``: is this machine, this warehouse, this table in order, and what to do where it is not."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.text import Text

import tablestore as ts
from tablestore.cli.apps import root as app
from tablestore.cli.environment import Look, look_around, look_at_warehouse
from tablestore.cli.session import FoundProblems, Session, command
from tablestore.io.opening import open_store
from tablestore.store.history.orphans import CleanReport
from tablestore.table.inspect.check import Finding, check_table
from tablestore.table.upkeep.expiry import clean

_STYLES = {"ok": "green", "absent": "dim", "warning": "yellow", "problem": "bold red"}


@command(
    app,
    "doctor",
    "tablestore doctor",
    "tablestore doctor --warehouse s3://bucket/warehouse --json",
    "tablestore doctor shop.orders --deep",
)
def doctor(
    session: Session,
    name: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="Check this table: database.table, or its path.")] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Read every row of the table, and so check every page.")] = False,
) -> None:
    """Check Python, Java, libraries and the warehouse; or, with a table, that all of it is there and unchanged.

    Returns 3 if something has to be done.
    """
    if name is not None:
        _table(session, name, deep)
        return
    looks = list(look_around())
    if session.warehouse:
        looks += look_at_warehouse(open_store(session.warehouse, session.storage))
    problems = [look for look in looks if look.status == "problem"]
    if session.out.as_json:
        session.out.document({"healthy": not problems, "checks": [asdict(look) for look in looks]})
    else:
        _show_looks(session, looks)
        if not session.warehouse:
            session.out.say("No warehouse is named; --warehouse checks one.")
    if problems:
        raise FoundProblems


def _show_looks(session: Session, looks: Sequence[Look]) -> None:
    width = max(len(look.name) for look in looks)
    for look in looks:
        line = Text.assemble((f"{look.status:8}", _STYLES[look.status]), f" {look.name:{width}}  {look.detail}")
        session.out.show_line(line)
        if look.fix and look.status != "ok":
            session.out.say(f"{'':{width + 11}}{look.fix}")


def _table(session: Session, name: str, deep: bool) -> None:
    try:
        table = session.table(name)
    except (ts.FormatError, ts.UnsupportedError) as error:
        fix = "restore the schema file from a copy"
        findings = [Finding(severity="problem", kind="schema", subject=name, message=str(error), fix=fix)]
    else:
        with session.out.progress("checking", 1) as bar:
            findings = [*check_table(table.context, deep=deep, progress=bar.show), *_orphans(table)]
    problems = [finding for finding in findings if finding.severity == "problem"]
    if session.out.as_json:
        document: dict[str, Any] = {"table": name, "healthy": not problems, "deep": deep}
        session.out.document({**document, "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            head = Text.assemble((finding.severity, _STYLES[finding.severity]), f"  {finding.subject}")
            session.out.show_line(head)
            session.out.say(f"         {finding.message}\n         -> {finding.fix}")
        depth = "every row and page header was read" if deep else "metadata and files; --deep reads every row"
        session.out.say(f"{name}: {len(problems)} problem(s), {len(findings) - len(problems)} warning(s) ({depth}).")
    if problems:
        raise FoundProblems


def _orphans(table: ts.Table) -> list[Finding]:
    try:
        report: CleanReport = clean(table.context, dry_run=True)
    except ts.TablestoreError:
        # What makes it impossible to tell is among the problems.
        return []
    if not report.orphans:
        return []
    return [
        Finding(
            severity="warning",
            kind="orphans",
            subject=f"{len(report.orphans)} file(s) of {report.bytes:,} bytes",
            message=f"are named by nothing, for example {report.orphans[0].path}",
            fix=f"remove them with: tablestore clean {table.name} --yes",
        )
    ]
