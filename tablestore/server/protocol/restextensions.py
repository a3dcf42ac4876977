"""Answers what tablestore's own client asks beyond the protocol, so that a catalog of metastore = rest does all that one does.

    …/tables/{table}/commit-turn                    a client that is about to commit waits for its turn, before it builds
    …/tables/{table}/publish, exchange, abandon     a table that was made elsewhere in the warehouse gets its name, or a place
    …/definitions/{kind}/{object}                   views, functions and tables with a connector, as their text
    ?own-log=true                                   of creations, removals and renamings: the client sees to the table's log itself

A definition is text to a catalog; who may keep one may make a view.
"""

from tablestore.catalog.definitions import DefinitionKind, KeepsDefinitions
from tablestore.catalog.identifier import Identifier
from tablestore.errors import UnsupportedError
from tablestore.format.limits import json_within_limits
from tablestore.format.paths import CREATIONS_DIR
from tablestore.format.schemafile import decode_schema
from tablestore.format.sealed import JsonObject
from tablestore.io.filestore import check_path
from tablestore.server.access.roles import Resource
from tablestore.server.protocol.errorresponse import RequestRefused, ResourceType, bad_request, missing
from tablestore.server.protocol.exchange import Call, json_flag, understood
from tablestore.server.protocol.restservice import RestService
from tablestore.store.schemas import Schemas
from tablestore.store.settings import check_writable, table_settings
from tablestore.table.catalog import tools_of
from tablestore.types.schema import TableSchema

_DESCRIBED = ("fields", "partitionKeys", "primaryKeys", "options", "comment")
_JOB_PARTS = 3
_OWN_LOG = "own-log"
"""Stored in clients, never renamed."""


def owns_log(call: Call) -> bool:
    """True if the client sees to the log of the table itself."""
    return call.query.get(_OWN_LOG) == "true"


def described_schema(service: RestService, schema: JsonObject, name: str) -> TableSchema:
    """The first schema of a table as our client has described it, with nothing added. Raises RequestRefused, UnsupportedError."""
    content = {
        "version": 3,
        "id": 0,
        "highestFieldId": _highest_id(schema.content.get("fields")),
        "timeMillis": service.clock.now_ms(),
        **{key: value for key, value in schema.content.items() if key in _DESCRIBED},
    }
    definition = understood(lambda: decode_schema(json_within_limits(content, "the schema"), "schema-0"))
    check_writable(definition, table_settings(definition), name)
    return definition


def _highest_id(value: object) -> int:
    """The highest id of columns and nested fields, as their JSON has them."""
    highest, left = -1, [value]
    while left:
        match left.pop():
            case dict() as part:
                number = part.get("id")
                highest = max(highest, number if isinstance(number, int) and not isinstance(number, bool) else -1)
                left += part.values()
            case list() as part:
                left += part
    return highest


def publish_table(service: RestService, call: Call) -> None:
    """Gives a table that lies in a directory of the warehouse its name."""
    tools_of(service.catalog).meta.publish_table(_identifier(call), _directory(call))


def exchange_table(service: RestService, call: Call) -> None:
    """Lets a table and the one in a directory of the warehouse change places."""
    request, directory = call.json(), _directory(call)
    table_uuid = understood(lambda: request.optional_text("tableUuid"))
    meta = tools_of(service.catalog).meta
    if not Schemas(meta.files.at(directory)).ids():
        raise missing(ResourceType.TABLE, directory, f"no table lies in {directory!r:.200}")
    meta.exchange_table(_identifier(call), directory, table_uuid=table_uuid)


def abandon_arrival(service: RestService, call: Call) -> None:
    """Removes the copies that a dead publication has left."""
    tools_of(service.catalog).meta.abandon_arrival(_identifier(call), _directory(call))


def list_definitions(service: RestService, call: Call) -> dict[str, object]:
    """The names of the definitions of a kind that the caller sees."""
    database = call.names["database"]
    names = _keeping(service).list_definitions(database, _kind(call))
    return {"names": [name for name in names if call.principal.sees(Resource(database, name))]}


def get_definition(service: RestService, call: Call) -> dict[str, object]:
    """The text of a definition."""
    text = _keeping(service).find_definition(_defined(call), _kind(call))
    if text is None:
        raise _missing(call)
    return {"text": text}


def keep_definition(service: RestService, call: Call) -> None:
    """Keeps a definition."""
    request = call.json()
    text, replaces = understood(lambda: request.text("text")), json_flag(request, "replace", default=False)
    _keeping(service).keep_definition(_defined(call), _kind(call), text, replace=replaces)


def drop_definition(service: RestService, call: Call) -> None:
    """Drops a definition."""
    if not _keeping(service).drop_definition(_defined(call), _kind(call)):
        raise _missing(call)


def _keeping(service: RestService) -> KeepsDefinitions:
    meta = tools_of(service.catalog).meta
    if not isinstance(meta, KeepsDefinitions):
        raise UnsupportedError("the catalog of this service keeps no views and no functions", kind="no-definitions")
    return meta


def _kind(call: Call) -> DefinitionKind:
    try:
        return DefinitionKind(call.names["kind"])
    except ValueError:
        kinds = ", ".join(kind.value for kind in DefinitionKind)
        raise bad_request(f"expected a kind of definitions ({kinds}), found {call.names['kind']!r:.40}") from None


def _defined(call: Call) -> Identifier:
    return Identifier(call.names["database"], call.names["object"])


def _missing(call: Call) -> RequestRefused:
    name = _defined(call)
    return missing(ResourceType.DEFINITION, name.table, f"there is no definition of {name} of the kind {_kind(call).value}")


def _identifier(call: Call) -> Identifier:
    return Identifier(call.names["database"], call.names["table"])


def _directory(call: Call) -> str:
    """The directory in the body in which a job makes a table. Raises RequestRefused for every other place of the warehouse."""
    request = call.json()
    directory = understood(lambda: request.text("directory"))
    check_path(directory)
    parts = directory.split("/")
    if len(parts) != _JOB_PARTS or parts[0] != CREATIONS_DIR or any(part.startswith(".") for part in parts):
        raise bad_request(f"expected a directory {CREATIONS_DIR}/<job>/<table>, of a table in the making, found {directory!r:.200}")
    return directory
