"""Checks that this host's clock agrees with the store's, before anything is deleted by its age.

    write a probe ── read its modification time ── remove it          host ahead by more than MAX_SKEW_MS: refused

Files carry the store's time; other hosts write snapshots, tags and consumers. A host whose clock is ahead would take the files of
a running commit for old and living consumers for dead. One whose clock is behind deletes too little, and the next run deletes the
rest.
"""

from contextlib import suppress

from tablestore.clock import Clock
from tablestore.errors import StorageError, TablestoreError, UnsupportedError
from tablestore.ids import Ids
from tablestore.io.filestore import TEMPORARY_PREFIX, FileStore
from tablestore.store.history.expiryintents import EXPIRY_DIR

# As much as object stores allow between a client and themselves.
MAX_SKEW_MS = 15 * 60 * 1000
_TRIES = 5


def check_clock(files: FileStore, clock: Clock, ids: Ids, *, directory: str = EXPIRY_DIR) -> int:
    """The time to count ages from: the earlier one of host and store, in milliseconds since the epoch.

    ``directory``: where the probe is written. Raises StorageError (kind ``clock-skew``) where the host is ahead by more than
    MAX_SKEW_MS, UnsupportedError (``no-file-times``) for a store whose files have no time.
    """
    for _ in range(_TRIES):
        path = f"{directory}/{TEMPORARY_PREFIX}clock-{ids.uuid()}"
        begun_ms = clock.now_ms()
        files.write(path, b"")
        try:
            now_ms = check_clock_by(files, begun_ms, path)
        finally:
            # A probe that stays is removed with the temporary files.
            with suppress(TablestoreError):
                files.delete(path)
        if now_ms is not None:
            return now_ms
    raise StorageError(
        f"{files.root_uri}: another process removed the file that was written to read the store's clock, {_TRIES} times; repeat it "
        "when no other removal of orphan files is running"
    )


def check_clock_by(files: FileStore, begun_ms: int, made_since: str) -> int | None:
    """Checks as :func:`check_clock`, by a file that this process has made after its clock said ``begun_ms``; None if it is
    gone."""
    directory, _, name = made_since.rpartition("/")
    store_ms = next((info.modified_ms for info in files.list(directory, prefix=name) if info.name == name), None)
    if store_ms is None:
        return None
    where = files.root_uri
    if store_ms <= 0:
        raise UnsupportedError(
            f"{where}: this store does not say when a file was made, so nothing in it can be removed by its age",
            kind="no-file-times",
        )
    ahead_s = (begun_ms - store_ms) / 1000
    if ahead_s * 1000 > MAX_SKEW_MS:
        raise StorageError(
            f"the clock of this host is {ahead_s:.0f} s ahead of that of {where}, expected at most {MAX_SKEW_MS // 1000} s: "
            "nothing is removed, because young files would be taken for old; set the clock right (NTP), then repeat it",
            kind="clock-skew",
        )
    return min(begun_ms, store_ms)
