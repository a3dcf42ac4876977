"""Asks a catalog service which rows and columns of one table its caller sees: the protocol's call ``auth``.

    {"filter": ["{…}", …], "columnMasking": {"card": "{…}"}}

The service is asked by the name of the table's directory, and told which table is meant; where another one has that name by now, it
is asked for the name that the table has.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tablestore.errors import FormatError, InvalidInputError, NotFoundError, StorageError
from tablestore.io.service.tablekeys import named_by_directory

if TYPE_CHECKING:
    from tablestore.io.service.serviceclient import ServiceClient

TableRules = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]
"""The filters, all of which hold, and pairs of a column and its mask: texts in JSON."""


def fetch_rules(client: "ServiceClient", location: str, table_id: str | None, suffix: str = "") -> TableRules:
    """The rules of the table in ``location``, as they are now. ``suffix``: ``$branch_b`` for a branch.

    Raises StorageError, NotFoundError, FormatError: whoever gets no answer reads nothing.
    """
    name = named_by_directory(location)
    if name is None:
        return _asked(client, named_by_identity(client, location, table_id), table_id, suffix)
    try:
        return _asked(client, name, table_id, suffix)
    except NotFoundError:
        if table_id is None or (renamed := named_by_identity(client, location, table_id)) == name:
            raise
    return _asked(client, renamed, table_id, suffix)


def named_by_identity(client: "ServiceClient", location: str, table_id: str | None) -> tuple[str, str]:
    """The database and the table that the service knows by an identity. Raises InvalidInputError, NotFoundError, StorageError."""
    if table_id is None:
        raise InvalidInputError(
            f"the catalog service {client.uri} does not know the table in {location}, which has no identity of its own; open it "
            "through its catalog",
            kind="no-such-table",
        )
    table = client.get(client.path("tables", "id", table_id))
    name = (table.get("database"), table.get("name")) if isinstance(table, dict) else (None, None)
    if not isinstance(name[0], str) or not isinstance(name[1], str):
        raise StorageError(f"{client.uri}: the answer names no table of the identity {table_id}: {table!r:.200}")
    return name[0], name[1]


def _asked(client: "ServiceClient", name: tuple[str, str], table_id: str | None, suffix: str) -> TableRules:
    path = client.path("databases", name[0], "tables", f"{name[1]}{suffix}", "auth")
    return parse_rules(client.ask(path, {"select": None, "tableId": table_id}), client.uri)


def parse_rules(answer: Any, where: str) -> TableRules:
    """The rules of an answer. Raises FormatError for what is none: it may restrict somebody."""
    filters = answer.get("filter") if isinstance(answer, Mapping) else None
    masks = answer.get("columnMasking") if isinstance(answer, Mapping) else None
    filters, masks = [] if filters is None else filters, {} if masks is None else masks
    is_whole = isinstance(answer, Mapping) and isinstance(filters, list) and isinstance(masks, Mapping)
    if not is_whole or not all(isinstance(text, str) for text in (*filters, *masks, *masks.values())):
        raise FormatError(
            f"{where}: expected filters and masks of a table as texts, found {answer!r:.200}; nothing is read of it", kind="answer"
        )
    return tuple(filters), tuple(sorted(masks.items()))
