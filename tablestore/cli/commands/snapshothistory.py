"""``tablestore snapshot``: the states of a table: list them, look at one, compare two, go back to one."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

import tablestore as ts
from tablestore.cli import wordcompletion
from tablestore.cli.command import CommandRun, TableName, Yes, command
from tablestore.cli.text.render import OutputColumn
from tablestore.format.writecounts import NOTHING_DONE

if TYPE_CHECKING:
    from tablestore.format.manifest.manifestfile import ManifestEntry

app = typer.Typer(no_args_is_help=True, help="Snapshots: the states of a table, one for each commit.")

SnapshotArgument = Annotated[
    int, typer.Argument(metavar="SNAPSHOT", min=1, help="Id of the snapshot.", autocompletion=wordcompletion.snapshot)
]

_COLUMNS = (
    OutputColumn("id", "id", "count"),
    OutputColumn("time", "when", "time"),
    OutputColumn("kind", "kind"),
    OutputColumn("operation", "operation"),
    OutputColumn("did", "what it did"),
    OutputColumn("row_change", "more rows", "count"),
    OutputColumn("rows", "rows", "count"),
    OutputColumn("delta_records", "records written", "count"),
    OutputColumn("total_records", "records in files", "count"),
    OutputColumn("changelog_records", "changes", "count"),
    OutputColumn("schema_id", "schema", "count"),
    OutputColumn("user", "by"),
    OutputColumn("tags", "tags", "names"),
)
# A terminal of 100 columns has room for these.
_NARROW = (
    OutputColumn("id", "id", "count"),
    OutputColumn("time", "when", "time"),
    OutputColumn("what", "what"),
    OutputColumn("row_change", "changed", "count"),
    OutputColumn("rows", "rows", "count"),
    OutputColumn("total_records", "stored", "count"),
    OutputColumn("user", "by", "id"),
    OutputColumn("tags", "tags", "names"),
)
_NONE = "No snapshots: nothing was written yet."
_FILES = (
    OutputColumn("files_added", "files added", "count"),
    OutputColumn("bytes_added", "bytes added", "bytes"),
    OutputColumn("files_removed", "files removed", "count"),
    OutputColumn("bytes_removed", "bytes removed", "bytes"),
)
_DIFFERENCE = (
    OutputColumn("from_snapshot", "from", "count"),
    OutputColumn("to_snapshot", "to", "count"),
    OutputColumn("commits", "commits", "count"),
    *_FILES,
    OutputColumn("records", "records in files", "text"),
    OutputColumn("schemas", "schemas", "text"),
)


@command(app, "list", "tablestore snapshot list shop.orders --limit 10", "tablestore snapshot list shop.orders --wide")
def list_snapshots(
    session: CommandRun,
    name: TableName,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Only the newest so many.")] = None,
    wide: Annotated[bool, typer.Option("--wide", help="All columns and whole ids on a terminal too.")] = False,
) -> None:
    """List the retained snapshots, newest first."""
    table = session.table(name)
    tags: dict[int, list[str]] = {}
    for tag in table.tags():
        tags.setdefault(tag.snapshot.id, []).append(tag.name)
    records = [{**_record(snapshot), "tags": tags.get(snapshot.id, [])} for snapshot in reversed(table.snapshots())]
    shown = records[:limit]
    if session.out.is_terminal and not wide:
        lines = [{**record, "what": record["operation"] or record["kind"]} for record in shown]
        session.out.listing("snapshots", _NARROW, lines, empty=_NONE)
    else:
        session.out.listing("snapshots", _COLUMNS, shown, empty=_NONE)


@command(app, "show", "tablestore snapshot show shop.orders 7")
def show_snapshot(session: CommandRun, name: TableName, snapshot_id: SnapshotArgument) -> None:
    """Show one snapshot with the files of its metadata and its properties."""
    context = session.table(name).context
    snapshot = context.shown(context.snapshots.live(snapshot_id))
    document: dict[str, Any] = {
        **_record(snapshot),
        "identifier": snapshot.commit_identifier,
        "uuid": snapshot.uuid,
        "base_manifest_list": snapshot.base_manifest_list,
        "delta_manifest_list": snapshot.delta_manifest_list,
        "changelog_manifest_list": snapshot.changelog_manifest_list,
        "index_manifest": snapshot.index_manifest,
        "statistics": snapshot.statistics,
        "watermark": snapshot.watermark,
        "written_by": snapshot.writer_version,
    }
    others = [OutputColumn(key, key.replace("_", " ")) for key in document if key not in _record(snapshot)]
    columns = [*_COLUMNS[:-1], *_FILES, *others]
    if session.out.as_json:
        session.out.document({**session.out.record(columns, document), "properties": dict(snapshot.properties)})
        return
    session.out.facts(document, columns)
    for key, value in sorted(snapshot.properties.items()):
        session.out.say(f"property {key} = {value}")


@command(app, "diff", "tablestore snapshot diff shop.orders 3 7")
def diff_snapshots(
    session: CommandRun,
    name: TableName,
    from_snapshot: Annotated[
        int, typer.Argument(metavar="FROM", min=1, help="The older snapshot.", autocompletion=wordcompletion.snapshot)
    ],
    to_snapshot: Annotated[
        int, typer.Argument(metavar="TO", min=1, help="The newer snapshot.", autocompletion=wordcompletion.snapshot)
    ],
) -> None:
    """Compare the files of two snapshots. The rows that changed between them are shown by 'consume'."""
    table = session.table(name)
    context = table.context
    context.check_sees_all("a comparison of its files")
    first, last = context.snapshots.live(from_snapshot), context.snapshots.live(to_snapshot)
    before = {entry.identity: entry for entry in context.manifests.live(first)}
    after = {entry.identity: entry for entry in context.manifests.live(last)}
    added = [entry for identity, entry in after.items() if identity not in before]
    removed = [entry for identity, entry in before.items() if identity not in after]
    document = {
        "from_snapshot": from_snapshot,
        "to_snapshot": to_snapshot,
        "commits": abs(to_snapshot - from_snapshot),
        "files_added": len(added),
        "bytes_added": _size(added),
        "files_removed": len(removed),
        "bytes_removed": _size(removed),
        "records": [first.total_record_count, last.total_record_count],
        "schemas": [first.schema_id, last.schema_id],
    }
    if session.out.as_json:
        session.out.document(document)
        return
    changes = {
        "records": f"{first.total_record_count:,} -> {last.total_record_count:,}",
        "schemas": f"{first.schema_id} -> {last.schema_id}",
    }
    session.out.facts({**document, **changes}, _DIFFERENCE)


@command(
    app,
    "rollback",
    "tablestore snapshot rollback shop.orders 3 --yes",
    "tablestore snapshot rollback shop.orders --tag before-import --yes",
)
def rollback(
    session: CommandRun,
    name: TableName,
    snapshot_id: Annotated[
        int | None, typer.Argument(metavar="[SNAPSHOT]", min=1, help="Id of the snapshot.", autocompletion=wordcompletion.snapshot)
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", "-t", help="Go back to this tag.", autocompletion=wordcompletion.tag)] = None,
    yes: Yes = False,
) -> None:
    """Make the table what it was, by a new commit: nothing is taken out of the history."""
    if (snapshot_id is None) == (tag is None):
        raise typer.BadParameter("give a snapshot or a --tag", param_hint="'SNAPSHOT'")
    table = session.table(name)
    target = table.context.snapshots.live(snapshot_id) if snapshot_id is not None else table.context.snapshots.tagged(str(tag))
    latest = table.context.snapshots.latest()
    plan = {"table": table.name, "to_snapshot": target.id, "latest_snapshot": latest.id if latest else None}
    undone = latest.id - target.id if latest else 0
    sentence = f"Takes back what {undone} commit(s) after snapshot {target.id} changed in {table.name}; they stay in its history."
    session.confirm(yes, sentence, plan)
    snapshot = table.rollback_to(snapshot_id, tag=tag)
    counts = asdict(snapshot.counts if snapshot else NOTHING_DONE)
    landed = snapshot.id if snapshot else None
    document = {"table": table.name, "snapshot_id": landed, "to_snapshot": target.id, **counts, "seconds": session.seconds}
    outcome = f"{table.name} is what it was at snapshot {target.id}"
    session.out.done(document, f"{outcome} (new snapshot {snapshot.id})." if snapshot else f"{outcome} already: nothing differs.")


def _record(snapshot: "ts.Snapshot") -> dict[str, Any]:
    return {
        "id": snapshot.id,
        "time": snapshot.time_millis,
        "kind": str(snapshot.commit_kind),
        "operation": snapshot.operation,
        "row_change": snapshot.row_change,
        "rows": snapshot.rows,
        "delta_records": snapshot.delta_record_count,
        "total_records": snapshot.total_record_count,
        "changelog_records": snapshot.changelog_record_count,
        "schema_id": snapshot.schema_id,
        "user": snapshot.commit_user,
        "did": snapshot.counts.text or "unknown",
        **asdict(snapshot.counts),
    }


def _size(entries: "Iterable[ManifestEntry]") -> int:
    return sum(entry.file.file_size for entry in entries)
