"""Defines the port to what watches the operations on tables, ``Tracer``: each is a span, those that go on inside lie below it.

    upsert -> write -> commit            refresh -> scan -> write -> commit
           -> compact -> commit
           -> publish

A tracer comes with a catalog (:class:`~tablestore.telemetry.observers.Observers`), and travels no further than this process.
Without one :func:`traced` gives the same object each time, which does nothing.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Span(Protocol):
    """An operation that goes on."""

    def record(
        self,
        *,
        rows: int | None = None,
        files: int | None = None,
        size_bytes: int | None = None,
        snapshot_id: int | None = None,
    ) -> None:
        """Notes what was done: rows, files and bytes, and the snapshot that was read or published. None: not known."""
        ...


class Tracer(Protocol):
    """Watches operations."""

    def span(self, operation: str, location: str, *, encloses: bool = True) -> AbstractContextManager[Span]:
        """The span of an operation (``commit``) on the table at ``location``, from its ``with`` to the end of it; an error that
        leaves it is noted. ``encloses``: what begins before its end lies below it; not so one that may end in another thread."""
        ...


class _NoSpan:
    """Watches nothing."""

    def record(self, **done: int | None) -> None:
        return None


_NO_SPAN: AbstractContextManager[Span] = nullcontext(_NoSpan())


def traced(tracer: Tracer | None, operation: str, location: str) -> AbstractContextManager[Span]:
    """The span of an operation; without a tracer one that does nothing. Arguments as :meth:`Tracer.span`."""
    return _NO_SPAN if tracer is None else tracer.span(operation, location)
