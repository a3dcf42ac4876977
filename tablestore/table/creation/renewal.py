"""Renews the record of a creation, so that its job counts as alive while it is busy with something else."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from tablestore.errors import ConflictError, TablestoreError

LOG = logging.getLogger(__name__)

RENEW_EVERY_S = 300.0
"""A small part of the time after which a creation counts as dead, so that a few that fail do no harm."""


@contextmanager
def renewing(renew: Callable[[], object]) -> Iterator[None]:
    """Call ``renew`` every few minutes until the block ends, in a thread. It ends early where the job was given up for dead."""
    stopped = Event()

    def run() -> None:
        while not stopped.wait(RENEW_EVERY_S):
            try:
                renew()
            except TablestoreError as error:
                LOG.warning("a creation could not be renewed: %s", error)
                if isinstance(error, ConflictError):
                    return

    thread = Thread(target=run, name="tablestore-renewal", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
