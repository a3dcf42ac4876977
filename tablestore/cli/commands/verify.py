"""``tablestore verify`` and ``tablestore repair``: is a table whole, and what of its damage can be put right without loss."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer
from rich.text import Text

import tablestore as ts
from tablestore.cli.command import CommandRun, FoundProblems, TableName, Yes, command
from tablestore.cli.text.render import STATUS_STYLES
from tablestore.table.inspect.findings import TABLE, Finding

app = typer.Typer()


@command(app, "verify", "tablestore verify shop.orders", "tablestore verify shop.orders --deep --json")
def verify(
    session: CommandRun,
    name: TableName,
    deep: Annotated[bool, typer.Option("--deep", help="Read every row, and so check every page.")] = False,
) -> None:
    """Check that all that snapshots, tags and branches lead to is there and unchanged. Exit code 3 if something is lost."""
    try:
        table = session.table(name)
    except (ts.FormatError, ts.UnsupportedError) as error:
        fix = "restore the schema file from a copy"
        findings = [Finding(severity="problem", kind="schema", subject=name, message=str(error), fix=fix)]
    else:
        findings = [*_checked(session, table, deep=deep), *_orphans(table)]
    problems = _problems(findings)
    if session.out.as_json:
        document: dict[str, Any] = {"table": name, "healthy": not problems, "deep": deep}
        session.out.document({**document, "findings": [asdict(finding) for finding in findings]})
    else:
        _show(session, findings)
        depth = "every row and page header was read" if deep else "metadata and files; --deep reads every row"
        session.out.say(f"{name}: {len(problems)} problem(s), {len(findings) - len(problems)} warning(s) ({depth}).")
    if problems:
        raise FoundProblems


@command(app, "repair", "tablestore repair shop.orders --dry-run", "tablestore repair shop.orders --yes")
def repair(
    session: CommandRun,
    name: TableName,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    yes: Yes = False,
) -> None:
    """Put right what a crash has left, as far as nothing can be lost by it; the rest is named with what to do.

    That is what the table's upkeep would do later: finish expiries that have begun, remove branches that were half made, write
    hints anew. No file that a snapshot, tag or branch names is removed. Exit code 3 if something is lost that nothing brings back.
    """
    from tablestore.table.inspect.repair import do_repair, plan_repairs

    table = session.table(name)
    findings = _checked(session, table)
    plan = plan_repairs(findings)
    document: dict[str, Any] = {"table": table.name, "repairs": [{**asdict(step), "text": str(step)} for step in plan]}
    if plan and not dry_run:
        listed = "\n".join(f"  {step}" for step in plan)
        session.confirm(yes, f"{table.name}: would\n{listed}", document)
        for step in plan:
            do_repair(table.context, step)
        table = table.refresh()
        findings = _checked(session, table)
    left = [finding for finding in findings if finding.repair is None or not dry_run]
    _show(session, left)
    for step in plan:
        session.out.say(f"{table.name}: {'would ' if dry_run else ''}{step}")
    summary = f"{table.name}: {len(plan) or 'no'} repair(s) {'to do' if dry_run else 'done'}, {len(left)} finding(s) left."
    full_document = {**document, "done": not dry_run, "left": [asdict(finding) for finding in left]}
    session.out.done(full_document, summary)
    if _problems(left):
        raise FoundProblems


def _checked(session: CommandRun, table: "ts.Table", *, deep: bool = False) -> tuple[Finding, ...]:
    from tablestore.table.inspect.check import check_table

    with session.out.progress("checking", 1) as bar:
        findings = check_table(table.context, deep=deep, progress=bar.show)
    return tuple(replace(finding, fix=finding.fix.replace(TABLE, table.name)) for finding in findings)


def _show(session: CommandRun, findings: Sequence[Finding]) -> None:
    if session.out.as_json:
        return
    for finding in findings:
        session.out.show_line(Text.assemble((finding.severity, STATUS_STYLES[finding.severity]), f"  {finding.subject}"))
        session.out.say(f"         {finding.message}\n         -> {finding.fix}")


def _problems(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity == "problem"]


def _orphans(table: "ts.Table") -> list[Finding]:
    from tablestore.table.upkeep.expiry import clean

    try:
        report = clean(table.context, dry_run=True)
    except ts.TablestoreError:
        # What makes it impossible to say is among the problems.
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
