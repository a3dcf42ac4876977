"""``tablestore compact``, ``expire``, ``clean`` and ``table drop-partition``: keep tables fast and small."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any

import typer

import tablestore as ts
from tablestore.cli.command import CommandRun, TableName, Yes, command, complete_table, parse_partition
from tablestore.clock import Clock, SystemClock
from tablestore.options import parse_duration

app, table_app = typer.Typer(), typer.Typer()
expire_app = typer.Typer(no_args_is_help=True, help="Let go of what is old: snapshots, partitions.")

PartitionOption = Annotated[
    list[str] | None,
    typer.Option("--partition", "-p", metavar="COLUMN=VALUE,…", help="Only this partition. May be repeated."),
]
OlderThan = Annotated[str | None, typer.Option("--older-than", metavar="DURATION", help="Age, such as '7 d' or '12 h'.")]
_SHOWN_ORPHANS = 10


@command(
    app,
    "compact",
    "tablestore compact shop.orders",
    "tablestore compact shop.visits --full --partition day=2026-01-31",
    "tablestore compact shop.visits --order-by page,user --order-strategy zorder",
    "tablestore compact shop.orders shop.visits --watch --interval '30 s'",
)
def compact(
    session: CommandRun,
    tables: Annotated[
        list[str],
        typer.Argument(metavar="TABLE...", help="database.table of the warehouse, or paths.", autocompletion=complete_table),
    ],
    full: Annotated[bool, typer.Option("--full", help="Everything into one sorted run per bucket.")] = False,
    partition: PartitionOption = None,
    order_by: Annotated[
        str | None, typer.Option("--order-by", metavar="COLUMNS", help="Put the rows of append tables in the order of these.")
    ] = None,
    order_strategy: Annotated[
        str, typer.Option("--order-strategy", metavar="STRATEGY", help="How: order, zorder, hilbert, or auto.")
    ] = "auto",
    watch: Annotated[bool, typer.Option("--watch", help="Go on for ever: look again after every interval.")] = False,
    interval: Annotated[str, typer.Option("--interval", metavar="DURATION", help="Between two looks of --watch.")] = "10 s",
) -> None:
    """Merge sorted runs and small files as far as it is due. No query sees a difference.

    With --watch every look that found work is one line, or one JSON document a line.
    """
    wait_millis = parse_duration(interval)
    if watch and order_by is not None:
        raise ts.InvalidInputError(
            "--order-by puts all rows in order once, so it does not go with --watch; the options clustering.columns and "
            "clustering.incremental of a table order what is new",
            kind="contradiction",
        )
    opened = [session.table(name) for name in tables]
    chosen = [[parse_partition(table.table_schema, text) for text in partition] if partition else None for table in opened]
    if watch:
        run_service(session, opened, chosen, SystemClock(), full=full, wait_s=wait_millis / 1000)
        return
    reports = []
    for table, partitions in zip(opened, chosen, strict=True):
        with session.out.progress(f"compacting {table.name}", 1) as bar:
            report = table.compact(
                full=full, partitions=partitions, order_by=order_by, order_strategy=order_strategy, progress=bar.show
            )
        reports.append({"table": table.name, **asdict(report)})
        session.out.say(f"{table.name}: {report}")
    if session.out.as_json:
        session.out.document({"tables": reports, "seconds": session.seconds})


def run_service(
    session: CommandRun,
    tables: "Sequence[ts.Table]",
    partitions: Sequence[list[dict[str, object]] | None],
    clock: Clock,
    *,
    full: bool,
    wait_s: float,
    looks: int | None = None,
) -> None:
    """Compact what is due, look again after ``wait_s``; without end, or ``looks`` times."""
    partitions_by_table = {table.name: chosen for table, chosen in zip(tables, partitions, strict=True)}
    seen: dict[str, int] = {}

    def look(table: "ts.Table") -> None:
        ids = table.context.snapshots.listed_ids()
        # Nothing new since the last look that found nothing to do: nothing is due.
        if not ids or seen.get(table.name) == ids[-1]:
            return
        report = table.refresh().compact(full=full, partitions=partitions_by_table[table.name])
        seen[table.name] = max(ids[-1], *report.snapshot_ids) if report.snapshot_ids else ids[-1]
        if report.tasks or report.dropped:
            session.say_found(table, report)

    session.watch(tables, look, clock, wait_s, looks=looks)


@command(
    expire_app,
    "snapshots",
    "tablestore expire snapshots shop.orders --yes",
    "tablestore expire snapshots shop.orders --retain-max 20 --older-than '7 d'",
)
def expire_snapshots(
    session: CommandRun,
    name: TableName,
    retain_max: Annotated[int | None, typer.Option("--retain-max", min=1, help="Above so many they go whatever their age.")] = None,
    retain_min: Annotated[int | None, typer.Option("--retain-min", min=1, help="So many always stay.")] = None,
    older_than: OlderThan = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most so many at once.")] = None,
    yes: Yes = False,
) -> None:
    """Remove old snapshots and the files that only they needed. Without options the table's own rules count.

    Tags, branches and consumers keep what they need.
    """
    table = session.table(name)
    rules: dict[str, Any] = {"retain_max": retain_max, "retain_min": retain_min, "older_than": _age(older_than), "limit": limit}
    plan = table.expire_snapshots(**rules, dry_run=True)
    _confirm(session, table, yes, plan, plan.snapshots or plan.tags or plan.changelogs)
    _done(session, table, table.expire_snapshots(**rules))


@command(expire_app, "partitions", "tablestore expire partitions shop.visits --older-than '90 d' --yes")
def expire_partitions(session: CommandRun, name: TableName, older_than: OlderThan = None, yes: Yes = False) -> None:
    """Drop the partitions that are older than an age, else than the table's option partition.expiration-time."""
    table = session.table(name)
    age = _age(older_than)
    plan = table.expire_partitions(age, dry_run=True)
    _confirm(session, table, yes, plan, plan.partitions)
    _done(session, table, table.expire_partitions(age))


@command(table_app, "drop-partition", "tablestore table drop-partition shop.visits day=2026-01-31 --yes")
def drop_partition(
    session: CommandRun,
    name: TableName,
    partition: Annotated[list[str], typer.Argument(metavar="COLUMN=VALUE,…", help="Some or all of the partition's values.")],
    yes: Yes = False,
) -> None:
    """Drop partitions with all of their rows, in one commit."""
    table = session.table(name)
    partitions = [parse_partition(table.table_schema, text) for text in partition]
    plan = table.drop_partitions(partitions, dry_run=True)
    _confirm(session, table, yes, plan, plan.partitions)
    _done(session, table, table.drop_partitions(partitions))


@command(app, "clean", "tablestore clean shop.orders --yes", "tablestore clean --older-than '1 h' --yes")
def clean(
    session: CommandRun,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[TABLE]", help="database.table, or a path; without it: creations.", autocompletion=complete_table),
    ] = None,
    older_than: OlderThan = None,
    yes: Yes = False,
) -> None:
    """Remove files that no snapshot, tag or branch needs, such as those of crashed writers.

    Without --older-than the table's option tablestore.orphan-age protects commits in progress; give less only while
    nothing writes.

    Without TABLE: what a CREATE TABLE AS that died has left in the warehouse, tables and topics too, once it was not heard
    of for --older-than (an hour), and the snapshots that tables keep for materialized tables that are gone.
    """
    age = _age(older_than)
    if name is None:
        _clean_creations(session, age, yes)
        return
    table = session.table(name)
    plan = table.remove_orphan_files(age, dry_run=True)
    listed = "".join(f"\n  {orphan.path}" for orphan in plan.orphans[:_SHOWN_ORPHANS])
    more = f"\n  … and {len(plan.orphans) - _SHOWN_ORPHANS} more" if len(plan.orphans) > _SHOWN_ORPHANS else ""
    _confirm(session, table, yes, plan, plan.orphans, f"{listed}{more}")
    _done(session, table, table.remove_orphan_files(age, dry_run=False))


def _clean_creations(session: CommandRun, age: timedelta | None, yes: bool) -> None:
    catalog = session.catalog()
    plan, holds = catalog.sweep_creations(age, dry_run=True), catalog.release_dead_holds(dry_run=True)
    if plan.creations or holds:
        session.confirm(yes, *_swept(plan, holds))
    text, document = _swept(catalog.sweep_creations(age), catalog.release_dead_holds())
    session.out.done(document, text)


def _swept(report: "ts.SweepReport", released: "Sequence[ts.DeadHold]") -> tuple[str, dict[str, Any]]:
    verb = "would release" if report.dry_run else "released"
    lines = [str(report), *(f"{verb} {hold}" for hold in released)]
    return "\n".join(lines), {**asdict(report), "holds": [asdict(hold) for hold in released]}


def _age(older_than: str | None) -> timedelta | None:
    return None if older_than is None else timedelta(milliseconds=parse_duration(older_than))


def _confirm(session: CommandRun, table: "ts.Table", yes: bool, plan: Any, is_due: object, listed: str = "") -> None:
    """Show what would be done, unless there is nothing to do or ``--yes`` was given."""
    if is_due:
        session.confirm(yes, f"{table.name}: {plan}{listed}", _document(table, plan))


def _done(session: CommandRun, table: "ts.Table", report: Any) -> None:
    session.out.done(_document(table, report), f"{table.name}: {report}")


def _document(table: "ts.Table", report: Any) -> dict[str, Any]:
    document = {"table": table.name, **asdict(report)}
    if isinstance(report, ts.CleanReport):
        document["bytes"] = report.bytes
    if isinstance(report, ts.PartitionReport):
        del document["snapshot"]
        document["snapshot_id"] = report.snapshot.id if report.snapshot else None
    return document
