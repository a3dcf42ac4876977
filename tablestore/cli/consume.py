"""``tablestore consume``: what changed, row by row; once between two snapshots, or on and on."""

import sys
from collections.abc import Iterator
from typing import Annotated, Literal, cast

import pyarrow as pa
import typer

from tablestore.cli.apps import root as app
from tablestore.cli.rowsink import RowFormat, write_rows
from tablestore.cli.session import Session, TableName, command, names
from tablestore.cli.tableread import Columns, Filter, Format, Limit, OutputFile
from tablestore.cli.units import parse_time
from tablestore.table.changes import earliest_start
from tablestore.table.consume import ChangeBatch, ScanMode
from tablestore.types.rowkind import ROW_KIND_COLUMN

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

    Between two snapshots (--from-snapshot, else from the earliest whose changes are there), or from a place on (--scan,
    --consumer), with --follow for ever. A named consumer is recorded batch by batch, behind what was printed.
    """
    between = from_snapshot is not None or to_snapshot is not None
    onward = scan is not None or timestamp is not None or consumer is not None or follow
    at_end = format is RowFormat.PARQUET or (output is not None and str(output) != "-")
    _refuse_mixed(between=between, onward=onward, snapshot_ids=snapshot_ids, follow=follow, at_end=at_end)
    table = session.table(name)
    wanted = names(columns) if columns is not None else None
    kept = table.schema.names if wanted is None else wanted
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
        # In files and in Parquet the rows are whole only at the end; until then nothing is recorded.
        recording = _Recording(batches, recorded=consumer is not None, at_end=at_end)
        rows = write_rows(
            session.out,
            pa.schema([pa.field(ROW_KIND_COLUMN, pa.string(), nullable=False), *(table.schema.field(one) for one in kept)]),
            recording.rows(),
            row_format=format,
            output=output,
            limit=limit,
            draw=False,
        )
        recording.record()
    else:
        start = earliest_start(table.context, pairs=not after_only) if from_snapshot is None else from_snapshot
        if from_snapshot is None and start:
            session.out.note(f"the changes up to snapshot {start} have expired; --scan full begins with the rows instead")
        changes = table.changes(
            start,
            to_snapshot,
            wanted,
            filter,
            pairs=not after_only,
            snapshot_ids=snapshot_ids,
            on_discontinuity=gaps,
        )
        rows = write_rows(session.out, changes.schema, changes.to_batches(), row_format=format, output=output, limit=limit)
        for gap in changes.discontinuities() if skip_gaps else ():
            session.out.note(f"some changes are not told: {gap.reason}")
    if output is not None and str(output) != "-":
        session.out.done({"rows": rows, "output": str(output)}, f"Wrote {rows:,} changes to {output}.")


def _refuse_mixed(*, between: bool, onward: bool, snapshot_ids: bool, follow: bool, at_end: bool) -> None:
    if between and onward:
        raise typer.BadParameter(
            "--from-snapshot and --to-snapshot name a range; --scan, --timestamp, --consumer and --follow go on from a place",
            param_hint="'--from-snapshot'",
        )
    if onward and snapshot_ids:
        raise typer.BadParameter("only a range of snapshots tells them: use --from-snapshot", param_hint="'--snapshot-ids'")
    if follow and at_end:
        raise typer.BadParameter("a file is whole only at the end, which there is none of: print instead", param_hint="'--follow'")


class _Recording:
    """Batches on their way out. A batch counts as done when the next one is asked for: then it has been written."""

    def __init__(self, batches: Iterator[ChangeBatch], *, recorded: bool, at_end: bool) -> None:
        self._batches, self._recorded, self._at_end = batches, recorded, at_end
        self._done: ChangeBatch | None = None

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of each batch."""
        for batch in self._batches:
            yield batch.rows
            self._done = batch
            if not self._at_end:
                sys.stdout.flush()
                self.record()

    def record(self) -> None:
        """Keep in the table how far this has come."""
        if self._recorded and self._done is not None:
            self._done.commit()
        self._done = None
