"""The things that actors do, each through the public interface of a table, and what each of them does to rows.

An effect maps the rows of a snapshot to those of the next one, on plain lists and dicts. It is noted before the commit is tried,
under the name of the operation: what the snapshots say that really landed decides whether it counts.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

from tablestore.distributed.write import commit_messages
from tablestore.errors import NotFoundError
from tablestore.log.events import Restarted, SchemaLanded
from tablestore.store.message import CommitMessage
from tablestore.table.table import Table
from tablestore.testing.night.actor import Actor
from tablestore.testing.night.lifeplan import UNSETTLED
from tablestore.types.evolution.schemachanges import AddColumn

Row = dict[str, Any]
Rows = list[Row]
Effect = Callable[[Rows], Rows]
KEYS = 12


def plain(rows: list[dict[str, Any]]) -> Rows:
    """Rows without what is null: a column that came later is null in older rows."""
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


# writers


def write(actor: Actor, chance: Random) -> None:
    """Append or upsert some rows."""
    table = actor.open()
    rows = _new_rows(actor, table, chance)
    _expect(actor, rows)
    actor.life.heard(actor.operation, _put(actor, table, rows))


def write_in_flushes(actor: Actor, chance: Random) -> None:
    """Write a key twice within a commit, sleeping with files that nobody knows."""
    table = actor.open()
    first = _new_rows(actor, table, chance)
    second = [{**row, "v": f"{row['v']}+"} for row in first] if actor.life.is_keyed else []
    _expect(actor, second or first)
    with table.new_writer(commit_user=actor.operation) as writer:
        for rows in filter(None, (first, second)):
            writer.write(pa.Table.from_pylist(rows, schema=table.schema))
            writer.flush()
            actor.pause("sleep with files", rest=chance.random() < 0.5)
        actor.life.heard(actor.operation, writer.commit())


def write_numbered(actor: Actor, chance: Random) -> None:
    """Commit under a number, again and again until it was heard of: it lands once."""
    table = actor.open()
    # The job's rows are what they were, whatever columns have come since.
    rows = actor.memory.setdefault(actor.operation, _new_rows(actor, table, chance))
    _expect(actor, rows)
    for _ in range(1 + chance.randrange(2)):
        with table.new_writer(commit_user=actor.plan.name) as writer:
            writer.write(pa.Table.from_pylist(rows, schema=table.schema))
            snapshot = writer.commit(identifier=int(actor.operation.rpartition(".")[2]))
        actor.life.heard(actor.operation, snapshot, once=True)


def commit_the_messages(actor: Actor, chance: Random) -> None:
    """Prepare messages in one process, and commit them until it was heard of: they land once."""
    table = actor.open()
    stored: bytes | None = actor.memory.get(actor.operation)
    if stored is None:
        rows = _new_rows(actor, table, chance)
        _expect(actor, rows)
        with table.new_writer() as writer:
            writer.write(pa.Table.from_pylist(rows, schema=table.schema))
            stored = writer.prepare().to_bytes()
        actor.memory[actor.operation] = stored
    for _ in range(1 + chance.randrange(2)):
        actor.life.heard(actor.operation, commit_messages(table, [CommitMessage.from_bytes(stored)]), once=True)


def upsert_some_columns(actor: Actor, chance: Random) -> None:
    """Upsert rows that lack a column: what is stored there stays."""
    table = actor.open()
    keys, number = chance.sample(range(KEYS), 2), chance.randrange(1_000_000)
    rows = pa.table({"id": pa.array(keys, pa.int64()), "n": pa.array([number] * len(keys), pa.int64())})

    def effect(state: Rows) -> Rows:
        stored = {row["id"]: row for row in state}
        kept = [{**stored.get(key, {}), "id": key, "n": number} for key in keys]
        return added(state, rows=kept, keyed=True)

    actor.life.effects[actor.operation] = effect
    actor.life.heard(actor.operation, table.upsert(rows, missing_columns="keep"))


def delete(actor: Actor, chance: Random) -> None:
    """Delete by a condition."""
    table = actor.open()
    key = chance.randrange(KEYS)
    above = chance.random() < 0.3
    condition = f"id > {key + KEYS // 2}" if above else f"id = {key}"
    actor.life.effects[actor.operation] = lambda rows: [
        row for row in rows if not (row["id"] > key + KEYS // 2 if above else row["id"] == key)
    ]
    actor.life.heard(actor.operation, table.delete(condition))


def delete_keys(actor: Actor, chance: Random) -> None:
    """Delete by key, whether it is there or not."""
    table = actor.open()
    keys = chance.sample(range(KEYS), 2)
    actor.life.effects[actor.operation] = lambda rows: [row for row in rows if row["id"] not in keys]
    actor.life.heard(actor.operation, table.delete(pa.table({"id": pa.array(keys, pa.int64())})))


def update(actor: Actor, chance: Random) -> None:
    """Set a column of the rows of a condition."""
    table = actor.open()
    key, text = chance.randrange(KEYS), actor.operation
    actor.life.effects[actor.operation] = lambda rows: [{**row, "v": text} if row["id"] == key else row for row in rows]
    actor.life.heard(actor.operation, table.update({"v": f"'{text}'"}, f"id = {key}"))


def overwrite(actor: Actor, chance: Random) -> None:
    """Replace all rows, by some or by none."""
    table = actor.open()
    rows = _new_rows(actor, table, chance) if chance.random() < 0.8 else []
    actor.life.effects[actor.operation] = lambda _: plain(rows)
    actor.life.heard(actor.operation, table.overwrite(pa.Table.from_pylist(rows, schema=table.schema), {}))


def add_column(actor: Actor, chance: Random) -> None:
    """Add a column, which is null in the rows that are there."""
    table = actor.open()
    if len(table.schema) < 6:
        table.alter(AddColumn(f"c{chance.randrange(1000)}x{actor.operation.replace('.', 'x')}", pa.int64()))


# upkeep


def compact(actor: Actor, chance: Random) -> None:
    """Compact some or all; the rows stay."""
    actor.open().compact(full=chance.random() < 0.5)


def compact_manifests(actor: Actor, _: Random) -> None:
    """Rewrite manifests."""
    actor.open().compact_manifests()


def expire(actor: Actor, chance: Random) -> None:
    """Expire all but some snapshots."""
    keep = chance.choice((1, 1, 2, 3))
    actor.open().expire_snapshots(retain_min=keep, retain_max=keep)


def clean(actor: Actor, _: Random) -> None:
    """Remove what nothing names."""
    report = actor.open().remove_orphan_files(dry_run=False)
    actor.life.outcomes["orphans removed"] += len(report.orphans)


# what keeps


def tag(actor: Actor, chance: Random) -> None:
    """Tag a snapshot."""
    name = f"t{actor.operation.replace('.', '-')}"
    actor.open().create_tag(name, _some_snapshot(actor, chance))


def delete_tag(actor: Actor, chance: Random) -> None:
    """Delete a tag."""
    if name := _some_tag(actor, chance):
        actor.open().delete_tag(name)


def rename_tag(actor: Actor, chance: Random) -> None:
    """Give a tag another name."""
    if name := _some_tag(actor, chance):
        actor.open().rename_tag(name, f"{name}r")


def branch(actor: Actor, chance: Random) -> None:
    """Begin a branch, at a tag or at the newest snapshot."""
    actor.open().create_branch(f"b{actor.operation.replace('.', '-')}", tag=_some_tag(actor, chance))


def write_branch(actor: Actor, chance: Random) -> None:
    """Write to a branch."""
    if name := _some_branch(actor, chance):
        table = actor.open().branch(name)
        rows = _new_rows(actor, table, chance)
        _expect(actor, rows)
        actor.life.heard(actor.operation, _put(actor, table, rows))
        if chance.random() < 0.3:
            table.expire_snapshots(retain_min=1, retain_max=1)


def fast_forward(actor: Actor, chance: Random) -> None:
    """Give main the rows of a branch."""
    if name := _some_branch(actor, chance):
        actor.life.heard(actor.operation, actor.open().fast_forward(name, discard_newer=True))


def delete_branch(actor: Actor, chance: Random) -> None:
    """Delete a branch."""
    if name := _some_branch(actor, chance):
        actor.open().delete_branch(name)


def roll_back(actor: Actor, chance: Random) -> None:
    """Give the table the rows that it had."""
    name = _some_tag(actor, chance)
    table = actor.open()
    snapshot = table.rollback_to(tag=name) if name else table.rollback_to(_some_snapshot(actor, chance))
    actor.life.heard(actor.operation, snapshot)


# readers


def scan(actor: Actor, _: Random) -> None:
    """Read all rows."""
    scanned = actor.open().scan()
    _saw(actor, scanned.snapshot_id, scanned.to_arrow().to_pylist())


def read_slowly(actor: Actor, _: Random) -> None:
    """Read batch by batch, and let others go on in between."""
    scanned = actor.open().scan()
    rows: Rows = []
    for batch in scanned.to_batches():
        rows += batch.to_pylist()
        actor.pause("reads slowly", rest=True)
    _saw(actor, scanned.snapshot_id, rows)


def read_tag(actor: Actor, chance: Random) -> None:
    """Read a tag."""
    if name := _some_tag(actor, chance):
        scanned = actor.open().scan(tag=name)
        _saw(actor, scanned.snapshot_id, scanned.to_arrow().to_pylist())


def read_changes(actor: Actor, chance: Random) -> None:
    """Read the changes since a snapshot, and apply them to its rows: they lead to the rows of the newest one of them."""
    table = actor.open()
    snapshots = table.snapshots()
    if len(snapshots) < 2 or actor.life.plan.table in UNSETTLED:
        return
    first, last = sorted((chance.choice(snapshots).id, snapshots[-1].id))
    changes = table.changes(first, last).to_arrow().to_pylist()
    actor.life.changed.append((first, last, changes))


def consume(actor: Actor, _: Random) -> None:
    """Follow the table: all rows, then every change. What it holds and the position of it are kept together."""
    life = actor.life
    if life.plan.table in UNSETTLED:
        return
    table = actor.open()
    name = actor.plan.name
    held: Rows = actor.memory.get("held", [])
    position = actor.memory.get("position")
    how = {"consumer_id": name} if life.is_keyed else {"position": position} if position else {"scan": "full"}
    last = 0
    try:
        for batch in table.consume(**how, follow=False, on_discontinuity="restart"):
            if isinstance(batch.event, Restarted):
                held = []
            held = _applied(held, batch.rows.to_pylist(), keyed=life.is_keyed)
            last = batch.snapshot_id
            # First what it holds, then how far it is: of a batch that comes twice each row takes its own place.
            actor.memory["held"], actor.memory["position"] = held, str(batch.position)
            actor.memory["newest"] = last
            if life.is_keyed:
                batch.commit()
            if isinstance(batch.event, SchemaLanded):
                # The columns that came are read by a handle that is opened after them.
                actor.table = None
                return
    except NotFoundError as error:
        if error.kind != "snapshot-expired" or life.is_keyed:
            raise
        # Without a name nothing is kept for it: begun again.
        actor.memory.pop("position", None)
        actor.memory.pop("held", None)
        raise
    newest: int = last or actor.memory.get("newest", 0)
    if newest and not life.has_new_columns:
        life.reads.append(("main", newest, plain(held)))


def leap(actor: Actor, _: Random) -> None:
    """Some hours pass."""
    actor.pause("time passes", rest=True)
    actor.life.leap()


ACTS: dict[str, Callable[[Actor, Any], None]] = {
    "write": write,
    "flushes": write_in_flushes,
    "numbered": write_numbered,
    "messages": commit_the_messages,
    "delete": delete,
    "delete keys": delete_keys,
    "update": update,
    "some columns": upsert_some_columns,
    "overwrite": overwrite,
    "add column": add_column,
    "compact": compact,
    "compact manifests": compact_manifests,
    "expire": expire,
    "clean": clean,
    "tag": tag,
    "delete tag": delete_tag,
    "rename tag": rename_tag,
    "branch": branch,
    "write branch": write_branch,
    "fast-forward": fast_forward,
    "delete branch": delete_branch,
    "roll back": roll_back,
    "scan": scan,
    "read slowly": read_slowly,
    "read tag": read_tag,
    "changes": read_changes,
    "consume": consume,
    "leap": leap,
}


def _new_rows(actor: Actor, table: Table, chance: Random) -> Rows:
    """Rows that carry the name of the operation, in all columns of the handle."""
    others = [name for name in table.schema.names if name not in ("id", "v", "n")]
    keys = chance.sample(range(KEYS), 1 + chance.randrange(3))
    return [{"id": key, "v": actor.operation, **dict.fromkeys(others, key)} for key in keys]


def _put(actor: Actor, table: Table, rows: Rows) -> Any:
    given = pa.Table.from_pylist(rows, schema=table.schema)
    return table.upsert(given) if actor.life.is_keyed else table.append(given)


def _expect(actor: Actor, rows: Rows) -> None:
    actor.life.effects[actor.operation] = partial(added, rows=plain(rows), keyed=actor.life.is_keyed)


def added(state: Rows, *, rows: Rows, keyed: bool) -> Rows:
    """The rows of a snapshot with others appended, or upserted."""
    keys = {row["id"] for row in rows} if keyed else set()
    return [*(row for row in state if row["id"] not in keys), *rows]


def _applied(state: Rows, changes: Rows, *, keyed: bool) -> Rows:
    for change in changes:
        kind, row = change["_row_kind"], {name: value for name, value in change.items() if name != "_row_kind"}
        if not keyed:
            assert kind == "+I", f"an append table told of {change}"
            state = [*state, row]
            continue
        state = [other for other in state if other["id"] != row["id"]]
        if kind in ("+I", "+U"):
            state.append(row)
    return state


def _saw(actor: Actor, snapshot_id: int | None, rows: list[dict[str, Any]]) -> None:
    actor.life.reads.append(("main", snapshot_id or 0, plain(rows)))


def _some_snapshot(actor: Actor, chance: Random) -> int:
    return max(actor.life.world.witness.newest("main")[1] - chance.randrange(4), 1)


def _some_tag(actor: Actor, chance: Random) -> str | None:
    return _some(actor.open().tags(), chance)


def _some_branch(actor: Actor, chance: Random) -> str | None:
    return _some(actor.open().branches(), chance)


def _some(things: Any, chance: Random) -> str | None:
    names = sorted(thing.name for thing in things)
    drawn = chance.random()
    return names[int(drawn * len(names))] if names else None
