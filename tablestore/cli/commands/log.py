"""``tablestore log``: how far a table's topic is, bring it up to date, check it, make it anew, take it along."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

import tablestore as ts
from tablestore.cli.command import CommandRun, FoundProblems, TableName, Yes, command
from tablestore.cli.text.render import OutputColumn
from tablestore.clock import SystemClock
from tablestore.options import parse_duration

app = typer.Typer(no_args_is_help=True, help="The topic of a table: how far it is, publish, verify, rebuild, adopt.")

_STATUS = (
    OutputColumn("bucket", "bucket", "count"),
    OutputColumn("published", "published up to", "count"),
    OutputColumn("end_offset", "end offset", "count"),
    OutputColumn("lag_snapshots", "snapshots behind", "count"),
    OutputColumn("lag_records", "records behind", "count"),
    OutputColumn("lag_seconds", "seconds behind"),
)


@command(app, "status", "tablestore log status shop.orders")
def status(session: CommandRun, name: TableName) -> None:
    """Show per bucket up to which snapshot the topic holds the changes, and what it lacks."""
    log_status = session.table(name).change_log.status()
    if session.out.as_json:
        session.out.document(asdict(log_status))
        return
    session.out.say(
        f"{log_status.system} topic {log_status.name}, mode {log_status.mode}, {log_status.format}, "
        f"{log_status.slots} publisher(s), newest snapshot {log_status.latest}"
    )
    session.out.show(session.out.table(_STATUS, [asdict(bucket) for bucket in log_status.buckets]))
    if log_status.problem is not None:
        session.out.say(f"Nothing is published: {log_status.problem}")


@command(app, "publish", "tablestore log publish shop.orders", "tablestore log publish shop.orders --watch --interval '1 s'")
def publish(
    session: CommandRun,
    name: TableName,
    slot: Annotated[int | None, typer.Option("--slot", min=0, help="Only this publisher slot; else all.")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on for ever: look again after every interval.")] = False,
    interval: Annotated[str, typer.Option("--interval", metavar="DURATION", help="Between two looks of --watch.")] = "1 s",
) -> None:
    """Send the changes that the topic lacks, each once; repairs what a broker has lost."""
    wait_s = parse_duration(interval) / 1000
    table = session.table(name)
    slots = table.change_log.settings.slots
    if slot is not None and slot >= slots:
        raise typer.BadParameter(f"the table has the slots 0 to {slots - 1}", param_hint="'--slot'")
    chosen_slots = None if slot is None else (slot,)
    if watch:
        is_first = True

        def send(table: ts.Table) -> None:
            nonlocal is_first
            look, is_first = is_first, False
            for report in table.change_log.publish(slots=chosen_slots, look=look):
                if report.records:
                    session.say_found(table, report)

        session.watch([table], send, SystemClock(), wait_s)
        return
    reports = table.change_log.publish(slots=chosen_slots, look=True)
    if session.out.as_json:
        session.out.document({"table": table.name, "slots": [asdict(report) for report in reports]})
    for report in reports:
        session.out.say(f"{table.name}, {report}")
    if not reports:
        session.out.say(f"{table.name}: the log is the file store itself, there is nothing to publish")


@command(app, "verify", "tablestore log verify shop.orders")
def verify(session: CommandRun, name: TableName) -> None:
    """Read the topic and compare what it adds up to with the table. Exit code 3 if they differ."""
    table = session.table(name)
    with session.out.progress(f"reading the log of {table.name}", None):
        check = table.change_log.verify()
    document: dict[str, Any] = {"table": table.name, **asdict(check)}
    if check.problems:
        if session.out.as_json:
            session.out.document(document)
        for problem in check.problems:
            session.out.say(problem)
        session.out.note("`tablestore log rebuild` makes the log anew from the table")
        raise FoundProblems
    compared = "same keys, same rows" if check.complete else "the last record of every key is what the table holds"
    session.out.done(document, f"{check.records:,} records, {check.keys:,} keys up to snapshot {check.snapshot_id}: {compared}.")


@command(app, "rebuild", "tablestore log rebuild shop.orders --yes")
def rebuild(session: CommandRun, name: TableName, yes: Yes = False) -> None:
    """Delete the topic, make it again, and publish the changes of all retained snapshots."""
    table = session.table(name)
    settings = table.change_log.settings
    plan = {"topic": settings.topic, "partitions": settings.partitions, "snapshots": len(table.context.snapshots.live_ids())}
    session.confirm(yes, f"Would delete topic {settings.topic} and publish {plan['snapshots']} snapshot(s) to a new one.", plan)
    reports = table.change_log.rebuild()
    document = {"table": table.name, "slots": [asdict(report) for report in reports]}
    session.out.done(document, f"{table.name}: {sum(report.records for report in reports):,} records in the new topic.")


@command(app, "adopt", "tablestore log adopt shop.orders --yes")
def adopt_log(session: CommandRun, name: TableName, yes: Yes = False) -> None:
    """Let a table whose directory was moved publish to its topic again.

    Not for a copy: only one place may publish to a topic, and the other one is refused from then on. Give a copy its own topic.
    """
    table = session.table(name)
    settings = table.change_log.settings
    plan = {"topic": settings.topic, "location": table.location}
    session.confirm(yes, f"Would make {table.location} the only place that publishes to topic {settings.topic}.", plan)
    owner = table.change_log.adopt()
    document = {"table": table.name, "topic": settings.topic, "location": owner.location, "former": list(owner.former)}
    session.out.done(document, f"{table.name}: topic {settings.topic} belongs to {owner.location}.")
