"""Tags of the protocol. Times are milliseconds, how long a tag is kept is a text such as ``1 d``."""

from tablestore.errors import NotFoundError, TablestoreError
from tablestore.options import parse_duration
from tablestore.server.protocol.errorresponse import ResourceType, bad_request, missing
from tablestore.server.protocol.exchange import Call, json_flag, understood
from tablestore.server.protocol.listpages import matching, page_of
from tablestore.server.protocol.restservice import RestService
from tablestore.server.protocol.restsnapshots import tag_json
from tablestore.store.history.tags import Tags


def list_tags(service: RestService, call: Call) -> dict[str, object]:
    """A page of the tags of a table."""
    names = Tags(service.table(call.names).context.files).names()
    names_page, token = page_of(matching(names, call.query.get("tagNamePrefix")), call.query)
    return {"tags": names_page, "nextPageToken": token}


def create_tag(service: RestService, call: Call) -> None:
    """Keeps a snapshot, or the newest one, under a name."""
    request = call.json()
    name, snapshot_id, retained = understood(
        lambda: (request.text("tagName"), request.optional_integer("snapshotId"), request.optional_text("timeRetained"))
    )
    table = service.table(call.names)
    try:
        table.create_tag(
            name,
            snapshot_id,
            retain=None if retained is None else _millis(retained),
            ignore_if_exists=json_flag(request, "ignoreIfExists", default=False),
        )
    except NotFoundError as error:
        if error.kind != "no-such-snapshot":
            raise
        raise missing(ResourceType.SNAPSHOT, str(snapshot_id or "LATEST"), error.message) from error


def get_tag(service: RestService, call: Call) -> dict[str, object]:
    """A tag with its snapshot."""
    context, name = service.table(call.names).context, call.names["tag"]
    tag = Tags(context.files).find(name)
    if tag is None:
        raise missing(ResourceType.TAG, name, f"there is no tag {name!r:.140}")
    return {
        "tagName": name,
        "snapshot": tag_json(context, name),
        "tagCreateTime": tag.create_time_millis,
        "tagTimeRetained": None if tag.retained_millis is None else _java_duration(tag.retained_millis),
    }


def delete_tag(service: RestService, call: Call) -> None:
    """Deletes a tag."""
    service.table(call.names).delete_tag(call.names["tag"])


def _millis(text: str) -> int:
    try:
        return parse_duration(text)
    except TablestoreError as error:
        raise bad_request(f"expected a time such as '7 d' or '12 h' under 'timeRetained', found {text!r:.80}") from error
    except ValueError as error:
        raise bad_request(f"expected a time such as '7 d' or '12 h' under 'timeRetained', found {text!r:.80}") from error


def _java_duration(millis: int) -> str:
    """The text that java.time.Duration prints: ``PT24H``, ``PT1M30S``."""
    seconds, rest = divmod(millis, 1000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    fraction = f".{rest:03d}".rstrip("0") if rest else ""
    parts = [f"{hours}H" if hours else "", f"{minute}M" if minute else "", f"{second}{fraction}S" if second or rest else ""]
    return "PT" + ("".join(parts) or "0S")
