"""Hostile requests: whatever is in paths, queries, headers and bodies, there is no fault, nothing outside, and no secret."""

import random
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tablestore.server.endpoints import ENDPOINTS
from tests.support.served import Served, ids_of, orders, rows

NAMES = [
    "shop",
    "orders",
    "orders$branch_b",
    "orders$files",
    "..",
    "../..",
    "a/b",
    "a\\b",
    "",
    " ",
    "\x00",
    "%2e",
    "x" * 500,
    "ä",
    "\u202e",
    "<script>",
    "a.b",
    "-",
    "$",
    "$branch_",
    "1",
    "99999999999999999999",
    "LATEST",
    "main",
    "con",
    "'; DROP TABLE x; --",
]
KEYS = [
    "name",
    "options",
    "removals",
    "updates",
    "identifier",
    "schema",
    "database",
    "object",
    "fields",
    "id",
    "type",
    "partitionKeys",
    "primaryKeys",
    "comment",
    "changes",
    "action",
    "fieldNames",
    "newName",
    "dataType",
    "newDataType",
    "move",
    "key",
    "value",
    "source",
    "destination",
    "path",
    "snapshot",
    "tableId",
    "instant",
    "snapshotId",
    "tagName",
    "fromSnapshot",
    "schemaId",
    "specs",
    "partitionSpecs",
    "branch",
    "fromTag",
    "timeRetained",
    "consumerId",
    "nextSnapshotId",
    "query",
    "dialects",
    "definitions",
    "inputParams",
    "returnParams",
    "deterministic",
    "select",
    "commitKind",
    "baseManifestList",
    "deltaManifestList",
    "commitUser",
    "commitIdentifier",
    "timeMillis",
    "totalRecordCount",
    "deltaRecordCount",
    "ignoreIfExists",
    "filter",
    "day",
]
ACTIONS = [
    "setOption",
    "removeOption",
    "updateComment",
    "addColumn",
    "renameColumn",
    "dropColumn",
    "updateColumnType",
    "updateColumnPosition",
    "addDialect",
    "addDefinition",
    "snapshot",
    "tag",
    "FIRST",
    "AFTER",
    "sql",
    "file",
    "APPEND",
]
VALUES: list[Any] = [
    *NAMES,
    *ACTIONS,
    None,
    True,
    0,
    1,
    -1,
    2**63,
    2**200,
    1.5,
    [],
    {},
    "BIGINT",
    "INT NOT NULL",
    "DECIMAL(99, 3)",
    {"type": "ARRAY", "element": "INT"},
    {"type": "ROW", "fields": []},
    "file:///etc",
    "7 d",
    "id",
    "bucket",
]


def value(rng: random.Random, depth: int = 0) -> Any:
    match rng.randrange(8) if depth < 4 else 0:
        case 1 | 2:
            return {rng.choice(KEYS): value(rng, depth + 1) for _ in range(rng.randrange(6))}
        case 3:
            return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return rng.choice(VALUES)


def body(rng: random.Random) -> Any:
    return {key: value(rng, 1) for key in rng.sample(KEYS, rng.randrange(8, 30))}


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("seed", range(1, 12))
def test_no_request_meets_a_fault_or_reaches_outside(served: Served, seed: int) -> None:
    rng = random.Random(seed)
    location = Path(served.catalog.location)
    outside = location.parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("hunter2")
    safe = orders(served.catalog, "safe.orders")
    safe.upsert(rows(1, 2, 3))
    before = sorted(location.parent.iterdir())
    for number in range(500):
        if number % 25 == 0:
            served.catalog.create_database("shop", ignore_if_exists=True)
            if not served.catalog.table_exists("shop.orders"):
                orders(served.catalog).upsert(rows(1))
        endpoint = rng.choice(ENDPOINTS)
        path = endpoint.path.replace("{prefix}", "wh")
        for key in ("database", "table", "view", "function", "tag", "branch", "version", "tableId"):
            usual = {"database": "shop", "table": "orders"}.get(key, "b")
            path = path.replace(f"{{{key}}}", quote(usual if rng.random() < 0.7 else rng.choice(NAMES), safe=""))
        query = {key: str(value(rng, 9)) for key in rng.sample(["maxResults", "pageToken", "tableNamePattern", "warehouse"], 2)}
        if "/safe/" in path:
            continue
        response = served.send(endpoint.method, path, body(rng), **query)
        assert response.status_code != 500, f"seed {seed}, request {number}: {endpoint.method} {path}: {response.text}"
        assert response.status_code < 600
        assert "hunter2" not in response.text
        assert "Traceback" not in response.text
    assert sorted(location.parent.iterdir()) == before
    assert (outside / "secret.txt").read_text() == "hunter2"
    assert ids_of(safe) == [1, 2, 3]
