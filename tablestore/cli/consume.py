"""``tablestore consume``: what changed, row by row."""

from typing import Annotated

import typer

from tablestore.cli.apps import root as app
from tablestore.cli.rowsink import write_rows
from tablestore.cli.session import Session, TableName, command, names
from tablestore.cli.tableread import Columns, Filter, Format, Limit, OutputFile


@command(
    app,
    "consume",
    "tablestore consume shop.orders --from-snapshot 3",
    'tablestore consume shop.orders --from-snapshot 3 --to-snapshot 9 --filter "price > 10" --json | jq ._row_kind',
)
def consume(
    session: Session,
    name: TableName,
    from_snapshot: Annotated[int, typer.Option("--from-snapshot", "-s", min=0, help="Changes after this snapshot; 0: all.")] = 0,
    to_snapshot: Annotated[int | None, typer.Option("--to-snapshot", help="Up to and with this one; else the newest.")] = None,
    columns: Columns = None,
    filter: Filter = None,
    after_only: Annotated[bool, typer.Option("--after-only", help="Leave out the rows before an update (-U).")] = False,
    snapshot_ids: Annotated[bool, typer.Option("--snapshot-ids", help="Add the snapshot of every change.")] = False,
    skip_gaps: Annotated[
        bool, typer.Option("--skip-gaps", help="Go on past snapshots that do not tell their changes, such as overwrites.")
    ] = False,
    limit: Limit = None,
    format: Format = None,
    output: OutputFile = None,
) -> None:
    """Print the changes between two snapshots, oldest first: +I, -U, +U, -D in the column _row_kind."""
    changes = session.table(name).changes(
        from_snapshot,
        to_snapshot,
        columns=names(columns) if columns is not None else None,
        filter=filter,
        pairs=not after_only,
        snapshot_ids=snapshot_ids,
        on_discontinuity="skip" if skip_gaps else "raise",
    )
    rows = write_rows(session.out, changes.schema, changes.to_batches(), row_format=format, output=output, limit=limit)
    if skip_gaps:
        for gap in changes.discontinuities():
            session.out.note(f"snapshot {gap.snapshot_id} was skipped: {gap.reason}")
    if output is not None and str(output) != "-":
        session.out.done({"rows": rows, "output": str(output)}, f"Wrote {rows:,} changes to {output}.")
