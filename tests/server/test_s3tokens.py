"""Temporary keys to the files of one table, by a real protocol of STS and S3."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.errors import InvalidInputError, StorageError
from tablestore.ids import SystemIds
from tablestore.io.service.tablekeys import ACCESS_KEY, SESSION_TOKEN
from tablestore.server.access.roles import Grant, Principal, Resource, Role
from tablestore.server.application import Application
from tablestore.server.protocol.restservice import RestService
from tablestore.server.protocol.s3tokens import S3TableTokens, table_policy
from tests.support.s3 import FakeS3
from tests.support.servers.serverthread import running_application

ROLE = "arn:aws:iam::123456789012:role/tables"
ORDERS = Resource("shop", "orders")


def principal(role: Role) -> Principal:
    return Principal(name=str(role), grants=(Grant(role),))


@pytest.fixture
def s3() -> Iterator[FakeS3]:
    with FakeS3() as server:
        yield server


def test_a_policy_reaches_one_prefix_and_writes_only_for_writers() -> None:
    reads, writes = (table_policy("b", "wh/shop.db/orders", writes=writes) for writes in (False, True))
    objects, listing = reads["Statement"]  # type: ignore[misc]
    assert objects["Action"] == ["s3:GetObject"] and objects["Resource"] == ["arn:aws:s3:::b/wh/shop.db/orders/*"]
    assert listing["Condition"] == {"StringLike": {"s3:prefix": ["wh/shop.db/orders", "wh/shop.db/orders/*"]}}
    assert {"s3:PutObject", "s3:DeleteObject"} <= set(writes["Statement"][0]["Action"])  # type: ignore[index]
    patterns = table_policy("b", "a*b?c$d", writes=False)["Statement"][0]["Resource"]  # type: ignore[index]
    assert patterns == ["arn:aws:s3:::b/a${*}b${?}c${$}d/*"]


def test_keys_are_handed_out_again_for_half_of_their_time(s3: FakeS3) -> None:
    tokens, clock = S3TableTokens(ROLE, s3.options), SystemClock()
    location = f"{s3.make_bucket('tables')}/shop.db/orders"
    now = clock.now_ms()
    first = tokens.issue(location, principal(Role.READER), ORDERS, now)
    assert first is not None and first.options[SESSION_TOKEN] and first.expires_at_millis > now + 50 * 60_000
    assert tokens.issue(location, principal(Role.OWNER), ORDERS, now) != first
    later = tokens.issue(location, principal(Role.READER), ORDERS, now + 31 * 60_000)
    assert later is not None and later.options[ACCESS_KEY] != first.options[ACCESS_KEY]
    assert first.options["s3.access-key"] == first.options[ACCESS_KEY]


@pytest.mark.parametrize("location", ["/data/wh/shop.db/orders", "file:///data/t", "s3://bucket", "gs://b/t"])
def test_keys_are_for_tables_in_s3_alone(location: str) -> None:
    with pytest.raises(InvalidInputError, match="S3"):
        S3TableTokens(ROLE, {}).issue(location, principal(Role.READER), ORDERS, 0)


def test_a_client_without_keys_of_its_own_reads_and_writes_with_those_of_the_service(
    s3: FakeS3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    catalog = ts.open_catalog(s3.make_bucket("tables"), **s3.options)
    service = RestService(
        catalog=catalog, name="lake", clock=SystemClock(), ids=SystemIds(), tokens=S3TableTokens(ROLE, s3.options)
    )
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with running_application(Application(service=service)) as uri:
        without_keys = ts.open_catalog({"metastore": "rest", "uri": uri, "endpoint_url": s3.options["endpoint_url"]})
        served = ts.open_catalog({"metastore": "rest", "uri": uri, "data-token.enabled": "true"})
        served.create_database("shop")
        catalog.create_table("shop.orders", "id BIGINT")
        with pytest.raises(StorageError):
            without_keys.table("shop.orders")
        table = served.table("shop.orders")
        assert isinstance(table, ts.Table)
        table.append(pa.table({"id": [1, 2]}))
        again = ts.open_table(table.location, **served.storage_options)
        assert again.to_arrow().num_rows == 2
