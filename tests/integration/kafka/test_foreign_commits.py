"""Another engine commits between ours to a table with a topic: the publisher sends it, until then readers use the file store."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.testing.contracts.following import SCHEMA, all_of, content, folded, from_the_start, keys, once, rows, told
from tablestore.testing.kafka import KafkaBroker
from tests.support.services import require_service

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "interop"))

import setup_oracles
from oracles import JavaOracle
from topics import records

# The broker's worker starts the Java process as well: a second broker would cost more.
pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("kafka")]


@pytest.fixture(scope="module")
def java() -> Iterator[JavaOracle]:
    try:
        home = setup_oracles.ensure_java()
    except setup_oracles.SetupError as error:
        require_service(str(error), setup_oracles.COMMAND, env=os.environ)
    oracle = JavaOracle(home)
    yield oracle
    oracle.close()


def foreign(ids: list[int], text: str) -> list[dict[str, object]]:
    return [{"day": "mon", "id": i, "v": f"{text}{i}"} for i in ids]


@pytest.mark.deep
def test_foreign_commits_reach_readers_once_before_and_after_they_are_published(
    tmp_path: Path, broker: KafkaBroker, java: JavaOracle
) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    options = {"bucket": "2", "write-only": "true", "log.kafka.bootstrap.servers": broker.servers, "log.kafka.topic": "foreign"}
    table = catalog.create_table("shop.t", schema=SCHEMA, primary_key=["id"], options=options)
    path = tmp_path / "shop.db" / "t"
    table.upsert(rows([1, 2, 3], "a"))
    got = told(all_of(table, consumer_id="c"))
    for batch in table.consume(consumer_id="c", follow=False):
        batch.commit()
    java.write(path, foreign([2, 4], "java"))
    java.write(path, foreign([3], "java"), kinds=["-D"])
    for batch in table.consume(consumer_id="c", follow=False):
        got += told([batch])
        batch.commit()
    assert once(got) and folded(got) == content(table) == {1: "a1", 2: "java2", 4: "java4"}
    assert len(records(table)) == 3, "nobody has published them yet"
    # The frame of a foreign snapshot, which noted nothing, and what follows it.
    reading = table.consume(scan="full", follow=False)
    frame = [next(reading)]
    java.compact(path, full=True)
    table.upsert(rows([5], "b"))
    table.delete(keys([1]))
    java.write(path, foreign([6], "java"))
    assert sum(report.records for report in table.change_log.publish()) == 1
    for batch in table.consume(consumer_id="c", follow=False):
        got += told([batch])
        batch.commit()
    whole, since = told(from_the_start(table)), told([*frame, *reading])
    for changes in (got, whole, since):
        assert once(changes) and folded(changes) == content(table) == {2: "java2", 4: "java4", 5: "b5", 6: "java6"}
    assert sorted(record[3] for record in records(table)) == [1, 1, 2, 2, 3, 3, 4, 5, 6]
    assert table.change_log.verify().problems == ()
    # A foreign overwrite does not tell its changes, with or without our properties.
    java.write(path, foreign([7], "java"), overwrite={})
    table.upsert(rows([8], "c"))
    restarted = told(all_of(table, consumer_id="c", on_discontinuity="restart"))
    assert folded([change for change in restarted if change[0] > whole[-1][0]]) == content(table) == {7: "java7", 8: "c8"}
