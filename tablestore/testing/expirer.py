"""Expiry as any engine of the format may do it: snapshots strictly oldest first, then what only they needed."""

from typing import Any

from tablestore.errors import NotFoundError
from tablestore.io.filestore import FileStore
from tablestore.testing.auditor import Auditor


def expire(files: FileStore, *, keep: int, hint: bool = True) -> int:
    """Expire all but the newest ``keep`` snapshots of the table in ``files``; returns how many went.

    ``hint``: write ``EARLIEST`` first, as others do. Of the data files only those go that a later snapshot deleted: what an id
    below the history added may still be committed by its writer.
    """
    auditor = Auditor(files)
    # An id below a gap belongs to a committer that has not looked yet: it is not part of the history.
    ids = auditor.ids()
    gone, kept = ids[: len(ids) - keep], ids[len(ids) - keep :]
    if not gone or not kept:
        return 0
    try:
        deltas = [auditor.entries(auditor.snapshot(i)["deltaManifestList"]) for i in [*gone[1:], kept[0]]]
        metadata = auditor.metadata(gone) - auditor.metadata(kept)
    except NotFoundError:
        return 0  # one of them was dead, and its committer has taken it away meanwhile
    data = {auditor.path_of(name) for delta in deltas for name in _names(delta, 1) - _names(delta, 0)}
    if hint:
        files.overwrite("snapshot/EARLIEST", str(kept[0]).encode())
    for snapshot_id in gone:
        files.delete(f"snapshot/snapshot-{snapshot_id}")
    for path in sorted(data | metadata):
        files.delete(path)
    return len(gone)


def _names(delta: list[dict[str, Any]], kind: int) -> set[str]:
    """The files that a delta adds (0) or deletes (1). One that it does both to has only moved to another level."""
    return {entry["_FILE"]["_FILE_NAME"] for entry in delta if entry["_KIND"] == kind}
