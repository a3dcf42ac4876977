"""Builds the committer of an open table."""

from functools import partial

from tablestore.format.binaryrow import decode_row
from tablestore.format.manifest.datafile import DataFileMeta
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.snapshot import WRITER_VERSION
from tablestore.lsm.keyorder import KeyOrder
from tablestore.options import ROW_TRACKING_ENABLED, WRITE_ONLY, TableOptions
from tablestore.store.changes.changeplan import change_rule
from tablestore.store.commit.committer import CommitSettings, Committer
from tablestore.store.commit.snapshotcommit import ServiceCommit, StoreCommit, service_commit
from tablestore.store.context import TableContext
from tablestore.store.datapaths import entry_path
from tablestore.store.history.references import own_branch
from tablestore.store.settings import read_only_table
from tablestore.store.write.datawriter import rewrite_with_sequence


def committer(context: TableContext) -> Committer:
    """The one that publishes snapshots. Raises UnsupportedError for a table whose rows are numbered."""
    if context.settings.numbers_rows:
        raise read_only_table(context.schema, ROW_TRACKING_ENABLED.key, context.files.root_uri)
    service = getattr(context.main_files, "service", None)
    publishing = StoreCommit(context.files) if service is None else service_commit(context, service)
    return Committer(
        branch=own_branch(context),
        publishing=publishing,
        service=publishing if isinstance(publishing, ServiceCommit) else None,
        schemas=context.schemas,
        snapshots=context.snapshots,
        manifests=context.manifests,
        sequence=context.sequence,
        clock=context.clock,
        ids=context.ids,
        settings=CommitSettings(
            timeout_s=context.settings.commit_timeout_s,
            orphan_age_s=context.settings.orphan_age_s,
            tombstone_retention_ms=context.settings.tombstone_retention_ms,
            shows_new_rows=not (context.settings.skips_level_zero or context.settings.postpones),
            takes_up_new_rows=context.once(_takes_up_new_rows),
            merge_policy=context.settings.manifest_merge,
            tracking=context.settings.tracking,
            writer_version=WRITER_VERSION,
        ),
        is_keyed=context.schema.is_keyed,
        in_frame=change_rule(context).in_frame,
        keys=KeyOrder.of(context.schema.key_fields),
        rewrite=partial(_rewrite, context),
        remove_file=context.remove_file,
        has_file=lambda entry: context.files.exists(entry_path(context.paths, entry, context.schema)),
        tracer=context.shared.observers.tracer,
    )


def _takes_up_new_rows(context: TableContext) -> bool:
    return not (context.settings.postpones or TableOptions(context.schema.options).flag(WRITE_ONLY))


def _rewrite(context: TableContext, entry: ManifestEntry, number: int) -> DataFileMeta:
    partition = decode_row(entry.partition, [f.type for f in context.schema.partition_fields])
    return rewrite_with_sequence(context.files, context.paths, entry, number, ids=context.ids, partition=partition)
