"""Texts that a stranger has changed: positions, progress, marks, offsets, messages. A typed error or a value, and nothing else."""

import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tablestore.cdc.deliver.filesink import FileSink
from tablestore.cdc.records.recordformats import open_decoder
from tablestore.cdc.records.target import Target
from tablestore.cdc.sourceposition import SourcePosition
from tablestore.cdc.sourceposition import parse_position as parse_source
from tablestore.distributed.stream.streamoffset import parse_offset
from tablestore.distributed.taskjson import decode_error, encode_error
from tablestore.distributed.writerfencing import WriterFence
from tablestore.errors import ConflictError, TablestoreError
from tablestore.ids import SystemIds
from tablestore.io.memory import MemoryFileStore
from tablestore.log.logprogress import LogProgress, decode_log_offsets, encode_log_offsets
from tablestore.log.position import parse_position, parse_stored
from tablestore.log.publish.ownerfile import read_log_owner
from tablestore.materialized.incremental.refreshcursor import parse_cursor
from tablestore.store.commit.deduplication import LANDINGS_PROPERTY, noted_commits
from tablestore.store.history.consumers import Consumers
from tablestore.store.history.expiryintents import damaged_intents, read_intents
from tablestore.store.history.retentionleases import RetentionLeases
from tablestore.store.replay import MARKS_PROPERTY, Replays, marks_directory, marks_of
from tablestore.store.snapshots import Snapshots
from tablestore.table.write.retractions import RetractionNeeds
from tablestore.types.datatypes import Field
from tablestore.types.typestring import parse_type
from tests.support.hostile.changed import changed_object

Parse = Callable[[bytes], object]
POSITION = {
    "position": 1,
    "table": "2c",
    "done": [7, "8f"],
    "log": "Xy",
    "offsets": {"0": 120},
    "marks": {"0": [8, 5]},
    "newest": "e",
}
FRAME = {"position": 1, "table": "2c", "frame": [7, "8f"], "rows": 5000, "reading": "a1"}
COLUMNS: dict[str, Any] = {
    "id": "BIGINT NOT NULL",
    "d": "DECIMAL(9, 2)",
    "s": "STRING",
    "b": "BYTES",
    "t": "TIMESTAMP(6)",
    "a": {"type": "ARRAY", "element": "INT"},
}


def kept(path: str, read: Callable[[MemoryFileStore], object]) -> Parse:
    """Reads a file of a table that holds the text."""

    def parse(data: bytes) -> object:
        files = MemoryFileStore.private("hostile")
        files.write(path, data)
        return read(files)

    return parse


def text(parse: Callable[[str], object]) -> Parse:
    """Reads a text."""
    return lambda data: parse(data.decode(errors="replace"))


def value(parse: Callable[[Any], object]) -> Parse:
    """Reads what another reader of JSON has read."""

    def read(data: bytes) -> object:
        try:
            content = json.loads(data)
        except (ValueError, RecursionError):
            return None
        return parse(content)

    return read


def decoded(form: str) -> Parse:
    fields = tuple(Field(id=number, name=name, type=parse_type(kind)) for number, (name, kind) in enumerate(COLUMNS.items()))
    target = Target(fields=fields, key=("id",), evolves=True, needs=RetractionNeeds(whole=False))

    def parse(data: bytes) -> object:
        found = open_decoder(form, target).decode([None, None], [data, b'{"id": 1}'])
        found.rows.validate(full=True)
        assert set(found.faults) <= {0, 1}
        return found

    return parse


def _field(kind: str, name: str, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "optional": True, "field": name, **more}


FIELDS = [
    _field("int64", "id"),
    _field("bytes", "d", name="org.apache.kafka.connect.data.Decimal", parameters={"scale": "2"}),
    _field("string", "s"),
    _field("int64", "t", name="io.debezium.time.MicroTimestamp"),
    _field("array", "a", items={"type": "int32", "optional": True}),
]
ROW = {"id": 1, "d": "Bg==", "s": "x", "b": "AA==", "t": 5, "a": [1, 2]}
ENVELOPE = {"schema": {"type": "struct", "fields": FIELDS}, "payload": ROW}
CHANGE = {"payload": {"op": "u", "before": ROW, "after": ROW, "ts_ms": 5, "source": {"table": "t"}}}
OFFSETS = {"0": 1204, "1": 977}

TEXTS: dict[str, tuple[Any, Parse]] = {
    "position": (POSITION, value(parse_position)),
    "frame": (FRAME, text(parse_position)),
    "stored position": (FRAME, value(parse_stored)),
    "offset of a stream": ({"offset": 1, "at": FRAME, "pieces": 1, "reading": "x"}, value(parse_offset)),
    "source position": (
        json.loads(SourcePosition(source="t", source_id="i", offsets={0: 3, 1: 9}, run="r").text()),
        text(lambda one: parse_source(one, where="here")),
    ),
    "cursor": ({"query": "q", "sources": {"a": ["u", 1, 2, "v"]}}, text(parse_cursor)),
    "marks": ({"job": 7, "other": 9}, text(lambda one: marks_of({MARKS_PROPERTY: one}))),
    "landings": ({"00ff": 7}, text(lambda one: noted_commits({LANDINGS_PROPERTY: one}))),
    "offsets of a log": (json.loads(encode_log_offsets("l", {0: 5})), text(decode_log_offsets)),
    "error of a task": (json.loads(encode_error(ConflictError("why"))), decode_error),
    "progress of a log": (
        {"snapshot": 7, "uuid": "u", "log": "l", "offsets": OFFSETS, "begins": 1, "gap": 0, "early": OFFSETS},
        kept("tablestore-log/1-0/00000000000000000007", lambda files: LogProgress(files).lower_bounds(1, 2)),
    ),
    "owner": (
        {"table": "u", "location": "/x", "log": "l", "former": ["/y"], "recordBytes": 7},
        kept("tablestore-log/owner.json", read_log_owner),
    ),
    "hold": (
        {"nextSnapshot": 7, "owner": "log", "token": "t", "target": "/x"},
        kept(
            "tablestore-holds/log-00000000000000000001",
            lambda files: (RetentionLeases(files).all(), RetentionLeases(files).floor()),
        ),
    ),
    "consumer": (
        {"nextSnapshot": 7, "tablestore.position": FRAME},
        kept("consumer/consumer-a", lambda files: Consumers(files).all()),
    ),
    "intent": (
        {"snapshots": {"1": "00ff"}, "tablestore.checksum": ""},
        kept("tablestore-expiry/1-2", lambda files: (read_intents(files), damaged_intents(files))),
    ),
    "files of changes": (
        {"at": "p", "run": "5b1c", "empty": False},
        kept("_tablestore/00000000000000000007.json", lambda files: FileSink(files, "json", SystemIds()).position()),
    ),
    "message": (ROW, decoded("json")),
    "message with a schema": (ENVELOPE, decoded("json")),
    "message of a change": (CHANGE, decoded("debezium-json")),
}
NAMES = ["²", "٣", "-1", "+1", "1_0", " 7", "9" * 200, "9" * 5000, "", "x", "0x1", "1.0"]


def check(name: str, seed: int, count: int, canary: Path) -> None:
    """Change the text ``count`` times."""
    content, parse = TEXTS[name]
    parse(json.dumps(content).encode())
    chance = random.Random(f"{name}/{seed}")
    for number in range(count):
        data = changed_object(content, canary, chance)
        try:
            parse(data)
        except TablestoreError:
            continue
        except Exception as error:
            raise AssertionError(f"{name} {seed}/{number}: {data[:500]!r} gave {error!r}") from error


@pytest.mark.deep_after(8)
@pytest.mark.parametrize("name", TEXTS)
def test_a_changed_text_gives_a_typed_error_or_a_value(name: str, tmp_path: Path) -> None:
    check(name, 1, 80, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_many_changed_texts_give_typed_errors_or_values(name: str, tmp_path: Path) -> None:
    for seed in range(2, 6):
        check(name, seed, 500, tmp_path)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "path", ["tablestore-log/1-0/{}", "tablestore-log/{}-0/7", "_tablestore/{}.json", "{marks}/writers-{}", "{marks}/{}"]
)
def test_a_file_whose_name_is_no_number_is_none_of_ours(name: str, path: str) -> None:
    files = MemoryFileStore.private("hostile")
    with suppress(TablestoreError):  # no file is called so
        files.write(path.format(name, marks=marks_directory("job")), b"[]")
    assert all(number < 10**20 for number in (*LogProgress(files).layouts(), LogProgress(files).published(1)))
    assert (Replays(files, Snapshots(files)).progress("job", None) or (0,))[0] < 10**20
    with suppress(TablestoreError):
        FileSink(files, "json", SystemIds()).position()
    with suppress(TablestoreError):
        WriterFence(files, "job").enter("me")


def test_folders_of_made_up_slots_do_not_count() -> None:
    """Each slot would be fenced by a client of its own."""
    files = MemoryFileStore.private("hostile")
    for name in ("4-0", "999999999-0", "10001-0"):
        files.write(f"tablestore-log/{name}/00000000000000000001", b"{}")
    assert LogProgress(files).layouts() == (4,)
