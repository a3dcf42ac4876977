"""Answers what a client may reach of a table: keys to its storage, and the rows and columns that its user sees.

What the service itself tells or does by rows of a table is refused to whom rules hide some of them, as its client refuses it.
"""

from tablestore.errors import UnsupportedError
from tablestore.server.access.queryrules import query_auth
from tablestore.server.access.roles import Resource
from tablestore.server.protocol.errorresponse import ErrorResponse, RequestRefused, ResourceType, missing
from tablestore.server.protocol.exchange import Call, understood
from tablestore.server.protocol.restservice import RestService, location_of, plain_name, table_id


def get_table_token(service: RestService, call: Call) -> dict[str, object]:
    """Keys to the storage of a table, for a while."""
    table = service.table(call.names)
    resource = Resource(call.names["database"], plain_name(call.names["table"]))
    token = service.tokens.issue(location_of(table.location), call.principal, resource, service.clock.now_ms())
    if token is None:
        raise RequestRefused(
            ErrorResponse(
                code=501,
                message="this service hands out no keys to its store: give clients keys of their own, and data-token.enabled=false",
            )
        )
    return {"token": dict(token.options), "expiresAtMillis": token.expires_at_millis, "expiresAt": token.expires_at_millis}


def auth_table_query(service: RestService, call: Call) -> dict[str, object]:
    """The filters and masks that a query of the caller is under. ``tableId`` in the request, which other clients leave out: of this
    table alone, whoever has its name by now."""
    table = service.table(call.names)
    request = call.json()
    columns = understood(lambda: request.text_list("select")) if request.content.get("select") is not None else None
    identity = understood(lambda: request.optional_text("tableId"))
    if identity is not None and identity != table_id(table.context):
        raise missing(
            ResourceType.TABLE,
            call.names["table"],
            f"table {table.name} is another one than was meant: its id is {table_id(table.context)}, expected {identity!r:.80}",
        )
    resource = Resource(call.names["database"], plain_name(call.names["table"]))
    return query_auth(service.rules(), call.principal, resource, table.table_schema, columns).to_json()


def check_sees_all(service: RestService, call: Call, what: str) -> None:
    """Raise RequestRefused (403) if rules hide rows or columns of the table from the caller. ``what`` needs all of them."""
    table = Resource(call.names["database"], plain_name(call.names["table"]))
    if any(rule.applies_to(call.principal, table) for rule in service.rules()):
        message = f"rules for queries hide rows or columns of {table} from {call.principal.name}, and {what} needs all of them"
        raise RequestRefused(
            ErrorResponse(
                code=403,
                message=message,
                resource_type=ResourceType.TABLE,
                resource_name=call.names["table"],
                error=UnsupportedError(message, kind="query-rules"),
            )
        )
