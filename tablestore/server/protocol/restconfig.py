"""Answers what a client asks first: the prefix of all other paths."""

from tablestore.catalog.restcatalog import WAREHOUSE_KEY
from tablestore.io.opening import same_place
from tablestore.server.protocol.errorresponse import ErrorResponse, RequestRefused
from tablestore.server.protocol.exchange import Call
from tablestore.server.protocol.restservice import RestService, location_of


def get_config(service: RestService, call: Call) -> dict[str, object]:
    """The settings of clients. ``warehouse``: the name of the service's warehouse, or its address; without one, the only one."""
    warehouse = call.query.get("warehouse")
    location = service.catalog.location
    names = {service.name, location, location_of(location)}
    if warehouse and warehouse not in names and not same_place(location, warehouse.removeprefix("file://").rstrip("/")):
        raise RequestRefused(
            ErrorResponse(code=404, message=f"there is no warehouse {warehouse!r:.200} here; this service has {service.name!r}")
        )
    settings = {"prefix": service.name}
    # Where jobs put tables that are to get their names: for who may do that somewhere.
    return {"defaults": {**settings, WAREHOUSE_KEY: location_of(location)}, "overrides": settings}


def check_prefix(service: RestService, prefix: str) -> None:
    """Raises RequestRefused for the prefix of another warehouse."""
    if prefix != service.name:
        raise RequestRefused(
            ErrorResponse(code=404, message=f"there is no warehouse {prefix!r:.200} here; this service has {service.name!r}")
        )
