"""Expiry as any engine of the format may do it: snapshots strictly oldest first, then what only they needed."""

from tablestore.io.filestore import FileStore
from tablestore.testing.auditor import Auditor


def expire(files: FileStore, *, keep: int, hint: bool = True) -> int:
    """Expire all but the newest ``keep`` snapshots of the table in ``files``; returns how many went.

    ``hint``: write ``EARLIEST`` first, as others do.
    """
    auditor = Auditor(files)
    ids = auditor.ids()
    # An id below a gap belongs to a committer that has not looked yet: it is not part of the history.
    tail = [i for i in ids if all(other in ids for other in range(i, ids[-1]))]
    gone = tail[: len(tail) - keep]
    if not gone:
        return 0
    before = auditor.referenced()
    if hint:
        files.overwrite("snapshot/EARLIEST", str(gone[-1] + 1).encode())
    for snapshot_id in gone:
        files.delete(f"snapshot/snapshot-{snapshot_id}")
    for path in sorted(before - auditor.referenced()):
        files.delete(path)
    return len(gone)
