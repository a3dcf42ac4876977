"""Runs a system as a process of its own and asks it in JSON lines, with a limit on every answer."""

import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from benchmarks.comparison.systems import Installed, settings_text

_WORKER = Path(__file__).resolve().parent / "workers" / "worker.py"
_CHECKOUT = Path(__file__).resolve().parents[2]


class Unanswered(Exception):
    """A system gave no answer that counts; the message says why. ``status``: ``cannot``, ``failed`` or ``stopped``."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status


class WorkerProcess:
    """One process of a system, whose tables lie in a directory."""

    def __init__(self, installed: Installed, directory: Path, settings: Mapping[str, Any] | None = None) -> None:
        self.name = installed.spec.name
        # A file, not a pipe: nobody reads along, and a full pipe would stop the process.
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        text = settings_text(installed) if settings is None else json.dumps({**installed.settings, **settings})
        environment = dict(os.environ)
        if installed.spec.environment is None:
            # Ours is that of this checkout.
            paths = [_CHECKOUT, _CHECKOUT / "connectors" / "spark", _CHECKOUT / "connectors" / "duckdb"]
            environment["PYTHONPATH"] = os.pathsep.join([*map(str, paths), environment.get("PYTHONPATH", "")])
        else:
            environment.pop("PYTHONPATH", None)
        environment["PYSPARK_PYTHON"] = environment["PYSPARK_DRIVER_PYTHON"] = str(installed.python)
        environment.pop("SPARK_HOME", None)
        self._process = subprocess.Popen(
            [str(installed.python), str(_WORKER), installed.spec.module, str(directory), text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=directory.parent,
            env=environment,
            # So that all that it starts ends with it.
            start_new_session=True,
        )
        self._buffer = b""
        self.peak = 0

    def ask(self, command: str, limit_s: float, **arguments: Any) -> Any:
        """An answer; raises Unanswered if there is none in time."""
        self.send(command, **arguments)
        return self.receive(command, limit_s)

    def send(self, command: str, **arguments: Any) -> None:
        """Asks, without waiting for the answer."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps({"command": command, **arguments}).encode() + b"\n")
            self._process.stdin.flush()

    def receive(self, command: str, limit_s: float) -> Any:
        """The answer to what was sent; raises Unanswered."""
        line = self._line(time.monotonic() + limit_s)
        if line is None:
            self.kill()
            raise Unanswered("stopped", f"{command}: longer than {limit_s:.0f} s")
        if not line:
            raise Unanswered("failed", f"{command}: its process ended: {self._tail()}")
        answer = json.loads(line)
        if "cannot" in answer:
            raise Unanswered("cannot", answer["cannot"])
        if "error" in answer:
            raise Unanswered("failed", f"{command}: {answer['error'].strip()[-1500:]}")
        return answer["ok"]

    def kill(self) -> None:
        """Ends the process and all that it has started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=30)

    def close(self) -> None:
        """Lets the process end by itself, for a while."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()
        # What it left behind.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.stdout.close()
        self._log.close()

    def _line(self, deadline: float) -> bytes | None:
        """A line; empty at the end of the process, None when the time is over."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    return None
                part = os.read(self._process.stdout.fileno(), 1 << 16)
                if not part:
                    return b""
                self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _tail(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace").strip()[-800:]

    def __enter__(self) -> "WorkerProcess":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
