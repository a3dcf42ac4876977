"""A process that reads, sweeps and refreshes hostile warehouses, and watches itself: ``python -m tests.support.hostile.process``.

Of every case it reports whatever is not harmless: an error that is not ours, a file outside of the warehouse that is opened, made
or removed, a connection, a program that is started, memory beyond the bound, and a table that lost its rows. Time without end ends
the process. The case is printed before it runs, so that the one that ends the process is known.
"""

import json
import logging
import os
import random
import resource
import shutil
import signal
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

import tablestore as ts
from tablestore.errors import TablestoreError
from tablestore.store.history.expiryintents import ExpiryIntent, digest_of, write_intent
from tablestore.store.history.retentionleases import RetentionLeases
from tablestore.table.inspect.check import check_table
from tablestore.types.evolution.schemachanges import AddColumn
from tests.support.hostile.changed import KINDS, change

CASE_S, CASE_BYTES = 60, 1 << 30
SECRET = "of nobody's business"
ROWS = [{"id": k, "p": f"p{k % 2}", "v": f"v{k}"} for k in range(6)]
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("p", pa.string(), nullable=False), ("v", pa.string())])
OLD = timedelta(days=-20_000)

_OPENS = (
    "open",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "shutil.rmtree",
    "os.chmod",
)
_IN_FOLDER = ("os.remove", "os.rmdir", "os.mkdir")
_NEVER = (
    "socket.connect",
    "socket.bind",
    "socket.getaddrinfo",
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
)


class Watch:
    """What the process does outside of the warehouse while it is on."""

    def __init__(self, warehouse: Path) -> None:
        code = [sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), str(Path(__file__).parents[3]), *sys.path]
        self.readable = (*(f"{os.path.realpath(place)}/" for place in code if place), "/usr/", "/etc/", "/proc/", "/dev/")
        self.warehouse, self.found, self.is_on = str(warehouse), list[str](), False
        sys.addaudithook(self.hear)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_on or not (event in _OPENS or event in _NEVER):
            return
        if event in _NEVER:
            self.found.append(f"{event} {arguments[:2]!r:.200}")
            return
        paths = arguments[:2] if event in ("os.rename", "os.link") else arguments[:1]
        reads = event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        folder = arguments[-1] if event in _IN_FOLDER and arguments[-1] != -1 else None
        for path in paths:
            if isinstance(path, int) or path is None:
                continue
            name = os.fsdecode(path)
            above = "" if folder is None else os.readlink(f"/proc/self/fd/{folder}")
            whole = os.path.abspath(os.path.join(above, name))
            # What stands at the end is changed itself, and read wherever it leads.
            place = os.path.join(os.path.realpath(os.path.dirname(whole)), os.path.basename(whole))
            if not f"{place}/".startswith((f"{self.warehouse}/", *(self.readable if reads else ()))):
                self.found.append(f"{event} {whole[:200]}")


def build(warehouse: Path) -> None:
    """A warehouse with all that is read from storage and then acts."""
    catalog = ts.open_catalog(str(warehouse))
    catalog.create_database("shop")
    catalog.create_table("shop.precious", COLUMNS, ["id"], options={"bucket": "1"}).upsert(ROWS)
    options = {
        "bucket": "1",
        "deletion-vectors.enabled": "true",
        "changelog-producer": "input",
        "changelog.num-retained.max": "100",
        "snapshot.num-retained.max": "3",
        "snapshot.num-retained.min": "1",
        "write-only": "true",
    }
    table = catalog.create_table("shop.keyed", COLUMNS, ["p", "id"], partition_by=["p"], options=options)
    table.upsert(ROWS)
    table.create_tag("one")
    table.create_branch("side", tag="one")
    table.upsert([{"id": 1, "p": "p1", "v": "again"}])
    table.compact(full=True)
    table.delete("id = 2")
    with table.new_writer(commit_user="job") as writer:
        writer.write([{"id": 9, "p": "p1", "v": "nine"}])
        writer.commit(7)
    table.branch("side").upsert([{"id": 70, "p": "p0", "v": "side"}])
    table = table.alter(AddColumn("more", "INT"))
    table.expire_snapshots(retain_max=3, retain_min=1, older_than=0)
    for batch in islice(table.consume("full", consumer_id="reader", follow=False), 3):
        batch.commit()
    plain = catalog.create_table("shop.plain", COLUMNS, options={"deletion-vectors.enabled": "true"})
    for k in range(3):
        plain.append(ROWS[k : k + 2])
    plain.delete("id = 1")
    context = table.context
    RetentionLeases(context.files).take("log", 2, owner="the log", ids=context.ids)
    RetentionLeases(context.files).take("materialized-00ff", 2, owner="m", ids=context.ids, target=f"{warehouse}/shop.db/gone")
    first = context.snapshots.listed_ids()[0]
    digests = {first: digest_of(context.snapshots.read_file(first))}
    write_intent(context.files, ExpiryIntent(first=first, end=first + 1, digests=digests))
    staged = catalog.stage_table("shop.staged", COLUMNS, ["id"], job_id="staged")
    staged.table.upsert(ROWS)
    catalog.intend_creation("visible", "shop.visible", commit_user="visible").create_table(COLUMNS)
    catalog.stage_replacement("shop.plain", COLUMNS, job_id="replacing").table.append(ROWS)


Action = Callable[[ts.Catalog], object]


def drain(rows: Iterable[Any]) -> list[Any]:
    """At most some of them: a hostile count must not be read to its end."""
    return list(islice(rows, 50))


def actions() -> dict[str, Action]:
    """What people and services do with a warehouse."""

    def keyed(catalog: ts.Catalog) -> Any:
        return catalog.table("shop.keyed")

    def both(catalog: ts.Catalog) -> Iterator[Any]:
        return map(catalog.table, ("shop.keyed", "shop.plain"))

    return {
        "scan": lambda c: [one.scan().to_arrow().to_pylist() for one in both(c)],
        "tag": lambda c: keyed(c).scan(tag="one").to_arrow().to_pylist(),
        "branch": lambda c: keyed(c).branch("side").scan().to_arrow().to_pylist(),
        "first": lambda c: keyed(c).scan(snapshot_id=1).to_arrow().to_pylist(),
        "changes": lambda c: drain(keyed(c).changes(1).to_batches()),
        "consume": lambda c: [one.commit() for one in drain(keyed(c).consume(consumer_id="reader", follow=False))],
        "inspect": lambda c: (keyed(c).tags(), keyed(c).branches(), keyed(c).consumers(), keyed(c).snapshots(), keyed(c).files()),
        "system": lambda c: [c.table(f"shop.keyed${one}").scan().to_arrow() for one in ("snapshots", "files", "tags", "consumers")],
        "check": lambda c: check_table(keyed(c).context, deep=True),
        "upsert": lambda c: keyed(c).upsert([{"id": 1, "p": "p0", "v": "mine"}], missing_columns="null"),
        "delete": lambda c: keyed(c).delete("id = 3"),
        "compact": lambda c: keyed(c).compact(full=True),
        "expire": lambda c: [one.expire_snapshots(retain_max=1, retain_min=1, older_than=0) for one in both(c)],
        "orphans": lambda c: [one.remove_orphan_files(0, dry_run=False) for one in both(c)],
        "rollback": lambda c: keyed(c).rollback_to(tag="one"),
        "forward": lambda c: keyed(c).fast_forward("side", discard_newer=True),
        "untag": lambda c: keyed(c).delete_tag("one"),
        "unbranch": lambda c: keyed(c).delete_branch("side"),
        "reset": lambda c: keyed(c).reset_consumer("reader", 2),
        "alter": lambda c: keyed(c).alter(AddColumn("another", "INT")),
        "sweep": lambda c: c.sweep_creations(OLD),
        "holds": lambda c: c.release_dead_holds(),
        "creations": lambda c: (c.creation_of("shop.staged"), c.creation("visible"), c.list_creations()),
        "undo": lambda c: (found := c.creation("visible")) and found.undo(),
        "drop": lambda c: c.drop_table("shop.keyed"),
        "list": lambda c: (c.list_tables("shop"), c.list_databases(), c.table_exists("shop.keyed")),
    }


def say(**line: object) -> None:
    """Tell the process that waits for this one."""
    sys.stdout.write(f"{json.dumps(line)}\n")
    sys.stdout.flush()


def run_case(case: int, folder: Path, watch: Watch, seed: int) -> tuple[str, list[str]]:
    """One case: what it was, and what of it was not harmless."""
    chance = random.Random(f"{seed}/{case}")
    warehouse, canary = folder / "wh", folder / "canary"
    shutil.rmtree(warehouse, ignore_errors=True)
    shutil.copytree(folder / "template", warehouse, symlinks=True)
    kind = list(KINDS)[case % len(KINDS)]
    what = change(warehouse, canary, kind, chance)
    say(case=case, what=ascii(what)[:400])
    every = actions()
    last = ["drop"] if chance.random() < 0.2 else []
    chosen = [*chance.sample([name for name in every if name != "drop"], 7), *last]
    if kind == "intent":
        chosen = [*dict.fromkeys(["sweep", "holds", "creations", *chosen])]
    wrong: list[str] = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.alarm(CASE_S)
    watch.found.clear()
    watch.is_on = True
    for name in chosen:
        try:
            got = every[name](ts.open_catalog(str(warehouse)))
        except TablestoreError:
            continue
        except Exception as error:  # every other is a fault
            wrong.append(f"{name}: {type(error).__name__}: {ascii(str(error))[:200]} {traceback.format_exc()[-700:]}")
            continue
        if SECRET in str(got):
            wrong.append(f"{name}: gave what lies outside of the warehouse")
    watch.is_on = False
    signal.alarm(0)
    wrong += watch.found
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    if grown > CASE_BYTES:
        wrong.append(f"memory: {grown} bytes")
    try:
        left = ts.open_catalog(str(warehouse)).table("shop.precious").scan().to_arrow().to_pylist()
    except TablestoreError as error:
        left = [str(error)]
    if sorted(map(str, left)) != sorted(map(str, ROWS)) and "precious" not in what.partition(":")[0]:
        wrong.append(f"the table beside it lost its rows: {left}")
    return f"{what} {chosen}", wrong


def main(folder: Path, seed: int, first: int, count: int) -> None:
    """Run cases; what was not harmless is printed as one line a case."""
    warnings.simplefilter("ignore")
    logging.disable()
    if not (folder / "template").exists():
        build(folder / "wh")
        os.rename(folder / "wh", folder / "template")
    watch = Watch(folder / "wh")
    for case in range(first, first + count):
        what, wrong = run_case(case, folder, watch, seed)
        if wrong:
            say(case=case, what=ascii(what), wrong=wrong)
    say(done=count)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
