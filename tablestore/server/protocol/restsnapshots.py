"""Snapshots of the protocol: the newest with the figures of its table, one by its version, and all that are retained.

A snapshot is answered as its file is, with every key that its writer gave it.
"""

from dataclasses import replace

from tablestore.errors import NotFoundError
from tablestore.format.limits import parse_json_bounded
from tablestore.format.paths import tag_path
from tablestore.format.sealed import JsonObject
from tablestore.format.snapshot import Snapshot
from tablestore.format.tagfile import CREATE_TIME_KEY, TIME_RETAINED_KEY
from tablestore.names import is_number
from tablestore.server.protocol.errorresponse import ResourceType, bad_request, missing, unavailable
from tablestore.server.protocol.exchange import Call, json_inside, understood
from tablestore.server.protocol.listpages import number_page
from tablestore.server.protocol.restaccess import check_sees_all
from tablestore.server.protocol.restservice import RestService, TableFigures
from tablestore.store.commit.alterschema import publish_schema
from tablestore.store.context import TableContext
from tablestore.store.filesums import summed_files
from tablestore.store.history.tags import Tags

_EARLIEST, _LATEST = "EARLIEST", "LATEST"
_MOST_ID = 2**63 - 1


def get_snapshot(service: RestService, call: Call) -> dict[str, object]:
    """The newest snapshot, with the records, bytes and files of the table."""
    context = service.table(call.names).context
    latest = context.snapshots.latest()
    if latest is None:
        raise _no_snapshot(call.names["table"], _LATEST)
    key = (context.files.root_uri, latest.id, latest.uuid or latest.delta_manifest_list)
    figures = service.figures.find(key, lambda: _figures(context, latest))
    return {
        "snapshot": {
            "snapshot": snapshot_json(context, latest.id),
            "recordCount": latest.total_record_count,
            "fileSizeInBytes": figures.file_size_bytes,
            "fileCount": figures.file_count,
            "lastFileCreationTime": figures.newest_millis,
        }
    }


def _figures(context: TableContext, snapshot: Snapshot) -> TableFigures:
    sums = summed_files(context.manifests, snapshot, "partition")
    return TableFigures(
        file_count=sum(group.files for group in sums),
        file_size_bytes=sum(group.size_bytes for group in sums),
        newest_millis=max((group.newest_millis or 0 for group in sums), default=0),
    )


def get_snapshot_version(service: RestService, call: Call) -> dict[str, object]:
    """The snapshot of a version: an id, a tag, EARLIEST or LATEST."""
    context, version = service.table(call.names).context, call.names["version"]
    if version in (_EARLIEST, _LATEST):
        ids = context.snapshots.live_ids()
        if not ids:
            raise _no_snapshot(call.names["table"], version)
        return {"snapshot": snapshot_json(context, ids[0] if version == _EARLIEST else ids[-1])}
    if is_number(version):
        return {"snapshot": snapshot_json(context, _live_id(context, int(version), call.names["table"]))}
    tag = Tags(context.files).find(version)
    if tag is None:
        raise _no_snapshot(call.names["table"], version)
    return {"snapshot": tag_json(context, version)}


def list_snapshots(service: RestService, call: Call) -> dict[str, object]:
    """A page of the retained snapshots, oldest first."""
    context = service.table(call.names).context
    ids, token = number_page(context.snapshots.live_ids(), call.query)
    snapshots = []
    for snapshot_id in ids:
        try:
            snapshots.append(snapshot_json(context, snapshot_id))
        except NotFoundError:  # it has expired meanwhile
            continue
    return {"snapshots": snapshots, "nextPageToken": token}


def rollback_table(service: RestService, call: Call) -> None:
    """Gives a table the rows of a snapshot or tag, by a commit forward: nothing is removed from its history."""
    check_sees_all(service, call, "a return to other rows")
    request = call.json()
    instant = json_inside(request, "instant")
    kind = understood(lambda: instant.text("type"))
    newest = understood(lambda: request.optional_integer("fromSnapshot"))
    table = service.table(call.names)
    if kind == "snapshot":
        snapshot_id = understood(lambda: instant.integer("snapshotId"))
        table.rollback_to(_live_id(table.context, snapshot_id, call.names["table"]), newest=newest)
    elif kind == "tag":
        name = understood(lambda: instant.text("tagName"))
        if Tags(table.context.files).find(name) is None:
            raise missing(ResourceType.TAG, name, f"table {table.name} has no tag {name!r:.140}")
        table.rollback_to(tag=name, newest=newest)
    else:
        raise bad_request(f"{instant.name}: expected snapshot or tag under 'type', found {kind!r:.80}")


def rollback_schema(service: RestService, call: Call) -> None:
    """Gives a table an older schema again, by a new one of the same content, while nothing was written with those after it."""
    request = call.json()
    schema_id = understood(lambda: request.integer("schemaId"))
    table = service.table(call.names)
    context = table.context
    if schema_id not in context.schemas.ids():
        raise missing(ResourceType.TABLE, call.names["table"], f"table {table.name} has no schema {schema_id}")
    newest = context.schemas.refreshed_latest()
    if schema_id == newest.id:
        return
    tags = (tag.snapshot for tag in Tags(context.files).all())
    if later := [snapshot for snapshot in (*context.snapshots.tail(), *tags) if snapshot.schema_id > schema_id]:
        raise bad_request(
            f"table {table.name} has rows of schema {later[0].schema_id}, in snapshot {later[0].id}: it cannot go back to schema "
            f"{schema_id}; alter it to what it is to be"
        )
    older = context.schemas.read(schema_id)
    restored = replace(
        older,
        id=newest.id + 1,
        highest_field_id=newest.highest_field_id,
        time_millis=service.clock.now_ms(),
        version=newest.version,
    )
    if not publish_schema(context, restored, newest):
        raise unavailable(f"table {table.name} was altered meanwhile; look at it, and repeat")


def snapshot_json(context: TableContext, snapshot_id: int) -> dict[str, object]:
    """The content of a snapshot's file, which is known to be one. Raises NotFoundError."""
    context.snapshots.read(snapshot_id)
    name = f"snapshot {snapshot_id}"
    return JsonObject(parse_json_bounded(context.snapshots.read_file(snapshot_id), name), name).content


def tag_json(context: TableContext, tag: str) -> dict[str, object]:
    """The content of the snapshot that a tag keeps."""
    name = f"tag {tag}"
    content = JsonObject(parse_json_bounded(context.files.read(tag_path(tag)), name), name).content
    return {key: value for key, value in content.items() if key not in (CREATE_TIME_KEY, TIME_RETAINED_KEY)}


def _live_id(context: TableContext, snapshot_id: int, table: str) -> int:
    if not 0 < snapshot_id <= _MOST_ID or snapshot_id not in context.snapshots.live_ids():
        raise _no_snapshot(table, str(snapshot_id))
    return snapshot_id


def _no_snapshot(table: str, version: str) -> Exception:
    return missing(ResourceType.SNAPSHOT, version, f"table {table:.140} has no snapshot {version:.140}")
