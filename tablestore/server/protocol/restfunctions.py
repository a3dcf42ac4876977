"""Functions of the protocol: kept where sessions of tablestore keep theirs.

A function that has a definition in SQL and one result is one that sessions of tablestore call too; of the others (files, lambdas)
they know the name and say that they do not run them: a function is code, and nothing here loads it. Names ignore case, as in
sessions.
"""

import json
from collections.abc import Mapping

from tablestore.catalog.definitions import DefinitionKind
from tablestore.environment.session.keptfunctions import SQL
from tablestore.environment.session.keptobjects import VERSION, parsed_definition
from tablestore.errors import InvalidInputError
from tablestore.format.paths import content_uuid
from tablestore.format.sealed import JsonObject
from tablestore.server.access.roles import Resource
from tablestore.server.protocol.errorresponse import ResourceType, bad_request, missing, name_conflict
from tablestore.server.protocol.exchange import Call, json_flag, json_inside, json_items, understood
from tablestore.server.protocol.listpages import matching, page_of, readable
from tablestore.server.protocol.restschema import check_foreign_option, parse_columns
from tablestore.server.protocol.restservice import RestService
from tablestore.server.protocol.resttables import global_page
from tablestore.types.typestring import field_to_json, type_to_sql

# Stored, never renamed: the parts that a session reads over.
_PROTOCOL = "protocol"
_FUNCTION, _OTHER = "function", "other"
_TYPES = ("sql", "file", "lambda")


def list_functions(service: RestService, call: Call) -> dict[str, object]:
    """A page of the functions of a database."""
    names, token = page_of(_visible(service, call), call.query)
    return {"functions": names, "nextPageToken": token}


def list_function_details(service: RestService, call: Call) -> dict[str, object]:
    """A page of the functions of a database, each as :func:`get_function` answers; those that cannot be read are left out."""
    database = call.names["database"]
    names, token = page_of(_visible(service, call), call.query)
    details = readable(names, lambda name: _described(name, _definition(service, database, name)))
    return {"functionDetails": details, "nextPageToken": token}


def list_functions_globally(service: RestService, call: Call) -> dict[str, object]:
    """A page of the functions of all databases."""

    def names_in(database: str) -> tuple[str, ...]:
        return service.catalog.list_definitions(database, DefinitionKind.FUNCTION)

    return global_page(service, call, "functionNamePattern", "functions", names_in)


def create_function(service: RestService, call: Call) -> None:
    """Keeps a function."""
    database, request = call.names["database"], call.json()
    service.check_database(database)
    name = understood(lambda: request.text("name"))
    if _text(service, database, name) is not None:
        raise name_conflict(ResourceType.FUNCTION, name, f"function {database}.{name} exists; drop it first or choose another name")
    content = _content(request)
    service.catalog.keep_definition(f"{database}.{name.lower()}", DefinitionKind.FUNCTION, _encoded(content))


def get_function(service: RestService, call: Call) -> dict[str, object]:
    """A function with its definitions."""
    name = call.names["function"]
    return _described(name, _definition(service, call.names["database"], name))


def alter_function(service: RestService, call: Call) -> None:
    """Changes options, comment and definitions of a function, all or none."""
    database, name = call.names["database"], call.names["function"]
    protocol = _protocol(_definition(service, database, name))
    for change in json_items(call.json(), "changes"):
        _apply(protocol, change, name)
    text = _encoded(_content(JsonObject(protocol, f"function {name}")))
    service.catalog.keep_definition(f"{database}.{name.lower()}", DefinitionKind.FUNCTION, text, replace=True)


def drop_function(service: RestService, call: Call) -> None:
    """Removes a function."""
    database, name = call.names["database"], call.names["function"]
    _definition(service, database, name)
    service.catalog.drop_definition(f"{database}.{name.lower()}", DefinitionKind.FUNCTION)


def _content(request: JsonObject) -> dict[str, object]:
    inputs, returns = parse_columns(request, "inputParams"), parse_columns(request, "returnParams")
    comment, options = understood(lambda: (request.optional_text("comment"), request.text_map("options")))
    for key, value in options.items():
        check_foreign_option(key, value)
    definitions = {name: _checked(name, value) for name, value in _mapping(request, "definitions").items()}
    in_sql = next((value for value in definitions.values() if value["type"] == "sql"), None)
    content: dict[str, object] = {"version": VERSION, "kind": _FUNCTION, "language": _OTHER, "comment": comment}
    if in_sql is not None and len(returns) == 1:
        content |= {
            "language": SQL,
            "parameters": [field.name for field in inputs],
            "types": [type_to_sql(field.type) for field in inputs],
            "returns": type_to_sql(returns[0].type),
            "body": str(in_sql.get("definition", "")),
        }
    content[_PROTOCOL] = {
        "inputParams": [field_to_json(field) for field in inputs],
        "returnParams": [field_to_json(field) for field in returns],
        "deterministic": json_flag(request, "deterministic", default=False),
        "definitions": definitions,
        "comment": comment,
        "options": dict(sorted(options.items())),
    }
    return content


def _checked(name: str, definition: object) -> dict[str, object]:
    if not isinstance(definition, dict) or definition.get("type") not in _TYPES:
        raise bad_request(f"expected a definition {name!r:.80} of the type {', '.join(_TYPES)}, found {str(definition)[:80]!r}")
    return definition


def _mapping(source: JsonObject, key: str) -> Mapping[str, object]:
    return {} if source.content.get(key) is None else json_inside(source, key).content


def _apply(protocol: dict[str, object], change: JsonObject, function: str) -> None:
    options, definitions = _copy(protocol, "options"), _copy(protocol, "definitions")
    match action := understood(lambda: change.text("action")):
        case "setOption":
            key, value = understood(lambda: (change.text("key"), change.text("value")))
            options[key] = value
        case "removeOption":
            options.pop(understood(lambda: change.text("key")), None)
        case "updateComment":
            protocol["comment"] = understood(lambda: change.optional_text("comment"))
        case "addDefinition" | "updateDefinition" | "dropDefinition":
            name = understood(lambda: change.text("name"))
            if action == "addDefinition" and name in definitions:
                raise name_conflict(ResourceType.DEFINITION, name, f"function {function} has a definition {name!r:.80}")
            if action != "addDefinition" and name not in definitions:
                raise missing(ResourceType.DEFINITION, name, f"function {function} has no definition {name!r:.80}")
            if action == "dropDefinition":
                del definitions[name]
            else:
                definitions[name] = change.content.get("definition")
        case _:
            raise bad_request(f"{change.name}: expected one of the actions of the protocol, found {action!r:.80}")
    protocol["options"], protocol["definitions"] = options, definitions


def _described(name: str, source: JsonObject) -> dict[str, object]:
    return {
        "uuid": content_uuid(_encoded(source.content).encode()),
        "name": name,
        **_protocol(source),
        "owner": "",
        "createdAt": 0,
        "createdBy": "",
        "updatedAt": 0,
        "updatedBy": "",
    }


def _protocol(source: JsonObject) -> dict[str, object]:
    """The protocol's description of a function; of one that a session has made, as far as it has words for it."""
    kept = source.content.get(_PROTOCOL)
    if isinstance(kept, dict):
        return dict(kept)
    names, types = source.text_list("parameters"), source.text_list("types")
    if len(names) != len(types):
        source.refuse("types", f"a type for each of {len(names)} parameters", list(types))
    is_sql = source.text("language") == SQL
    definition = (
        {"type": "sql", "definition": source.text("body")}
        if is_sql
        else {"type": "lambda", "definition": source.text("class"), "language": source.text("language")}
    )
    return {
        "inputParams": [{"id": place, "name": name, "type": of} for place, (name, of) in enumerate(zip(names, types, strict=True))],
        "returnParams": [{"id": len(names), "name": "result", "type": source.text("returns")}] if is_sql else [],
        "deterministic": False,
        "definitions": {"tablestore": definition},
        "comment": source.optional_text("comment"),
        "options": {},
    }


def _visible(service: RestService, call: Call) -> list[str]:
    database = call.names["database"]
    service.check_database(database)
    names = matching(service.catalog.list_definitions(database, DefinitionKind.FUNCTION), call.query.get("functionNamePattern"))
    return [name for name in names if call.principal.sees(Resource(database, name))]


def _definition(service: RestService, database: str, name: str) -> JsonObject:
    text = _text(service, database, name)
    if text is None:
        if not service.has_database(database):
            raise missing(ResourceType.DATABASE, database, f"there is no database {database!r:.140}")
        raise missing(ResourceType.FUNCTION, name, f"there is no function {database}.{name:.140}")
    return parsed_definition(f"{database}.{name}", text)


def _text(service: RestService, database: str, name: str) -> str | None:
    try:
        return service.catalog.find_definition(f"{database}.{name.lower()}", DefinitionKind.FUNCTION)
    except InvalidInputError:  # a name that no function has
        return None


def _copy(content: Mapping[str, object], key: str) -> dict[str, object]:
    value = content.get(key)
    return dict(value) if isinstance(value, dict) else {}


def _encoded(content: Mapping[str, object]) -> str:
    return json.dumps(dict(content), ensure_ascii=False, indent=2)
