"""Ctrl-C: the command ends, and says what it had committed by then.

    before the command's own work       the process leaves at once: imports are not interrupted half-way, and nothing has landed
    while it works                      KeyboardInterrupt, as ever; then the tables that it opened are looked at. An import that
                                        a command begins with ends at once too, as long as no id was drawn: nothing can have landed

A snapshot is ours if its uuid, which is drawn for each commit, was drawn by this program. So a commit that was interrupted between
its landing and its return is found too, and those of others that landed meanwhile are left out.
"""

import os
import signal
from collections.abc import Collection, Iterable
from itertools import islice
from types import FrameType
from typing import TYPE_CHECKING

from tablestore.errors import TablestoreError
from tablestore.ids import Ids, SystemIds

if TYPE_CHECKING:
    from tablestore.table.table import Table

INTERRUPTED = 130
NOTHING = "nothing was committed"
# So many of the newest snapshots of a table are looked at.
_LOOKED_AT = 100


class RememberedIds:
    """Ids that know which of them they have given out, in which order."""

    def __init__(self, ids: Ids | None = None) -> None:
        self._ids, self.given = ids or SystemIds(), dict[str, None]()

    def uuid(self) -> str:
        """A fresh one, which is remembered."""
        fresh = self._ids.uuid()
        self.given[fresh] = None
        return fresh

    def since(self, count: int) -> frozenset[str]:
        """The ids that were given out after so many."""
        return frozenset(islice(self.given, count, None))

    def nonce(self) -> bytes:
        """Random bytes."""
        return self._ids.nonce()

    def fraction(self) -> float:
        """A random number."""
        return self._ids.fraction()


def what_landed(tables: Iterable["Table"], uuids: Collection[str]) -> str:
    """The commits to these tables under these uuids: "nothing was committed", "snapshot 5 of shop.orders was committed"."""
    texts = [f"{_numbers(ours)} of {table.name}" for table in tables if (ours := _ours(table, uuids))]
    if not texts:
        return NOTHING
    several = len(texts) > 1 or texts[0].startswith("snapshots")
    return f"{' and '.join(texts)} {'were' if several else 'was'} committed"


def _ours(table: "Table", uuids: Collection[str]) -> list[int]:
    snapshots = table.context.snapshots
    newest = islice(snapshots.back_from(snapshots.latest()), _LOOKED_AT)
    return sorted(snapshot.id for snapshot in newest if snapshot.uuid in uuids)


def _numbers(ours: list[int]) -> str:
    return f"snapshot {ours[0]}" if len(ours) == 1 else f"snapshots {ours[0]} to {ours[-1]}"


def unknown(error: TablestoreError) -> str:
    """The message where the tables do not answer."""
    return f"what was committed is not known ({error}); look with: tablestore snapshot list TABLE"


def leave_at_ctrl_c() -> None:
    """From now on Ctrl-C ends the process at once. Only for the main thread, before the command works."""
    # A program that is started in the background may ignore the signal: it goes on doing so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def raise_at_ctrl_c(ids: RememberedIds) -> None:
    """From now on Ctrl-C raises again, but in an import before the first of these ids is drawn: that ends the process at once, as
    a module that is imported by half fails later."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not ids.given and _is_importing(frame):
            _leave()
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, interrupt)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None


def _leave(*_: object) -> None:
    os.write(2, f"Interrupted: {NOTHING}.\n".encode())
    os._exit(INTERRUPTED)
