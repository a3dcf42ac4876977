"""The sweep of ``simulation/test_after_landing_logs.py`` for a table whose log is a topic.

Every file operation behind the link fails in turn. The writer hears of its snapshot, the next write leaves nothing undone, and the
topic holds each row once.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import StorageError
from tablestore.store.postcommit import read_undone
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.topics import records
from tests.support.changelogs.commitsweep import SCHEMA, Foreign, make_busy, sweep


@pytest.mark.deep
@pytest.mark.parametrize(
    ("error", "step"),
    [
        pytest.param(Foreign, 29, id="foreign errors, now and then"),
        pytest.param(Foreign, 1, id="foreign errors", marks=pytest.mark.slow),
        pytest.param(StorageError, 1, id="ours", marks=pytest.mark.slow),
    ],
)
def test_whatever_fails_behind_a_landed_commit_the_topic_has_each_row_once(
    tmp_path: Path, broker: KafkaBroker, request: pytest.FixtureRequest, error: Callable[[str], Exception], step: int
) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    topic = "".join(c if c.isalnum() else "-" for c in request.node.name)
    table = make_busy(catalog, **{"log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": topic})
    written = sweep(catalog, error, step=step)
    assert Counter(record[-1] for record in records(table)) == written


@pytest.mark.deep
def test_an_open_publisher_goes_on_where_another_one_sent_snapshots_that_have_expired(tmp_path: Path, broker: KafkaBroker) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    table = make_busy(catalog, **{"log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": "two-publishers"})
    others = ts.open_catalog(str(tmp_path))
    for number in range(6):
        handle = (catalog if number % 2 else others).table("shop.t")
        assert isinstance(handle, ts.Table)
        handle.upsert(pa.table({"id": [1], "v": [str(number)]}, schema=SCHEMA))
        assert read_undone(table.context.files) == (), f"write {number}"
    assert [record[-1] for record in records(table)] == [str(number) for number in range(6)]
    catalog.close()
    others.close()
