"""The two places of tokens and rules: the same promises, in a file and in a database."""

import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

import tablestore as ts
from tablestore.server.access.accessdocument import EMPTY, AccessDocument, decode_access, encode_access
from tablestore.server.access.accessstore import AccessStore, CurrentTokens, FileAccessStore, open_access_store
from tablestore.server.access.denials import Unauthenticated
from tablestore.server.access.identities import create_token
from tablestore.server.access.queryrules import QueryRule
from tablestore.server.access.roles import CATALOG, Grant, Resource, Role
from tablestore.server.access.sqlaccessstore import SqlAccessStore
from tablestore.testing.deterministic import SeededIds

NOW = 1_772_352_000_000
GRANTS = (Grant(Role.READER, Resource("shop", "orders")), Grant(Role.OWNER, Resource("hr")), Grant(Role.ADMIN, CATALOG))
TOKEN, TEXT = create_token(SeededIds(1), name="reports", grants=GRANTS, now_ms=NOW, expires_in_ms=5)
RULE = QueryRule(
    table=Resource("shop", "orders"),
    principals=("reports",),
    roles=(Role.READER,),
    row_filter="region = 'eu'",
    column_masks=(("card", None), ("name", "upper(name)")),
)
DOCUMENT = AccessDocument(tokens=(TOKEN, replace(TOKEN, id="x", sha256="0" * 64, expires_ms=None, revoked_ms=NOW)), rules=(RULE,))
GOLDEN: dict[str, Any] = {
    "version": 1,
    "tokens": [
        {
            "id": TOKEN.id,
            "name": "reports",
            "sha256": TOKEN.sha256,
            "grants": [
                {"role": "reader", "database": "shop", "table": "orders"},
                {"role": "owner", "database": "hr"},
                {"role": "admin"},
            ],
            "created": NOW,
            "expires": NOW + 5,
            "revoked": None,
        }
    ],
    "rules": [
        {
            "database": "shop",
            "table": "orders",
            "principals": ["reports"],
            "roles": ["reader"],
            "row_filter": "region = 'eu'",
            "column_masks": {"card": None, "name": "upper(name)"},
        }
    ],
}

OpenStore = Callable[[], AccessStore]


@pytest.fixture(params=["file", "sql"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    if request.param == "file":
        return lambda: FileAccessStore(tmp_path / "deep" / "access.json", SeededIds(7))
    return lambda: SqlAccessStore(f"sqlite:///{tmp_path}/catalog.db", "main")


def add(store: AccessStore, seed: int) -> None:
    token, _ = create_token(SeededIds(seed), name=f"n{seed}", grants=GRANTS, now_ms=NOW)
    store.change(lambda document: replace(document, tokens=(*document.tokens, token)))


def test_a_store_is_empty_at_first_and_keeps_what_is_changed(open_store: OpenStore) -> None:
    assert open_store().read() == EMPTY
    assert open_store().change(lambda _: DOCUMENT) == DOCUMENT
    assert open_store().read() == DOCUMENT


def test_a_reader_sees_what_others_change_at_once(open_store: OpenStore) -> None:
    reader, writer = open_store(), open_store()
    for seed in range(5):
        add(writer, seed)
        assert [token.name for token in reader.read().tokens][-1] == f"n{seed}"
    assert reader.read() is reader.read(), "what has not changed is not read again"


def test_a_revoked_token_opens_nothing_from_then_on(open_store: OpenStore) -> None:
    served, admin = open_store(), open_store()
    admin.change(lambda _: DOCUMENT)
    current = CurrentTokens(served)
    assert current().recognize(TEXT, NOW).name == "reports"
    assert current() is current()
    admin.change(lambda document: replace(document, tokens=(replace(TOKEN, revoked_ms=NOW),)))
    with pytest.raises(Unauthenticated):
        current().recognize(TEXT, NOW)


def test_changes_by_several_at_once_are_all_kept(open_store: OpenStore) -> None:
    threads = [threading.Thread(target=add, args=(open_store(), seed)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {token.name for token in open_store().read().tokens} == {f"n{seed}" for seed in range(8)}


def test_a_change_that_fails_changes_nothing(open_store: OpenStore) -> None:
    store = open_store()
    store.change(lambda _: DOCUMENT)

    def fail(document: AccessDocument) -> AccessDocument:
        raise ts.NotFoundError("no such token")

    with pytest.raises(ts.NotFoundError):
        store.change(fail)
    assert open_store().read() == DOCUMENT


def test_catalogs_of_one_database_have_documents_of_their_own(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.db"
    SqlAccessStore(url, "one").change(lambda _: DOCUMENT)
    assert SqlAccessStore(url, "two").read() == EMPTY


def test_the_file_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = tmp_path / "deep" / "access.json"
        FileAccessStore(path, SeededIds(1)).change(lambda _: DOCUMENT)
    finally:
        os.umask(before)
    assert [one.stat().st_mode & 0o777 for one in (path, path.parent)] == [0o600, 0o700]
    assert {one.name for one in path.parent.iterdir()} <= {"access.json", "access.json.lock"}
    assert TEXT not in path.read_text()


def test_a_file_that_others_may_open_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "access.json"
    FileAccessStore(path, SeededIds(1)).change(lambda _: DOCUMENT)
    path.chmod(0o640)
    with pytest.raises(ts.StorageError, match="chmod 600"):
        FileAccessStore(path, SeededIds(1)).read()
    with pytest.raises(ts.StorageError, match="chmod 600"):
        add(FileAccessStore(path, SeededIds(1)), 3)


def test_a_file_that_somebody_locks_is_not_waited_for_without_end(tmp_path: Path) -> None:
    path = tmp_path / "access.json"
    with FileLock(f"{path}.lock"), pytest.raises(ts.StorageError, match="locked by another process"):
        add(FileAccessStore(path, SeededIds(1), lock_timeout_s=0), 1)


def test_a_file_that_is_removed_closes_the_door(tmp_path: Path) -> None:
    path = tmp_path / "access.json"
    store = FileAccessStore(path, SeededIds(1))
    store.change(lambda _: DOCUMENT)
    assert store.read() == DOCUMENT
    path.unlink()
    assert store.read() == EMPTY


def test_the_document_is_stored_as_it_is_described() -> None:
    document = AccessDocument(tokens=(TOKEN,), rules=(RULE,))
    assert json.loads(encode_access(document)) == GOLDEN
    assert decode_access(json.dumps(GOLDEN).encode(), "access.json") == document
    # A rule leaves out what it does not say.
    short = decode_access(b'{"version": 1, "tokens": [], "rules": [{"database": "d", "table": "t"}]}', "x").rules
    assert short == (QueryRule(table=Resource("d", "t")),)


def changed(*path: object, to: object) -> bytes:
    value = json.loads(json.dumps(GOLDEN))
    inside = value
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = to
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b"[" * 100_000,
        b"\xff",
        changed("version", to=2),
        changed("version", to=None),
        changed("more", to=1),
        changed("tokens", to={}),
        changed("tokens", 0, to=3),
        changed("tokens", to=[*GOLDEN["tokens"], {**GOLDEN["tokens"][0], "id": "other"}]),
        changed("tokens", to=[*GOLDEN["tokens"], {**GOLDEN["tokens"][0], "sha256": "0" * 64}]),
        changed("tokens", 0, "admin", to=True),
        changed("tokens", 0, "sha256", to="abc"),
        changed("tokens", 0, "name", to=""),
        changed("tokens", 0, "created", to=None),
        changed("tokens", 0, "expires", to="never"),
        changed("tokens", 0, "revoked", to=True),
        changed("tokens", 0, "grants", 0, "role", to="root"),
        changed("tokens", 0, "grants", 0, "role", to=["admin"]),
        changed("tokens", 0, "grants", 0, "scope", to="x"),
        changed("tokens", 0, "grants", 0, "database", to=None),
        changed("rules", 0, "principals", to=[1]),
        changed("rules", 0, "roles", to=["everybody"]),
        changed("rules", 0, "table", to=None),
        changed("rules", 0, "row_filter", to=True),
        changed("rules", 0, "column_masks", to={"a": 1}),
        changed("rules", 0, "row_filters", to="a = 1"),
    ],
)
def test_a_document_that_is_not_understood_whole_is_refused(data: bytes) -> None:
    with pytest.raises(ts.FormatError, match=r"access\.json"):
        decode_access(data, "access.json")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_no_json_is_a_document_by_accident(value: object) -> None:
    for data in (value, {**GOLDEN, "rules": value}, {**GOLDEN, "tokens": value}):
        try:
            decode_access(json.dumps(data).encode(), "access.json")
        except ts.FormatError:
            continue
        assert data in ({**GOLDEN, "rules": []}, {**GOLDEN, "tokens": []}) or value == []


def test_the_place_of_a_catalog_follows_from_its_options(tmp_path: Path) -> None:
    local = open_access_store({"warehouse": str(tmp_path)}, SeededIds(1))
    assert local.where == f"{tmp_path}/.tablestore/access.json"
    sql = open_access_store({"warehouse": "s3://b/w", "metastore": "jdbc", "uri": f"sqlite:///{tmp_path}/c.db"}, SeededIds(1))
    assert isinstance(sql, SqlAccessStore)
    named = open_access_store({"warehouse": "s3://b/w"}, SeededIds(1), path=str(tmp_path / "t.json"))
    assert named.where == str(tmp_path / "t.json")
    with pytest.raises(ts.InvalidInputError, match="--tokens"):
        open_access_store({"warehouse": "s3://b/w"}, SeededIds(1))


def test_tokens_in_a_warehouse_are_no_database_and_no_table_of_it(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    add(open_access_store({"warehouse": str(tmp_path)}, SeededIds(1)), 1)
    assert set(catalog.list_databases()) <= {"default", "shop"}
    assert catalog.list_tables("shop") == ()
