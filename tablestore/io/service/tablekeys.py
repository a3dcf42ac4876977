"""Asks a catalog service for the keys to the storage of one table: temporary ones, for its directory alone (Paimon's data tokens).

Names of the options are those of Paimon's Python client (``fs.s3.accessKeyId``, …), which Java's other names stand beside.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tablestore.errors import StorageError
from tablestore.io.service.serviceclient import ServiceClient

ACCESS_KEY, SECRET_KEY, SESSION_TOKEN = "fs.s3.accessKeyId", "fs.s3.accessKeySecret", "fs.s3.securityToken"
ENDPOINT, REGION = "fs.s3.endpoint", "fs.s3.region"


def named_by_directory(location: str) -> tuple[str, str] | None:
    """The database and table that a directory ``…/shop.db/orders`` is of; None for any other."""
    parent, _, table = location.rstrip("/").rpartition("/")
    database = parent.rpartition("/")[2]
    name = database.removesuffix(".db")
    return (name, table) if table and name and name != database else None


@dataclass(frozen=True)
class TableKeys:
    """The keys of the table in ``location``, fetched anew with each call; it pickles."""

    client: ServiceClient
    location: str

    def fetch(self) -> Mapping[str, Any]:
        """Keys as botocore takes them, with the options of the store that the service names. Raises StorageError."""
        name = named_by_directory(self.location)
        if name is None:
            raise StorageError(
                f"{self.location} is no directory of a table, and the catalog service {self.client.uri} has keys to those alone; "
                "give keys of your own, or leave data-token.enabled out",
                kind="denied",
            )
        answer = self.client.get(self.client.path("databases", name[0], "tables", name[1], "token"))
        token = answer.get("token") if isinstance(answer, Mapping) else None
        expires = answer.get("expiresAtMillis") if isinstance(answer, Mapping) else None
        if not isinstance(token, Mapping) or not token.get(ACCESS_KEY) or not isinstance(expires, int):
            raise StorageError(
                f"the catalog service {self.client.uri} has no keys for {'.'.join(name)}; start it with --s3-role, or give keys of "
                "your own and leave data-token.enabled out",
                kind="denied",
            )
        return {
            "access_key": token[ACCESS_KEY],
            "secret_key": token.get(SECRET_KEY),
            "token": token.get(SESSION_TOKEN),
            "expiry_time": datetime.fromtimestamp(expires / 1000, UTC).isoformat(),
            "endpoint_url": token.get(ENDPOINT),
            "region_name": token.get(REGION),
        }
