"""What the rules are written in: a table, a pause, other engines and compactions."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.io.filestore import FileStore
from tablestore.store.commit.committer import CommitRequest
from tablestore.store.commit.committerfactory import committer
from tablestore.store.message import CommitMessage
from tablestore.store.write.writerfactory import data_writer
from tablestore.table.table import Table
from tablestore.testing.files import Faults, FileCall, When
from tablestore.testing.lab import Lab, is_snapshot

Rule = Callable[[FileStore], None]
RULES: dict[str, Rule] = {}


def rule(function: Rule) -> Rule:
    """Note a function as one of the rules."""
    RULES[function.__name__] = function
    return function


def once(
    faults: Faults, when: When, op: str, act: Callable[[], object], *, match: Callable[[FileCall], bool] = is_snapshot
) -> None:
    """Let others ``act`` at the first call of ``op`` that matches."""
    done = False

    def hook(call: FileCall) -> None:
        nonlocal done
        if not done and match(call):
            done = True
            act()

    (faults.before if when == "before" else faults.after)(hook, op=op)


def refused(error: type[BaseException], act: Callable[[], object]) -> Any:
    """What ``act`` raises; it must be an ``error``."""
    try:
        result = act()
    except error as found:
        return found
    raise AssertionError(f"expected {error.__name__}, got {result!r}")


def numbered(table: Table, lab: Lab, identifier: int, *rows: tuple[Any, ...], user: str = "etl") -> Snapshot | None:
    """One numbered commit of a job."""
    with table.new_writer(commit_user=user) as writer:
        writer.write(lab.rows(*rows))
        return writer.commit(identifier=identifier)


def foreign(lab: Lab, sequence: int, *rows: tuple[Any, ...]) -> None:
    """A commit of another engine, with numbers of its own and without our properties."""
    context = lab.open().context
    writer = data_writer(context, sequence)
    writer.write(lab.rows(*rows))
    entries = writer.finish()
    latest = context.snapshots.latest()
    message = CommitMessage(
        table_uuid=context.table_uuid,
        schema_id=context.schema.id,
        base_snapshot_id=latest.id if latest else 0,
        created_millis=context.clock.now_ms(),
        entries=entries,
    )
    snapshot = committer(context).commit(CommitRequest(user="foreign", message=message))
    assert snapshot is not None
    lab.make_foreign(snapshot.id)


def compact(lab: Lab) -> None:
    """Rewrite all live files of an append table as one, as a compaction does."""
    table = lab.open()
    rows = table.scan().to_arrow()
    context = table.context
    writer = data_writer(context, 0)
    writer.write(rows)
    entries = writer.finish()
    latest = context.snapshots.latest()
    message = CommitMessage(
        table_uuid=context.table_uuid,
        schema_id=context.schema.id,
        base_snapshot_id=latest.id if latest else 0,
        created_millis=context.clock.now_ms(),
        entries=entries,
    )
    request = CommitRequest(
        user="compactor",
        kind=CommitKind.COMPACT,
        message=message,
        plan_deletes=lambda newest: [replace(e, kind=EntryKind.DELETE) for e in context.manifests.live(newest)],
    )
    assert committer(context).commit(request) is not None


def commit_prepared(table: Table, message: CommitMessage) -> Snapshot | None:
    """Commit files that a writer prepared."""
    return committer(table.context).commit(CommitRequest(user="prepared", message=message))
