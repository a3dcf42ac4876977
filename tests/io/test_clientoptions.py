"""What a place is opened with: options are checked by name and type, missing packages are named, and no secret is shown."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts

SECRET = "wJalrXUtnFEMI"


@pytest.mark.deep_after(8)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"AWS_ACCESS_KEY_ID": SECRET}, r"no option 'AWS_ACCESS_KEY_ID'; did you mean 'key'\?"),
        ({"aws_secret_access_key": SECRET}, r"did you mean 'secret'\?"),
        ({"fs.s3a.secret.key": SECRET}, r"did you mean 'secret'\?"),
        ({"s3.access-key-id": SECRET}, r"did you mean 'key'\?"),
        ({"region": "eu-west-1"}, r"did you mean client_kwargs=\{'region_name': …\}\?"),
        ({"endpoint": "http://x"}, r"did you mean 'endpoint_url'\?"),
        ({"sercet": SECRET}, r"did you mean 'secret'\?"),
        ({"client_kwargs": SECRET}, "'client_kwargs': expected a dict, found a value of type str"),
        ({"config_kwargs": 3}, "'config_kwargs': expected a dict, found a value of type int"),
        ({"key": 5}, "'key': expected a text, found a value of type int"),
        ({"use_ssl": "perhaps"}, "'use_ssl': expected true or false, found a value of type str"),
        ({"config_kwargs": {"nope": 1}}, "unexpected keyword argument 'nope'"),
        ({"endpoint_url": "http://[::1"}, "these options"),
    ],
)
def test_an_option_of_s3_is_refused_by_its_name_and_the_value_is_not_shown(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ts.InvalidInputError, match=words) as refused:
        ts.open_catalog("s3://bucket/path", **options).list_databases()
    assert SECRET not in str(refused.value)


def test_flags_of_s3_may_be_texts_and_what_s3fs_does_otherwise_is_left_out() -> None:
    assert ts.open_catalog("s3://bucket/path", anon="true", use_ssl="false", default_block_size=1, profile=None) is not None


@pytest.mark.parametrize("place", ["", "file://", "memory://"])
def test_a_table_of_this_machine_takes_no_options(tmp_path: Path, place: str) -> None:
    with pytest.raises(ts.InvalidInputError, match=r"take no option 'secret'.*s3://") as refused:
        ts.open_table(f"{place}{tmp_path}/t", secret=SECRET)
    assert refused.value.kind == "unknown-option" and SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "module", "install"),
    [
        ("gs://bucket/path", "gcsfs", "pip install gcsfs"),
        ("abfs://container@account/path", "adlfs", "pip install adlfs"),
        ("http://host/path", "aiohttp", "pip install aiohttp requests"),
        ("sftp://host/path", "paramiko", "pip install paramiko"),
        ("s3://bucket/path", "tablestore.io.s3", r"pip install 'managed-tablestore\[s3\]'"),
    ],
)
def test_a_package_that_a_place_needs_is_named(monkeypatch: pytest.MonkeyPatch, url: str, module: str, install: str) -> None:
    for name in (module, "fsspec.implementations.http", "fsspec.implementations.sftp"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ts.UnsupportedError, match=install) as refused:
        ts.open_catalog(url)
    assert refused.value.kind == "missing-package"


def test_hadoop_without_its_library_is_not_a_raw_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def unloadable(*_: Any, **__: Any) -> None:
        raise OSError("Unable to load libjvm\ndlopen(libjvm.so) failed")

    monkeypatch.setattr("tablestore.io.fsspec_store.url_to_fs", unloadable)
    with pytest.raises(ts.UnsupportedError, match="Unable to load libjvm; install Java") as refused:
        ts.open_catalog("hdfs://namenode/path")
    assert refused.value.kind == "missing-library"


@pytest.mark.parametrize(
    ("error", "expected"), [(ConnectionRefusedError(111, "refused"), ts.StorageError), (TypeError, ts.InvalidInputError)]
)
def test_any_error_of_a_client_becomes_ours_without_its_secrets(
    monkeypatch: pytest.MonkeyPatch, error: Any, expected: type[Exception]
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise error if isinstance(error, Exception) else error(f"unexpected {SECRET}")

    monkeypatch.setattr("tablestore.io.fsspec_store.url_to_fs", fails)
    with pytest.raises(expected) as refused:
        ts.open_catalog("ftp://host/path", password=SECRET)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("package", "convert"), [("pandas", lambda scan: scan.to_pandas()), ("polars", lambda scan: scan.to_polars())]
)
def test_frames_without_their_package_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, convert: Callable[[ts.Scan], object]
) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", pa.schema({"id": "int64"}))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ts.UnsupportedError, match=rf"pip install 'managed-tablestore\[{package}\]'") as refused:
        convert(table.scan())
    assert refused.value.kind == "missing-package"
