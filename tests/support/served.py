"""A catalog service in this process, and a client of it that says who it is by its Authorization header."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pyarrow as pa
from starlette.testclient import TestClient

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.ids import SystemIds
from tablestore.server.access.auditlog import AuditRecord
from tablestore.server.access.denials import Unauthenticated
from tablestore.server.access.roles import Grant, Principal, Resource, Role
from tablestore.server.application import Application
from tablestore.server.protocol.restservice import RestService

PRINCIPALS: Mapping[str, tuple[Grant, ...]] = {
    "admin": (Grant(Role.ADMIN),),
    "owner": (Grant(Role.OWNER, Resource("shop")),),
    "writer": (Grant(Role.WRITER, Resource("shop")),),
    "reader": (Grant(Role.READER, Resource("shop", "orders")),),
    "nobody": (),
}


def authenticate(header: str | None, now_millis: int) -> Principal:
    """The principal of a name; without a header an admin."""
    name = "admin" if header is None else header.removeprefix("Bearer ")
    if name not in PRINCIPALS:
        raise Unauthenticated("no such token")
    return Principal(name=name, grants=PRINCIPALS[name])


@dataclass
class Served:
    """A service, its client, and what was decided."""

    catalog: ts.Catalog
    application: Application
    client: TestClient
    decisions: list[AuditRecord] = field(default_factory=list)

    def send(self, method: str, path: str, body: Any = None, *, who: str | None = None, **query: str) -> httpx2.Response:
        """One request; a path without a slash at its beginning is one of the warehouse."""
        headers = {} if who is None else {"Authorization": f"Bearer {who}"}
        url = path if path.startswith("/") else f"/v1/wh/{path}"
        return self.client.request(method, url, json=body, params=query, headers=headers)

    def ok(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """The content of an answer, which is 200."""
        response = self.send(method, path, body, **query)
        assert response.status_code == 200, response.text
        return response.json()

    def refused(self, code: int, method: str, path: str, body: Any = None, *, who: str | None = None, **query: str) -> Any:
        """The error response of a refused request, which has the code."""
        response = self.send(method, path, body, who=who, **query)
        assert response.status_code == code, response.text
        content = response.json()
        assert content["code"] == code
        assert content["message"]
        return content


def serving(catalog: ts.Catalog, **settings: Any) -> Iterator[Served]:
    """A service over a catalog, until the generator is closed."""
    service = RestService(catalog=catalog, name="wh", clock=SystemClock(), ids=SystemIds())
    decisions: list[AuditRecord] = []
    application = Application(service=service, authenticate=authenticate, audit=decisions.append, **settings)
    with TestClient(application.app(), raise_server_exceptions=False) as client:
        yield Served(catalog, application, client, decisions)


COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.string()), ("price", pa.float64())])


def orders(catalog: ts.Catalog, name: str = "shop.orders", **options: str) -> ts.Table:
    """A keyed table with partitions, in a database that is made if needed."""
    catalog.create_database(name.partition(".")[0], ignore_if_exists=True)
    return catalog.create_table(name, COLUMNS, primary_key=["day", "id"], partition_by=["day"], options=options)


def rows(*ids: int, day: str = "mon") -> pa.Table:
    """Rows of these ids."""
    return pa.table({"id": list(ids), "day": [day] * len(ids), "price": [float(one) for one in ids]}, schema=COLUMNS)


def ids_of(table: ts.Table) -> list[int]:
    """The ids in a table, ascending."""
    return sorted(table.to_arrow().column("id").to_pylist())
