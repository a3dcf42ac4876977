"""Expires changelogs: removes those kept of expired snapshots (:mod:`~tablestore.store.changes.expiredchanges`).

    write EARLIEST in changelog/ -> remove change files that no snapshot, tag or branch needs, their manifests and lists,
    and the changelog files, oldest first

A run that dies leaves changelog files whose lists may be gone; the next run removes them.
"""

from contextlib import suppress
from dataclasses import replace

from tablestore.errors import NotFoundError
from tablestore.format.manifest.manifestfile import ManifestEntry
from tablestore.format.paths import changelog_path, manifest_path
from tablestore.format.snapshot import Snapshot
from tablestore.store.changes.expiredchanges import change_files, changelog_lists
from tablestore.store.context import TableContext
from tablestore.store.history.expire import ExpireReport, consumers_alive_since, paths_of, produces_changelog
from tablestore.store.history.references import Needs, other_branches, own_branch
from tablestore.store.history.retention import Retention, pick_end
from tablestore.store.history.storeclock import check_clock


def expire_changelogs(context: TableContext, retention: Retention | None, *, dry_run: bool = False) -> ExpireReport:
    """Drop the kept changelogs that ``retention`` lets go; None: all of them, because the table keeps none any more."""
    branch = own_branch(context)
    changelogs = branch.changelogs.all()
    latest = context.snapshots.latest()
    if not changelogs or latest is None:
        return ExpireReport(dry_run=dry_run)
    end = _end(context, changelogs, latest, retention)
    needed, kept_by = branch.needed_from(consumers_alive_since(context)), None
    if needed is not None and needed[0] < end:
        end, kept_by = needed
    expiring = [snapshot for snapshot in changelogs if snapshot.id < end]
    staying = [snapshot for snapshot in changelogs if snapshot.id >= end]
    report = ExpireReport(dry_run=dry_run, changelogs=tuple(snapshot.id for snapshot in expiring), kept_by=kept_by)
    if not expiring:
        return report
    data, metadata = _removable(context, expiring, staying)
    report = replace(report, data_files=len(data), metadata_files=len(metadata), bytes=sum(data.values()))
    if dry_run:
        return report
    check_clock(context.files, context.clock, context.ids)
    branch.changelogs.write_hints(earliest=staying[0].id if staying else end)
    for path in (*data, *metadata, *(changelog_path(snapshot.id) for snapshot in expiring)):
        context.files.delete(path)
    return report


def _end(context: TableContext, changelogs: tuple[Snapshot, ...], latest: Snapshot, retention: Retention | None) -> int:
    first = changelogs[0].id
    if retention is None:
        return min(changelogs[-1].id + 1, first + 1_000)
    times = {snapshot.id: snapshot.time_millis for snapshot in changelogs}

    def time_of(snapshot_id: int) -> int:
        if (time_millis := times.get(snapshot_id)) is not None:
            return time_millis
        snapshot = context.snapshots.find(snapshot_id)
        return snapshot.time_millis if snapshot is not None else latest.time_millis

    return pick_end(first, latest.id, time_of=time_of, now_millis=context.clock.now_ms(), retention=retention)


def _removable(context: TableContext, expiring: list[Snapshot], staying: list[Snapshot]) -> tuple[dict[str, int], tuple[str, ...]]:
    manifests = context.manifests

    def produces(snapshot: Snapshot) -> bool:
        return produces_changelog(context, snapshot)

    files: dict[str, ManifestEntry] = {}
    lists: set[str] = set()
    names: set[str] = set()
    for snapshot in expiring:
        snapshot_lists = changelog_lists(snapshot, produced=produces(snapshot))
        lists.update(snapshot_lists)
        with suppress(NotFoundError):
            names.update(manifest.file_name for name in snapshot_lists for manifest in manifests.read_list(name))
            files.update((e.file.file_name, e) for e in change_files(snapshot, manifests, produced=produces(snapshot)))
    needs = Needs(manifests, wanted=files.keys())
    needs.add_changelogs(staying, produces)
    branch = own_branch(context)
    needs.add_branch(branch, produces, changelogs=False)
    for other in other_branches(branch):
        needs.add_branch(other, produces)
    data: dict[str, int] = {}
    for name, entry in files.items():
        if name not in needs.data:
            data.update(paths_of(context, entry))
    metadata = [manifest_path(name) for name in sorted(names - needs.metadata)]
    return data, (*metadata, *(manifest_path(name) for name in sorted(lists - needs.metadata)))
