"""``tablestore consume``: what changed, row by row; once between two snapshots, or on and on."""

import sys
from collections.abc import Iterator
from typing import Annotated, Literal, cast

import pyarrow as pa
import typer

import tablestore as ts
from tablestore.cli.apps import root as app
from tablestore.cli.rowsink import write_rows
from tablestore.cli.session import Session, TableName, command, names
from tablestore.cli.tableread import Columns, Filter, Format, Limit, OutputFile
from tablestore.cli.units import parse_time
from tablestore.table.consume import ScanMode

Gaps = Annotated[bool, typer.Option("--skip-gaps", help="Go on past snapshots that do not tell their changes, such as overwrites.")]


@command(
    app,
    "consume",
    "tablestore consume shop.orders --from-snapshot 3",
    'tablestore consume shop.orders --from-snapshot 3 --to-snapshot 9 --filter "price > 10" --json | jq ._row_kind',
    "tablestore consume shop.orders --scan full --consumer billing --follow --json",
)
def consume(
    session: Session,
    name: TableName,
    from_snapshot: Annotated[
        int | None, typer.Option("--from-snapshot", "-s", min=0, help="The changes after this snapshot; 0: all.")
    ] = None,
    to_snapshot: Annotated[int | None, typer.Option("--to-snapshot", help="Up to and with this one; else the newest.")] = None,
    scan: Annotated[
        str | None,
        typer.Option("--scan", metavar="full|latest|from-timestamp", help="Begin with all rows, with what comes, or at a time."),
    ] = None,
    timestamp: Annotated[
        str | None, typer.Option("--timestamp", metavar="TIME", help="Where --scan from-timestamp begins.")
    ] = None,
    consumer: Annotated[
        str | None, typer.Option("--consumer", metavar="NAME", help="Keep how far this is in the table, and go on from there.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-F", help="Wait for further snapshots; end with Ctrl-C.")] = False,
    columns: Columns = None,
    filter: Filter = None,
    after_only: Annotated[
        bool, typer.Option("--after-only", help="Only what rows are afterwards: no -U, and nothing looked up.")
    ] = False,
    snapshot_ids: Annotated[bool, typer.Option("--snapshot-ids", help="Add the snapshot of every change.")] = False,
    skip_gaps: Gaps = False,
    limit: Limit = None,
    format: Format = None,
    output: OutputFile = None,
) -> None:
    """Print changes, oldest first: +I, -U, +U, -D in the column _row_kind.

    Between two snapshots (--from-snapshot), or from a place on (--scan, --consumer), with --follow for ever. A named consumer is
    recorded batch by batch, behind what was printed.
    """
    between = from_snapshot is not None or to_snapshot is not None
    onward = scan is not None or timestamp is not None or consumer is not None or follow
    if between and onward:
        raise typer.BadParameter(
            "--from-snapshot and --to-snapshot name a range; --scan, --timestamp, --consumer and --follow go on from a place",
            param_hint="'--from-snapshot'",
        )
    if onward and snapshot_ids:
        raise typer.BadParameter("only a range of snapshots tells them: use --from-snapshot", param_hint="'--snapshot-ids'")
    table = session.table(name)
    wanted = names(columns) if columns is not None else None
    gaps: Literal["raise", "skip"] = "skip" if skip_gaps else "raise"
    if onward:
        batches = table.consume(
            cast("ScanMode | None", scan),
            consumer_id=consumer,
            timestamp=parse_time(timestamp) if timestamp is not None else None,
            columns=wanted,
            filter=filter,
            pairs=not after_only,
            follow=follow,
            on_discontinuity=gaps,
        )
        schema = table.changes(0, 0, wanted).schema
        rows = write_rows(
            session.out, schema, _recorded(batches, consumer), row_format=format, output=output, limit=limit, draw=False
        )
    else:
        changes = table.changes(
            from_snapshot or 0,
            to_snapshot,
            wanted,
            filter,
            pairs=not after_only,
            snapshot_ids=snapshot_ids,
            on_discontinuity=gaps,
        )
        rows = write_rows(session.out, changes.schema, changes.to_batches(), row_format=format, output=output, limit=limit)
        for gap in changes.discontinuities() if skip_gaps else ():
            session.out.note(f"snapshot {gap.snapshot_id} was skipped: {gap.reason}")
    if output is not None and str(output) != "-":
        session.out.done({"rows": rows, "output": str(output)}, f"Wrote {rows:,} changes to {output}.")


def _recorded(batches: "Iterator[ts.ChangeBatch]", consumer: str | None) -> Iterator[pa.RecordBatch]:
    """The rows of each batch; when the next one is asked for, the last one was written out, and that is recorded."""
    for batch in batches:
        yield batch.rows
        sys.stdout.flush()
        if consumer is not None:
            batch.commit()
