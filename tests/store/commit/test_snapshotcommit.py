"""Who publishes snapshots: the file store's own way keeps the contract, and what a service is told of a commit."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.format.partitiontext import partition_texts
from tablestore.io.service.tablekeys import named_by_directory
from tablestore.store.commit.committerfactory import committer
from tablestore.store.commit.snapshotcommit import partition_statistics
from tablestore.store.context import open_context
from tablestore.testing.contracts.snapshotcommit import Opened, SnapshotCommitContract


class TestStore(SnapshotCommitContract):
    @pytest.fixture
    def opened(self, tmp_path: Path) -> Callable[[], Opened]:
        catalog = ts.open_catalog(str(tmp_path / "warehouse"))
        catalog.create_database("shop")
        files = catalog.create_table("shop.orders", "id BIGINT, v STRING").context.files

        def again() -> Opened:
            context = open_context(files)
            return Opened(context, committer(context).publishing)

        return again


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("/data/wh/shop.db/orders", ("shop", "orders")),
        ("s3://bucket/shop.db/orders/", ("shop", "orders")),
        ("s3://bucket/a/shop.db/odd.db", ("shop", "odd.db")),
        ("/data/wh/orders", None),
        ("/.db/orders", None),
        ("orders", None),
        ("", None),
    ],
)
def test_a_directory_of_a_database_names_its_table(location: str, name: tuple[str, str] | None) -> None:
    assert named_by_directory(location) == name


def test_statistics_are_the_changes_of_each_partition(tmp_path: Path) -> None:
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", "id BIGINT, day DATE, kind STRING", partition_by=["day", "kind"])
    days = pa.array([1, 1, 2, None], pa.date32())
    table.append(pa.table({"id": [1, 2, 3, 4], "day": days, "kind": ["a", "a", " ", None]}))
    context = table.context
    snapshot = context.snapshots.latest()
    assert snapshot is not None
    entries = list(context.manifests.entries(context.manifests.read_list(snapshot.delta_manifest_list)))
    texts = partial(partition_texts, [field.type for field in context.schema.partition_fields])
    statistics = partition_statistics(entries, context.schema.partition_fields, texts)
    by_spec = {(str(one["spec"]["day"]), str(one["spec"]["kind"])): one for one in statistics}  # type: ignore[index]
    none = "__DEFAULT_PARTITION__"
    assert {spec: one["recordCount"] for spec, one in by_spec.items()} == {("1", "a"): 2, ("2", none): 1, (none, none): 1}
    assert all(one["fileCount"] == 1 and one["totalBuckets"] == -1 for one in statistics)
    reversed_statistics = partition_statistics(
        [*entries, *(replace(entry, kind=EntryKind.DELETE) for entry in entries)],
        context.schema.partition_fields,
        texts,
    )
    assert all((one["recordCount"], one["fileSizeInBytes"], one["fileCount"]) == (0, 0, 0) for one in reversed_statistics)
