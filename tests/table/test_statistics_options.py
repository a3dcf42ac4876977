"""What manifests hold and how they are compressed is chosen per table: it is kept to by every commit, and it may be altered."""

import io
import re
from dataclasses import replace
from itertools import count
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.format.manifest.avro import CODECS
from tablestore.io.memory import MemoryFileStore
from tablestore.store.context import open_context
from tablestore.store.schemas import Schemas
from tablestore.testing.lab import Lab

NAMES = count()
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("a,b", pa.string())])


def _lab(*, keyed: bool = True, **options: str) -> Lab:
    return Lab(MemoryFileStore(f"statistics-{next(NAMES)}"), keyed=keyed, schema=COLUMNS, options=options)


@pytest.mark.parametrize("asked", ["zstd", "Null", "deflate", "snappy"])
def test_every_metadata_file_of_every_kind_of_commit_has_the_codec(asked: str) -> None:
    lab = _lab(**{"manifest.compression": asked, "deletion-vectors.enabled": "true", "manifest.merge-min-count": "2"})
    for number in range(4):
        lab.write_new((number, "v", "x"), (9, "v", "y"))
    lab.open().compact(full=True)
    lab.open().delete("id = 2")
    lab.open().overwrite(lab.rows((7, "z", "z")))
    names = [info.name for info in lab.files.list("manifest")]
    assert {name.rsplit("-", 6)[0] for name in names} == {"manifest", "manifest-list", "index-manifest"}
    for name in names:
        header = fastavro.reader(io.BytesIO(lab.files.read(f"manifest/{name}"))).metadata
        assert header["avro.codec"] == CODECS[asked.lower()], name
    assert lab.read() == [(7, "z", "z")]


def _store_option(lab: Lab, key: str, text: str) -> None:
    schemas = Schemas(lab.files)
    latest = schemas.latest()
    schemas.publish(replace(latest, id=latest.id + 1, options={**latest.options, key: text}))


def test_tables_keep_working_with_a_name_of_a_codec_that_new_ones_may_not_use() -> None:
    lab = _lab()
    _store_option(lab, "manifest.compression", "none")
    lab.write_new((1, "v", "x"))
    lab.open().alter([ts.SetOption("manifest.compression", "null")])
    assert lab.read() == [(1, "v", "x")]


def test_a_table_with_a_codec_that_we_do_not_write_stays_readable() -> None:
    lab = _lab()
    lab.write_new((1, "v", "x"))
    _store_option(lab, "manifest.compression", "xz")
    assert lab.read() == [(1, "v", "x")]
    with pytest.raises(ts.UnsupportedError, match=r"manifest\.compression = xz"):
        lab.write_new((2, "v", "x"))


@pytest.mark.parametrize("key", ["metadata.stats-mode", "fields.v.stats-mode"])
def test_a_table_with_a_mode_of_statistics_that_we_do_not_know_stays_readable(key: str) -> None:
    lab = _lab()
    lab.write_new((1, "v", "x"))
    _store_option(lab, key, "some")
    assert lab.read() == [(1, "v", "x")]
    with pytest.raises(ts.InvalidInputError, match=re.escape(key)):
        lab.write_new((2, "v", "x"))


def _kept(lab: Lab) -> list[tuple[str, ...] | None]:
    context = open_context(lab.files)
    return [entry.file.value_stats_cols for entry in context.manifests.live(context.snapshots.latest())]


@pytest.mark.parametrize("keyed", [True, False])
def test_the_mode_of_a_column_follows_its_name_and_holds_for_files_from_then_on(keyed: bool) -> None:
    lab = _lab(keyed=keyed, **{"metadata.stats-mode": "none", "fields.a,b.stats-mode": "full"})
    lab.write_new((1, "v", "x"))
    assert _kept(lab) == [("a,b",)]
    table = lab.open()
    table.alter([ts.RenameColumn("a,b", to="c"), ts.RenameColumn("v", to="w")])
    table.alter([ts.SetOption("fields.w.stats-mode", "counts"), ts.SetOption("manifest.compression", "null")])
    assert table.refresh().options()["fields.c.stats-mode"] == "full"
    rows = lab.rows((2, "v", "y")).rename_columns(["id", "w", "c"])
    (lab.open().upsert if keyed else lab.open().append)(rows)
    assert sorted(_kept(lab)) == [("a,b",), ("w", "c")]
    assert lab.read(filter="c = 'y'") == [(2, "v", "y")]
    assert lab.read(filter="c = 'x'") == [(1, "v", "x")]
    assert lab.read(filter="w IS NULL") == []
    table.alter([ts.RemoveOption("fields.w.stats-mode"), ts.SetOption("fields.c.stats-mode", "counts")])
    lab.open().compact(full=True)
    assert _kept(lab) == [("c",)]


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [("fields.z.stats-mode", "full", "unknown-column"), ("fields.v.stats-mode", "x", "invalid-option")],
)
def test_a_mode_of_no_column_and_a_mode_that_is_none_are_refused(
    tmp_path: Path, keyed: bool, key: str, value: str, kind: str
) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    made = {"schema": COLUMNS, "primary_key": ["id"] if keyed else ()}
    with pytest.raises(ts.InvalidInputError, match=key) as caught:
        catalog.create_table("shop.t", options={key: value}, **made)
    assert caught.value.kind == kind
    table = catalog.create_table("shop.t", **made)
    with pytest.raises(ts.InvalidInputError, match=key):
        table.alter([ts.SetOption(key, value)])


def test_a_mode_may_be_altered_while_changes_wait_for_a_compaction() -> None:
    lab = _lab(**{"changelog-producer": "full-compaction", "merge-engine": "aggregation", "fields.v.stats-mode": "none"})
    lab.write_new((1, "v", "x"))
    lab.open().alter([ts.SetOption("fields.v.stats-mode", "full"), ts.SetOption("fields.id.stats-mode", "none")])
    lab.open().alter([ts.RemoveOption("fields.v.stats-mode")])
    lab.write_new((1, "w", "y"))
    lab.open().compact(full=True)
    assert _kept(lab) == [("v", "a,b")]
