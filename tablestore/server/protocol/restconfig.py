"""Answers what a client asks first: the prefix of all other paths, and the options of new tables that name none.

The options are those of the service's own catalog, ``table-default.*``. Clients of every kind merge them below their own.
"""

from tablestore.catalog.restcatalog import WAREHOUSE_KEY
from tablestore.catalog.settings import TABLE_DEFAULT
from tablestore.server.protocol.errorresponse import ErrorResponse, RequestRefused
from tablestore.server.protocol.exchange import Call
from tablestore.server.protocol.restservice import RestService, location_of
from tablestore.table.catalog import tools_of


def get_config(service: RestService, call: Call) -> dict[str, object]:
    """The settings of clients. ``warehouse``: the name of the service's warehouse, or its address; without one, the only one."""
    warehouse = call.query.get("warehouse")
    location = service.catalog.location
    # By their text alone: what a stranger names is not looked up.
    if warehouse and warehouse.rstrip("/") not in {service.name, location.rstrip("/"), location_of(location).rstrip("/")}:
        raise RequestRefused(
            ErrorResponse(code=404, message=f"there is no warehouse {warehouse!r:.200} here; this service has {service.name!r}")
        )
    settings = {"prefix": service.name}
    of_tables = {f"{TABLE_DEFAULT}{key}": value for key, value in sorted(tools_of(service.catalog).defaults.items())}
    # Where jobs put tables that are to get their names: for who may do that somewhere.
    return {"defaults": {**settings, WAREHOUSE_KEY: location_of(location), **of_tables}, "overrides": settings}


def check_prefix(service: RestService, prefix: str) -> None:
    """Raises RequestRefused for the prefix of another warehouse."""
    if prefix != service.name:
        raise RequestRefused(
            ErrorResponse(code=404, message=f"there is no warehouse {prefix!r:.200} here; this service has {service.name!r}")
        )
