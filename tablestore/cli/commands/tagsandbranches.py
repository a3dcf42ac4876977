"""``tablestore tag``, ``branch`` and ``consumer``: names that keep snapshots."""

from typing import Annotated

import typer

from tablestore.cli import wordcompletion
from tablestore.cli.command import CommandRun, TableName, Yes, command
from tablestore.cli.text.render import OutputColumn
from tablestore.options import parse_duration

tag_app = typer.Typer(no_args_is_help=True, help="Tags: snapshots that are kept under a name.")
branch_app = typer.Typer(no_args_is_help=True, help="Branches: further histories of a table.")
consumer_app = typer.Typer(no_args_is_help=True, help="Consumers: how far the readers of changes are.")

TagName = Annotated[str, typer.Argument(metavar="TAG", help="Name of the tag.", autocompletion=wordcompletion.tag)]
BranchName = Annotated[str, typer.Argument(metavar="BRANCH", help="Name of the branch.", autocompletion=wordcompletion.branch)]
ConsumerName = Annotated[
    str, typer.Argument(metavar="CONSUMER", help="Name of the consumer.", autocompletion=wordcompletion.consumer)
]
AtSnapshot = Annotated[
    int | None,
    typer.Option("--snapshot", "-s", min=1, help="This snapshot; else the newest.", autocompletion=wordcompletion.snapshot),
]

_TAGS = (
    OutputColumn("name", "tag"),
    OutputColumn("snapshot_id", "snapshot", "count"),
    OutputColumn("snapshot_time", "of", "time"),
    OutputColumn("created", "created", "time"),
    OutputColumn("expires", "expires", "time"),
    OutputColumn("records", "records stored", "count"),
)
_BRANCHES = (
    OutputColumn("name", "branch"),
    OutputColumn("created_from_snapshot", "from snapshot", "count"),
    OutputColumn("created_from_tag", "from tag"),
    OutputColumn("latest_snapshot", "newest snapshot", "count"),
)
_CONSUMERS = (OutputColumn("name", "consumer"), OutputColumn("next_snapshot", "next snapshot", "count"))


@command(tag_app, "list", "tablestore tag list shop.orders")
def list_tags(session: CommandRun, name: TableName) -> None:
    """List the tags in the order of their snapshots."""
    records = [
        {
            "name": tag.name,
            "snapshot_id": tag.snapshot.id,
            "snapshot_time": tag.snapshot.time_millis,
            "created": tag.create_time_millis,
            "expires": None
            if tag.retained_millis is None or tag.create_time_millis is None
            else tag.create_time_millis + tag.retained_millis,
            "records": tag.snapshot.total_record_count,
        }
        for tag in session.table(name).tags()
    ]
    session.out.listing("tags", _TAGS, records, empty="No tags.")


@command(
    tag_app,
    "create",
    "tablestore tag create shop.orders before-import",
    "tablestore tag create shop.orders v1 -s 7 --retain '30 d'",
)
def create_tag(
    session: CommandRun,
    name: TableName,
    tag: TagName,
    snapshot: AtSnapshot = None,
    retain: Annotated[str | None, typer.Option("--retain", metavar="DURATION", help="Let expiry take it after this time.")] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="An existing one is left as it is.")] = False,
) -> None:
    """Keep a snapshot under a name: expiry leaves it alone."""
    duration = parse_duration(retain) if retain is not None else None
    created_tag = session.table(name).create_tag(tag, snapshot, retain=duration, ignore_if_exists=if_not_exists)
    document = {"tag": created_tag.name, "snapshot_id": created_tag.snapshot.id}
    session.out.done(document, f"Tag {created_tag.name} keeps snapshot {created_tag.snapshot.id}.")


@command(tag_app, "rename", "tablestore tag rename shop.orders v1 release-1")
def rename_tag(
    session: CommandRun,
    name: TableName,
    tag: TagName,
    new_name: Annotated[str, typer.Argument(metavar="NEW_NAME", help="Its new name.")],
) -> None:
    """Give a tag another name."""
    session.table(name).rename_tag(tag, new_name)
    session.out.done({"renamed": tag, "to": new_name}, f"Tag {tag} is now {new_name}.")


@command(tag_app, "delete", "tablestore tag delete shop.orders before-import --yes")
def delete_tag(session: CommandRun, name: TableName, tag: TagName, yes: Yes = False) -> None:
    """Delete a tag, and the files that only it kept."""
    table = session.table(name)
    snapshot = table.context.snapshots.tagged(tag)
    plan = {"table": table.name, "tag": tag, "snapshot_id": snapshot.id}
    is_retained = snapshot.id in table.context.snapshots.live_ids()
    consequence = "which stays until it expires" if is_retained else "which nothing else keeps: its rows can be read no more"
    session.confirm(yes, f"Deletes tag {tag} of {table.name} on snapshot {snapshot.id}, {consequence}.", plan)
    table.delete_tag(tag)
    session.out.done({"deleted": tag, "snapshot_id": snapshot.id}, f"Deleted tag {tag}.")


@command(branch_app, "list", "tablestore branch list shop.orders")
def list_branches(session: CommandRun, name: TableName) -> None:
    """List the branches, without the table itself."""
    records = [{column.key: getattr(branch, column.key) for column in _BRANCHES} for branch in session.table(name).branches()]
    session.out.listing("branches", _BRANCHES, records, empty="No branches.")


@command(
    branch_app,
    "create",
    "tablestore branch create shop.orders trial",
    "tablestore branch create shop.orders trial --tag before-import",
)
def create_branch(
    session: CommandRun,
    name: TableName,
    branch: BranchName,
    snapshot: AtSnapshot = None,
    tag: Annotated[str | None, typer.Option("--tag", "-t", help="Begin at this tag.", autocompletion=wordcompletion.tag)] = None,
) -> None:
    """Begin a branch. It is read and written as the table 'database.table$branch_NAME'."""
    created_branch = session.table(name).create_branch(branch, tag=tag, snapshot_id=snapshot)
    document = {
        "branch": created_branch.name,
        "created_from_snapshot": created_branch.created_from_snapshot,
        "created_from_tag": created_branch.created_from_tag,
    }
    session.out.done(
        document,
        f"Branch {created_branch.name} begins at snapshot {created_branch.created_from_snapshot}: use "
        f"'{name}$branch_{created_branch.name}'.",
    )


@command(branch_app, "delete", "tablestore branch delete shop.orders trial --yes")
def delete_branch(session: CommandRun, name: TableName, branch: BranchName, yes: Yes = False) -> None:
    """Delete a branch with what was written to it."""
    from tablestore.store.history.references import BranchMetadata, branch_directories

    table = session.table(name)
    files = table.context.main_files
    if branch not in branch_directories(files):
        table.branch(branch)
    # Also one that lost its schema, and so cannot be opened.
    commits = len(BranchMetadata(files, branch).snapshots.live_ids())
    plan = {"table": table.name, "branch": branch, "snapshots": commits}
    session.confirm(yes, f"Deletes branch {branch} of {table.name} with its {commits} snapshot(s).", plan)
    table.delete_branch(branch)
    session.out.done({"deleted": branch}, f"Deleted branch {branch}.")


@command(branch_app, "fast-forward", "tablestore branch fast-forward shop.orders trial --yes")
def fast_forward(
    session: CommandRun,
    name: TableName,
    branch: BranchName,
    discard_newer: Annotated[
        bool, typer.Option("--discard-newer", help="Also if the table went on since: what it got is taken back.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Make the table what its branch is, by a new commit."""
    table = session.table(name)
    newest = table.branch(branch).snapshots()[-1:]
    plan = {"table": table.name, "branch": branch, "branch_snapshot": newest[0].id if newest else None}
    session.confirm(yes, f"Makes {table.name} what its branch {branch} is.", plan)
    snapshot = table.fast_forward(branch, discard_newer=discard_newer)
    document = {"table": table.name, "branch": branch, "snapshot_id": snapshot.id if snapshot else None}
    session.out.done(
        document, f"{table.name} is what {branch} is{f' (new snapshot {snapshot.id})' if snapshot else ': nothing differs'}."
    )


@command(consumer_app, "list", "tablestore consumer list shop.orders")
def list_consumers(session: CommandRun, name: TableName) -> None:
    """List the named consumers: expiry keeps what they still have to read."""
    records = [{"name": consumer.id, "next_snapshot": consumer.next_snapshot} for consumer in session.table(name).consumers()]
    session.out.listing("consumers", _CONSUMERS, records, empty="No consumers.")


@command(consumer_app, "reset", "tablestore consumer reset shop.orders billing --next 12 --yes")
def reset_consumer(
    session: CommandRun,
    name: TableName,
    consumer: ConsumerName,
    next_snapshot: Annotated[int, typer.Option("--next", min=1, help="The snapshot whose changes it reads next.")],
    yes: Yes = False,
) -> None:
    """Let a consumer go on elsewhere, whatever it has read before."""
    table = session.table(name)
    plan = {"table": table.name, "consumer": consumer, "next_snapshot": next_snapshot}
    session.confirm(yes, f"Lets consumer {consumer} of {table.name} go on with snapshot {next_snapshot}.", plan)
    table.reset_consumer(consumer, next_snapshot)
    session.out.done({"consumer": consumer, "next_snapshot": next_snapshot}, f"{consumer} goes on with snapshot {next_snapshot}.")


@command(consumer_app, "delete", "tablestore consumer delete shop.orders billing --yes")
def delete_consumer(session: CommandRun, name: TableName, consumer: ConsumerName, yes: Yes = False) -> None:
    """Forget a consumer, so that it holds nothing back."""
    table = session.table(name)
    session.confirm(yes, f"Forgets how far consumer {consumer} of {table.name} is.", {"table": table.name, "consumer": consumer})
    was_deleted = table.delete_consumer(consumer)
    session.out.done(
        {"deleted": consumer if was_deleted else None},
        f"Forgot {consumer}." if was_deleted else f"There is no consumer {consumer}.",
    )
