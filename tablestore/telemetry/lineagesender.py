"""Sends lineage to OpenLineage through its own client, beside the work: no write waits for it or fails with it.

    begin, completed … -> events -> a queue of bounded length -> a thread -> the client (OPENLINEAGE_URL, openlineage.yml)

The thread lives while there is something to send. A program that ends waits for it, for ten seconds at most, as ``close()`` does.
What the client does not get rid of is dropped, with what waits behind it, after one warning; so is what comes in the minute after
it: a server that takes connections and does not answer costs the attempts of the client for one event (six of five seconds, unless
its settings say otherwise).
"""

import atexit
import logging
import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from threading import Condition, Thread
from typing import Protocol

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import RunEvent, RunState

from tablestore.clock import Clock
from tablestore.ids import Ids
from tablestore.telemetry.lineage import LineageJob, LineageRun, Written
from tablestore.telemetry.lineageevents import parent_of, run_event

LOG = logging.getLogger(__name__)
DISTRIBUTION = "managed-tablestore"
MOST_WAITING = 1_000
"""Events that wait to be sent; more are dropped."""
SILENT_S = 60.0
CLOSE_S = 10.0


class EventClient(Protocol):
    """The part of OpenLineage's client that is used."""

    def emit(self, event: RunEvent) -> None:
        """Sends an event. Raises what it likes."""
        ...


class OpenLineage:
    """Implements :class:`~tablestore.telemetry.lineage.Lineage`. ``client``: makes the client when there is a first event.
    ``environment``: says which run of an orchestrator this process is a part of."""

    def __init__(
        self,
        clock: Clock,
        ids: Ids,
        client: Callable[[], EventClient] = OpenLineageClient,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._clock, self._ids, self._make_client = clock, ids, client
        self._client: EventClient | None = None
        self._version = _installed_version()
        self._waiting: deque[RunEvent] = deque()
        self._changed = Condition()
        self._is_sending = self._has_warned = False
        self._silent_until_s: float | None = None
        try:
            self.parent = parent_of(environment)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self.parent = None
            LOG.warning("OPENLINEAGE_CONTEXT or OPENLINEAGE_PARENT_ID is no run of OpenLineage's, and runs have no parent")

    def begin(self, job: LineageJob) -> LineageRun:
        """As :meth:`Lineage.begin <tablestore.telemetry.lineage.Lineage.begin>`."""
        run = _Run(self, job, self._ids.uuid())
        run.say(RunState.START)
        return run

    def say(self, make: Callable[[int, str], RunEvent]) -> None:
        """Queues an event, made of the time (ms since the epoch) and tablestore's version. Raises nothing."""
        try:
            event = make(self._clock.now_ms(), self._version)
        except Exception:
            # Whatever it was, the rows are what counts.
            self._warn("an event of lineage could not be made, and is left out")
            return
        with self._changed:
            if self._silent_until_s is not None and self._clock.steady_s() < self._silent_until_s:
                return
            if len(self._waiting) >= MOST_WAITING:
                self._warn(f"{MOST_WAITING:,} events of lineage wait to be sent, and the newest is left out")
                return
            self._waiting.append(event)
            if not self._is_sending:
                self._begin_sending()

    def close(self) -> None:
        """As :meth:`Lineage.close <tablestore.telemetry.lineage.Lineage.close>`."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._is_sending, timeout=CLOSE_S):
                # The end of the program does not wait once more.
                atexit.unregister(self.close)

    def _begin_sending(self) -> None:
        # Python waits without end for a thread that is no daemon.
        thread = Thread(target=self._send, name="tablestore-lineage", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # No thread is left, or the program is about to end.
            self._waiting.clear()
            self._warn("no thread sends events of lineage, and they are left out")
            return
        self._is_sending = True
        atexit.register(self.close)

    def _send(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._is_sending = False
                    atexit.unregister(self.close)
                    self._changed.notify_all()
                    return
                event = self._waiting.popleft()
            try:
                if self._client is None:
                    self._client = self._make_client()
                self._client.emit(event)
            except Exception:
                # Clients of transports raise what they like.
                with self._changed:
                    left_out = len(self._waiting) + 1
                    self._waiting.clear()
                    self._silent_until_s = self._clock.steady_s() + SILENT_S
                self._warn(f"lineage could not be sent, and {left_out} event(s) are left out; it is tried again in a minute")

    def _warn(self, message: str) -> None:
        log = LOG.debug if self._has_warned else LOG.warning
        self._has_warned = True
        log(message, exc_info=True)


@dataclass(slots=True)
class _Run:
    """Implements :class:`~tablestore.telemetry.lineage.LineageRun`."""

    sender: OpenLineage
    job: LineageJob
    run_id: str

    def completed(self, written: Written | None) -> None:
        self.say(RunState.COMPLETE, written)

    def failed(self, error: BaseException) -> None:
        self.say(RunState.FAIL, error=error)

    def aborted(self) -> None:
        self.say(RunState.ABORT)

    def say(self, state: RunState, written: Written | None = None, error: BaseException | None = None) -> None:
        """Queues the event of a state."""
        self.sender.say(
            lambda at_ms, version: run_event(
                self.job,
                state,
                run_id=self.run_id,
                at_ms=at_ms,
                version=version,
                parent=self.sender.parent,
                written=written,
                error=error,
            )
        )


def _installed_version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        # A checkout that is not installed.
        return "unknown"
