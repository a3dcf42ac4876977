"""The one table of routes: each with the least role that it takes, on the object that its path names.

A route without a role shows only what the caller sees (its handler leaves the rest out), or takes the objects from its body and
asks for the roles on them itself. What is not in this table is not served.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from tablestore.catalog.definitions import DefinitionKind
from tablestore.server.access.roles import CATALOG, Resource, Role
from tablestore.server.protocol import (
    restaccess,
    restbranches,
    restcommit,
    restconfig,
    restconsumers,
    restdatabases,
    restextensions,
    restfunctions,
    restpartitions,
    restsnapshots,
    resttables,
    resttags,
    restviews,
)
from tablestore.server.protocol.errorresponse import RequestObjects, ResourceType
from tablestore.server.protocol.exchange import Call
from tablestore.server.protocol.restservice import RestService, plain_name

Handler = Callable[[RestService, Call], Mapping[str, object] | None]


class Scope(Enum):
    """The object of a route's role, by the parameters of its path."""

    CATALOG = "catalog"
    DATABASE = "database"
    OBJECT = "object"


class Need(Enum):
    """Conditions of a route in place of a role."""

    SIGHT = "the caller sees the object: it has a role on it, or on something in it"
    BODY = "the handler asks for roles on the objects in the body"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A route. ``about``: the kind of object that its errors are about."""

    method: str
    path: str
    handler: Handler
    need: Role | Need
    scope: Scope
    about: ResourceType | None = None

    @property
    def name(self) -> str:
        """The name of what it does, for logs."""
        return getattr(self.handler, "__name__", self.path)

    @property
    def need_text(self) -> str:
        """The role or condition, for logs."""
        return self.need.value if isinstance(self.need, Role) else self.need.name.lower()

    def resource(self, names: Mapping[str, str]) -> Resource:
        """The object of the role, by the parameters of the path."""
        match self.scope:
            case Scope.CATALOG:
                return CATALOG
            case Scope.DATABASE:
                return Resource(names["database"])
            case Scope.OBJECT:
                # A role on a table is one on its branches; names of functions ignore case.
                name = plain_name(next(names[key] for key in _OBJECTS if key in names))
                is_function = "function" in names or names.get("kind") == DefinitionKind.FUNCTION.value
                return Resource(names["database"], name.lower() if is_function else name)

    def check(self, call: Call) -> None:
        """Raises RequestRefused if the caller may not call it."""
        if self.need is Need.BODY:
            return
        resource = self.resource(call.names)
        about = _ABOUT[self.scope] if self.about is None or self.scope is Scope.DATABASE else self.about
        if isinstance(self.need, Role):
            call.check_may(self.need, resource, _ABOUT[self.scope] if self.scope is not Scope.OBJECT else _kind_of(call.names))
        elif not call.principal.sees(resource):
            call.check_may(Role.READER, resource, about)

    def objects(self, names: Mapping[str, str]) -> RequestObjects:
        """The objects that its errors may be about."""
        return RequestObjects(about=self.about, names={_KEYS[key]: name for key, name in names.items() if key in _KEYS})


_OBJECTS = ("table", "view", "function", "object")
_ABOUT = {Scope.CATALOG: ResourceType.DATABASE, Scope.DATABASE: ResourceType.DATABASE, Scope.OBJECT: ResourceType.TABLE}
_KEYS = {
    "database": ResourceType.DATABASE,
    "table": ResourceType.TABLE,
    "tableId": ResourceType.TABLE,
    "view": ResourceType.VIEW,
    "function": ResourceType.FUNCTION,
    "object": ResourceType.DEFINITION,
    "tag": ResourceType.TAG,
    "branch": ResourceType.BRANCH,
    "version": ResourceType.SNAPSHOT,
}


def _kind_of(names: Mapping[str, str]) -> ResourceType:
    return next(_KEYS[key] for key in _OBJECTS if key in names)


_ROOT = "/v1/{prefix}"
_DATABASE = f"{_ROOT}/databases/{{database}}"
_TABLE = f"{_DATABASE}/tables/{{table}}"


def _catalog(method: str, path: str, handler: Handler, need: Role | Need, about: ResourceType | None = None) -> Endpoint:
    return Endpoint(method=method, path=f"{_ROOT}/{path}", handler=handler, need=need, scope=Scope.CATALOG, about=about)


def _database(method: str, path: str, handler: Handler, need: Role | Need, about: ResourceType = ResourceType.DATABASE) -> Endpoint:
    return Endpoint(method=method, path=f"{_DATABASE}{path}", handler=handler, need=need, scope=Scope.DATABASE, about=about)


def _table(method: str, path: str, handler: Handler, need: Role, about: ResourceType = ResourceType.TABLE) -> Endpoint:
    return Endpoint(method=method, path=f"{_TABLE}{path}", handler=handler, need=need, scope=Scope.OBJECT, about=about)


def _object(method: str, path: str, handler: Handler, need: Role, about: ResourceType) -> Endpoint:
    return Endpoint(method=method, path=f"{_DATABASE}{path}", handler=handler, need=need, scope=Scope.OBJECT, about=about)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(method="GET", path="/v1/config", handler=restconfig.get_config, need=Need.SIGHT, scope=Scope.CATALOG),
    _catalog("GET", "databases", restdatabases.list_databases, Need.BODY, ResourceType.DATABASE),
    _catalog("POST", "databases", restdatabases.create_database, Role.ADMIN, ResourceType.DATABASE),
    _catalog("GET", "tables", resttables.list_tables_globally, Need.BODY, ResourceType.TABLE),
    _catalog("POST", "tables/rename", resttables.rename_table, Need.BODY, ResourceType.TABLE),
    _catalog("GET", "tables/id/{tableId}", resttables.get_table_by_id, Need.BODY, ResourceType.TABLE),
    _catalog("GET", "views", restviews.list_views_globally, Need.BODY, ResourceType.VIEW),
    _catalog("POST", "views/rename", restviews.rename_view, Need.BODY, ResourceType.VIEW),
    _catalog("GET", "functions", restfunctions.list_functions_globally, Need.BODY, ResourceType.FUNCTION),
    _database("GET", "", restdatabases.get_database, Need.SIGHT),
    _database("POST", "", restdatabases.alter_database, Role.OWNER),
    _database("DELETE", "", restdatabases.drop_database, Role.ADMIN),
    _database("POST", "/register", resttables.register_table, Role.OWNER, ResourceType.TABLE),
    _database("GET", "/tables", resttables.list_tables, Need.SIGHT),
    _database("POST", "/tables", resttables.create_table, Role.OWNER, ResourceType.TABLE),
    _database("GET", "/table-details", resttables.list_table_details, Need.SIGHT),
    _database("GET", "/views", restviews.list_views, Need.SIGHT),
    _database("POST", "/views", restviews.create_view, Role.OWNER, ResourceType.VIEW),
    _database("GET", "/view-details", restviews.list_view_details, Need.SIGHT),
    _database("GET", "/functions", restfunctions.list_functions, Need.SIGHT),
    _database("POST", "/functions", restfunctions.create_function, Role.OWNER, ResourceType.FUNCTION),
    _database("GET", "/function-details", restfunctions.list_function_details, Need.SIGHT),
    _table("GET", "", resttables.get_table, Role.READER),
    _table("POST", "", resttables.alter_table, Role.OWNER),
    _table("DELETE", "", resttables.drop_table, Role.OWNER),
    _table("POST", "/commit", restcommit.commit_table, Role.WRITER),
    _table("POST", "/rollback", restsnapshots.rollback_table, Role.OWNER),
    _table("POST", "/rollback-schema", restsnapshots.rollback_schema, Role.OWNER),
    _table("GET", "/token", restaccess.get_table_token, Role.READER),
    _table("POST", "/auth", restaccess.auth_table_query, Role.READER),
    _table("GET", "/snapshot", restsnapshots.get_snapshot, Role.READER),
    _table("GET", "/snapshots", restsnapshots.list_snapshots, Role.READER),
    _table("GET", "/snapshots/{version}", restsnapshots.get_snapshot_version, Role.READER, ResourceType.SNAPSHOT),
    _table("GET", "/partitions", restpartitions.list_partitions, Role.READER),
    _table("POST", "/partitions", restpartitions.create_partitions, Role.WRITER, ResourceType.PARTITION),
    _table("POST", "/partitions/drop", restpartitions.drop_partitions, Role.WRITER, ResourceType.PARTITION),
    _table("POST", "/partitions/mark", restpartitions.mark_done_partitions, Role.WRITER, ResourceType.PARTITION),
    _table("POST", "/partitions/list-by-names", restpartitions.list_partitions_by_names, Role.READER),
    _table("POST", "/partitions/list-by-filter", restpartitions.list_partitions_by_filter, Role.READER),
    _table("GET", "/branches", restbranches.list_branches, Role.READER),
    _table("POST", "/branches", restbranches.create_branch, Role.OWNER, ResourceType.BRANCH),
    _table("DELETE", "/branches/{branch}", restbranches.drop_branch, Role.OWNER, ResourceType.BRANCH),
    _table("POST", "/branches/{branch}/rename", restbranches.rename_branch, Role.OWNER, ResourceType.BRANCH),
    _table("POST", "/branches/{branch}/forward", restbranches.forward_branch, Role.OWNER, ResourceType.BRANCH),
    _table("GET", "/tags", resttags.list_tags, Role.READER),
    _table("POST", "/tags", resttags.create_tag, Role.WRITER, ResourceType.TAG),
    _table("GET", "/tags/{tag}", resttags.get_tag, Role.READER, ResourceType.TAG),
    _table("DELETE", "/tags/{tag}", resttags.delete_tag, Role.WRITER, ResourceType.TAG),
    _table("GET", "/consumers", restconsumers.list_consumers, Role.READER),
    _table("POST", "/consumers/reset", restconsumers.reset_consumer, Role.WRITER),
    _table("POST", "/commit-turn", restcommit.take_turn, Role.WRITER),
    _table("POST", "/publish", restextensions.publish_table, Role.OWNER),
    _table("POST", "/exchange", restextensions.exchange_table, Role.OWNER),
    _table("POST", "/abandon", restextensions.abandon_arrival, Role.OWNER),
    _database("GET", "/definitions/{kind}", restextensions.list_definitions, Need.SIGHT),
    _object("GET", "/definitions/{kind}/{object}", restextensions.get_definition, Role.READER, ResourceType.DEFINITION),
    _object("PUT", "/definitions/{kind}/{object}", restextensions.keep_definition, Role.OWNER, ResourceType.DEFINITION),
    _object("DELETE", "/definitions/{kind}/{object}", restextensions.drop_definition, Role.OWNER, ResourceType.DEFINITION),
    _object("GET", "/views/{view}", restviews.get_view, Role.READER, ResourceType.VIEW),
    _object("POST", "/views/{view}", restviews.alter_view, Role.OWNER, ResourceType.VIEW),
    _object("DELETE", "/views/{view}", restviews.drop_view, Role.OWNER, ResourceType.VIEW),
    _object("GET", "/functions/{function}", restfunctions.get_function, Role.READER, ResourceType.FUNCTION),
    _object("POST", "/functions/{function}", restfunctions.alter_function, Role.OWNER, ResourceType.FUNCTION),
    _object("DELETE", "/functions/{function}", restfunctions.drop_function, Role.OWNER, ResourceType.FUNCTION),
)
