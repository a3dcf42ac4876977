"""S3: what the answers of the service mean. A real HTTP server (moto), with answers injected between."""

import os
from collections.abc import Callable, Iterator

import pytest

from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StorageError, UnsupportedError
from tablestore.io.s3 import S3FileStore
from tablestore.testing.deterministic import ManualClock, SeededIds
from tests.support.s3 import FakeS3
from tests.support.services import require_service

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def server() -> Iterator[FakeS3]:
    try:
        server = FakeS3().__enter__()
    except ImportError as error:
        require_service(f"no S3 to test with ({error})", "pip install 'managed-tablestore[dev]'", env=os.environ)
    try:
        server.make_bucket("tables")
        yield server
    finally:
        server.__exit__(None, None, None)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(server: FakeS3, clock: ManualClock, request: pytest.FixtureRequest) -> Iterator[S3FileStore]:
    name = request.node.name.replace("[", "-").replace("]", "")
    store = S3FileStore(f"s3://tables/{name}", server.options, clock=clock, ids=SeededIds(1))
    assert store.publish_if_absent("snapshot/present", b"present")
    server.clear()
    yield store
    server.clear()


def requests(server: FakeS3, method: str) -> int:
    return [seen for seen, _ in server.requests].count(method)


# ---- publishing


def test_a_race_on_the_key_is_repeated_and_not_taken_for_occupied(store: S3FileStore, server: FakeS3, clock: ManualClock) -> None:
    server.answer_next("PUT", status=409, times=3)
    assert store.publish_if_absent("snapshot/snapshot-1", b"x") is True
    assert requests(server, "PUT") == 4
    assert len(clock.slept_s) == 3
    assert clock.slept_s == sorted(clock.slept_s)


def test_an_endless_race_ends_in_an_unknown_outcome(store: S3FileStore, server: FakeS3) -> None:
    server.answer_next("PUT", status=409, times=1000)
    with pytest.raises(StorageError, match="same bytes") as failed:
        store.publish_if_absent("snapshot/snapshot-1", b"x")
    assert failed.value.kind == "unknown-outcome"
    assert requests(server, "PUT") == 5


def test_a_publish_that_meets_itself_is_reported_as_occupied_and_holds_our_bytes(store: S3FileStore, server: FakeS3) -> None:
    server.answer_next("PUT", status=500, apply_first=True)
    assert store.publish_if_absent("snapshot/snapshot-1", b"mine") is False
    assert store.read("snapshot/snapshot-1") == b"mine"


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("status", [500, 503])
@pytest.mark.parametrize("applied", [False, True])
def test_a_service_that_keeps_failing_leaves_an_unknown_outcome(
    store: S3FileStore, server: FakeS3, status: int, applied: bool
) -> None:
    server.answer_next("PUT", status=status, apply_first=applied, times=5)
    with pytest.raises(StorageError) as failed:
        store.publish_if_absent("snapshot/snapshot-1", b"mine")
    assert failed.value.kind == "unknown-outcome"
    assert store.exists("snapshot/snapshot-1") is applied
    assert store.publish_if_absent("snapshot/snapshot-1", b"mine") is not applied


def test_a_denied_publish_was_not_applied(store: S3FileStore, server: FakeS3) -> None:
    server.answer_next("PUT", status=403)
    with pytest.raises(StorageError, match="denied") as failed:
        store.publish_if_absent("snapshot/snapshot-1", b"x")
    assert failed.value.kind == "denied"
    assert not store.exists("snapshot/snapshot-1")
    assert requests(server, "PUT") == 1


@pytest.mark.deep
def test_denied_after_a_lost_answer_is_still_unknown(store: S3FileStore, server: FakeS3) -> None:
    server.answer_next("PUT", status=500, apply_first=True)
    server.answer_next("PUT", status=403)
    with pytest.raises(StorageError) as failed:
        store.publish_if_absent("snapshot/snapshot-1", b"x")
    assert failed.value.kind == "unknown-outcome"
    assert store.exists("snapshot/snapshot-1")


def test_a_store_without_conditional_writes_is_found_out_before_the_first_publish(server: FakeS3) -> None:
    store = S3FileStore("s3://tables/old-store", server.options, clock=ManualClock())
    store.overwrite("snapshot/snapshot-1", b"theirs")
    server.ignore_conditions = True
    try:
        for _ in range(2):
            with pytest.raises(UnsupportedError, match="lock") as refused:
                store.publish_if_absent("snapshot/snapshot-1", b"mine")
            assert refused.value.kind == "no-conditional-publish"
    finally:
        server.clear()
    assert store.read("snapshot/snapshot-1") == b"theirs"
    assert [info.name for info in store.list("")] == ["snapshot"]


def test_a_store_that_refuses_the_header_is_unsupported(server: FakeS3) -> None:
    store = S3FileStore("s3://tables/refusing", server.options, clock=ManualClock())
    server.answer_next("PUT", status=501, times=2)
    with pytest.raises(UnsupportedError, match="If-None-Match"):
        store.publish_if_absent("snapshot/snapshot-1", b"mine")
    server.clear()


def test_conditional_writes_are_proved_once(store: S3FileStore, server: FakeS3) -> None:
    for n in range(3):
        assert store.at("deeper").publish_if_absent(f"snapshot-{n}", b"x")
    assert requests(server, "PUT") == 3


# ---- other verbs


def test_a_write_that_meets_itself_has_succeeded(store: S3FileStore, server: FakeS3) -> None:
    server.answer_next("PUT", status=500, apply_first=True)
    store.write("manifest/one", b"mine")
    assert store.read("manifest/one") == b"mine"
    with pytest.raises(AlreadyExistsError):
        store.write("manifest/one", b"other")


@pytest.mark.parametrize("status", [500, 503])
def test_reads_are_repeated_while_the_service_is_busy(store: S3FileStore, server: FakeS3, clock: ManualClock, status: int) -> None:
    server.answer_next("GET", status=status, times=4)
    assert store.read("snapshot/present") == b"present"
    server.answer_next("HEAD", status=status, times=4)
    assert store.size("snapshot/present") == 7
    server.answer_next("GET", status=status, times=4)
    assert [info.name for info in store.list("snapshot")] == ["present"]
    assert len(clock.slept_s) == 12


def test_repetition_is_bounded(store: S3FileStore, server: FakeS3) -> None:
    server.answer_next("GET", status=500, times=1000)
    with pytest.raises(StorageError, match="500"):
        store.read("snapshot/present")
    with pytest.raises(StorageError, match="500"):
        store.list("snapshot")
    assert requests(server, "GET") == 10


@pytest.mark.deep
def test_denied_is_never_taken_for_gone(store: S3FileStore, server: FakeS3) -> None:
    server.answer_next("GET", status=403, times=1000)
    server.answer_next("HEAD", status=403, times=1000)
    server.answer_next("DELETE", status=403, times=1000)
    for verb in (store.read, store.size, store.exists, store.open_input, store.list, store.delete):
        with pytest.raises(StorageError) as failed:
            verb("snapshot/present")
        assert failed.value.kind == "denied"


def test_failed_is_never_taken_for_gone(store: S3FileStore, server: FakeS3) -> None:
    for method in ("GET", "HEAD", "DELETE", "POST"):
        server.answer_next(method, status=500, times=1000)
    for verb in (store.read, store.size, store.exists, store.open_input, store.list, store.delete):
        with pytest.raises(StorageError) as failed:
            verb("snapshot/present")
        assert failed.value.kind == "storage"


def test_a_missing_bucket_is_not_an_empty_table(server: FakeS3) -> None:
    store = S3FileStore("s3://no-such-bucket/table", server.options, clock=ManualClock())
    for verb in (store.read, store.list, lambda path: store.publish_if_absent(path, b"x")):
        with pytest.raises(NotFoundError, match="bucket") as gone:
            verb("snapshot")
        assert gone.value.kind == "no-bucket"


def test_a_server_that_is_not_there_is_a_typed_error() -> None:
    options = {"key": "k", "secret": "canary", "endpoint_url": "http://127.0.0.1:1"}
    store = S3FileStore("s3://tables/table", options, clock=ManualClock())
    with pytest.raises(StorageError) as failed:
        store.read("file")
    assert failed.value.kind == "storage"
    with pytest.raises(StorageError) as failed:
        store.write("file", b"x")
    assert failed.value.kind == "unknown-outcome"
    assert "canary" not in f"{store!r} {failed.value}"


# ---- options


def headers_of(store: S3FileStore, send: Callable[[], object]) -> dict[str, str]:
    """What the client puts on the wire: looked at in the client, as the server forgets it."""
    seen: dict[str, str] = {}
    store.exists("connect")
    store._session._client.meta.events.register("before-send.s3", lambda request, **_: seen.update(dict(request.headers)))
    send()
    return {name.lower(): value.decode() if isinstance(value, bytes) else value for name, value in seen.items()}


def test_an_unknown_option_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(InvalidInputError, match="did you mean 'endpoint_url'") as refused:
        S3FileStore("s3://tables/t", {"endpoint_ur": "http://127.0.0.1:1", "secret": "canary"})
    assert refused.value.kind == "unknown-option" and "canary" not in str(refused.value)


@pytest.mark.parametrize(
    "wrong", [{"client_kwargs": {"bogus": 1}}, {"config_kwargs": {"bogus": 1}}, {"profile": "nobody"}, {"endpoint_url": "no-url"}]
)
def test_options_that_the_client_refuses_are_invalid_input(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match="options") as refused:
        S3FileStore("s3://tables/t", {"key": "k", "secret": "canary", **wrong}).read("file")
    assert "canary" not in str(refused.value)


@pytest.mark.deep
def test_missing_credentials_are_denied_at_once(server: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    store = S3FileStore("s3://tables/t", {"endpoint_url": server.options["endpoint_url"]}, clock=ManualClock())
    with pytest.raises(StorageError, match="credentials") as denied:
        store.publish_if_absent("file", b"x")
    assert denied.value.kind == "denied"


def test_credentials_of_the_environment_are_used(server: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from-the-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.options["endpoint_url"])
    store = S3FileStore("s3://tables/environment")
    sent = headers_of(store, lambda: store.write("file", b"x"))
    assert "Credential=from-the-environment/" in sent["authorization"]


def test_options_of_requests_reach_the_requests_that_know_them(server: FakeS3) -> None:
    more = {"s3_additional_kwargs": {"ServerSideEncryption": "AES256"}, "requester_pays": True, "anon": True}
    store = S3FileStore("s3://tables/extras", {**server.options, **more})
    written = headers_of(store, lambda: store.write("file", b"x"))
    assert written["x-amz-server-side-encryption"] == "AES256"
    assert written["x-amz-request-payer"] == "requester"
    assert "authorization" not in written


def test_a_forked_process_makes_a_client_of_its_own(store: S3FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    before = store._session._client
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert store.read("snapshot/present") == b"present"
    assert store._session._client is not before


# ---- large files


def uploads(store: S3FileStore) -> list[object]:
    """Multi-part uploads that were begun and neither completed nor aborted."""
    listed = store._session.send("list_multipart_uploads", Bucket="tables")
    return list(listed.get("Uploads", []))


def test_a_large_output_shows_only_when_it_is_closed(store: S3FileStore) -> None:
    with store.open_output("data/large") as file:
        for _ in range(20):
            file.write(b"x" * MIB)
        assert len(uploads(store)) == 1
        assert not store.exists("data/large")
    assert store.size("data/large") == 20 * MIB
    assert uploads(store) == []


def test_a_large_output_that_fails_is_aborted(store: S3FileStore) -> None:
    with pytest.raises(KeyError), store.open_output("data/large") as file:
        file.write(b"x" * 20 * MIB)
        assert len(uploads(store)) == 1
        raise KeyError("stop")
    assert uploads(store) == []
    assert not store.exists("data/large")


def test_a_part_that_the_service_refuses_aborts_the_upload(store: S3FileStore, server: FakeS3) -> None:
    server.answer_next("PUT", status=403)
    with pytest.raises(StorageError) as failed, store.open_output("data/large") as file:
        file.write(b"x" * 20 * MIB)
    assert failed.value.kind == "denied"
    assert uploads(store) == []


def test_busy_parts_are_repeated(store: S3FileStore, server: FakeS3) -> None:
    with store.open_output("data/large") as file:
        server.answer_next("PUT", status=503, times=2)
        file.write(b"ab" * 10 * MIB)
        server.answer_next("POST", status=503, times=2)
    assert store.read("data/large") == b"ab" * 10 * MIB


def test_a_completion_whose_answer_was_lost_has_succeeded(store: S3FileStore, server: FakeS3) -> None:
    with store.open_output("data/large") as file:
        file.write(b"x" * 20 * MIB)
        server.answer_next("POST", status=500, apply_first=True)
    assert store.size("data/large") == 20 * MIB
    assert uploads(store) == []


def test_a_url_without_a_bucket_is_refused() -> None:
    for url in ("s3://", "tables", "s3:///x", "s3://tables/a/../b"):
        with pytest.raises(InvalidInputError):
            S3FileStore(url)


@pytest.mark.deep
def test_a_large_output_whose_name_was_taken_meanwhile_replaces_nothing(store: S3FileStore, server: FakeS3) -> None:
    with pytest.raises(AlreadyExistsError), store.open_output("data/large") as file:
        file.write(b"x" * 20 * MIB)
        store.overwrite("data/large", b"theirs")
        server.answer_next("POST", status=412)
    assert store.read("data/large") == b"theirs"
    assert uploads(store) == []
