"""``tablestore consume``: what changed, row by row; once between two snapshots, or on and on."""

from typing import Annotated

import typer

from tablestore.cli import wordcompletion
from tablestore.cli.command import CommandRun, TableName, command
from tablestore.cli.commands.changes.consumeoptions import ConsumeOptions, Delivery, Shown, TopicForm
from tablestore.cli.commands.tableread import Columns, FilterOption, Format, Limit, OutputFile
from tablestore.names import split_names
from tablestore.units import parse_time

app = typer.Typer()


FromSnapshot = Annotated[int | None, typer.Option("--from-snapshot", "-s", min=0, help="The changes after this snapshot; 0: all.")]
ToSnapshot = Annotated[int | None, typer.Option("--to-snapshot", min=1, help="Up to and with this one; else the newest.")]
Scan = Annotated[
    str | None,
    typer.Option("--scan", metavar="full|latest|from-timestamp", help="Begin with all rows, with what comes, or at a time."),
]
Timestamp = Annotated[str | None, typer.Option("--timestamp", metavar="TIME", help="Where --scan from-timestamp begins.")]
ConsumerName = Annotated[
    str | None,
    typer.Option(
        "--consumer",
        metavar="NAME",
        help="Keep how far this is in the table, and go on from there.",
        autocompletion=wordcompletion.consumer,
    ),
]
Follow = Annotated[bool, typer.Option("--follow", "-F", help="Wait for further snapshots; end with Ctrl-C.")]
AfterOnly = Annotated[bool, typer.Option("--after-only", help="Only what rows are afterwards: no -U, and nothing looked up.")]
SnapshotIds = Annotated[bool, typer.Option("--snapshot-ids", help="Add the snapshot of every change.")]
Gaps = Annotated[bool, typer.Option("--skip-gaps", help="Go on past snapshots without changes on record, such as overwrites.")]
Restart = Annotated[
    bool, typer.Option("--restart-at-gaps", help="At such a snapshot begin anew with all rows; a restart event comes first.")
]
ToTable = Annotated[str | None, typer.Option("--to", metavar="TABLE", help="Bring the changes into another table, each once.")]
ToFiles = Annotated[str | None, typer.Option("--to-files", metavar="FOLDER", help="Bring them into files of a folder, each once.")]
ToTopic = Annotated[str | None, typer.Option("--to-topic", metavar="TOPIC", help="Bring them into a Kafka topic, each once.")]
DeliveryName = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="Keep under this name how far the delivery is; else the table's uuid.")
]
TopicFormat = Annotated[TopicForm, typer.Option("--topic-format", help="What the messages are.")]
Brokers = Annotated[
    str | None,
    typer.Option("--brokers", metavar="HOST:PORT,...", envvar="TABLESTORE_KAFKA_BOOTSTRAP_SERVERS", help="Brokers to begin with."),
]


@command(
    app,
    "consume",
    "tablestore consume shop.orders --from-snapshot 3",
    'tablestore consume shop.orders --from-snapshot 3 --to-snapshot 9 --filter "price > 10" --json | jq ._row_kind',
    "tablestore consume shop.orders --scan full --consumer billing --follow --json",
    "tablestore consume shop.orders --to archive.orders --follow",
    "tablestore consume shop.orders --to-topic order-changes --brokers kafka:9092 --name warehouse",
)
def consume(
    session: CommandRun,
    name: TableName,
    from_snapshot: FromSnapshot = None,
    to_snapshot: ToSnapshot = None,
    scan: Scan = None,
    timestamp: Timestamp = None,
    consumer: ConsumerName = None,
    follow: Follow = False,
    columns: Columns = None,
    filter: FilterOption = None,
    after_only: AfterOnly = False,
    snapshot_ids: SnapshotIds = False,
    skip_gaps: Gaps = False,
    restart_at_gaps: Restart = False,
    limit: Limit = None,
    format: Format = None,
    output: OutputFile = None,
    to: ToTable = None,
    to_files: ToFiles = None,
    to_topic: ToTopic = None,
    job: DeliveryName = None,
    topic_format: TopicFormat = TopicForm.JSON,
    brokers: Brokers = None,
) -> None:
    """Print changes, oldest first: +I, -U, +U, -D in the column _row_kind.

    Between two snapshots (--from-snapshot, else from the earliest whose changes are there), or from a place on (--scan,
    --consumer), with --follow for ever. A named consumer is recorded batch by batch, behind what was printed.

    With --to, --to-files or --to-topic nothing is printed: the other table, the folder, or a topic beside the topic says how far
    it is, so each change is there once.

    Under --json an event is a line of its own: {"_event": "restart", ...} says that all rows come next and those before are to be
    dropped, {"_event": "schema", ...} that the columns were altered. Else it is noted on standard error.
    """
    if skip_gaps and restart_at_gaps:
        raise typer.BadParameter("does not go with --skip-gaps", param_hint="'--restart-at-gaps'")
    options = ConsumeOptions(
        from_snapshot=from_snapshot,
        to_snapshot=to_snapshot,
        snapshot_ids=snapshot_ids,
        scan=scan,
        timestamp=parse_time(timestamp) if timestamp is not None else None,
        consumer=consumer,
        follow=follow,
        columns=split_names(columns) if columns is not None else None,
        filter=filter,
        pairs=not after_only,
        gaps="skip" if skip_gaps else "restart" if restart_at_gaps else "raise",
    )
    shown = Shown(format=format, output=output, limit=limit)
    delivery = Delivery(
        table=to, folder=to_files, topic=to_topic, topic_format=topic_format, brokers=brokers, format=format, name=job
    )
    if delivery.target is None:
        delivery.refuse_options()
        shown.refuse_mixed(options)
        from tablestore.cli.commands.changes.printing import print_changes

        print_changes(session, name, options, shown)
    else:
        delivery.refuse_mixed(options, shown)
        from tablestore.cli.commands.changes.delivery import deliver

        deliver(session, name, options, delivery)
