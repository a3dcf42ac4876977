"""Tables of the protocol: list, create, get, alter, rename, drop, register."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tablestore.catalog.identifier import Identifier, database_directory
from tablestore.errors import AlreadyExistsError, NotFoundError, TablestoreError
from tablestore.format.sealed import JsonObject
from tablestore.io.filestore import check_path
from tablestore.names import names_of
from tablestore.server.access.roles import Resource, Role
from tablestore.server.protocol.errorresponse import (
    ErrorResponse,
    RequestRefused,
    ResourceType,
    bad_request,
    missing,
    name_conflict,
)
from tablestore.server.protocol.exchange import Call, json_inside, understood
from tablestore.server.protocol.listpages import MAX_RESULTS, PAGE_TOKEN, matching, max_results, page_of, readable
from tablestore.server.protocol.restextensions import described_schema, owns_log
from tablestore.server.protocol.restschema import parse_changes, parse_columns, parse_options, schema_json
from tablestore.server.protocol.restservice import RestService, location_of, plain_name, table_id
from tablestore.store.schemas import table_uuid_of
from tablestore.table.catalog import tools_of
from tablestore.table.table import Table
from tablestore.types.evolution.schemachanges import AddColumn, RenameColumn, SchemaChange
from tablestore.types.schema import TableSchema

# Details open each table: a page of them is shorter than one of names.
_MOST_DETAILS = 100
_TABLE_TYPE = "table"


def list_tables(service: RestService, call: Call) -> dict[str, object]:
    """A page of the tables of a database that the caller sees."""
    names, token = page_of(_visible(service, call, call.names["database"]), call.query)
    return {"tables": names, "nextPageToken": token}


def list_table_details(service: RestService, call: Call) -> dict[str, object]:
    """A page of the tables of a database, each as :func:`get_table` answers; those that cannot be read are left out."""
    database = call.names["database"]
    query = {**call.query, MAX_RESULTS: str(min(max_results(call.query), _MOST_DETAILS))}
    names, token = page_of(_visible(service, call, database), query)
    details = readable(names, lambda name: _described(service.table_named(database, name), database, name))
    return {"tableDetails": details, "nextPageToken": token}


def list_tables_globally(service: RestService, call: Call) -> dict[str, object]:
    """A page of the tables of all databases."""
    return {**global_page(service, call, "tableNamePattern", "tables", service.catalog.list_tables)}


def global_page(
    service: RestService, call: Call, pattern_key: str, key: str, names_in: Callable[[str], tuple[str, ...]]
) -> dict[str, object]:
    """A page of identifiers of all databases: ``names_in`` gives the names of one."""
    databases = matching(service.catalog.list_databases(), call.query.get("databaseNamePattern"))
    token = call.query.get(PAGE_TOKEN)
    most, pairs = max_results(call.query), list[tuple[str, str]]()
    after = None if token is None else tuple(token.split(".", 1))
    for database in sorted(databases):
        if after is not None and database < after[0]:
            continue
        try:
            names = matching(names_in(database), call.query.get(pattern_key))
        except NotFoundError:
            continue
        pairs += [(database, name) for name in sorted(names) if call.principal.sees(Resource(database, name))]
        pairs = [pair for pair in pairs if after is None or pair > after]
        if len(pairs) > most:
            break
    identifiers = [{"database": database, "object": name} for database, name in pairs[:most]]
    return {key: identifiers, "nextPageToken": ".".join(pairs[most - 1]) if len(pairs) > most else None}


def create_table(service: RestService, call: Call) -> None:
    """Creates a table. Options that only other engines know stay with it."""
    database, request = call.names["database"], call.json()
    service.check_database(database)
    identifier = _identifier(json_inside(request, "identifier"), database)
    schema = json_inside(request, "schema")
    if owns_log(call):
        definition = described_schema(service, schema, str(identifier))
        tools_of(service.catalog).meta.create_table(identifier, definition, table_uuid=table_uuid_of(definition))
        return
    known, others = parse_options(schema)
    primary_keys, partition_keys = understood(lambda: (schema.text_list("primaryKeys"), schema.text_list("partitionKeys")))
    tools = tools_of(service.catalog)
    definition = tools.definition(
        identifier,
        parse_columns(schema, "fields") or _no_columns(schema),
        primary_key=primary_keys or names_of(_listed(known.pop("primary-key", ""))),
        partition_by=partition_keys or names_of(_listed(known.pop("partition", ""))),
        options=known,
        comment=understood(lambda: schema.optional_text("comment")) or None,
    )
    definition = replace(definition, options={**others, **definition.options})
    tools.create(identifier, definition, ignore_if_exists=False)


def get_table(service: RestService, call: Call) -> dict[str, object]:
    """A table or a branch of one: its place, identity and newest schema."""
    return _described(service.table(call.names), call.names["database"], call.names["table"])


def get_table_by_id(service: RestService, call: Call) -> dict[str, object]:
    """The table of an identity: looks at all that the caller sees."""
    wanted = call.names["tableId"]
    for database, name in _all_visible(service, call):
        try:
            table = service.table_named(database, name)
            if table_id(table.context) == wanted:
                call.check_may(Role.READER, Resource(database, name), ResourceType.TABLE)
                return _described(table, database, name)
        except (RequestRefused, TablestoreError):
            continue
    raise missing(ResourceType.TABLE, wanted, f"there is no table of the id {wanted!r:.80}")


def alter_table(service: RestService, call: Call) -> None:
    """Alters a table: all changes or none."""
    table = service.table(call.names)
    changes = parse_changes(call.json(), table.table_schema)
    ruled = Resource(call.names["database"], plain_name(call.names["table"]))
    if any(isinstance(change, RenameColumn) for change in changes) and any(rule.table == ruled for rule in service.rules()):
        raise bad_request(
            f"rules for queries name columns of table {table.name}, and would not follow a new name; an admin changes them first "
            "(tablestore token rules)"
        )
    try:
        table.alter(changes)
    except AlreadyExistsError as error:
        raise name_conflict(ResourceType.COLUMN, _new_column(changes, table.table_schema), error.message) from error


def drop_table(service: RestService, call: Call) -> None:
    """Drops a table with all of its files."""
    name = call.names["table"]
    if plain_name(name) != name:
        raise bad_request(f"{name} is a branch: DELETE …/branches/<name> drops one")
    if owns_log(call):
        identifier = Identifier(call.names["database"], name)
        tools_of(service.catalog).meta.drop_table(identifier, table_uuid=call.query.get("tableUuid"))
        return
    service.table(call.names)
    service.catalog.drop_table(f"{call.names['database']}.{name}")


def rename_table(service: RestService, call: Call) -> None:
    """Gives a table another name, maybe in another database."""
    request = call.json()
    old = _identifier(json_inside(request, "source"))
    new = _identifier(json_inside(request, "destination"))
    call.check_may(Role.OWNER, Resource(old.database, old.table), ResourceType.TABLE)
    call.check_may(Role.OWNER, Resource(new.database), ResourceType.DATABASE)
    service.table_named(old.database, old.table)
    service.check_database(new.database)
    if any(rule.table == Resource(old.database, old.table) for rule in service.rules()):
        raise bad_request(
            f"rules for queries name table {old}, and would not follow it; an admin changes them first (tablestore token rules)"
        )
    try:
        if owns_log(call):
            tools_of(service.catalog).meta.rename_table(old, new)
            return
        service.catalog.rename_table(str(old), str(new))
    except AlreadyExistsError as error:
        raise name_conflict(ResourceType.TABLE, new.table, error.message) from error


def register_table(service: RestService, call: Call) -> None:
    """Gives a table that lies in a folder of the warehouse, and has no name yet, its name: the folder moves to its place."""
    database, request = call.names["database"], call.json()
    service.check_database(database)
    identifier = _identifier(json_inside(request, "identifier"), database)
    directory = _inside(service, understood(lambda: request.text("path")))
    if directory == identifier.directory and service.catalog.table_exists(str(identifier)):
        raise name_conflict(ResourceType.TABLE, identifier.table, f"table {identifier} has its name already")
    first = directory.partition("/")[0]
    if first.startswith(("_", ".")) or first.endswith(".db"):
        raise RequestRefused(
            ErrorResponse(
                code=501,
                message=f"{directory!r:.200} is a place of tables that have names, or of jobs: a table that is to be registered "
                "lies in a folder of its own beside the databases",
            )
        )
    try:
        tools_of(service.catalog).meta.publish_table(identifier, directory)
    except NotFoundError as error:
        raise bad_request(f"expected a table in {directory!r:.200} of the warehouse, found none: {error.message}") from error


def _new_column(changes: Sequence[SchemaChange], schema: TableSchema) -> str:
    """The first name of a column that changes bring and the table has."""
    added = (change.column[-1] for change in changes if isinstance(change, AddColumn))
    renamed = (change.to for change in changes if isinstance(change, RenameColumn))
    return next((name for name in (*added, *renamed) if name in schema.field_names), "")


def _inside(service: RestService, path: str) -> str:
    """A path relative to the warehouse. Raises RequestRefused for one that leads out of it."""
    location = service.catalog.location.rstrip("/")
    for root in (location, location_of(location)):
        if path.startswith(f"{root}/"):
            directory = path.removeprefix(f"{root}/").strip("/")
            check_path(directory)
            return directory
    raise bad_request(f"expected a path inside of the warehouse {location}, found {path!r:.300}")


def _described(table: Table, database: str, name: str) -> dict[str, object]:
    context = table.context
    schema = context.schema
    created = context.schemas.read(0).time_millis if schema.id else schema.time_millis
    return {
        "id": table_id(context),
        "database": database,
        "name": name,
        "path": location_of(table.location),
        "isExternal": False,
        "schemaId": schema.id,
        "schema": schema_json(schema),
        "owner": schema.options.get("owner", ""),
        "createdAt": created,
        "createdBy": "",
        "updatedAt": schema.time_millis,
        "updatedBy": "",
    }


def _visible(service: RestService, call: Call, database: str) -> list[str]:
    service.check_database(database)
    if call.query.get("tableType", _TABLE_TYPE) not in ("", _TABLE_TYPE):
        return []
    names = service.catalog.list_tables(database)
    return [name for name in matching(names, call.query.get("tableNamePattern")) if call.principal.sees(Resource(database, name))]


def _all_visible(service: RestService, call: Call) -> Iterator[tuple[str, str]]:
    for database in service.catalog.list_databases():
        try:
            names = service.catalog.list_tables(database)
        except NotFoundError:
            continue
        yield from ((database, name) for name in names if call.principal.sees(Resource(database, name)))


def _identifier(source: JsonObject, database: str | None = None) -> Identifier:
    named, name = understood(lambda: (source.text("database"), source.text("object")))
    if database is not None and named != database:
        raise bad_request(f"{source.name}: expected the database of the path, {database!r}, found {named!r:.140}")
    database_directory(named)
    return Identifier(named, name)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _no_columns(schema: JsonObject) -> tuple[()]:
    raise bad_request(f"{schema.name}: expected at least one column under 'fields', found none")
