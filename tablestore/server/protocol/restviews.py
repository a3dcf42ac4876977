"""Views of the protocol: kept where sessions of tablestore keep theirs, so each reads those of the other.

    query, comment, options, names of columns    as a session keeps them (:mod:`tablestore.environment.session.keptobjects`)
    fields, dialects                             besides: what the protocol says more. A session reads over them

A view of a session has no types of its columns, because those are its query's: it is answered without fields. A query of a dialect
that no session speaks is kept as one of Spark's.
"""

import json
from collections.abc import Mapping

from tablestore.catalog.definitions import DefinitionKind
from tablestore.catalog.identifier import Identifier
from tablestore.environment.session.keptobjects import VERSION, parsed_definition
from tablestore.errors import InvalidInputError, TablestoreError
from tablestore.format.paths import content_uuid
from tablestore.format.sealed import JsonObject
from tablestore.server.access.roles import Resource, Role
from tablestore.server.protocol.errorresponse import RequestRefused, ResourceType, bad_request, missing, name_conflict
from tablestore.server.protocol.exchange import Call, json_inside, json_items, understood
from tablestore.server.protocol.listpages import matching, page_of, readable
from tablestore.server.protocol.restschema import check_foreign_option, parse_columns
from tablestore.server.protocol.restservice import RestService
from tablestore.server.protocol.resttables import global_page
from tablestore.sql.sqldialect import SqlDialect
from tablestore.types.typestring import field_to_json

_VIEW = "view"


def list_views(service: RestService, call: Call) -> dict[str, object]:
    """A page of the views of a database."""
    names, token = page_of(_visible(service, call), call.query)
    return {"views": names, "nextPageToken": token}


def list_view_details(service: RestService, call: Call) -> dict[str, object]:
    """A page of the views of a database, each as :func:`get_view` answers; those that cannot be read are left out."""
    database = call.names["database"]
    names, token = page_of(_visible(service, call), call.query)
    details = readable(names, lambda name: _described(name, _definition(service, database, name)))
    return {"viewDetails": details, "nextPageToken": token}


def list_views_globally(service: RestService, call: Call) -> dict[str, object]:
    """A page of the views of all databases."""
    return global_page(service, call, "viewNamePattern", "views", lambda database: tuple(_names(service, database)))


def create_view(service: RestService, call: Call) -> None:
    """Keeps a view."""
    database, request = call.names["database"], call.json()
    service.check_database(database)
    identifier = _identifier(json_inside(request, "identifier"))
    if identifier.database != database:
        raise bad_request(f"expected the database of the path, {database!r}, found {identifier.database!r}")
    content = _content(identifier, json_inside(request, "schema"))
    if _text(service, database, identifier.table) is not None or service.catalog.table_exists(str(identifier)):
        raise name_conflict(ResourceType.VIEW, identifier.table, f"{identifier} exists; drop it first or choose another name")
    service.catalog.keep_definition(str(identifier), DefinitionKind.RELATION, _encoded(content))


def get_view(service: RestService, call: Call) -> dict[str, object]:
    """A view with its query in each dialect."""
    name = call.names["view"]
    return _described(name, _definition(service, call.names["database"], name))


def alter_view(service: RestService, call: Call) -> None:
    """Changes options, comment and dialects of a view, all or none."""
    database, name = call.names["database"], call.names["view"]
    content = dict(_definition(service, database, name).content)
    for change in json_items(call.json(), "changes"):
        _apply(content, change, name)
    service.catalog.keep_definition(f"{database}.{name}", DefinitionKind.RELATION, _encoded(content), replace=True)


def drop_view(service: RestService, call: Call) -> None:
    """Removes a view."""
    database, name = call.names["database"], call.names["view"]
    _definition(service, database, name)
    service.catalog.drop_definition(f"{database}.{name}", DefinitionKind.RELATION)


def rename_view(service: RestService, call: Call) -> None:
    """Gives a view another name, maybe in another database."""
    request = call.json()
    old, new = _identifier(json_inside(request, "source")), _identifier(json_inside(request, "destination"))
    call.check_may(Role.OWNER, Resource(old.database, old.table), ResourceType.VIEW)
    call.check_may(Role.OWNER, Resource(new.database), ResourceType.DATABASE)
    content = _definition(service, old.database, old.table).content
    service.check_database(new.database)
    if _text(service, new.database, new.table) is not None or service.catalog.table_exists(str(new)):
        raise name_conflict(ResourceType.VIEW, new.table, f"{new} exists; drop it first or choose another name")
    service.catalog.keep_definition(str(new), DefinitionKind.RELATION, _encoded(content))
    service.catalog.drop_definition(str(old), DefinitionKind.RELATION)


def _content(identifier: Identifier, schema: JsonObject) -> dict[str, object]:
    fields = parse_columns(schema, "fields")
    query, comment, options, dialects = understood(
        lambda: (schema.text("query"), schema.optional_text("comment"), schema.text_map("options"), schema.text_map("dialects"))
    )
    for key, value in options.items():
        check_foreign_option(key, value)
    return {
        "version": VERSION,
        "kind": _VIEW,
        "query": query,
        "dialect": SqlDialect.SPARK.value,
        "columns": [field.name for field in fields],
        "comment": comment,
        "catalog": None,
        "database": identifier.database,
        "options": dict(sorted(options.items())),
        "fields": [field_to_json(field) for field in fields],
        "dialects": dict(sorted(dialects.items())),
    }


def _apply(content: dict[str, object], change: JsonObject, view: str) -> None:
    options, dialects = _texts(content, "options"), _texts(content, "dialects")
    match action := understood(lambda: change.text("action")):
        case "setOption":
            key, value = understood(lambda: (change.text("key"), change.text("value")))
            check_foreign_option(key, value)
            options[key] = value
        case "removeOption":
            options.pop(understood(lambda: change.text("key")), None)
        case "updateComment":
            content["comment"] = understood(lambda: change.optional_text("comment"))
        case "addDialect" | "updateDialect":
            dialect, query = understood(lambda: (change.text("dialect"), change.text("query")))
            if action == "addDialect" and dialect in dialects:
                raise name_conflict(ResourceType.DIALECT, dialect, f"view {view} has a query in the dialect {dialect!r:.80}")
            if action == "updateDialect" and dialect not in dialects:
                raise missing(ResourceType.DIALECT, dialect, f"view {view} has no query in the dialect {dialect!r:.80}")
            dialects[dialect] = query
        case "dropDialect":
            dialect = understood(lambda: change.text("dialect"))
            if dialects.pop(dialect, None) is None:
                raise missing(ResourceType.DIALECT, dialect, f"view {view} has no query in the dialect {dialect!r:.80}")
        case _:
            raise bad_request(f"{change.name}: expected one of the actions of the protocol, found {action!r:.80}")
    content["options"], content["dialects"] = options, dialects


def _described(name: str, source: JsonObject) -> dict[str, object]:
    fields = source.content.get("fields")
    dialects = _texts(source.content, "dialects")
    return {
        "id": content_uuid(_encoded(source.content).encode()),
        "name": name,
        "schema": {
            "fields": fields if isinstance(fields, list) else [],
            "query": source.text("query"),
            "dialects": dialects,
            "comment": source.optional_text("comment"),
            "options": source.text_map("options"),
        },
        "owner": "",
        "createdAt": 0,
        "createdBy": "",
        "updatedAt": 0,
        "updatedBy": "",
    }


def _visible(service: RestService, call: Call) -> list[str]:
    database = call.names["database"]
    service.check_database(database)
    names = matching(_names(service, database), call.query.get("viewNamePattern"))
    return [name for name in names if call.principal.sees(Resource(database, name))]


def _names(service: RestService, database: str) -> list[str]:
    names = service.catalog.list_definitions(database, DefinitionKind.RELATION)
    return [name for name in names if _is_view(service, database, name)]


def _is_view(service: RestService, database: str, name: str) -> bool:
    """False for a table with a connector, and for what cannot be read."""
    try:
        _definition(service, database, name)
    except (RequestRefused, TablestoreError):
        return False
    return True


def _definition(service: RestService, database: str, name: str) -> JsonObject:
    text = _text(service, database, name)
    source = None if text is None else parsed_definition(f"{database}.{name}", text)
    if source is None or source.text("kind") != _VIEW:
        if not service.has_database(database):
            raise missing(ResourceType.DATABASE, database, f"there is no database {database!r:.140}")
        raise missing(ResourceType.VIEW, name, f"there is no view {database}.{name:.140}")
    return source


def _text(service: RestService, database: str, name: str) -> str | None:
    try:
        return service.catalog.find_definition(f"{database}.{name}", DefinitionKind.RELATION)
    except InvalidInputError:  # a name that no view has
        return None


def _identifier(source: JsonObject) -> Identifier:
    return Identifier(*understood(lambda: (source.text("database"), source.text("object"))))


def _texts(content: Mapping[str, object], key: str) -> dict[str, str]:
    value = content.get(key)
    return {str(name): str(text) for name, text in value.items()} if isinstance(value, dict) else {}


def _encoded(content: Mapping[str, object]) -> str:
    return json.dumps(dict(content), ensure_ascii=False, indent=2)
