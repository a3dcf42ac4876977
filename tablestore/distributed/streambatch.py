"""Commits each batch of a stream once, also if the stream repeats it, days later and after its snapshot has expired.

    query id   commit user         the name of a stream, through all restarts
    batch id   commit identifier   rises with every batch; a stream that is started again repeats its last one

The table knows the highest batch of every query (:mod:`~tablestore.store.replay`), and a batch that is not above it does nothing.
Batches without rows are known too, though they are no snapshot. That is right as long as the numbers belong to this table and to
one stream. Both can be wrong, and rows would be lost without a word, so both are checked before anything lands:

* The table is not the one of the earlier batches (it was dropped and made again): it meets the query with a batch above the first.
* Two streams have one query id, because somebody copied a checkpoint: the table keeps which checkpoint numbers the batches.

Two streams that run beside each other by mistake take turns, and nobody would see it. So the one that began first is ended by an
error at its next batch (:class:`~tablestore.distributed.writerfencing.WriterFence`):

* Both run from one checkpoint. Nothing is lost: what the one has not written the other one finds in the checkpoint.
* Both replace all rows of the table with every batch, each what the other one wrote.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tablestore.distributed.write import abort_messages, commit_messages
from tablestore.distributed.writerfencing import WriterFence
from tablestore.errors import ConflictError, InvalidInputError
from tablestore.format.snapshot import Snapshot
from tablestore.log.port import ChangeLog
from tablestore.store.message import CommitMessage
from tablestore.store.replay import Replays
from tablestore.table.table import Table

# For whom those who replace all rows stand; no query has this id.
_ALL_ROWS = "all rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBatch:
    """One batch. ``checkpoint``: where the stream keeps its progress; ``run``: which start of the stream it is, by an id that no
    other start has; None if that is not known.

    ``adopts``: the table takes the stream as it is, whatever it knows of it.
    """

    query_id: str
    batch_id: int
    checkpoint: str | None
    run: str | None = None
    adopts: bool = False


def has_landed(table: Table, batch: StreamBatch) -> bool:
    """True if the batch, or a later one, is in the table. Raises InvalidInputError (``foreign-checkpoint``) for a checkpoint with
    batches that this table never had, ConflictError (``copied-checkpoint``) for a second one of the same query, and (``newer-run``)
    for a run that another one of the same query has followed."""
    context = table.context
    replays = Replays(context.files, context.snapshots)
    highest = replays.highest(batch.query_id, context.snapshots.latest())
    origins = set(replays.origins(batch.query_id).values())
    if not batch.adopts:
        if highest is None and not origins and batch.batch_id > 0:
            raise _foreign(table, batch)
        if batch.checkpoint is not None and origins and batch.checkpoint not in origins:
            raise _copied(table, batch, min(origins))
    if batch.checkpoint is not None and origins != {batch.checkpoint}:
        replays.keep_origin(batch.query_id, batch.checkpoint)
    if batch.run is not None and (newer := WriterFence(context.files, batch.query_id).enter(batch.run)) is not None:
        raise _followed(table, batch, newer)
    return highest is not None and batch.batch_id <= highest


def commit_batch(
    table: Table, messages: Sequence[CommitMessage], batch: StreamBatch, *, overwrite: bool = False, log: ChangeLog | None = None
) -> Snapshot | None:
    """Commit the messages of a batch's tasks; ``overwrite``: in place of all rows of the table.

    None if there was nothing to publish, or the batch landed before and its snapshot has expired. Raises as :func:`has_landed` and
    ``commit_messages``; ConflictError (``newer-query``) where another stream overwrites the table since this one did.
    """
    try:
        if not has_landed(table, batch) and overwrite:
            _check_alone(table, batch)
    except (ConflictError, InvalidInputError):
        abort_messages(table, messages)
        raise
    snapshot = commit_messages(
        table,
        messages,
        overwrite=overwrite,
        partition={} if overwrite else None,
        commit_user=batch.query_id,
        identifier=batch.batch_id,
        allow_empty=False,
        log=log,
    )
    if snapshot is None:
        Replays(table.context.files, table.context.snapshots).keep_mark(batch.query_id, batch.batch_id)
    return snapshot


def no_checkpoint(table: str, way_out: str) -> InvalidInputError:
    """The error for a stream that keeps no progress; ``way_out``: how it gets a folder for that."""
    return InvalidInputError(
        f"You should enable the checkpointing for sinking to managed table '{table}', managed table relies on checkpoint to commit "
        f"and the data is visible only after commit. Give the query a folder for its checkpoint: {way_out}",
        kind="no-checkpoint",
    )


def _check_alone(table: Table, batch: StreamBatch) -> None:
    newer = WriterFence(table.context.files, _ALL_ROWS).enter(batch.query_id, again=batch.adopts)
    if newer is not None:
        raise ConflictError(
            f"query {batch.query_id} replaces all rows of table {table.name} with each of its batches, and query {newer} has "
            "begun to do so too: each would remove what the other one writes. Stop one of the two, or let it write to a table of "
            "its own. To go on with this one, stop the other one and give the option adopt-checkpoint = true, once",
            kind="newer-query",
        )


def _followed(table: Table, batch: StreamBatch, newer: str) -> ConflictError:
    return ConflictError(
        f"query {batch.query_id} writes batch {batch.batch_id} to table {table.name} in run {batch.run}, and a later run of it, "
        f"{newer}, writes too: the query was started twice from one checkpoint. Nothing is lost or doubled, and the later run goes "
        "on. Start a query of its own with a new checkpointLocation; to go on with this one, stop the later run and start it again",
        kind="newer-run",
    )


def _foreign(table: Table, batch: StreamBatch) -> InvalidInputError:
    where = f" {batch.checkpoint}" if batch.checkpoint is not None else ""
    return InvalidInputError(
        f"the checkpoint{where} of query {batch.query_id} goes on with batch {batch.batch_id}, and table {table.name} has none of "
        "its batches: it was dropped and made again since, or the query wrote to another table. To write everything into this one, "
        "start the query with a new checkpointLocation. If the earlier batches shall not be here, go on with the option "
        "adopt-checkpoint = true, once",
        kind="foreign-checkpoint",
    )


def _copied(table: Table, batch: StreamBatch, checkpoint: str) -> ConflictError:
    return ConflictError(
        f"query {batch.query_id} writes to table {table.name} from the checkpoint {checkpoint}; found its batch {batch.batch_id} "
        f"coming from {batch.checkpoint}. Two streams with one id would take each other's batches for their own: start the second "
        "one with a new checkpointLocation. If the checkpoint has moved, go on with the option adopt-checkpoint = true, once",
        kind="copied-checkpoint",
    )
