"""What does one `tablestore serve` process stand: commits of 16 connections, long lists, a table of many files, idle streams?

The service is a process of its own over a warehouse on the disk of ``--directory``, and every file of a commit is synced. It and
its callers, threads of this process, share two cores.

commits     tablestore's own client: each commit reads the newest snapshot, writes its manifests, and asks the service; no data
            file is written. To a table each, and all to one table.
lists       10,000 tables: their names by the protocol, and the page of the warehouse, which also says what needs care
pages       a table of 100,000 files: links to real ones, so that the sample of rows is read
streams     callers that have had the first event of the page of jobs, and wait
"""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from threading import Thread
from urllib.parse import urlsplit

import pyarrow as pa

import tablestore as ts
from benchmarks.measure import WrongRows, second_core
from benchmarks.report import Bar
from benchmarks.setting import Setting
from tablestore.store.commit.committer import CommitRequest
from tablestore.store.commit.committerfactory import committer
from tablestore.store.context import TableContext
from tablestore.store.datapaths import entry_path
from tablestore.store.message import CommitMessage
from tablestore.table.write.committing import Effect, Origin, commit_message

CONNECTIONS = 16
SECONDS, QUICK_SECONDS = 30.0, 6.0
TABLES, FILES, STREAMS = 10_000, 100_000, 1_000
DAYS = 100
IDLE_S = 20.0
QUESTIONS = 9
# A file system links a file to some 65,000 names, and a caller needs a descriptor for each stream.
_DESCRIPTORS = 8_192
SCHEMA = pa.schema([pa.field("day", pa.int32()), pa.field("id", pa.int64()), pa.field("name", pa.string())])


def run(setting: Setting) -> None:
    """All questions of this module."""
    with second_core() as has_two:
        if not has_two:
            setting.report.skipped.append("service: it takes two cores, and there is one")
            return
        _commits(setting)
        _lists(setting)
        _pages(setting)
        _streams(setting)


@dataclass(frozen=True, slots=True)
class Service:
    """A service that runs."""

    address: str
    pid: int

    def memory(self) -> int:
        """The bytes that it holds."""
        import psutil

        return int(psutil.Process(self.pid).memory_info().rss)


@contextmanager
def serving(warehouse: Path) -> Iterator[Service]:
    """A service of a warehouse, in a process of its own, until the end of the block."""
    command = [sys.executable, "-m", "tablestore", "serve", "--warehouse", str(warehouse), "--name", "wh", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Service(json.loads(process.stdout.readline())["address"], process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _commits(setting: Setting) -> None:
    seconds = QUICK_SECONDS if setting.quick else SECONDS
    for one_table, bound in ((False, 100), (True, 40)):
        with setting.workspace("service") as space:
            catalog = ts.open_catalog(str(space))
            catalog.create_database("shop")
            names = ["shop.orders"] * CONNECTIONS if one_table else [f"shop.orders{number}" for number in range(CONNECTIONS)]
            for name in sorted(set(names)):
                catalog.create_table(name, SCHEMA, options={"write-only": "true"}).append(_rows(0))
            where = "one table" if one_table else f"{CONNECTIONS} tables"
            setting.say(f"commits to {where}")
            with serving(space) as service:
                took = _race(service, names, seconds)
            landed = sum(_landed(catalog, name) for name in set(names))
        if landed != len(took):
            raise WrongRows(f"{len(took)} commits were acknowledged, and {landed} have landed")
        millis = sorted(one * 1000 for one in took)
        note = f"{len(took):,} commits of {CONNECTIONS} connections; p50 {_share(millis, 0.5):.0f} ms, slowest {millis[-1]:.0f} ms"
        setting.add_bar(
            Bar(name=f"commits to {where}", measured=len(took) / seconds, bound=bound, unit="commits/s", at_least=True, note=note)
        )
        setting.add_bar(Bar(name=f"p99 of a commit to {where}", measured=_share(millis, 0.99), bound=500, unit="ms", note=note))


def _race(service: Service, names: Sequence[str], seconds: float) -> list[float]:
    """The seconds that each commit took, of callers that commit without a pause."""
    took: list[float] = []
    errors: list[BaseException] = []
    tables = [ts.open_catalog({"metastore": "rest", "uri": service.address}).table(name) for name in names]
    end = time.perf_counter() + seconds

    def commit(number: int, context: TableContext) -> None:
        entry = context.manifests.live(context.snapshots.latest())[0]
        turn = 0
        try:
            while (began := time.perf_counter()) < end:
                turn += 1
                name = entry.file.file_name.replace(".parquet", f"-{number}-{turn}.parquet")
                base = context.snapshots.latest()
                message = CommitMessage(
                    table_uuid=context.table_uuid,
                    schema_id=context.schema.id,
                    base_snapshot_id=base.id if base else 0,
                    base_snapshot_uuid=base.uuid if base else None,
                    created_millis=int(time.time() * 1000),
                    entries=(replace(entry, file=replace(entry.file, file_name=name)),),
                )
                committer(context).commit(CommitRequest(user=f"caller-{number}", is_new_user=True, message=message))
                took.append(time.perf_counter() - began)
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=commit, args=(number, table.context)) for number, table in enumerate(tables)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return took


def _landed(catalog: ts.Catalog, name: str) -> int:
    """The commits of callers: all but the first, which gave the table a file to copy."""
    latest = catalog.table(name).context.snapshots.latest()
    return 0 if latest is None else latest.id - 1


def _lists(setting: Setting) -> None:
    count = setting.scaled(TABLES) if setting.quick else TABLES
    with setting.workspace("service") as space:
        setting.say(f"a warehouse of {count:,} tables")
        _many_tables(space, count)
        with serving(space) as service:
            first, again = _asked(service, "/v1/wh/databases/shop/tables", lambda body: len(json.loads(body)["tables"]) == count)
            setting.add_bar(_time_bar(f"list of {count:,} tables", first, again, 300))
            first, again = _asked(service, "/page", lambda body: b"orders" in body)
            setting.add_bar(_time_bar(f"page of a warehouse of {count:,} tables", first, again, 1_000))


def _pages(setting: Setting) -> None:
    files = setting.scaled(FILES) if setting.quick else FILES
    with setting.workspace("service") as space:
        setting.say(f"a table of {files:,} files")
        _many_files(space, files)
        with serving(space) as service:
            for path, what in (("", "table page"), ("/storage", "storage page"), ("/history", "history page")):
                first, again = _asked(service, f"/page/tables/shop/orders{path}", lambda body: b"orders" in body)
                setting.add_bar(_time_bar(f"{what} of {files:,} files", first, again, 1_000))


def _streams(setting: Setting) -> None:
    count = setting.scaled(STREAMS) if setting.quick else STREAMS
    with setting.workspace("service") as space, ExitStack() as stack:
        setting.say(f"{count:,} idle streams")
        _many_tables(space, 10)
        stack.enter_context(_descriptors())
        service = stack.enter_context(serving(space))
        # What the first event loads is no stream's.
        _connected(service).close()
        before, most = service.memory(), 0
        sockets = [stack.enter_context(_connected(service)) for _ in range(count)]
        end = time.perf_counter() + (QUICK_SECONDS if setting.quick else IDLE_S)
        while time.perf_counter() < end:
            most = max(most, service.memory())
            time.sleep(0.2)
        for one in sockets:
            one.setblocking(False)
            if not _is_open(one):
                raise WrongRows("a stream was ended")
    added = (most - before) / 2**20
    note = f"of {before / 2**20:.0f} MiB without; {count:,} streams"
    setting.add_bar(Bar(name=f"memory of {count:,} idle event streams", measured=added, bound=200, unit="MiB", note=note))


def _connected(service: Service) -> socket.socket:
    """A caller that has had its first event."""
    host, port = urlsplit(service.address).netloc.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), timeout=60)
    connection.sendall(f"GET /page/jobs/events HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: text/event-stream\r\n\r\n".encode())
    received = b""
    while b"event: jobs" not in received:
        if not (part := connection.recv(65_536)):
            raise WrongRows(f"the stream ended: {received[:200]!r}")
        received += part
    if b" 200 " not in received[:20]:
        raise WrongRows(f"expected a stream, got {received[:200]!r}")
    return connection


def _is_open(connection: socket.socket) -> bool:
    """True if the other side has not closed it: there is nothing to read, or bytes."""
    try:
        while part := connection.recv(65_536):
            if part.endswith(b"0\r\n\r\n"):
                return False
        return False
    except BlockingIOError:
        return True


@contextmanager
def _descriptors() -> Iterator[None]:
    """As many descriptors as the streams take, also for the service that is started inside of the block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _asked(service: Service, path: str, is_right: Callable[[bytes], bool]) -> tuple[float, float]:
    """The seconds of the first answer, and the median of those that follow."""
    took = []
    connection = HTTPConnection(urlsplit(service.address).netloc, timeout=120)
    for _ in range(QUESTIONS):
        began = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        took.append(time.perf_counter() - began)
        if answer.status != 200 or not is_right(body):
            raise WrongRows(f"GET {path}: {answer.status}, {body[:200]!r}")
    connection.close()
    return took[0], median(took[1:])


def _time_bar(name: str, first: float, again: float, bound_ms: float) -> Bar:
    note = f"the first answer of a fresh service; then {again * 1000:.0f} ms"
    return Bar(name=name, measured=first * 1000, bound=bound_ms, unit="ms", note=note)


def _many_tables(space: Path, count: int) -> None:
    """Tables of one commit: copies of one, by links."""
    catalog = ts.open_catalog(str(space))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", SCHEMA)
    table.append(_rows(0))
    source = Path(table.location)
    files = [path.relative_to(source) for path in source.rglob("*") if path.is_file()]
    folders = sorted({path.parent for path in files})
    for number in range(count - 1):
        copy = source.parent / f"orders{number:05}"
        for folder in folders:
            (copy / folder).mkdir(parents=True, exist_ok=True)
        for file in files:
            os.link(source / file, copy / file)


def _many_files(space: Path, count: int) -> None:
    """A table of so many files in :data:`DAYS` partitions: links to a few real ones."""
    catalog = ts.open_catalog(str(space))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", SCHEMA, partition_by=["day"], options={"write-only": "true"})
    table.append(pa.concat_tables([_rows(day) for day in range(DAYS)]))
    context, root = table.context, Path(table.location)
    copies = []
    for entry in context.manifests.live(context.snapshots.latest()):
        source = root / entry_path(context.paths, entry, context.schema)
        for number in range(count // DAYS - 1):
            copy = replace(
                entry, file=replace(entry.file, file_name=entry.file.file_name.replace(".parquet", f"-{number}.parquet"))
            )
            os.link(source, root / entry_path(context.paths, copy, context.schema))
            copies.append(copy)
    with table.new_writer() as writer:
        writer.write(_rows(0))
        message = writer.prepare()
    commit_message(context, table.change_log, replace(message, entries=(*message.entries, *copies)), Effect(), Origin(user="fill"))


def _rows(day: int) -> pa.Table:
    return pa.table({"day": [day] * 10, "id": range(10), "name": [f"name {number}" for number in range(10)]}, schema=SCHEMA)


def _share(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
