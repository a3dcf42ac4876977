"""Databases of the protocol. Their properties are kept as a definition of the database, which tables and views know nothing of."""

import json

from tablestore.catalog.definitions import DefinitionKind
from tablestore.catalog.identifier import database_directory
from tablestore.errors import NotFoundError
from tablestore.format.limits import parse_json_bounded
from tablestore.format.paths import content_uuid
from tablestore.format.sealed import JsonObject
from tablestore.redaction import is_telling
from tablestore.server.access.roles import Resource
from tablestore.server.protocol.errorresponse import bad_request
from tablestore.server.protocol.exchange import Call, understood
from tablestore.server.protocol.listpages import matching, page_of
from tablestore.server.protocol.restservice import RestService, location_of

# Stored, never renamed.
_PROPERTIES = "properties"
_VERSION = 1
_COMMENT, _OWNER = "comment", "owner"


def list_databases(service: RestService, call: Call) -> dict[str, object]:
    """A page of the databases that the caller sees."""
    names = [name for name in service.catalog.list_databases() if call.principal.sees(Resource(name))]
    names, token = page_of(matching(names, call.query.get("databaseNamePattern")), call.query)
    return {"databases": names, "nextPageToken": token}


def create_database(service: RestService, call: Call) -> None:
    """Creates a database with its properties."""
    request = call.json()
    name = understood(lambda: request.text("name"))
    options = understood(lambda: request.text_map("options"))
    _check_properties(options)
    service.catalog.create_database(name)
    if options:
        _keep(service, name, options)


def get_database(service: RestService, call: Call) -> dict[str, object]:
    """A database: its place and properties."""
    name = call.names["database"]
    service.check_database(name)
    options = _properties(service, name)
    location = location_of(f"{service.catalog.location.rstrip('/')}/{database_directory(name)}")
    return {
        "id": content_uuid(location.encode()),
        "name": name,
        "location": location,
        "options": options,
        "owner": options.get(_OWNER, ""),
        "createdAt": 0,
        "createdBy": "",
        "updatedAt": 0,
        "updatedBy": "",
    }


def alter_database(service: RestService, call: Call) -> dict[str, object]:
    """Sets and removes properties of a database."""
    name, request = call.names["database"], call.json()
    service.check_database(name)
    removals, updates = understood(lambda: (request.text_list("removals"), request.text_map("updates")))
    _check_properties(updates)
    options = _properties(service, name)
    removed = sorted({key for key in removals if key in options})
    missing = sorted({key for key in removals if key not in options})
    changed = {key: value for key, value in {**options, **updates}.items() if key not in removals or key in updates}
    if changed != options:
        _keep(service, name, changed)
    return {"removed": removed, "updated": sorted(updates), "missing": missing}


def drop_database(service: RestService, call: Call) -> None:
    """Drops a database with all that is in it: Paimon's clients look themselves whether it is empty, ours says ``cascade``."""
    name = call.names["database"]
    service.check_database(name)
    service.catalog.drop_database(name, cascade=call.query.get("cascade") != "false")


def _check_properties(options: dict[str, str]) -> None:
    for key in options:
        if is_telling(key):
            raise bad_request(f"the property {key!r:.100} may hold a secret, and all who read the database see it")


def _properties(service: RestService, database: str) -> dict[str, str]:
    name = f"the properties of database {database}"
    text = service.catalog.find_definition(f"{database}.{_PROPERTIES}", DefinitionKind.DATABASE)
    return {} if text is None else JsonObject(parse_json_bounded(text.encode(), name), name).text_map("options")


def _keep(service: RestService, database: str, options: dict[str, str]) -> None:
    text = json.dumps(
        {"version": _VERSION, "kind": "database", "options": dict(sorted(options.items()))}, ensure_ascii=False, indent=2
    )
    try:
        service.catalog.keep_definition(f"{database}.{_PROPERTIES}", DefinitionKind.DATABASE, text, replace=True)
    except NotFoundError:
        service.check_database(database)
        raise
