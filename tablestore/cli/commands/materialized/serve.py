"""``tablestore mt serve``: the scheduler that is built in. It refreshes what is due, looks again after an interval, and never ends.

Several may serve one warehouse: each refresh happens once. The first Ctrl-C or SIGTERM lets the refresh that runs come to its end;
a second one interrupts it, and nothing of it is visible.
"""

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

import tablestore as ts
from tablestore.cli.command import CommandRun, command
from tablestore.cli.commands.materialized.refreshes import say_refresh
from tablestore.cli.commands.sql import EngineOption, open_environment
from tablestore.environment.objectpath import ObjectPath
from tablestore.options import parse_duration

if TYPE_CHECKING:
    from tablestore.materialized.figures.freshnessfigures import FreshnessFigures

app = typer.Typer()

Wait = Callable[[float], bool]
"""Waits for so many seconds; whether it is to end."""
Show = Callable[[Sequence["FreshnessFigures"], Mapping[str, int]], None]
"""Takes the figures of tables, and how often a refresh of a table has failed, by its name."""
_LONGEST_PAUSE = 64


@command(
    app,
    "serve",
    "tablestore mt serve",
    "tablestore mt serve --interval '30 s' --metrics-port 9464",
    "tablestore mt serve --json >> refreshes.jsonl",
)
def serve(
    session: CommandRun,
    interval: Annotated[str, typer.Option("--interval", metavar="DURATION", help="Between two looks.")] = "5 s",
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            min=0,
            max=65535,
            help=r"Serve the figures as OpenMetrics at /metrics of this port; needs managed-tablestore\[server].",
        ),
    ] = None,
    metrics_host: Annotated[str, typer.Option("--metrics-host", help="The address that the metrics are served at.")] = "127.0.0.1",
    engine: EngineOption = None,
) -> None:
    """Keep the materialized tables of a warehouse fresh, until Ctrl-C or SIGTERM.

    Each refresh is a line, or a JSON document on a line. A table whose refresh fails is tried again, less and less often; the
    others go on.
    """
    wait_s = parse_duration(interval) / 1000
    with open_environment(session, engine) as environment, _until_signal() as wait:
        server = Server(session, environment)
        if metrics_port is None:
            server.run(wait, wait_s)
            return
        # They load an HTTP server and prometheus-client, which not everybody has installed.
        from tablestore.cli.commands.materialized.metricsendpoint import served_metrics
        from tablestore.materialized.figures.openmetrics import FreshnessRegistry

        registry = FreshnessRegistry()
        server.show = registry.show
        with served_metrics(metrics_host, metrics_port, registry) as port:
            session.out.note(f"metrics at http://{metrics_host}:{port}/metrics")
            server.run(wait, wait_s)


@dataclass(slots=True, kw_only=True)
class _Pause:
    """The looks at a table that are still left out, and those after its next failure."""

    left: int
    length: int


@dataclass(slots=True)
class Server:
    """Looks at the tables again and again. ``show``: is told the figures after each look."""

    session: CommandRun
    environment: "ts.TableEnvironment"
    show: Show | None = None
    _failures: Counter[str] = field(default_factory=Counter)
    _pauses: dict[str, _Pause] = field(default_factory=dict)

    def run(self, wait: Wait, wait_s: float) -> None:
        """Look, wait, look again; until ``wait`` says that it is to end."""
        while True:
            self.look()
            if wait(wait_s):
                return

    def look(self) -> None:
        """One look: refresh what is due, and count. An error of the warehouse is noted; the next look tries again."""
        try:
            self._refresh()
            if self.show is not None:
                self.show(self.environment.freshness(), dict(self._failures))
        except ts.TablestoreError as error:
            self.session.out.note(str(error))

    def _refresh(self) -> None:
        for due_refresh in self.environment.each_refresh_due(self._is_paused):
            name = str(due_refresh.table)
            say_refresh(self.session, due_refresh)
            if due_refresh.error is None:
                self._pauses.pop(name, None)
            else:
                self._failures[name] += 1
                length = self._pauses[name].length if name in self._pauses else 1
                self._pauses[name] = _Pause(left=length, length=min(2 * length, _LONGEST_PAUSE))

    def _is_paused(self, table: ObjectPath) -> bool:
        pause = self._pauses.get(str(table))
        if pause is None or not pause.left:
            return False
        pause.left -= 1
        return True


@contextmanager
def _until_signal() -> Iterator[Wait]:
    """A wait that a signal ends. The second signal does what it always does."""
    ended = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def end(number: int, _: Any) -> None:
        ended.set()
        signal.signal(number, signal.default_int_handler)

    for number in before:
        signal.signal(number, end)
    try:
        yield ended.wait
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
