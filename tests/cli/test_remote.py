"""The command on S3: the same words, with the client's options."""

from collections.abc import Callable, Iterator

import pytest

import tablestore as ts
from tablestore.cli.command import parse_storage
from tablestore.io.s3 import S3FileStore
from tests.support.commandline import Ran
from tests.support.s3 import FakeS3

Run = Callable[..., Ran]

pytestmark = pytest.mark.xdist_group("s3")


@pytest.fixture
def s3() -> Iterator[FakeS3]:
    pytest.importorskip("moto")
    with FakeS3() as server:
        yield server


def test_options_of_the_client_nest_and_know_true_and_false() -> None:
    given = ["anon=true", "client_kwargs.region_name=eu", "client_kwargs.verify=false", "key=a=b"]
    assert parse_storage(given) == {"anon": True, "client_kwargs": {"region_name": "eu", "verify": False}, "key": "a=b"}


@pytest.mark.deep
def test_a_table_on_s3_is_made_filled_read_and_checked(run: Run, s3: FakeS3) -> None:
    where = ["-w", f"{s3.make_bucket('lake')}/warehouse", "--storage", "client_kwargs.region_name=us-east-1"]
    for key in ("key", "secret", "endpoint_url"):
        where += ["--storage", f"{key}={s3.options[key]}"]
    run("db", "create", "shop", *where)
    run("table", "create", "shop.t", "--schema", "id BIGINT, t STRING", "--primary-key", "id", *where)
    run("import", "shop.t", "-", "--file-format", "csv", *where, input=b"id,t\n1,a\n")
    assert run("table", "read", "shop.t", "--json", *where).rows == [{"id": 1, "t": "a"}]
    looks = {look["name"]: look["status"] for look in run("doctor", "--json", *where).json["checks"]}
    assert (looks["warehouse"], looks["conditional publish"]) == ("ok", "ok")
    s3.ignore_conditions = True
    looks = {look["name"]: look["status"] for look in run("doctor", "--json", *where, code=3).json["checks"]}
    assert looks["conditional publish"] == "problem"
    s3.ignore_conditions = False
    s3.answer_next("GET", status=403, times=100)
    assert "Traceback" not in run("table", "read", "shop.t", *where, code=1).err


def test_rows_are_imported_from_a_file_on_s3(run: Run, s3: FakeS3, catalog: ts.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    url = s3.make_bucket("files")
    S3FileStore(url, s3.options).write("day/rows.csv", b"id,t\n1,a\n")
    for name, key in (("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret"), ("AWS_ENDPOINT_URL", "endpoint_url")):
        monkeypatch.setenv(name, s3.options[key])
    run("table", "create", "shop.t", "--schema", "id BIGINT, t STRING", "--primary-key", "id")
    run("import", "shop.t", f"{url}/day/rows.csv")
    assert catalog.table("shop.t").scan().to_arrow().to_pylist() == [{"id": 1, "t": "a"}]
    assert "Traceback" not in run("import", "shop.t", f"{url}/day/missing.csv", code=1).err
